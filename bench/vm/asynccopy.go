package vm

import (
	"slices"

	"github.com/kgen-dev/kgen/bench"
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
	issued uint64 // how many instructions so far
	open   []*inFlight
	groups []copyGroup
	free   []*inFlight
	made   int // of them
}

// pending is how many copies are kept that were not waited for.
func (a *asyncCopies) pending() int { return a.made - len(a.free) }

type copyGroup struct {
	lanes  uint32
	order  uint64 // of the warp's last copy by then
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
	warp  int
	order uint64 // of its issue among the warp's
	undef uint32 // lanes that read bytes never written
	from  *ptx.Instruction

	reading   uint32 // the event of its reads, where mbarriers are told of copies; 0 is none yet
	fetch     int    // among the block's fetches, counted from 1; 0 is none
	low, high uint64 // what is read lies between

	mbarrier bool      // no copy: an mbarrier in use
	bulk     *bulkCopy // a bulk copy
	mark     asyncMark
}

func (a *asyncCopies) reset() {
	a.free = append(a.free, a.open...)
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
	a.made++
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
		in.imm = d.pendingGroups(&ops[0])
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
	if len(ops) > 3 && (!policy || len(ops) > 4) {
		o := &ops[3]
		if o.Kind == ptx.OpReg && d.values[d.register(o)].k == classPred {
			op.neg = d.predicate(in, &op.ignore, o)
		} else {
			d.source(in, &op.sizeSlot, o, ptx.U32, exact)
		}
	}
	d.access(&op.dst)
	d.access(&op.src)
	in.fn[modeFull] = asyncCopy
	in.rule = ruleAsyncCopy
	d.emit(in)
}

// asyncCopy issues copies from global to shared memory.
func asyncCopy(w *warp, in *inst) {
	op := in.copy
	a := &w.async
	w.crowd(a.pending(), 0)
	c := a.new()
	a.issued++
	c.in, c.fr, c.moved, c.order = in, w.fr, false, a.issued
	w.addresses(&op.dst, &c.dst)
	w.addresses(&op.src, &c.src)
	size := op.dst.size
	good := w.sharedOffsets(in, &c.dst, size)
	saved := w.mask
	w.mask = good
	good = w.aligned(in, &c.src, size, "global")
	if u := w.b.undef; u != nil {
		storedTo(u, &c.dst, size, w.mask&^good)
	}
	w.mask = saved
	c.undef = 0
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
	w.countShared(&op.dst, &c.dst, size, good, sharedCopies)
	w.count(&c.src, 0, size, reads, &op.src, globalCopies)
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
	if current := w.fr; c.fr != current { // it may land while another function runs
		w.enter(c.fr)
		defer w.enter(current)
	}
	size := c.in.copy.dst.size
	for m := lanes; m != 0; m &= m - 1 {
		i := firstLane(m)
		dst := w.b.shared[c.dst[i]:][:size]
		n := int(c.read[i])
		if n > 0 {
			w.readGlobal(c, i, dst[:n])
		}
		clear(dst[n:])
		if u := w.b.undef; u != nil {
			u.define(c.dst[i], size)
			if c.undef>>i&1 != 0 {
				w.copyUndefined(c, i, n)
			}
		}
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

// readGlobal reads what a copy's lane is to bring.
func (w *warp) readGlobal(c *inFlight, lane int, dst []byte) {
	n := len(dst)
	c.undef &^= 1 << lane
	if r := w.b.race; r != nil {
		at := side{w: w, in: c.in, space: ptx.SpaceGlobal, lane: lane, addr: c.src[lane]}
		if !r.off {
			at.id = r.fetched(c, w)
		}
		p := r.page(w, c.src[lane])
		if b := r.access(w, p, &at, n); b != nil {
			copy(dst, b)
			if p.undefinedAt(int(c.src[lane]&shadowMask), n) {
				c.undef |= 1 << lane
			}
		}
		return
	}
	if al, off := w.globalBytes(c.in, lane, c.src[lane], n, false); al != nil {
		copy(dst, al.data[off:])
		if al.undef != nil && al.someUndefined(off, n) {
			c.undef |= 1 << lane
		}
	}
}

// copyUndefined marks copied bytes that were never written as undefined.
func (w *warp) copyUndefined(c *inFlight, lane, n int) {
	from := w.b.addOrigin(origin{class: bench.UninitialisedGlobalRead, src: c.from, space: ptx.SpaceGlobal, addr: c.src[lane], size: n, warp: w.index, lane: lane})
	al := w.b.l.dev.mem.find(c.src[lane])
	for i := range n {
		bits := uint64(0)
		if p := w.pageOf(c.src[lane]+uint64(i), 1); p != nil {
			bits = p.undefinedBytes(int((c.src[lane]+uint64(i))&shadowMask), 1)
		} else if al != nil && al.undef != nil {
			bits = al.undefinedBytes(int64(c.src[lane]-al.addr)+int64(i), 1)
		}
		if bits != 0 {
			w.b.undef.undefine(c.dst[lane]+uint64(i), 1, bits, from)
		}
	}
}

// pageOf is the block's copy of the page of an address, filled for n bytes; nil if it has none.
func (w *warp) pageOf(addr uint64, n int) *page {
	if w.b.race == nil {
		return nil
	}
	return w.b.race.pageAt(addr, n)
}

func commitGroup(w *warp, _ *inst) { w.commit(w.mask) }

// commit closes the open copies of some lanes into a group.
func (w *warp) commit(lanes uint32) {
	a := &w.async
	w.crowd(len(a.groups), 0)
	g := copyGroup{lanes: lanes, order: a.issued}
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
			w.b.race.split(part)
			g.copies = append(g.copies, part)
			kept = append(kept, c)
		}
	}
	a.open = kept
	a.groups = append(a.groups, g)
}

func waitGroup(w *warp, in *inst) { w.waitGroups(w.mask, int(in.imm)) }

func waitAll(w *warp, _ *inst) {
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
		w.learnCopies(done, g.order)
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

// asyncArrive is cp.async.mbarrier.arrive: an arrival at an mbarrier once the
// thread's earlier copies have completed.
func (d *decoder) asyncArrive() {
	if !d.has("arrive") {
		d.refuse("want .arrive")
	}
	noinc := d.has("noinc")
	space := d.space()
	d.has("b64")
	ops := d.operands(1, 1)
	in := d.new(kindMasked)
	in.mem = d.newMem(space)
	in.mem.size = 8
	d.memory(in, in.mem, &ops[0])
	in.rule = ruleAsyncCopy
	d.kern.told = true
	in.fn[modeFull] = func(w *warp, in *inst) { w.asyncArrive(in, noinc) }
	d.emit(in)
}

func (w *warp) asyncArrive(in *inst, noinc bool) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	w.b.counts.mbarriers += popcount(w.mask)
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		off, ok := w.sharedSlot(in, lane, addr[lane], 8)
		if !ok {
			continue
		}
		m := w.mbarrierAt(in, lane, off)
		if m == nil {
			continue
		}
		if !noinc {
			m.pending++
		}
		c := &bulkCopy{op: &arrivalOp, in: in, fr: w.fr, from: w.source(in), w: w, lane: lane, mbar: off, arrival: true, order: w.async.issued}
		w.crowd(len(w.b.flight), 0)
		w.b.flight = append(w.b.flight, c)
		if w.b.landsEarly() {
			w.b.land(c)
		}
	}
}

// arrivalOp is what an arrival is as work in flight: something to wait for.
var arrivalOp = bulkOp{told: true}

// arrive lets the copies land that a thread issued before and counts the arrival
// that waited for them. Who waits for the mbarrier knows what they wrote, whether it
// was this that let them land, another mbarrier's arrival or a wait for their group.
func (b *block) arrive(c *bulkCopy) {
	b.arriveBefore(c)
	m := b.mbarriers[c.mbar]
	if m == nil {
		c.w.misuse(c.in, c.lane, c.mbar, "it is gone when copies complete that were to arrive at it")
		return
	}
	w := c.w
	lanes := uint32(1) << c.lane
	for _, x := range w.async.open {
		if x.order <= c.order {
			w.landFor(x, lanes)
		}
	}
	for _, g := range w.async.groups {
		for _, x := range g.copies {
			if x.order <= c.order {
				w.landFor(x, lanes)
			}
		}
	}
	if r := b.race; r != nil && !r.off {
		m.clock = m.clock.join(clock{{block: b.order, v: r.copiesOf(w, c.lane, c.order)}})
	}
	if m.pending == 0 {
		w.overArrived(c.in, c.lane, c.mbar, m, 1, 0)
		return
	}
	m.pending--
	b.settle(m)
}

// arriveBefore lets the thread's earlier arrivals count first: the copies that they
// wait for have landed when this one's have.
func (b *block) arriveBefore(c *bulkCopy) {
	for _, x := range slices.Clone(b.flight) {
		if x.arrival && x.w == c.w && x.lane == c.lane && x.order < c.order {
			b.land(x)
		}
	}
}

// landFor completes a lane's copy for those who wait at an mbarrier.
func (w *warp) landFor(c *inFlight, lanes uint32) {
	if c.lanes&lanes == 0 {
		return
	}
	if !c.moved {
		w.move(c, lanes)
	}
	c.lanes &^= lanes
	r := w.b.race
	if r == nil || r.off {
		return
	}
	i := firstLane(lanes)
	r.landed(r.landing(c, lanes), i, []span{{c.dst[i], c.dst[i] + uint64(c.in.copy.dst.size)}}, nil)
	if c.lanes == 0 {
		r.fetches.fetched(c)
		r.dropMark(c.mark.index)
	}
}
