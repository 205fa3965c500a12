package vm

import (
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() { decoders["call"] = (*decoder).callFunction }

// callSite is a call: whom it calls, and where its arguments and results lie
// in the caller's frame.
type callSite struct {
	fn      *ptx.Function // nil of an indirect call
	builtin builtin
	target  int32 // slot of the function's address, of an indirect call
	args    []place
	results []place
}

const (
	maxDepth = 512       // calls within one another
	maxStack = 512 << 10 // bytes of local memory of a thread
)

// callFunction is call, direct and indirect. Arguments and results are .param
// variables of the caller.
func (d *decoder) callFunction() {
	d.has("uni")
	ops := d.src.Operands
	site := &callSite{}
	in := d.new(kindControl)
	in.ctl, in.call = call, site
	var results *ptx.Operand
	if len(ops) > 0 && ops[0].Kind == ptx.OpList {
		results = &ops[0]
		site.results = d.callPlaces(results, nil)
		ops = ops[1:]
	}
	if len(ops) == 0 {
		d.refuse("want a function")
	}
	callee := &ops[0]
	ops = ops[1:]
	if len(ops) > 0 && ops[0].Kind == ptx.OpList {
		site.args = d.callPlaces(&ops[0], d.formals(callee, ops[1:]))
		d.passRegisters("st", &ops[0], site.args)
	}
	switch callee.Kind {
	case ptx.OpFunc:
		f := d.mod.definition(callee.Decl().(*ptx.Function))
		if f.Body == nil {
			b, ok := builtins[f.Name]
			if !ok {
				d.refuse("function %s is not defined", f.Name)
			}
			site.builtin = b
			in.ctl = callBuiltin
			break
		}
		site.fn = f
		d.matchPlaces(f, site)
	case ptx.OpReg:
		d.source(in, &site.target, callee, ptx.U64, exact)
	default:
		d.refuse("operand %s: want a function", describe(callee))
	}
	d.emit(in)
	if in.guard >= 0 || callee.Kind == ptx.OpReg {
		d.meetAfter()
	}
	if results != nil {
		d.passRegisters("ld", results, site.results)
	}
}

// formals are the parameters of a call's callee, or of what it must be like.
func (d *decoder) formals(callee *ptx.Operand, rest []ptx.Operand) []*ptx.Variable {
	if f, ok := callee.Decl().(*ptx.Function); ok {
		return d.mod.definition(f).Params
	}
	if len(rest) == 0 {
		return nil
	}
	switch like := rest[len(rest)-1].Decl().(type) {
	case *ptx.Prototype:
		return like.Params
	case *ptx.TargetList:
		if len(like.Names) == 0 {
			return nil
		}
		if f, ok := like.Names[0].Decl().(*ptx.Function); ok {
			return f.Params
		}
	}
	return nil
}

// callPlaces is where arguments or results lie in the caller's frame. Registers
// and constants get a place there of their own; constants are of the types of
// the callee's parameters.
func (d *decoder) callPlaces(list *ptx.Operand, formals []*ptx.Variable) []place {
	var out []place
	for i := range list.Elems() {
		o := &list.Elems()[i]
		switch o.Kind {
		case ptx.OpReg:
			out = append(out, d.newPlace(d.registerInfo(o.Slot()).Type))
			continue
		case ptx.OpImm:
			t := ptx.B32
			if i < len(formals) {
				t = formals[i].Type
			}
			out = append(out, d.newPlace(t))
			continue
		}
		v, ok := o.Decl().(*ptx.Variable)
		if !ok || o.Kind != ptx.OpSymbol {
			d.refuse("argument %s: want a .param variable, a register or a constant", describe(o))
		}
		at, ok := d.p.locals[v]
		if !ok {
			d.refuse("argument %s: want a .param variable of this function", o.Name())
		}
		out = append(out, place{v, at})
	}
	return out
}

// newPlace makes a .param variable in the function's frame.
func (d *decoder) newPlace(t ptx.Type) place {
	if t == ptx.Pred {
		d.refuse("a register of type .%s as an argument: want an integer or a floating-point number", t)
	}
	v := &ptx.Variable{Name: "an argument", Space: ptx.SpaceParam, Type: untyped(t)}
	p := place{v, d.p.localBytes}
	d.p.locals[v] = p.offset
	d.p.localBytes += 16
	return p
}

// untyped is the type of so many bits.
func untyped(t ptx.Type) ptx.Type {
	switch t.Bits() {
	case 8:
		return ptx.B8
	case 16:
		return ptx.B16
	case 64:
		return ptx.B64
	case 128:
		return ptx.B128
	}
	return ptx.B32
}

// passRegisters stores arguments that are registers or constants to their
// places before a call, or loads results that are registers after it.
func (d *decoder) passRegisters(op string, list *ptx.Operand, places []place) {
	for i := range list.Elems() {
		if o := &list.Elems()[i]; o.Kind != ptx.OpSymbol {
			d.passRegister(op, o, places[i].v)
		}
	}
}

// passRegister decodes a ld.param or st.param between a register and a variable
// in the frame, as part of the current instruction.
func (d *decoder) passRegister(op string, reg *ptx.Operand, v *ptx.Variable) {
	at := ptx.Operand{Kind: ptx.OpAddr, Parts: &[]ptx.Operand{{Kind: ptx.OpSymbol, Symbol: &ptx.Symbol{Name: v.Name, Decl: v}}}}
	ops := []ptx.Operand{at, *reg}
	if op == "ld" {
		ops = []ptx.Operand{*reg, at}
	}
	d.within(op, []string{"param", v.Type.String()}, ops...)
}

// registerOf is how the function's code names a parameter that is a register;
// nil where it does not.
func (d *decoder) registerOf(v *ptx.Variable) *ptx.Operand {
	var found *ptx.Operand
	var visit func(o *ptx.Operand)
	visit = func(o *ptx.Operand) {
		if o.Kind == ptx.OpReg && o.Decl() == v {
			found = o
		}
		for i := range o.Elems() {
			visit(&o.Elems()[i])
		}
	}
	for _, in := range d.fn.Code {
		if in.Guard != nil {
			visit(in.Guard)
		}
		for i := range in.Operands {
			visit(&in.Operands[i])
		}
	}
	return found
}

// ownRegisters loads the function's parameters that are registers ("ld"), or
// stores its results that are ("st").
func (d *decoder) ownRegisters(op string, vars []*ptx.Variable) {
	for _, v := range vars {
		if v.Space != ptx.SpaceReg {
			continue
		}
		if o := d.registerOf(v); o != nil {
			plain := *o
			plain.Neg, plain.Minus = false, false
			d.passRegister(op, &plain, v)
		}
	}
}

// matchPlaces compares arguments with the function's parameters.
func (d *decoder) matchPlaces(f *ptx.Function, site *callSite) {
	check := func(what string, have []place, want []*ptx.Variable) {
		if len(have) != len(want) {
			d.refuse("%d %s: %s has %d", len(have), what, f.Name, len(want))
		}
		for i := range have {
			if a, b := have[i].v.Size(), want[i].Size(); a != b {
				d.refuse("%s %s has %d bytes: %s has %d", what, have[i].v.Name, a, f.Name, b)
			}
		}
	}
	check("arguments", site.args, f.Params)
	check("results", site.results, f.Returns)
}

func call(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	site := in.call
	k := w.b.l.kern
	p := k.funcs[site.fn]
	if site.fn == nil {
		if w.undefs > 0 {
			w.checkOperand(in, class64, site.target, m)
		}
		target := w.q[site.target][firstLane(m)]
		var same uint32
		for l := m; l != 0; l &= l - 1 {
			if i := firstLane(l); w.q[site.target][i] == target {
				same |= 1 << i
			}
		}
		if same != m { // functions of their own, one after the other
			w.apart(m, same)
			return
		}
		if p = k.functionAt(target); p == nil || !fits(p, site) {
			w.fail(in, firstLane(m), "call of address %#x: no function with these parameters begins there", target)
			return
		}
	}
	w.enterCall(in, p, m)
}

// functionAt is the function whose address this is, nil if there is none that
// can be called.
func (k *kernel) functionAt(address uint64) *program {
	n := address>>4 - 1
	if address&15 != 0 || n > math.MaxInt32 {
		return nil
	}
	if p := k.table[int(n)]; p != nil && !p.fn.Kernel {
		return p
	}
	return nil
}

// fits says whether a function takes a call's arguments.
func fits(p *program, site *callSite) bool {
	return len(p.params) == len(site.args) && len(p.returns) == len(site.results)
}

// apart lets some lanes of the current path come to its instruction by
// themselves first, then the rest of m. All meet again after the instruction,
// where those wait already that skip it.
func (w *warp) apart(m, same uint32) {
	w.joinAfter(w.mask &^ m)
	w.paths = append(w.paths, path{pc: w.pc, mask: m &^ same, fr: w.fr, join: w.join})
	w.mask = same
	w.setMode()
}

// leaveBehind keeps the lanes m at the current instruction; the others wait
// for them after it.
func (w *warp) leaveBehind(m uint32) {
	if skipped := w.mask &^ m; skipped != 0 {
		w.joinAfter(skipped)
		w.mask = m
	}
}

// joinAfter makes the current path's lanes meet after its instruction, where
// some have arrived already.
func (w *warp) joinAfter(arrived uint32) {
	next := w.pc + 1
	if !w.code[next].isLabel() { // nothing makes lanes wait there
		if arrived != 0 {
			w.paths = append(w.paths, path{pc: next, mask: arrived, fr: w.fr, join: w.join})
		}
		return
	}
	if !w.joinsAt(next) {
		w.join = w.newJoin(next, w.fr, w.mask, w.join)
	}
	w.join.arrived |= arrived
}

// enterCall starts a function for some lanes; they come back to the next
// instruction together.
func (w *warp) enterCall(in *inst, p *program, m uint32) {
	caller := w.fr
	top := caller.top(m)
	if caller.depth >= maxDepth || top+p.localBytes > maxStack {
		w.fault(bench.LocalOutOfBounds, in, firstLane(m), "the stack is full: %d calls deep, %d bytes of local memory", caller.depth, top)
		w.pc++
		w.exitLanes(m)
		return
	}
	w.growLocal(top + p.localBytes)
	w.leaveBehind(m)
	j := w.newJoin(w.pc+1, caller, m, w.join)
	j.call = true
	j.site = in.call
	fr := w.newFrame(p, top)
	fr.depth = caller.depth + 1
	w.clearFrame(fr, m)
	for i, a := range in.call.args {
		w.copyLocal(caller, a, fr, p.params[i], m)
	}
	w.mask, w.join, w.pc = m, j, 0
	w.enter(fr)
	w.setMode()
}

// clearFrame marks a new frame's local memory as not written.
func (w *warp) clearFrame(fr *frame, lanes uint32) {
	if w.localUndef == nil {
		return
	}
	for l := lanes; l != 0; l &= l - 1 {
		at := int64(firstLane(l))*w.localSize + fr.local
		p := w.localUndef.bytes[at : at+fr.prog.localBytes]
		for i := range p {
			p[i] = 1
		}
	}
}

// copyLocal copies a variable from one frame to another.
func (w *warp) copyLocal(from *frame, src place, to *frame, dst place, lanes uint32) {
	n := dst.v.Size()
	for l := lanes; l != 0; l &= l - 1 {
		base := int64(firstLane(l)) * w.localSize
		s, d := base+from.local+src.offset, base+to.local+dst.offset
		copy(w.local[d:d+n], w.local[s:s+n])
		if u := w.localUndef; u != nil {
			copy(u.bytes[d:d+n], u.bytes[s:s+n])
			for i := range n {
				if id, ok := u.origins[uint64(s+i)]; ok {
					u.origins[uint64(d+i)] = id
				}
			}
		}
	}
}

// results copies what a function returns to its caller, for the lanes that
// return.
func (w *warp) results(j *join, lanes uint32) {
	for i, r := range j.site.results {
		w.copyLocal(w.fr, w.fr.prog.returns[i], j.fr, r, lanes)
	}
}

// growLocal makes room for so many bytes of local memory in each lane.
func (w *warp) growLocal(n int64) {
	if n <= w.localSize {
		return
	}
	size := max(n, 2*w.localSize)
	local := make([]byte, warpSize*size)
	var bytes []byte
	if w.localUndef != nil {
		bytes = make([]byte, warpSize*size)
	}
	for i := range int64(warpSize) {
		copy(local[i*size:], w.local[i*w.localSize:(i+1)*w.localSize])
		if bytes != nil {
			copy(bytes[i*size:], w.localUndef.bytes[i*w.localSize:(i+1)*w.localSize])
		}
	}
	if bytes != nil {
		origins := map[uint64]uint32{}
		for at, id := range w.localUndef.origins {
			lane, off := at/uint64(w.localSize), at%uint64(w.localSize)
			origins[lane*uint64(size)+off] = id
		}
		w.localUndef = &sharedUndefined{bytes: bytes, origins: origins}
	}
	w.local, w.localSize = local, size
}
