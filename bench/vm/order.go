package vm

// How operations order what threads do: each changes what lanes know.

// snapshot is all that some lanes know together, their own past included: what
// they pass on when they release.
func (r *raceState) snapshot(w *warp, lanes uint32) clock {
	own := make(vclock, len(r.b.warps))
	for i := range own {
		own[i].all = r.ticks[i]
	}
	var remote clock
	proxy := r.proxied
	if w.clock.any {
		for l := lanes; l != 0; l &= l - 1 {
			i := firstLane(l)
			own = own.join(w.clock.own[i])
			remote = remote.join(w.clock.remote[i])
			proxy = proxy.join(w.clock.proxy[i])
		}
	}
	own = own.with(len(r.b.warps), w.index, lanes, w.started, w.clock.tick)
	return clock{{r.b.order, own, proxy}}.join(remote)
}

// learn adds to what some lanes know.
func (r *raceState) learn(w *warp, lanes uint32, c clock) {
	if len(c) == 0 {
		return
	}
	r.settleLog()
	own, remote, proxy := c.of(r.b.order), c.without(r.b.order), c.proxyOf(r.b.order)
	var before, after vclock // lanes that knew the same know the same again
	first := true
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		old := w.clock.own[i]
		if first || !old.is(before) {
			before, after, first = old, old.join(own), false
		}
		w.clock.own[i] = after
		if proxy.shared != nil || proxy.global != nil || proxy.own != nil {
			w.clock.proxy[i] = w.clock.proxy[i].join(proxy)
		}
		if len(remote) > 0 {
			w.clock.remote[i] = w.clock.remote[i].join(remote)
			w.clock.hasRemote = true
		}
	}
	w.clock.any = true
	w.clock.snap = nil
	w.clock.tick++
}

// arriveClock passes what lanes know on to a barrier they come to.
func (c *cta) arriveClock(bar *barrier, w *warp, lanes uint32) {
	r := c.b.race
	if r == nil || r.off {
		return
	}
	if bar.need == 0 && len(c.b.ctas) == 1 {
		return // all will meet: the floor moves instead
	}
	bar.clock = bar.clock.join(r.snapshot(w, lanes))
	w.clock.tick++
}

// everybody says whether all threads that run together wait at a barrier.
func (c *cta) everybody(bar *barrier) bool {
	if len(c.b.ctas) > 1 {
		return false
	}
	if bar.need == 0 {
		return true
	}
	for i, w := range c.warps {
		waiting := uint32(0)
		for j := range w.paths {
			if p := &w.paths[j]; p.wait.kind == waitBarrier && &c.bars[p.wait.id] == bar {
				waiting |= p.mask
			}
		}
		if w.live&^waiting != 0 || bar.arrived[i]&^waiting&w.live != 0 {
			return false
		}
		if gone := w.started &^ w.live; gone != 0 && w.clock.last > c.b.race.ticks[i] && !c.b.race.arrivedLast(bar, w, gone) {
			return false
		}
	}
	return true
}

// arrivedLast says whether lanes that have left came to a barrier and did nothing after.
func (r *raceState) arrivedLast(bar *barrier, w *warp, gone uint32) bool {
	known := bar.clock.of(r.b.order)
	for l := gone; l != 0; l &= l - 1 {
		if !known.knows(w.index, firstLane(l), w.clock.last) {
			return false
		}
	}
	return true
}

// orderBarrier orders what came before a barrier before what follows.
func (c *cta) orderBarrier(bar *barrier) {
	r := c.b.race
	if r == nil || r.off {
		return
	}
	defer c.passFences(bar)
	if c.everybody(bar) {
		r.moveFloor()
		return
	}
	if bar.need == 0 {
		r.settleHeld()
	}
	for _, w := range c.warps {
		for i := range w.paths {
			p := &w.paths[i]
			if p.wait.kind != waitBarrier || &c.bars[p.wait.id] != bar {
				continue
			}
			r.learn(w, p.mask, bar.clock)
		}
	}
}

// passFences lets all that meet at a barrier pass on what some of them knew at a
// fence.sc, and know at their own next one what others of them had read: one thread
// may write a flag after the barrier, or read it before, and the others have the
// fences. Any fence.sc behind the read comes after those before the write, as the
// other order would have the read before what it read.
func (c *cta) passFences(bar *barrier) {
	var parts []fencedLanes
	for _, w := range c.warps {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitBarrier && &c.bars[p.wait.id] == bar {
				parts = append(parts, fencedLanes{w, p.mask})
			}
		}
	}
	passFences(parts)
}

// fencedLanes are lanes of a warp that meet others.
type fencedLanes struct {
	w     *warp
	lanes uint32
}

func passFences(parts []fencedLanes) {
	var fenced, heard clock
	for _, p := range parts {
		c := &p.w.clock
		lanes := p.lanes
		if c.alike && lanes != 0 {
			lanes = 1 << firstLane(lanes)
		}
		for l := lanes; (c.fences || c.reads) && l != 0; l &= l - 1 {
			i := firstLane(l)
			if f := &c.fenced[i]; f.sc && f.scope >= scopeGPU {
				fenced = fenced.join(f.c)
			}
			heard = heard.join(c.pending[i]).join(c.passed[i])
		}
	}
	for _, p := range parts {
		c := &p.w.clock
		c.fences = c.fences || len(fenced) > 0
		c.reads = c.reads || len(heard) > 0
		if c.alike && p.lanes != 0 {
			i := firstLane(p.lanes)
			if c.passed[i].covers(heard) && (len(fenced) == 0 || c.fenced[i].sc && c.fenced[i].c.covers(fenced)) {
				continue
			}
		}
		c.alike = c.areAlike(p.lanes, p.w.live, fenced)
		for l := p.lanes; (c.fences || c.reads) && l != 0; l &= l - 1 {
			i := firstLane(l)
			c.passed[i] = heard
			if f := &c.fenced[i]; len(fenced) > 0 && (f.c == nil || f.scope >= scopeGPU) {
				*f = scoped{f.c.join(fenced), scopeGPU, true}
			}
		}
	}
}

// areAlike says whether, after they met, all lanes of a warp pass on the same, and
// read nothing that they keep to themselves.
func (c *warpClock) areAlike(lanes, live uint32, fenced clock) bool {
	if lanes != live {
		return false
	}
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		if len(c.pending[i]) > 0 || c.fenced[i].c != nil && (c.fenced[i].scope < scopeGPU || !fenced.covers(c.fenced[i].c)) {
			return false
		}
	}
	return true
}

// moveFloor orders all that happened in the block before all that follows.
func (r *raceState) moveFloor() {
	b := r.b
	b.settleTensor()
	var remote clock
	known := false
	for _, w := range b.warps {
		if w.clock.any {
			known = true
			for i := range w.clock.remote {
				remote = remote.join(w.clock.remote[i])
				r.proxied = r.proxied.join(w.clock.proxy[i])
				if len(b.ctas) > 1 {
					r.heard = r.heard.join(w.clock.own[i])
				}
			}
		}
	}
	for _, c := range b.ctas {
		c.keepUses()
	}
	r.forgetKnown()
	r.noteTold()
	for i, w := range b.warps {
		r.ticks[i] = w.clock.tick
		w.clock.tick++
		if known {
			w.clock.own, w.clock.proxy = [warpSize]vclock{}, [warpSize]seen{}
			for l := range w.clock.remote {
				w.clock.remote[l] = remote
			}
			w.clock.any, w.clock.hasRemote, w.clock.snap = len(remote) > 0, len(remote) > 0, nil
		}
	}
	r.settleHeld()
	if len(r.pages.list) > maxPages/2 && !r.hadTurn && len(r.reads) < maxReadSets {
		r.packReads()
	}
	if len(r.events) > compactionSize {
		r.unseen.list = r.unseen.list[:0]
		clear(r.past)
		r.compact()
	}
	r.floor = stamp(len(r.events)) << eventShift
	r.epoch++
	r.barrierPast()
	clear(r.rivals)
	clear(r.buried)
	clear(r.alikes)
	r.log = r.log[:0]
	r.carryOver()
	r.forgetReaders()
}

// orderLanes is bar.warp.sync: each of the lanes comes to know what all of them
// know.
func (w *warp) orderLanes(lanes uint32) {
	r := w.b.race
	if r == nil || r.off {
		return
	}
	r.settleLog()
	var own vclock
	var proxy seen
	var remote clock
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		own = own.join(w.clock.own[i])
		remote = remote.join(w.clock.remote[i])
		proxy = proxy.join(w.clock.proxy[i])
	}
	if w.clock.fences || w.clock.reads {
		passFences([]fencedLanes{{w, lanes}})
	}
	own = own.with(len(w.b.warps), w.index, lanes, w.started, w.clock.tick)
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		w.clock.own[i], w.clock.remote[i], w.clock.proxy[i] = own, remote, proxy
	}
	w.clock.any, w.clock.snap = true, nil
	w.clock.tick++
}

// location is what a place in memory passes on from those who released there:
// to everybody, and to the threads of one block, or cluster, alone.
type location struct {
	shared bool // in shared memory, where all are near
	far    clock
	near   []nearby
}

// nearby is what threads of a block, or of a cluster, released for their mates.
type nearby struct {
	block int64
	c     clock
	own   []clock // in a cluster: for each of its blocks, by what its own threads released
}

// of is what a block released for itself; nil is nothing.
func (l *location) of(block int64) *nearby {
	for i := range l.near {
		if l.near[i].block == block {
			return &l.near[i]
		}
	}
	return nil
}

// fence is membar or fence: what a lane knows now it may pass on by later
// relaxed writes, and what it read relaxed before it comes to know.
func (w *warp) orderFence(in *inst, lanes uint32) {
	f := in.fence
	r := w.b.race
	if r == nil || r.off {
		return
	}
	if f.proxy != "" {
		if f.address {
			r.acquireMaps(w, in, lanes)
		}
		r.proxyFence(w, f, lanes)
		return
	}
	if f.inits {
		for l := lanes; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.clock.inits[i] = w.clock.inits[i].join(r.snapshot(w, 1<<i))
		}
		if r.strict() {
			r.fenceInits(w, lanes)
		}
		w.clock.tick++
	}
	if f.order == weak {
		return
	}
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		if f.order.acquires() {
			heard := &w.clock.pending
			if f.scope < scopeGPU {
				heard = &w.clock.nearby
			}
			r.learn(w, 1<<i, heard[i])
			if f.order == sequential && f.scope >= scopeGPU {
				r.learn(w, 1<<i, w.clock.passed[i])
			}
		}
		if f.order.releases() {
			w.clock.fenced[i] = scoped{r.snapshot(w, 1<<i), f.scope, f.order == sequential}
			w.clock.fences, w.clock.alike = true, false
		}
	}
	w.clock.tick++
}

// heardAt is what a location tells a thread that reads it in a scope.
func (r *raceState) heardAt(w *warp, l *location, s scope) clock {
	var c clock
	n := l.of(r.b.order)
	if n != nil && len(n.own) > w.cta.rank {
		c = n.own[w.cta.rank]
	}
	if s == scopeCTA && len(r.b.ctas) > 1 {
		return c
	}
	if n != nil {
		c = c.join(n.c)
	}
	if s >= scopeGPU || l.shared {
		return c.join(l.far)
	}
	return c.join(r.within(l.far))
}

// within is the part of a clock that is about the threads' own block.
func (r *raceState) within(c clock) clock {
	if own := c.of(r.b.order); own != nil {
		return clock{{r.b.order, own, c.proxyOf(r.b.order)}}
	}
	return nil
}

// strongRead is what a strong read of a location tells a lane.
func (r *raceState) strongRead(w *warp, lane int, l *location, m *memOp) {
	if l == nil {
		return
	}
	c := r.heardAt(w, l, m.scope)
	if m.order.acquires() {
		r.learn(w, 1<<lane, c)
		return
	}
	w.clock.reads = w.clock.reads || len(c) > 0
	w.clock.pending[lane] = w.clock.pending[lane].join(c)
	w.clock.alike = false
	w.clock.nearby[lane] = w.clock.nearby[lane].join(r.heardAt(w, l, min(m.scope, scopeCluster)))
}

// strongWrite is what a strong write of a lane lets a location pass on. A
// plain store ends what others released there, a read-modify-write does not.
func (r *raceState) strongWrite(w *warp, lane int, l *location, m *memOp, modifies bool) {
	if !modifies {
		*l = location{shared: l.shared}
	}
	var c clock
	s := m.scope
	switch {
	case m.order.releases():
		c = r.snapshot(w, 1<<lane)
		w.clock.tick++
	case w.clock.fences:
		c = w.clock.fenced[lane].c
		s = min(s, w.clock.fenced[lane].scope)
	}
	if c == nil {
		return
	}
	if s >= scopeGPU {
		l.far = l.far.join(c)
	}
	ctas := len(r.b.ctas)
	if s >= scopeGPU && ctas == 1 {
		return
	}
	n := l.of(r.b.order)
	if n == nil {
		l.near = append(l.near, nearby{block: r.b.order})
		n = &l.near[len(l.near)-1]
	}
	if ctas > 1 {
		if n.own == nil {
			n.own = make([]clock, ctas)
		}
		n.own[w.cta.rank] = n.own[w.cta.rank].join(c)
	}
	if ctas == 1 || s == scopeCluster {
		n.c = n.c.join(c)
	}
}

// compact makes room in the list of events: of those before the floor nothing
// but who and where is kept, and only for global memory.
func (r *raceState) compact() {
	clear(r.shared)
	for i, c := range r.inFlight {
		if c != nil && c.mbarrier {
			r.dropMark(uint32(i))
		}
	}
	old := r.events
	keep := map[event]uint32{}
	r.events = []event{{}}
	renumber := make([]uint32, len(old))
	number := func(id uint32) uint32 {
		if renumber[id] != 0 {
			return renumber[id]
		}
		e := old[id]
		e.tick, e.lanes = 0, 0
		n, ok := keep[e]
		if !ok {
			n = uint32(len(r.events))
			e.lanes = allLanes
			r.events = append(r.events, e)
			e.lanes = 0
			keep[e] = n
		}
		renumber[id] = n
		return n
	}
	r.pages.renumber(number, r)
	for i := range r.reads {
		s := &r.reads[i].s
		*s = stamp(number(s.event()))<<eventShift | *s&(1<<eventShift-1)
	}
	r.global = r.global[:0]
	for _, w := range r.b.warps {
		clear(w.clock.cache)
	}
	for i, c := range r.inFlight {
		switch {
		case c == nil || c.mbarrier:
		case c.bulk != nil:
			r.b.markBulk(c.bulk)
		default:
			for l := c.lanes; l != 0; l &= l - 1 {
				lane := firstLane(l)
				r.mark(c.dst[lane], c.in.copy.dst.size, uint32(i), lane)
			}
		}
	}
	for off, m := range r.b.mbarriers {
		r.mark(uint64(off), 8, r.newMark(&inFlight{mbarrier: true}), 0)
		m.init = 0
	}
}
