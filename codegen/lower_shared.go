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
}

// modulo is k modulo a ring's depth.
func (l *lowering) modulo(k *ir.Value, depth int) *simt.Value {
	b := l.b
	if a, ok := affineOf(k); ok && len(a.terms) == 1 && a.terms[0].k == 1 && a.c >= 0 {
		if c, ok := l.counters[a.terms[0].v]; ok && c.depth == depth {
			ahead := int(a.c) % depth
			if ahead == 0 {
				return c.remainder
			}
			return l.wrap(b.Add(c.remainder, b.Const32(ahead)), depth)
		}
	}
	return b.RemU(l.scalar(k), b.Const32(depth))
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
			if a.Type.Kind != ir.Ring || a.Type.Depth == 1 || !slices.Contains(body.Params[1:], slot) {
				continue
			}
			if depth != 0 && depth != a.Type.Depth || v != nil && v != slot {
				return nil, 0
			}
			v, depth = slot, a.Type.Depth
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
// more move at once, through a register otherwise.
func (l *lowering) copy(o *ir.Op) {
	ringValue := o.Operand("ring")
	ring := l.plan.buffers[ringValue]
	lay, bytes := l.f.copyLayout(o, ringValue.Type, l.warps)
	if lay == nil {
		l.fail(o, "no copy layout for %s", ringValue.Type)
		return
	}
	slot := l.slotAddress(ring, o.Operand("slot"))
	basis, ok := ring.shared.Basis(lay)
	if !ok {
		l.fail(o, "shared layout %s does not take copies", ring.shared)
		return
	}
	g := l.accessFor(o, lay, 16)
	place := l.threadPlace(slot, basis.Thread)
	pred := g.idle
	if p := o.Operand("pred"); p != nil {
		pred = l.both(pred, l.scalar(p))
	}
	waves := wavesOf(ring.shared, lay, bytes)
	l.under(pred, func() {
		for r := 0; r < lay.Registers(); r += g.vector {
			shared, so := place.at(basis.Registers[r])
			global, off := g.at(r)
			l.copyVector(g, r, bytes, shared, so, global, off, waves)
		}
	})
	l.dirty = l.dirty || bytes < 4 || l.m.sm < 80
}

// wavesOf is how many wavefronts one warp's access takes.
func wavesOf(s *layout.Shared, lay *layout.Layout, bytes int) int {
	t, ok := s.VectorTraffic(lay, bytes)
	if !ok || t.Instructions == 0 {
		return 0
	}
	return (t.Actual + t.Instructions - 1) / t.Instructions
}

func (l *lowering) copyVector(g *globalAccess, r, bytes int, shared *simt.Value, so int, global *simt.Value, off, waves int) {
	b := l.b
	p := g.guard(r)
	if bytes >= 4 && l.m.sm >= 80 {
		var size *simt.Value
		if p != nil {
			size = b.Select(p, b.Const32(bytes), b.Const32(0))
		}
		a := simt.Access{Offset: off, Waves: waves}
		if bytes == 16 {
			a.Cache = simt.CacheCG
		}
		b.CpAsync(shared, global, bytes, so, size, a)
		return
	}
	var vs []*simt.Value
	l.under(p, func() { vs = g.loadVector(r, nil, g.v.elem) })
	for i, v := range vs {
		b.StShared(shared, []*simt.Value{v}, simt.Access{Offset: so + i*g.elem})
	}
}

func (l *lowering) commit(o *ir.Op) {
	if l.m.sm >= 80 {
		l.b.CpAsyncCommit()
	}
}

// await waits for the thread's own copies and then for everybody's.
func (l *lowering) await(o *ir.Op) {
	if l.m.sm >= 80 {
		l.b.CpAsyncWait(o.Pending)
	}
	l.barrier()
}

// read notes a read; what needs all of it at once loads it then.
func (l *lowering) read(o *ir.Op) {
	ring := l.plan.buffers[o.Args[0]]
	r := &ringRead{ring: ring, slot: l.slotAddress(ring, o.Args[1]), l: o.Result().Type.Layout, value: o.Result()}
	l.reads[o.Result()] = r
	if !l.dotsHere(o.Result(), l.in) {
		l.tiles[o.Result()] = l.loadAll(r)
		l.dirty = true
	}
}

// dotsHere tells whether only dots of the region r itself use v, perhaps
// transposed: then the buffer is still there when they load from it.
func (l *lowering) dotsHere(v *ir.Value, r *ir.Region) bool {
	for _, u := range l.users[v] {
		if !slices.Contains(r.Ops, u) {
			return false
		}
		if u.Code == ir.OpTranspose && l.dotsHere(u.Result(), r) {
			continue
		}
		if u.Code != ir.OpDot {
			return false
		}
	}
	return true
}

// enter makes a ring usable: where it takes the place of a buffer that warps may
// still be reading, they meet first.
func (l *lowering) enter(ring *buffer) {
	if ring.reuses && l.dirty {
		l.barrier()
	}
}

// piece is some of a read's registers, loaded by one instruction.
type piece struct {
	registers []int // first element of each 32-bit register, or the elements
	load      func() []*simt.Value
}

// pieces are the instructions that load a read: ldmatrix where the layouts allow,
// the widest plain loads otherwise. Each gives registers of the fragment.
func (l *lowering) pieces(r *ringRead) []piece {
	f := &fragment{l: r.l, elem: r.value.Type.Elem}
	pack := newFragment(r.value.Type.WithShape(r.l.Shape()...).WithLayout(r.l)).pack
	t := packedType(f.elem, pack)
	if m, ok := r.ring.shared.Ldmatrix(r.l); ok && t.Bits() == 32 && l.m.sm >= 75 {
		return l.matrixPieces(r, m, t)
	}
	return l.vectorPieces(r, pack, t)
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

func (l *lowering) vectorPieces(r *ringRead, pack int, t simt.Type) []piece {
	v, ok := r.ring.shared.Vector(r.l, 16)
	basis, ok2 := r.ring.shared.Basis(r.l)
	if !ok || !ok2 {
		panic("shared layout without an access plan")
	}
	place := l.threadPlace(r.slot, basis.Thread)
	waves := wavesOf(r.ring.shared, r.l, v.Bytes)
	size := r.value.Type.Elem.Bits() / 8
	out := make([]piece, 0, len(v.Groups))
	if pack > 1 && v.Bytes < 4 {
		return l.halfPieces(r, basis, place, waves)
	}
	for _, g := range v.Groups {
		var firsts []int
		for i := 0; i < len(g); i += pack {
			firsts = append(firsts, g[i])
		}
		out = append(out, piece{registers: firsts, load: func() []*simt.Value {
			addr, off := place.at(basis.Registers[g[0]])
			return l.loadShared(t, addr, off, v.Bytes, size*pack, waves)
		}})
	}
	return out
}

// loadShared loads bytes as registers of type t, each of unit bytes.
func (l *lowering) loadShared(t simt.Type, addr *simt.Value, off, bytes, unit, waves int) []*simt.Value {
	return l.b.LdShared(t, bytes/unit, addr, simt.Access{Offset: off, Waves: waves})
}

// halfPieces load 16-bit elements one by one and pair them.
func (l *lowering) halfPieces(r *ringRead, basis layout.Basis, place threadPlace, waves int) []piece {
	e := elementType(r.value.Type.Elem)
	out := make([]piece, 0, len(basis.Registers)/2)
	for i := 0; i < len(basis.Registers); i += 2 {
		out = append(out, piece{registers: []int{i}, load: func() []*simt.Value {
			var half [2]*simt.Value
			for j := range half {
				addr, off := place.at(basis.Registers[i+j])
				half[j] = l.b.LdShared(e, 1, addr, simt.Access{Offset: off, Waves: waves})[0]
			}
			return []*simt.Value{l.b.Pack(half[0], half[1], packedType(r.value.Type.Elem, 2))}
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
				vs = append(vs, l.storable(regs[g[i]/pack]))
			}
			addr, off := place.at(basis.Registers[g[0]])
			if vs[0].Type == simt.I32 && s.ElemBytes() == 1 {
				for i, x := range vs {
					l.b.StMem(simt.Shared, simt.U8, addr, []*simt.Value{x}, simt.Access{Offset: off + i})
				}
				continue
			}
			for i := 0; i < len(vs); i += 4 {
				n := min(4, len(vs)-i)
				l.b.StShared(addr, vs[i:i+n], simt.Access{Offset: off + i*vs[0].Type.Bits()/8, Waves: waves})
			}
		}
	})
	return true
}

func (l *lowering) storable(v *simt.Value) *simt.Value {
	if v.Type == simt.Pred {
		return l.b.Select(v, l.b.Const32(1), l.b.Const32(0))
	}
	return v
}

// pairedGroups tells whether every access moves whole registers of pack elements.
func pairedGroups(groups [][]int, pack int) bool {
	if pack == 1 {
		return true
	}
	for _, g := range groups {
		if len(g)%pack != 0 {
			return false
		}
		for i := 0; i < len(g); i += pack {
			if g[i]%pack != 0 || g[i+1] != g[i]+1 {
				return false
			}
		}
	}
	return true
}

func (l *lowering) write(o *ir.Op) {
	ring := l.plan.buffers[o.Args[0]]
	f := l.tile(o.Operand("value"))
	if !l.spill(f, ring.shared, l.slotAddress(ring, o.Args[1])) {
		l.fail(o, "shared layout %s takes no such tile", ring.shared)
	}
	l.dirty = true
}

// convert changes a tile's layout: another numbering of registers, or through
// shared memory.
func (l *lowering) convert(o *ir.Op) {
	src := l.tile(o.Args[0])
	t := o.Result().Type
	plan := layout.Convert(src.l, t.Layout)
	switch {
	case plan.Kind < layout.Shuffles:
		l.set(o.Result(), l.renumber(src, t, plan.Table))
		return
	case !throughMemory(plan, t):
		l.set(o.Result(), l.packed(t, l.exchange(plan.Exchange, l.elements(src), t.Layout)))
		return
	}
	buf := l.plan.buffers[o]
	base := l.b.Add(l.b.SharedBase(), l.b.Const32(buf.offset))
	l.barrier()
	if !l.spill(src, buf.shared, base) {
		l.fail(o, "shared layout %s takes no such tile", buf.shared)
		return
	}
	l.barrier()
	if t.Elem.Bits() < 16 {
		l.fail(o, "no conversion of %s through shared memory yet", t.Elem)
		return
	}
	l.set(o.Result(), l.loadAll(&ringRead{ring: buf, slot: base, l: t.Layout, value: o.Result()}))
	l.dirty = true
}

// exchange moves elements among the lanes of each warp as the plan says: selects,
// shuffles, selects.
func (l *lowering) exchange(x *layout.Exchange, src []*simt.Value, to *layout.Layout) []*simt.Value {
	b := l.b
	lane := l.index(append(slices.Clone(x.Lane[:]), x.Warp...), true)
	out := make([]*simt.Value, 0, to.Registers())
	for _, c := range x.Copies {
		regs := l.selectStages(x.Pre, slices.Clone(src[c*x.SourceRegisters:][:x.SourceRegisters]))
		rounds := make([]*simt.Value, len(x.Rounds))
		for i, r := range x.Rounds {
			v := regs[r.From]
			if !x.Identity() || r.Lane != 0 {
				v = b.Shfl(simt.Idx, v, b.Xor(lane, b.Const32(r.Lane)), 32)
			}
			rounds[i] = v
		}
		slots := make([]*simt.Value, len(x.Results))
		for k, i := range x.Results {
			slots[k] = rounds[i]
		}
		out = append(out, l.selectStages(x.Post, slots)[:x.Registers]...)
	}
	return out
}

// selectStages exchanges values between register numbers in some threads.
func (l *lowering) selectStages(stages []layout.Select, regs []*simt.Value) []*simt.Value {
	b := l.b
	for _, s := range stages {
		odd := b.And(b.Popc(b.And(l.tid(), b.Const32(s.Threads))), b.Const32(1))
		p := b.Cmp(simt.NE, odd, b.Const32(0))
		next := make([]*simt.Value, len(regs))
		for j := range regs {
			next[j] = b.Select(p, regs[j^s.Xor], regs[j])
		}
		regs = next
	}
	return regs
}

// reduce folds registers, then lanes by butterflies, then warps through shared
// memory.
func (l *lowering) reduce(o *ir.Op) {
	src := l.tile(o.Args[0])
	st, ok := src.l.Reduce(o.Axis)
	if !ok {
		l.fail(o, "layout %v does not reduce along axis %d", src.l, o.Axis)
		return
	}
	in := l.operands(src)
	out := make([]*simt.Value, len(st.Groups))
	for i, g := range st.Groups {
		vs := make([]*simt.Value, len(g))
		for j, r := range g {
			vs[j] = in[r]
		}
		v := l.fold(o, vs)
		for _, mask := range st.Lanes {
			v = l.combine(o, v, l.shuffle(v, mask))
		}
		out[i] = v
	}
	if len(st.Warps) > 0 {
		out = l.acrossWarps(o, src.l, st, out)
	}
	r := o.Result()
	if r.Type.IsScalar() {
		l.scalars[r] = l.narrow(out[0], r.Type.Elem)
		return
	}
	l.set(r, l.rounded(r.Type, out))
}

// shuffle exchanges a value with the lane whose number differs by mask.
func (l *lowering) shuffle(v *simt.Value, mask int) *simt.Value {
	b := l.b
	if v.Type.Bits() == 64 {
		bits := b.Bitcast(v, simt.I64)
		lo, hi := b.Unpack(bits, simt.I32)
		lo = b.Shfl(simt.Bfly, lo, b.Const32(mask), 32)
		hi = b.Shfl(simt.Bfly, hi, b.Const32(mask), 32)
		return b.Bitcast(b.Pack(lo, hi, simt.I64), v.Type)
	}
	if v.Type == simt.Pred {
		x := b.Shfl(simt.Bfly, l.storable(v), b.Const32(mask), 32)
		return b.Cmp(simt.NE, x, b.Const32(0))
	}
	return b.Shfl(simt.Bfly, v, b.Const32(mask), 32)
}

// fold combines values pairwise, so that chains of dependent operations are short.
func (l *lowering) fold(o *ir.Op, vs []*simt.Value) *simt.Value {
	for len(vs) > 1 {
		half := (len(vs) + 1) / 2
		next := make([]*simt.Value, half)
		for i := range next {
			next[i] = vs[i]
			if j := i + half; j < len(vs) {
				next[i] = l.combine(o, vs[i], vs[j])
			}
		}
		vs = next
	}
	return vs[0]
}

func (l *lowering) combine(o *ir.Op, x, y *simt.Value) *simt.Value {
	b := l.b
	switch o.Combine {
	case ir.Add:
		return b.Add(x, y)
	case ir.Mul:
		return b.Mul(x, y)
	case ir.Max:
		return b.Max(x, y)
	case ir.Min:
		return b.Min(x, y)
	case ir.And:
		return b.And(x, y)
	case ir.Or:
		return b.Or(x, y)
	}
	return b.Xor(x, y)
}

// acrossWarps combines what each warp along the axis has.
func (l *lowering) acrossWarps(o *ir.Op, lay *layout.Layout, st layout.Stages, vs []*simt.Value) []*simt.Value {
	b := l.b
	buf := l.plan.buffers[o]
	slice := lay.Slice(o.Axis)
	size := max(4, vs[0].Type.Bits()/8)
	count := 1
	for _, n := range slice.Shape() {
		count *= n
	}
	// Where each place of the slice lies: its row-major number.
	at := func(r int) *simt.Value {
		n := b.Const32(0)
		for d := range slice.Rank() {
			n = b.Add(b.Mul(n, b.Const32(slice.Extent(d))), l.coordinate(slice, r, d))
		}
		return b.Mul(n, b.Const32(size))
	}
	columns := make([]int, layout.LaneBits+log2(l.warps))
	for i, w := range st.Warps {
		columns[layout.LaneBits+log2(w)] = count * size << i
	}
	base := b.Add(b.SharedBase(), b.Const32(buf.offset))
	mine := b.Add(base, l.index(columns, false))
	lanes := slice.FreeLanes()
	l.barrier()
	store := func() {
		for r, v := range vs {
			b.StShared(b.Add(mine, at(r)), []*simt.Value{l.storable(v)}, simt.Access{})
		}
	}
	if lanes != 0 {
		b.Guarded(b.Cmp(simt.EQ, b.And(l.tid(), b.Const32(lanes)), b.Const32(0)), store)
	} else {
		store()
	}
	l.barrier()
	out := make([]*simt.Value, len(vs))
	for r, v := range vs {
		parts := make([]*simt.Value, 1<<len(st.Warps))
		t := v.Type
		if t == simt.Pred {
			t = simt.I32
		}
		for w := range parts {
			parts[w] = b.LdShared(t, 1, b.Add(base, at(r)), simt.Access{Offset: w * count * size})[0]
			if v.Type == simt.Pred {
				parts[w] = b.Cmp(simt.NE, parts[w], b.Const32(0))
			}
		}
		out[r] = l.fold(o, parts)
	}
	l.dirty = true
	return out
}
