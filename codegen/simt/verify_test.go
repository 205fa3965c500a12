package simt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVerifyFinds breaks a valid kernel in one way each.
func TestVerifyFinds(t *testing.T) {
	find := func(k *Kernel, op Op) (found *Instr) {
		Walk(k.Body, func(in *Instr) {
			if in.Op == op && found == nil {
				found = in
			}
		})
		return found
	}
	for _, c := range []struct {
		name, want string
		do         func(k *Kernel)
	}{
		{"threads", "2000 threads, want 1 to 1024", func(k *Kernel) { k.Threads = 2000 }},
		{"alignment", "aligned to 48", func(k *Kernel) { k.SharedAlign = 48 }},
		{"type of an operand", "operand 1 is f32", func(k *Kernel) { find(k, OpShl).Args[1] = k.Body.Instrs[0].Results[0] }},
		{"missing operand", "operand 0 is missing", func(k *Kernel) { find(k, OpShl).Args[0] = nil }},
		{"use before definition", "is not defined here", func(k *Kernel) {
			b := k.Body
			b.Instrs[0], b.Instrs[len(b.Instrs)-1] = b.Instrs[len(b.Instrs)-1], b.Instrs[0]
		}},
		{"use out of scope", "is not defined here", func(k *Kernel) { find(k, OpSt).Args[1] = find(k, OpFor).Body.Params[1] }},
		{"two definitions", "is defined twice", func(k *Kernel) { k.Body.Instrs = append(k.Body.Instrs, k.Body.Instrs[0]) }},
		{"yields", "do not match", func(k *Kernel) { b := find(k, OpFor).Body; b.Yield = b.Yield[:1] }},
		{"step", "step -1, want a positive one", func(k *Kernel) { find(k, OpFor).Args[2] = NewBuilder(k).Const32(-1) }},
		{"vector", "3 elements, want 1, 2 or 4", func(k *Kernel) { find(k, OpSt).Vec = 3 }},
		{"width", "32 bytes, want at most 16", func(k *Kernel) { in := find(k, OpSt); in.Vec, in.Mem = 4, B64 }},
		{"space", "address is ptr, want i32", func(k *Kernel) { find(k, OpSt).Space = Shared }},
		{"guard", "takes no guard", func(k *Kernel) { find(k, OpShl).Guard = find(k, OpCmp).Results[0] }},
		{"branch", "yields and results do not match", func(k *Kernel) { find(k, OpIf).Else = nil }},
		{"another kernel's value", "is of another kernel", func(k *Kernel) { find(k, OpShl).Args[0] = NewBuilder(NewKernel("other", 32)).Special(TidX) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := NewKernel("k", 32)
			b := NewBuilder(k)
			p := b.Param(b.AddParam(Param{Name: "p", Type: Ptr}))
			x := b.LdGlobal(F32, 1, p, Access{})[0]
			n := b.Shl(b.Special(TidX), b.Const32(2))
			out := b.For(b.Const32(0), n, b.Const32(1), []*Value{x, n}, func(i *Value, c []*Value) []*Value {
				return []*Value{b.Add(c[0], c[0]), b.Add(c[1], i)}
			})
			y := b.If(b.Cmp(LT, out[1], n), func() []*Value { return []*Value{x} }, func() []*Value { return []*Value{out[0]} })
			b.StGlobal(p, y, Access{})
			require.NoError(t, Verify(k))
			c.do(k)
			require.ErrorContains(t, Verify(k), c.want)
		})
	}
}

func TestBuilderPanics(t *testing.T) {
	k := NewKernel("k", 32)
	b := NewBuilder(k)
	x, y := b.Special(TidX), b.ConstF32(1)
	require.PanicsWithValue(t, "simt: add of i32: operand 1 is f32", func() { b.Add(x, y) })
	require.PanicsWithValue(t, "simt: st: global address is i32, want ptr", func() { b.StGlobal(x, []*Value{x}, Access{}) })
	require.PanicsWithValue(t, "simt: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 with 1, 2, 4 registers: want 4, 2, 4", func() {
		b.Mma(MmaM16N8K16F16, []*Value{x}, []*Value{x, x}, []*Value{y, y, y, y})
	})
}

// TestKnownBits checks foldings that rest on bits known to be zero.
func TestKnownBits(t *testing.T) {
	k := NewKernel("k", 64)
	b := NewBuilder(k)
	c := b.Const32
	tid, lane := b.Special(TidX), b.Special(LaneID)
	require.Same(t, tid, b.And(tid, c(63)), "64 threads")
	require.True(t, b.ShrU(tid, c(6)).IsInt(0))
	require.Same(t, b.Add(lane, c(32)), b.Xor(lane, c(32)), "nothing to flip")
	row := b.ShrU(lane, c(2))
	require.Same(t, b.And(b.ShrU(row, c(1)), c(3)), b.And(b.ShrU(b.Add(row, c(24)), c(1)), c(3)), "a row of a swizzle's period")
	at := b.Add(b.SharedBase(), b.Xor(b.Shl(lane, c(4)), c(1024|48)))
	require.Equal(t, OpAdd, at.Def.Op)
	require.True(t, at.Def.Args[1].IsInt(1024), "%s", k)
	wide := b.Zext(b.Add(b.Shl(lane, c(2)), c(100)), I64)
	require.Same(t, b.Add(b.Zext(b.Shl(lane, c(2)), I64), b.Const64(100)), wide)
	require.NoError(t, Verify(k))
}
