package ir_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
)

const loopText = `
kernel @k(%x: view<f32>[N], %n: i32) {
  %zero = const 0 : f32
  %s = for %i = 0 to %n step 1 carry (%c = %zero) {
    %v = load %x[%i] : f32
    %d = add %c, %v
    yield %d
  }
  store %x[0] = %s
}`

// find returns the first operation of a code.
func find(k *ir.Kernel, c ir.Opcode) *ir.Op {
	var found *ir.Op
	k.Walk(func(o *ir.Op) {
		if o.Code == c && found == nil {
			found = o
		}
	})
	return found
}

// TestVerifyFindsDamage damages a good kernel in one way at a time.
func TestVerifyFindsDamage(t *testing.T) {
	tests := map[string]struct {
		damage func(k *ir.Kernel)
		want   string
	}{
		"no body":       {func(k *ir.Kernel) { k.Body = nil }, "no body"},
		"no yield":      {func(k *ir.Kernel) { r := find(k, ir.OpFor).Regions[0]; r.Ops = r.Ops[:2] }, "does not end in yield"},
		"no region":     {func(k *ir.Kernel) { find(k, ir.OpFor).Regions = nil }, "0 regions: want 1"},
		"nil region":    {func(k *ir.Kernel) { find(k, ir.OpFor).Regions[0] = nil }, "a region is nil"},
		"parameters":    {func(k *ir.Kernel) { r := find(k, ir.OpFor).Regions[0]; r.Params = r.Params[:1] }, "region 0 has 1 parameters: want 2"},
		"carried type":  {func(k *ir.Kernel) { find(k, ir.OpFor).Regions[0].Params[1].Type = ir.ScalarOf(ir.F16) }, "carried value 0 of type f16: want f32"},
		"result type":   {func(k *ir.Kernel) { find(k, ir.OpAdd).Results[0].Type = ir.ScalarOf(ir.F16) }, "results of types f16: want f32"},
		"same ID":       {func(k *ir.Kernel) { find(k, ir.OpAdd).Results[0].ID = 0 }, "have the same ID 0"},
		"ID too large":  {func(k *ir.Kernel) { find(k, ir.OpAdd).Results[0].ID = 99 }, "has ID 99: want 0 to"},
		"definition":    {func(k *ir.Kernel) { find(k, ir.OpAdd).Results[0].Def = nil }, "does not know what defines it"},
		"order":         {func(k *ir.Kernel) { ops := find(k, ir.OpFor).Regions[0].Ops; ops[0], ops[1] = ops[1], ops[0] }, "operand 1 is not defined before it"},
		"nil operand":   {func(k *ir.Kernel) { find(k, ir.OpAdd).Args[0] = nil }, "operand 0 is not defined"},
		"few operands":  {func(k *ir.Kernel) { o := find(k, ir.OpAdd); o.Args = o.Args[:1] }, "1 operands: too few"},
		"many operands": {func(k *ir.Kernel) { o := find(k, ir.OpAdd); o.Args = append(o.Args, o.Args...) }, "4 operands: want 2"},
		"optional":      {func(k *ir.Kernel) { find(k, ir.OpAdd).Given = 1 }, "an optional operand it does not have"},
		"code":          {func(k *ir.Kernel) { find(k, ir.OpAdd).Code = 0 }, "want 0"},
		"stage":         {func(k *ir.Kernel) { find(k, ir.OpAdd).Sched = ir.Sched{Set: true, Stage: -1} }, "stage -1: want 0 to 64"},
		"name":          {func(k *ir.Kernel) { k.Name = "a b" }, `name "a b"`},
		"axes":          {func(k *ir.Kernel) { k.Space = make([]ir.Axis, 7) }, "7 axes: want at most 6"},
		"assumption":    {func(k *ir.Kernel) { k.Assume = []ir.Assumption{{Kind: ir.AssumePointer, Lo: 16}} }, "something else than a parameter"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := ir.Parse("loop.tile", []byte(loopText))
			require.NoError(t, err)
			test.damage(p.Kernels[0])
			err = ir.Verify(p)
			require.ErrorContains(t, err, test.want)
			require.Contains(t, err.Error(), "loop.tile:")
			_ = p.String()
		})
	}
}

func TestVerifyReportsAtMostTen(t *testing.T) {
	b := ir.NewKernel("k")
	for range 20 {
		b.Emit(ir.OpNeg, b.Const(ir.F32, 1))
	}
	k, err := b.Finish()
	require.NoError(t, err)
	k.Walk(func(o *ir.Op) {
		if o.Code == ir.OpNeg {
			o.Results[0].Type = ir.ScalarOf(ir.F16)
		}
	})
	err = ir.VerifyKernel(k)
	require.Equal(t, 10, strings.Count(err.Error(), "want f32"), err)
}
