package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// Copies by tensor maps. Each buffer of such a ring, or of the first of the rings that
// are filled together, has an mbarrier: its phase ends when the bytes of all of them have
// come.

const mbarBytes = 8

// mbarOf is the key of a ring's mbarriers in the plan of shared memory.
type mbarOf struct{ ring *ir.Value }

// tensorStart makes the mbarriers of all rings when the first ring is made. Before any is
// made, what threads wrote where it lies must be over for copies by tensor maps too.
func (l *lowering) tensorStart() {
	if l.mbarsMade && !l.written && !l.pending.shared {
		return
	}
	b := l.b
	rings := l.plan.signalled
	if l.mbarsMade {
		rings = nil
	}
	l.mbarsMade = true
	l.under(l.firstThread(), func() {
		for _, r := range rings {
			for k := range r.Type.Depth {
				at := l.plan.buffers[mbarOf{r}].offset + k*mbarBytes
				h := l.plan.handed[r]
				b.MbarInit(b.Add(b.SharedBase(), b.Const32(at)), max(1, h.full))
				if warps := h.free; warps > 0 {
					if l.cluster.rings[r] {
						warps *= l.cluster.blocks
					}
					b.MbarInit(b.Add(b.SharedBase(), b.Const32(at+r.Type.Depth*mbarBytes)), warps)
				}
			}
		}
	})
	b.ProxyFence()
	l.together()
	l.written = false
}

// firstThread is true in one thread of the block.
func (l *lowering) firstThread() *simt.Value {
	b := l.b
	lane := b.Cmp(simt.EQ, b.And(l.tid(), b.Const32(31)), b.Const32(0))
	return b.And(b.Cmp(simt.EQ, b.ShrU(l.tid(), b.Const32(layout.LaneBits)), b.Const32(0)), lane)
}

// mbarrier is the address of the mbarrier of index k of a ring.
func (l *lowering) mbarrier(ring, k *ir.Value) *simt.Value {
	b := l.b
	buf := l.plan.buffers[mbarOf{ring}]
	base := b.Add(b.SharedBase(), b.Const32(buf.offset))
	if ring.Type.Depth == 1 {
		return base
	}
	return b.Add(base, b.Mul(l.modulo(k, ring.Type.Depth), b.Const32(mbarBytes)))
}

// tensorCommit starts the copies that a commit closes: one thread says how many bytes
// will come, and asks for them; in the role that copies it has waited for the buffers.
func (l *lowering) tensorCommit(o *ir.Op) {
	ring := l.plan.signalledOf(o.Args)
	slot := o.Operand("slot")
	b := l.b
	bytes := 0
	copies, acquired := l.copies, l.acquired
	l.copies, l.acquired = nil, nil
	for _, c := range copies {
		t := c.Operand("ring").Type
		bytes += t.Elements() * bytesOf(t.Elem)
		if c.Operand("pred") != copies[0].Operand("pred") {
			panic(unsupported(c, "copies of one group under different predicates"))
		}
	}
	if len(copies) == 0 {
		return
	}
	mbar := l.mbarrier(ring, slot)
	start := func() {
		b.MbarExpect(mbar, bytes)
		for _, c := range copies {
			l.tensorCopy(c, mbar)
		}
	}
	var p *simt.Value
	if q := copies[0].Operand("pred"); q != nil {
		p = l.scalar(q)
	}
	if !l.inRole(copyRole) {
		l.under(l.both(l.firstThread(), p), start)
		return
	}
	// Of an elected thread ptxas knows that it is alone: behind a branch, which the wait
	// keeps it from making predicates of, it has what such a thread asks for in uniform
	// registers. Where not, it makes a loop over threads of each instruction.
	b.If(b.Elect(), func() []*simt.Value {
		if acquired != nil {
			l.awaitFree(acquired)
		}
		l.under(p, start)
		return nil
	}, nil)
}

// tensorCopy asks for the boxes of a copy, one for each atom of its rows; where the
// blocks of a cluster divide it, for those of the block's part.
func (l *lowering) tensorCopy(o *ir.Op, mbar *simt.Value) {
	b := l.b
	ring := l.plan.buffers[o.Operand("ring")]
	s := ring.shared
	a := accessOf(o, s.Shape())
	p, divided := l.cluster.partOf(o, s)
	m := l.tensorMap(o, a, s, p.rows)
	inner := a.axisDim(s.Order()[0])
	to := l.slotAddress(ring, o.Operand("slot"))
	tensor := l.mapAt(m, o.View().Name+"_map")
	firstRow, firstColumn := b.Const32(0), b.Const32(0)
	blocks := 0
	if divided {
		blocks = 1<<l.cluster.blocks - 1
		rank := b.Special(simt.ClusterCtaRank)
		if p.rows < s.Rows() {
			firstRow = b.Mul(rank, b.Const32(p.rows))
			to = b.Add(to, b.Mul(rank, b.Const32(p.rows*s.RowPitch())))
		} else {
			firstColumn = b.Mul(rank, b.Const32(p.atoms*s.Atom()))
			to = b.Add(to, b.Mul(rank, b.Const32(p.atoms*s.AtomStride())))
		}
	}
	outer, policy := a.axisDim(s.Order()[1]), l.policyOf(o)
	for i := range p.atoms {
		var at []*simt.Value
		for _, d := range mapOrder(len(a.indices), inner) {
			x := l.scalar(a.indices[d])
			switch d {
			case inner:
				x = b.Add(x, b.Add(firstColumn, b.Const32(i*s.Atom())))
			case outer:
				x = b.Add(x, firstRow)
			}
			at = append(at, x)
		}
		b.TensorLoad(b.Add(to, b.Const32(i*s.AtomStride())), tensor, mbar, at, blocks, policy)
	}
}

// MapOrder is the order of a view's dims dimensions in the tensor map that the parameter
// is.
func (p Param) MapOrder(dims int) []int { return mapOrder(dims, p.Dim) }

// mapOrder is the order of a view's dimensions in a tensor map: the contiguous one, then
// the others from the last.
func mapOrder(dims, inner int) []int {
	order := []int{inner}
	for d := dims - 1; d >= 0; d-- {
		if d != inner {
			order = append(order, d)
		}
	}
	return order
}

// tensorMap describes the parameter that the tensor map of copies of so many rows, which
// lie so, is.
func (l *lowering) tensorMap(o *ir.Op, a access, s *layout.Shared, rows int) Param {
	p := Param{Kind: ParamTensorMap, Arg: slices.Index(l.k.Params, o.View()), Elem: o.View().Type.Elem, Dim: a.axisDim(s.Order()[0]), Swizzle: s.Swizzle()}
	for i, d := range mapOrder(len(a.indices), p.Dim) {
		p.Box[i] = 1
		for axis, n := range a.shape {
			if a.axisDim(axis) == d {
				p.Box[i] = min(n, rows)
			}
		}
	}
	p.Box[0] = s.Atom()
	return p
}

// tensorWait waits for the bytes of index k of a ring.
func (l *lowering) tensorWait(ring, k *ir.Value) {
	l.b.MbarWait(l.mbarrier(ring, k), l.phase(k, ring.Type.Depth))
}

// phase is the parity of the phase in which index k of a ring is filled.
func (l *lowering) phase(k *ir.Value, depth int) *simt.Value {
	b := l.b
	c, n, ok := l.counterOf(k, depth)
	if !ok || c.phase == nil {
		return b.And(b.DivU(l.scalar(k), b.Const32(depth)), b.Const32(1))
	}
	phase := c.phase
	ahead := (n%depth + depth) % depth
	if (n-ahead)/depth%2 != 0 {
		phase = b.Xor(phase, b.Const32(1))
	}
	if ahead > 0 {
		wraps := b.Cmp(simt.GE, c.remainder, b.Const32(depth-ahead))
		phase = b.Xor(phase, b.Select(wraps, b.Const32(1), b.Const32(0)))
	}
	return phase
}
