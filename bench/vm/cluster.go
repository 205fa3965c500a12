package vm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// A cluster's blocks run together as one block of the launch: their warps take
// turns as those of one block do, and one clock and one shadow of shared memory
// serve them all. The memories lie one after the other; an address of shared
// memory names the block by its bits from 24 on, as on hardware.

const (
	rankShift    = 24
	maxClusterOf = 16 // blocks: CUDA C++ Programming Guide, not portable above 8
)

// cta is one of a cluster's blocks of threads.
type cta struct {
	b        *block
	rank     int
	id       [3]uint32 // in the grid
	warps    []*warp
	low      uint64 // where its shared memory begins in the cluster's
	window   uint64 // the address of that
	bars     [16]barrier
	gone     bool // all its threads have exited
	noneLeft bool // its threads saw that no other block was left to take over
	far      bool // remote has some

	freeRegisters int // for each thread of a warp

	registerOrders []registerOrder // of its warpgroups

	tensor *tensorMemory // nil: not used so far
	issues []issueOrder  // of wgmma, by group of four warps

	remote []farUse           // of its shared memory by others, for each warp and lane of the cluster
	landed map[uint32]landing // the last of others' copies to it, by the clock of the mbarrier that was told
	known  vclock             // what its threads knew when they exited
}

// farUse is a lane's last use of another block's shared memory.
type farUse struct {
	in   *inst
	fr   *frame
	tick uint32
	addr uint64
}

// landing is a copy that another block asked for, and when it was told.
type landing struct {
	c    *bulkCopy
	tick uint32
}

func (c *cta) noteLanding(agent, tick uint32, by *bulkCopy) {
	if c.landed == nil {
		c.landed = map[uint32]landing{}
	}
	c.landed[agent] = landing{by, tick}
}

// keepUses forgets uses of the block's memory that are ordered before all that
// it does from now on.
func (c *cta) keepUses() {
	if c.far {
		clear(c.remote)
		c.far = false
	}
}

// sharedStride is how far the shared memories of a cluster's blocks are apart:
// swizzles look at the lowest ten bits of addresses.
func (l *launch) sharedStride() int64 {
	if l.ctas == 1 {
		return l.sharedSize
	}
	return (l.sharedSize + 1023) &^ 1023
}

// address is the address of an offset in the cluster's shared memory.
func (b *block) address(off uint64) uint64 {
	if len(b.ctas) == 1 {
		return off + uint64(b.sharedBase)
	}
	rank := min(off/uint64(b.l.sharedStride()), uint64(len(b.ctas)-1))
	c := b.ctas[rank]
	return c.window + off - c.low
}

// ctaOf is the block that a warp belongs to, by the warp's number in the cluster.
func (b *block) ctaOf(warp int) *cta { return b.ctas[warp/len(b.ctas[0].warps)] }

// sameCTA says whether two warps are of the same block.
func (b *block) sameCTA(one, other int) bool {
	return len(b.ctas) == 1 || b.ctaOf(one) == b.ctaOf(other)
}

// reaches says whether an access may go to other blocks' shared memory.
func (m *memOp) reaches() bool { return m != nil && (m.cluster || m.space == ptx.SpaceGeneric) }

// find is the offset in the cluster's shared memory of an address that a warp
// uses; false if there is none.
func (w *warp) find(addr uint64, size int, far bool) (off uint64, c *cta) {
	n, c := uint64(w.b.l.sharedSize), w.cta
	if n < uint64(size) {
		return 0, nil
	}
	if off = addr - c.window; off <= n-uint64(size) {
		return c.low + off, c
	}
	rank := addr >> rankShift
	if !far || rank >= uint64(len(w.b.ctas)) {
		return 0, nil
	}
	c = w.b.ctas[rank]
	if off = addr - c.window; off <= n-uint64(size) {
		return c.low + off, c
	}
	return 0, nil
}

// locate is find with reports.
func (w *warp) locate(in *inst, lane int, addr uint64, size int, far bool) (off uint64, ok bool) {
	off, c := w.find(addr, size, far)
	if c == nil {
		var all lanes64
		all[lane] = addr
		w.outOfShared(in, &all, size, 1<<lane)
		return 0, false
	}
	if c != w.cta && !w.useFar(in, lane, addr, c) {
		return 0, false
	}
	return off, true
}

// useFar notes a use of another block's memory; false if that block has exited. Where
// threads race, what they didn't wait for is why it could exit.
func (w *warp) useFar(in *inst, lane int, addr uint64, c *cta) bool {
	if c.gone {
		w.faultIn(w.b.heldBack(), bench.SharedOutOfBounds, in, lane, &addr, "shared", "shared address %#x: block %v, of rank %d in the cluster, has exited", addr, c.id, c.rank)
		return false
	}
	if r := w.b.race; r != nil && !r.off {
		if c.remote == nil {
			c.remote = make([]farUse, warpSize*len(w.b.warps))
		}
		if in.mbar == nil || in.mbar.kind == mbarrierArrive && in.mbar.strong.releases() {
			c.far = true
			c.remote[w.index*warpSize+lane] = farUse{in, w.fr, w.clock.tick, addr}
		}
	}
	return true
}

// exiting notes what lanes know that exit.
func (c *cta) exiting(w *warp, lanes uint32) {
	if r := c.b.race; r != nil && !r.off && len(c.b.ctas) > 1 {
		c.known = c.known.join(r.snapshot(w, lanes).of(c.b.order))
	}
	c.gone = true
	for _, o := range c.warps {
		c.gone = c.gone && o.live == 0
	}
	if c.gone {
		c.checkTensorLeft()
	}
	if !c.gone || len(c.b.ctas) == 1 {
		return
	}
	c.b.checkSources(c.warps)
	for _, x := range c.b.flight {
		if x.w.cta == c && !x.op.told && !x.arrival {
			c.b.readSource(x)
		}
	}
}

// checkLifetimes reports uses of blocks' shared memory that nothing kept from
// coming after those blocks had exited, but where threads race.
func (b *block) checkLifetimes() {
	for _, c := range b.ctas {
		if !c.gone {
			continue // a deadlock ended it
		}
		for i := range c.remote {
			u := &c.remote[i]
			if u.in == nil || c.known.knows(i/warpSize, i%warpSize, u.tick) {
				continue
			}
			w := b.warps[i/warpSize]
			w.enter(u.fr)
			w.faultIn(b.heldBack(), bench.SharedOutOfBounds, u.in, i%warpSize, &u.addr, "shared",
				"shared address %#x: nothing keeps block %v, of rank %d in the cluster, from exiting before", u.addr, c.id, c.rank)
		}
		agents := slices.Sorted(maps.Keys(c.landed))
		for _, agent := range agents {
			x := c.landed[agent]
			if c.known.knows(int(agent), 0, x.tick) || b.race.heard.knows(int(agent), 0, x.tick) || b.faults.names(bench.AsyncCopyRace, x.c.from) {
				continue
			}
			addr := b.address(x.c.shared)
			x.c.w.enter(x.c.fr)
			x.c.w.faultAt(bench.SharedOutOfBounds, x.c.in, x.c.lane, &addr, "shared",
				"shared address %#x: block %v, of rank %d in the cluster, exits without waiting for the copy", addr, c.id, c.rank)
		}
	}
}

// clusterBarrier is the barrier of all a cluster's threads.
type clusterBarrier struct {
	arrived []uint32 // lanes, by warp
	done    []uint32 // lanes whose phase is over and that have not waited yet
	waiting bool
	relaxed bool     // some arrived without releasing
	ticks   []uint32 // of each warp, when it arrived
	clock   clock    // of all that arrived
	inits   clock    // what fences of initialisations passed on
	passed  clock    // clock, of the last phase
	ready   clock    // inits
	begun   vclock   // what those had done that arrived without releasing, if not for others to see
	behind  vclock   // begun, of the last phase
}

func (bar *clusterBarrier) reset(warps int) {
	if bar.arrived == nil {
		bar.arrived, bar.done, bar.ticks = make([]uint32, warps), make([]uint32, warps), make([]uint32, warps)
	}
	clear(bar.arrived)
	clear(bar.done)
	bar.waiting, bar.relaxed, bar.clock, bar.inits, bar.passed, bar.ready = false, false, nil, nil, nil, nil
	bar.begun, bar.behind = nil, nil
}

// clusterOp is what a barrier.cluster instruction does.
type clusterOp struct {
	arrive, relaxed, aligned bool
}

// clusterBarrier is barrier.cluster.
func (d *decoder) clusterBarrier(aligned bool) {
	op := &clusterOp{aligned: aligned}
	op.arrive = d.take("arrive", "wait") == "arrive"
	op.relaxed = d.take("release", "relaxed", "acquire") == "relaxed"
	d.operands(0, 0)
	in := d.new(kindControl)
	in.cluster = op
	in.ctl = clusterBar
	d.emit(in)
	if in.guard >= 0 {
		d.meetAfter()
	}
	d.p.counter[d.src.PC] = countBarrier
}

func clusterBar(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	op := in.cluster
	if missing := w.live &^ m; op.aligned && missing != 0 {
		w.fault(bench.BarrierDivergence, in, firstLane(m), "the cluster's barrier: lanes %08x of the warp are here, lanes %08x are not", m, missing)
	}
	if op.arrive {
		w.clusterArrive(in, m)
		return
	}
	bar := &w.b.cluster
	if early := m &^ (bar.arrived[w.index] | bar.done[w.index]); early != 0 {
		w.fault(bench.BarrierDivergence, in, firstLane(early), "the cluster's barrier: lanes %08x wait and have not arrived", early)
		bar.done[w.index] |= early
	}
	// Lanes whose phase is over go on, the rest wait.
	if bar.done[w.index]&m == m {
		bar.leave(w, m)
		w.pc++
		return
	}
	w.leaveBehind(m)
	w.pc++
	w.park(wait{kind: waitCluster, in: in})
}

func (w *warp) clusterArrive(in *inst, m uint32) {
	bar := &w.b.cluster
	if twice := m & (bar.arrived[w.index] | bar.done[w.index]); twice != 0 {
		w.fault(bench.BarrierDivergence, in, firstLane(twice), "the cluster's barrier: lanes %08x arrive and have not waited since they last did", twice)
		bar.done[w.index] &^= twice
	}
	bar.waiting = true
	bar.arrived[w.index] |= m
	if r := w.b.race; r != nil && !r.off {
		if in.cluster.relaxed {
			bar.relaxed = true
			bar.clock = bar.clock.join(w.fencedClock(m, scopeCluster))
			bar.begun = bar.begun.join(r.snapshot(w, m).of(w.b.order))
		} else {
			bar.clock = bar.clock.join(r.snapshot(w, m))
		}
		for l := m; l != 0; l &= l - 1 {
			bar.inits = bar.inits.join(w.clock.inits[firstLane(l)])
		}
		w.clock.tick++
		bar.ticks[w.index] = w.clock.tick
	}
	w.pc++
	w.b.releaseCluster(w)
}

// fencedClock is what lanes knew at their last fences of at least a scope.
func (w *warp) fencedClock(lanes uint32, least scope) (c clock) {
	for l := lanes; l != 0 && w.clock.fences; l &= l - 1 {
		if f := &w.clock.fenced[firstLane(l)]; f.scope >= least {
			c = c.join(f.c)
		}
	}
	return c
}

// leave lets lanes go on whose phase is over.
func (bar *clusterBarrier) leave(w *warp, lanes uint32) {
	bar.done[w.index] &^= lanes
	if r := w.b.race; r != nil && !r.off {
		r.learn(w, lanes, bar.passed)
		w.cta.known = w.cta.known.join(bar.behind) // its memory lasts as long as who waits here
		for l := lanes; l != 0; l &= l - 1 {
			w.clock.inits[firstLane(l)] = w.clock.inits[firstLane(l)].join(bar.ready)
		}
	}
}

// releaseCluster ends a phase of the cluster's barrier if all threads have
// arrived, last the current path of a warp (nil: none).
func (b *block) releaseCluster(last *warp) {
	bar := &b.cluster
	if !bar.waiting {
		return
	}
	for i, w := range b.warps {
		if w.live&^bar.arrived[i] != 0 {
			return
		}
	}
	r := b.race
	if r != nil && r.off {
		r = nil
	}
	bar.waiting = false
	bar.passed, bar.ready, bar.behind = bar.clock, bar.inits, bar.begun
	for i := range b.warps {
		bar.done[i] |= bar.arrived[i]
	}
	if r != nil && !bar.relaxed && b.allAtCluster(last) {
		r.moveFloor()
		bar.passed = nil
	}
	for i, w := range b.warps {
		for j := range w.paths {
			p := &w.paths[j]
			if p.wait.kind == waitCluster && p.mask&^bar.done[i] == 0 {
				bar.leave(w, p.mask)
				p.wait = wait{}
			}
		}
		bar.arrived[i] = 0
	}
	bar.relaxed, bar.clock, bar.inits, bar.begun = false, nil, nil, nil
}

// allAtCluster says whether every thread waits at the cluster's barrier (the
// last to arrive: will do so next) and none did anything since it arrived.
func (b *block) allAtCluster(last *warp) bool {
	for i, w := range b.warps {
		waiting := uint32(0)
		if w == last {
			if in := &w.code[w.pc]; in.cluster != nil && !in.cluster.arrive && in.guard < 0 {
				waiting = w.mask
			}
		}
		for j := range w.paths {
			if p := &w.paths[j]; p.wait.kind == waitCluster {
				waiting |= p.mask
			}
		}
		if w.live&^waiting != 0 || w.live != 0 && w.clock.last >= b.cluster.ticks[i] {
			return false
		}
	}
	return true
}

func init() {
	decoders["mapa"] = (*decoder).mapa
	decoders["getctarank"] = (*decoder).ctaRank
}

// clusterAddress is where the addresses begin that mapa and getctarank take:
// they are generic where no space is named (with 32 bits: of shared memory).
func (d *decoder) clusterAddress() (window uint64, t ptx.Type) {
	cluster := d.has("shared::cluster")
	if t = d.typ(); !cluster && t.Bits() == 64 {
		window = sharedWindow
	}
	return window, t
}

// mapa is the address in another block's shared memory of what has the same
// place there.
func (d *decoder) mapa() {
	window, t := d.clusterAddress()
	ops := d.operands(3, 3)
	in := d.new(kindMasked)
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	d.source(in, &in.a, &ops[1], t, exact)
	d.source(in, &in.b, &ops[2], ptx.U32, exact)
	in.imm = window
	in.fn[modeFull] = mapa
	d.emit(in)
}

// noRank is that of addresses in blocks that the cluster has not got. Only who uses one
// is at fault: compilers move mapa out of the branch that asks for the rank.
const noRank = 0xff

func mapa(w *warp, in *inst) {
	for l := w.mask; l != 0; l &= l - 1 {
		i := firstLane(l)
		a := w.valueOf(in.kd, in.a, i) - in.imm
		rank := w.r[in.b][i]
		if rank >= uint32(len(w.b.ctas)) {
			rank = noRank
		}
		v := in.imm + (a&(1<<rankShift-1) | uint64(rank)<<rankShift)
		if in.kd == class64 {
			w.q[in.d][i] = v
		} else {
			w.r[in.d][i] = uint32(v)
		}
	}
}

// ctaRank is the rank of the block whose shared memory an address is in.
func (d *decoder) ctaRank() {
	window, t := d.clusterAddress()
	ops := d.operands(2, 2)
	in := d.new(kindMasked)
	d.destination(in, &in.d, &ops[0], ptx.U32, exact)
	in.ka = d.source(in, &in.a, &ops[1], t, exact).k
	in.imm = window
	in.fn[modeFull] = func(w *warp, in *inst) {
		for l := w.mask; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.r[in.d][i] = uint32((w.valueOf(in.ka, in.a, i) - in.imm) >> rankShift & 0xff)
		}
	}
	d.emit(in)
}

// clusterExtents checks a launch's cluster against the kernel, the grid and the
// GPU. A kernel may say itself how large its clusters are.
func (l *launch) clusterExtents(given [3]uint32) error {
	l.cluster, l.ctas = [3]uint32{1, 1, 1}, 1
	k := l.kern
	want := k.cluster
	if given != ([3]uint32{}) {
		given = ones(given)
		if want != ([3]uint32{}) && given != want {
			return fmt.Errorf("cluster %v: the kernel requires %v", given, want)
		}
		want = given
	}
	if want == ([3]uint32{}) {
		if k.explicitCluster {
			return fmt.Errorf("no cluster: the kernel wants one")
		}
		return nil
	}
	l.explicit = true
	n := uint64(1)
	for i, x := range want {
		if x == 0 || l.grid[i]%x != 0 {
			return fmt.Errorf("cluster %v: want divisors of the grid %v", want, l.grid)
		}
		n = min(n*uint64(x), 1<<32)
	}
	most := uint64(maxClusterOf)
	if k.maxClusterRank > 0 {
		most = min(most, k.maxClusterRank)
	}
	switch {
	case n > most:
		return fmt.Errorf("cluster %v: %d blocks, want at most %d", want, n, most)
	case n > 1 && !l.mod.gpu.CC.AtLeast(9, 0):
		return fmt.Errorf("cluster %v: %s has no clusters, want a GPU of compute capability 9.0 or above", want, l.mod.gpu.Name)
	}
	l.cluster, l.ctas = want, int(n)
	return nil
}

// clusterList is the clusters of chosen blocks, each by its first block, in
// order of the blocks.
func (l *launch) clusterList(blocks [][3]uint32) [][3]uint32 {
	if l.ctas == 1 {
		return blocks
	}
	var list [][3]uint32
	seen := map[[3]uint32]bool{}
	for _, b := range blocks {
		for i := range b {
			b[i] -= b[i] % l.cluster[i]
		}
		if !seen[b] {
			seen[b] = true
			list = append(list, b)
		}
	}
	return list
}

// within is a block's place in its cluster, by its rank.
func (l *launch) within(rank int) [3]uint32 {
	x, y := l.cluster[0], l.cluster[1]
	n := uint32(rank)
	return [3]uint32{n % x, n / x % y, n / (x * y)}
}

// siteOf names a thread of the blocks of an order, by its warp and lane.
func (l *launch) siteOf(order int64, warp, lane int) (block, thread [3]uint32) {
	per := (l.threads + warpSize - 1) / warpSize
	block = l.blockID(order)
	for i, n := range l.within(warp / per) {
		block[i] += n
	}
	return block, l.threadID(warp%per*warpSize + lane)
}

// offset is the offset in the cluster's shared memory of an address, all ones
// if there is none.
func (b *block) offset(addr uint64) uint64 {
	if rank := addr >> rankShift; rank < uint64(len(b.ctas)) {
		return addr - b.ctas[rank].window + b.ctas[rank].low
	}
	return ^uint64(0)
}

// initBefore says whether an mbarrier's initialisation is ordered before what a
// lane does now.
func (r *raceState) initBefore(s stamp, w *warp, lane int) bool {
	if r.before(s, w, lane) {
		return true
	}
	e := &r.events[s.event()]
	return w.clock.inits[lane].of(r.b.order).knows(int(e.warp), s.lane(), e.tick)
}
