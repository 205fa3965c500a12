package vm

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// raceState is what a block remembers of accesses to find those that nothing
// orders. Each cell of memory keeps the last write and the reads since. A
// barrier of the whole block moves the floor: accesses before it are ordered
// before all that follows, and one comparison says so.
type raceState struct {
	b      *block
	grain  uint   // log2 of the bytes of a cell
	shared []cell // of shared memory
	lines  []lineNote
	log    []loggedRead

	events []event
	floor  stamp    // of the first event after the last barrier of the whole block
	ticks  []uint32 // of each warp then

	epoch         uint32      // barriers of the whole block so far
	readers       readerLists // of cells of shared memory with several
	mostReaders   int         // before those of cells written since are dropped
	globalReaders readerLists // and of pages
	inFlight      []*inFlight
	freeMark      []uint32

	locations map[uint64]*location // in shared memory
	pages     pageTable
	past      pastLines
	rivals    rivals
	buried    buried
	alikes    alikes
	maps      map[uint64]bool // tensor maps that were acquired, by address
	reads     []readSet       // pages that were only read, packed
	hadTurn   bool            // the block has had its turn: it sees what others wrote
	raced     map[int]bool    // cells of shared memory with a race
	held      []heldUse
	heldOf    map[faultKey][]int // of held, by kind
	flights   []*flight          // reads of shared memory in flight
	unseen    unseenCopies       // that have landed
	stores    pendingStores      // writes of global memory in flight
	fetches   fetches            // reads of it
	arrivals  faultList          // held back: more than an mbarrier expects, waits for phases long over, uses of blocks that have exited
	astray    faultList          // held back: addresses of tensor memory that are none
	told      map[uint32]uint32  // ticks of mbarriers' clocks at the last barrier of the block
	unready   bool               // an mbarrier was used that was not known to be initialised
	heard     vclock             // in a cluster: what its threads knew at the floor
	proxied   seen               // what is visible to the async proxy, up to the floor
	proxies   bool               // some fence made something visible to it
	global    []uint32           // of each event the number of its record; 0 is none yet
	off       bool               // too much to keep

	globalRound uint32 // of the records' numbers
}

// stamp names an access: an event, and the lane. The zero stamp is none.
type stamp uint32

const (
	laneBits             = 5
	severalLanes   stamp = 1 << laneBits // more lanes of the event did the same, perhaps all
	eventShift           = laneBits + 1
	specialStamp   stamp = 1 << 31 // of a write: a copy in flight; of a read: a list
	maxEvents            = 1 << (31 - eventShift)
	compactionSize       = 1 << 20
)

func (s stamp) event() uint32 { return uint32(s&^specialStamp) >> eventShift }
func (s stamp) lane() int     { return int(s & (warpSize - 1)) }

// cell is the shadow of one to four bytes.
type cell struct{ w, r stamp }

// event is an instruction that a warp ran at one of its ticks.
type event struct {
	src   *ptx.Instruction
	tick  uint32
	warp  uint16
	flags eventFlags
	scope scope
	lanes uint32 // that ran it
	agent uint32 // of an asynchronous operation: whose clock it is on, 0 is the warp's

	remote *[warpSize]clock // what its lanes knew of other blocks; nil is nothing
}

type eventFlags uint8

const (
	eventStrong    eventFlags = 1 << iota // relaxed, volatile or atomic
	eventAsync                            // by the copy engine, or cp.async
	eventReduction                        // an asynchronous one
	eventProxy                            // by the async proxy, which sees no ordinary writes without a fence
	eventCopy                             // by cp.async: asynchronous, and yet no work of the async proxy
	eventVague                            // any of those of a block
	eventWrote                            // a write that stands where a cell's read does
	eventReadOnly                         // by the path for what the launch does not change
)

func newRaceState(b *block) *raceState {
	r := &raceState{b: b, ticks: make([]uint32, len(b.warps))}
	r.grain = b.l.kern.sharedGrain
	r.shared = make([]cell, (len(b.shared)+1<<r.grain-1)>>r.grain)
	r.lines = make([]lineNote, len(b.shared)>>noteBits+1)
	for _, w := range b.warps {
		w.clock.cache = make([]cachedEvent, b.l.kern.memOps)
	}
	return r
}

// reset makes the state ready for another block.
func (r *raceState) reset() {
	clear(r.shared)
	clear(r.lines)
	r.log = r.log[:0]
	r.events = append(r.events[:0], event{})
	r.floor, r.epoch = 1<<eventShift, 0
	clear(r.ticks)
	r.heard = nil
	r.forgetReaders()
	r.globalReaders.all = append(r.globalReaders.all[:0], reader{})
	r.inFlight, r.freeMark = r.inFlight[:0], r.freeMark[:0]
	r.off, r.hadTurn = false, false
	clear(r.locations)
	r.reads = r.reads[:0]
	clear(r.heldOf)
	clear(r.stores)
	clear(r.past)
	clear(r.rivals)
	clear(r.buried)
	clear(r.alikes)
	clear(r.maps)
	clear(r.told)
	r.fetches.list = r.fetches.list[:0]
	r.unseen.list = r.unseen.list[:0]
	r.arrivals, r.astray, r.unready = faultList{most: r.b.faults.most}, faultList{most: r.b.faults.most}, false
	r.held, r.global, r.flights, r.proxied, r.proxies = r.held[:0], r.global[:0], r.flights[:0], seen{}, false
	for _, w := range r.b.warps {
		cache := w.clock.cache
		clear(cache)
		w.clock = warpClock{tick: 1, cache: cache}
	}
}

// eventFor is the current event of a memory instruction.
func (r *raceState) eventFor(w *warp, in *inst, m *memOp, flags eventFlags) uint32 {
	c := &w.clock.cache[m.id]
	if c.tick == w.clock.tick && c.id != 0 && (r.events[c.id].flags^flags)&eventAsync == 0 {
		r.events[c.id].lanes |= w.mask
		return c.id
	}
	if m.order != weak {
		flags |= eventStrong
	}
	if m.readOnly {
		flags |= eventReadOnly
	}
	c.tick, c.id = w.clock.tick, r.newEvent(w, w.source(in), flags, m.scope, w.mask)
	return c.id
}

func (r *raceState) newEvent(w *warp, src *ptx.Instruction, flags eventFlags, s scope, lanes uint32) uint32 {
	if len(r.events) >= maxEvents {
		r.off = true
		return 0
	}
	w.clock.last = w.clock.tick
	e := event{src: src, tick: w.clock.tick, warp: uint16(w.index), flags: flags, scope: s, lanes: lanes}
	if w.clock.hasRemote {
		if w.clock.snap == nil {
			snap := w.clock.remote
			w.clock.snap = &snap
		}
		e.remote = w.clock.snap
	}
	r.events = append(r.events, e)
	return uint32(len(r.events) - 1)
}

// before says whether an access is ordered before what a lane does now.
func (r *raceState) before(s stamp, w *warp, lane int) bool {
	if s < r.floor {
		return true
	}
	e := &r.events[s.event()]
	who, same := int(e.warp), int(e.warp) == w.index
	if e.agent != 0 {
		who, same = int(e.agent), false
	}
	if s&severalLanes == 0 {
		l := s.lane()
		return same && l == lane || w.clock.own[lane].knows(who, l, e.tick)
	}
	for m := e.lanes; m != 0; m &= m - 1 {
		if l := firstLane(m); (!same || l != lane) && !w.clock.own[lane].knows(who, l, e.tick) {
			return false
		}
	}
	return true
}

// harmless says whether two unordered accesses are strong enough not to race.
func (r *raceState) harmless(s stamp, id uint32) bool {
	a, b := &r.events[s.event()], &r.events[id]
	if min(a.scope, b.scope) == scopeCTA && !r.b.sameCTA(int(a.warp), int(b.warp)) {
		return false
	}
	if a.flags&b.flags&eventReduction != 0 {
		return true
	}
	return a.flags&b.flags&eventStrong != 0 && (a.flags|b.flags)&eventAsync == 0
}

// side is where a race happens.
type side struct {
	w     *warp
	in    *inst
	lane  int
	row   int // of a matrix's row: whose address it is
	space ptx.Space
	addr  uint64
	id    uint32 // event
	write bool
	bytes []byte // what the access reads or writes, as it was before
	data  []byte // what a bulk copy writes to global memory

	cell, width int // bytes of the access before those of the cell, and of the cell; 0 is all

	several stamp // severalLanes of what a whole warp reads together
	wide    bool  // a range of cells is read
}

// same says whether a store leaves the cell's bytes as they are.
func (at *side) same() bool {
	if at.data != nil {
		return bytes.Equal(at.bytes[:len(at.data)], at.data)
	}
	m := at.in.mem
	if m == nil || at.bytes == nil {
		return false
	}
	switch at.in.rule {
	case ruleStoreMatrix:
		row := at.w.matrixRow(at.in, at.row)
		return bytes.Equal(at.bytes[:len(row)], row[:])
	case ruleStore:
	default:
		return false
	}
	first, end := at.cell, at.cell+at.width
	if at.width == 0 {
		end = m.bytes()
	}
	for j := first / m.size; j < len(m.data) && j*m.size < end; j++ {
		differ := low(at.w.element(&m.data[j], at.lane), 8*m.size) ^ readElement(at.bytes[j*m.size:], m.size)
		from, to := max(first-j*m.size, 0), min(end-j*m.size, m.size)
		if low(differ>>(8*from), 8*(to-from)) != 0 {
			return false
		}
	}
	return true
}

// read notes a read of a cell; false if a write of it is nothing that may be read.
func (r *raceState) read(c *cell, at *side) bool {
	me := stamp(at.id)<<eventShift | at.several | stamp(at.lane)
	ordered := c.w < r.floor || r.checkWrite(c, at)
	if len(r.alikes) > 0 && ordered {
		r.againstAlike(c, at)
	}
	switch {
	case c.r < r.floor:
		c.r = me
	case c.r|severalLanes == me|severalLanes:
		c.r |= at.several
	default:
		r.addReader(c, me, at)
	}
	return ordered
}

// write notes a write of a cell.
func (r *raceState) write(c *cell, at *side) {
	me := stamp(at.id)<<eventShift | stamp(at.lane)
	ordered := c.w < r.floor || c.w == me || r.checkWrite(c, at)
	if c.r >= r.floor && (ordered || c.r > c.w) {
		r.checkReads(c, at)
	}
	if len(r.alikes) > 0 {
		r.againstAlike(c, at)
	}
	r.bury(c, c.w, r.events[at.id].flags&eventStrong != 0)
	c.w, c.r = me, r.earlier(c, at)
	if len(r.rivals) > 0 && r.events[at.id].flags&eventStrong == 0 {
		delete(r.rivals, c)
	}
}

// checkWrite compares an access with the cell's last write; false if the two race.
func (r *raceState) checkWrite(c *cell, at *side) bool {
	if c.w&specialStamp != 0 {
		r.reportInFlight(c.w, at)
		return false
	}
	if len(r.rivals) > 0 {
		r.againstRivals(c, at)
	}
	if r.before(c.w, at.w, at.lane) {
		return true
	}
	if r.harmless(c.w, at.id) {
		if at.write && c.w.event() != at.id {
			r.addRival(c)
		}
		if len(r.buried) > 0 {
			r.againstBuried(c, at)
		}
		return true
	}
	copied := r.events[c.w.event()].flags&eventAsync != 0
	if at.write && copied == (at.data != nil) && !r.b.l.checks.has(checkSameValue) && (at.same() || c.w.event() == at.id && at.rounded(r.events[at.id].lanes)) {
		r.keepAlike(c, at)
		return true
	}
	r.report(c.w, at, true)
	return false
}

// checkReads compares a write with the cell's reads.
func (r *raceState) checkReads(c *cell, at *side) {
	if c.r&specialStamp == 0 {
		r.checkRead(c.r, at)
		return
	}
	l := r.lists(at.space)
	for i := r.current(l, c); i != 0; i = l.all[i].next {
		r.checkRead(l.all[i].s, at)
	}
}

func (r *raceState) checkRead(s stamp, at *side) {
	if !r.before(s, at.w, at.lane) && !r.harmless(s, at.id) && !r.metSince(s, at) {
		r.report(s, at, false)
	}
}

// report reports two accesses that nothing orders.
func (r *raceState) report(s stamp, at *side, otherWrote bool) {
	e := &r.events[s.event()]
	lane := s.lane()
	if s&severalLanes != 0 && int(e.warp) == at.w.index && lane == at.lane {
		if others := e.lanes &^ (1 << at.lane); others != 0 {
			lane = firstLane(others)
		}
	}
	class := bench.SharedRace
	if at.space == ptx.SpaceGlobal {
		class = bench.GlobalRace
	}
	if (e.flags|r.events[at.id].flags)&eventAsync != 0 {
		class = bench.AsyncCopyRace
	}
	if strings.HasPrefix(e.src.Name, "mbarrier.") || at.in.mbar != nil {
		class = bench.MbarrierMisuse // initialised or invalidated
	}
	if at.space == ptx.SpaceShared && class != bench.MbarrierMisuse {
		r.noteRaced(at)
	}
	if r.b.faults.again(faultKey{class: class, in: at.w.source(at.in), other: e.src}, 1) {
		return
	}
	r.reportAs(class, at, e.src, int(e.warp), lane, verb(otherWrote || e.flags&eventWrote != 0)+unordered)
}

// noteRaced notes the cell of a race: what was read there before anybody wrote it is no
// second defect, whichever of several reads the race is reported of.
func (r *raceState) noteRaced(at *side) {
	if r.raced == nil {
		r.raced = map[int]bool{}
	}
	r.raced[int(r.b.offset(at.addr))>>r.grain+at.cell>>r.grain] = true
}

func verb(wrote bool) string {
	if wrote {
		return "wrote"
	}
	return "read"
}

// reportAs adds a race to the block's faults.
func (r *raceState) reportAs(class bench.FaultClass, at *side, other *ptx.Instruction, warp, lane int, what string) {
	b := r.b
	if !b.l.reports(class) || r.unready {
		return
	}
	src := at.w.source(at.in)
	f := b.faults.add(faultKey{class: class, in: src, other: other}, 1)
	if f == nil {
		return
	}
	f.Kernel = b.l.prog.name
	f.Site = b.site(at.w.index, at.lane, src)
	addr := at.addr
	f.Address, f.Space = &addr, at.space.String()
	site := b.site(warp, lane, other)
	f.Other = &site
	act := "reads"
	if at.write {
		act = "writes"
	}
	where := ""
	if at.space == ptx.SpaceGlobal {
		where = ", " + b.l.dev.mem.describe(addr)
	}
	who := fmt.Sprintf("thread %v", site.Thread)
	if site.Block != f.Site.Block {
		who += fmt.Sprintf(" of block %v", site.Block)
	}
	f.Message = fmt.Sprintf("%s %s address %#x%s: %s %s", act, at.space, addr, where, who, what)
}

// sharedAccess notes the accesses of an instruction to shared memory.
func (r *raceState) sharedAccess(w *warp, in *inst, m *memOp, off *lanes64, size int, lanes uint32, write bool, flags eventFlags) {
	if r.off || lanes == 0 {
		return
	}
	at := side{w: w, in: in, space: ptx.SpaceShared, write: write, id: r.eventFor(w, in, m, flags)}
	for l := lanes; l != 0; l &= l - 1 {
		at.lane = firstLane(l)
		r.sharedLane(&at, off[at.lane], size)
	}
}

// sharedLane notes one lane's access to shared memory.
func (r *raceState) sharedLane(at *side, off uint64, size int) {
	me := stamp(at.id)<<eventShift | stamp(at.lane)
	if at.write && len(r.flights) > 0 {
		at.addr = r.b.address(off)
		r.againstReads(at, off, size)
	}
	cells := r.cells(off, size)
	at.width = 1 << r.grain
	for j := range cells {
		c := &cells[j]
		switch {
		case c.w >= r.floor || c.r >= r.floor:
			at.cell = j << r.grain
			at.addr, at.bytes = r.b.address(off), r.b.shared[off:]
			if at.write {
				r.write(c, at)
			} else {
				r.read(c, at)
			}
		case at.write:
			c.w, c.r = me, 0
		default:
			c.r = me
		}
	}
}

// reportInFlight reports an access to bytes that a copy is still to write, or
// that are a barrier's.
func (r *raceState) reportInFlight(s stamp, at *side) {
	c := r.inFlight[s.event()]
	switch {
	case c == nil:
	case c.mbarrier:
		if r.b.l.reports(bench.MbarrierMisuse) {
			at.w.faultAt(bench.MbarrierMisuse, at.in, at.lane, &at.addr, "shared", "a plain access to an mbarrier that is in use")
		}
	default:
		r.reportAs(bench.AsyncCopyRace, at, c.from, c.warp, c.lane(s), "has a copy in flight to it that was not waited for")
	}
}

// lane is the lane that issued a copy.
func (c *inFlight) lane(s stamp) int {
	if c.bulk != nil {
		return c.bulk.lane
	}
	return s.lane()
}

// newMark numbers what is in flight.
func (r *raceState) newMark(c *inFlight) uint32 {
	if n := len(r.freeMark); n > 0 {
		i := r.freeMark[n-1]
		r.freeMark = r.freeMark[:n-1]
		r.inFlight[i] = c
		return i
	}
	r.inFlight = append(r.inFlight, c)
	return uint32(len(r.inFlight) - 1)
}

// dropMark forgets what has landed.
func (r *raceState) dropMark(i uint32) {
	r.inFlight[i] = nil
	r.freeMark = append(r.freeMark, i)
}

// cells is the cells of a range of shared memory.
func (r *raceState) cells(off uint64, n int) []cell {
	r.touch(off, off+uint64(max(n, 1)))
	return r.shared[off>>r.grain : off>>r.grain+uint64(max(n>>r.grain, 1))]
}

// mark says that a range belongs to what is in flight.
func (r *raceState) mark(off uint64, n int, index uint32, lane int) {
	cells := r.cells(off, n)
	for i := off >> noteBits; i <= (off+uint64(max(n, 1))-1)>>noteBits; i++ {
		r.lines[i].inFlight = true
	}
	for j := range cells {
		cells[j] = cell{w: specialStamp | stamp(index)<<eventShift | stamp(lane)}
	}
}

// unmark makes a range that was in flight one that was written.
func (r *raceState) unmark(off uint64, n int, s stamp) {
	cells := r.cells(off, n)
	for j := range cells {
		if w := cells[j].w; w&specialStamp != 0 {
			if c := r.inFlight[w.event()]; c != nil && c.mbarrier {
				r.dropMark(w.event())
			}
		}
		cells[j] = cell{w: s}
	}
}

// asyncMark is where a copy in flight is known to the race detector.
type asyncMark struct{ index uint32 }

// markInFlight marks the destination of a cp.async that was issued.
func (w *warp) markInFlight(c *inFlight) {
	c.from, c.warp, c.fetch, c.reading = w.source(c.in), w.index, 0, 0
	r := w.b.race
	if r == nil || r.off || c.lanes == 0 {
		return
	}
	c.mark.index = r.newMark(c)
	r.fetching(c)
	m := &c.in.copy.dst
	at := side{w: w, in: c.in, space: ptx.SpaceShared, write: true, id: r.eventFor(w, c.in, m, eventAsync)}
	for l := c.lanes; l != 0; l &= l - 1 {
		at.lane = firstLane(l)
		r.claim(&at, c.dst[at.lane], m.size)
		r.mark(c.dst[at.lane], m.size, c.mark.index, at.lane)
	}
}

// split gives a part of a copy that is waited for on its own what it needs to be
// known by.
func (r *raceState) split(part *inFlight) {
	if r == nil || r.off {
		return
	}
	part.mark.index = r.newMark(part)
	for l := part.lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		r.mark(part.dst[i], part.in.copy.dst.size, part.mark.index, i)
	}
	if part.fetch > 0 {
		r.fetches.add(part)
	}
}

// claim compares a write that begins now with what happened in a range.
func (r *raceState) claim(at *side, off uint64, n int) {
	at.addr = r.b.address(off)
	if len(r.flights) > 0 {
		r.againstReads(at, off, n)
	}
	cells := r.cells(off, n)
	for j := range cells {
		if c := &cells[j]; c.w >= r.floor || c.r >= r.floor {
			r.write(c, at)
		}
	}
}

// markLanded turns the marks of lanes whose copy has completed into writes by
// those threads.
func (w *warp) markLanded(c *inFlight, lanes uint32) {
	r := w.b.race
	if r == nil || r.off {
		return
	}
	id := r.landing(c, lanes)
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		r.unmark(c.dst[i], c.in.copy.dst.size, stamp(id)<<eventShift|stamp(i))
	}
	if c.lanes == 0 {
		r.fetches.fetched(c)
		r.dropMark(c.mark.index)
	}
}
