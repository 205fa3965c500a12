package codegen_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// planArguments describes a program's arguments to a plan.
func planArguments(p *ir.Program, args []eval.Arg) []codegen.Argument {
	var out []codegen.Argument
	for i, v := range p.Params {
		a := args[i]
		switch {
		case a.Tensor != nil:
			out = append(out, codegen.Argument{Dims: wide(a.Tensor.Shape), Strides: wide(a.Tensor.Strides)})
		case v.Type.Elem.IsFloat():
			out = append(out, codegen.Argument{Bits: floatBits(v.Type.Elem, a.Float)})
		default:
			out = append(out, codegen.Argument{Bits: uint64(a.Int)})
		}
	}
	return out
}

// floatBits are a number's bits as a scalar argument of type e.
func floatBits(e ir.Elem, v float64) uint64 {
	switch e {
	case ir.F64:
		return math.Float64bits(v)
	case ir.F32:
		return uint64(math.Float32bits(float32(v)))
	}
	t := eval.NewTensor(e, 1)
	t.SetFloat(0, v)
	bits := uint64(t.Data[0])
	if len(t.Data) > 1 {
		bits |= uint64(t.Data[1]) << 8
	}
	return bits
}

// runOn runs PTX of a compiled program on a virtual machine; args' tensors take the
// results. skew moves every tensor by as many bytes off its allocation's start. The
// faults come back.
func runOn(tb testing.TB, o vm.Options, c *codegen.Compiled, text string, args []eval.Arg, skew int) []bench.Fault {
	tb.Helper()
	ctx := context.Background()
	dev, err := vm.New(o)
	require.NoError(tb, err)
	defer dev.Close()
	m, err := dev.Load(ctx, "kernel.ptx", []byte(text))
	require.NoError(tb, err)
	plan, err := c.Plan(planArguments(c.Program, args))
	require.NoError(tb, err)
	var memory []bench.Buffer
	for _, a := range args {
		if a.Tensor == nil {
			memory = append(memory, bench.Buffer{})
			continue
		}
		b, err := dev.Alloc(int64(len(a.Tensor.Data)+skew), 0)
		require.NoError(tb, err)
		require.NoError(tb, dev.Write(b, int64(skew), a.Tensor.Data))
		b.Address += uint64(skew)
		memory = append(memory, b)
	}
	for i, n := range plan.Workspace {
		b, err := dev.Alloc(n, 0)
		require.NoError(tb, err)
		if slices.Contains(plan.Clear, i) {
			require.NoError(tb, dev.Write(b, 0, make([]byte, n)))
		}
		memory = append(memory, b)
	}
	reports, err := bench.RunPlan(ctx, dev, m, plan, memory, nil)
	require.NoError(tb, err)
	var faults []bench.Fault
	for _, r := range reports {
		faults = append(faults, r.Faults...)
	}
	for i, a := range args {
		if a.Tensor != nil {
			memory[i].Address -= uint64(skew)
			require.NoError(tb, dev.Read(memory[i], int64(skew), a.Tensor.Data))
		}
	}
	return faults
}

// requireNoFaults fails with all that a launch did wrong.
func requireNoFaults(tb testing.TB, faults []bench.Fault) {
	tb.Helper()
	for _, f := range faults {
		tb.Errorf("%s in %s, block %v thread %v, line %d, %s: %s, other %+v", f.Class, f.Kernel, f.Block, f.Thread, f.Line, f.PTX, f.Message, f.Other)
	}
}
