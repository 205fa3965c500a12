package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// atomic combines elements into memory, each once: by the thread that owns it.
func (l *lowering) atomic(o *ir.Op) {
	value := o.Operand("value")
	if is8(value.Type.Elem) || value.Type.Elem == ir.I1 {
		panic(unsupported(o, "elements of %s: want 16 bits or more", value.Type.Elem))
	}
	a := &atomicOp{lowering: l, o: o, elem: value.Type.Elem, used: len(l.users[o.Result()]) > 0}
	if value.Type.IsScalar() {
		a.scalarElement(value)
		return
	}
	f := l.tile(value)
	g := l.accessFor(o, f.l, bytesOf(f.elem))
	mask := l.maskOf(o)
	vs := l.elements(f)
	old := make([]*simt.Value, len(vs))
	for r, v := range vs {
		p := l.both(g.idle, g.guard(r))
		if mask != nil {
			p = l.both(p, mask[r])
		}
		addr, off := g.at(r)
		old[r] = a.element(p, addr, off, v)
	}
	if a.used {
		l.set(o.Result(), l.packed(o.Result().Type, a.toCopies(f, old)))
	}
}

// atomicOp is an atomic operation on elements of a type.
type atomicOp struct {
	*lowering
	o    *ir.Op
	elem ir.Elem
	used bool // somebody wants to know what was there
}

// scalarElement is done by one thread; the others learn through shared memory what was
// there.
func (a *atomicOp) scalarElement(value *ir.Value) {
	b := a.b
	v := a.viewOf(a.o.View())
	first := b.Cmp(simt.EQ, a.tid(), b.Const32(0))
	p := a.insideScalar(a.o, first)
	if m := a.o.Operand("mask"); m != nil {
		p = a.both(p, a.scalar(m))
	}
	old := a.element(p, a.offset(v, a.o.Indices()), 0, a.scalar(value))
	if !a.used {
		return
	}
	at := b.Add(b.SharedBase(), b.Const32(a.plan.buffers[a.o].offset))
	a.meet()
	b.Guarded(first, func() { b.StShared(at, []*simt.Value{old}, simt.Access{}) })
	a.barrier()
	a.uniform(a.o.Result(), b.LdShared(old.Type, 1, at, simt.Access{})[0])
	a.pending.shared = true
}

// toCopies hands what owners found to the threads that hold copies of their elements.
func (a *atomicOp) toCopies(f *fragment, old []*simt.Value) []*simt.Value {
	b := a.b
	lanes, warps := f.l.FreeLanes(), f.l.FreeWarps()
	if lanes == 0 && warps == 0 {
		return old
	}
	owner := b.And(a.tid(), b.Const32(^(lanes | warps<<5)))
	out := make([]*simt.Value, len(old))
	if warps == 0 {
		for r, v := range old {
			out[r] = a.fromLane(v, owner)
		}
		return out
	}
	size := wordBytes(a.elem)
	base := b.Add(b.SharedBase(), b.Const32(a.plan.buffers[a.o].offset))
	stride := 32 * a.warps * size
	a.meet()
	a.under(a.owners(f.l), func() {
		for r, v := range old {
			b.StShared(b.Add(base, b.Mul(a.tid(), b.Const32(size))), []*simt.Value{v}, simt.Access{Offset: r * stride})
		}
	})
	a.barrier()
	for r, v := range old {
		out[r] = b.LdShared(v.Type, 1, b.Add(base, b.Mul(owner, b.Const32(size))), simt.Access{Offset: r * stride})[0]
	}
	a.pending.shared = true
	return out
}

// fromLane is another lane's value, of the lane's number's low bits.
func (l *lowering) fromLane(v, lane *simt.Value) *simt.Value {
	b := l.b
	switch v.Type.Bits() {
	case 64:
		lo, hi := b.Unpack(b.Bitcast(v, simt.I64), simt.I32)
		whole := b.Pack(b.Shfl(simt.Idx, lo, lane, 32), b.Shfl(simt.Idx, hi, lane, 32), simt.I64)
		return b.Bitcast(whole, v.Type)
	case 16:
		x := b.Shfl(simt.Idx, b.Zext(b.Bitcast(v, simt.I16), simt.I32), lane, 32)
		return b.Bitcast(b.Trunc(x, simt.I16), v.Type)
	}
	return b.Shfl(simt.Idx, v, lane, 32)
}

// scopeOf is who sees an operation as one.
func (l *lowering) scopeOf(o *ir.Op) simt.Scope {
	switch {
	case o.Scope == ir.Block:
		return simt.ScopeCTA
	case o.Scope == ir.Cluster && l.m.sm >= 90:
		return simt.ScopeCluster
	case o.Scope == ir.System:
		return simt.ScopeSys
	}
	return simt.ScopeGPU
}

// element combines one element where p holds, and gives what was there, 0 elsewhere.
func (a *atomicOp) element(p, addr *simt.Value, off int, v *simt.Value) (old *simt.Value) {
	op, ok := a.instruction()
	if !ok {
		return a.exchangeLoop(p, addr, off, v)
	}
	access := simt.Access{Offset: off}
	a.under(p, func() {
		if a.used || op == simt.AtomExch {
			old = a.b.Atom(op, simt.Global, a.scopeOf(a.o), addr, []*simt.Value{v}, access)
		} else {
			a.b.Red(op, simt.Global, a.scopeOf(a.o), addr, v, access)
		}
	})
	return old
}

// instruction is the atomic instruction for the combination and type, if there is one.
func (a *atomicOp) instruction() (simt.AtomOp, bool) {
	e := a.elem
	wide := e.Bits() >= 32
	switch a.o.Combine {
	case ir.Add:
		return simt.AtomAdd, wide || e == ir.F16 || e == ir.BF16 && a.m.sm >= 90
	case ir.Min:
		return simt.AtomMin, e.IsInt()
	case ir.Max:
		return simt.AtomMax, e.IsInt()
	case ir.And:
		return simt.AtomAnd, true
	case ir.Or:
		return simt.AtomOr, true
	case ir.Xor:
		return simt.AtomXor, true
	case ir.Exchange:
		return simt.AtomExch, wide
	}
	return 0, false
}

// exchangeLoop computes the new element and puts it there unless the old one has
// changed meanwhile, until that succeeds.
func (a *atomicOp) exchangeLoop(p, addr *simt.Value, off int, v *simt.Value) *simt.Value {
	b := a.b
	t := map[int]simt.Type{16: simt.I16, 32: simt.I32, 64: simt.I64}[a.elem.Bits()]
	loop := func() []*simt.Value {
		start := b.Ld(simt.Global, t, 1, addr, simt.Access{Offset: off, Flags: simt.Volatile})
		return b.Loop(start, func(c []*simt.Value) (*simt.Value, []*simt.Value) {
			next := b.Bitcast(a.combined(b.Bitcast(c[0], v.Type), v), t)
			found := b.Atom(simt.AtomCAS, simt.Global, a.scopeOf(a.o), addr, []*simt.Value{c[0], next}, simt.Access{Offset: off})
			return b.Cmp(simt.NE, found, c[0]), []*simt.Value{found}
		})
	}
	var old *simt.Value
	if p == nil {
		old = loop()[0]
	} else {
		old = b.If(p, loop, func() []*simt.Value { return []*simt.Value{b.Const(t, 0)} })[0]
	}
	return b.Bitcast(old, v.Type)
}

// combined is an element combined with what was there.
func (a *atomicOp) combined(old, v *simt.Value) *simt.Value {
	if a.o.Combine == ir.Exchange {
		return v
	}
	return a.narrow(a.combine(a.o, a.widen(old, a.elem), a.widen(v, a.elem)), a.elem)
}

// awaitFlag lets one thread wait for a flag; then all go on.
func (l *lowering) awaitFlag(o *ir.Op) {
	b := l.b
	addr, want := l.offset(l.viewOf(o.View()), o.Indices()), l.scalar(o.Operand("value"))
	b.If(b.Cmp(simt.EQ, l.tid(), b.Const32(0)), func() []*simt.Value {
		b.Loop(nil, func([]*simt.Value) (*simt.Value, []*simt.Value) {
			v := b.Ld(simt.Global, simt.I32, 1, addr, simt.Access{Flags: simt.Volatile})[0]
			return b.Cmp(simt.NE, v, want), nil
		})
		b.Fence(l.scopeOf(o))
		return nil
	}, nil)
	l.barrier()
}

// signal sets a flag when all threads have written what they had to.
func (l *lowering) signal(o *ir.Op) {
	b := l.b
	addr, v := l.offset(l.viewOf(o.View()), o.Indices()), l.scalar(o.Operand("value"))
	l.barrier()
	b.If(b.Cmp(simt.EQ, l.tid(), b.Const32(0)), func() []*simt.Value {
		b.Fence(l.scopeOf(o))
		b.StGlobal(addr, []*simt.Value{v}, simt.Access{Flags: simt.Volatile})
		return nil
	}, nil)
}
