package vm

import (
	"fmt"
	"math/bits"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// across is what a launch knows of all blocks' accesses.
type across struct {
	records records
	shadows shadows
	located located
	held    []heldUse

	line openLine // that is being compared
}

func (x *across) init(l limits) {
	x.records.most, x.records.next, x.shadows.most = l.records, l.records, l.shadows
	x.located.most = l.located
}

// flush writes the block's pages back and compares its accesses with those of
// other blocks. The block must have its turn.
func (r *raceState) flush() {
	r.meetOthers()
	r.keepPages()
	r.pages.reset()
	if len(r.past) == 0 {
		r.globalReaders.all = r.globalReaders.all[:1]
	}
}

// meetOthers is flush for a block that ends.
func (r *raceState) meetOthers() {
	x := &r.b.l.across
	for _, p := range r.pages.list {
		if !r.off {
			x.shadows.press(r.b.l.before.excess())
			r.compare(x, p)
		}
		if p.dirty {
			r.b.l.before.write(p)
		}
	}
	for i := range r.reads {
		r.compareReads(x, &r.reads[i])
	}
	r.reads = r.reads[:0]
	if !r.hadTurn {
		r.hadTurn = true
		r.b.l.hadTurn(r.b)
	}
}

// readSet is what a block read of a page before a barrier: which bytes, and one
// of the reads for all of them.
type readSet struct {
	al    *allocation
	off   int64
	bytes [pageLines]uint64
	s     stamp
}

// maxReadSets bounds how many a block keeps before it needs its turn.
const maxReadSets = 1 << 18

// packReads makes room: at a barrier, of a page that the block only read nothing
// matters any more but which words.
func (r *raceState) packReads() {
	grain := r.b.l.kern.globalGrain
	kept := r.pages.list[:0]
	for _, p := range r.pages.list {
		if p.dirty {
			kept = append(kept, p)
			continue
		}
		set := readSet{al: p.al, off: p.off}
		for lines := p.lines; lines != 0; lines &= lines - 1 {
			line := lines.first()
			for i, c := range p.line(line) {
				if s := r.lastReader(c.r); s != 0 {
					set.bytes[line] |= (1<<(1<<grain) - 1) << (i << grain)
					set.s = s
				}
			}
		}
		if set.s != 0 {
			r.reads = append(r.reads, set)
		}
		r.pages.free = append(r.pages.free, p)
	}
	r.pages.list = kept
	clear(r.pages.slots)
	for _, p := range kept {
		r.pages.place(p)
	}
}

// compareReads is compare for packed reads.
func (r *raceState) compareReads(x *across, set *readSet) {
	p := &page{key: (set.al.addr + uint64(set.off)) >> shadowBits, al: set.al, off: set.off}
	for line, m := range set.bytes {
		if m == 0 {
			continue
		}
		x.load(p, line)
		for m != 0 {
			first := bits.TrailingZeros64(m) &^ 3
			t := r.trace(x, set.s, uint32(m>>first&bytesOfTrace))
			m &^= bytesOfTrace << first
			word := first >> 2
			mine := meeter{r, x, p, p.key<<shadowBits + uint64(line<<pageLineBits+first), t, set.s.event(), false}
			mine.againstWrites(word)
			mine.againstRivals(word)
			x.keepRead(word, t)
		}
		x.store()
	}
}

// writeBack copies the bytes that were written to the allocation.
func (p *page) writeBack() {
	for s := p.lines; s != 0; s &= s - 1 {
		i := s.first()
		to, from := p.al.data[p.off+int64(i<<pageLineBits):], p.data[i<<pageLineBits:]
		for m := p.written[i]; m != 0; {
			first := bits.TrailingZeros64(m)
			end := first + bits.TrailingZeros64(^(m >> first))
			copy(to[first:end], from[first:end])
			m &= ^uint64(0) << end
		}
		if p.al.undef != nil && p.written[i] != 0 {
			p.al.undef[p.off>>pageLineBits+int64(i)] &^= p.written[i]
		}
	}
}

// compare finds accesses to a page that race with other blocks', and leaves
// traces for the blocks to come.
func (r *raceState) compare(x *across, p *page) {
	for s := p.lines; s != 0; s &= s - 1 {
		r.compareLine(x, p, s.first())
	}
}

func (r *raceState) compareLine(x *across, p *page, line int) {
	x.load(p, line)
	grain := r.b.l.kern.globalGrain
	per := 4 >> grain // cells of a word
	whole := uint32(1)<<(1<<grain) - 1
	cells := p.line(line)
	for word := range lineWords {
		var wm, rm uint32
		var ws, rs stamp
		several := false
		for j := range per {
			c := &cells[word*per+j]
			if c.w != 0 {
				wm |= whole << (j << grain)
				ws = c.w
			}
			if rd := r.lastReader(c.r); rd != 0 {
				rm |= whole << (j << grain)
				rs = rd
				several = several || c.r&specialStamp != 0
			}
		}
		addr := p.key<<shadowBits + uint64(line<<pageLineBits+4*word)
		if rm != 0 && r.events[rs.event()].flags&eventReadOnly != 0 {
			mine := meeter{r, x, p, addr, r.trace(x, rs, rm), rs.event(), false}
			mine.stale(word)
		}
		if wm != 0 {
			t := r.trace(x, ws, wm)
			mine := meeter{r, x, p, addr, t, ws.event(), true}
			if raced := mine.againstWrites(word); !raced && rm&wm != 0 && r.plain(ws) {
				earlier := meeter{r, x, p, addr, r.trace(x, rs, rm&wm), rs.event(), false}
				earlier.againstWrites(word)
			}
			mine.againstRivals(word)
			mine.against(x.line.r[word], false)
			x.keepWrite(word, t)
		}
		if rm != 0 {
			t := r.trace(x, rs, rm)
			mine := meeter{r, x, p, addr, t, rs.event(), false}
			if !several || x.line.w[word] == 0 {
				mine.againstWrites(word)
				mine.againstRivals(word)
			} else {
				r.readsAgainstWrites(&mine, word, cells[word*per:word*per+per])
			}
			x.keepRead(word, t)
		}
	}
	x.store()
}

// lastReader is a cell's read or, of several, that by the thread of the highest number:
// who tells other blocks that all are done, and may do so too early, is most often the
// first.
func (r *raceState) lastReader(s stamp) stamp {
	if s&specialStamp == 0 {
		return s
	}
	l := r.globalReaders.all
	last := &l[uint32(s&^specialStamp)]
	for i := last.next; i != 0; i = l[i].next {
		if r.events[l[i].s.event()].warp > r.events[last.s.event()].warp {
			last = &l[i]
		}
	}
	return last.s
}

// readsAgainstWrites compares the reads of a word that several threads read with the
// other blocks' writes of it.
func (r *raceState) readsAgainstWrites(m *meeter, word int, cells []cell) {
	l, grain := r.globalReaders.all, r.b.l.kern.globalGrain
	for j := range cells {
		s, bytes := cells[j].r, (uint32(1)<<(1<<grain)-1)<<(j<<grain)
		if s&specialStamp == 0 {
			if s != 0 {
				m.readAgainstWrites(word, s, bytes)
			}
			continue
		}
		for i := uint32(s &^ specialStamp); i != 0; i = l[i].next {
			if m.readAgainstWrites(word, l[i].s, bytes) {
				break
			}
		}
	}
}

func (m *meeter) readAgainstWrites(word int, s stamp, bytes uint32) bool {
	m.mine, m.id = m.r.trace(m.x, s, bytes), s.event()
	raced := m.againstWrites(word)
	m.againstRivals(word)
	return raced
}

// meeter is an access of a block that is compared with those of others.
type meeter struct {
	r     *raceState
	x     *across
	p     *page
	addr  uint64
	mine  trace
	id    uint32 // event
	write bool
}

// againstWrites compares with the last writes of a word's bytes; true if they race.
func (m *meeter) againstWrites(word int) bool {
	o := &m.x.line
	raced := m.against(o.w[word], true)
	for i := range o.parts {
		raced = m.against(o.older[i][word], true) || raced
	}
	return raced
}

// againstRivals compares a read, or a strong write, with a write before the last.
func (m *meeter) againstRivals(word int) {
	if m.x.line.rival && (!m.write || m.r.events[m.id].flags&eventStrong != 0) {
		m.against(m.x.line.rivals[word], true)
	}
}

// against compares with one access of another block; true if the two race.
func (m *meeter) against(old trace, oldWrote bool) bool {
	if old == 0 || old.bytes()&m.mine.bytes() == 0 {
		return false
	}
	r := m.r
	a := m.x.access(old)
	block := int64(a.block)
	if block == r.b.order {
		return false
	}
	e := &r.events[m.id]
	if e.remote != nil && e.remote[m.mine.lane()].beyond(old) {
		return false
	}
	if e.remote != nil && a.knownTo(e.remote[m.mine.lane()].of(block), old.lane()) {
		if oldWrote && e.flags&eventProxy != 0 && a.flags&eventAsync == 0 && !a.knownTo(e.remote[m.mine.lane()].proxyOf(block).global, old.lane()) {
			m.report(bench.MissingProxyFence, a, old.lane(), unseenWrite)
		}
		return false
	}
	if a.flags&e.flags&eventReduction != 0 && min(a.scope, e.scope) >= scopeGPU {
		return false
	}
	async := (a.flags|e.flags)&eventAsync != 0
	if a.flags&e.flags&eventStrong != 0 && !async && min(a.scope, e.scope) >= scopeGPU {
		return false
	}
	copies := a.flags&e.flags&eventAsync != 0 && (a.flags|e.flags)&eventReduction == 0
	if m.write && oldWrote && (copies || !async) && !r.b.l.checks.has(checkSameValue) && m.p.sameAs(m.addr, old.bytes()&m.mine.bytes()) {
		return false
	}
	class := bench.GlobalRace
	if async {
		class = bench.AsyncCopyRace
	}
	m.report(class, a, old.lane(), verb(oldWrote || a.flags&eventWrote != 0)+unordered)
	return true
}

// unordered is what is wrong with two accesses that race.
const unordered = " it and nothing orders the two"

func (m *meeter) report(class bench.FaultClass, a *accessRecord, lane int, how string) {
	b := m.r.b
	l := b.l
	if !l.reports(class) {
		return
	}
	e := &m.r.events[m.id]
	f := b.faults.add(faultKey{class: class, in: e.src, other: a.src}, 1)
	if f == nil {
		return
	}
	f.Kernel = l.prog.name
	f.Site = b.site(int(e.warp), m.mine.lane(), e.src)
	addr := m.addr
	f.Address, f.Space = &addr, "global"
	var site bench.Site
	site.Block, site.Thread = l.siteOf(int64(a.block), int(a.warp), lane)
	l.mod.locate(&site, a.src)
	f.Other = &site
	act := "reads"
	if m.write || e.flags&eventWrote != 0 {
		act = "writes"
	}
	f.Message = fmt.Sprintf("%s global address %#x, %s: thread %v of block %v %s", act, addr, l.dev.mem.describe(addr), site.Thread, site.Block, how)
}

// sameAs says whether bytes of a word are what memory holds.
func (p *page) sameAs(addr uint64, bytes uint32) bool {
	off := int(addr & shadowMask)
	for i := range 4 {
		if bytes>>i&1 != 0 && p.data[off+i] != p.al.data[p.off+int64(off+i)] {
			return false
		}
	}
	return true
}

// heldUse is a fault of an undefined value from memory that waits for the next
// ordering point: if a write that nothing orders before the read turns up, the
// race is the one defect and this is not reported.
type heldUse struct {
	key   faultKey
	fault bench.Fault
	o     origin
	block int64
}

// hold keeps a use of an undefined value back; false if nothing can come.
func (b *block) hold(w *warp, key faultKey, lane int, from uint32, use string) bool {
	r := b.race
	if r == nil || r.off {
		return false
	}
	if r.heldOf == nil {
		r.heldOf = map[faultKey][]int{}
	}
	like := r.heldOf[key]
	if len(like) >= maxHeld { // as the last of them
		r.held[like[len(like)-1]].fault.Count++
		return true
	}
	var one faultList
	one.most = 1
	saved := b.faults
	b.faults = one
	w.reportUndefined(key.in, lane, from, use)
	made := b.faults
	b.faults = saved
	if len(made.list) == 0 {
		return true
	}
	r.heldOf[key] = append(like, len(r.held))
	r.held = append(r.held, heldUse{key: key, fault: made.list[0], o: b.origins[from], block: b.order})
	return true
}

// maxHeld is how many uses of one kind are held back.
const maxHeld = 64

// settleHeld decides about the uses of values from shared memory, and drops
// those from global memory that other threads of the block wrote.
func (r *raceState) settleHeld() {
	if len(r.held) == 0 {
		return
	}
	kept := r.held[:0]
	for _, h := range r.held {
		switch by := r.writerOf(&h); {
		case by.raced:
			r.copiedLate(&h, &by)
		case h.o.space == ptx.SpaceGlobal:
			kept = append(kept, h)
		default:
			r.b.addHeld(&h)
		}
	}
	r.held = kept
	clear(r.heldOf)
	for i := range kept {
		r.heldOf[kept[i].key] = append(r.heldOf[kept[i].key], i)
	}
}

func (b *block) addHeld(h *heldUse) {
	if f := b.faults.add(h.key, h.fault.Count); f != nil {
		*f = h.fault
	}
}

// copiedLate reports a read of bytes of shared memory that a copy was to bring:
// it was not waited for, and not even issued.
func (r *raceState) copiedLate(h *heldUse, by *writer) {
	b := r.b
	if by.copy == nil || h.o.space != ptx.SpaceShared || r.unready || !b.l.reports(bench.AsyncCopyRace) {
		return
	}
	f := b.faults.add(faultKey{class: bench.AsyncCopyRace, in: h.o.src, other: by.copy}, 1)
	if f == nil {
		return
	}
	f.Kernel = b.l.prog.name
	f.Site, f.Address, f.Space = b.site(h.o.warp, h.o.lane, h.o.src), &h.o.addr, h.o.space.String()
	other := b.site(by.warp, by.lane, by.copy)
	f.Other = &other
	f.Message = fmt.Sprintf("reads shared address %#x: the copy of thread %v that is to write it was not waited for", h.o.addr, other.Thread)
}

// writer is who wrote what was read before, or is about to.
type writer struct {
	raced      bool
	copy       *ptx.Instruction // of an asynchronous write
	warp, lane int
}

// writerOf finds another thread of the block that wrote what was read, or might
// have where an mbarrier orders nothing.
func (r *raceState) writerOf(h *heldUse) writer {
	if r.unready && h.o.space == ptx.SpaceShared {
		return writer{raced: true}
	}
	read := h.o.src
	if h.o.taken != nil {
		read = h.o.taken
	}
	for _, k := range r.b.faults.keys {
		switch k.class {
		case bench.SharedRace, bench.GlobalRace, bench.AsyncCopyRace:
			if k.in == read || k.other == read {
				return writer{raced: true}
			}
		}
	}
	if h.o.taken != nil {
		return writer{}
	}
	cells, first, grain := r.shared, int(r.b.offset(h.o.addr)), r.grain
	if h.o.space == ptx.SpaceGlobal {
		for i := range h.o.size {
			if by := r.writer(r.pastWriter(h.o.addr+uint64(i)), h); by.raced {
				return by
			}
		}
		p := r.pageAt(h.o.addr, h.o.size)
		if p == nil {
			return writer{}
		}
		cells, first, grain = p.cells, int(h.o.addr&shadowMask), r.b.l.kern.globalGrain
	}
	for i := first; i < first+h.o.size; i++ {
		c := i >> grain
		if c < 0 || c >= len(cells) {
			return writer{}
		}
		if h.o.space == ptx.SpaceShared && r.raced[c] {
			return writer{raced: true}
		}
		if by := r.writer(cells[c].w, h); by.raced {
			return by
		}
	}
	return writer{}
}

// writer is who left a cell's stamp since the last barrier, if not who read it.
func (r *raceState) writer(s stamp, h *heldUse) writer {
	switch {
	case s&specialStamp != 0:
		by := writer{raced: true}
		if c := r.inFlight[s.event()]; c != nil && !c.mbarrier {
			by.copy, by.warp, by.lane = c.from, c.warp, c.lane(s)
		}
		return by
	case s < r.floor || h.o.epoch != r.epoch: // before a barrier that the read came after, or the other way round
		return writer{}
	}
	e := &r.events[s.event()]
	if e.flags&eventAsync == 0 && r.b.warps[e.warp].clock.own[s.lane()].knows(h.o.warp, h.o.lane, h.o.tick) {
		return writer{} // who wrote it had heard of the read
	}
	if e.flags&eventStrong != 0 && h.o.order != weak {
		return writer{} // two strong accesses are no race that could be the cause
	}
	by := writer{raced: int(e.warp) != h.o.warp || s.lane() != h.o.lane, warp: int(e.warp), lane: s.lane()}
	if e.flags&eventAsync != 0 {
		by.copy = e.src
	}
	return by
}

// settleGlobal decides at the launch's end about values from global memory. A write by
// another block is the defect only where it races with the read: else the value was needed
// before anybody wrote it.
func (l *launch) settleGlobal() {
	x := &l.across
	for i := range x.held {
		h := &x.held[i]
		if x.wroteElsewhere(l, h) && l.raced(h.o.src) {
			continue
		}
		if f := l.faults.add(h.key, h.fault.Count); f != nil {
			*f = h.fault
		}
	}
}

// raced says whether a race of an instruction is among the faults, or may have been left
// out.
func (l *launch) raced(in *ptx.Instruction) bool {
	if l.faults.more > 0 || l.across.records.n >= l.across.records.most {
		return true
	}
	for _, class := range []bench.FaultClass{bench.GlobalRace, bench.AsyncCopyRace} {
		if !l.reports(class) || l.faults.names(class, in) {
			return true
		}
	}
	return false
}

// wroteElsewhere says whether another block wrote what was read.
func (x *across) wroteElsewhere(l *launch, h *heldUse) bool {
	al := l.dev.mem.find(h.o.addr)
	if al == nil {
		return false
	}
	off := int64(h.o.addr - al.addr)
	for i := off &^ 3; i < off+int64(h.o.size) && al.shadows != nil; i += 4 {
		word := int(i & (pageLineSize - 1) >> 2)
		x.shadows.open(&x.line, &al.shadows[i>>pageLineBits])
		if x.byOther(x.line.w[word], h) {
			return true
		}
		for j := range x.line.parts {
			if x.byOther(x.line.older[j][word], h) {
				return true
			}
		}
	}
	return false
}

// byOther says whether a write is another block's than that of a use.
func (x *across) byOther(t trace, h *heldUse) bool {
	return t != 0 && int64(x.access(t).block) != h.block
}
