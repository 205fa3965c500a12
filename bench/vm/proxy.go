package vm

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// The asynchronous side of the race detector: what the copy engine and wgmma
// read and write, and what ordinary writes they can see.

// flight is a read of shared memory that is under way.
type flight struct {
	ranges []span // sorted
	from   *ptx.Instruction
	warp   int
	lane   int
}

// span is a range of shared memory, [off, end).
type span struct{ off, end uint64 }

// joinSpans sorts spans, in place, and makes one of those that touch.
func joinSpans(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.off, b.off) })
	joined := list[:0]
	for _, s := range list {
		if n := len(joined); n > 0 && joined[n-1].end >= s.off {
			joined[n-1].end = max(joined[n-1].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// againstReads reports a write into memory that is being read.
func (r *raceState) againstReads(at *side, off uint64, n int) {
	for _, f := range r.flights {
		if k := len(f.ranges); k == 0 || f.ranges[k-1].end <= off || off+uint64(n) <= f.ranges[0].off {
			continue
		}
		i := sort.Search(len(f.ranges), func(i int) bool { return f.ranges[i].end > off })
		if f.ranges[i].off < off+uint64(n) {
			r.reportAs(bench.AsyncCopyRace, at, f.from, f.warp, f.lane, "has an asynchronous read of it under way that was not waited for")
			return
		}
	}
}

// dropFlight ends a read.
func (r *raceState) dropFlight(f *flight) {
	for i, x := range r.flights {
		if x == f {
			r.flights = append(r.flights[:i], r.flights[i+1:]...)
			return
		}
	}
}

// spans are the ranges of shared memory that a copy touches.
func (b *block) spans(c *bulkCopy) []span {
	if c.swizzle == (swizzle{}) {
		return []span{{c.shared, c.shared + uint64(c.bytes)}}
	}
	var list []span
	for _, row := range c.rows {
		b.spread(c, row, func(at uint64, _, n int) {
			if k := len(list); k > 0 && list[k-1].end == at {
				list[k-1].end = at + uint64(n)
				return
			}
			list = append(list, span{at, at + uint64(n)})
		})
	}
	slices.SortFunc(list, func(a, b span) int { return int(int64(a.off) - int64(b.off)) })
	return list
}

// bulkWriting marks the destination of a load that was issued.
func (r *raceState) bulkWriting(c *bulkCopy) {
	c.mark = r.newMark(&inFlight{bulk: c, from: c.from, warp: c.w.index})
	c.marked = true
	at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceShared, write: true, id: r.eventFor(c.w, c.in, c.op.shared, eventAsync)}
	if r.strict() {
		r.initUnseen(c, &at)
	}
	for _, s := range r.b.spans(c) {
		if r.strict() {
			r.ordinary(&at, s)
		}
		r.claim(&at, s.off, int(s.end-s.off))
		r.mark(s.off, int(s.end-s.off), c.mark, c.lane)
	}
}

// markBulk marks a load's destination again.
func (b *block) markBulk(c *bulkCopy) {
	for _, s := range b.spans(c) {
		b.race.mark(s.off, int(s.end-s.off), c.mark, c.lane)
	}
}

// bulkWritten turns the marks of a load that has landed into writes that those
// know who wait for its mbarrier.
func (r *raceState) bulkWritten(c *bulkCopy, m *mbarrier) {
	if !c.marked && c.op.reduce == nil {
		return
	}
	id := r.newEvent(c.w, c.from, eventAsync, 0, 1<<c.lane)
	if m != nil {
		r.onAgent(id, m)
		if c.read != 0 {
			read := &r.events[c.read]
			read.agent, read.tick = r.events[id].agent, r.events[id].tick
		}
		if c.to != c.w.cta {
			c.to.noteLanding(r.agent(m), m.completed, c)
		}
	}
	if c.reading != nil { // those who know of the data know that the source was read
		r.dropFlight(c.reading)
		r.readBy(id, c)
		c.reading = nil
	}
	if c.op.reduce != nil {
		return
	}
	spans := r.b.spans(c)
	if m != nil {
		r.landed(id, c.lane, spans, c)
	} else {
		for _, s := range spans {
			r.unmark(s.off, int(s.end-s.off), stamp(id)<<eventShift|stamp(c.lane))
		}
	}
	r.dropMark(c.mark)
}

// bulkReducing notes a reduction in shared memory. Others may be under way at
// the same bytes, in whatever order they are done; those who wait for its
// mbarrier know of it.
func (r *raceState) bulkReducing(c *bulkCopy) {
	c.event = r.newEvent(c.w, c.from, eventAsync|eventReduction, scopeCluster, 1<<c.lane)
	at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceShared, write: true, id: c.event}
	r.sharedLane(&at, c.shared, int(c.bytes))
	if m := r.b.mbarriers[c.mbar]; m != nil {
		r.events[c.event].agent, r.events[c.event].tick = r.agent(m), m.completed+1
	}
}

// readSpans makes ranges of shared memory ones that a side has read, where nothing is
// in flight to them.
func (r *raceState) readSpans(ranges []span, at *side) {
	note := func(c *cell) bool { return c.w&specialStamp != 0 || r.read(c, at) }
	for _, s := range ranges {
		r.readCells(s, at, note)
	}
}

// readBy makes a copy's source one that an event has read.
func (r *raceState) readBy(id uint32, c *bulkCopy) {
	at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceShared, id: id}
	r.readSpans(c.reading.ranges, &at)
}

// agent is the number of an mbarrier's own clock, beside the warps'.
func (r *raceState) agent(m *mbarrier) uint32 { return uint32(len(r.b.warps) + 1 + m.index) }

// onAgent puts a write on an mbarrier's own clock: those know of it who wait
// for the phase, and not yet the thread that asked for it.
func (r *raceState) onAgent(id uint32, m *mbarrier) {
	m.clock = m.clock.join(clock{{block: r.b.order, v: r.stampAgent(id, m)}})
}

// stampAgent puts a write on an mbarrier's own clock and returns what those know
// who know of it.
func (r *raceState) stampAgent(id uint32, m *mbarrier) vclock {
	m.completed++
	agent := r.agent(m)
	e := &r.events[id]
	e.agent, e.tick = agent, m.completed
	know := make(vclock, agent+1)
	know[agent].all = m.completed
	return know
}

// bulkReading notes that a copy begins to read shared memory.
func (r *raceState) bulkReading(c *bulkCopy, ranges []span, m *memOp) {
	c.reading = &flight{ranges: ranges, from: c.from, warp: c.w.index, lane: c.lane}
	at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceShared, id: r.eventFor(c.w, c.in, m, eventAsync)}
	r.asyncRead(&at, c.reading.ranges)
	r.flights = append(r.flights, c.reading)
}

// unseenWrite is what is wrong with a write that an asynchronous read can't see.
const unseenWrite = "wrote it the ordinary way, and no fence.proxy.async makes that visible to the asynchronous read"

// asyncRead notes an asynchronous read of ranges, ordered as what the issuing
// lane does, and reports writes that it can't see for lack of a proxy fence.
func (r *raceState) asyncRead(at *side, ranges []span) {
	blamed := false
	note := func(c *cell) bool {
		if !blamed && r.hidden(c.w, at) {
			blamed = true
			e := &r.events[c.w.event()]
			r.reportAs(bench.MissingProxyFence, at, e.src, int(e.warp), c.w.lane(), unseenWrite)
		}
		return r.read(c, at)
	}
	for _, s := range ranges {
		r.readCells(s, at, note)
	}
}

// seenByProxy reports ordinary writes to global memory that an asynchronous read
// can't see for lack of a proxy fence; false if there are none.
func (r *raceState) seenByProxy(cells []cell, at *side) bool {
	for j := range cells {
		c := &cells[j]
		if !r.hidden(c.w, at) {
			continue
		}
		e := &r.events[c.w.event()]
		r.reportAs(bench.MissingProxyFence, at, e.src, int(e.warp), c.w.lane(),
			unseenWrite)
		return true
	}
	return false
}

// hidden says whether a write is ordered before an asynchronous read and yet
// invisible to it.
func (r *raceState) hidden(w stamp, at *side) bool {
	if w == 0 || w&specialStamp != 0 {
		return false
	}
	e := &r.events[w.event()]
	if e.flags&eventAsync != 0 && (e.flags&eventCopy == 0 || !r.strict()) || e.tick == 0 {
		return false
	}
	who, lane := int(e.warp), w.lane()
	if e.agent != 0 {
		who = int(e.agent)
	}
	if len(r.b.ctas) > 1 && at.space == ptx.SpaceShared {
		rank := int(at.addr >> rankShift)
		if r.proxied.in(rank, who, lane, e.tick) || at.w.clock.proxy[at.lane].in(rank, who, lane, e.tick) {
			return false
		}
	}
	return !r.proxied.of(at.space).knows(who, lane, e.tick) && !at.w.clock.proxy[at.lane].of(at.space).knows(who, lane, e.tick) && r.before(w, at.w, at.lane)
}

// bulkRead ends a store's read: from now on it counts as the issuing thread's.
func (r *raceState) bulkRead(c *bulkCopy) {
	if c.reading == nil {
		return
	}
	r.dropFlight(c.reading)
	r.readBy(r.newEvent(c.w, c.from, eventAsync, 0, 1<<c.lane), c)
	c.reading = nil
}

// shows is what a fence makes visible to the async proxy of what a thread knows.
func (f *fenceOp) shows(v vclock) (s seen) {
	if f.shared {
		s.shared = v
	}
	if f.global {
		s.global = v
	}
	return s
}

// proxyFence makes all that lanes know of visible to the async proxy.
func (r *raceState) proxyFence(w *warp, f *fenceOp, lanes uint32) {
	if f.proxy != "async" {
		return
	}
	r.proxies = true
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		all := r.snapshot(w, 1<<i).of(r.b.order)
		shown := f.shows(all)
		if f.own && len(r.b.ctas) > 1 { // others' shared memory is no affair of shared::cta
			shown.shared, shown.own = nil, make([]vclock, len(r.b.ctas))
			shown.own[w.cta.rank] = all
		}
		w.clock.proxy[i] = w.clock.proxy[i].join(shown)
		w.clock.remote[i] = w.clock.remote[i].seen(f)
	}
	w.clock.snap = nil
	w.clock.any = true
	w.clock.tick++
}

func (s span) String() string { return fmt.Sprintf("[%#x, %#x)", s.off, s.end) }
