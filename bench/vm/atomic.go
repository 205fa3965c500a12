package vm

import (
	"encoding/binary"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

func init() {
	decoders["atom"] = func(d *decoder) { d.atomic(true) }
	decoders["red"] = func(d *decoder) { d.atomic(false) }
	for _, op := range []string{"membar", "fence"} {
		decoders[op] = func(d *decoder) { d.fence(op) }
	}
}

// atomOp is what an atomic operation does to memory.
type atomOp struct {
	mem  *memOp
	f    laneFn // of old value and operands; the new value
	far  laneFn // the same in global memory, of a generic address
	cas  bool
	all  bool // a comparison of all elements together
	exch bool
	b, c []operand // operands, by vector element
}

// atomic is atom, which returns the old value, and red, which does not.
func (d *decoder) atomic(returns bool) {
	if d.has("async") && slices.Contains(d.words, "mbarrier::complete_tx::bytes") {
		d.asyncStore(true)
		return
	}
	m := d.newMem(d.space())
	m.order = relaxed
	d.ordering(m)
	if m.order == weak {
		m.order = relaxed
	}
	if m.space == ptx.SpaceGeneric {
		m.space = d.space() // a scope may stand before it
	}
	op := d.take("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
	if op == "" {
		d.refuse("want an operation such as .add")
	}
	noftz := d.has("noftz")
	policy := d.cacheHints()
	n := d.vector()
	t := d.typ()
	least := 2
	if returns {
		least++
	}
	if op == "cas" {
		least++
	}
	most := least
	if policy {
		most++
	}
	ops := d.operands(least, most)
	in := d.new(kindControl)
	in.ctl = atom
	a := &atomOp{mem: m, cas: op == "cas", all: op == "cas" && t == ptx.B128, exch: op == "exch"}
	in.atom = a
	in.mem = m
	m.size = min(t.Size(), 8)
	if returns {
		e := elements(&ops[0])
		if len(e) != n {
			d.refuse("%d registers: want %d", len(e), n)
		}
		e, t, _ := d.narrow(e, t)
		m.data = make([]operand, len(e))
		for i := range e {
			o := d.destination(in, &m.data[i].slot, &e[i], t, exact)
			m.data[i].k, m.data[i].bits = o.k, o.bits
		}
		ops = ops[1:]
	}
	d.memory(in, m, &ops[0])
	d.access(m)
	bind := func(o *ptx.Operand) []operand {
		e := elements(o)
		if len(e) != n {
			d.refuse("%d values: want %d", len(e), n)
		}
		e, t, _ := d.narrow(e, t)
		list := make([]operand, len(e))
		for i := range e {
			x := d.source(in, &list[i].slot, &e[i], t, exact)
			list[i].k, list[i].bits = x.k, x.bits
		}
		return list
	}
	a.b = bind(&ops[1])
	if a.cas {
		a.c = bind(&ops[2])
	}
	a.f = d.atomicFunction(op, t, m.space, noftz)
	if a.far = a.f; m.space == ptx.SpaceGeneric {
		a.far = d.atomicFunction(op, t, ptx.SpaceGlobal, noftz)
	}
	d.emit(in)
}

// atomicFunction is the new value from the old one and the operands.
func (d *decoder) atomicFunction(op string, t ptx.Type, space ptx.Space, noftz bool) laneFn {
	switch op {
	case "exch":
		return func(_, b, _ uint64) uint64 { return b }
	case "cas":
		return func(old, b, c uint64) uint64 {
			if old == b {
				return c
			}
			return old
		}
	case "inc", "dec":
		return wrapping(op)
	}
	if ft, ok := floatOf(t); ok {
		switch op {
		case "add":
			// PTX: f32 sums in global memory flush subnormals.
			return arithmetic("add", ft, floatMode{round: num.Even, ftz: t == ptx.F32 && space == ptx.SpaceGlobal && !noftz})
		case "min", "max":
			return extreme(op == "max", ft, floatMode{})
		}
		d.refuse("no .%s of .%s", op, t)
	}
	return reducing(op, t)
}

// wrapping is .inc and .dec, which wrap at a bound.
func wrapping(op string) laneFn {
	if op == "inc" {
		return func(old, b, _ uint64) uint64 {
			if old >= b {
				return 0
			}
			return old + 1
		}
	}
	return func(old, b, _ uint64) uint64 {
		if old == 0 || old > b {
			return b
		}
		return old - 1
	}
}

// atom runs an atomic operation lane by lane, in order.
func atom(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	a := in.atom
	if a.mem.space != ptx.SpaceShared {
		if !w.mayAct(in, true) {
			return
		}
		w.b.heard = w.b.heard || len(a.mem.data) > 0
	}
	if w.undefs > 0 {
		w.checkOperands(in, m)
	}
	saved := w.mask
	w.mask = m
	var addr lanes64
	w.addresses(a.mem, &addr)
	r := w.b.race
	if r != nil && r.off {
		r = nil
	}
	if r != nil {
		r.beforeStrong(a.mem)
	}
	var changed uint32
	for l := m; l != 0; l &= l - 1 {
		i := firstLane(l)
		if w.atomicLane(in, a, i, addr[i]) {
			changed |= 1 << i
		}
	}
	if r != nil {
		r.afterStrong(w, a.mem, &addr, m, changed, true)
	}
	w.countAtomic(a, &addr, m)
	w.mask = saved
	w.pc++
	if changed == 0 {
		w.poll(in)
	} else if a.mem.space != ptx.SpaceShared {
		w.b.touched()
	}
}

// atomicLane runs one lane's operation; it says whether memory changed.
func (w *warp) atomicLane(in *inst, a *atomOp, i int, addr uint64) (changed bool) {
	size := a.mem.size * len(a.b)
	space := a.mem.space
	if space == ptx.SpaceGeneric {
		switch space = spaceOf(addr); space {
		case ptx.SpaceShared:
			addr -= sharedWindow
		case ptx.SpaceLocal:
			addr -= localWindow
		}
	}
	if addr&uint64(size-1) != 0 {
		if w.again(bench.MisalignedAddress, in) {
			return false
		}
		w.faultAt(bench.MisalignedAddress, in, i, &addr, space.String(), "%s address %#x: want a multiple of %d%s", space, addr, size, w.b.lies(space, addr))
		return false
	}
	var p []byte
	for j := range a.mem.data {
		w.defineElement(&a.mem.data[j], i)
	}
	f := a.f
	switch space {
	case ptx.SpaceShared:
		off, ok := w.locate(in, i, addr, size, a.mem.reaches())
		if !ok {
			return false
		}
		p = w.b.shared[off:]
		w.atomicShared(in, i, off, size)
	case ptx.SpaceLocal:
		if p = w.localBytes(in, i, addr, size); p == nil {
			return false
		}
	default:
		if p = w.atomicGlobal(in, i, addr, size); p == nil {
			return false
		}
		f = a.far
	}
	same := !a.all || w.comparesEqual(a, i, p)
	for e := range a.b {
		q := p[e*a.mem.size:]
		old := readElement(q, a.mem.size)
		var c uint64
		b := w.element(&a.b[e], i)
		if a.c != nil {
			c = w.element(&a.c[e], i)
		}
		v := old
		if same {
			v = f(old, b, c)
		}
		if v != old {
			writeElement(q, a.mem.size, v)
			changed = true
		}
		if e < len(a.mem.data) {
			put(w, &a.mem.data[e], false, i, old)
		}
	}
	return changed
}

// comparesEqual says whether memory holds what a lane compares it with.
func (w *warp) comparesEqual(a *atomOp, lane int, p []byte) bool {
	for e := range a.b {
		if readElement(p[e*a.mem.size:], a.mem.size) != w.element(&a.b[e], lane) {
			return false
		}
	}
	return true
}

// atomicShared notes an operation on shared memory.
func (w *warp) atomicShared(in *inst, lane int, off uint64, size int) {
	if r := w.b.race; r != nil {
		var all lanes64
		all[lane] = off
		r.sharedAccess(w, in, in.mem, &all, size, 1<<lane, true, eventStrong)
	}
	if u := w.b.undef; u != nil {
		if u.any(off, size) {
			w.atomicUndefined(in, lane, func(at, n int) uint64 { return u.bits(off+uint64(at), n) })
			u.define(off, size)
		}
	}
}

// atomicGlobal is the bytes of an operation on global memory; nil after a
// report.
func (w *warp) atomicGlobal(in *inst, lane int, addr uint64, size int) []byte {
	if r := w.b.race; r != nil {
		at := side{w: w, in: in, space: ptx.SpaceGlobal, write: true, lane: lane, addr: addr}
		if !r.off {
			at.id = r.eventFor(w, in, in.mem, eventStrong)
		}
		p := r.page(w, addr)
		if first := int(addr & shadowMask); p != nil && first+size <= p.n && !p.al.constant {
			if r.fill(p, first, size); p.undefinedAt(first, size) {
				w.atomicUndefined(in, lane, func(at, n int) uint64 { return p.undefinedBytes(first+at, n) })
			}
		}
		return r.access(w, p, &at, size)
	}
	al, off := w.globalBytes(in, lane, addr, size, true)
	if al == nil {
		return nil
	}
	if al.undef != nil && al.someUndefined(off, size) {
		if w.u != nil {
			w.atomicUndefined(in, lane, func(at, n int) uint64 { return al.undefinedBytes(off+int64(at), n) })
		}
		al.defineShared(off, int64(size))
	}
	return al.data[off:]
}

// defineElement marks a lane of a register that is written as defined.
func (w *warp) defineElement(o *operand, lane int) {
	if w.u != nil && o.slot >= 0 {
		w.define(w.fr.prog.unified(o.k, o.slot), 1<<lane)
	}
}

// atomicUndefined reports an operation on bytes that were never written, which
// count as written from then on. What an exchange gives is undefined instead.
func (w *warp) atomicUndefined(in *inst, lane int, bits func(off, n int) uint64) {
	m := in.mem
	if w.u == nil || in.atom.exch && len(m.data) == 0 {
		return
	}
	class, space := bench.UninitialisedGlobalRead, ptx.SpaceGlobal
	if m.space == ptx.SpaceShared {
		class, space = bench.UninitialisedSharedRead, ptx.SpaceShared
	}
	var addr lanes64
	w.addresses(m, &addr)
	from := w.b.addOrigin(origin{class: class, src: w.source(in), space: space, addr: addr[lane], size: m.size, warp: w.index, lane: lane})
	if !in.atom.exch {
		w.useUndefined(in, lane, from, "by an atomic operation")
		return
	}
	for j := range m.data {
		if o := &m.data[j]; o.slot >= 0 {
			w.undefine(w.fr.prog.unified(o.k, o.slot), lane, bits(j*m.size, m.size), from)
		}
	}
}

// element is a register's value in a lane.
func (w *warp) element(o *operand, i int) uint64 {
	if o.k == class64 {
		return w.q[o.slot][i]
	}
	return uint64(w.r[o.slot][i])
}

func readElement(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

func writeElement(p []byte, size int, v uint64) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, v)
	}
}

// countAtomic counts an atomic operation.
func (w *warp) countAtomic(a *atomOp, addr *lanes64, lanes uint32) {
	n := popcount(lanes)
	size := a.mem.size * len(a.b)
	w.b.counts.atomics += n
	if a.mem.space != ptx.SpaceShared {
		w.count(addr, 0, size, lanes, a.mem, globalAtomics)
		return
	}
	// Operations on one bank go one after the other, also those on one word.
	var banks [32]int64
	most := int64(0)
	for l := lanes; l != 0; l &= l - 1 {
		k := addr[firstLane(l)] >> 2 & 31
		banks[k]++
		most = max(most, banks[k])
	}
	bytes := n * int64(size)
	w.b.requested(a.mem.id, sharedAtomics, bytes, most, (bytes+bankBytes-1)/bankBytes)
}

// fence is membar and fence.
func (d *decoder) fence(op string) {
	f := &fenceOp{order: sequential, scope: scopeSystem}
	switch {
	case op == "membar":
		f.scope = d.scopeOf(scopeSystem)
		if d.has("proxy") {
			f.proxy = d.take("alias", "async")
			f.spaces(d)
		}
	case d.has("proxy"):
		d.proxyFence(f)
	case d.has("mbarrier_init"):
		d.has("release")
		d.scopeOf(scopeCluster)
		f.order, f.inits = weak, true
	default:
		switch d.take("sc", "acq_rel", "acquire", "release") {
		case "acq_rel":
			f.order = acquireRelease
		case "acquire":
			f.order = acquire
		case "release":
			f.order = release
		}
		d.take("sync_restrict::shared::cta", "sync_restrict::shared::cluster")
		f.scope = d.scopeOf(scopeSystem)
	}
	in := d.new(kindMasked)
	if f.address {
		ops := d.operands(2, 2)
		in.mem = d.newMem(ptx.SpaceGeneric)
		d.memory(in, in.mem, &ops[0])
	} else {
		d.operands(0, 0)
	}
	in.fence = f
	in.fn[modeFull] = fence
	d.emit(in)
	d.p.counter[d.src.PC] = countFence
}

// fenceOp is what a fence orders.
type fenceOp struct {
	order   order
	scope   scope
	proxy   string // "async", "alias", "tensormap", or ""
	global  bool   // of the async proxy: global memory
	shared  bool
	own     bool // of shared memory, the block's own alone
	address bool // it names what it acquires
	inits   bool // it orders only initialisations of mbarriers
}

// spaces reads which memory a fence is for.
func (f *fenceOp) spaces(d *decoder) {
	s := d.take("global", "shared::cta", "shared::cluster", "shared")
	f.global, f.shared = s == "" || s == "global", s != "global"
	f.own = s == "shared::cta" || s == "shared"
}

func (d *decoder) proxyFence(f *fenceOp) {
	f.order = weak
	switch w := d.take("alias", "async", "tensormap::generic", "async::generic"); w {
	case "alias":
		f.proxy = "alias"
	case "async":
		f.proxy = "async"
		f.spaces(d)
	case "tensormap::generic":
		f.proxy = "tensormap"
		f.address = d.take("acquire", "release") == "acquire"
		d.scopeOf(scopeGPU)
	case "async::generic":
		f.proxy = "async"
		f.global, f.shared = true, true
		d.take("acquire", "release")
		d.take("sync_restrict::shared::cta", "sync_restrict::shared::cluster")
		d.scopeOf(scopeCluster)
	default:
		d.refuse("want a proxy")
	}
}

func fence(w *warp, in *inst) { w.orderFence(in, w.mask) }
