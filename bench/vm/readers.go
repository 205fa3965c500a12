package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// reader is one of several reads of a cell.
type reader struct {
	s      stamp
	epoch  uint32
	next   uint32 // index of another; 0 is none
	common bool   // in a list of many cells, which does not change
}

// readerLists is where the readers of a space's cells are kept. A cell's stamp is the
// number of the first, from base on; at a barrier, numbers so far become meaningless.
type readerLists struct {
	all  []reader
	base uint32
}

func (l *readerLists) add(e reader) uint32 {
	l.all = append(l.all, e)
	return uint32(len(l.all) - 1)
}

func (l *readerLists) stamp(n uint32) stamp { return specialStamp | stamp(l.base+n) }

// copy makes a list that one cell may change, or many have in common.
func (l *readerLists) copy(n uint32, common bool) uint32 {
	first, last := uint32(0), uint32(0)
	for ; n != 0; n = l.all[n].next {
		e := l.all[n]
		e.next, e.common = 0, common
		i := l.add(e)
		if last != 0 {
			l.all[last].next = i
		} else {
			first = i
		}
		last = i
	}
	return first
}

// forget empties the lists; numbers of cells that have not been looked at since stay
// below base.
func (l *readerLists) forget() {
	l.base += uint32(len(l.all))
	l.all = append(l.all[:0], reader{})
}

// lists is where the readers of a space's cells are kept.
func (r *raceState) lists(space ptx.Space) *readerLists {
	if space == ptx.SpaceGlobal {
		return &r.globalReaders
	}
	return &r.readers
}

// current is the first of a cell's readers since the last barrier, 0 if there is none.
func (r *raceState) current(l *readerLists, c *cell) uint32 {
	n := uint32(c.r&^specialStamp) - l.base // far too much for one from before the barrier
	if uint64(n) >= uint64(len(l.all)) || l.all[n].epoch != r.epoch {
		return 0
	}
	return n
}

// succeeds says whether a read by the same threads as an earlier one, and perhaps more,
// takes its place: who knows of the later one knows of both.
func (r *raceState) succeeds(s stamp, at *side) bool {
	e := &r.events[s.event()]
	switch {
	case int(e.warp) != at.w.index || e.agent != 0:
		return false
	case s&severalLanes != 0:
		return at.several != 0 && e.lanes&^r.events[at.id].lanes == 0
	}
	return s.lane() == at.lane || at.several != 0
}

// addReader keeps a read beside others that are not ordered before it.
func (r *raceState) addReader(c *cell, me stamp, at *side) {
	if at.space != ptx.SpaceGlobal && len(r.readers.all) > r.mostReaders {
		r.packReaders()
	}
	l := r.lists(at.space)
	if c.r&specialStamp == 0 {
		switch {
		case c.r.event() == at.id && (at.several != 0 || !r.b.l.kern.parts):
			c.r = again(c.r, me, at)
		case r.before(c.r, at.w, at.lane) || r.succeeds(c.r, at):
			c.r = me
		default:
			e := reader{s: c.r, epoch: r.epoch, common: at.wide}
			e.next, e.s = l.add(e), me
			c.r = l.stamp(l.add(e))
		}
		return
	}
	n := r.current(l, c)
	if n == 0 {
		c.r = me
		return
	}
	if l.all[n].common {
		n = l.copy(n, at.wide)
		c.r = l.stamp(n)
	}
	for i, after := n, (*reader)(nil); i != 0; i = l.all[i].next {
		e := &l.all[i]
		if after != nil && r.supersedes(after.s, e.s) {
			after.next = e.next
			continue
		}
		after = e
		if e.s.event() == at.id && !r.b.l.kern.parts {
			if e.s.lane() != at.lane {
				e.s = again(e.s, me, at)
			}
			return
		}
		if r.succeeds(e.s, at) {
			e.s = me
			return
		}
	}
	c.r = l.stamp(l.add(reader{s: me, epoch: r.epoch, next: n, common: at.wide}))
}

// again is the stamp of a read by several lanes of an instruction. In global memory the
// last of them is named, as who tells other blocks that all are done is most often the first.
func again(s, me stamp, at *side) stamp {
	if at.space == ptx.SpaceGlobal {
		s = me
	}
	return s | severalLanes
}

// readCells has a read noted in neighbouring cells by a function that says whether
// nothing was wrong. Most cells were left alike by one instruction, and what becomes of
// one then becomes of the next.
func (r *raceState) readCells(s span, at *side, note func(c *cell) bool) {
	at.wide = true
	var was cell
	var now stamp
	known := false
	cells := r.cells(s.off, int(s.end-s.off))
	for j := range cells {
		c := &cells[j]
		if known && *c == was {
			c.r = now
			continue
		}
		was = *c
		at.addr = r.b.address(s.off + uint64(j)<<r.grain)
		known = note(c) && len(r.rivals)+len(r.alikes) == 0
		now = c.r
	}
}

// supersedes says whether who knows of one read knows of an earlier one: both are on
// the same mbarrier's clock, or of one lane's copies.
func (r *raceState) supersedes(later, earlier stamp) bool {
	a, b := &r.events[later.event()], &r.events[earlier.event()]
	return a.agent != 0 && a.agent == b.agent && a.tick >= b.tick &&
		(later.lane() == earlier.lane() && (later|earlier)&severalLanes == 0 || !r.copies(a.agent))
}

// forgetReaders empties the list of shared memory's readers.
func (r *raceState) forgetReaders() {
	if r.readers.base > 1<<30 {
		r.readers.base = 0
		for i := range r.shared {
			if c := &r.shared[i]; c.r&specialStamp != 0 {
				c.r = 0
			}
		}
	}
	r.readers.forget()
	r.mostReaders = 4 * len(r.shared)
}

// packReaders drops the readers of cells that were written since, in a block whose
// warps talk by mbarriers alone, such as a persistent one: its list never starts over
// at a barrier. A cell's readers come to lie together, and those of neighbours beside
// them.
func (r *raceState) packReaders() {
	l := &r.readers
	packed := readerLists{all: make([]reader, 1, r.mostReaders), base: l.base}
	moved := map[uint32]stamp{} // lists that cells have in common
	for i := range r.shared {
		c := &r.shared[i]
		if c.r&specialStamp == 0 {
			continue
		}
		first := r.current(l, c)
		if s, ok := moved[first]; ok {
			c.r = s
			continue
		}
		c.r = 0
		for next, n := uint32(0), first; n != 0; n = l.all[n].next {
			e := l.all[n]
			e.next = next
			next = packed.add(e)
			c.r = packed.stamp(next)
		}
		if l.all[first].common {
			moved[first] = c.r
		}
	}
	r.readers = packed
	r.mostReaders = max(r.mostReaders, 2*len(packed.all))
}
