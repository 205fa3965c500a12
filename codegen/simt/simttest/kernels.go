// Package simttest holds kernels in thread IR, built by hand, that the tests
// of the printers and passes share.
package simttest

import "github.com/kgen-dev/kgen/codegen/simt"

// Modules are the sample kernels, a module each.
func Modules() []*simt.Module {
	return []*simt.Module{
		{Arch: "sm_80", SM: 80, Kernels: []*simt.Kernel{Saxpy()}},
		{Arch: "sm_75", SM: 75, Kernels: []*simt.Kernel{Transpose()}},
		{Arch: "sm_80", SM: 80, Kernels: []*simt.Kernel{WarpMMA()}},
		{Arch: "sm_80", SM: 80, Kernels: []*simt.Kernel{DoubleBuffer()}},
	}
}

// Saxpy is y[i] = a*x[i] + y[i], an element a thread.
func Saxpy() *simt.Kernel {
	k := simt.NewKernel("saxpy", 256)
	b := simt.NewBuilder(k)
	n := b.Param(b.AddParam(simt.Param{Name: "n", Type: simt.I32}))
	a := b.Param(b.AddParam(simt.Param{Name: "a", Type: simt.F32}))
	xs := b.Param(b.AddParam(simt.Param{Name: "x", Type: simt.Ptr, Elem: simt.F32, Align: 4, Const: true}))
	ys := b.Param(b.AddParam(simt.Param{Name: "y", Type: simt.Ptr, Elem: simt.F32, Align: 4}))
	b.Note("this thread's element")
	i := b.Mad(b.Special(simt.CtaX), b.Const32(256), b.Special(simt.TidX)).Named("i")
	inside := b.Cmp(simt.LT, i, n)
	b.Guarded(inside, func() {
		x := b.LdGlobal(simt.F32, 1, b.MadWide(i, b.Const32(4), xs), simt.Access{Cache: simt.CacheNC})
		at := b.MadWide(i, b.Const32(4), ys).Named("at")
		y := b.LdGlobal(simt.F32, 1, at, simt.Access{})
		b.Note("a*x + y")
		b.StGlobal(at, []*simt.Value{b.Fma(a, x[0], y[0])}, simt.Access{})
	})
	return k
}

// Transpose is out[j][i] = in[i][j] of f32 by 32x32 tiles through padded
// shared memory, 32x8 threads a tile.
func Transpose() *simt.Kernel {
	k := simt.NewKernel("transpose", 256)
	k.Shared = 32 * 33 * 4
	b := simt.NewBuilder(k)
	in := b.Param(b.AddParam(simt.Param{Name: "in", Type: simt.Ptr, Elem: simt.F32, Const: true}))
	out := b.Param(b.AddParam(simt.Param{Name: "out", Type: simt.Ptr, Elem: simt.F32}))
	rows := b.Param(b.AddParam(simt.Param{Name: "rows", Type: simt.I32}))
	cols := b.Param(b.AddParam(simt.Param{Name: "cols", Type: simt.I32}))
	tid := b.Special(simt.TidX)
	tx := b.And(tid, b.Const32(31)).Named("tx")
	ty := b.ShrU(tid, b.Const32(5)).Named("ty")
	four := b.Const32(4)
	tile := func(height, width *simt.Value, ci, cj *simt.Value, f func(i, j, row, at *simt.Value)) {
		for r := 0; r < 32; r += 8 {
			row := b.Add(ty, b.Const32(r))
			i := b.Add(b.Shl(ci, b.Const32(5)), row)
			j := b.Add(b.Shl(cj, b.Const32(5)), tx)
			inside := b.And(b.Cmp(simt.LT, i, height), b.Cmp(simt.LT, j, width))
			at := b.MadWide(b.Mad(i, width, j), four, b.Const64(0))
			b.Guarded(inside, func() { f(i, j, row, at) })
		}
	}
	b.Note("read rows")
	tile(rows, cols, b.Special(simt.CtaY), b.Special(simt.CtaX), func(_, _, row, at *simt.Value) {
		x := b.LdGlobal(simt.F32, 1, b.Add(in, at), simt.Access{Cache: simt.CacheNC, Sectors: 4})
		b.StShared(b.Add(b.SharedBase(), b.Mad(b.Mad(row, b.Const32(33), tx), four, b.Const32(0))), x, simt.Access{Waves: 1})
	})
	b.Bar(b.Const32(0), 0)
	b.Note("write columns")
	tile(cols, rows, b.Special(simt.CtaX), b.Special(simt.CtaY), func(_, _, row, at *simt.Value) {
		x := b.LdShared(simt.F32, 1, b.Add(b.SharedBase(), b.Mul(b.Mad(tx, b.Const32(33), row), four)), simt.Access{Waves: 1})
		b.StGlobal(b.Add(out, at), x, simt.Access{Sectors: 4})
	})
	return k
}

// WarpMMA is c = a*b of one 16x8x16 tile in one warp: a row-major and b
// column-major f16, c row-major f32.
func WarpMMA() *simt.Kernel {
	k := simt.NewKernel("warp_mma", 32)
	b := simt.NewBuilder(k)
	pa := b.Param(b.AddParam(simt.Param{Name: "a", Type: simt.Ptr, Elem: simt.F16, Align: 16, Const: true}))
	pb := b.Param(b.AddParam(simt.Param{Name: "b", Type: simt.Ptr, Elem: simt.F16, Align: 16, Const: true}))
	pc := b.Param(b.AddParam(simt.Param{Name: "c", Type: simt.Ptr, Elem: simt.F32, Align: 16}))
	lane := b.Special(simt.LaneID)
	g := b.ShrU(lane, b.Const32(2)).Named("g")
	t := b.And(lane, b.Const32(3)).Named("t")
	frag := b.Add(b.Shl(g, b.Const32(5)), b.Shl(t, b.Const32(2))).Named("frag")
	load := func(p *simt.Value, off int) *simt.Value {
		return b.LdGlobal(simt.F16x2, 1, b.Add(p, b.Zext(frag, simt.I64)), simt.Access{Offset: off, Cache: simt.CacheNC})[0]
	}
	a := []*simt.Value{load(pa, 0), load(pa, 256), load(pa, 16), load(pa, 272)}
	bb := []*simt.Value{load(pb, 0), load(pb, 16)}
	zero := b.ConstF32(0)
	d := b.Mma(simt.MmaM16N8K16F16, a, bb, []*simt.Value{zero, zero, zero, zero})
	simt.NameGroup("d", d)
	row := b.Add(pc, b.Zext(b.Add(b.Shl(g, b.Const32(5)), b.Shl(t, b.Const32(3))), simt.I64))
	b.StGlobal(row, d[:2], simt.Access{})
	b.StGlobal(row, d[2:], simt.Access{Offset: 256})
	return k
}

// DoubleBuffer is c = a*b, 64x64 of f16 by a warp of one CTA: 64x32 tiles of a
// and of b (column-major) come by cp.async into two stages of shared memory,
// one is multiplied while the other fills.
func DoubleBuffer() *simt.Kernel {
	const stage = 2 * 64 * 64 // bytes: 64 rows of 32 halves, of a and of b
	k := simt.NewKernel("double_buffer", 32)
	k.Shared, k.SharedAlign, k.Dynamic = 2*stage, 128, true
	b := simt.NewBuilder(k)
	pa := b.Param(b.AddParam(simt.Param{Name: "a", Type: simt.Ptr, Elem: simt.F16, Align: 16, Const: true}))
	pb := b.Param(b.AddParam(simt.Param{Name: "b", Type: simt.Ptr, Elem: simt.F16, Align: 16, Const: true}))
	pc := b.Param(b.AddParam(simt.Param{Name: "c", Type: simt.Ptr, Elem: simt.F32, Align: 16}))
	depth := b.Param(b.AddParam(simt.Param{Name: "k", Type: simt.I32}))
	lane := b.Special(simt.LaneID)
	c32 := b.Const32
	// A row of a stage is four chunks of 16 bytes; chunk c of row r stands at c ^ (r/2)%4.
	swizzled := func(row, chunk *simt.Value) *simt.Value {
		x := b.Xor(chunk, b.And(b.ShrU(row, c32(1)), c32(3)))
		return b.Add(b.Shl(row, c32(6)), b.Shl(x, c32(4)))
	}
	copyRow, copyChunk := b.ShrU(lane, c32(2)), b.And(lane, c32(3))
	rowBytes := b.Shl(b.Sext(depth, simt.I64), c32(1)).Named("pitch")
	fill := func(slot, at *simt.Value, left *simt.Value) {
		b.Guarded(b.Cmp(simt.GT, left, c32(0)), func() {
			for i := range 8 {
				row := b.Add(copyRow, c32(8*i))
				to := b.Add(b.Add(b.SharedBase(), slot), swizzled(row, copyChunk))
				from := b.Mul(b.Sext(row, simt.I64), rowBytes)
				for j, p := range []*simt.Value{pa, pb} {
					b.CpAsync(to, b.Add(b.Add(p, from), b.Add(at, b.Sext(b.Shl(copyChunk, c32(4)), simt.I64))), 16, j*stage/2, nil,
						simt.Access{Cache: simt.CacheCG, Waves: 4})
				}
			}
		})
		b.CpAsyncCommit()
	}
	b.Note("first stage")
	fill(c32(0), b.Const64(0), depth)
	zero := b.ConstF32(0)
	init := make([]*simt.Value, 4*4*8)
	for i := range init {
		init[i] = zero
	}
	carried := append([]*simt.Value{c32(0), b.Const64(0)}, init...)
	out := b.For(c32(0), depth, c32(32), carried, func(i *simt.Value, c []*simt.Value) []*simt.Value {
		i.Named("kk")
		c[0].Named("slot")
		c[1].Named("at")
		acc := c[2:]
		simt.NameGroup("acc", acc)
		next := b.Xor(c[0], c32(stage))
		at := b.Add(c[1], b.Const64(64))
		b.Note("fill the other stage")
		fill(next, at, b.Sub(b.Sub(depth, i), c32(32)))
		b.CpAsyncWait(1)
		b.WarpSync()
		b.Note("multiply this one")
		base := b.Add(b.SharedBase(), c[0])
		acc = multiply(b, base, lane, acc, stage/2, swizzled)
		b.WarpSync()
		return append([]*simt.Value{next, at}, acc...)
	})
	b.Note("store")
	g, t := b.ShrU(lane, c32(2)), b.And(lane, c32(3))
	row := b.Add(pc, b.Zext(b.Add(b.Shl(g, c32(8)), b.Shl(t, c32(3))), simt.I64))
	for m := range 4 {
		for n := range 8 {
			d := out[2+(m*8+n)*4:]
			b.StGlobal(row, d[0:2], simt.Access{Offset: m*16*256 + n*32})
			b.StGlobal(row, d[2:4], simt.Access{Offset: (m*16+8)*256 + n*32})
		}
	}
	return k
}

// multiply adds a 64x64x32 product, read by ldmatrix.
func multiply(b *simt.Builder, base, lane *simt.Value, acc []*simt.Value, bOffset int, swizzled func(row, chunk *simt.Value) *simt.Value) []*simt.Value {
	c32 := b.Const32
	acc = append([]*simt.Value(nil), acc...)
	row := b.And(lane, c32(15))
	half := b.ShrU(lane, c32(4))
	// b's four matrices in the order that gives an mma its two in adjacent registers.
	rowB := b.Or(b.And(lane, c32(7)), b.Shl(b.ShrU(lane, c32(4)), c32(3)))
	halfB := b.And(b.ShrU(lane, c32(3)), c32(1))
	for kk := range 2 {
		var as [4][]*simt.Value
		for m := range 4 {
			at := b.Add(base, swizzled(b.Add(row, c32(16*m)), b.Add(half, c32(2*kk))))
			as[m] = b.LdMatrix(simt.I32, 4, false, at, simt.Access{Waves: 4})
		}
		for n := range 4 {
			at := b.Add(base, swizzled(b.Add(rowB, c32(16*n)), b.Add(halfB, c32(2*kk))))
			bs := b.LdMatrix(simt.I32, 4, false, at, simt.Access{Offset: bOffset, Waves: 4})
			for m := range 4 {
				for h := range 2 {
					at := (m*8 + 2*n + h) * 4
					d := b.Mma(simt.MmaM16N8K16F16, as[m], bs[2*h:2*h+2], acc[at:at+4])
					copy(acc[at:], d)
				}
			}
		}
	}
	return acc
}
