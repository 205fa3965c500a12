package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// newBlock makes the block of an order, from one that is done if there is one.
func (wk *worker) newBlock(order int64) *block {
	l := wk.l
	var b *block
	if n := len(wk.free); n > 0 {
		b = wk.free[n-1]
		wk.free = wk.free[:n-1]
	} else {
		b = l.build()
	}
	b.wk = wk
	b.start(order)
	return b
}

// collect takes over what a block that is done has counted, and keeps the
// block for the next.
func (wk *worker) collect(b *block) {
	for p, t := range b.tallies {
		mine := wk.tallies[p]
		if mine == nil {
			mine = newTally(p)
			wk.tallies[p] = mine
		}
		for i := range t.warps {
			mine.warps[i] += t.warps[i]
			mine.threads[i] += t.threads[i]
			t.warps[i], t.threads[i] = 0, 0
		}
	}
	wk.counts.add(&b.counts)
	b.counts = counts{}
	wk.traffic.add(b.traffic)
	clear(b.traffic)
	if len(wk.free) < 2 {
		wk.free = append(wk.free, b)
	}
}

// build makes a block with its warps and their registers.
func (l *launch) build() *block {
	b := &block{l: l, tallies: map[*program]*tally{}, sharedBase: uint32(l.mod.sharedBase())}
	b.shared = make([]byte, int64(l.ctas)*l.sharedStride())
	b.traffic = make(traffics, l.kern.memOps)
	for rank := range l.ctas {
		c := &cta{b: b, rank: rank, low: uint64(int64(rank) * l.sharedStride()), window: uint64(rank)<<rankShift + uint64(b.sharedBase)}
		b.ctas = append(b.ctas, c)
		c.build()
	}
	for i := range b.warps {
		b.sequence = append(b.sequence, i)
	}
	if l.checks.has(checkUndefined) {
		b.originsOf = map[*ptx.Instruction]*originCount{}
		b.undef = &sharedUndefined{bytes: make([]byte, len(b.shared))}
		for _, w := range b.warps {
			w.localUndef = &sharedUndefined{bytes: make([]byte, len(w.local))}
		}
	}
	if l.checks.has(checkRaces) {
		b.race = newRaceState(b)
	}
	return b
}

// build makes the warps of one of a cluster's blocks.
func (c *cta) build() {
	b, l := c.b, c.b.l
	for i := 0; i*warpSize < l.threads; i++ {
		w := &warp{b: b, cta: c, index: len(b.warps), number: i, localSize: l.prog.localBytes}
		w.local = make([]byte, warpSize*w.localSize)
		w.patterns = make([]*pattern, l.kern.memOps)
		for i := range w.patterns {
			w.patterns[i] = new(pattern)
		}
		for lane := range warpSize {
			t := l.threadID(i*warpSize + lane)
			for d := range t {
				w.tid[d][lane] = t[d]
			}
		}
		b.warps = append(b.warps, w)
		c.warps = append(c.warps, w)
	}
}

// start makes a block ready to run as another.
func (b *block) start(order int64) {
	l := b.l
	b.order = order
	for _, c := range b.ctas {
		c.id = l.blockID(order)
		for i, n := range l.within(c.rank) {
			c.id[i] += n
		}
		c.freeRegisters, c.registerOrders = 0, nil
		c.bars, c.gone, c.noneLeft, c.known, c.issues = [16]barrier{}, false, false, nil, nil
		c.keepUses()
		clear(c.landed)
		if c.tensor != nil {
			c.tensor.reset()
		}
	}
	b.cluster.reset(len(b.warps))
	b.waited = false
	b.turn, b.polled, b.idle, b.ended, b.steps = false, false, 0, 0, l.startSteps()
	b.barren, b.barrenAt, b.pollRounds = 0, 0, 0
	b.heard, b.handedOver, b.handOvers = false, false, 0
	b.printed.Reset()
	b.trace = lineTrace{limit: int(maxTrace / l.l2.size)}
	b.was, b.refused = stuckState{}, false
	clear(b.mbarriers)
	clear(b.timedOut)
	b.clocks, b.freeClocks, b.flight, b.reducing = 0, b.freeClocks[:0], nil, 0
	if l.kern.told {
		b.clocks = len(b.warps) // the first are the warps' own, of their copies
	}
	b.tensor.work, b.tensor.commits = nil, 0
	b.faults = faultList{most: l.dev.opt.MaxFaults}
	clear(b.shared)
	b.pick = newRNG(l.dev.opt.Seed, uint64(order))
	b.within = false
	for i := range b.sequence {
		b.sequence[i] = i
	}
	b.newRound()
	if b.undef != nil {
		b.origins = append(b.origins[:0], origin{})
		b.lastOrigin = nil
		clear(b.originsOf)
		b.undef.reset()
		for _, c := range b.ctas {
			clear(b.undef.bytes[c.low : c.low+uint64(l.kern.system)])
		}
	}
	if b.race != nil {
		b.race.reset()
	}
	registers := l.registersAtLaunch()
	for _, w := range b.warps {
		lanes := min(l.threads-w.number*warpSize, warpSize)
		w.live = uint32(1<<lanes - 1)
		w.mask, w.started = w.live, w.live
		w.registers = registers
		if w.localUndef != nil {
			w.localUndef.reset()
		}
		w.paths, w.join, w.executed, w.slept, w.pc = w.paths[:0], nil, 0, 0, 0
		w.fr = nil
		if w.base == nil {
			w.newFrame(l.prog, 0)
		} else {
			w.base.stack = nil
			w.undefineStart(w.base)
		}
		w.enter(w.base)
		w.async.reset()
		w.meetings, w.lastPoll, w.gaveUp = w.meetings[:0], nil, false
		w.polls = [mostPolls]recentPoll{}
		w.bulk, w.wg = [warpSize]*bulkLane{}, wgmmaGroups{}
		w.tensorLoads, w.tensorStores, w.tensorClocks, w.afterSync = nil, nil, nil, nil
		w.setMode()
	}
	b.counts.blocks += int64(l.ctas)
	b.counts.warps += int64(len(b.warps))
	b.counts.threads += int64(l.ctas * l.threads)
}

// blockID is the place in the grid of the block of an order, of a cluster's
// first.
func (l *launch) blockID(order int64) [3]uint32 {
	if l.list != nil {
		return l.list[order]
	}
	c := &l.cluster
	x, y := int64(l.grid[0]/c[0]), int64(l.grid[1]/c[1])
	return [3]uint32{uint32(order%x) * c[0], uint32(order/x%y) * c[1], uint32(order/(x*y)) * c[2]}
}

// newFrame makes the registers of a call.
func (w *warp) newFrame(p *program, local int64) *frame {
	for i, f := range w.frames {
		if f.prog == p {
			w.frames = append(w.frames[:i], w.frames[i+1:]...)
			f.local, f.stack = local, nil
			w.undefineStart(f)
			return f
		}
	}
	f := &frame{prog: p, local: local, r: make([]lanes32, p.slots[class32]), q: make([]lanes64, p.slots[class64]), p: make([]uint32, p.slots[classPred])}
	for i, c := range p.const32 {
		for lane := range f.r[i] {
			f.r[i][lane] = c
		}
	}
	for i, c := range p.const64 {
		for lane := range f.q[i] {
			f.q[i][lane] = c
		}
	}
	copy(f.p, p.constPred)
	if rank := uint64(w.cta.rank) << rankShift; rank != 0 {
		for _, s := range p.shared[0] {
			for lane := range f.r[s] {
				f.r[s][lane] += uint32(rank)
			}
		}
		for _, s := range p.shared[1] {
			for lane := range f.q[s] {
				f.q[s][lane] += rank
			}
		}
	}
	f.tally = w.b.tally(p)
	if w.b.l.checks.has(checkUndefined) {
		f.u = make([]uint32, p.total())
	}
	if w.base == nil {
		w.base = f
	}
	w.undefineStart(f)
	return f
}

func (b *block) tally(p *program) *tally {
	t := b.tallies[p]
	if t == nil {
		t = newTally(p)
		b.tallies[p] = t
	}
	return t
}
