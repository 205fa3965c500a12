package family_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

func arg(name string, e ir.Elem, pad int, dims ...int) family.Arg {
	a := family.Arg{Name: name, Elem: e, Dims: dims, Strides: make([]int, len(dims))}
	step := 1
	for d := len(dims) - 1; d >= 0; d-- {
		a.Strides[d] = step
		step *= dims[d]
		if d == len(dims)-1 {
			step += pad
		}
	}
	return a
}

func TestDataIsNormalAndDependsOnSeedAndNameOnly(t *testing.T) {
	for _, e := range []ir.Elem{ir.F16, ir.BF16, ir.F32, ir.E4M3, ir.E5M2} {
		d, err := family.NewData([]family.Arg{arg("a", e, 0, 300, 200), arg("b", e, 0, 300, 200)}, 1)
		require.NoError(t, err)
		a, b := d["a"].Region(d["a"].Whole()), d["b"].Region(d["b"].Whole())
		mean, square, cross := 0.0, 0.0, 0.0
		for i, x := range a {
			mean += x / float64(len(a))
			square += x * x / float64(len(a))
			cross += x * b[i] / float64(len(a))
		}
		// 5 standard deviations of the estimates from 60000 draws.
		require.InDelta(t, 0, mean, 5/math.Sqrt(60000))
		require.InDelta(t, 1, square, 5*math.Sqrt(2.0/60000))
		require.InDelta(t, 0, cross, 5/math.Sqrt(60000))

		padded, err := family.NewData([]family.Arg{arg("a", e, 5, 300, 200)}, 1)
		require.NoError(t, err)
		require.Equal(t, a, padded["a"].Region(padded["a"].Whole()))
		other, err := family.NewData([]family.Arg{arg("a", e, 0, 300, 200)}, 2)
		require.NoError(t, err)
		require.NotEqual(t, a, other["a"].Region(other["a"].Whole()))
	}
}

func TestGapsAndOutputsAreNaN(t *testing.T) {
	for _, e := range []ir.Elem{ir.F16, ir.BF16, ir.F32, ir.E4M3, ir.E5M2} {
		in, out := arg("in", e, 3, 4, 7), arg("out", e, 0, 2, 3)
		out.Out = true
		d, err := family.NewData([]family.Arg{in, out, {Name: "n", Elem: ir.I32, Int: 3}}, 1)
		require.NoError(t, err)
		require.Len(t, d, 2)
		for _, x := range d["out"].Region(out.Whole()) {
			require.True(t, math.IsNaN(x))
		}
		row := make([]float64, 10)
		d["in"].Row(row, 10)
		for i, x := range row {
			require.Equal(t, i >= 7, math.IsNaN(x), "%s element %d is %g", e, i, x)
			if i < 7 {
				require.Equal(t, d["in"].At(1, i), x)
			}
		}
		require.Len(t, d["in"].Bytes, (3*10+7)*e.Bits()/8)
	}
	_, err := family.NewTensor(arg("x", ir.E2M1, 0, 4))
	require.ErrorContains(t, err, "tensor x: no host data of type e2m1")
}

func TestCheckDescribesTheFirstWrongElement(t *testing.T) {
	d, err := family.NewData([]family.Arg{arg("c", ir.F32, 1, 3, 4)}, 1)
	require.NoError(t, err)
	c := d["c"]
	r := family.Region{Out: "c", Lo: []int{1, 1}, Hi: []int{3, 4}}
	e := family.Expected{Want: c.Region(r), Tol: make([]float64, 6)}
	require.NoError(t, c.Check(r, e))
	e.Want[4] += 0.5
	e.Want[5] -= 0.25
	require.ErrorContains(t, c.Check(r, e), "c[2 2]: got ")
	require.ErrorContains(t, c.Check(r, e), "2 of 6 elements of [1 1] to [3 4] are wrong")
	e.Tol[4], e.Tol[5] = 0.5, 0.25
	require.NoError(t, c.Check(r, e))
	e.Want[0] = math.Inf(1)
	require.ErrorContains(t, c.Check(r, e), "c[1 1]")
	e.Want = e.Want[1:]
	require.ErrorContains(t, c.Check(r, e), "5 elements expected for a region of 6")

	poison, err := family.NewTensor(arg("p", ir.F32, 0, 2))
	require.NoError(t, err)
	require.Error(t, poison.Check(poison.Whole(), family.Expected{Want: []float64{0, 0}, Tol: []float64{1, math.Inf(1)}}))
}

// What a type cannot hold becomes an infinity, or its largest value where casts saturate;
// within the tolerance of the boundary both sides of it are right.
func TestCheckAtTheEndOfATypesRange(t *testing.T) {
	inf := math.Inf(1)
	for _, tt := range []struct {
		e              ir.Elem
		got, want, tol float64
		ok             bool
	}{
		{ir.F16, inf, 7e4, 70, true},
		{ir.F16, 65504, 7e4, 70, false},
		{ir.F16, -inf, 7e4, 70, false},
		{ir.F16, -inf, -7e4, 70, true},
		{ir.F16, inf, 65500, 32, true},
		{ir.F16, 65504, 65530, 32, true},
		{ir.F16, inf, 65500, 19, false},
		{ir.F16, inf, 1, 1, false},
		{ir.F16, inf, inf, 0, true},
		{ir.F16, 65504, inf, 1e9, false},
		{ir.BF16, inf, 4e38, 1e36, true},
		{ir.BF16, inf, 3e38, 1e36, false},
		{ir.F32, inf, 1e39, 1e30, true},
		{ir.F32, inf, 3e38, 1e30, false},
		{ir.E4M3, 448, 500, 40, true},
		{ir.E4M3, -448, -1e9, 40, true},
		{ir.E4M3, 416, 500, 20, false},
	} {
		require.Equal(t, tt.ok, family.Right(tt.e, tt.got, tt.want, tt.tol), "%+v", tt)
	}
}

func TestPoints(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	points := family.Points(r, 7, 5, 3)
	require.Len(t, points, 7)
	require.Equal(t, [][]int{{4, 2}, {0, 2}, {4, 0}, {0, 0}}, points[:4])
	seen := map[[2]int]bool{}
	for _, p := range points {
		require.False(t, seen[[2]int(p)])
		seen[[2]int(p)] = true
	}
	require.Len(t, family.Points(r, 100, 5, 3), 15)
	require.Equal(t, [][]int{{0, 0}}, family.Points(r, 100, 1, 1))
	require.Len(t, family.Points(r, 10, 1<<31-1, 1<<31-1, 1<<31-1), 10)
	require.Empty(t, family.Points(r, 0, 5))
}

func BenchmarkNewData(b *testing.B) {
	a := arg("q", ir.BF16, 0, 1, 4096, 32, 128)
	b.SetBytes(int64(2 * a.Elements()))
	for b.Loop() {
		if _, err := family.NewData([]family.Arg{a}, 1); err != nil {
			b.Fatal(err)
		}
	}
}
