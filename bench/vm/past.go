package vm

// A block lets its copies of global memory go whenever it must see what others wrote.
// What its own threads did there since the last barrier is kept beside, so that they
// are still held against one another.

// pastPages are cells of pages that were let go, by page.
type pastPages map[uint64][]cell

// keepPages keeps what the cells of all pages say of the time since the last barrier.
func (r *raceState) keepPages() {
	for _, p := range r.pages.list {
		if !r.off {
			r.keepPast(p)
		}
	}
}

// keepPast moves what a page's cells say of the time since the last barrier to those
// kept beside.
func (r *raceState) keepPast(p *page) {
	old := r.past[p.key]
	if old == nil {
		if len(r.past) >= maxPages || !r.recent(p.cells) {
			r.forgetRivals(p.cells)
			return
		}
		if r.past == nil {
			r.past = pastPages{}
		}
		old = make([]cell, len(p.cells))
		r.past[p.key] = old
	}
	for i := range p.cells {
		c, kept := &p.cells[i], &old[i]
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
// a page that was let go since.
func (r *raceState) againstPast(p *page, at *side, size int) {
	cells := r.past[p.key]
	if cells == nil {
		return
	}
	off, grain := int(at.addr&shadowMask), r.b.l.kern.globalGrain
	cells = cells[off>>grain : off>>grain+max(size>>grain, 1)]
	if !at.write && r.events[at.id].flags&eventProxy != 0 {
		r.seenByProxy(cells, at)
	}
	bytes, whole := at.bytes, at.data
	for j := range cells {
		c := &cells[j]
		if c.w < r.floor && c.r < r.floor {
			continue
		}
		at.cell, at.width = j<<grain, 1<<grain
		if whole != nil {
			i := j << grain
			at.bytes, at.data = bytes[i:], whole[i:min(i+1<<grain, size)]
		}
		if c.w >= r.floor && c.w.event() != at.id {
			r.checkWrite(c, at)
		}
		if at.write && c.r >= r.floor {
			r.checkReads(c, at)
		}
	}
	at.bytes, at.data = bytes, whole
}

// pastWriter is who wrote to a byte of global memory since the last barrier, by a page
// that was let go.
func (r *raceState) pastWriter(addr uint64) stamp {
	if cells := r.past[addr>>shadowBits]; cells != nil {
		return cells[int(addr&shadowMask)>>r.b.l.kern.globalGrain].w
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
