package vm

// A block lets its copies of global memory go whenever it must see what others wrote.
// What its own threads did there since the last barrier is kept beside, so that they
// are still held against one another.

// pastLines are cells of lines of pages that were let go, by address >> pageLineBits.
type pastLines map[uint64][]cell

// maxPast is how many are kept.
const maxPast = maxPages * pageLines

// keepPages keeps what the cells of all pages say of the time since the last barrier.
func (r *raceState) keepPages() {
	if r.off {
		return
	}
	for _, p := range r.pages.list {
		for s := p.lines; s != 0; s &= s - 1 {
			i := s.first()
			r.keepPast(p.key*pageLines+uint64(i), p.line(i))
		}
	}
}

// keepPast moves what a line's cells say of the time since the last barrier to those
// kept beside.
func (r *raceState) keepPast(line uint64, cells []cell) {
	old := r.past[line]
	if old == nil {
		if len(r.past) >= maxPast || !r.recent(cells) {
			r.forgetRivals(cells)
			return
		}
		if r.past == nil {
			r.past = pastLines{}
		}
		old = make([]cell, len(cells))
		r.past[line] = old
	}
	for i := range cells {
		c, kept := &cells[i], &old[i]
		if c.w >= r.floor || c.w != 0 && r.b.l.kern.fetches {
			if c.w >= r.floor && c.w&specialStamp == 0 {
				r.bury(kept, kept.w, r.events[c.w.event()].flags&eventStrong != 0)
			}
			*kept = cell{w: c.w}
		}
		if len(r.buried) > 0 {
			r.moveBuried(kept, c)
		}
		if len(r.rivals) > 0 {
			r.moveRivals(kept, c)
		}
		if len(r.alikes) > 0 {
			r.moveAlike(kept, c)
		}
		r.eachReader(c, func(s stamp) { r.keepReader(kept, s) })
	}
}

// forgetRivals drops what is kept beside cells that come to stand for others.
func (r *raceState) forgetRivals(cells []cell) {
	for i := range cells {
		if len(r.rivals) > 0 {
			delete(r.rivals, &cells[i])
		}
		if len(r.buried) > 0 {
			delete(r.buried, &cells[i])
		}
		if len(r.alikes) > 0 {
			delete(r.alikes, &cells[i])
		}
	}
}

// recent says whether something of cells is to be kept.
func (r *raceState) recent(cells []cell) bool {
	for i := range cells {
		if cells[i].w >= r.floor || cells[i].r >= r.floor || cells[i].w != 0 && r.b.l.kern.fetches {
			return true
		}
	}
	return false
}

// eachReader calls f for each read of a cell of global memory since the last barrier.
func (r *raceState) eachReader(c *cell, f func(s stamp)) {
	switch {
	case c.r < r.floor:
	case c.r&specialStamp == 0:
		f(c.r)
	default:
		for i := r.current(&r.globalReaders, c); i != 0; i = r.globalReaders.all[i].next {
			f(r.globalReaders.all[i].s)
		}
	}
}

// keepReader adds a read to a cell's, in place of those by the same threads before it.
func (r *raceState) keepReader(c *cell, s stamp) {
	l := &r.globalReaders
	switch {
	case c.r < r.floor:
		c.r = s
		return
	case c.r&specialStamp == 0:
		if joined, ok := r.joined(c.r, s); ok {
			c.r = joined
			return
		}
		c.r = l.stamp(l.add(reader{s: c.r, epoch: r.epoch}))
	}
	n := r.current(l, c)
	for i := n; i != 0; i = l.all[i].next {
		if joined, ok := r.joined(l.all[i].s, s); ok {
			l.all[i].s = joined
			return
		}
	}
	c.r = l.stamp(l.add(reader{s: s, epoch: r.epoch, next: n}))
}

// joined is one stamp for two reads, if whoever knows of it knows of both.
func (r *raceState) joined(old, s stamp) (stamp, bool) {
	if old.event() == s.event() {
		if old.lane() != s.lane() {
			if r.b.l.kern.parts {
				return 0, false
			}
			s |= severalLanes
		}
		return s | old&severalLanes, true
	}
	a, b := &r.events[old.event()], &r.events[s.event()]
	if a.agent != 0 || b.agent != 0 || a.warp != b.warp || a.tick > b.tick {
		return 0, false
	}
	return s, r.lanesOf(old)&^r.lanesOf(s) == 0
}

// lanesOf is the lanes that a stamp stands for.
func (r *raceState) lanesOf(s stamp) uint32 {
	if s&severalLanes != 0 {
		return r.events[s.event()].lanes
	}
	return 1 << s.lane()
}

// againstPast compares an access with what the block's threads did to the same bytes of
// pages that were let go since.
func (r *raceState) againstPast(at *side, size int) {
	grain, seen := r.b.l.kern.globalGrain, at.write || r.events[at.id].flags&eventProxy == 0
	bytes, whole := at.bytes, at.data
	for first := 0; first < size; {
		addr := at.addr + uint64(first)
		n := min(size-first, pageLineSize-int(addr&(pageLineSize-1)))
		if cells := r.past[addr>>pageLineBits]; cells != nil {
			cells = cells[int(addr&(pageLineSize-1))>>grain:][:max(n>>grain, 1)]
			seen = seen || r.seenByProxy(cells, at)
			r.againstCells(cells, at, first, bytes, whole)
		}
		first += n
	}
	at.bytes, at.data = bytes, whole
}

// againstCells is againstPast for cells of a line, from a byte of the access on.
func (r *raceState) againstCells(cells []cell, at *side, first int, bytes, whole []byte) {
	at.width = 1 << r.b.l.kern.globalGrain
	for j := range cells {
		c := &cells[j]
		if c.w < r.floor && c.r < r.floor {
			continue
		}
		at.cell = first + j*at.width
		if whole != nil {
			at.bytes, at.data = bytes[at.cell:], whole[at.cell:min(at.cell+at.width, len(whole))]
		}
		if c.w >= r.floor && c.w.event() != at.id {
			r.checkWrite(c, at)
		}
		if at.write && c.r >= r.floor {
			r.checkReads(c, at)
		}
	}
}

// pastWriter is who wrote to a byte of global memory since the last barrier, by a page
// that was let go.
func (r *raceState) pastWriter(addr uint64) stamp {
	if cells := r.past[addr>>pageLineBits]; cells != nil {
		return cells[int(addr&(pageLineSize-1))>>r.b.l.kern.globalGrain].w
	}
	return 0
}

// barrierPast is for when a barrier has come: nothing before it matters any more, but for
// writes that a bulk load may not see.
func (r *raceState) barrierPast() {
	if !r.b.l.kern.fetches {
		clear(r.past)
		return
	}
	for key, cells := range r.past {
		written := false
		for i := range cells {
			cells[i].r = 0
			written = written || cells[i].w != 0
		}
		if !written {
			delete(r.past, key)
		}
	}
}
