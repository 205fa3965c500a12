package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// How tcgen05 operations are ordered: PTX ISA 9.7.16.6. All of them but
// allocations are asynchronous. Those of the tensor core (mma, cp, shift) run in
// the order they are issued in and are waited for at an mbarrier that commit
// tells; ld and st are waited for by the warp's own wait.

// tensorKind is a kind of operation on tensor memory.
type tensorKind uint8

const (
	tensorLoad tensorKind = iota
	tensorStore
	tensorProduct
	tensorCopying
	tensorShifting
	tensorFree
)

// core says whether the tensor core does it.
func (k tensorKind) core() bool {
	return k == tensorProduct || k == tensorCopying || k == tensorShifting
}

// tensorWork is an operation that was issued.
type tensorWork struct {
	kind  tensorKind
	pair  bool
	shape uint32 // of a product: its M and N
	in    *inst
	fr    *frame
	from  *ptx.Instruction
	w     *warp
	lane  int // of the tensor core's: the thread that issued it
	tick  uint32
	epoch uint32

	land    func() // does it
	reading *flight

	done      bool // and known to be to those who know of doneTick
	agent     uint32
	doneTick  uint32
	doneEpoch uint32
	settled   bool // everybody knows

	// Under strict-proxy.
	fenced       uint32 // tick of the first tcgen05.fence::before_thread_sync after it; 0 is none
	settledEpoch uint32
}

// tensorUse is an operation's use of an area of tensor memory.
type tensorUse struct {
	tensorArea
	work  *tensorWork
	write bool
	sum   bool // the accumulator of a product
}

// newTensorWork is an operation that is issued now.
func (w *warp) newTensorWork(k tensorKind, in *inst, lane int) *tensorWork {
	x := &tensorWork{kind: k, pair: in.tensor.pair, in: in, fr: w.fr, from: w.source(in), w: w, lane: lane, tick: w.clock.tick}
	if r := w.b.race; r != nil {
		x.epoch = r.epoch
		w.clock.last = w.clock.tick
	}
	return x
}

// use notes that an operation uses an area, and compares that with what others
// do there; it says whether there was nothing to report.
func (w *warp) use(x *tensorWork, a tensorArea, write, sum bool) bool {
	r := w.b.race
	if r == nil || r.off || a.c.tensor == nil {
		return true
	}
	now := &tensorUse{tensorArea: a, work: x, write: write, sum: sum}
	t := a.c.tensor
	good := true
	kept := t.uses[:0]
	for _, u := range t.uses {
		if u.overlaps(&a) && (u.write || write) && u.work != x && !r.tensorOrdered(u, now) {
			if good {
				w.reportTensor(now, u)
			}
			good = false
		} else if r.strict() && u.overlaps(&a) && (u.write || write) && u.work != x && !r.tensorFenced(u.work, x) {
			w.reportTensorAs(bench.MissingProxyFence, now, u, doing(now.write), verb(u.write)+" it, and a tcgen05.fence before or after the threads' synchronisation is absent")
		}
		if u.work == x || !a.covers(&u.tensorArea) || !write && (u.write || u.work.w != w || u.work.lane != x.lane || u.work.kind != x.kind) {
			kept = append(kept, u)
		}
	}
	clear(t.uses[len(kept):])
	kept = append(kept, now)
	t.uses = kept
	return good
}

// tensorOrdered says whether a use comes before another that begins now.
func (r *raceState) tensorOrdered(u, now *tensorUse) bool {
	x, y := u.work, now.work
	if x.done && r.tensorKnown(x, y.w, y.lane) {
		return true
	}
	if x.kind == tensorLoad && y.kind == tensorFree {
		return x.w == y.w || r.tensorIssued(x, y) // whoever used what it brought waited for it
	}
	if !x.kind.core() || !y.kind.core() || x.pair != y.pair {
		return false
	}
	switch {
	case u.sum && u.write && !now.sum && y.kind == tensorProduct:
		return false // a product does not wait for the sums of another as operands
	case u.sum && now.sum && (x.shape != y.shape || u.from != now.from || u.groups != now.groups):
		return false
	}
	return x.w == y.w && x.lane == y.lane || r.tensorIssued(x, y)
}

// tensorIssued says whether the thread of an operation knows that another was
// issued.
func (r *raceState) tensorIssued(x, y *tensorWork) bool {
	return x.epoch < r.epoch || y.w.clock.own[y.lane].knows(x.w.index, x.lane, x.tick)
}

// tensorKnown says whether a thread knows that an operation is done. Loads and
// stores are a whole warp's: those know of them who know of any of its lanes.
func (r *raceState) tensorKnown(x *tensorWork, w *warp, lane int) bool {
	if x.agent != 0 {
		return x.settled || w.clock.own[lane].knows(int(x.agent), 0, x.doneTick)
	}
	if x.doneEpoch < r.epoch || x.w == w {
		return true
	}
	for l := range warpSize {
		if w.clock.own[lane].knows(x.w.index, l, x.doneTick) {
			return true
		}
	}
	return false
}

// finishTensor ends a warp's own operation.
func (w *warp) finishTensor(x *tensorWork) {
	x.done, x.doneTick = true, w.clock.tick
	if r := w.b.race; r != nil {
		x.doneEpoch = r.epoch
		w.clock.last = w.clock.tick
	}
}

// settleTensor makes known to everybody what some thread knows to be done: a
// barrier of the whole block is over.
func (b *block) settleTensor() {
	for _, c := range b.ctas {
		if c.tensor == nil {
			continue
		}
		for _, u := range c.tensor.uses {
			x := u.work
			if !x.done || x.agent == 0 || x.settled {
				continue
			}
			for _, w := range b.warps {
				for l := range warpSize {
					x.settled = x.settled || w.clock.own[l].knows(int(x.agent), 0, x.doneTick)
				}
			}
			x.settledEpoch = b.race.epoch + 1
		}
	}
}

// tensorFence is fence::before_thread_sync and after_thread_sync. Together with a
// relaxed arrival and wait they order as those would that release and acquire;
// where none is, the operations' own waits order.
func (d *decoder) tensorFence(before bool) {
	d.operands(0, 0)
	in := d.new(kindMasked)
	in.fn[modeFull] = func(w *warp, _ *inst) {
		r := w.b.race
		if r == nil || r.off {
			return
		}
		if r.strict() {
			r.fenceTensor(w, w.mask, before)
		}
		for l := w.mask; l != 0; l &= l - 1 {
			i := firstLane(l)
			if before {
				w.clock.fenced[i] = scoped{c: r.snapshot(w, 1<<i), scope: scopeCluster}
				w.clock.fences, w.clock.alike = true, false
			} else {
				r.learn(w, 1<<i, w.clock.nearby[i])
			}
		}
		w.clock.tick++
	}
	d.emit(in)
	d.p.counter[d.src.PC] = countFence
}

// reportTensor reports two uses of tensor memory that nothing orders.
func (w *warp) reportTensor(now, u *tensorUse) {
	what := verb(u.write) + " it and nothing orders the two"
	if !u.work.done {
		act := "read"
		if u.write {
			act = "write"
		}
		what = fmt.Sprintf("has a %s to %s it under way that was not waited for", opcode(u.work.from), act)
	}
	w.reportTensorAs(bench.AsyncCopyRace, now, u, doing(now.write), what)
}

// doing is what an access is doing.
func doing(write bool) string {
	if write {
		return "writes"
	}
	return "reads"
}

// reportTensorAs reports a use that comes now, what it does, and what the other
// use did.
func (w *warp) reportTensorAs(class bench.FaultClass, now, u *tensorUse, does, did string) {
	b := w.b
	if !b.l.reports(class) || b.race.unready {
		return
	}
	src, other := w.source(now.work.in), u.work.from
	f := b.faults.add(faultKey{class: class, in: src, other: other}, 1)
	if f == nil {
		return
	}
	addr := uint64(max(now.lane(), u.lane())<<16 | max(now.from, u.from))
	f.Kernel, f.Address, f.Space = b.l.prog.name, &addr, "tensor"
	f.Site = b.site(w.index, now.work.lane, src)
	site := b.site(u.work.w.index, u.work.lane, other)
	f.Other = &site
	f.Message = fmt.Sprintf("%s tensor memory at %v: thread %v %s", does, tensorAddress(addr), site.Thread, did)
}

// tensorCore is what a block, or a cluster, has to do for tcgen05.
type tensorCore struct {
	work    []*tensorWork // operations that no commit has completed, oldest first
	commits int           // issued so far
	tiles   *productTiles // room to compute in
}

// issueTensor puts an operation of the tensor core in flight.
func (b *block) issueTensor(x *tensorWork) {
	x.w.crowd(len(b.tensor.work), 0)
	b.tensor.work = append(b.tensor.work, x)
	if b.landsEarly() {
		for _, e := range b.tensor.work {
			b.landTensor(e)
		}
	}
}

// landTensor does an operation, if it is not done yet.
func (b *block) landTensor(x *tensorWork) {
	if x.land == nil {
		return
	}
	land := x.land
	x.land = nil
	if current := x.w.fr; current != x.fr { // it may land while another function runs
		x.w.enter(x.fr)
		defer x.w.enter(current)
	}
	land()
}

// tensorCommit is what commit is as work in flight: operations to do, and
// mbarriers to tell.
type tensorCommit struct {
	works  []*tensorWork
	mbars  []uint32 // offsets
	number int      // in the order they are issued in
	heard  clock    // what the thread had learnt of others
}

// tensorCommitOp is the same for whoever looks at copies in flight: something
// to wait for.
var tensorCommitOp = bulkOp{told: true}

func (d *decoder) tensorCommit() {
	in, op := d.newTensor(kindMasked)
	if !d.has("mbarrier::arrive::one") {
		d.refuse("want .mbarrier::arrive::one")
	}
	multicast := d.has("multicast::cluster")
	in.mem = d.newMem(d.space())
	in.mem.size = 8
	d.has("b64")
	least := 1
	if multicast {
		least = 2
	}
	ops := d.operands(least, least)
	d.memory(in, in.mem, &ops[0])
	if multicast {
		d.source(in, &op.mask, &ops[1], ptx.U16, exact)
	}
	in.fn[modeFull] = issueCommit
	d.emit(in)
}

// issueCommit lets mbarriers be told when the lanes' operations are done.
func issueCommit(w *warp, in *inst) {
	b, op := w.b, in.tensor
	var addr lanes64
	w.addresses(in.mem, &addr)
	b.counts.mbarriers += popcount(w.mask)
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		b.tensor.commits++
		commit := &tensorCommit{number: b.tensor.commits}
		for _, x := range b.tensor.work {
			if x.w == w && x.lane == lane && x.pair == op.pair {
				commit.works = append(commit.works, x)
			}
		}
		if r := b.race; r != nil && !r.off {
			commit.heard = clock{{b.order, w.clock.own[lane], w.clock.proxy[lane]}}.join(w.clock.remote[lane])
		}
		commit.mbars = w.committed(in, lane, addr[lane])
		if len(commit.mbars) == 0 {
			b.refused = true
			continue
		}
		c := &bulkCopy{op: &tensorCommitOp, in: in, fr: w.fr, from: w.source(in), w: w, lane: lane, mbar: commit.mbars[0], commit: commit}
		w.crowd(len(b.flight), 0)
		b.flight = append(b.flight, c)
		if b.landsEarly() {
			b.land(c)
		}
	}
}

// committed is the mbarriers that a commit is to tell.
func (w *warp) committed(in *inst, lane int, addr uint64) (mbars []uint32) {
	if in.mem.space == ptx.SpaceGeneric && addr-sharedWindow < windowSize {
		addr -= sharedWindow // compilers pass addresses of shared memory as they are, too
	}
	off, to := w.find(addr, 8, true)
	if to == nil {
		w.locate(in, lane, addr, 8, true)
		return nil
	}
	if addr%8 != 0 {
		w.faultAt(bench.MisalignedAddress, in, lane, &addr, "shared", "shared address %#x: want a multiple of 8", addr)
		return nil
	}
	ranks := uint32(1) << to.rank
	if in.tensor.mask >= 0 {
		ranks = w.r[in.tensor.mask][lane] & 0xffff
		if over := ranks >> len(w.b.ctas); over != 0 {
			w.faultAt(bench.SharedOutOfBounds, in, lane, &addr, "shared", "multicast to blocks %#x: the cluster has %d blocks", ranks, len(w.b.ctas))
		}
	}
	for _, c := range w.b.ctas {
		if ranks>>c.rank&1 == 0 {
			continue
		}
		at := uint32(off - to.low + c.low)
		if c != w.cta && c.gone {
			w.fault(bench.SharedOutOfBounds, in, lane, "block %v, of rank %d in the cluster, has exited", c.id, c.rank)
			continue
		}
		if w.b.mbarriers[at] == nil {
			w.unready(in, lane, at, "a commit is to tell it, and it is not initialised")
			continue
		}
		mbars = append(mbars, at)
	}
	return mbars
}

// landCommit does what a commit waits for and tells its mbarriers. Commits of a
// thread land in order.
func (b *block) landCommit(c *bulkCopy) {
	for i := 0; i < len(b.flight); i++ {
		if x := b.flight[i]; x.commit != nil && x.w == c.w && x.lane == c.lane && x.commit.number < c.commit.number {
			b.land(x)
			i = -1
		}
	}
	if n := len(c.commit.works); n > 0 {
		b.landUpTo(c.commit.works[n-1])
	}
	var told []*mbarrier
	for _, off := range c.commit.mbars {
		m := b.mbarriers[off]
		if m == nil {
			c.w.misuse(c.in, c.lane, off, "it is gone when operations complete that were to arrive at it")
			continue
		}
		told = append(told, m)
	}
	b.tensorDone(c, told)
	for _, m := range told {
		if m.pending == 0 {
			c.w.overArrived(c.in, c.lane, c.mbar, m, 1, 0)
			continue
		}
		m.pending--
		b.settle(m)
	}
}

// landUpTo does operations in the order they were issued, up to one.
func (b *block) landUpTo(last *tensorWork) {
	for _, x := range b.tensor.work {
		b.landTensor(x)
		if x == last {
			break
		}
	}
}

// tensorDone lets those who wait for mbarriers know of a commit's operations,
// and of what came before those: copies whose data they read, say. What the
// issuing thread did itself a commit does not release.
func (b *block) tensorDone(c *bulkCopy, told []*mbarrier) {
	r := b.race
	if r != nil && !r.off && len(told) > 0 {
		id := r.newEvent(c.w, c.from, eventAsync, 0, 1<<c.lane)
		r.onAgent(id, told[0])
		done := c.w.tensorClock(c.lane).join(told[0].clockOf(r)).join(c.commit.heard)
		c.w.tensorClocks[c.lane] = done
		for _, m := range told {
			m.clock = m.clock.join(done)
		}
		for _, x := range c.commit.works {
			if !x.done {
				x.agent, x.doneTick, x.doneEpoch = r.agent(told[0]), told[0].completed, r.epoch
			}
			r.readBySpans(id, x)
		}
	}
	for _, x := range c.commit.works {
		x.done = true
	}
	kept := b.tensor.work[:0]
	for _, x := range b.tensor.work {
		if !x.done || x.land != nil {
			kept = append(kept, x)
		}
	}
	clear(b.tensor.work[len(kept):])
	b.tensor.work = kept
}

// clockOf is what an mbarrier's own clock says now.
func (m *mbarrier) clockOf(r *raceState) clock {
	agent := r.agent(m)
	know := make(vclock, agent+1)
	know[agent].all = m.completed
	return clock{{block: r.b.order, v: know}}
}

// tensorClock is what those know who wait for a thread's commits.
func (w *warp) tensorClock(lane int) clock {
	if w.tensorClocks == nil {
		w.tensorClocks = new([warpSize]clock)
	}
	return w.tensorClocks[lane]
}

// readShared notes that an operation begins to read shared memory.
func (x *tensorWork) readShared(ranges []span) {
	r := x.w.b.race
	if r == nil || r.off {
		return
	}
	x.reading = &flight{ranges: ranges, from: x.from, warp: x.w.index, lane: x.lane}
	at := side{w: x.w, in: x.in, lane: x.lane, space: ptx.SpaceShared, id: r.newEvent(x.w, x.from, eventAsync, 0, 1<<x.lane)}
	r.asyncRead(&at, ranges)
	r.flights = append(r.flights, x.reading)
}

// readBySpans makes an operation's reads of shared memory ones of an event.
func (r *raceState) readBySpans(id uint32, x *tensorWork) {
	if x.reading == nil {
		return
	}
	r.dropFlight(x.reading)
	at := side{w: x.w, in: x.in, lane: x.lane, space: ptx.SpaceShared, id: id}
	r.readSpans(x.reading.ranges, &at)
	x.reading = nil
}
