package vm

// What lanes tell each other that meet at a collective. Only bar.warp.sync orders what they
// wrote themselves. But shipped code has one lane wait for another warp, and after a shuffle
// or a vote all of them read what that warp wrote; or all read a word, and after a shuffle
// one writes it.

// meet lets lanes that met at a collective know what it orders for them.
func (w *warp) meet(c *collective, lanes uint32) {
	r := w.b.race
	switch {
	case r == nil || r.off:
		return
	case c.orders:
		w.orderLanes(lanes)
		return
	case !w.clock.any:
		return // where nobody waits for a lane, barriers alone order
	}
	if !w.heardAlike(lanes) {
		w.shareHeard(lanes)
	}
	if lanes == w.live {
		w.clock.passReads()
	}
}

// passReads notes that all of a warp's lanes met after what they read so far.
func (c *warpClock) passReads() {
	if c.last == c.tick {
		c.tick++
	}
	c.met = c.tick - 1
}

// metSince says whether a lane writes after all of its warp met, and they after a read.
func (r *raceState) metSince(read stamp, at *side) bool {
	e := &r.events[read.event()]
	return int(e.warp) == at.w.index && e.tick <= at.w.clock.met && e.agent == 0 && (e.flags|r.events[at.id].flags)&eventAsync == 0
}

// heardAlike says whether some lanes know the same of other warps and of other blocks.
func (w *warp) heardAlike(lanes uint32) bool {
	c := &w.clock
	first := firstLane(lanes)
	for l := lanes & (lanes - 1); l != 0; l &= l - 1 {
		i := firstLane(l)
		if !c.own[i].isBeside(c.own[first], w.index) || !c.remote[i].is(c.remote[first]) {
			return false
		}
	}
	return true
}

// shareHeard lets each of some lanes know what any of them knows of other warps and of
// other blocks.
func (w *warp) shareHeard(lanes uint32) {
	w.b.race.settleLog()
	c := &w.clock
	var own vclock
	var remote clock
	var proxy seen
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		own, remote, proxy = own.join(c.own[i]), remote.join(c.remote[i]), proxy.join(c.proxy[i])
	}
	var before, after vclock // lanes that knew the same know the same again
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		if old := c.own[i]; after == nil || !old.is(before) {
			before, after = old, old.beside(own, w.index)
		}
		c.own[i], c.remote[i], c.proxy[i] = after, remote, proxy
	}
	c.snap = nil
	c.tick++
}
