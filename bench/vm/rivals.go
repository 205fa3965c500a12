package vm

import "slices"

// Of writes that nothing orders and that are strong, as atomic ones are, a cell names
// only the last. A plain read by the thread that did the last races with the others all
// the same: they are kept beside.
//
// A plain write is not held against them: who was the last to count up resets the counter,
// and has no fence before.

// The other way round, a strong write does not bury a plain one by the same thread, or by
// one before it: others' strong accesses do not race with the strong write, but with the
// plain one. A counter that one thread clears, and then all count on, is such.

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

// buried are plain writes of cells that a strong one, ordered after them, came after.
type buried map[*cell]stamp

// bury keeps what a write is about to replace, if it is a plain one and that is strong.
func (r *raceState) bury(c *cell, old stamp, strong bool) {
	switch {
	case !strong:
		if len(r.buried) > 0 {
			delete(r.buried, c)
		}
	case old >= r.floor && old&specialStamp == 0 && r.events[old.event()].flags&(eventStrong|eventAsync) == 0:
		if r.buried == nil {
			r.buried = buried{}
		}
		r.buried[c] = old
	}
}

// againstBuried compares a strong access with the plain write before the strong ones.
func (r *raceState) againstBuried(c *cell, at *side) {
	if s := r.buried[c]; s >= r.floor && !r.before(s, at.w, at.lane) {
		r.report(s, at, true)
	}
}

// moveBuried hands a cell's on to another, which is to stand for it.
func (r *raceState) moveBuried(to, from *cell) {
	if s, ok := r.buried[from]; ok {
		delete(r.buried, from)
		r.buried[to] = s
	}
}
