package vm

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() {
	decoders["bar"] = func(d *decoder) { d.barrier(true) }
	decoders["barrier"] = func(d *decoder) { d.barrier(d.has("aligned")) }
}

// barrierOp is what a barrier instruction does.
type barrierOp struct {
	id, count int32 // slots of operands
	counted   bool
	arrive    bool // does not wait
	aligned   bool
	red       string // "popc", "and", "or"
	pred      int32  // source predicate of a reduction
}

func (d *decoder) barrier(aligned bool) {
	if d.has("warp") {
		d.warpSync()
		return
	}
	if d.has("cluster") {
		d.clusterBarrier(aligned)
		return
	}
	d.has("cta")
	op := &barrierOp{aligned: aligned}
	switch d.take("sync", "arrive", "red") {
	case "arrive":
		op.arrive = true
	case "red":
		op.red = d.take("popc", "and", "or")
		d.typ()
	}
	ops := d.operands(1, 4)
	in := d.new(kindControl)
	in.ctl = bar
	in.bar = op
	if op.red != "" {
		switch {
		case len(ops) < 3:
			d.refuse("%d operands: want 3 or 4", len(ops))
		case op.red == "popc":
			d.destination(in, &in.d, &ops[0], ptx.U32, exact)
		default:
			d.predicateDestination(in, &in.d, &ops[0])
		}
		in.neg = d.predicate(in, &op.pred, &ops[len(ops)-1])
		ops = ops[1 : len(ops)-1]
	}
	if len(ops) > 2 || op.arrive && len(ops) != 2 {
		d.refuse("%d operands", len(d.src.Operands))
	}
	d.source(in, &op.id, &ops[0], ptx.U32, exact)
	if ops[0].Kind == ptx.OpImm && ops[0].Value > 15 {
		d.refuse("barrier %d: want 0 to 15", int64(ops[0].Value))
	}
	d.bind(&op.count, d.constant(class32, 0))
	if len(ops) == 2 {
		op.counted = true
		d.source(in, &op.count, &ops[1], ptx.U32, exact)
	}
	d.emit(in)
	if in.guard >= 0 || ops[0].Kind != ptx.OpImm {
		d.meetAfter()
	}
	d.p.counter[d.src.PC] = countBarrier
}

// bar is bar.sync, bar.arrive and bar.red.
func bar(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	c, op := w.cta, in.bar
	lead := firstLane(m)
	id := w.r[op.id][lead]
	if w.undefs > 0 {
		w.checkOperand(in, class32, op.id, m)
		w.checkOperand(in, class32, op.count, m)
	}
	for l := m; l != 0; l &= l - 1 {
		if i := firstLane(l); w.r[op.id][i] != id {
			w.apart(m, w.sameBarrier(in, m, id))
			return
		}
	}
	if id > 15 {
		w.fault(bench.BarrierDivergence, in, lead, "barrier %d: want 0 to 15", id)
		w.pc++
		return
	}
	bar := &c.bars[id]
	count := 0
	if op.counted {
		count = w.barrierCount(in, id, lead)
	}
	w.sameCount(bar, in, id, lead, count)
	bar.waiting = true
	if op.counted {
		bar.need = count
	}
	if op.aligned {
		w.arriveTogether(bar, in, id, m)
	} else {
		bar.threads += lanesOf(m)
		bar.arrived[w.number] |= m
	}
	if op.red != "" {
		bar.reduce(w.p[op.pred]^in.neg, m)
	}
	c.arriveClock(bar, w, m)
	w.pc++
	if !op.arrive {
		w.pc--
		w.leaveBehind(m)
		w.pc++
		w.park(wait{kind: waitBarrier, in: in, id: id})
	}
	if c.complete(bar) {
		c.releaseBarrier(id)
	}
}

// barrierCount is how many threads a barrier waits for, as an instruction says.
// PTX wants whole warps.
func (w *warp) barrierCount(in *inst, id uint32, lane int) int {
	n := w.r[in.bar.count][lane]
	if (n == 0 || n%warpSize != 0) && !w.again(bench.BarrierDivergence, in) {
		w.fault(bench.BarrierDivergence, in, lane, "barrier %d of %d threads: want a multiple of %d from %d", id, n, warpSize, warpSize)
	}
	return int((uint64(n) + warpSize - 1) / warpSize * warpSize)
}

// sameCount reports threads that come to a barrier for another count than those who wait
// there; a count of 0 is all threads of the block.
func (w *warp) sameCount(bar *barrier, in *inst, id uint32, lane, count int) {
	all := len(w.cta.warps) * warpSize
	here, there := cmp.Or(count, all), cmp.Or(bar.need, all)
	if bar.waiting && here != there && !w.again(bench.BarrierDivergence, in) {
		w.fault(bench.BarrierDivergence, in, lane, "barrier %d of %d threads: others came to it for %d", id, here, there)
	}
}

// arriveTogether lets lanes arrive at a barrier whose instruction takes whole
// warps: they may come to it one after the other, but all to the same.
func (w *warp) arriveTogether(bar *barrier, in *inst, id, m uint32) {
	i := w.number
	src := w.source(in)
	if bar.parts[i] != 0 && bar.at[i] != src && !w.again(bench.BarrierDivergence, in) {
		w.fault(bench.BarrierDivergence, in, firstLane(m), "barrier %d: lanes %08x of the warp are here, lanes %08x are at line %d",
			id, m, bar.parts[i], bar.at[i].Pos.Line)
	}
	bar.parts[i] |= m
	bar.at[i] = src
	bar.gather(w)
}

// gather counts a warp as arrived once all its lanes are there.
func (bar *barrier) gather(w *warp) {
	i := w.number
	if bar.parts[i] == 0 || w.live&^bar.parts[i] != 0 {
		return
	}
	bar.threads += warpSize
	bar.arrived[i] |= bar.parts[i]
	bar.parts[i] = 0
}

// sameBarrier is the lanes that name one barrier.
func (w *warp) sameBarrier(in *inst, m, id uint32) uint32 {
	var same uint32
	for l := m; l != 0; l &= l - 1 {
		if i := firstLane(l); w.r[in.bar.id][i] == id {
			same |= 1 << i
		}
	}
	return same
}

// reduce adds the predicates of lanes that arrive.
func (bar *barrier) reduce(p, lanes uint32) {
	if !bar.red.used {
		bar.red = reduction{used: true, and: true}
	}
	bar.red.count += uint32(lanesOf(p & lanes))
	bar.red.and = bar.red.and && p&lanes == lanes
	bar.red.or = bar.red.or || p&lanes != 0
}

// deliver writes a reduction's result to lanes of a warp that waited.
func (bar *barrier) deliver(w *warp, fr *frame, lanes uint32, in *inst) {
	op := in.bar
	if op.red == "" || in.d < 0 {
		return
	}
	if fr.u != nil {
		current := w.fr
		w.enter(fr)
		for _, s := range in.defs {
			w.define(s, lanes)
		}
		w.enter(current)
	}
	if op.red == "popc" {
		for l := lanes; l != 0; l &= l - 1 {
			fr.r[in.d][firstLane(l)] = bar.red.count
		}
		return
	}
	yes := bar.red.and
	if op.red == "or" {
		yes = bar.red.or
	}
	fr.p[in.d] &^= lanes
	if yes {
		fr.p[in.d] |= lanes
	}
}

// warpSync is bar.warp.sync: a collective that orders memory.
func (d *decoder) warpSync() {
	d.has("sync")
	ops := d.operands(1, 1)
	in, c := d.newCollective(func(*gathered) {})
	d.memberMask(in, c, &ops[0])
	c.orders = true
	if mask := d.values[c.mask]; !mask.constant || uint32(mask.content) != allLanes {
		d.kern.parts = true
	}
	d.emit(in)
	d.meetAfterCollective(in)
}

// deadlock reports that no thread of the block can go on: one report for each
// place where threads wait.
func (b *block) deadlock() {
	var all []string
	for _, w := range b.warps {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.in != nil {
				text := w.describeWait(p)
				if len(all) == 0 || all[len(all)-1] != text {
					all = append(all, text)
				}
			}
		}
	}
	if b.refused {
		return
	}
	if !b.faults.has(bench.AsyncCopyRace) { // whoever used too few bytes has raced
		b.starved()
	}
	if b.race != nil {
		b.race.settleHeld()
	}
	if b.blamed() {
		return // what was reported before caused it
	}
	for _, w := range b.warps {
		if w.mask != 0 && w.polled() != nil { // what others wait for, if they wait for this one
			w.pollsInVain(all)
			return
		}
	}
	for _, w := range b.warps {
		for i := range w.paths {
			p := &w.paths[i]
			in := p.wait.in
			if in == nil {
				in = &p.fr.prog.code[p.pc]
			}
			w.fr = p.fr
			if len(all) > 8 {
				all = append(all[:8], "...")
			}
			w.fault(bench.Deadlock, in, firstLane(p.mask), "no thread of the block can go on: %s", strings.Join(all, "; "))
			return
		}
		if w.mask != 0 {
			w.pollsInVain(all)
			return
		}
	}
}

// pollsInVain reports a warp that polls what nobody changes any more, beside what others
// wait for.
func (w *warp) pollsInVain(others []string) {
	in, lane := &w.code[w.pc], firstLane(w.mask)
	what := "the warp polls"
	var at *uint64
	space, late := "", ""
	if p := w.polled(); p != nil {
		var addr lanes64
		w.addresses(p.mem, &addr)
		in, at, space = p, &addr[lane], p.mem.space.String()
		what += fmt.Sprintf(" %s address %#x%s", space, *at, w.b.lies(p.mem.space, *at))
		if p.mem.space != ptx.SpaceShared {
			late = w.b.l.notResident()
		}
	}
	if len(others) > 0 {
		what += "; " + strings.Join(others, "; ") + ";"
	}
	w.faultAt(bench.Deadlock, in, lane, at, space, "%s and nothing changes any more%s", what, late)
}

// polled is the access of memory that a warp polls with, if it does.
func (w *warp) polled() *inst {
	if p := w.lastPoll; p != nil && p.mem != nil && w.fr.prog.has(p) {
		return p
	}
	return nil
}

// notResident says which blocks have not begun, as the GPU has no room for them.
func (l *launch) notResident() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next >= l.total {
		return ""
	}
	return fmt.Sprintf(": blocks from %v on have not begun, as no more than %d run at a time", l.blockID(l.next), len(l.ring)*l.ctas)
}

// has says whether an instruction is of a program.
func (p *program) has(in *inst) bool {
	for i := range p.code {
		if &p.code[i] == in {
			return true
		}
	}
	return false
}

// blamed says whether a fault was reported that may leave threads waiting.
func (b *block) blamed() bool {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	return b.blames()
}

// blames is blamed for who holds the launch's lock.
func (b *block) blames() bool {
	if b.faults.keepsWaiting(len(b.mbarriers) > 0) || b.race != nil && len(b.race.arrivals.list) > 0 {
		return true
	}
	l := b.l
	if l.faults.keepsWaiting(false) {
		return true
	}
	for _, order := range l.ring {
		r := l.resident[order]
		if r.faults != nil && r.faults.keepsWaiting(false) || r.gaveWay && r.b != nil && r.b != b && r.b.faults.keepsWaiting(false) {
			return true
		}
	}
	return false
}

// keepsWaiting says whether one of the faults may be why somebody waits in vain.
func (l *faultList) keepsWaiting(mbarriers bool) bool {
	for _, f := range l.list {
		switch f.Class {
		case bench.BarrierDivergence, bench.DivergentCollective, bench.MbarrierMisuse:
			return true
		case bench.GlobalOutOfBounds, bench.SharedOutOfBounds, bench.MisalignedAddress, bench.WriteToConst:
			return true // what was not done, or read, may be the flag
		case bench.SharedRace, bench.GlobalRace:
			return true // whoever went on too early left a barrier or a flag in a wrong state
		case bench.AsyncCopyRace:
			if mbarriers { // or an mbarrier in a wrong phase
				return true
			}
		}
	}
	return false
}
