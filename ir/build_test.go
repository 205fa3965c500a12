package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
)

func values(vs ...*ir.Value) []*ir.Value { return vs }

// TestBuildEqualsText builds a kernel and compares it with its text.
func TestBuildEqualsText(t *testing.T) {
	b := ir.NewKernel("scale")
	x := b.View("x", ir.BF16, "M", 96)
	s := b.Scalar("s", ir.F32)
	i := b.Over("i", ir.Sym("M").CeilDiv(ir.Lit(16)))
	b.AssumeStride(x, 1, 1)
	m := b.Mul(i, b.Int(16))
	v := b.Cast(b.Load(x, values(m, b.Int(0)), ir.TileOf(ir.BF16, 16, 96)), ir.F32)
	sum := b.Reduce(ir.Add, v, 1)
	v = b.Mul(v, s)               // a scalar is splatted
	v = b.Sub(v, b.Cols(sum, 96)) // a column vector is broadcast
	v = b.Max(v, b.Expand(sum, 1))
	b.Store(x, values(m, b.Int(0)), b.Cast(v, ir.BF16))
	k, err := b.Finish()
	require.NoError(t, err)

	want, err := ir.Parse("want", []byte(`
kernel @scale(%x: view<bf16>[M, 96], %s: f32) {
  assume stride(%x, 1) = 1
  over %i: ceildiv(M, 16)
  %c16 = const 16 : i32
  %m = mul %i, %c16
  %c0 = const 0 : i32
  %l = load %x[%m, %c0] : <16x96xbf16>
  %v = cast %l : <16x96xf32>
  %sum = reduce add %v axis=1
  %ss = splat %s : <16x96xf32>
  %v1 = mul %v, %ss
  %e = expand %sum axis=1
  %eb = broadcast %e : <16x96xf32>
  %v2 = sub %v1, %eb
  %f = expand %sum axis=1
  %fb = broadcast %f : <16x96xf32>
  %v3 = max %v2, %fb
  %z = const 0 : i32
  %o = cast %v3 : <16x96xbf16>
  store %x[%m, %z] = %o
}`))
	require.NoError(t, err)
	require.True(t, want.Kernels[0].Equal(k), k.String())
}

// TestBuilderKeepsFirstError checks that mistakes never panic, and that the first
// is reported with the line of this file that made it.
func TestBuilderKeepsFirstError(t *testing.T) {
	tests := map[string]struct {
		build func(b *ir.Builder, x, s *ir.Value)
		want  string
	}{
		"types differ":     {func(b *ir.Builder, x, s *ir.Value) { b.Add(s, b.Int(1)) }, "operands of types f32 and i32"},
		"nil":              {func(b *ir.Builder, x, s *ir.Value) { b.Neg(nil) }, "an operand is nil"},
		"indices":          {func(b *ir.Builder, x, s *ir.Value) { b.Load(x, values(), ir.TileOf(ir.F32, 4)) }, "0 indices: want 2"},
		"extents":          {func(b *ir.Builder, x, s *ir.Value) { b.Subview(x, values(b.Int(0), b.Int(0)), nil, nil) }, "0 extents for 2 dimensions"},
		"view of scalar":   {func(b *ir.Builder, x, s *ir.Value) { b.Dim(s, 0) }, "operand view of type f32: want a view"},
		"constant":         {func(b *ir.Builder, x, s *ir.Value) { b.Const(ir.I32, 0.5) }, "constant 0.5: want an integer"},
		"constant's range": {func(b *ir.Builder, x, s *ir.Value) { b.Const(ir.E4M3, 500) }, "constant 500 is no value of e4m3"},
		"dimension":        {func(b *ir.Builder, x, s *ir.Value) { b.View("y", ir.F32, 1.5) }, "dimension 0 is a float64"},
		"body":             {func(b *ir.Builder, x, s *ir.Value) { b.For(b.Int(0), b.Int(4), b.Int(1), values(s), ir.Loop{}, nil) }, "a body returns 0 values: want 1"},
		"body's types": {func(b *ir.Builder, x, s *ir.Value) {
			b.For(b.Int(0), b.Int(4), b.Int(1), values(s), ir.Loop{}, func(i *ir.Value, _ []*ir.Value) []*ir.Value { return values(i) })
		}, "value 0 of type i32: want f32"},
		"branches": {func(b *ir.Builder, x, s *ir.Value) {
			b.If(b.Const(ir.I1, 1), func() []*ir.Value { return values(s) }, nil)
		}, "a body returns 0 values: want 1"},
		"out of scope": {func(b *ir.Builder, x, s *ir.Value) {
			var inner *ir.Value
			b.If(b.Const(ir.I1, 1), func() []*ir.Value { inner = b.Neg(s); return nil }, nil)
			b.Neg(inner)
		}, "operand 0 is not defined before it, or in a region that has ended"},
		"size": {func(b *ir.Builder, x, s *ir.Value) { b.Over("j", ir.Sym("Q")) }, "Q is neither a dimension"},
		"own":  {func(b *ir.Builder, x, s *ir.Value) { b.Failf("head dimension %d", 100) }, "head dimension 100"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ir.NewKernel("k")
			x, s := b.View("x", ir.F32, "M", "N"), b.Scalar("s", ir.F32)
			test.build(b, x, s)
			k, err := b.Finish()
			require.Nil(t, k)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "build_test.go:")
			b.Add(b.Neg(b.Neg(s)), b.Load(x, values(b.Int(0), b.Int(0)), ir.TileOf(ir.F32, 4))) // goes on quietly
		})
	}
}

func TestSetOperand(t *testing.T) {
	b := ir.NewKernel("k")
	x := b.View("x", ir.I32, "N")
	zero, mask := b.Int(0), b.Full(ir.TileOf(ir.I1, 8), 1)
	rows := b.Iota(0, 8)
	load := b.Load(x, values(rows), ir.TileOf(ir.I32, 8), ir.Access{Fill: zero}).Def
	require.True(t, load.SetOperand("mask", mask))
	require.True(t, load.SetOperand("limit", zero))
	require.False(t, load.SetOperand("pred", zero))
	require.Equal(t, values(x, rows, zero, mask, zero), load.Args)
	require.True(t, load.SetOperand("limit", nil))
	require.True(t, load.SetOperand("limit", nil))
	require.Equal(t, values(x, rows, mask, zero), load.Args)
	require.Nil(t, load.Operand("limit"))
	require.Equal(t, mask, load.Operand("mask"))
	require.Equal(t, rows, load.Rows())
	_, err := b.Finish()
	require.NoError(t, err)
}

func TestReplaceUses(t *testing.T) {
	b := ir.NewKernel("k")
	s := b.Scalar("s", ir.F32)
	one := b.Const(ir.F32, 1)
	b.If(b.Const(ir.I1, 1), func() []*ir.Value { b.Add(one, one); return nil }, nil)
	k, err := b.Finish()
	require.NoError(t, err)
	require.Len(t, k.Uses()[one.ID], 2)
	k.ReplaceUses(one, s)
	require.Empty(t, k.Uses()[one.ID])
	require.Len(t, k.Uses()[s.ID], 2)
	require.NoError(t, ir.VerifyKernel(k))
}

// TestElementwiseMethods checks that each method makes its operation, with
// operands that fit themselves to each other.
func TestElementwiseMethods(t *testing.T) {
	b := ir.NewKernel("k")
	v, s := b.Full(ir.TileOf(ir.I32, 4, 8), 3), b.Int(2)
	row := b.Full(ir.TileOf(ir.I32, 8), 1)
	for code, f := range map[ir.Opcode]func(x, y *ir.Value) *ir.Value{
		ir.OpAdd: b.Add, ir.OpSub: b.Sub, ir.OpMul: b.Mul, ir.OpDiv: b.Div, ir.OpRem: b.Rem, ir.OpMin: b.Min, ir.OpMax: b.Max,
		ir.OpAnd: b.And, ir.OpOr: b.Or, ir.OpXor: b.Xor, ir.OpShl: b.Shl, ir.OpShr: b.Shr, ir.OpUshr: b.Ushr,
	} {
		for _, r := range []*ir.Value{f(v, s), f(s, v), f(v, b.Expand(row, 0)), f(v, b.Rows(row, 4))} {
			require.Equal(t, code, r.Def.Code)
			require.Equal(t, "<4x8xi32>", r.Type.String())
		}
	}
	require.Equal(t, ir.OpDiv, b.CeilDiv(s, 64).Def.Code)
	require.Equal(t, int64(-1<<62), b.Const64(ir.I64, -1<<62).Def.Int)
	more := ir.BuildAt(b.Kernel(), b.Kernel().Body)
	more.AssumeRange(more.Scalar("n", ir.I32), 0, 7)
	require.NoError(t, more.Err())
	_, err := b.Finish()
	require.NoError(t, err)
}
