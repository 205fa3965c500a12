package vm

// Writes of one value that nothing orders are silent, and a cell names only the last. Who
// knows of that one alone races with the others, by a read or by another value.

// alikes are writes of cells that others of the same value, unordered, came after.
type alikes map[*cell]stamp

// mostAlikes is how many cells they are kept of, as kernels may write all alike.
const mostAlikes = 1 << 12

// keepAlike keeps the last write of a cell that one of the same value is about to replace,
// or the one that is kept already.
func (r *raceState) keepAlike(c *cell, at *side) {
	if c.w.event() == at.id || r.alikes[c] != 0 || len(r.alikes) >= mostAlikes || !r.plain(c.w) {
		return
	}
	if r.alikes == nil {
		r.alikes = alikes{}
	}
	r.alikes[c] = c.w
}

// againstAlike compares an access with the write that is kept beside a cell's last.
func (r *raceState) againstAlike(c *cell, at *side) {
	s := r.alikes[c]
	if s < r.floor || at.write && at.same() {
		return
	}
	if !r.before(s, at.w, at.lane) && !r.harmless(s, at.id) {
		r.report(s, at, true)
	}
	if at.write {
		delete(r.alikes, c)
	}
}

// moveAlike hands a cell's on to another, which is to stand for it.
func (r *raceState) moveAlike(to, from *cell) {
	if s, ok := r.alikes[from]; ok {
		delete(r.alikes, from)
		r.alikes[to] = s
	}
}
