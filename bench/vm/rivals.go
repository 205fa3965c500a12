package vm

import "slices"

// Of writes that nothing orders and that are strong, as atomic ones are, a cell names
// only the last. A plain read by the thread that did the last races with the others all
// the same: they are kept beside.
//
// A plain write is not held against them: who was the last to count up resets the counter,
// and has no fence before.

// rivals are strong writes of cells that another strong one, which nothing orders after
// them, came after.
type rivals map[*cell][]stamp

// addRival keeps the last write of a cell that another is about to replace.
func (r *raceState) addRival(c *cell) {
	if r.rivals == nil {
		r.rivals = rivals{}
	}
	list := r.rivals[c]
	for i, s := range list {
		if joined, ok := r.joined(s, c.w); ok {
			list[i] = joined
			return
		}
	}
	r.rivals[c] = append(list, c.w)
}

// againstRivals compares a read with a cell's strong writes but the last.
func (r *raceState) againstRivals(c *cell, at *side) {
	if at.write {
		return
	}
	for _, s := range r.rivals[c] {
		if !r.before(s, at.w, at.lane) && !r.harmless(s, at.id) {
			r.report(s, at, true)
			return
		}
	}
}

// moveRivals hands a cell's on to another, which is to stand for it.
func (r *raceState) moveRivals(to, from *cell) {
	list := r.rivals[from]
	delete(r.rivals, from)
	if len(list) > 0 {
		r.rivals[to] = slices.Concat(r.rivals[to], list)
	}
}
