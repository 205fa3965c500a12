package vm

import (
	"unsafe"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// reader is one of several reads of a cell.
type reader struct {
	s     stamp
	owner uint32 // the cell's number
	epoch uint32
	next  uint32 // index of another; 0 is none
}

// lists is where the readers of a space's cells are kept.
func (r *raceState) lists(space ptx.Space) *[]reader {
	if space == ptx.SpaceGlobal {
		return &r.globalReaders
	}
	return &r.readers
}

// number tells cells apart: how far one lies from the first of shared memory.
func (r *raceState) number(c *cell) uint32 {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(r.shared)))
	return uint32((uintptr(unsafe.Pointer(c)) - first) / unsafe.Sizeof(cell{}))
}

// current is the first of a cell's readers since the last barrier, 0 if there
// is none. The list starts over at barriers: a number in it may by now be
// another cell's.
func (r *raceState) current(list []reader, c *cell) uint32 {
	n := uint32(c.r &^ specialStamp)
	if int(n) >= len(list) || list[n].epoch != r.epoch || list[n].owner != r.number(c) {
		return 0
	}
	return n
}

// addReader keeps a read beside others that are not ordered before it.
func (r *raceState) addReader(c *cell, me stamp, at *side) {
	if at.space != ptx.SpaceGlobal && len(r.readers) > r.mostReaders {
		r.packReaders()
	}
	list := r.lists(at.space)
	add := func(s stamp, next uint32) uint32 {
		e := reader{s: s, epoch: r.epoch, next: next, owner: r.number(c)}
		*list = append(*list, e)
		return uint32(len(*list) - 1)
	}
	if c.r&specialStamp == 0 {
		switch {
		case c.r.event() == at.id:
			c.r |= severalLanes
		case r.before(c.r, at.w, at.lane):
			c.r = me
		default:
			c.r = specialStamp | stamp(add(me, add(c.r, 0)))
		}
		return
	}
	n := r.current(*list, c)
	if n == 0 {
		c.r = me
		return
	}
	for i := n; i != 0; i = (*list)[i].next {
		e := &(*list)[i]
		if e.s.event() == at.id {
			if e.s.lane() != at.lane {
				e.s |= severalLanes
			}
			return
		}
		// A later read of the same thread replaces an earlier one.
		if ev := &r.events[e.s.event()]; int(ev.warp) == at.w.index && ev.agent == 0 && e.s&severalLanes == 0 && e.s.lane() == at.lane {
			e.s = me
			return
		}
	}
	c.r = specialStamp | stamp(add(me, n))
}

// forgetReaders empties the list of shared memory's readers.
func (r *raceState) forgetReaders() {
	r.readers = append(r.readers[:0], reader{})
	r.mostReaders = 4 * len(r.shared)
}

// packReaders drops the readers of cells that were written since, in a block whose
// warps talk by mbarriers alone, such as a persistent one: its list never starts over
// at a barrier. A cell's readers come to lie together, and those of neighbours beside
// them.
func (r *raceState) packReaders() {
	packed := make([]reader, 1, r.mostReaders)
	for i := range r.shared {
		c := &r.shared[i]
		if c.r&specialStamp == 0 {
			continue
		}
		n := r.current(r.readers, c)
		c.r = 0
		for next := uint32(0); n != 0; n = r.readers[n].next {
			e := r.readers[n]
			e.next = next
			packed = append(packed, e)
			next = uint32(len(packed) - 1)
			c.r = specialStamp | stamp(next)
		}
	}
	r.readers = packed
	r.mostReaders = max(r.mostReaders, 2*len(packed))
}
