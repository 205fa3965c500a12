package vm

import (
	"fmt"
	"sort"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Bounds on what a function may ask for: the memory of the liveness analysis,
// and registers and constants of a warp.
const (
	maxLiveBits = 1 << 29
	maxSlots    = 1 << 14
)

// assignSlots gives every value a slot: constants one of their own, first of
// all, and registers that are never live together may share one. PTX has as
// many registers as its writer likes; few slots keep a warp's registers in the
// processor's nearest cache.
func (d *decoder) assignSlots(g *graph, live *liveness) []int32 {
	slot := make([]int32, len(d.values))
	for v, val := range d.values {
		if !val.constant {
			continue
		}
		slot[v] = int32(d.p.slots[val.k])
		d.p.slots[val.k]++
		if val.shared {
			i := boolInt(val.k == class64)
			d.p.shared[i] = append(d.p.shared[i], slot[v])
		}
		switch val.k {
		case class64:
			d.p.const64 = append(d.p.const64, val.content)
		case class32:
			d.p.const32 = append(d.p.const32, uint32(val.content))
		case classPred:
			d.p.constPred = append(d.p.constPred, uint32(val.content))
		}
	}
	type interval struct{ value, start, end int32 }
	span := d.spans(g, live)
	var order []interval
	for v, s := range span {
		if s[1] >= 0 && !d.values[v].constant {
			order = append(order, interval{int32(v), s[0], s[1]})
		}
	}
	sort.Slice(order, func(i, j int) bool {
		if order[i].start != order[j].start {
			return order[i].start < order[j].start
		}
		return order[i].value < order[j].value
	})
	var free [numClasses][]int32
	ends := make([][]int32, len(d.insts)+1) // values whose interval ends there
	next := int32(0)
	for _, iv := range order {
		for ; next < iv.start; next++ {
			for _, v := range ends[next] {
				k := d.values[v].k
				free[k] = append(free[k], slot[v])
			}
		}
		k := d.values[iv.value].k
		if n := len(free[k]); n > 0 {
			slot[iv.value] = free[k][n-1]
			free[k] = free[k][:n-1]
		} else {
			slot[iv.value] = int32(d.p.slots[k])
			d.p.slots[k]++
		}
		ends[iv.end] = append(ends[iv.end], iv.value)
	}
	return slot
}

// spans is the run of instructions, both ends included, over which each value
// is live; {0, -1} where it never is.
func (d *decoder) spans(g *graph, live *liveness) [][2]int32 {
	span := make([][2]int32, len(d.values))
	for v := range span {
		span[v] = [2]int32{0, -1}
	}
	touch := func(v, i int32) {
		s := &span[v]
		if s[1] < 0 {
			*s = [2]int32{i, i}
			return
		}
		s[0], s[1] = min(s[0], i), max(s[1], i)
	}
	for b := range g.blocks {
		blk := &g.blocks[b]
		live.in[b].each(func(v int32) { touch(v, blk.first) })
		live.out[b].each(func(v int32) { touch(v, blk.end-1) })
		for i := blk.first; i < blk.end; i++ {
			for _, v := range d.insts[i].uses {
				touch(v, i)
			}
			for _, v := range d.insts[i].defs {
				touch(v, i)
			}
		}
	}
	return span
}

// finish assigns slots and lays the program out.
func (d *decoder) finish() {
	g := buildGraph(d.insts)
	if len(g.blocks)*len(d.values) > maxLiveBits {
		panic(&ptx.Error{File: d.mod.src.File, Pos: d.fn.Pos, Msg: d.fn.Name + ": the function is too large for the virtual machine"})
	}
	d.reconvergence(g)
	d.p.findSpots()
	d.ignoredWaits(g)
	d.findFragments()
	live := g.liveValues(d.insts, len(d.values))
	slot := d.assignSlots(g, d.keepAccumulators(g, live))
	for _, in := range d.wgmmaWaits {
		in.uses = in.uses[:len(in.uses)-len(d.wgmmaRegs)]
	}
	for _, b := range d.binds {
		*b.field = slot[b.value]
	}
	p := d.p
	// Masked destinations are computed aside first: one more register each.
	scratch := [2]int32{int32(p.slots[class32]), int32(p.slots[class64])}
	p.slots[class32]++
	p.slots[class64]++
	if n := p.total(); n > maxSlots {
		panic(&ptx.Error{File: d.mod.src.File, Pos: d.fn.Pos, Msg: fmt.Sprintf("%s: %d registers and constants at a time: the virtual machine has %d", d.fn.Name, n, maxSlots)})
	}
	p.base = [numClasses]int32{0, int32(p.slots[0]), int32(p.slots[0] + p.slots[1])}
	unify := func(list []int32) []int32 {
		for i, v := range list {
			list[i] = p.unified(d.values[v].k, slot[v])
		}
		return list
	}
	if timed := d.findTimed(); timed != nil {
		p.timed = make([]bool, p.total())
		p.timed[p.unified(class32, scratch[0])], p.timed[p.unified(class64, scratch[1])] = true, true
		for v, is := range timed {
			if is {
				p.timed[p.unified(d.values[v].k, slot[v])] = true
			}
		}
	}
	start := make([]int32, len(d.insts)+1) // place of each decoded instruction in the program
	for i, in := range d.insts {
		start[i] = int32(len(p.code))
		if in.isLabel() && in.jump.target == 0 {
			continue // no branch meets here
		}
		in.uses, in.defs = unify(in.uses), unify(in.defs)
		p.code = append(p.code, d.wrap(in, scratch))
	}
	start[len(d.insts)] = int32(len(p.code))
	d.link(start)
	for b := range g.blocks {
		d.keepLive(g, live, slot, start, int32(b))
	}
	if len(g.blocks) > 0 {
		live.in[0].each(func(v int32) {
			if !d.values[v].constant {
				name := "a register"
				if r := d.values[v].reg; r >= 0 {
					name = d.registerInfo(r).Name
				}
				p.undefined = append(p.undefined, undefinedSlot{p.unified(d.values[v].k, slot[v]), name})
			}
		})
	}
}

// keepAccumulators makes the registers that wgmma writes live until the waits
// at which it may do so.
func (d *decoder) keepAccumulators(g *graph, live *liveness) *liveness {
	if len(d.wgmmaWaits) == 0 {
		d.wgmmaRegs = nil
		return live
	}
	for _, in := range d.wgmmaWaits {
		in.uses = append(in.uses, d.wgmmaRegs...)
	}
	return g.liveValues(d.insts, len(d.values))
}

// keepLive notes what is live where a block starts.
func (d *decoder) keepLive(g *graph, live *liveness, slot, start []int32, b int32) {
	p := d.p
	if p.live == nil {
		p.live = make([][]uint64, len(p.code)+1)
	}
	set := newBitset(p.total())
	live.in[b].each(func(v int32) { set.add(p.unified(d.values[v].k, slot[v])) })
	p.live[start[g.blocks[b].first]] = set
}

// reconvergence finds where the lanes of each branch meet again and marks
// those labels (by target 1). A place that only one branch leads to is none.
func (d *decoder) reconvergence(g *graph) {
	idom := g.postDominators(d.insts)
	for b := range g.blocks {
		last := d.insts[g.blocks[b].end-1]
		if last.flow != flowBranch || len(g.blocks[b].succ) < 2 || idom[b] < 0 {
			continue
		}
		meet := d.insts[g.blocks[idom[b]].first]
		if !meet.isLabel() {
			continue
		}
		meet.jump.target = 1
		last.jump.reconverge = g.blocks[idom[b]].first
	}
}

// link turns branches' labels into places in the program.
func (d *decoder) link(start []int32) {
	at := map[*ptx.Label]int32{}
	for i, in := range d.insts {
		if in.isLabel() {
			at[in.jump.label] = start[i]
		}
	}
	for _, in := range d.insts {
		if in.flow != flowBranch {
			continue
		}
		j := in.jump
		if j.reconverge >= 0 {
			j.reconverge = start[j.reconverge]
		}
		if j.label != nil {
			j.target = at[j.label]
		}
		for _, l := range j.labels {
			j.targets = append(j.targets, at[l])
		}
	}
	code := d.p.code
	for i := len(code) - 1; i >= 0; i-- {
		if code[i].ctl == nil {
			code[i].run = code[i+1].run + 1
		}
	}
}

// wrap completes an instruction: its functions for partial warps and undefined
// registers, its guard, and the pseudo instruction at a label.
func (d *decoder) wrap(in *inst, scratch [2]int32) inst {
	if in.isLabel() {
		in.ctl = meet
		return *in
	}
	if in.kind == kindControl {
		if len(in.fragments) > 0 {
			in.ctl = watched(in.ctl)
		}
		return *in
	}
	full := in.fn[modeFull]
	in.fn[modePartial] = full
	if in.kind == kindPure {
		aside := *in
		aside.d = scratch[in.kd]
		in.next = &aside
		if in.kd == class64 {
			in.fn[modePartial] = masked64
		} else {
			in.fn[modePartial] = masked32
		}
	}
	if len(in.fragments) > 0 {
		in.fn[modeFull], in.fn[modePartial] = watched(in.fn[modeFull]), watched(in.fn[modePartial])
	}
	in.fn[modeUndefined], in.fn[3] = undefined, undefined
	if in.guard < 0 {
		return *in
	}
	last := len(in.uses) - 1
	outer := inst{kind: kindMasked, pc: in.pc, guard: in.guard, flip: in.flip, uses: in.uses[last:], next: in}
	outer.fn = [numModes]execFn{guarded, guarded, guardedUndefined, guardedUndefined}
	in.uses = in.uses[:last]
	return outer
}
