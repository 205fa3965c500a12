package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

func init() {
	decoders["bra"] = (*decoder).bra
	decoders["brx"] = (*decoder).brx
	decoders["ret"] = func(d *decoder) { d.has("uni"); d.operands(0, 0); d.ret() }
	decoders["exit"] = func(d *decoder) { d.operands(0, 0); d.leave(exit) }
	decoders["trap"] = func(d *decoder) { d.operands(0, 0); d.leave(trap) }
	decoders["brkpt"] = func(d *decoder) { d.operands(0, 0); d.nothing() }
	decoders["pmevent"] = func(d *decoder) { d.has("mask"); d.operands(1, 1); d.nothing() }
	decoders["nanosleep"] = (*decoder).nanosleep
}

// nothing emits an instruction without effect.
func (d *decoder) nothing() {
	in := d.new(kindMasked)
	in.fn[modeFull] = func(*warp, *inst) {}
	d.emit(in)
}

// control emits a control instruction.
func (d *decoder) control(f execFn, fl flow) *inst {
	in := d.new(kindControl)
	in.ctl, in.flow = f, fl
	d.emit(in)
	return in
}

func (d *decoder) bra() {
	uniform := d.has("uni")
	ops := d.operands(1, 1)
	label, ok := ops[0].Decl().(*ptx.Label)
	if !ok {
		d.refuse("operand %s: want a label", describe(&ops[0]))
	}
	in := d.control(branch, flowBranch)
	in.jump = &jump{label: label, reconverge: -1, uniform: uniform}
	d.p.counter[d.src.PC] = countBranch
	if in.guard >= 0 && d.passed[label] { // lanes that leave a loop wait for the others
		d.meetAfter()
	}
}

func (d *decoder) brx() {
	d.has("idx")
	uniform := d.has("uni")
	ops := d.operands(2, 2)
	list, ok := ops[1].Decl().(*ptx.TargetList)
	if !ok {
		d.refuse("operand %s: want a list of labels", describe(&ops[1]))
	}
	in := d.new(kindControl)
	in.ctl, in.flow = branchIndexed, flowBranch
	in.jump = &jump{reconverge: -1, uniform: uniform}
	for i := range list.Names {
		label, ok := list.Names[i].Decl().(*ptx.Label)
		if !ok {
			d.refuse("target %s: want a label", describe(&list.Names[i]))
		}
		in.jump.labels = append(in.jump.labels, label)
	}
	d.source(in, &in.a, &ops[0], ptx.U32, exact)
	d.emit(in)
	d.p.counter[d.src.PC] = countBranch
}

func (d *decoder) ret() {
	if d.fn.Kernel {
		d.leave(exit)
	} else {
		d.ownRegisters("st", d.fn.Returns)
		d.leave(ret)
	}
}

func (d *decoder) leave(f execFn) { d.control(f, flowLeave) }

// nanosleep lets others run first, and moves the warp's clocks on.
func (d *decoder) nanosleep() {
	d.typ()
	ops := d.operands(1, 1)
	in := d.new(kindControl)
	in.ctl = func(w *warp, in *inst) {
		longest := uint32(0)
		for m := w.condition(in); m != 0; m &= m - 1 {
			longest = max(longest, w.r[in.a][firstLane(m)])
		}
		w.slept += int64(longest)
		w.pc++
		w.stop = stopYield
	}
	d.source(in, &in.a, &ops[0], ptx.U32, exact)
	d.emit(in)
}

// condition is the lanes of the current path whose guard holds; an undefined
// guard is a fault.
func (w *warp) condition(in *inst) uint32 {
	if in.guard < 0 {
		return w.mask
	}
	if w.undefs > 0 {
		w.checkGuard(in)
	}
	return w.mask & (w.p[in.guard] ^ in.flip)
}

func branch(w *warp, in *inst) {
	m := w.condition(in)
	switch {
	case m == 0 || in.jump.target == w.pc+1: // all go on there
		w.pc++
	case m == w.mask:
		w.pc = in.jump.target
	default:
		w.b.counts.divergent++
		w.pc++
		w.diverge(m, in.jump.target, in.jump.reconverge)
	}
}

// branchIndexed sends each lane where its index says.
func branchIndexed(w *warp, in *inst) {
	m := w.condition(in)
	rest := w.mask &^ m
	idx := &w.r[in.a]
	if w.undefs > 0 {
		w.checkAddress(in, in.uses[0], m)
	}
	j := in.jump
	for l := m; l != 0; l &= l - 1 {
		if i := firstLane(l); int(idx[i]) >= len(j.targets) {
			w.fail(in, i, "brx.idx with index %d: the list has %d targets", idx[i], len(j.targets))
			return
		}
	}
	parts := 0
	for m != 0 {
		to := j.targets[idx[firstLane(m)]]
		var same uint32
		for l := m; l != 0; l &= l - 1 {
			if lane := firstLane(l); j.targets[idx[lane]] == to {
				same |= 1 << lane
			}
		}
		m &^= same
		switch {
		case m == 0 && rest == 0:
			w.pc = to
		case to == w.pc+1 && in.guard >= 0:
			rest |= same
		default:
			parts++
			w.diverge(same, to, j.reconverge)
		}
	}
	if rest != 0 {
		w.pc++
	}
	if parts > 0 {
		w.b.counts.divergent++
	}
}

func exit(w *warp, in *inst) {
	m := w.condition(in)
	w.pc++
	if m != 0 {
		w.exitLanes(m)
	}
}

// ret takes lanes back to the caller.
func ret(w *warp, in *inst) {
	m := w.condition(in)
	w.pc++
	if m == 0 {
		return
	}
	end := w.join
	for end != nil && !end.call {
		end = end.parent
	}
	if end == nil {
		w.exitLanes(m)
		return
	}
	w.results(end, m)
	callee := w.fr
	end.arrived |= m
	w.leave(m, end)
	if end.arrived == end.want {
		w.paths = append(w.paths, path{pc: end.pc, mask: end.want, fr: end.fr, join: end.parent})
		w.joins = append(w.joins, end)
		w.frames = append(w.frames, callee)
	}
}

// trap is the kernel giving up.
func trap(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	w.fail(in, firstLane(m), "trap")
}
