package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// mbarrier is a barrier object in shared memory. What the machine keeps there
// is its own affair; programs go through the instructions.
type mbarrier struct {
	index    int // numbers the block's mbarriers
	expected uint32
	pending  uint32
	bytes    int64  // transactions still to come
	phase    uint64 // phases completed

	passing uint64 // the phase after one that threads may pass that know nothing of it, plus 1
	last    completer

	init      stamp // its initialisation
	fenced    bool  // by fence.mbarrier_init; known under strict-proxy
	clock     clock // of all that arrived
	done      clock // of the phases completed
	completed uint32
	users     vclock // who waited for it or arrived there, where kernels invalidate mbarriers

	layout uint8 // .layout::v0 or v1
}

// completer is the lanes of a warp whose arrivals completed an mbarrier's last phase;
// none if a copy did.
type completer struct {
	w     *warp
	lanes uint32
}

// token is the state that arrive returns: the phase's number and the arrivals
// that were pending.
func (m *mbarrier) token() uint64 { return uint64(m.pending)<<40 | m.phase&(1<<40-1) }

// sharedSlot is the offset in shared memory of an address, which may be
// generic or of the cluster; false after a report.
func (w *warp) sharedSlot(in *inst, lane int, addr uint64, size int) (uint32, bool) {
	if in.mem.space == ptx.SpaceGeneric {
		addr -= sharedWindow
	}
	off, ok := w.locate(in, lane, addr, size, in.mem.reaches())
	if ok && addr%8 != 0 {
		w.faultAt(bench.MisalignedAddress, in, lane, &addr, "shared", "shared address %#x: want a multiple of 8", addr)
		ok = false
	}
	w.b.refused = w.b.refused || !ok // somebody may wait for what does not happen
	return uint32(off), ok
}

// misuse reports a misused mbarrier.
func (w *warp) misuse(in *inst, lane int, off uint32, format string, args ...any) {
	addr := w.b.address(uint64(off))
	w.faultAt(bench.MbarrierMisuse, in, lane, &addr, "shared", "mbarrier at %#x: "+format, append([]any{addr}, args...)...)
}

// overArrived reports arrivals that an mbarrier doesn't expect. Whoever reads or
// fills a stage of a pipeline before its mbarrier says so comes to arrive too
// early as well, so that it is held back: where threads or copies race, they are the
// cause. An instruction that brings more than a whole phase has is none of that, but
// why threads then race.
func (w *warp) overArrived(in *inst, lane int, off uint32, m *mbarrier, n uint32, before int) {
	whole := int64(n)*int64(before+1) > int64(m.expected)
	list := w.b.heldBack()
	if r := w.b.race; whole && list != &w.b.faults && w.b.l.reports(bench.MbarrierMisuse) {
		list, r.unready = &w.b.faults, true
	}
	addr := w.b.address(uint64(off))
	w.faultIn(list, bench.MbarrierMisuse, in, lane, &addr, "shared", "mbarrier at %#x: %d arrivals while %d are pending of %d", addr, n, m.pending, m.expected)
}

// askedLate reports a wait for a phase that is neither current nor the one before. Where
// threads race, it may be by schedule that they come to that.
func (w *warp) askedLate(in *inst, lane int, off uint32, asked, current uint64) {
	addr := w.b.address(uint64(off))
	w.faultIn(w.b.heldBack(), bench.MbarrierMisuse, in, lane, &addr, "shared",
		"mbarrier at %#x: asked for phase %d while phase %d is current: want the current one or the one before", addr, asked, current)
}

// heldBack is the list of faults that count where no threads or copies race.
func (b *block) heldBack() *faultList {
	if r := b.race; r != nil && !r.off && (b.l.reports(bench.AsyncCopyRace) || b.l.reports(bench.SharedRace)) {
		return &r.arrivals
	}
	return &b.faults
}

// settleArrivals decides at the block's end about what was held back.
func (r *raceState) settleArrivals() {
	if f := &r.b.faults; !f.has(bench.AsyncCopyRace) && !f.has(bench.SharedRace) && !f.has(bench.GlobalRace) {
		r.b.faults.merge(&r.arrivals)
	}
	r.arrivals = faultList{most: r.b.faults.most}
}

// unready reports an mbarrier that threads do not know to be initialised. It
// orders nothing for them: races from now on come of that.
func (w *warp) unready(in *inst, lane int, off uint32, what string) {
	w.misuse(in, lane, off, "%s", what)
	if r := w.b.race; r != nil && w.b.l.reports(bench.MbarrierMisuse) {
		r.unready = true
	}
}

// mbarrierAt finds a live mbarrier; nil after a report.
func (w *warp) mbarrierAt(in *inst, lane int, off uint32) *mbarrier {
	m := w.b.mbarriers[off]
	if m == nil {
		w.unready(in, lane, off, "it is not initialised")
		return nil
	}
	if r := w.b.race; r != nil && !r.off && !r.initBefore(m.init, w, lane) {
		w.unready(in, lane, off, "nothing orders its initialisation before this")
		m.init = 0
	}
	return m
}

// ownMbarrier says whether an mbarrier lies in the thread's own block, as it must for
// all but arrivals and bytes; false after a report.
func (w *warp) ownMbarrier(in *inst, lane int, off uint32) bool {
	if len(w.b.ctas) == 1 || uint64(off)-w.cta.low < uint64(w.b.l.sharedSize) {
		return true
	}
	w.unready(in, lane, off, "it is another block's, where threads may arrive but not wait, initialise or invalidate")
	return false
}

// mbarrierControl runs an mbarrier instruction.
func mbarrierControl(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	op := in.mbar
	if w.undefs > 0 {
		w.checkOperands(in, m)
	}
	w.b.counts.mbarriers += popcount(m)
	var addr lanes64
	w.addresses(in.mem, &addr)
	if op.kind == mbarrierTest || op.kind == mbarrierTry {
		w.mbarrierWait(in, m, &addr)
		return
	}
	arrived := map[*mbarrier]uint32{}
	var order []*mbarrier
	for l := m; l != 0; l &= l - 1 {
		lane := firstLane(l)
		off, ok := w.sharedSlot(in, lane, addr[lane], 8)
		if !ok {
			continue
		}
		if b := w.mbarrierLane(in, op, lane, off, arrived); b != nil {
			if arrived[b] == 0 {
				order = append(order, b)
			}
			arrived[b] |= 1 << lane
		}
	}
	w.pc++
	for _, b := range order {
		w.b.arriveAt(w, b, op, arrived[b])
	}
}

// mbarrierLane does what one lane asks for, after those that arrived by the same
// instruction; it returns the barrier where its state may now change the phase.
func (w *warp) mbarrierLane(in *inst, op *mbarrierOp, lane int, off uint32, arrived map[*mbarrier]uint32) *mbarrier {
	b := w.b
	n := w.r[op.count][lane]
	if (op.kind == mbarrierInit || op.kind == mbarrierInval) && !w.ownMbarrier(in, lane, off) {
		return nil
	}
	if op.kind == mbarrierInit {
		w.mbarrierInit(in, lane, off, n)
		return nil
	}
	m := w.mbarrierAt(in, lane, off)
	if m == nil {
		return nil
	}
	switch op.kind {
	case mbarrierInval:
		b.invalidate(w, in, lane, off)
		return nil
	case mbarrierLayout:
		w.answer(op.dst, 1<<lane, m.layout == op.layout)
		return nil
	case mbarrierExpect:
		m.bytes += int64(n)
		return nil
	case mbarrierComplete:
		m.bytes -= int64(n)
		return m
	}
	if op.expect {
		m.bytes += int64(n)
		n = 1
	}
	if op.dst >= 0 {
		w.q[op.dst][lane] = m.token()
		if w.u != nil {
			w.define(w.fr.prog.unified(class64, op.dst), 1<<lane)
		}
	}
	switch {
	case n == 0:
		w.misuse(in, lane, off, "0 arrivals: want 1 or more")
	case n > m.pending:
		w.overArrived(in, lane, off, m, n, lanesOf(arrived[m]))
		n = m.pending
	}
	if op.drop {
		if n > m.expected {
			n = m.expected
		}
		m.expected -= n
	}
	m.pending -= n
	return m
}

func (w *warp) mbarrierInit(in *inst, lane int, off uint32, count uint32) {
	b := w.b
	if count == 0 || count > maxArrivals {
		w.misuse(in, lane, off, "initialised for %d arrivals: want 1 to %d", count, maxArrivals)
		count = min(max(count, 1), maxArrivals)
	}
	for d := -7; d <= 7; d++ {
		if o := int(off) + d; o >= 0 && b.mbarriers[uint32(o)] != nil {
			w.misuse(in, lane, off, "initialised again while it is in use")
			b.dropMbarrier(uint32(o))
		}
	}
	m := &mbarrier{expected: count, pending: count, layout: in.mbar.layout}
	b.numberMbarrier(m)
	if b.mbarriers == nil {
		b.mbarriers = map[uint32]*mbarrier{}
	}
	b.mbarriers[off] = m
	if b.undef != nil {
		b.undef.define(uint64(off), 8)
	}
	if r := b.race; r != nil && !r.off {
		at := side{w: w, in: in, lane: lane, space: ptx.SpaceShared, write: true, id: r.eventFor(w, in, in.mem, 0)}
		r.sharedLane(&at, uint64(off), 8)
		m.init = stamp(at.id)<<eventShift | stamp(lane)
		r.mark(uint64(off), 8, r.newMark(&inFlight{mbarrier: true, lanes: allLanes}), 0)
	}
}

// numberMbarrier gives an mbarrier a number, and with it a clock, that no other
// has now.
func (b *block) numberMbarrier(m *mbarrier) {
	if n := len(b.freeClocks); n > 0 {
		c := b.freeClocks[n-1]
		b.freeClocks = b.freeClocks[:n-1]
		m.index, m.completed = c.index, c.time
		return
	}
	m.index = b.clocks
	b.clocks++
}

// freeClock is an mbarrier's number to use again, and how far its clock went.
type freeClock struct {
	index int
	time  uint32
}

func (b *block) dropMbarrier(off uint32) {
	if m := b.mbarriers[off]; m != nil {
		b.freeClocks = append(b.freeClocks, freeClock{m.index, m.completed})
		delete(b.mbarriers, off)
	}
}

// uses notes that lanes wait for an mbarrier or arrive there.
func (w *warp) uses(m *mbarrier, lanes uint32) {
	if r := w.b.race; m != nil && w.b.l.kern.invals && r != nil && !r.off {
		m.users = m.users.with(len(w.b.warps), w.index, lanes, w.started, w.clock.tick)
	}
}

// invalidate makes an mbarrier plain memory again.
func (b *block) invalidate(w *warp, in *inst, lane int, off uint32) {
	users := clock{{block: b.order, v: b.mbarriers[off].users}}
	if r := b.race; r != nil && !r.off && !r.knowsOf(w, lane, users) {
		w.misuse(in, lane, off, "invalidated, and nothing orders all waits for it and arrivals before")
	}
	b.dropMbarrier(off)
	if r := b.race; r != nil && !r.off {
		id := r.eventFor(w, in, in.mem, 0)
		r.unmark(uint64(off), 8, stamp(id)<<eventShift|stamp(lane))
	}
	if b.undef != nil {
		for i := range uint64(8) {
			b.undef.bytes[uint64(off)+i] = 1
		}
	}
}

// arriveAt lets lanes' arrivals count, and completes the phase if they were
// the last.
func (b *block) arriveAt(w *warp, m *mbarrier, op *mbarrierOp, lanes uint32) {
	if r := b.race; r != nil && !r.off && op.kind == mbarrierArrive && op.strong.releases() {
		w.uses(m, lanes)
		m.clock = m.clock.join(r.snapshot(w, lanes))
		w.clock.tick++
	}
	if r := b.race; r != nil && !r.off && op.kind == mbarrierArrive && op.strong == relaxed && w.clock.fences {
		m.clock = m.clock.join(w.fencedClock(lanes, scopeCTA))
	}
	phase := m.phase
	b.settle(m)
	if m.phase != phase && op.kind == mbarrierArrive {
		m.last = completer{w, lanes}
	}
}

// settle completes an mbarrier's phase when nothing is pending, and wakes who
// waits for that.
func (b *block) settle(m *mbarrier) {
	if m.pending != 0 || m.bytes != 0 {
		return
	}
	m.phase++
	m.last = completer{}
	m.pending = m.expected
	m.done = m.clock
	clear(b.timedOut)
	b.idle = 0
	for _, w := range b.warps {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitMbarrier {
				p.wait = wait{}
			}
		}
	}
}

// mbarrierWait is test_wait and try_wait. try_wait sleeps until a phase
// completes somewhere.
func (w *warp) mbarrierWait(in *inst, m uint32, addr *lanes64) {
	op := in.mbar
	var yes uint32
	var blocked, used *mbarrier
	var at, users uint32
	for l := m; l != 0; l &= l - 1 {
		lane := firstLane(l)
		off, ok := w.sharedSlot(in, lane, addr[lane], 8)
		if !ok || !w.ownMbarrier(in, lane, off) {
			yes |= 1 << lane
			continue
		}
		b := w.mbarrierAt(in, lane, off)
		if b == nil {
			yes |= 1 << lane // else the thread would wait for ever
			continue
		}
		if b != used {
			w.uses(used, users)
			used, users = b, 0
		}
		users |= 1 << lane
		over := false
		if op.parity {
			over = uint32(b.phase)&1 != w.r[op.token][lane]&1
		} else {
			asked := w.q[op.token][lane] & (1<<40 - 1)
			over = b.phase&(1<<40-1) != asked
			if ahead := (b.phase - asked) & (1<<40 - 1); ahead > 1 {
				w.askedLate(in, lane, off, asked, b.phase)
			}
		}
		if !over && op.parity && w.passes(b, lane) {
			yes |= 1 << lane
			continue
		}
		if !over {
			blocked, at = b, off
			continue
		}
		yes |= 1 << lane
		if r := w.b.race; r != nil && !r.off && !op.ignored {
			w.hearPhase(r, op, lane, b)
		}
	}
	w.uses(used, users)
	if yes == 0 && m == w.mask && op.kind == mbarrierTry && !w.gaveUp && !op.ignored && !w.b.timesOut() {
		w.retry(stopPath)
		w.park(wait{kind: waitMbarrier, in: in, addr: at, phase: uint32(blocked.phase)})
		return
	}
	w.gaveUp = false
	w.answer(op.dst, yes&m, true)
	w.answer(op.dst, m&^yes, false)
	w.answer(op.report, m, false)
	if op.value >= 0 {
		for l := m; l != 0; l &= l - 1 {
			w.r[op.value][firstLane(l)] = 0
		}
		if w.u != nil {
			w.define(w.fr.prog.unified(class32, op.value), m)
		}
	}
	w.pc++
	if yes != m {
		w.notePoll(in)
		w.stop = stopYield // a test that failed: let others go on
	}
}

// timesOut says whether a try_wait's time is over at once: by chance, where the schedule
// is left to that.
func (b *block) timesOut() bool {
	return b.l.dev.opt.Schedule == Shuffle && b.pick.below(4) == 0
}

// answer gives some lanes of a predicate a value; slot -1 is none.
func (w *warp) answer(slot int32, lanes uint32, yes bool) {
	if slot < 0 {
		return
	}
	w.p[slot] &^= lanes
	if yes {
		w.p[slot] |= lanes
	}
	if w.u != nil {
		w.define(w.fr.prog.unified(classPred, slot), lanes)
	}
}

// hearPhase is what a lane learns that finds a phase over: at once, or at its next
// fence if its wait was relaxed.
func (w *warp) hearPhase(r *raceState, op *mbarrierOp, lane int, m *mbarrier) {
	if op.strong.acquires() {
		r.learn(w, 1<<lane, m.done)
		return
	}
	w.clock.pending[lane] = w.clock.pending[lane].join(m.done)
	w.clock.alike = false
	w.clock.nearby[lane] = w.clock.nearby[lane].join(m.done)
}

// passes says whether a lane that waits for the current phase is let go on, for
// lack of any other way. It asked for a parity that the last phase but one has
// too. If it knows nothing of the last phase it may as well have asked before
// that was complete, and have gone on at once. What it does then tells what is
// wrong. Whose own arrival completed the last phase can't have asked before.
func (w *warp) passes(m *mbarrier, lane int) bool {
	r := w.b.race
	completed := m.last.w == w && m.last.lanes>>lane&1 != 0
	return m.passing == m.phase+1 && !completed && r != nil && !r.off && !r.knowsOf(w, lane, m.done)
}

// letPass lets threads pass mbarriers that they may have passed before the last
// phase; false if none waits that may.
func (b *block) letPass() bool {
	fresh := map[*mbarrier]bool{}
	any := false
	for _, w := range b.warps {
		for i := range w.paths {
			p := &w.paths[i]
			m := b.mbarriers[p.wait.addr]
			if p.wait.kind != waitMbarrier || m == nil || m.phase == 0 || m.passing == m.phase+1 && !fresh[m] {
				continue
			}
			m.passing, fresh[m] = m.phase+1, true
			if w.passes(m, firstLane(p.mask)) {
				p.wait = wait{}
				any = true
			}
		}
	}
	return any
}

// giveUp answers those who wait for an mbarrier that their time is over; false
// if nobody waits, or if all were told before where they wait now and no phase
// was completed since.
func (b *block) giveUp() bool {
	fresh := false
	for _, w := range b.warps {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitMbarrier && !b.timedOut[p.wait.in] {
				fresh = true
			}
		}
	}
	if !fresh {
		return false
	}
	if b.timedOut == nil {
		b.timedOut = map[*inst]bool{}
	}
	for _, w := range b.warps {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitMbarrier {
				b.timedOut[p.wait.in] = true
				p.wait = wait{}
				p.gaveUp = true
			}
		}
	}
	return true
}

// describe says what an mbarrier lacks.
func (m *mbarrier) describe() string {
	s := fmt.Sprintf("%d of %d arrivals are pending", m.pending, m.expected)
	if m.bytes != 0 {
		s += fmt.Sprintf(", and %d bytes", m.bytes)
	}
	return s
}

// starved reports waiters for bytes that nothing will bring.
func (b *block) starved() {
	for _, w := range b.warps {
		for i := range w.paths {
			p := &w.paths[i]
			if p.wait.kind != waitMbarrier {
				continue
			}
			m := b.mbarriers[p.wait.addr]
			if m == nil || m.pending != 0 || m.bytes == 0 {
				continue
			}
			current := w.fr
			w.enter(p.fr)
			w.misuse(p.wait.in, firstLane(p.mask), p.wait.addr, "no arrival is pending, %d bytes are expected and no copy is in flight", m.bytes)
			w.enter(current)
		}
	}
}
