package spec

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/space"
)

// params are those of the expressions below; all points of their product are tried.
func params() []space.Param {
	return []space.Param{
		{Name: "a", Values: []int{1, 2, 3, 7}},
		{Name: "b", Values: []int{1, 2, 4}},
		{Name: "z", Values: []int{-3, 0, 5}},
		space.Words("load", "plain", "bulk"),
	}
}

// Each condition of Python holds for the points for which the same, written in Go on
// floating-point numbers, does.
func TestPythonMeansWhatItSays(t *testing.T) {
	type point struct {
		a, b, z float64
		load    string
	}
	mod := func(x, y float64) float64 { return x - y*math.Floor(x/y) }
	for text, want := range map[string]func(p point) bool{
		"a * b <= 8 and not a == 3":         func(p point) bool { return p.a*p.b <= 8 && p.a != 3 },
		"a % b == 0 or z":                   func(p point) bool { return mod(p.a, p.b) == 0 || p.z != 0 },
		"a / b == 0.5":                      func(p point) bool { return p.a/p.b == 0.5 },
		"7 % (a / b) == 0":                  func(p point) bool { return mod(7*p.b, p.a) == 0 },
		"z // b == -2":                      func(p point) bool { return math.Floor(p.z/p.b) == -2 },
		"z % b == 1":                        func(p point) bool { return mod(p.z, p.b) == 1 },
		"1 < a <= b * 2":                    func(p point) bool { return 1 < p.a && p.a <= p.b*2 },
		"(a + b) / b * 2 - 1 >= 3":          func(p point) bool { return (p.a+p.b)/p.b*2-1 >= 3 },
		"a in [1, 7] and b not in (2, 4)":   func(p point) bool { return (p.a == 1 || p.a == 7) && p.b == 1 },
		"min(a, b) == 2 or max(a, 3) > b+2": func(p point) bool { return min(p.a, p.b) == 2 || max(p.a, 3) > p.b+2 },
		"a == max(a)":                       func(p point) bool { return p.a == 7 },
		"ceil(a / b) == 2":                  func(p point) bool { return math.Ceil(p.a/p.b) == 2 },
		"int(a / b) == 1":                   func(p point) bool { return math.Trunc(p.a/p.b) == 1 },
		"a ** 2 > 2 ** 3":                   func(p point) bool { return p.a*p.a > 8 },
		"load == 'bulk' or a < 2":           func(p point) bool { return p.load == "bulk" || p.a < 2 },
		"load != \"plain\"":                 func(p point) bool { return p.load != "plain" },
		"a < 3 if load == 'bulk' else b > 1": func(p point) bool {
			if p.load == "bulk" {
				return p.a < 3
			}
			return p.b > 1
		},
		"n[0] // a >= 4":          func(p point) bool { return math.Floor(16/p.a) >= 4 },
		"True and a - b - 1 == 0": func(p point) bool { return p.a-p.b-1 == 0 },
	} {
		py := python{params: map[string]space.Param{}, sizes: space.Env{"n_0": 16}}
		for _, p := range params() {
			py.params[p.Name] = p
		}
		expr, err := py.condition(text)
		require.NoError(t, err, text)
		s := &space.Space{Params: params(), Constraints: []space.Constraint{{Name: "c", Expr: expr}}}
		b, err := s.Bind(py.sizes)
		require.NoError(t, err, "%s: %s", text, expr)
		held := 0
		for a := range 4 {
			for bb := range 3 {
				for z := range 3 {
					for l := range 2 {
						at := []int{a, bb, z, l}
						p := point{float64(params()[0].Values[a]), float64(params()[1].Values[bb]), float64(params()[2].Values[z]), params()[3].Words[l]}
						require.Equal(t, want(p), b.Valid(at), "%s as %s at %v", text, expr, p)
						if want(p) {
							held++
						}
					}
				}
			}
		}
		require.True(t, held > 0 && held < 72, "%s holds always or never", text)
	}
}

func TestPythonRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a <":                      "it ends early",
		"a ~ b":                    `column 3: '~' cannot be translated`,
		"a == c":                   "column 6: unknown name c",
		"len(a) > 1":               "len of 1 values cannot be translated",
		"a / z > 1":                "/ by z, which may be 0 or less",
		"a ** b > 1":               `** with "b": want a constant exponent`,
		"lambda: a":                "column 7: ':' cannot be translated",
		"a == 1 2":                 `"2" cannot be translated`,
		"(a > 1) == (b>1)":         "want numbers on both sides",
		"a and 'x'":                "a string or a list is no condition",
		"(1 if a else 2)>1":        "a choice between numbers cannot be translated",
		"a == 'x":                  "a string without an end",
		"a > 1e3":                  "want a decimal number",
		"math.sqrt(a) > 1":         "math.sqrt cannot be translated",
		"a in []":                  "want a list of one or more values",
		"(a":                       `want ")"`,
		strings.Repeat("(", 1<<20): "more than 200 expressions within each other",
	} {
		py := python{params: map[string]space.Param{}}
		for _, p := range params() {
			py.params[p.Name] = p
		}
		_, err := py.condition(text)
		require.ErrorContains(t, err, want)
	}
}

func FuzzPython(f *testing.F) {
	f.Add("a % ((b * 2) / a) == 0 and not z")
	f.Fuzz(func(t *testing.T, text string) {
		py := python{params: map[string]space.Param{}}
		for _, p := range params() {
			py.params[p.Name] = p
		}
		expr, err := py.condition(text)
		if err != nil || len(expr) > 4000 {
			return
		}
		s := &space.Space{Params: params(), Constraints: []space.Constraint{{Name: "c", Expr: expr}}}
		_, err = s.Bind(nil)
		if err != nil && err.Error() != "" { // a word compared with what it never is
			require.NotContains(t, err.Error(), "expected", "%s: %s", text, expr)
		}
	})
}
