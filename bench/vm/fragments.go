package vm

import (
	"slices"

	"github.com/kgen-dev/kgen/bench"
)

// Registers that wgmma uses are not the thread's own from the instruction to the
// wait that covers it, and what a thread wrote to them before belongs to wgmma only
// after a wgmma.fence. PTX ISA 9.7.15.2. Such registers are numbered, function by
// function, and instructions that write them say so.

// registerUses are what a frame knows of its registers that wgmma uses.
type registerUses struct {
	written []uint32       // the warp's fences, plus 1, before a thread wrote it last; 0 is never
	sums    []*wgmmaFlight // that the register is an accumulator of, in flight
	reads   []*wgmmaFlight // that read it as a part of A
}

// fragment is the number of a register that wgmma uses.
func (d *decoder) fragment(v int32) int32 {
	if d.fragments == nil {
		d.fragments = map[int32]int32{}
	}
	n, ok := d.fragments[v]
	if !ok {
		n = int32(len(d.fragments))
		d.fragments[v] = n
	}
	return n
}

// findFragments finds the instructions that write registers that wgmma uses.
func (d *decoder) findFragments() {
	if len(d.fragments) == 0 {
		return
	}
	d.p.fragments = len(d.fragments)
	for _, in := range d.insts {
		if in.wg != nil {
			continue
		}
		for _, v := range in.defs {
			if n, ok := d.fragments[v]; ok {
				in.fragments = append(in.fragments, n)
			}
		}
	}
}

// watched is a function of an instruction that writes registers that wgmma uses.
func watched(f execFn) execFn {
	return func(w *warp, in *inst) {
		f(w, in)
		w.wroteFragments(in)
	}
}

// fragmentsOf is a frame's, nil where nothing is watched.
func (w *warp) fragmentsOf(fr *frame) *registerUses {
	if r := w.b.race; r == nil || r.off || fr.prog.fragments == 0 {
		return nil
	}
	if fr.fragments == nil {
		n := fr.prog.fragments
		fr.fragments = &registerUses{make([]uint32, n), make([]*wgmmaFlight, n), make([]*wgmmaFlight, n)}
	}
	return fr.fragments
}

func (x *registerUses) reset() {
	if x != nil {
		clear(x.written)
		clear(x.sums)
		clear(x.reads)
	}
}

// wroteFragments notes that an instruction wrote registers that wgmma uses.
func (w *warp) wroteFragments(in *inst) {
	x := w.fragmentsOf(w.fr)
	if x == nil {
		return
	}
	for _, n := range in.fragments {
		x.written[n] = w.wg.fences + 1
		if f := x.sums[n]; f != nil {
			w.reportFragment(in, f, "writes a register that is an accumulator of a wgmma in flight")
		}
		if f := x.reads[n]; f != nil {
			w.reportFragment(in, f, "writes a register that a wgmma in flight reads")
		}
	}
}

// reportFragment reports an instruction and a wgmma that use a register and that
// nothing orders.
func (w *warp) reportFragment(in *inst, f *wgmmaFlight, what string) {
	src, other := w.source(in), w.sourceIn(f.fr, f.in)
	w.reportOperands(bench.AsyncCopyRace, faultKey{class: bench.AsyncCopyRace, in: src, other: other}, firstLane(w.mask), w, what+" and was not waited for")
}

// reportOperands reports what is wrong with a wgmma's operands; other is the warp
// of the instruction other than the key's own.
func (w *warp) reportOperands(class bench.FaultClass, key faultKey, lane int, other *warp, what string) {
	b := w.b
	if !b.l.reports(class) {
		return
	}
	fault := b.faults.add(key, 1)
	if fault == nil {
		return
	}
	fault.Kernel, fault.Message = b.l.prog.name, what
	fault.Site = b.site(w.index, lane, key.in)
	if key.other != nil {
		site := b.site(other.index, firstLane(other.live), key.other)
		fault.Other = &site
	}
}

// useFragments compares a wgmma that is issued with what is under way in its
// registers, and makes them its own.
func (w *warp) useFragments(f *wgmmaFlight) {
	x := w.fragmentsOf(w.fr)
	if x == nil {
		return
	}
	op := f.in.wg
	if w.wg.fences == 0 {
		w.unfenced(f, "no wgmma.fence comes before the first wgmma.mma_async")
	}
	for _, n := range slices.Concat(op.sums, op.parts) {
		if x.written[n] == w.wg.fences+1 {
			w.unfenced(f, "registers of it were written since the last wgmma.fence")
			break
		}
	}
	for _, n := range op.sums {
		if o := x.sums[n]; o != nil && (o.in.wg.n != op.n || o.in.wg.dt != op.dt) {
			w.reportFragment(f.in, o, "adds to an accumulator of a wgmma of another shape that is in flight")
		}
		if o := x.reads[n]; o != nil {
			w.reportFragment(f.in, o, "has an accumulator that a wgmma in flight reads")
		}
		x.sums[n] = f
	}
	for _, n := range op.parts {
		x.reads[n] = f
	}
}

func (w *warp) unfenced(f *wgmmaFlight, what string) {
	if w.b.race.unready {
		return
	}
	w.reportOperands(bench.AsyncCopyRace, faultKey{class: bench.AsyncCopyRace, in: w.source(f.in)}, 0, nil, what)
}

// doneFragments gives a wgmma's registers back to the threads.
func (w *warp) doneFragments(f *wgmmaFlight) {
	x := w.fragmentsOf(f.fr)
	if x == nil {
		return
	}
	for _, n := range f.in.wg.sums {
		if x.sums[n] == f {
			x.sums[n] = nil
		}
	}
	for _, n := range f.in.wg.parts {
		if x.reads[n] == f {
			x.reads[n] = nil
		}
	}
}

// issued is a wgmma as the first warp of its group issued it: the others must do
// the same.
type issued struct {
	in    *inst
	fr    *frame
	w     *warp
	a, b  uint64
	keep  bool
	warps uint32 // of the group that have issued it
}

// issueOrder is the wgmma instructions of a group of four warps that not all of
// them have come to.
type issueOrder struct {
	list []issued
	from int    // number of the first of them
	next [4]int // number of each warp's next
}

// alike compares a wgmma's operands: of the warp's lanes, and of the warps of its
// group.
func (w *warp) alike(f *wgmmaFlight) {
	if w.b.race == nil || !w.b.l.reports(bench.BadDescriptor) {
		return
	}
	op := f.in.wg
	first := firstLane(w.mask)
	differ := func(what string) {
		w.reportOperands(bench.BadDescriptor, faultKey{class: bench.BadDescriptor, in: w.source(f.in)}, first, nil, what+" of the warp's lanes differ: want the same in a warpgroup")
	}
	same := func(slot int32) bool {
		for l := w.mask; l != 0; l &= l - 1 {
			if w.q[slot][firstLane(l)] != w.q[slot][first] {
				return false
			}
		}
		return true
	}
	switch {
	case !op.aRegs && !same(op.descA):
		differ("descriptors of A")
	case !same(op.descB):
		differ("descriptors of B")
	case op.scaled && w.p[op.scaleD]&w.mask != 0 && w.p[op.scaleD]&w.mask != w.mask:
		differ("scale-d")
	}
	w.alikeInGroup(f)
}

func (w *warp) alikeInGroup(f *wgmmaFlight) {
	group := w.number / 4
	for len(w.cta.issues) <= group {
		w.cta.issues = append(w.cta.issues, issueOrder{})
	}
	o := &w.cta.issues[group]
	mine := w.number & 3
	n := o.next[mine]
	o.next[mine]++
	if n-o.from >= len(o.list) {
		o.list = append(o.list, issued{in: f.in, fr: f.fr, w: w, a: f.a, b: f.b, keep: f.keep, warps: 1 << mine})
		return
	}
	x := &o.list[n-o.from]
	x.warps |= 1 << mine
	report := func(class bench.FaultClass, what string) {
		w.reportOperands(class, faultKey{class: class, in: w.source(f.in), other: w.sourceIn(x.fr, x.in)}, 0, x.w, what)
	}
	switch {
	case x.in != f.in:
		report(bench.DivergentCollective, "the warps of a warpgroup issue different wgmma.mma_async")
	case x.a != f.a && !f.in.wg.aRegs:
		report(bench.BadDescriptor, "the descriptor of A differs from that of another warp: want the same in a warpgroup")
	case x.b != f.b:
		report(bench.BadDescriptor, "the descriptor of B differs from that of another warp: want the same in a warpgroup")
	case x.keep != f.keep:
		report(bench.BadDescriptor, "scale-d differs from that of another warp: want the same in a warpgroup")
	}
	for len(o.list) > 0 && o.list[0].warps == 15 {
		o.list = o.list[1:]
		o.from++
	}
}

// checkGroups reports wgmma instructions that some warps of a group never came to.
func (c *cta) checkGroups() {
	for i := range c.issues {
		o := &c.issues[i]
		if len(o.list) == 0 {
			continue
		}
		x := &o.list[0]
		w := x.w
		w.reportOperands(bench.DivergentCollective, faultKey{class: bench.DivergentCollective, in: w.sourceIn(x.fr, x.in)}, 0, nil,
			"not all four warps of the warpgroup issue the wgmma.mma_async")
	}
}
