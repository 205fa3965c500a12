package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// Writes of one value that nothing orders are silent, and so a cell's last write does
// not stand for all that its thread did before: a read, or a write of another value, races
// with the other thread's all the same. The last of those is kept past a plain write, as the
// cell's read: both race with writes alone, since who reads races with the last write too.

// earlier is the last plain access of a cell, ordered before the plain write that comes now,
// that this does not stand for; 0 is none.
func (r *raceState) earlier(c *cell, at *side) stamp {
	if !r.plain(stamp(at.id) << eventShift) {
		return 0
	}
	read := c.r
	switch {
	case read&specialStamp == 0:
	case at.space == ptx.SpaceGlobal:
		read = r.lastReader(read)
	default:
		read = 0
	}
	if read != 0 && !(r.plain(read) && r.before(read, at.w, at.lane)) {
		read = 0
	}
	if w := c.w; w > read && w&specialStamp == 0 && r.plain(w) && r.before(w, at.w, at.lane) && !at.same() {
		r.events[w.event()].flags |= eventWrote
		return w
	}
	return read
}

// plain says whether an access is a weak one of a thread.
func (r *raceState) plain(s stamp) bool {
	return r.events[s.event()].flags&(eventStrong|eventAsync) == 0
}
