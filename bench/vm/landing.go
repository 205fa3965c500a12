package vm

// Copies by cp.async of a kernel that tells mbarriers of them are on a clock of their
// warp's own, whose time is the order of their issue: a thread that waits for a group,
// and whoever waits for an mbarrier, knows of those before, however they landed.

// copier is the number of the clock of a warp's copies.
func (r *raceState) copier(w *warp) uint32 { return uint32(len(r.b.warps) + 1 + w.index) }

// copies says whether a clock is one of a warp's copies.
func (r *raceState) copies(agent uint32) bool {
	return r.b.l.kern.told && int(agent) <= 2*len(r.b.warps)
}

// fetched is the event of a copy that reads global memory.
func (r *raceState) fetched(c *inFlight, w *warp) uint32 {
	if !r.b.l.kern.told {
		return r.eventFor(w, c.in, &c.in.copy.src, eventAsync)
	}
	if c.reading == 0 {
		c.reading = r.newEvent(w, c.from, eventAsync, 0, c.lanes)
		e := &r.events[c.reading]
		e.agent, e.tick = r.copier(w), uint32(c.order)
	}
	return c.reading
}

// landing is the event of lanes of a copy that land.
func (r *raceState) landing(c *inFlight, lanes uint32) uint32 {
	w := r.b.warps[c.warp]
	id := r.newEvent(w, c.from, eventAsync|eventCopy, 0, lanes)
	if r.b.l.kern.told {
		e := &r.events[id]
		e.agent, e.tick = r.copier(w), uint32(c.order)
	}
	return id
}

// copiesOf is what those know who know of a lane's copies up to one.
func (r *raceState) copiesOf(w *warp, lane int, order uint64) vclock {
	var ticks [warpSize]uint32
	ticks[lane] = uint32(order)
	agent := r.copier(w)
	v := make(vclock, agent+1)
	v[agent].lanes = &ticks
	return v
}

// learnCopies lets each of some lanes know of its own copies up to one.
func (w *warp) learnCopies(lanes uint32, order uint64) {
	r := w.b.race
	if r == nil || r.off || !w.b.l.kern.told {
		return
	}
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		r.learn(w, 1<<i, clock{{block: r.b.order, v: r.copiesOf(w, i, order)}})
	}
}
