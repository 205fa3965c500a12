package vm

// Most reads of shared memory between two barriers meet no write at all. So those
// of whole warps are only listed, and the lines they touch noted; what they left in
// the cells is worked out when something else comes to one of those lines, or when
// somebody learns something, since what a reader had not heard of then counts.

// lineNote is what happened in a line of shared memory since the last barrier of
// the whole block: the number of such barriers, and 1, where it did.
type lineNote struct {
	logged   uint32 // reads are listed
	cells    uint32 // cells were looked at
	inFlight bool   // copies in flight, or mbarriers, may be in the cells
}

// loggedRead is a read of words by all lanes of a warp.
type loggedRead struct {
	w     *warp
	in    *inst
	p     *pattern
	first uint32 // offset of the first lane's
	id    uint32 // event
}

const (
	noteBits      = 7 // log2 of the bytes of a line
	maxLoggedLine = 64
	maxLogged     = 1 << 13
)

// logRead lists a read of words by all lanes; false if it must be compared at once.
func (r *raceState) logRead(w *warp, in *inst, first uint64, p *pattern) bool {
	from, to := (int64(first)+p.extent.least)>>noteBits, (int64(first)+p.extent.most-1)>>noteBits
	if to-from >= maxLoggedLine {
		return false
	}
	lines := r.lines[from : to+1]
	now := r.epoch + 1
	for i := range lines {
		if l := &lines[i]; l.cells == now || l.inFlight && !r.landedIn(from+int64(i)) {
			return false
		}
	}
	for i := range lines {
		lines[i].logged = now
	}
	if len(r.log) >= maxLogged {
		r.settleLog()
	}
	p.logged = now
	r.log = append(r.log, loggedRead{w, in, p, uint32(first), r.eventFor(w, in, in.mem, 0)})
	return true
}

// landedIn says whether nothing is in flight to a line any more.
func (r *raceState) landedIn(line int64) bool {
	from := line << noteBits >> r.grain
	to := min(from+1<<noteBits>>r.grain, int64(len(r.shared)))
	for i := from; i < to; i++ {
		if r.shared[i].w&specialStamp != 0 {
			return false
		}
	}
	r.lines[line].inFlight = false
	return true
}

// settleLog notes the listed reads in the cells.
func (r *raceState) settleLog() {
	for i := range r.log {
		e := &r.log[i]
		off := e.p.offsets(e.first)
		r.noteWords(e.w, e.in, e.id, &off)
	}
	r.log = r.log[:0]
}

// touch is to come before cells of a range are looked at.
func (r *raceState) touch(off, end uint64) {
	now := r.epoch + 1
	for i := off >> noteBits; i <= (end-1)>>noteBits; i++ {
		l := &r.lines[i]
		if l.logged == now && len(r.log) > 0 {
			r.settleLog()
		}
		l.cells = now
	}
}
