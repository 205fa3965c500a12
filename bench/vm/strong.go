package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// strong makes an access one that other threads may wait for or be waited for
// by: but in shared memory it needs the block's turn.
func (d *decoder) strong(in *inst) {
	in.kind = kindControl
	in.ctl = strongAccess
}

func strongAccess(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	load := in.rule == ruleLoad
	if in.mem.space != ptx.SpaceShared {
		if !w.mayAct(in, !load) {
			return
		}
		w.b.heard = w.b.heard || load
	}
	r := w.b.race
	var addr lanes64
	if r != nil && !r.off {
		w.addresses(in.mem, &addr) // the load may overwrite them
		r.beforeStrong(in.mem)
	}
	w.runMasked(in, m)
	if r != nil && !r.off {
		if load {
			r.afterStrong(w, in.mem, &addr, m, 0, false)
		} else {
			r.afterStrong(w, in.mem, &addr, 0, m, false)
		}
	}
	w.pc++
	switch {
	case load:
		w.poll(in)
	case in.mem.space != ptx.SpaceShared:
		w.b.touched()
	}
}

// beforeStrong lets a strong access see global memory as it is.
func (r *raceState) beforeStrong(m *memOp) {
	if m.space != ptx.SpaceShared {
		r.flush()
	}
}

// afterStrong lets others see a strong access of lanes that read and lanes that wrote,
// and orders what it orders: lane by lane, as a lane of an atomic operation finds what
// those before it left there.
func (r *raceState) afterStrong(w *warp, m *memOp, addr *lanes64, reads, writes uint32, modifies bool) {
	if m.space != ptx.SpaceShared {
		r.flush()
	}
	for l := reads | writes; l != 0; l &= l - 1 {
		i := firstLane(l)
		if reads>>i&1 != 0 {
			l := r.location(w, m, addr[i], false)
			if l == nil && m.space != ptx.SpaceShared && r.b.l.across.located.crowded {
				l = r.anywhere()
			}
			r.strongRead(w, i, l, m)
		}
		tells := m.order.releases() || w.clock.fences
		if writes>>i&1 == 0 || !tells && modifies {
			continue
		}
		if l := r.location(w, m, addr[i], tells); l != nil {
			before := l.size()
			r.strongWrite(w, i, l, m, modifies)
			if !l.shared {
				r.b.l.across.located.grow(l.size() - before)
			}
		}
	}
}

// location is what is known of an address that strong accesses go to; nil if
// nothing is and none is to be made, or a launch keeps no more.
func (r *raceState) location(w *warp, m *memOp, addr uint64, make bool) *location {
	space := m.space
	if space == ptx.SpaceGeneric {
		if space = spaceOf(addr); space == ptx.SpaceShared {
			addr -= sharedWindow
		}
	}
	global := &r.b.l.across.located
	table := &global.at
	if space == ptx.SpaceShared {
		table = &r.locations
		addr, _ = w.find(addr, 1, true)
	}
	l := (*table)[addr]
	if l == nil && make && (space == ptx.SpaceShared || !global.crowded) {
		if *table == nil {
			*table = map[uint64]*location{}
		}
		l = &location{shared: space == ptx.SpaceShared}
		(*table)[addr] = l
		if !l.shared {
			global.grow(l.size())
		}
	}
	return l
}

// runMasked runs a control instruction's function for some lanes.
func (w *warp) runMasked(in *inst, m uint32) {
	saved := w.mask
	w.mask = m
	if w.undefs > 0 {
		undefined(w, in)
	} else {
		in.fn[modeFull](w, in)
	}
	w.mask = saved
	w.setMode()
}

// pollGap is how close together two polls are when they are the same loop's, which may
// poll with up to mostPolls instructions.
const (
	pollGap   = 256
	mostPolls = 4
)

// recentPoll is an instruction that a warp polled with, and what w.executed was then.
type recentPoll struct {
	in *inst
	at int64
}

// poll notes that the warp looked at something that others change. Doing so
// again and again, it lets the others run.
func (w *warp) poll(in *inst) {
	if w.pollsAgain(in) {
		w.stop = stopYield
		if in.mem == nil || in.mem.space != ptx.SpaceShared {
			w.b.polled = true
		}
	}
	w.notePoll(in)
}

// notePoll makes an instruction the one that the warp polled with last.
func (w *warp) notePoll(in *inst) {
	w.lastPoll = in
	at := 0 // of this one, or the oldest
	for i := range w.polls {
		if w.polls[i].in == in {
			at = i
			break
		}
		if w.polls[i].at < w.polls[at].at {
			at = i
		}
	}
	w.polls[at] = recentPoll{in, w.executed}
}

// pollsAgain says whether an instruction is one that the warp has just polled with.
func (w *warp) pollsAgain(in *inst) bool {
	for i := range w.polls {
		if w.polls[i].in == in {
			return w.executed-w.polls[i].at < pollGap
		}
	}
	return false
}
