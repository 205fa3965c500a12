package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// mainBarrier is the barrier of the main role's warps; all threads meet at 0.
const mainBarrier = 1

// roles gives the first warps to the main role and one more to the copies.
func (l *lowering) roles(o *ir.Op) {
	b := l.b
	l.s.Threads = 32 * (l.warps + 1)
	run := func(role int) func() []*simt.Value {
		return func() []*simt.Value {
			l.role = &role
			l.region(o.Regions[role])
			l.role = nil
			return nil
		}
	}
	isMain := b.Cmp(simt.LT, b.ShrU(l.tid(), b.Const32(layout.LaneBits)), b.Const32(l.warps))
	b.If(isMain, run(mainRole), run(copyRole))
}

// ringsAcquired are the rings that a role's own operations fill.
func ringsAcquired(r *ir.Region) []*ir.Value {
	var rings []*ir.Value
	for _, o := range r.Ops {
		if o.Code == ir.OpAcquire {
			rings = append(rings, o.Operands("rings")...)
		}
		for _, in := range o.Regions {
			rings = append(rings, ringsAcquired(in)...)
		}
	}
	return rings
}

// inRole tells whether a role's operations are being lowered.
func (l *lowering) inRole(role int) bool { return l.role != nil && *l.role == role }

// acquire waits until a buffer is free: in the role that copies until all warps of the
// main role have given it back, else until all warps have met.
func (l *lowering) acquire(o *ir.Op) {
	if !l.inRole(copyRole) {
		l.meet()
		return
	}
	r, k := tensorRing(o.Args), o.Operand("slot")
	free := l.b.Xor(l.phase(k, r.Type.Depth), l.b.Const32(1))
	l.b.MbarWait(l.freed(r, k), free)
}

// release gives a buffer back: each warp of the main role says so for itself.
func (l *lowering) release(o *ir.Op) {
	r := tensorRing(o.Args)
	if r == nil || !l.plan.handed[r] {
		l.pending.shared = true
		return
	}
	b := l.b
	l.pending.shared = true
	if l.late {
		b.WgmmaWait(1, nil, nil)
	}
	at := l.freed(r, o.Operand("slot"))
	b.WarpSync()
	l.under(b.Cmp(simt.EQ, b.And(l.tid(), b.Const32(31)), b.Const32(0)), func() { b.MbarArrive(at) })
}

// freed is the address of the mbarrier at which index k of a ring is given back.
func (l *lowering) freed(ring, k *ir.Value) *simt.Value {
	return l.b.Add(l.mbarrier(ring, k), l.b.Const32(ring.Type.Depth*mbarBytes))
}
