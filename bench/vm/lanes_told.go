package vm

// What lanes tell each other that meet at a collective. Only bar.warp.sync orders what they
// did themselves. But shipped code has one lane wait for another warp, and after a shuffle
// or a vote all of them read what that warp wrote.

// meet lets lanes that met at a collective know what it orders for them.
func (w *warp) meet(c *collective, lanes uint32) {
	switch r := w.b.race; {
	case r == nil || r.off:
	case c.orders:
		w.orderLanes(lanes)
	case w.clock.any && !w.heardAlike(lanes):
		w.shareHeard(lanes)
	}
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
