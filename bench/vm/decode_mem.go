package vm

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

func init() {
	decoders["ld"] = func(d *decoder) { d.load(false) }
	decoders["ldu"] = func(d *decoder) { d.load(false) }
	decoders["st"] = (*decoder).store
	decoders["cvta"] = (*decoder).cvta
	decoders["isspacep"] = (*decoder).isspacep
	for _, op := range []string{"prefetch", "prefetchu", "applypriority", "discard"} {
		decoders[op] = (*decoder).hint
	}
	decoders["createpolicy"] = (*decoder).createPolicy
}

// memOp is what an instruction that touches memory does there.
type memOp struct {
	space   ptx.Space
	id      int32 // numbers the program's memory instructions
	base    int32 // slot of the address
	wide    bool  // it has 64 bits
	frame   bool  // it counts from the current frame
	cluster bool  // it may be in another block's shared memory
	offset  uint64

	size   int       // bytes of an element
	data   []operand // elements
	signed bool      // sign-extend

	order order
	scope scope

	readOnly bool // by the path for what the launch does not change
}

// bytes is what one lane accesses.
func (m *memOp) bytes() int { return m.size * len(m.data) }

// order is how an access orders others.
type order uint8

const (
	weak order = iota
	relaxed
	acquire
	release
	acquireRelease
	sequential
)

func (o order) acquires() bool { return o == acquire || o == acquireRelease || o == sequential }
func (o order) releases() bool { return o == release || o == acquireRelease || o == sequential }

// scope is which threads an access is ordered for.
type scope uint8

const (
	scopeCTA scope = iota
	scopeCluster
	scopeGPU
	scopeSystem
)

// space takes a state space.
func (d *decoder) space() ptx.Space {
	switch w := d.take("global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry", "param::func"); {
	case w == "global":
		return ptx.SpaceGlobal
	case strings.HasPrefix(w, "shared"):
		return ptx.SpaceShared
	case w == "local":
		return ptx.SpaceLocal
	case w == "const":
		return ptx.SpaceConst
	case strings.HasPrefix(w, "param"):
		return ptx.SpaceParam
	}
	return ptx.SpaceGeneric
}

// scopeOf takes a scope.
func (d *decoder) scopeOf(none scope) scope {
	switch d.take("cta", "cluster", "gpu", "sys", "gl") {
	case "cta":
		return scopeCTA
	case "cluster":
		return scopeCluster
	case "gpu", "gl":
		return scopeGPU
	case "sys":
		return scopeSystem
	}
	return none
}

// ordering takes an access's order and scope.
func (d *decoder) ordering(m *memOp) {
	d.has("mmio") // a device would see each access; there is none
	switch d.take("weak", "volatile", "relaxed", "acquire", "release", "acq_rel") {
	case "volatile":
		m.order, m.scope = relaxed, scopeSystem
		return
	case "relaxed":
		m.order = relaxed
	case "acquire":
		m.order = acquire
	case "release":
		m.order = release
	case "acq_rel":
		m.order = acquireRelease
	}
	m.scope = d.scopeOf(scopeGPU)
}

// cacheHints takes what only steers caches; it says whether a cache policy
// operand follows.
func (d *decoder) cacheHints() bool {
	d.take("ca", "cg", "cs", "lu", "cv", "wb", "wt")
	policy := false
	for i, w := range d.words {
		if !d.used[i] && (strings.HasPrefix(w, "L1::") || strings.HasPrefix(w, "L2::")) {
			d.used[i] = true
			policy = policy || w == "L2::cache_hint"
		}
	}
	return policy
}

// vector takes a vector modifier.
func (d *decoder) vector() int {
	switch d.take("v2", "v4", "v8") {
	case "v2":
		return 2
	case "v4":
		return 4
	case "v8":
		return 8
	}
	return 1
}

// newMem numbers a memory instruction.
func (d *decoder) newMem(space ptx.Space) *memOp {
	m := &memOp{space: space, id: int32(d.kern.memOps), cluster: space == ptx.SpaceShared && slices.Contains(d.words, "shared::cluster")}
	d.kern.memOps++
	d.kern.memAt = append(d.kern.memAt, site{d.mod, d.src})
	return m
}

// access notes how small an instruction's accesses are.
func (d *decoder) access(m *memOp) {
	k := d.kern
	grain := uint(bits.Len(uint(m.size)) - 1)
	if m.space == ptx.SpaceShared || m.space == ptx.SpaceGeneric {
		k.sharedGrain = min(k.sharedGrain, grain)
	}
	if m.space == ptx.SpaceGlobal || m.space == ptx.SpaceConst || m.space == ptx.SpaceGeneric {
		k.globalGrain = min(k.globalGrain, grain)
	}
}

// memory binds an address operand `[base+offset]`.
func (d *decoder) memory(in *inst, m *memOp, o *ptx.Operand) {
	if o.Kind == ptx.OpIndex {
		element := d.element(o)
		d.addressValue(in, m, &element)
		return
	}
	if o.Kind != ptx.OpAddr || len(o.Elems()) != 1 {
		d.refuse("operand %s: want an address", describe(o))
	}
	d.addressValue(in, m, &o.Elems()[0])
}

// element is the address of `a[i]`, with i in elements of a.
func (d *decoder) element(o *ptx.Operand) ptx.Operand {
	index := &o.Elems()[0]
	if index.Kind != ptx.OpImm {
		d.refuse("index of %s: want a constant", o.Name())
	}
	v := o.Decl().(*ptx.Variable)
	return ptx.Operand{Kind: ptx.OpSymbol, Pos: o.Pos, Symbol: o.Symbol, Value: index.Value * uint64(v.Type.Size()*max(v.Vector, 1))}
}

// addressValue binds an address's base, without brackets.
func (d *decoder) addressValue(in *inst, m *memOp, base *ptx.Operand) {
	switch base.Kind {
	case ptx.OpReg:
		v := d.register(base)
		if d.values[v].k == classPred || d.values[v].bits < 32 {
			d.refuse("address %s: want a register of 32 or 64 bits", base.Name())
		}
		m.wide = d.values[v].k == class64
		m.offset = base.Value
		d.bind(&m.base, v)
		in.uses = append(in.uses, v)
		m.frame = m.space == ptx.SpaceParam && !d.fn.Kernel
	case ptx.OpImm:
		m.wide = true
		d.bind(&m.base, d.constant(class64, base.Value))
	case ptx.OpSymbol:
		m.wide = true
		v := base.Decl().(*ptx.Variable)
		if offset, ok := d.p.locals[v]; ok {
			m.frame = true
			d.bind(&m.base, d.constant(class64, uint64(offset)+base.Value))
			m.space = ptx.SpaceLocal
			return
		}
		d.bind(&m.base, d.addressOf(v, class64, base.Value))
		if m.space == ptx.SpaceGeneric {
			m.space = v.Space // the address is the variable's own
		}
	default:
		d.refuse("address %s: want a register, a constant or a variable", describe(base))
	}
	if m.space == ptx.SpaceParam && m.frame {
		m.space = ptx.SpaceLocal
	}
}

// load is ld, in all its forms.
func (d *decoder) load(bool) {
	m := d.newMem(d.space())
	m.readOnly = d.take("nc", "proxy::readonly") != ""
	d.ordering(m)
	if m.order == release || m.order == acquireRelease {
		d.refuse("a load does not release")
	}
	policy := d.cacheHints()
	d.has("unified")
	n := d.vector()
	t := d.typ()
	least := 2
	if policy {
		least = 3
	}
	ops := d.operands(least, 3)
	in := d.new(kindMasked)
	in.mem = m
	e := elements(&ops[0])
	if len(e) != n {
		d.refuse("%d registers: want %d", len(e), n)
	}
	e, t, filled := d.narrow(e, t)
	m.size, m.signed = t.Size(), t.Signed()
	d.memory(in, m, &ops[1])
	m.data = make([]operand, len(e))
	for i := range e {
		o := d.destination(in, &m.data[i].slot, &e[i], t, wider)
		m.data[i].k, m.data[i].bits = o.k, o.bits
	}
	in.rule = ruleLoad
	d.access(m)
	d.chooseLoad(in)
	d.emit(in)
	d.fillHigh(filled, m.signed)
}

// store is st, in all its forms.
func (d *decoder) store() {
	switch {
	case d.has("bulk"):
		d.bulkFill()
		return
	case d.has("async") && slices.Contains(d.words, "mbarrier::complete_tx::bytes"):
		d.asyncStore(false)
		return
	}
	m := d.newMem(d.space())
	d.ordering(m)
	if m.order == acquire || m.order == acquireRelease {
		d.refuse("a store does not acquire")
	}
	policy := d.cacheHints()
	n := d.vector()
	t := d.typ()
	least := 2
	if policy {
		least = 3
	}
	ops := d.operands(least, 3)
	in := d.new(kindMasked)
	in.mem = m
	e := elements(&ops[1])
	if len(e) != n {
		d.refuse("%d values: want %d", len(e), n)
	}
	e, t, _ = d.narrow(e, t)
	m.size = t.Size()
	d.memory(in, m, &ops[0])
	if m.space == ptx.SpaceParam {
		d.refuse("parameters can't be written")
	}
	m.data = make([]operand, len(e))
	for i := range e {
		o := d.source(in, &m.data[i].slot, &e[i], t, wider)
		m.data[i].k, m.data[i].bits = o.k, o.bits
	}
	in.rule = ruleStore
	d.access(m)
	d.chooseStore(in)
	d.emit(in)
}

// window is where a space begins in generic addresses.
func (d *decoder) window(s ptx.Space) uint64 {
	switch s {
	case ptx.SpaceShared:
		return sharedWindow
	case ptx.SpaceLocal:
		return localWindow
	}
	return 0
}

// cvta converts between the addresses of a space and generic ones.
func (d *decoder) cvta() {
	to := d.has("to")
	s := d.space()
	t := d.typ()
	ops := d.operands(2, 2)
	base := d.window(s)
	if s == ptx.SpaceParam {
		d.convertParam(t, ops)
		return
	}
	if s == ptx.SpaceGeneric {
		d.refuse("want a state space")
	}
	if t.Bits() != 64 {
		d.refuse("type .%s: addresses have 64 bits", t)
	}
	in := d.new(kindPure)
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	d.source(in, &in.a, &ops[1], t, exact)
	in.imm = base
	if to {
		in.imm = -base
	}
	in.rule = ruleCopy
	in.fn[modeFull] = addConstant
	if base == 0 {
		in.fn[modeFull] = mov64
	}
	d.emit(in)
}

func addConstant(w *warp, in *inst) {
	d, a := &w.q[in.d], &w.q[in.a]
	for i := range d {
		d[i] = a[i] + in.imm
	}
}

// convertParam gives the generic address of a kernel's parameter.
func (d *decoder) convertParam(t ptx.Type, ops []ptx.Operand) {
	if !d.fn.Kernel {
		d.refuse("the virtual machine gives addresses of kernels' parameters alone")
	}
	in := d.new(kindPure)
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	d.source(in, &in.a, &ops[1], t, exact)
	in.fn[modeFull] = func(w *warp, in *inst) {
		d, a := &w.q[in.d], &w.q[in.a]
		for i := range d {
			d[i] = a[i] + w.b.l.paramAlloc.addr
		}
	}
	d.emit(in)
}

// isspacep says whether a generic address is in a space.
func (d *decoder) isspacep() {
	cluster := slices.Contains(d.words, "shared::cluster")
	s := d.space()
	ops := d.operands(2, 2)
	in := d.testing(func(a, _, _ uint64) uint64 { return truth(spaceOf(a) == s) }, &ops[0], ops[1:], ptx.U64)
	if s == ptx.SpaceShared && !cluster { // the block's own
		in.fn[modeFull] = func(w *warp, in *inst) {
			var p uint32
			for i, a := range w.q[in.a] {
				if spaceOf(a) == s && (a-sharedWindow)>>rankShift == uint64(w.cta.rank) {
					p |= 1 << i
				}
			}
			w.setPredicate(in, p)
		}
	}
	if s == ptx.SpaceConst || s == ptx.SpaceParam {
		in.fn[modeFull] = func(w *warp, in *inst) {
			var p uint32
			for i, a := range w.q[in.a] {
				al := w.b.l.dev.mem.find(a)
				if al != nil && al.constant && (al == w.b.l.paramAlloc) == (s == ptx.SpaceParam) {
					p |= 1 << i
				}
			}
			w.setPredicate(in, p)
		}
	}
	d.emit(in)
}

// spaceOf is the space of a generic address.
func spaceOf(a uint64) ptx.Space {
	switch {
	case a-sharedWindow < windowSize:
		return ptx.SpaceShared
	case a-localWindow < windowSize:
		return ptx.SpaceLocal
	}
	return ptx.SpaceGlobal
}

// hint is an instruction that only steers caches.
func (d *decoder) hint() {
	if d.has("async") { // of a bulk or a tensor: what its operands are does not matter either
		for i := range d.used {
			d.used[i] = true
		}
		d.nothing()
		return
	}
	d.space()
	d.has("tensormap")
	d.take("L1", "L1::32B")
	d.has("valid_addr")
	d.has("L2")
	d.cacheHints()
	d.operands(1, 2)
	d.nothing()
}

// createPolicy makes a cache policy: a number that nothing looks at.
func (d *decoder) createPolicy() {
	for i := range d.used {
		d.used[i] = true
	}
	ops := d.operands(1, 4)
	in := d.new(kindPure)
	in.kd = d.destination(in, &in.d, &ops[0], ptx.B64, exact).k
	d.bind(&in.a, d.constant(class64, 0))
	in.fn[modeFull] = mov64
	d.emit(in)
}
