package vm_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
)

// TestHalfApproximations computes ex2 and tanh of every value of the formats of
// 16 bits: the nearest value, or with perturbation one within the bounds of PTX
// ISA 9.7.4.
func TestHalfApproximations(t *testing.T) {
	for _, a := range []struct {
		op                 string
		f                  format
		of                 func(x float64) float64
		absolute, relative float64
		ftz                bool
	}{
		{"ex2.approx.f16", half, math.Exp2, 0, math.Exp2(-9.9), false},
		{"ex2.approx.ftz.bf16", brain, math.Exp2, 0, 0x1p-7, true},
		{"tanh.approx.f16", half, math.Tanh, math.Exp2(-10.987), 0, false},
		{"tanh.approx.bf16", brain, math.Tanh, 0x1p-8, 0, false},
	} {
		var in []byte
		for v := range uint64(1 << 16) {
			in = append(in, longs(v|(v^0x5555)<<16)...)
		}
		nearest := func(v uint64) uint64 {
			if a.ftz {
				v = a.f.flush(v)
			}
			y := a.of(a.f.value(v))
			if y == 0 || y != y || math.IsInf(y, 0) {
				return a.f.special(y)
			}
			x := a.f.round(big.NewFloat(y), "rn")
			if a.ftz {
				x = a.f.flush(x)
			}
			return x
		}
		// One result, and whether it is the nearest.
		check := func(t *testing.T, approx vm.Approx, v, got uint64) bool {
			want := nearest(v)
			if want == got {
				return true
			}
			y := a.of(a.f.value(v))
			require.Equal(t, vm.Perturbed, approx, "%s of %#x: got %#x, want %#x", a.op, v, got, want)
			require.InDelta(t, y, a.f.value(got), a.absolute+a.relative*math.Abs(y), "%s of %#x", a.op, v)
			return false
		}
		for _, approx := range []vm.Approx{vm.Rounded, vm.Perturbed} {
			t.Run(a.op+string(approx), func(t *testing.T) {
				opt := vm.Options{Approx: approx, Seed: 3}
				one := instruction{op: a.op, dst: 16, src: []int{16}, opt: opt}.run(t, in, 1<<16)
				two := instruction{op: a.op + "x2", dst: 32, src: []int{32}, opt: opt}.run(t, in, 1<<16)
				off := 0
				for v := range uint64(1 << 16) {
					if !check(t, approx, v, one[v]) {
						off++
					}
					check(t, approx, v, two[v]&0xffff)
					check(t, approx, v^0x5555, two[v]>>16)
				}
				require.Equal(t, approx == vm.Perturbed, off > 1<<10, "%d not the nearest", off)
			})
		}
	}
}

// TestDoubleApproximations: rcp and rsqrt.approx.ftz.f64 look at the upper half of
// their operand alone, and leave the lower half of the result zero.
func TestDoubleApproximations(t *testing.T) {
	const n = 1024
	r := rand.New(rand.NewPCG(4, 4))
	var in []byte
	var xs []float64
	for range n {
		xs = append(xs, math.Ldexp(1+r.Float64(), r.IntN(1000)-500))
		in = append(in, longs(math.Float64bits(xs[len(xs)-1]))...)
	}
	for _, a := range []struct {
		op       string
		of       func(x float64) float64
		relative float64
		upper    bool
	}{
		{"rcp.approx.ftz.f64", func(x float64) float64 { return 1 / x }, 0x1p-19, true},
		{"rsqrt.approx.ftz.f64", func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1p-19, true},
		{"rsqrt.approx.f64", func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1p-51, false},
	} {
		got := instruction{op: a.op, dst: 64, src: []int{64}}.run(t, in, n)
		for i, x := range xs {
			require.InEpsilon(t, a.of(x), math.Float64frombits(got[i]), a.relative, "%s(%g)", a.op, x)
			if a.upper {
				require.Zero(t, uint32(got[i]), "%s(%g)", a.op, x)
			}
		}
	}
	// Zeros, infinities and subnormal numbers, which ftz flushes.
	edges := []float64{0, math.Copysign(0, -1), math.Inf(1), 0x1p-1060, -0x1p-1060}
	want := map[string][]float64{
		"rcp.approx.ftz.f64":   {math.Inf(1), math.Inf(-1), 0, math.Inf(1), math.Inf(-1)},
		"rsqrt.approx.ftz.f64": {math.Inf(1), math.Inf(-1), 0, math.Inf(1), math.Inf(-1)},
		"rsqrt.approx.f64":     {math.Inf(1), math.Inf(-1), 0, 0x1p530, math.NaN()},
	}
	in = nil
	for _, x := range edges {
		in = append(in, longs(math.Float64bits(x))...)
	}
	for op, all := range want {
		got := instruction{op: op, dst: 64, src: []int{64}}.run(t, in, len(edges))
		for i, x := range all {
			y := math.Float64frombits(got[i])
			require.True(t, x == y || x != x && y != y, "%s(%g): got %g, want %g", op, edges[i], y, x)
		}
	}
}
