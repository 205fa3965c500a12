package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// ringRead is a read of a ring's buffer that dots load piece by piece.
type ringRead struct {
	ring  *buffer
	slot  *simt.Value // address of the buffer
	l     *layout.Layout
	value *ir.Value // what it is known as: the buffer, or a transpose of it
	perm  []int     // the transpose, nil for none
}

// slotAddress is the shared address of buffer k of a ring: k modulo its depth.
func (l *lowering) slotAddress(ring *buffer, k *ir.Value) *simt.Value {
	b := l.b
	base := b.Add(b.SharedBase(), b.Const32(ring.offset))
	if ring.depth == 1 {
		return base
	}
	return b.Add(base, b.Mul(l.modulo(k, ring.depth), b.Const32(ring.size)))
}

// counter is a value that a loop counts up by one, and its remainder, which the
// loop carries beside it so that no division is needed.
type counter struct {
	depth     int
	remainder *simt.Value
	phase     *simt.Value // parity of how often it went round; nil where nobody asks
}

// modulo is k modulo a ring's depth.
func (l *lowering) modulo(k *ir.Value, depth int) *simt.Value {
	b := l.b
	c, n, ok := l.counterOf(k, depth)
	if !ok {
		return b.RemU(l.scalar(k), b.Const32(depth))
	}
	ahead := (n%depth + depth) % depth // k itself is not negative
	if ahead == 0 {
		return c.remainder
	}
	return l.wrap(b.Add(c.remainder, b.Const32(ahead)), depth)
}

// counterOf is what counts an index of a ring of a depth, and how far the index is ahead of
// it. In a persistent kernel constant ones are ahead of where the tile finds the ring: those
// of one buffer are filled once for a tile.
func (l *lowering) counterOf(k *ir.Value, depth int) (c counter, ahead int, ok bool) {
	a, ok := affineOf(k)
	switch {
	case !ok:
	case len(a.terms) == 1 && a.terms[0].k == 1:
		c, ok = l.counters[a.terms[0].v]
	case len(a.terms) > 0 || !l.s.Persistent:
		ok = false
	case depth == 1:
		c = l.once
	default:
		c = l.at
	}
	return c, int(a.c), ok && c.depth == depth
}

// wrap takes a number below twice the depth modulo the depth.
func (l *lowering) wrap(v *simt.Value, depth int) *simt.Value {
	b := l.b
	if depth&(depth-1) == 0 {
		return b.And(v, b.Const32(depth-1))
	}
	return b.Select(b.Cmp(simt.GE, v, b.Const32(depth)), b.Sub(v, b.Const32(depth)), v)
}

// counted finds the carried value with which a loop numbers its iterations for
// rings, and the rings' depth: 0 if there is none, or if rings differ.
func counted(o *ir.Op) (v *ir.Value, depth int) {
	body := o.Regions[0]
	for _, in := range body.Ops {
		slot := in.Operand("slot")
		if slot == nil || in.Code == ir.OpCopy {
			continue
		}
		for _, a := range in.Args {
			if a.Type.Kind != ir.Ring || ringDepth(a) == 1 || !slices.Contains(body.Params[1:], slot) {
				continue
			}
			if depth != 0 && depth != ringDepth(a) || v != nil && v != slot {
				return nil, 0
			}
			v, depth = slot, ringDepth(a)
		}
	}
	if v == nil {
		return nil, 0
	}
	next := body.Yield().Args[slices.Index(body.Params, v)-1]
	if a, ok := affineOf(next); !ok || a.c != 1 || len(a.terms) != 1 || a.terms[0] != (term{v, 1}) {
		return nil, 0
	}
	return v, depth
}

// place evaluates the thread's part of an offset, added to or XORed into base.
type threadPlace struct {
	l    *lowering
	base *simt.Value
	add  *simt.Value
	xor  *simt.Value
}

func (l *lowering) threadPlace(base *simt.Value, places []layout.Place) threadPlace {
	xor, add := make([]int, len(places)), make([]int, len(places))
	for i, p := range places {
		xor[i], add[i] = p.Xor, p.Add
	}
	return threadPlace{l: l, base: base, add: l.index(add, false), xor: l.index(xor, true)}
}

// at is the address for a register's place: one value for each distinct XOR part,
// and an immediate. The buffer's alignment lets the XOR work on the thread's part
// alone.
func (t threadPlace) at(p layout.Place) (*simt.Value, int) {
	b := t.l.b
	v := b.Xor(t.xor, b.Const32(p.Xor))
	return b.Add(t.base, b.Add(v, t.add)), p.Add
}

// copy lowers a copy from global into shared memory: asynchronous where 4 bytes or
// more move at once and nothing but zeros fills what is outside; otherwise through
// registers.
func (l *lowering) copy(o *ir.Op) {
	ringValue := o.Operand("ring")
	if mapped(ringValue) {
		l.copies = append(l.copies, o)
		return
	}
	ring := l.plan.buffers[ringValue]
	lay, bytes := l.f.copyLayout(o, ringValue.Type, l.warps)
	if lay == nil {
		panic(unsupported(o, "no copy layout for %s", ringValue.Type))
	}
	slot := l.slotAddress(ring, o.Operand("slot"))
	basis, ok := ring.shared.Basis(lay)
	if !ok {
		panic(unsupported(o, "shared layout %s does not take copies", ring.shared))
	}
	c := &ringCopy{globalAccess: l.accessFor(o, lay, 16), basis: basis, place: l.threadPlace(slot, basis.Thread), mask: l.maskOf(o)}
	c.vector = min(c.vector, bytes/c.elem)
	for !c.adjacent() {
		c.vector /= 2
	}
	c.waves = wavesOf(ring.shared, lay, c.vector*c.elem)
	c.async = c.vector*c.elem >= 4 && l.m.sm >= 80 && c.mask == nil && o.Operand("fill") == nil
	if f := o.Operand("fill"); f != nil {
		c.fill = l.scalar(f)
	}
	pred := c.idle
	if p := o.Operand("pred"); p != nil {
		pred = l.both(pred, l.scalar(p))
	}
	run := func() {
		for r := 0; r < lay.Registers(); r += c.vector {
			c.run(r)
		}
	}
	if pred != nil && !c.async && lay.Registers() >= manyCopies*c.vector {
		l.b.If(pred, func() []*simt.Value { run(); return nil }, nil)
	} else {
		l.under(pred, run)
	}
	l.pending.shared = l.pending.shared || !c.async
}

// manyCopies are more copies through registers by a thread than it can hold addresses of
// until the copies of the next buffer: they stand behind a branch, so that those compute
// their own.
const manyCopies = 32

// ringCopy is a copy into a ring's buffer, a vector at a time.
type ringCopy struct {
	*globalAccess
	basis layout.Basis
	place threadPlace
	mask  []*simt.Value
	fill  *simt.Value
	waves int
	async bool
}

// adjacent tells whether the elements of every vector are adjacent in shared memory
// too.
func (c *ringCopy) adjacent() bool {
	for r := range c.l.Registers() {
		first := c.basis.Registers[r/c.vector*c.vector]
		first.Add += r % c.vector * c.elem
		if c.basis.Registers[r] != first {
			return false
		}
	}
	return true
}

// run copies the vector from register r on.
func (c *ringCopy) run(r int) {
	b := c.b
	shared, so := c.place.at(c.basis.Registers[r])
	p := c.guard(r)
	if !c.async {
		if c.mask != nil {
			p = c.both(p, c.mask[r])
		}
		var vs []*simt.Value
		var pack int
		c.under(p, func() { vs, pack = c.loadVector(r, c.fill) })
		c.storeRun(simt.Shared, c.v.elem, shared, vs, pack, simt.Access{Offset: so, Waves: c.waves})
		return
	}
	bytes := c.vector * c.elem
	var size *simt.Value
	if p != nil {
		size = b.Select(p, b.Const32(bytes), b.Const32(0))
	}
	global, off := c.at(r)
	a := simt.Access{Offset: off, Waves: c.waves}
	if bytes == 16 {
		a.Cache = simt.CacheCG
	}
	b.CpAsync(shared, global, bytes, so, size, a)
}

// wavesOf is how many wavefronts one warp's access takes.
func wavesOf(s *layout.Shared, lay *layout.Layout, bytes int) int {
	t, ok := s.VectorTraffic(lay, bytes)
	if !ok || t.Instructions == 0 {
		return 0
	}
	return (t.Actual + t.Instructions - 1) / t.Instructions
}

func (l *lowering) commit(o *ir.Op) {
	switch r := l.plan.signalledOf(o.Args); {
	case l.inRole(transposeRole):
		l.handOver(o)
		return
	case r != nil && mapped(r):
		l.tensorCommit(o)
	case r != nil:
		l.b.MbarCopied(l.mbarrier(r, o.Operand("slot")))
		return
	}
	if l.m.sm >= 80 && l.plan.copiesByThreads {
		l.b.CpAsyncCommit()
	}
}

// await waits for the thread's own copies and then for everybody's, or for what tensor maps or
// another role fill.
func (l *lowering) await(o *ir.Op) {
	r, rings := l.plan.signalledOf(o.Args), o.Operands("rings")
	if r != nil {
		l.tensorWait(r, o.Operand("slot"))
	}
	own := l.copiedHere(rings)
	if own && l.m.sm >= 80 {
		l.b.CpAsyncWait(o.Pending)
	}
	if slices.ContainsFunc(rings, func(r *ir.Value) bool { return r.Def.Threads }) {
		l.b.ProxyFence() // before wgmma reads what threads copied
	}
	if own {
		l.barrier()
	}
}

// read notes a read; what needs all of it at once loads it then.
func (l *lowering) read(o *ir.Op) {
	ring := l.plan.buffers[o.Args[0]]
	r := &ringRead{ring: ring, slot: l.slotAddress(ring, o.Args[1]), l: o.Result().Type.Layout, value: o.Result()}
	l.reads[o.Result()] = r
	if r.l == nil {
		return // it stays where it is
	}
	if !l.users.readLate(o.Result(), l.in) {
		l.tiles[o.Result()] = l.loadAll(r)
		l.pending.shared = true
	}
}

// readLate tells whether only dots of the region r use v, which is read of a ring and
// perhaps transposed, and the buffer is still as it was when they load from it.
func (u users) readLate(v *ir.Value, r *ir.Region) bool {
	last := u.lastDot(v, r)
	if last < 0 {
		return false
	}
	ring := map[*ir.Value]bool{v.Def.Args[0]: true}
	from := slices.Index(r.Ops, v.Def)
	return !slices.ContainsFunc(r.Ops[from+1:last], func(o *ir.Op) bool { return fills(o, ring) })
}

// lastDot is where in r the last dot stands that uses v; -1 if anything but dots, and
// transposes for dots, does.
func (u users) lastDot(v *ir.Value, r *ir.Region) int {
	last := -1
	for _, user := range u[v] {
		at := slices.Index(r.Ops, user)
		if at >= 0 && user.Code == ir.OpTranspose {
			at = u.lastDot(user.Result(), r)
		} else if user.Code != ir.OpDot {
			return -1
		}
		if at < 0 {
			return -1
		}
		last = max(last, at)
	}
	return last
}

// fills tells whether an operation, or one inside it, writes into a buffer of a ring.
func fills(o *ir.Op, ring map[*ir.Value]bool) bool {
	if (o.Code == ir.OpCopy || o.Code == ir.OpWrite) && uses(o, ring) {
		return true
	}
	for _, r := range o.Regions {
		if slices.ContainsFunc(r.Ops, func(in *ir.Op) bool { return fills(in, ring) }) {
			return true
		}
	}
	return false
}

// piece is some of a read's registers, loaded by one instruction.
type piece struct {
	registers []int // first element of each register of the fragment
	load      func() []*simt.Value
}

// pieces are the instructions that load a read: ldmatrix where the layouts allow,
// the widest plain loads otherwise. Each gives registers of the fragment.
func (l *lowering) pieces(r *ringRead) []piece {
	e := r.value.Type.Elem
	pack := packOf(e, r.l.Registers())
	if m, ok := r.ring.shared.Ldmatrix(r.l); ok && pack*bytesOf(e) == 4 && l.m.sm >= 75 {
		return l.matrixPieces(r, m, packedType(e, pack))
	}
	return l.vectorPieces(r, e, pack)
}

func (l *lowering) matrixPieces(r *ringRead, m layout.Matrices, t simt.Type) []piece {
	place := l.threadPlace(r.slot, m.Thread)
	traffic := m.MatrixTraffic(r.l.Warps())
	waves := traffic.Actual / max(traffic.Instructions, 1)
	out := make([]piece, len(m.Moves))
	for i, mv := range m.Moves {
		out[i] = piece{registers: mv.Registers, load: func() []*simt.Value {
			addr, off := place.at(mv.Place)
			return l.b.LdMatrix(t, m.Count, m.Trans, addr, simt.Access{Offset: off, Waves: waves})
		}}
	}
	return out
}

func (l *lowering) vectorPieces(r *ringRead, e ir.Elem, pack int) []piece {
	v, ok := r.ring.shared.Vector(r.l, 16)
	basis, ok2 := r.ring.shared.Basis(r.l)
	if !ok || !ok2 {
		panic("shared layout without an access plan")
	}
	place := l.threadPlace(r.slot, basis.Thread)
	waves := wavesOf(r.ring.shared, r.l, v.Bytes)
	run := func(register, n int) []*simt.Value {
		addr, off := place.at(basis.Registers[register])
		vs, _ := l.loadRun(simt.Shared, e, n, addr, simt.Access{Offset: off, Waves: waves}, nil)
		return vs
	}
	if !pairedGroups(v.Groups, pack) {
		return l.singlePieces(r, e, pack, run)
	}
	out := make([]piece, 0, len(v.Groups))
	for _, g := range v.Groups {
		firsts := make([]int, 0, len(g)/pack)
		for i := 0; i < len(g); i += pack {
			firsts = append(firsts, g[i])
		}
		out = append(out, piece{registers: firsts, load: func() []*simt.Value { return run(g[0], len(g)) }})
	}
	return out
}

// singlePieces load elements one by one and pack them.
func (l *lowering) singlePieces(r *ringRead, e ir.Elem, pack int, run func(register, n int) []*simt.Value) []piece {
	out := make([]piece, 0, r.l.Registers()/pack)
	for i := 0; i < r.l.Registers(); i += pack {
		out = append(out, piece{registers: []int{i}, load: func() []*simt.Value {
			parts := make([]*simt.Value, pack)
			for j := range parts {
				parts[j] = run(i+j, 1)[0]
			}
			return []*simt.Value{l.pack(parts, e)}
		}})
	}
	return out
}

// loadAll loads a whole read into registers.
func (l *lowering) loadAll(r *ringRead) *fragment {
	src := newFragment(ir.TileOf(r.value.Type.Elem, r.l.Shape()...).WithLayout(r.l))
	src.regs = make([]*simt.Value, src.count())
	for _, p := range l.pieces(r) {
		for i, v := range p.load() {
			src.regs[p.registers[i]/src.pack] = v
		}
	}
	if r.perm == nil {
		return src
	}
	to := r.value.Type
	return l.renumber(src, to, transposed(r.l, to.Layout, r.perm))
}

// spill writes a fragment to shared memory.
func (l *lowering) spill(f *fragment, s *layout.Shared, base *simt.Value) bool {
	v, ok := s.Vector(f.l, 16)
	basis, ok2 := s.Basis(f.l)
	if !ok || !ok2 {
		return false
	}
	place := l.threadPlace(base, basis.Thread)
	waves := wavesOf(s, f.l, v.Bytes)
	regs, pack := f.regs, f.pack
	if !pairedGroups(v.Groups, pack) {
		regs, pack = l.elements(f), 1
	}
	l.under(l.owners(f.l), func() {
		for _, g := range v.Groups {
			var vs []*simt.Value
			for i := 0; i < len(g); i += pack {
				vs = append(vs, regs[g[i]/pack])
			}
			addr, off := place.at(basis.Registers[g[0]])
			l.storeRun(simt.Shared, f.elem, addr, vs, pack, simt.Access{Offset: off, Waves: waves})
		}
	})
	return true
}

// pairedGroups tells whether every access moves whole registers of pack elements.
func pairedGroups(groups [][]int, pack int) bool {
	for _, g := range groups {
		if len(g)%pack != 0 {
			return false
		}
		for i, r := range g {
			if first := g[i/pack*pack]; first%pack != 0 || r != first+i%pack {
				return false
			}
		}
	}
	return true
}

func (l *lowering) write(o *ir.Op) {
	if r := l.reads[o.Operand("value")]; r != nil && r.l == nil {
		l.writeTransposed(o, r)
		return
	}
	ring := l.plan.buffers[o.Args[0]]
	f := l.tile(o.Operand("value"))
	if !l.spill(f, ring.shared, l.slotAddress(ring, o.Args[1])) {
		panic(unsupported(o, "shared layout %s takes no such tile", ring.shared))
	}
	l.pending.shared = true
}
