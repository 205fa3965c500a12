package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// A tile program's accesses happen one after the other; a block's threads do them each
// at its own pace. Between two accesses of the same memory, one of them a write, the
// threads must therefore meet, unless the same thread does both. This file finds where.
//
// Views of different parameters are taken not to overlap where one is written.

// unordered is what the block's threads may be doing still: accesses since they last met.
type unordered struct {
	shared bool // of shared memory, by reads and writes that no copy does
	global []earlier
}

// earlier is an access of global memory that was made before.
type earlier struct {
	o    *ir.Op
	loop *ir.Op // in an earlier iteration of this loop; nil: in this one
}

func accessesGlobal(o *ir.Op) bool {
	return o.Code.Info().Effect&(ir.ReadsGlobal|ir.WritesGlobal) != 0 && o.Code != ir.OpAwait && o.Code != ir.OpSignal
}

func writesGlobal(o *ir.Op) bool { return o.Code.Info().Effect&ir.WritesGlobal != 0 }

// orderGlobal makes the threads meet before o if it must come after what some may not
// have done yet.
func (l *lowering) orderGlobal(o *ir.Op) {
	if slices.ContainsFunc(l.pending.global, func(e earlier) bool { return l.conflict(e, o) }) {
		l.barrier()
	}
	l.pending.global = append(l.pending.global, earlier{o: o})
}

// enterLoop adds to what is unordered what an iteration leaves to the next. What must
// come after something before the loop meets it there, once.
func (l *lowering) enterLoop(o *ir.Op) {
	inside := globalAccesses(o.Regions[0], nil)
	for _, in := range inside {
		if slices.ContainsFunc(l.pending.global, func(e earlier) bool { return l.conflict(e, in) }) {
			l.barrier()
		}
	}
	for _, in := range inside {
		l.pending.global = append(l.pending.global, earlier{in, o})
	}
	l.pending.shared = l.pending.shared || l.leaves(o.Regions[0], l.pending.shared)
}

// globalAccesses appends the accesses of global memory in a region to list.
func globalAccesses(r *ir.Region, list []*ir.Op) []*ir.Op {
	for _, o := range r.Ops {
		if accessesGlobal(o) {
			list = append(list, o)
		}
		for _, in := range o.Regions {
			list = globalAccesses(in, list)
		}
	}
	return list
}

// or is what may be unordered where two paths join.
func (u unordered) or(v unordered) unordered {
	return unordered{u.shared || v.shared, append(slices.Clone(u.global), v.global...)}
}

// conflict tells whether o must not overtake e.
func (l *lowering) conflict(e earlier, o *ir.Op) bool {
	if !writesGlobal(e.o) && !writesGlobal(o) {
		return false
	}
	p, _ := root(e.o.View())
	q, _ := root(o.View())
	switch {
	case p != q:
		return false
	case e.o.Code == ir.OpAtomic && o.Code == ir.OpAtomic:
		return false
	case e.loop != nil && l.movesOn(e.o, o, e.loop):
		return false
	}
	return !l.sameThreads(e.o, o, e.loop)
}

// movesOn tells whether b, in an iteration of the loop after a's, accesses elements
// that a did not: in some dimension both count with the loop's index by no less than
// they span.
func (l *lowering) movesOn(a, b *ir.Op, loop *ir.Op) bool {
	k, step := loop.Regions[0].Params[0], loop.Args[2]
	if !isConst(step) || a.View() != b.View() || definedIn(loop.Regions[0], a.View()) {
		return false
	}
	for d, i := range a.Indices() {
		x, okX := affineOf(i)
		y, okY := affineOf(b.Indices()[d])
		if !okX || !okY || !i.Type.IsScalar() || !x.equal(y) {
			continue
		}
		by := x.factor(k) * step.Def.Int
		if !outside(x.without(k), loop.Regions[0]) {
			continue
		}
		if n := int64(max(spanOf(a, d), spanOf(b, d))); by >= n || by <= -n {
			return true
		}
	}
	return false
}

// spanOf is how many elements of dimension d an access's tile covers.
func spanOf(o *ir.Op, d int) int {
	shape := accessType(o).Shape
	if i := slices.Index(o.Dims, d); i >= 0 {
		return shape[len(shape)-len(o.Dims)+i]
	}
	return 1
}

// accessType is the type of the tile that an operation reads or writes.
func accessType(o *ir.Op) ir.Type {
	switch o.Code {
	case ir.OpLoad:
		return o.Result().Type
	case ir.OpCopy:
		t := o.Operand("ring").Type
		return ir.TileOf(t.Elem, t.Shape...)
	}
	return o.Operand("value").Type
}

// sameThreads tells whether a and b access the same elements, each by one and the same
// thread. In different iterations of a loop their place must not depend on it.
func (l *lowering) sameThreads(a, b *ir.Op, loop *ir.Op) bool {
	x, y := accessType(a), accessType(b)
	if a.Code == ir.OpCopy || b.Code == ir.OpCopy || !x.IsTile() || a.View() != b.View() || !slices.Equal(a.Dims, b.Dims) ||
		x.Layout == nil || y.Layout == nil || !x.Layout.Equal(y.Layout) || x.Layout.Replicas() > 1 {
		return false
	}
	if loop != nil && definedIn(loop.Regions[0], a.View()) {
		return false
	}
	for d, i := range a.Indices() {
		p, okP := affineOf(i)
		q, okQ := affineOf(b.Indices()[d])
		if !okP || !okQ || !i.Type.IsScalar() || !p.equal(q) || loop != nil && !outside(p, loop.Regions[0]) {
			return false
		}
	}
	return true
}

// definedIn tells whether a region or one inside it computes v.
func definedIn(r *ir.Region, v *ir.Value) bool {
	if slices.Contains(r.Params, v) {
		return true
	}
	for _, o := range r.Ops {
		if slices.Contains(o.Results, v) {
			return true
		}
		for _, in := range o.Regions {
			if definedIn(in, v) {
				return true
			}
		}
	}
	return false
}

// leaves tells whether shared memory is being accessed at a region's end, unordered,
// when it was or was not at its start.
func (l *lowering) leaves(r *ir.Region, busy bool) bool {
	for _, o := range r.Ops {
		switch o.Code {
		case ir.OpWait:
			busy = busy && !l.copiedHere(o.Operands("rings"))
		case ir.OpBarrier, ir.OpAwait, ir.OpSignal, ir.OpAcquire, ir.OpRing:
			busy = false
		case ir.OpRelease, ir.OpWrite, ir.OpRead:
			busy = true
		case ir.OpConvert, ir.OpReshape, ir.OpReduce, ir.OpScan, ir.OpAtomic:
			busy = busy || l.plan.buffers[o] != nil
		case ir.OpDot:
			busy = busy || slices.ContainsFunc(o.Args[:2], isRead)
		case ir.OpCopy:
			busy = busy || !l.asynchronous(o)
		case ir.OpFor:
			busy = busy || l.leaves(o.Regions[0], busy)
		case ir.OpIf:
			busy = l.leaves(o.Regions[0], busy) || l.leaves(o.Regions[1], busy)
		}
	}
	return busy
}

// isRead tells whether a tile is read of a ring, perhaps transposed.
func isRead(v *ir.Value) bool {
	o := v.Def
	return o != nil && (o.Code == ir.OpRead || o.Code == ir.OpTranspose && isRead(o.Args[0]))
}

// asynchronous tells whether a copy is done without registers.
func (l *lowering) asynchronous(o *ir.Op) bool {
	if o.Operand("ring").Type.Shared != nil {
		return true
	}
	if l.m.sm < 80 || o.Operand("mask") != nil || o.Operand("fill") != nil {
		return false
	}
	_, bytes := l.f.copyLayout(o, o.Operand("ring").Type, l.warps)
	return bytes >= 4
}

// copiedHere tells whether the threads themselves copy to one of the rings, no tensor map and
// no other role: a wait for them is a barrier.
func (l *lowering) copiedHere(rings []*ir.Value) bool {
	return slices.ContainsFunc(rings, func(r *ir.Value) bool { return !l.plan.signals(r) })
}

// barrier makes all warps meet.
func (l *lowering) barrier() {
	l.written = l.written || l.pending.shared
	switch {
	case l.inRole(mainRole) && l.s.Pingpong:
		l.b.Bar(l.b.Add(l.turns.group, l.b.Const32(teamBarrier)), 32*l.warps)
	case l.inRole(mainRole):
		l.b.Bar(l.b.Const32(mainBarrier), 32*l.warps)
	default:
		l.b.Bar(l.b.Const32(0), 0)
	}
	l.pending = unordered{}
}

// meet makes all warps meet if shared memory is being accessed.
func (l *lowering) meet() {
	if l.pending.shared {
		l.barrier()
	}
}
