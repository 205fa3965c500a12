package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// writeTransposed moves a buffer of bytes, transposed, into one of another ring.
func (l *lowering) writeTransposed(o *ir.Op, r *ringRead) {
	b := l.b
	ring := l.plan.buffers[o.Args[0]]
	interleaved := ring.shared.IsInterleaved()
	plan := transposePlan(r.ring.shared.Shape(), interleaved)
	from, ok := r.ring.shared.Basis(plan.from)
	to, ok2 := ring.shared.Basis(plan.to)
	if !ok || !ok2 {
		panic(unsupported(o, "shared layouts %s and %s", r.ring.shared, ring.shared))
	}
	source := l.threadPlace(r.slot, from.Thread)
	target := l.threadPlace(l.slotAddress(ring, o.Args[1]), to.Thread)
	at := registersAt(plan.to)
	upper := b.Cmp(simt.NE, b.And(l.tid(), b.Const32(16)), b.Const32(0))
	const even, odd = 0x6420, 0x7531 // bytes of two words: those of columns 2g, and of 2g+1
	first := b.Select(upper, b.Const32(odd), b.Const32(even))
	second := b.Select(upper, b.Const32(even), b.Const32(odd))
	if !interleaved { // half of the lanes have the later rows of their words first
		const exchanged = 0x4444
		late := b.Select(b.Cmp(simt.NE, b.And(l.tid(), b.Const32(2)), b.Const32(0)), b.Const32(exchanged), b.Const32(0))
		first, second = b.Xor(first, late), b.Xor(second, late)
	}
	read := func(i int) []*simt.Value {
		addr, off := source.at(from.Registers[i])
		return b.LdMatrix(simt.I32, 4, true, addr, simt.Access{Offset: off, Waves: 4})
	}
	write := func(i int, x []*simt.Value) {
		var y []*simt.Value
		for j := 0; j < len(x); j += 2 {
			y = append(y, b.Prmt(x[j], x[j+1], first), b.Prmt(x[j], x[j+1], second))
		}
		c := plan.from.Register(i)
		addr, off := target.at(to.Registers[at[layout.Pack([]int{c.At(1), c.At(0)})]])
		b.StMatrix(false, addr, y, simt.Access{Offset: off, Waves: 4})
	}
	var under [][]*simt.Value
	parts := plan.from.Registers() / partBytes
	for i := range parts {
		if under = append(under, read(i*partBytes)); len(under) < readTogether && i+1 < parts {
			continue
		}
		for j, x := range under {
			write((i+1-len(under)+j)*partBytes, x)
		}
		under = nil
	}
	l.pending.shared = true
}

const (
	// partBytes is how many bytes of a row a lane addresses.
	partBytes = 16
	// readTogether is how many parts a warp reads before it writes the first, so that it
	// waits for shared memory once: as many as its registers hold.
	readTogether = 4
)

// handOver tells that a buffer which the role's threads wrote is full: to what reads it by
// descriptors. The fence also orders what they have read in the ordinary way before the copy
// that fills that buffer again, so the role gives it back after this.
func (l *lowering) handOver(o *ir.Op) {
	b := l.b
	b.ProxyFence()
	b.WarpSync()
	at := l.mbarrier(l.plan.signalledOf(o.Args), o.Operand("slot"))
	l.under(b.Cmp(simt.EQ, b.And(l.tid(), b.Const32(31)), b.Const32(0)), func() { b.MbarArrive(at) })
}
