package codegen_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/irtest"
)

// TestFunctions holds every function to its bound over all of its range.
func TestFunctions(t *testing.T) {
	f32 := map[ir.Opcode]irtest.Tolerance{
		ir.OpExp2:  {Rel: 0x1p-22, Abs: 0x1p-126}, // results that are subnormal are flushed
		ir.OpLog2:  {Rel: 0x1p-21, Abs: 0x1p-21},
		ir.OpRsqrt: {Rel: 0x1p-22},
		ir.OpSqrt:  {Rel: 0x1p-24},
		ir.OpRcp:   {Rel: 0x1p-24},
		ir.OpTanh:  {Rel: 0x1p-21, Abs: 0x1p-149},
		ir.OpErf:   {Rel: 0x1p-20, Abs: 0x1p-149},
		ir.OpSin:   {Rel: 0x1p-21, Abs: 0x1p-23},
		ir.OpCos:   {Rel: 0x1p-21, Abs: 0x1p-23},
	}
	f64 := map[ir.Opcode]irtest.Tolerance{
		ir.OpExp2:  {Rel: 0x1p-50, Abs: 0x1p-1074},
		ir.OpLog2:  {Rel: 0x1p-50, Abs: 0x1p-51},
		ir.OpRsqrt: {Rel: 0x1p-51},
		ir.OpSqrt:  {Rel: 0x1p-53},
		ir.OpRcp:   {Rel: 0x1p-53},
		ir.OpTanh:  {Rel: 0x1p-50, Abs: 0x1p-1074},
		ir.OpErf:   {Rel: 0x1p-48, Abs: 0x1p-1074},
		ir.OpSin:   {Rel: 0x1p-48, Abs: 0x1p-50},
		ir.OpCos:   {Rel: 0x1p-48, Abs: 0x1p-50},
	}
	for e, bounds := range map[ir.Elem]map[ir.Opcode]irtest.Tolerance{ir.F32: f32, ir.F64: f64} {
		for code, tol := range bounds {
			t.Run(e.String()+"/"+code.String(), func(t *testing.T) {
				t.Parallel()
				holdFunction(t, code, e, tol)
			})
		}
	}
}

func holdFunction(t *testing.T, code ir.Opcode, e ir.Elem, tol irtest.Tolerance) {
	t.Helper()
	const n = 4096
	b := ir.NewKernel("f")
	x, y := b.View("x", e, n), b.View("y", e, n)
	at := []*ir.Value{b.Int(0)}
	b.SetHints(ir.Hints{Warps: 8})
	b.Store(y, at, b.Unary(code, b.Load(x, at, ir.TileOf(e, n))))
	k, err := b.Finish()
	require.NoError(t, err)
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	c, err := codegen.Compile(ir.Single(k), gpu, codegen.Options{Verify: true})
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	in := eval.NewTensor(e, n)
	r := rand.New(rand.NewPCG(uint64(code), uint64(e)))
	low, high := -160.0, 130.0 // exponents
	if code == ir.OpSin || code == ir.OpCos {
		high = 20
	}
	if e == ir.F64 {
		low *= 7
	}
	for i := range n {
		v := math.Ldexp(1+r.Float64(), int(low+(high-low)*float64(i)/n))
		switch i % 4 {
		case 0:
			v = -v
		case 1: // most functions do their work here
			v = r.Float64()*20 - 10
		}
		in.SetFloat(i, v)
	}
	for i, v := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 0.25, 0.2, math.Sqrt2, 1e-45} {
		in.SetFloat(i, v)
	}
	out := eval.NewTensor(e, n)
	args := []eval.Arg{eval.View(in), eval.View(out)}
	want, got := copyArgs(args), copyArgs(args)
	require.NoError(t, eval.Run(context.Background(), c.Program, want, eval.Options{}))
	requireNoFaults(t, runOn(t, vm.Options{GPU: gpu}, c, text, got, 0))
	wrong := 0
	for i := range n {
		x, w, g := in.Float(i), want[1].Tensor.Float(i), got[1].Tensor.Float(i)
		if tol.Allows(w, g) {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("%s(%v) = %v: want %v within %v, is off by %v of it", code, x, g, w, tol, (g-w)/w)
		}
	}
	require.Zero(t, wrong, "of %d", n)
}
