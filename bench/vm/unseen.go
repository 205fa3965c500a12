package vm

// A copy that tells an mbarrier is known to those who wait for the phase that
// it completes, and to nobody else, however early it landed: a barrier of the
// block orders it only if some thread that came there knew of it.

// unseenCopy is a copy that has landed and that perhaps no thread knows of yet.
type unseenCopy struct {
	id    uint32 // its event, on an mbarrier's clock or that of its warp's copies
	agent uint32
	lane  int
	tick  uint32
	spans []span    // of shared memory, that it wrote
	c     *bulkCopy // nil of cp.async
}

// unseenCopies are a block's, oldest first.
type unseenCopies struct {
	list []unseenCopy
	kept int // of them when the list was gone through last
}

// landed notes a copy that is on a clock which threads hear of by an mbarrier.
func (r *raceState) landed(id uint32, lane int, spans []span, c *bulkCopy) {
	e := &r.events[id]
	me := stamp(id)<<eventShift | stamp(lane)
	for _, s := range spans {
		r.unmark(s.off, int(s.end-s.off), me)
	}
	l := &r.unseen
	if len(l.list) >= 2*l.kept+64 {
		r.forgetKnown()
	}
	l.list = append(l.list, unseenCopy{id: id, agent: e.agent, lane: lane, tick: e.tick, spans: spans, c: c})
}

// forgetKnown drops unseenCopies that some thread knows of.
func (r *raceState) forgetKnown() {
	l := &r.unseen
	kept := l.list[:0]
	for _, x := range l.list {
		if !r.anyoneKnows(&x) {
			kept = append(kept, x)
		}
	}
	l.list, l.kept = kept, len(kept)
}

func (r *raceState) anyoneKnows(x *unseenCopy) bool {
	for _, w := range r.b.warps {
		if !w.clock.any {
			continue
		}
		for lane := range w.clock.own {
			if w.clock.own[lane].knows(int(x.agent), x.lane, x.tick) {
				return true
			}
		}
	}
	return false
}

// carryOver makes unseenCopies that nobody knew of at a barrier ones that come
// after it.
func (r *raceState) carryOver() {
	for i := range r.unseen.list {
		x := &r.unseen.list[i]
		old := stamp(x.id)
		x.id = uint32(len(r.events))
		r.events = append(r.events, r.events[old])
		for _, s := range x.spans {
			cells := r.cells(s.off, int(s.end-s.off))
			for j := range cells {
				if w := cells[j].w; w&specialStamp == 0 && stamp(w.event()) == old {
					cells[j] = cell{w: stamp(x.id)<<eventShift | w&(1<<eventShift-1)}
				}
			}
		}
	}
}

// knowsOf says whether a lane knows all of a clock about its own block.
func (r *raceState) knowsOf(w *warp, lane int, c clock) bool {
	own := &w.clock.own[lane]
	for i, k := range c.of(r.b.order) {
		if i >= len(r.b.warps) {
			if r.unknown(*own, i, &k) {
				return false
			}
			continue
		}
		for l := range warpSize {
			tick := k.all
			if k.lanes != nil {
				tick = max(tick, k.lanes[l])
			}
			if tick > r.ticks[i] && r.b.warps[i].started>>l&1 != 0 && (i != w.index || l != lane) && !own.knows(i, l, tick) {
				return false
			}
		}
	}
	return true
}

// unknown says whether a clock tells of something on an agent's that nobody knew of at
// the last barrier of the block, and that a thread has not heard of since.
func (r *raceState) unknown(own vclock, agent int, k *known) bool {
	for i := range r.unseen.list {
		if x := &r.unseen.list[i]; int(x.agent) == agent && x.tick <= k.at(x.lane) && !own.knows(agent, x.lane, x.tick) {
			return true
		}
	}
	return k.all > r.told[uint32(agent)] && !own.knows(agent, 0, k.all)
}

// noteTold notes what mbarriers' clocks tell of at a barrier of the block.
func (r *raceState) noteTold() {
	for _, m := range r.b.mbarriers {
		if r.told == nil {
			r.told = map[uint32]uint32{}
		}
		r.told[r.agent(m)] = m.completed
	}
}
