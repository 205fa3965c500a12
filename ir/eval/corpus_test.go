package eval_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// example is a .tile file of testdata/tile/run: a program, its arguments, and
// what it must give. testdata/tile/README.md describes the form.
type example struct {
	prog  *ir.Program
	given map[string][]string // words after "arg NAME"
	want  map[string][]string
	fails string
}

var (
	directive = regexp.MustCompile(`(?m)^; (arg|want) (\w+) (.*)$`)
	failure   = regexp.MustCompile(`(?m)^; fails (.*)$`)
)

func readExample(t testing.TB, file string) *example {
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	prog, err := ir.Parse(file, src)
	require.NoError(t, err)
	e := &example{prog: prog, given: map[string][]string{}, want: map[string][]string{}}
	for _, m := range directive.FindAllStringSubmatch(string(src), -1) {
		to := e.given
		if m[1] == "want" {
			to = e.want
		}
		to[m[2]] = strings.Fields(m[3])
	}
	if m := failure.FindStringSubmatch(string(src)); m != nil {
		e.fails = m[1]
	}
	require.True(t, len(e.want) > 0 != (e.fails != ""), "%s: want results or a failure", file)
	return e
}

// args makes the arguments; what is not given starts poisoned.
func (e *example) args(t testing.TB) []eval.Arg {
	var out []eval.Arg
	for _, p := range e.prog.Params {
		words := e.given[p.Name]
		if p.Type.Kind != ir.View {
			require.Len(t, words, 1, "argument %s", p.Name)
			out = append(out, number(t, p.Type.Elem, words[0]))
			continue
		}
		shape := words
		if words == nil {
			shape = e.want[p.Name]
		}
		if shape == nil {
			shape = []string{"[8]"} // of the ring examples that fail
		}
		tensor := newTensor(t, p.Type.Elem, shape[0])
		if words != nil {
			setNumbers(t, tensor, words[1:])
		}
		out = append(out, eval.View(tensor))
	}
	return out
}

func number(t testing.TB, e ir.Elem, word string) eval.Arg {
	if e.IsFloat() {
		v, err := strconv.ParseFloat(word, 64)
		require.NoError(t, err)
		return eval.Float(v)
	}
	v, err := strconv.ParseInt(word, 10, 64)
	require.NoError(t, err)
	return eval.Int(v)
}

// newTensor reads [2x3] or, with strides, [2x3@8,1]; it comes poisoned.
func newTensor(t testing.TB, e ir.Elem, text string) *eval.Tensor {
	sizes, strides, strided := strings.Cut(strings.Trim(text, "[]"), "@")
	shape := integers(t, strings.Split(sizes, "x"))
	tensor := eval.NewTensor(e, shape...)
	if strided {
		tensor.Strides = integers(t, strings.Split(strides, ","))
		tensor.Data = make([]byte, 8*shape[0]*tensor.Strides[0])
	}
	tensor.Poison()
	return tensor
}

func integers(t testing.TB, words []string) []int {
	out := make([]int, len(words))
	for i, w := range words {
		n, err := strconv.Atoi(w)
		require.NoError(t, err)
		out[i] = n
	}
	return out
}

// setNumbers writes the elements; _ leaves one as it is.
func setNumbers(t testing.TB, tensor *eval.Tensor, words []string) {
	require.Len(t, words, tensor.Len())
	for i, w := range words {
		switch {
		case w == "_":
		case tensor.Elem == ir.I64:
			v, err := strconv.ParseInt(w, 10, 64)
			require.NoError(t, err)
			for b := range 8 {
				tensor.Data[8*i+b] = byte(uint64(v) >> (8 * b))
			}
		default:
			v, err := strconv.ParseFloat(w, 64)
			require.NoError(t, err)
			tensor.SetFloat(i, v)
		}
	}
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../testdata/tile/run/*.tile")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			e := readExample(t, file)
			args := e.args(t)
			err := eval.Run(context.Background(), e.prog, args, eval.Options{})
			if e.fails != "" {
				require.ErrorContains(t, err, e.fails)
				return
			}
			require.NoError(t, err)
			for i, p := range e.prog.Params {
				if words := e.want[p.Name]; words != nil {
					want := newTensor(t, p.Type.Elem, words[0])
					setNumbers(t, want, words[1:])
					requireSame(t, p.Name, want, args[i].Tensor)
				}
			}
		})
	}
}

// requireSame compares elements: numbers by value and sign, any NaN with any.
func requireSame(t testing.TB, name string, want, got *eval.Tensor) {
	if bytes.Equal(want.Data, got.Data) {
		return
	}
	for i := range want.Len() {
		w, g := want.Float(i), got.Float(i)
		if math.Float64bits(w) != math.Float64bits(g) && !(w != w && g != g) {
			t.Errorf("%s, element %d: %v: want %v", name, i, g, w)
		}
	}
}

// readAll returns the contents of the files that match.
func readAll(t testing.TB, pattern string) []string {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []string
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		out = append(out, string(src))
	}
	return out
}
