package vm

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// tcgen05, the instructions of Blackwell's tensor cores: PTX ISA 9.7.16. Here are
// those that manage tensor memory and that wait.

func init() { decoders["tcgen05"] = (*decoder).tcgen05 }

// tensorOp is what a tcgen05 instruction does.
type tensorOp struct {
	id   int32 // numbers it among memory instructions
	pair bool  // .cta_group::2
	addr tensorOperand
	move *tensorMove
	copy *tensorCopy
	mma  *tensorMMA

	size  int32 // slot of a number of columns
	desc  int32 // of a matrix descriptor
	mask  int32 // of a multicast mask; -1 is none
	store bool  // of a wait: for stores
}

func (d *decoder) tcgen05() {
	switch what := d.take("alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld", "wait::st", "cp", "shift", "commit",
		"fence::before_thread_sync", "fence::after_thread_sync", "mma"); what {
	case "alloc":
		d.tensorAlloc()
	case "dealloc":
		d.tensorDealloc()
	case "relinquish_alloc_permit":
		d.tensorRelinquish()
	case "ld", "st":
		d.tensorMove(what == "st")
	case "wait::ld", "wait::st":
		d.tensorWait(what == "wait::st")
	case "cp":
		d.tensorCopy()
	case "shift":
		d.tensorShift()
	case "commit":
		d.tensorCommit()
	case "mma":
		d.tensorMMA()
	case "":
		d.refuse("the virtual machine does not execute it")
	default:
		d.tensorFence(what == "fence::before_thread_sync")
	}
}

// newTensor is an instruction of tcgen05.
func (d *decoder) newTensor(k kind) (*inst, *tensorOp) {
	op := &tensorOp{mask: -1, id: d.newMem(ptx.SpaceShared).id}
	op.pair = d.take("cta_group::1", "cta_group::2") == "cta_group::2"
	in := d.new(k)
	in.tensor = op
	in.rule = ruleAsyncCopy
	return in, op
}

// tensorAlloc writes the address of new columns to shared memory.
func (d *decoder) tensorAlloc() {
	in, op := d.newTensor(kindControl)
	d.aligned()
	space := d.space()
	d.has("b32")
	ops := d.operands(2, 2)
	in.mem = d.newMem(space)
	in.mem.size = 4
	d.memory(in, in.mem, &ops[0])
	d.access(in.mem)
	d.source(in, &op.size, &ops[1], ptx.U32, exact)
	in.ctl = tensorAlloc
	d.emit(in)
}

func (d *decoder) tensorDealloc() {
	in, op := d.newTensor(kindControl)
	d.aligned()
	d.has("b32")
	ops := d.operands(2, 2)
	d.tensorAddress(in, &op.addr, &ops[0])
	d.source(in, &op.size, &ops[1], ptx.U32, exact)
	in.ctl = tensorDealloc
	d.emit(in)
}

func (d *decoder) tensorRelinquish() {
	in, _ := d.newTensor(kindMasked)
	d.aligned()
	d.operands(0, 0)
	in.fn[modeFull] = func(w *warp, in *inst) {
		if w.together(in) {
			w.cta.tensorMemory().relinquished = true
		}
	}
	d.emit(in)
}

// wholeWarp says whether a control instruction is to run: by all lanes of the
// warp. Otherwise it is over.
func (w *warp) wholeWarp(in *inst) bool {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return false
	}
	saved := w.mask
	w.mask = m
	ok := w.together(in)
	w.mask = saved
	if !ok {
		w.pc++
		return false
	}
	if w.undefs > 0 {
		for _, s := range in.uses {
			w.checkLanes(in, s, m, "as an operand of an allocation")
		}
	}
	return true
}

// columns is how many columns an allocation is of; false after a report.
func (w *warp) columns(in *inst) (int, bool) {
	n := w.r[in.tensor.size][0]
	for lane, v := range w.r[in.tensor.size] {
		if v != n {
			w.fault(bench.BadDescriptor, in, lane, "%d columns of tensor memory in thread 0, %d in thread %d of the warp: want one number", n, v, lane)
			return 0, false
		}
	}
	if n < tensorUnit || n > tensorColumns || bits.OnesCount32(n) != 1 {
		w.fault(bench.BadDescriptor, in, 0, "%d columns of tensor memory: want a power of two from %d to %d", n, tensorUnit, tensorColumns)
		return 0, false
	}
	return int(n), true
}

// peer is the other block of a pair; nil after a report.
func (w *warp) peer(in *inst, lane int) *cta {
	rank := w.cta.rank ^ 1
	if rank >= len(w.b.ctas) {
		w.fault(bench.BadDescriptor, in, lane, "%s: block %v has no other to make a pair with, the cluster has %d blocks", opcode(w.source(in)), w.cta.id, len(w.b.ctas))
		return nil
	}
	c := w.b.ctas[rank]
	if c.gone {
		w.fault(bench.SharedOutOfBounds, in, lane, "%s: block %v, the other of the pair, has exited", opcode(w.source(in)), c.id)
		return nil
	}
	return c
}

// waitForTensor puts the path aside until tensor memory changes hands.
func (w *warp) waitForTensor(in *inst) {
	w.retry(stopPath)
	w.park(wait{kind: waitTensor, in: in})
}

// tensorChanged lets those go on who wait for tensor memory.
func (b *block) tensorChanged() {
	b.idle = 0
	for _, w := range b.warps {
		for i := range w.paths {
			if p := &w.paths[i]; p.wait.kind == waitTensor {
				p.wait = wait{}
			}
		}
	}
}

func tensorAlloc(w *warp, in *inst) {
	if !w.wholeWarp(in) {
		return
	}
	n, ok := w.columns(in)
	t := w.cta.tensorMemory()
	if ok && t.relinquished {
		w.fault(bench.BadDescriptor, in, 0, "an allocation of tensor memory after the block has given up the right to allocate")
		ok = false
	}
	if !ok {
		w.pc++
		return
	}
	if t.last > 0 && n > t.last {
		w.fault(bench.BadDescriptor, in, 0, "%d columns of tensor memory after %d: want no more than the allocation before", n, t.last)
	}
	a := &tensorAllocation{n: n, by: w.source(in), warp: w.index}
	if in.tensor.pair {
		a.from, ok = w.together2(in, tensorRequest{n: n})
	} else if a.from = room(n, t); a.from < 0 {
		w.waitForTensor(in)
		ok = false
	}
	if !ok {
		return
	}
	if a.from >= 0 {
		t.take(a)
		t.last = n
		w.writeAllocation(in, uint32(a.from))
	}
	w.pc++
}

// together2 makes a request together with the other block of the pair: where
// the columns are, and whether both are there; otherwise the path waits.
func (w *warp) together2(in *inst, r tensorRequest) (from int, ok bool) {
	t := w.cta.tensorMemory()
	if a := t.answer; a != nil {
		t.answer = nil
		return a.from, true
	}
	peer := w.peer(in, 0)
	if peer == nil {
		return -1, true
	}
	o := peer.tensorMemory()
	if o.asked == nil || *o.asked != r {
		t.asked = &r
		w.waitForTensor(in)
		return 0, false
	}
	from = r.from
	if !r.free {
		if from = room(r.n, t, o); from < 0 {
			t.asked = &r
			w.waitForTensor(in)
			return 0, false
		}
	}
	t.asked, o.asked = nil, nil
	o.answer = &tensorAnswer{from}
	w.b.tensorChanged()
	return from, true
}

// writeAllocation writes the address of an allocation to shared memory: a store
// that each lane's own accesses there precede or follow.
func (w *warp) writeAllocation(in *inst, v uint32) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	a := addr[0]
	if in.mem.space == ptx.SpaceGeneric {
		a -= sharedWindow
	}
	if a%4 != 0 {
		w.faultAt(bench.MisalignedAddress, in, 0, &a, "shared", "shared address %#x: want a multiple of 4", a)
		return
	}
	off, ok := w.locate(in, 0, a, 4, false)
	if !ok {
		return
	}
	if r := w.b.race; r != nil && !r.off {
		w.orderLanes(allLanes)
		at := side{w: w, in: in, space: ptx.SpaceShared, write: true, id: r.eventFor(w, in, in.mem, 0)}
		r.sharedLane(&at, off, 4)
		w.orderLanes(allLanes)
	}
	if u := w.b.undef; u != nil {
		u.define(off, 4)
	}
	*at[uint32](w.b.shared[off:]) = v
}

func tensorDealloc(w *warp, in *inst) {
	if !w.wholeWarp(in) {
		return
	}
	n, ok := w.columns(in)
	if !ok {
		w.pc++
		return
	}
	addr := in.tensor.addr.of(w, 0)
	if in.tensor.pair {
		from, both := w.together2(in, tensorRequest{free: true, from: addr.column(), n: n})
		if !both {
			return
		}
		if from < 0 {
			w.pc++
			return
		}
	}
	w.free(in, addr, n)
	w.pc++
}

// free ends an allocation.
func (w *warp) free(in *inst, addr tensorAddress, n int) {
	t := w.cta.tensorMemory()
	all := lanesArea(w.cta, 0, tensorLanes, addr.column(), n)
	x := w.newTensorWork(tensorFree, in, 0)
	w.use(x, all, true, false)
	w.finishTensor(x)
	t.uses = slices.DeleteFunc(t.uses, func(u *tensorUse) bool { return all.covers(&u.tensorArea) })
	if addr.lane() != 0 || !t.give(addr.column(), n) {
		w.badTensor(in, 0, uint64(addr), "%d columns of tensor memory at %v: no allocation is that", n, addr)
	} else {
		for u := addr.column() / tensorUnit; u < (addr.column()+n)/tensorUnit; u++ {
			t.freed[u] = x
		}
	}
	w.b.tensorChanged()
}

// tensorWait is wait::ld and wait::st.
func (d *decoder) tensorWait(store bool) {
	in, op := d.newTensor(kindMasked)
	d.aligned()
	op.store = store
	d.operands(0, 0)
	in.fn[modeFull] = tensorWait
	d.emit(in)
}

func tensorWait(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	list := &w.tensorLoads
	if in.tensor.store {
		list = &w.tensorStores
	}
	for _, x := range *list {
		w.b.landTensor(x)
		w.finishTensor(x)
	}
	clear(*list)
	*list = (*list)[:0]
}

// awaitedTensor says what a path waits for that waits for tensor memory.
func (w *warp) awaitedTensor(p *path) string {
	op := p.wait.in.tensor
	if t := w.cta.tensor; op.pair && t != nil && t.asked != nil {
		return fmt.Sprintf("the other block of the pair at %s", opcode(w.sourceIn(p.fr, p.wait.in)))
	}
	return fmt.Sprintf("%d columns of tensor memory", p.fr.r[op.size][0])
}
