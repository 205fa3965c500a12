package vm

import (
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// copyOp is what a cp.async copies.
type copyOp struct {
	dst, src memOp // dst.size is the bytes written
	sizeSlot int32 // bytes to read, the rest is zero; -1: all
	ignore   int32 // predicate: read nothing; -1: none
	neg      uint32
}

// asyncCopies are a warp's cp.async operations that have not landed. Groups
// complete in the order they were committed, each for its own lanes.
type asyncCopies struct {
	open   []*inFlight
	groups []copyGroup
	free   []*inFlight
}

type copyGroup struct {
	lanes  uint32
	copies []*inFlight
}

// inFlight is one executed cp.async.
type inFlight struct {
	in    *inst
	fr    *frame
	lanes uint32  // that have not landed
	dst   lanes64 // offsets in shared memory
	src   lanes64 // addresses in global memory
	read  lanes32 // bytes to read
	moved bool    // the data are there already
	mark  asyncMark
}

func (a *asyncCopies) reset() {
	for _, c := range a.open {
		a.free = append(a.free, c)
	}
	for _, g := range a.groups {
		a.free = append(a.free, g.copies...)
	}
	a.open, a.groups = a.open[:0], a.groups[:0]
}

func (a *asyncCopies) new() *inFlight {
	if n := len(a.free); n > 0 {
		c := a.free[n-1]
		a.free = a.free[:n-1]
		return c
	}
	return new(inFlight)
}

func init() {
	decoders["cp"] = (*decoder).cp
}

func (d *decoder) cp() {
	if !d.has("async") {
		d.refuse("want .async")
	}
	switch {
	case d.has("bulk"):
		d.bulk()
	case d.has("commit_group"):
		d.operands(0, 0)
		in := d.new(kindMasked)
		in.fn[modeFull] = commitGroup
		d.emit(in)
	case d.has("wait_all"):
		d.operands(0, 0)
		in := d.new(kindMasked)
		in.fn[modeFull] = waitAll
		d.emit(in)
	case d.has("wait_group"):
		ops := d.operands(1, 1)
		in := d.new(kindMasked)
		in.imm = uint64(d.integer(&ops[0]))
		in.fn[modeFull] = waitGroup
		d.emit(in)
	case d.has("mbarrier"):
		d.asyncArrive()
	default:
		d.asyncCopy()
	}
}

func (d *decoder) asyncCopy() {
	d.cacheHints()
	if !d.has("shared") && !d.has("shared::cta") {
		d.refuse("want .shared")
	}
	if !d.has("global") {
		d.refuse("want .global")
	}
	d.cacheHints()
	policy := false
	for _, w := range d.words {
		policy = policy || w == "L2::cache_hint"
	}
	most := 4
	if policy {
		most = 5
	}
	ops := d.operands(3, most)
	in := d.new(kindMasked)
	op := &copyOp{sizeSlot: -1, ignore: -1}
	in.copy = op
	op.dst, op.src = *d.newMem(ptx.SpaceShared), *d.newMem(ptx.SpaceGlobal)
	d.memory(in, &op.dst, &ops[0])
	d.memory(in, &op.src, &ops[1])
	size := d.integer(&ops[2])
	if size != 4 && size != 8 && size != 16 {
		d.refuse("copies of %d bytes: want 4, 8 or 16", size)
	}
	op.dst.size, op.src.size = int(size), int(size)
	if len(ops) > 3 && !(policy && len(ops) == 4) {
		o := &ops[3]
		if o.Kind == ptx.OpReg && d.values[d.register(o)].k == classPred {
			op.neg = d.predicate(in, &op.ignore, o)
		} else {
			d.source(in, &op.sizeSlot, o, ptx.U32, exact)
		}
	}
	in.fn[modeFull] = asyncCopy
	in.rule = ruleAsyncCopy
	d.emit(in)
}

// asyncCopy issues copies from global to shared memory.
func asyncCopy(w *warp, in *inst) {
	op := in.copy
	a := &w.async
	c := a.new()
	c.in, c.fr, c.moved = in, w.fr, false
	w.addresses(&op.dst, &c.dst)
	w.addresses(&op.src, &c.src)
	size := op.dst.size
	good := w.sharedOffsets(in, &c.dst, size, "shared")
	saved := w.mask
	w.mask = good
	good = w.aligned(in, &c.src, size, "global")
	w.mask = saved
	var reads uint32
	for m := good; m != 0; m &= m - 1 {
		i := firstLane(m)
		n := uint32(size)
		if op.sizeSlot >= 0 {
			n = min(w.r[op.sizeSlot][i], n)
		}
		if op.ignore >= 0 && (w.p[op.ignore]^op.neg)>>i&1 != 0 {
			n = 0
		}
		if n > 0 {
			if al, _ := w.globalBytes(in, i, c.src[i], int(n), false); al == nil {
				n = 0
			} else {
				reads |= 1 << i
			}
		}
		c.read[i] = n
	}
	w.countShared(&op.dst, &c.dst, size, good, &w.b.counts.shared.Copies)
	w.count(&c.src, size, reads, &op.src, &w.b.counts.global.Copies)
	c.lanes = good
	w.markInFlight(c)
	if w.b.landsEarly() {
		w.move(c, good)
		c.moved = true
	}
	a.open = append(a.open, c)
}

// landsEarly decides when a copy's data appear: at once or at the wait.
func (b *block) landsEarly() bool {
	switch b.l.dev.opt.Async {
	case Early:
		return true
	case Random:
		return b.pick.below(2) == 0
	}
	return false
}

// move copies the data of some lanes.
func (w *warp) move(c *inFlight, lanes uint32) {
	size := c.in.copy.dst.size
	for m := lanes; m != 0; m &= m - 1 {
		i := firstLane(m)
		dst := w.b.shared[c.dst[i]:][:size]
		n := int(c.read[i])
		if n > 0 {
			if al, off := w.globalBytes(c.in, i, c.src[i], n, false); al != nil {
				w.b.readGlobal(dst[:n], al, off)
			}
		}
		clear(dst[n:])
	}
}

// land completes the copies of some lanes.
func (w *warp) land(c *inFlight, lanes uint32) {
	lanes &= c.lanes
	if lanes == 0 {
		return
	}
	if !c.moved {
		w.move(c, lanes)
	}
	c.lanes &^= lanes
	w.markLanded(c, lanes)
}

func commitGroup(w *warp, in *inst) { w.commit(w.mask) }

// commit closes the open copies of some lanes into a group.
func (w *warp) commit(lanes uint32) {
	a := &w.async
	g := copyGroup{lanes: lanes}
	if n := len(a.groups); n < cap(a.groups) {
		g.copies = a.groups[:n+1][n].copies[:0]
	}
	kept := a.open[:0]
	for _, c := range a.open {
		switch {
		case c.lanes&^lanes == 0:
			g.copies = append(g.copies, c)
		case c.lanes&lanes == 0:
			kept = append(kept, c)
		default: // part of the lanes commit
			part := a.new()
			*part = *c
			part.lanes &= lanes
			c.lanes &^= lanes
			g.copies = append(g.copies, part)
			kept = append(kept, c)
		}
	}
	a.open = kept
	a.groups = append(a.groups, g)
}

func waitGroup(w *warp, in *inst) { w.waitGroups(w.mask, int(in.imm)) }

func waitAll(w *warp, in *inst) {
	w.commit(w.mask)
	w.waitGroups(w.mask, 0)
}

// waitGroups lets all but the n latest groups of each of the lanes land.
func (w *warp) waitGroups(lanes uint32, n int) {
	a := &w.async
	var later [warpSize]int // groups of each lane after the one looked at
	for i := len(a.groups) - 1; i >= 0; i-- {
		g := &a.groups[i]
		var done uint32
		for m := g.lanes & lanes; m != 0; m &= m - 1 {
			l := firstLane(m)
			if later[l] >= n {
				done |= 1 << l
			}
			later[l]++
		}
		g.lanes &^= done
		for _, c := range g.copies {
			w.land(c, done)
		}
	}
	// Groups that nobody waits for any more go.
	kept := 0
	for i := range a.groups {
		if a.groups[i].lanes == 0 {
			a.free = append(a.free, a.groups[i].copies...)
			a.groups[i].copies = a.groups[i].copies[:0]
			continue
		}
		a.groups[kept], a.groups[i] = a.groups[i], a.groups[kept]
		kept++
	}
	a.groups = a.groups[:kept]
}
