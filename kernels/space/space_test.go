package space_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/kernels/space"
)

func tiles() *space.Space {
	return &space.Space{
		Params: []space.Param{
			{Name: "BM", Values: []int{64, 128}, Also: []int{96}},
			{Name: "BN", Values: []int{64, 128, 256}},
			{Name: "stages", Values: []int{2, 3, 4}},
		},
		Constraints: []space.Constraint{
			{Name: "shared", Expr: "stages*(BM+BN)*64*2 <= shared", Doc: "the ring fits a block"},
			{Name: "area", Expr: "BM*BN <= 128*128"},
		},
	}
}

func TestEnumerationOrderAndCounts(t *testing.T) {
	b, err := tiles().Bind(space.Env{"shared": 100_000})
	require.NoError(t, err)
	var got []string
	for c := range b.All() {
		require.NoError(t, b.Check(c))
		got = append(got, c.String())
	}
	require.Equal(t, []string{
		"BM=64 BN=64 stages=2", "BM=64 BN=64 stages=3", "BM=64 BN=64 stages=4",
		"BM=64 BN=128 stages=2", "BM=64 BN=128 stages=3", "BM=64 BN=128 stages=4",
		"BM=64 BN=256 stages=2",
		"BM=128 BN=64 stages=2", "BM=128 BN=64 stages=3", "BM=128 BN=64 stages=4",
		"BM=128 BN=128 stages=2", "BM=128 BN=128 stages=3",
	}, got)
	require.Equal(t, space.Counts{Total: 18, Valid: 12, Removed: []space.Removed{
		{Constraint: "shared", Count: 3}, // 64x256 at 3 and 4, 128x128 at 4
		{Constraint: "area", Count: 3},   // 128x256, before its stages are looked at
	}}, b.Count())
	require.Equal(t, "12 of 18 valid; shared removed 3, area removed 3", b.Count().String())
}

func TestEnumerationStopsWhenAsked(t *testing.T) {
	b, err := tiles().Bind(space.Env{"shared": 100_000})
	require.NoError(t, err)
	n := 0
	for range b.All() {
		if n++; n == 4 {
			break
		}
	}
	require.Equal(t, 4, n)
}

func TestCheckNamesConstraintAndValues(t *testing.T) {
	s := tiles()
	b, err := s.Bind(space.Env{"shared": 100_000})
	require.NoError(t, err)
	c, err := s.Parse("BM=128 BN=128 stages=4")
	require.NoError(t, err)
	require.EqualError(t, b.Check(c), `configuration "BM=128 BN=128 stages=4": constraint shared does not hold: `+
		`stages*(BM+BN)*64*2 <= shared (the ring fits a block), where shared is 100000`)
	require.EqualError(t, b.Check(c.With("BM", 100)), `configuration "BM=100 BN=128 stages=4": BM cannot be 100, want one of 64, 96, 128`)
	require.ErrorContains(t, b.Check(space.Config{}), "no value for BM, want one of 64, 96, 128")
}

func TestSettings(t *testing.T) {
	s := tiles()
	base, err := s.Parse("stages=2 BN=64 BM=64")
	require.NoError(t, err)
	require.Equal(t, "BM=64 BN=64 stages=2", base.String())
	c, err := s.Override(base, []string{"BM=96", "stages=4"})
	require.NoError(t, err)
	require.Equal(t, "BM=96 BN=64 stages=4", c.String())
	require.Equal(t, "BM=64 BN=64 stages=2", base.String())
	json, err := c.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"BM":96,"BN":64,"stages":4}`, string(json))

	for text, want := range map[string]string{
		"BM":        `setting "BM": want NAME=VALUE, with NAME one of BM, BN, stages`,
		"BK=32":     `setting "BK=32": no parameter "BK", want one of BM, BN, stages`,
		"BM=65":     `setting "BM=65": BM cannot be "65", want one of 64, 96, 128`,
		"BM=":       `setting "BM=": BM cannot be "", want one of 64, 96, 128`,
		"BM=1e2":    `setting "BM=1e2": BM cannot be "1e2", want one of 64, 96, 128`,
		"stages=-2": `setting "stages=-2": stages cannot be "-2", want one of 2, 3, 4`,
	} {
		_, err := s.Override(base, []string{text})
		require.EqualError(t, err, want)
	}
	_, err = s.Override(base, []string{"BM=64", "BM=128"})
	require.ErrorContains(t, err, "BM is set twice")
	_, err = s.Parse("BM=64 BN=64")
	require.EqualError(t, err, `configuration "BM=64 BN=64": no value for stages, want one of 2, 3, 4`)
}

func TestReaderKeepsFirstError(t *testing.T) {
	c, err := space.NewConfig([]string{"BM"}, []int{64})
	require.NoError(t, err)
	r := c.Read()
	require.Equal(t, 64, r.Int("BM"))
	require.NoError(t, r.Err())
	require.Equal(t, 0, r.Int("BK"))
	require.Equal(t, 0, r.Int("BN"))
	require.EqualError(t, r.Err(), `configuration "BM=64": no value for BK`)
}

// holds says whether a space of two parameters with one constraint keeps a=7, b=-3.
func holds(t *testing.T, expr string) bool {
	t.Helper()
	s := &space.Space{
		Params:      []space.Param{{Name: "a", Values: []int{7}}, {Name: "b", Values: []int{-3}}},
		Constraints: []space.Constraint{{Name: "c", Expr: expr}},
	}
	b, err := s.Bind(space.Env{"big": 1 << 62, "zero": 0})
	require.NoError(t, err, expr)
	return b.Count().Valid == 1
}

func TestExpressions(t *testing.T) {
	for _, expr := range []string{
		"true", "!false", "a == 7 && b == -3", "a+b == 4", "a-b == 10", "a*b == -21", "a/b == -2", "a%b == 1",
		"-a == -7", "-(a+b) < 0", "a != b", "a > b", "a >= 7", "b < a", "b <= -3", "a == 8 || b == -3",
		"min(a, b) == b", "max(a, b, 9) == 9", "min(a) == 7", "ceildiv(a, 2) == 4", "ceildiv(8, 2) == 4", "ceildiv(a, b) == -2", "ceildiv(-7, 2) == -3",
		"1 + 2*3 == 7", "(1+2)*3 == 9", "a*2 == 14 || a/zero == 1", "0x10 == 16", "zero == 0",
		"a%2 == 1 && (a != 7 || b < 0)",
	} {
		require.True(t, holds(t, expr), expr)
		require.False(t, holds(t, "!("+expr+")"), expr)
	}
}

func TestConditionThatLeavesTheIntegersDoesNotHold(t *testing.T) {
	for _, expr := range []string{
		"a/zero == 0", "a%zero == 0", "1/0 == 0", "ceildiv(a, zero) == 0", "!(a/zero == 1)",
		"big*4 == 0", "big+big < 0", "-big-big-big != 0", "a*big > 0",
		"(-9223372036854775807-1)/(a-8) < 0", "-(-9223372036854775807-1) != 0", "(-9223372036854775807-1)*(a-8) != 0",
	} {
		require.False(t, holds(t, expr), expr)
	}
}

func TestExpressionErrors(t *testing.T) {
	for expr, want := range map[string]string{
		"":                         `"", column 1: expected operand`,
		"a <":                      `"a <", column 4: expected operand`,
		"a + b":                    `"a + b", column 1: this is a number, want a condition such as a <= b`,
		"a <= sharde":              `"a <= sharde", column 6: unknown name sharde, want one of a, b, shared`,
		"a == 1.5":                 `"a == 1.5", column 6: 1.5: want an integer`,
		"a == \"x\"":               `a is no parameter of words`,
		"a & 1 == 0":               "operator & is not one of + - * / %",
		"a << 2 == 4":              "operator << is not one of",
		"^a == 4":                  "operator ^ is not one of",
		"!a":                       "! wants a condition, not a number",
		"-(a < b)":                 "- wants a number, not a condition",
		"a && b < 1":               "&& wants conditions on both sides, not numbers",
		"(a < b) + 1 == 2":         "+ wants numbers on both sides, not conditions",
		"(a < b) == true":          "== wants numbers on both sides, not conditions",
		"abs(a) == 7":              "unknown function, want min, max, ceildiv, floordiv or floormod",
		"x.min(a) == 7":            "unknown function, want min, max, ceildiv, floordiv or floormod",
		"ceildiv(a) == 7":          "ceildiv of 1 values: want ceildiv(a, b)",
		"min() == 7":               "min of 0 values",
		"max(a, a<b) == 7":         "max wants numbers, not conditions",
		"a[0] == 7":                "column 1: want integers, names",
		"func() bool {}":           "want integers, names",
		"99999999999999999999 > a": "want an integer that fits 64 bits",
		strings.Repeat("(", 5000):  "expression of 5000 bytes: want at most 4096",
	} {
		s := &space.Space{
			Params:      []space.Param{{Name: "a", Values: []int{1}}, {Name: "b", Values: []int{1}}},
			Constraints: []space.Constraint{{Name: "fits", Expr: expr}},
		}
		_, err := s.Bind(space.Env{"shared": 1})
		require.ErrorContains(t, err, want, expr)
		require.ErrorContains(t, err, "constraint fits: ", expr)
	}
}

func TestMalformedSpaces(t *testing.T) {
	for want, s := range map[string]*space.Space{
		"parameter BM is declared twice":   {Params: []space.Param{{Name: "BM", Values: []int{1}}, {Name: "BM", Values: []int{1}}}},
		"parameter BM has no values":       {Params: []space.Param{{Name: "BM"}}},
		"parameter BM lists 3 twice":       {Params: []space.Param{{Name: "BM", Values: []int{3, 3}}}},
		`parameter "B M": want a Go`:       {Params: []space.Param{{Name: "B M", Values: []int{3}}}},
		`parameter "min": want a Go`:       {Params: []space.Param{{Name: "min", Values: []int{3}}}},
		"parameter shared has the name of": {Params: []space.Param{{Name: "shared", Values: []int{3}}}},
		"more than 2^63 points":            {Params: wide(64)},
	} {
		_, err := s.Bind(space.Env{"shared": 1})
		require.ErrorContains(t, err, want)
	}
	b, err := (&space.Space{Params: wide(62)}).Bind(nil)
	require.NoError(t, err)
	for c := range b.All() {
		require.Equal(t, 62, c.Len())
		break
	}
}

func wide(n int) []space.Param {
	var ps []space.Param
	for i := range n {
		ps = append(ps, space.Param{Name: fmt.Sprintf("p%d", i), Values: []int{0, 1}})
	}
	return ps
}

// Enumeration with pruning keeps exactly the points that pass every constraint, and
// the counts add up to the product.
func TestEnumerationEqualsFilter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exprs := []string{"a <= b", "(a+b)%c == 0", "c != 0 && a%c == 0", "a*b*c <= limit", "max(a, b) > c", "b%2 == 0 || c%2 == 0", "limit > 10", "b/a < c"}
		values := rapid.SliceOfNDistinct(rapid.IntRange(-4, 12), 1, 6, rapid.ID[int])
		s := &space.Space{}
		for _, name := range []string{"a", "b", "c"} {
			s.Params = append(s.Params, space.Param{Name: name, Values: values.Draw(t, name)})
		}
		for i, e := range rapid.SliceOfN(rapid.SampledFrom(exprs), 0, 4).Draw(t, "constraints") {
			s.Constraints = append(s.Constraints, space.Constraint{Name: fmt.Sprint(i), Expr: e})
		}
		b, err := s.Bind(space.Env{"limit": int64(rapid.IntRange(0, 60).Draw(t, "limit"))})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Collect(b.All())
		var want []space.Config
		for _, a := range s.Params[0].Values {
			for _, bb := range s.Params[1].Values {
				for _, c := range s.Params[2].Values {
					cfg, _ := space.NewConfig(s.Names(), []int{a, bb, c})
					if b.Check(cfg) == nil {
						want = append(want, cfg)
					}
				}
			}
		}
		if !slices.EqualFunc(got, want, space.Config.Equal) {
			t.Fatalf("enumerated %v, want %v", got, want)
		}
		n := b.Count()
		sum := n.Valid
		for _, r := range n.Removed {
			sum += r.Count
		}
		if n.Valid != int64(len(want)) || sum != n.Total {
			t.Fatalf("counts %+v for %d valid", n, len(want))
		}
	})
}

// FuzzExpr: an expression from anywhere is compiled or refused, never a panic.
func FuzzExpr(f *testing.F) {
	for _, seed := range []string{"a <= b", "min(a, -b) == ceildiv(a, b)", "a %", "!(a/0 == 1) || a*b > 1<<3", "func(){}()", "a.b[c] == 'x'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s := &space.Space{
			Params:      []space.Param{{Name: "a", Values: []int{-1, 0, 3}}, {Name: "b", Values: []int{0, 5}}},
			Constraints: []space.Constraint{{Name: "c", Expr: expr}},
		}
		if b, err := s.Bind(nil); err == nil {
			b.Count()
		}
	})
}

// clblast is the size and form of CLBlast's GEMM space: 14 parameters, 82944 points,
// seven divisibility rules.
func clblast() *space.Space {
	return &space.Space{
		Params: []space.Param{
			{Name: "MWG", Values: []int{16, 32, 64, 128}}, {Name: "NWG", Values: []int{16, 32, 64, 128}}, {Name: "KWG", Values: []int{32}},
			{Name: "MDIMC", Values: []int{8, 16, 32}}, {Name: "NDIMC", Values: []int{8, 16, 32}},
			{Name: "MDIMA", Values: []int{8, 16, 32}}, {Name: "NDIMB", Values: []int{8, 16, 32}}, {Name: "KWI", Values: []int{2}},
			{Name: "VWM", Values: []int{1, 2, 4, 8}}, {Name: "VWN", Values: []int{1, 2, 4, 8}},
			{Name: "STRM", Values: []int{0}}, {Name: "STRN", Values: []int{0}}, {Name: "SA", Values: []int{0, 1}}, {Name: "SB", Values: []int{0, 1}},
		},
		Constraints: []space.Constraint{
			{Name: "unroll", Expr: "KWG%KWI == 0"},
			{Name: "rows", Expr: "MWG%(MDIMC*VWM) == 0"},
			{Name: "columns", Expr: "NWG%(NDIMC*VWN) == 0"},
			{Name: "loadA", Expr: "MWG%(MDIMA*VWM) == 0"},
			{Name: "loadB", Expr: "NWG%(NDIMB*VWN) == 0"},
			{Name: "depthA", Expr: "KWG%((MDIMC*NDIMC)/MDIMA) == 0"},
			{Name: "depthB", Expr: "KWG%((MDIMC*NDIMC)/NDIMB) == 0"},
		},
	}
}

func TestCLBlastSpace(t *testing.T) {
	b, err := clblast().Bind(nil)
	require.NoError(t, err)
	n := b.Count()
	require.Equal(t, int64(82944), n.Total)
	require.Equal(t, int64(17956), n.Valid)
}

func BenchmarkEnumerateCLBlast(b *testing.B) {
	s := clblast()
	for b.Loop() {
		bound, err := s.Bind(nil)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for range bound.All() {
			n++
		}
		if n != 17956 {
			b.Fatal(n)
		}
	}
}

// Products of 10^9 points and more: narrowing finds what is left without a walk.
func TestLargeProducts(t *testing.T) {
	ten := func(expr ...string) *space.Space {
		s := &space.Space{}
		for i := range 10 {
			p := space.Param{Name: fmt.Sprintf("p%d", i)}
			for v := range 10 {
				p.Values = append(p.Values, v)
			}
			s.Params = append(s.Params, p)
		}
		for _, e := range expr {
			s.Constraints = append(s.Constraints, space.Constraint{Name: e, Expr: e})
		}
		return s
	}
	for _, c := range []struct {
		name  string
		exprs []string
		valid int64
	}{
		{"sum of all", []string{"p0+p1+p2+p3+p4+p5+p6+p7+p8+p9 == 3"}, 220},
		{"first with last", []string{"p0*10+p9 == 42", "p1 == p8", "p2 == p7", "p3 == p6 && p4 == p5", "p0+p1+p2+p3+p4 == 4"}, 1},
		{"nothing constrained", nil, 10_000_000_000},
		{"one constrained", []string{"p4 % 3 == 1"}, 3_000_000_000},
		{"impossible", []string{"p0*p1*p2*p3 > 6561"}, 0},
		{"never", []string{"1 > 2"}, 0},
		{"product", []string{"(p0+1)*(p1+1)*(p2+1)*(p3+1)*(p4+1)*(p5+1)*(p6+1)*(p7+1)*(p8+1)*(p9+1) <= 3"}, 21},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := ten(c.exprs...).Bind(nil)
			require.NoError(t, err)
			counts := b.Count()
			require.Equal(t, c.valid, counts.Valid)
			sum := counts.Valid
			for _, r := range counts.Removed {
				sum += r.Count
			}
			require.Equal(t, counts.Total, sum)
			index, ok := b.Sample(rand.New(rand.NewPCG(1, 1)))
			require.Equal(t, c.valid > 0, ok)
			if ok {
				require.True(t, b.Valid(index))
			}
			if c.valid < 1000 {
				n := int64(0)
				for config := range b.All() {
					require.NoError(t, b.Check(config))
					n++
				}
				require.Equal(t, c.valid, n)
			}
		})
	}
}

// Narrowing and plain traversal agree on random spaces, and so do Next, All, Valid and
// Sample.
func TestNarrowingAgrees(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	operand := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"a", "b", "c", "d", "2", "5", "(-3)", "0"}).Draw(t, "operand")
	})
	term := rapid.Custom(func(t *rapid.T) string {
		x, y := operand.Draw(t, "x"), operand.Draw(t, "y")
		op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%", "min", "max", "ceildiv", "floordiv", "floormod"}).Draw(t, "op")
		if len(op) == 1 {
			return "(" + x + op + y + ")"
		}
		return op + "(" + x + "," + y + ")"
	})
	condition := rapid.Custom(func(t *rapid.T) string {
		x, y := term.Draw(t, "left"), term.Draw(t, "right")
		text := x + rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(t, "cmp") + y
		if rapid.Bool().Draw(t, "not") {
			return "!(" + text + ")"
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		small, large := &space.Space{}, &space.Space{}
		for _, n := range names {
			p := space.Param{Name: n, Values: rapid.SliceOfNDistinct(rapid.IntRange(-4, 9), 1, 5, rapid.ID[int]).Draw(t, n)}
			small.Params, large.Params = append(small.Params, p), append(large.Params, p)
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "constraints") {
			e := condition.Draw(t, "condition")
			if rapid.Bool().Draw(t, "two") {
				e += rapid.SampledFrom([]string{" && ", " || "}).Draw(t, "logic") + condition.Draw(t, "condition")
			}
			c := space.Constraint{Name: fmt.Sprint(i), Expr: e}
			small.Constraints, large.Constraints = append(small.Constraints, c), append(large.Constraints, c)
		}
		// Parameters with but one valid value each make the product a large one.
		for i := range 21 {
			p := space.Param{Name: fmt.Sprintf("z%d", i), Values: []int{0, 1}}
			large.Params = append(large.Params, p)
			large.Constraints = append(large.Constraints, space.Constraint{Name: p.Name, Expr: p.Name + " == 1"})
		}
		s, err := small.Bind(nil)
		require.NoError(t, err)
		l, err := large.Bind(nil)
		require.NoError(t, err)
		require.Equal(t, s.Count().Valid, l.Count().Valid)
		var index []int
		for c := range s.All() {
			var ok bool
			index, ok = s.Next(index)
			require.True(t, ok)
			require.True(t, s.Valid(index))
			for p, i := range index {
				_, v := c.At(p)
				require.Equal(t, v, small.Params[p].Values[i])
			}
		}
		if _, more := s.Next(index); index != nil {
			require.False(t, more)
		}
		if index, ok := s.Sample(rand.New(rand.NewPCG(1, 1))); ok {
			require.True(t, s.Valid(index))
		} else {
			require.Zero(t, s.Count().Valid)
		}
	})
}

// loads is a space of numbers and words with derived names.
func loads() *space.Space {
	return &space.Space{
		Params: []space.Param{
			{Name: "BM", Values: []int{32, 64, 128}},
			space.Words("load", "plain", "async", "bulk"),
			{Name: "stages", Values: []int{1, 2, 3}},
		},
		Lets: []space.Let{
			{Name: "ring", Expr: "BM*row*stages"}, // of one that comes later
			{Name: "row", Expr: "64*2"},
			{Name: "copies", Expr: `load != "plain"`},
		},
		Constraints: []space.Constraint{
			{Name: "fits", Expr: "ring <= shared"},
			{Name: "ahead", Expr: "copies || stages == 1"},
			{Name: "bulk", Expr: `"bulk" != (load) || BM >= 64`},
		},
	}
}

func TestWordsAndLets(t *testing.T) {
	s := loads()
	b, err := s.Bind(space.Env{"shared": 20_000})
	require.NoError(t, err)
	var got []string
	for c := range b.All() {
		got = append(got, c.String())
		index, ok := b.Index(c)
		require.True(t, ok)
		require.True(t, b.Valid(index))
		require.True(t, b.At(index).Equal(c))
	}
	require.Equal(t, []string{
		"BM=32 load=plain stages=1", "BM=32 load=async stages=1", "BM=32 load=async stages=2", "BM=32 load=async stages=3",
		"BM=64 load=plain stages=1", "BM=64 load=async stages=1", "BM=64 load=async stages=2",
		"BM=64 load=bulk stages=1", "BM=64 load=bulk stages=2",
		"BM=128 load=plain stages=1", "BM=128 load=async stages=1", "BM=128 load=bulk stages=1",
	}, got)
	c, err := s.Parse("stages=2 load=bulk BM=64")
	require.NoError(t, err)
	require.NoError(t, b.Check(c))
	text, err := c.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"BM":64,"load":"bulk","stages":2}`, string(text))
	_, err = s.Parse("stages=2 load=bulky BM=64")
	require.EqualError(t, err, `setting "load=bulky": load cannot be "bulky", want one of plain, async, bulk`)
	require.Nil(t, b.Dims()[1].Values)

	ring, err := b.Formula("ceildiv(ring, 1000)")
	require.NoError(t, err)
	v, err := ring.At([]int{1, 2, 1})
	require.NoError(t, err)
	require.Equal(t, int64(17), v) // of 16384
	none, err := b.Formula("1 / (stages - 1)")
	require.NoError(t, err)
	_, err = none.At([]int{1, 2, 0})
	require.EqualError(t, err, `"1 / (stages - 1)" divides by zero or overflows for BM=64 load=bulk stages=1`)
	_, err = b.Formula("copies")
	require.EqualError(t, err, `"copies", column 1: this is a condition, want a number`)
}

func TestLetErrors(t *testing.T) {
	for _, c := range []struct{ ring, row, want string }{
		{"row+1", "64 + 2*ring", `let ring: let row: "64 + 2*ring", column 8: ring is defined by itself: ring needs row needs ring`},
		{"ring", "1", `let ring: "ring", column 1: ring is defined by itself: ring needs ring`},
		{"row + rwo", "1", `let ring: "row + rwo", column 7: unknown name rwo, want one of BM, copies, load, ring, row, shared, stages`},
		{"load", "1", `let ring: "load", column 1: this is a word, want a number or a comparison`},
		{"load + 1", "1", `let ring: "load + 1", column 1: + wants numbers on both sides, not conditions`},
		{"row", "2 +", `let ring: let row: "2 +", column 4: expected operand`},
	} {
		s := loads()
		s.Lets[0].Expr, s.Lets[1].Expr = c.ring, c.row
		_, err := s.Bind(space.Env{"shared": 1})
		require.ErrorContains(t, err, c.want)
	}
	s := loads()
	s.Constraints[2].Expr = `load == "asink"`
	_, err := s.Bind(space.Env{"shared": 1})
	require.ErrorContains(t, err, `column 9: load is never "asink", want one of plain, async, bulk`)
	s.Constraints[2].Expr = `BM == "async"`
	_, err = s.Bind(space.Env{"shared": 1})
	require.ErrorContains(t, err, `column 7: BM is no parameter of words`)
	s = loads()
	s.Lets[0].Name = "BM"
	_, err = s.Bind(space.Env{"shared": 1})
	require.ErrorContains(t, err, "let BM: the name is taken")
}

func TestFlooredDivision(t *testing.T) {
	for _, expr := range []string{
		"floordiv(a, 2) == 3", "floordiv(-a, 2) == -4", "floordiv(a, b) == -3", "floormod(a, 4) == 3", "floormod(-a, 4) == 1", "floormod(a, b) == -2", "floormod(8, 4) == 0",
	} {
		require.True(t, holds(t, expr), expr)
	}
	require.False(t, holds(t, "floormod(a, zero) == 0"))
}

// Definitions are bounded in number, and in the work that they come to.
func TestDefinitionsAreBounded(t *testing.T) {
	chain := func(n int, format string) *space.Space {
		s := &space.Space{Params: []space.Param{{Name: "x", Values: []int{1, 2}}}, Constraints: []space.Constraint{{Name: "c", Expr: fmt.Sprintf("v%d > 0", n-1)}}}
		before := "x"
		for i := range n {
			s.Lets = append(s.Lets, space.Let{Name: fmt.Sprintf("v%d", i), Expr: fmt.Sprintf(format, before, before)})
			before = fmt.Sprintf("v%d", i)
		}
		return s
	}
	b, err := chain(1000, "%s + 0%.0s").Bind(nil)
	require.NoError(t, err)
	require.Equal(t, int64(2), b.Count().Valid)
	_, err = chain(50_000, "%s + 0%.0s").Bind(nil)
	require.ErrorContains(t, err, "50000 definitions: want at most 1000")
	_, err = chain(60, "%s + %s").Bind(nil)
	require.ErrorContains(t, err, "operations: want at most")
}

// An error shows a part of what is long, with the place that it is about.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("a + ", 1000) + "a"
	many := make([]int, 1<<16)
	for i := range many {
		many[i] = i
	}
	s := func(name, expr string) *space.Space {
		return &space.Space{Params: []space.Param{{Name: "a", Values: many}}, Constraints: []space.Constraint{{Name: name, Expr: expr}}}
	}
	for _, tt := range []struct{ name, expr, want string }{
		{strings.Repeat("n", 200_000), "a", "this is a number"},
		{"", strings.Repeat("a", 200_000), "expression of 200000 bytes: want at most 4096"},
		{long, long, "this is a number"},
		{"c", strings.Replace(long, "a + a", "a + zz", 500)[:4000] + " a", "column"},
		{"c", strings.Repeat("(", 4000), "column"},
		{"c", long[:2000] + "unknown > 1", `unknown > 1", column 2001: unknown name unknown`},
	} {
		_, err := s(tt.name, tt.expr).Bind(nil)
		require.ErrorContains(t, err, tt.want)
		require.Less(t, len(err.Error()), 1000)
	}
	b, err := s("c", "a >= 0").Bind(nil)
	require.NoError(t, err)
	_, err = b.Space().Parse("a=-1")
	require.ErrorContains(t, err, "want one of 0, 1, 2, ")
	require.ErrorContains(t, err, "... (65536 in all), 65535")
	require.Less(t, len(err.Error()), 1000)
}
