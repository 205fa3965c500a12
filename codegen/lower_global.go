package codegen

import (
	"math/bits"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// globalAccess computes the addresses and guards of a tile in global memory for
// the registers of a layout.
type globalAccess struct {
	*lowering
	access
	v        *view
	l        *layout.Layout
	elem     int // bytes
	contig   int // axis of adjacent elements, -1 if none
	vector   int // elements accessed as one, along contig
	base     *simt.Value
	bounds   []edge // axes that may reach outside
	idle     *simt.Value
	rowAt    []*simt.Value // for a gather: the row number of each register of the row slice
	rowTable []int
	limit    *simt.Value
}

// edge is an axis along which elements may lie outside: inside is where the
// register's coordinate is below room.
type edge struct {
	axis int
	room *simt.Value // elements left from the thread's own coordinate on
	low  *simt.Value // minus the thread's first coordinate, where it may be negative
}

// accessFor prepares an access of o with the given layout.
func (l *lowering) accessFor(o *ir.Op, lay *layout.Layout, mostBytes int) *globalAccess {
	g := &globalAccess{lowering: l, access: accessOf(o, lay.Shape()), v: l.viewOf(o.View()), l: lay}
	g.elem = g.v.elem.Bits() / 8
	g.contig = l.f.contiguous(g.access)
	g.vector = 1
	if g.contig >= 0 && o.Operand("mask") == nil {
		g.vector = min(l.f.vector(g.access, mostBytes), lay.Contiguous(g.contig))
	}
	if g.elem*g.vector > 16 {
		g.vector = 16 / g.elem
	}
	if limit := o.Operand("limit"); limit != nil {
		g.limit = l.scalar(limit)
	}
	g.address()
	g.edges()
	g.idle = l.owners(lay)
	return g
}

// owners is the predicate of the threads that hold no copy of what another holds;
// nil if all are.
func (l *lowering) owners(lay *layout.Layout) *simt.Value {
	free := lay.FreeLanes() | lay.FreeWarps()<<layout.LaneBits
	if free == 0 {
		return nil
	}
	return l.b.Cmp(simt.EQ, l.b.And(l.tid(), l.b.Const32(free)), l.b.Const32(0))
}

// address computes the thread's own address: the tile's first element plus the
// thread's coordinates.
func (g *globalAccess) address() {
	b := g.b
	p := g.offset(g.v, g.indices)
	for axis := range g.shape {
		d := g.axisDim(axis)
		if d < 0 {
			g.gather()
			continue
		}
		p = g.step(p, d, g.index(g.l.ThreadBases(axis), true))
	}
	g.base = p
	_ = b
}

// step adds n elements along dimension d to an address.
func (g *globalAccess) step(p *simt.Value, d int, n *simt.Value) *simt.Value {
	if n.IsInt(0) {
		return p
	}
	return g.b.MadWide(n, g.v.stride[d].bytes(), p)
}

// gather finds the row number that each register's row has.
func (g *globalAccess) gather() {
	rows := g.tile(g.rows)
	slice := g.l
	table := make([]int, slice.Registers())
	for r := range table {
		table[r] = r
	}
	for slice.Rank() > 1 {
		t := slice.SliceTable(1)
		for r := range table {
			table[r] = t[table[r]]
		}
		slice = slice.Slice(1)
	}
	g.rowAt, g.rowTable = g.elements(rows), table
}

// edges finds the axes that may reach outside the view.
func (g *globalAccess) edges() {
	b := g.b
	for axis := range g.shape {
		d := g.axisDim(axis)
		if d < 0 || g.f.inside(g.access, axis) {
			continue
		}
		first := b.Add(g.scalar(g.indices[d]), g.index(g.l.ThreadBases(axis), true))
		e := edge{axis: axis, room: b.Sub(g.v.size[d](), first)}
		if !g.f.nonNegative(g.indices[d]) {
			e.low = b.Neg(first)
		}
		g.bounds = append(g.bounds, e)
	}
}

// at is the address of register r: a value and an offset.
func (g *globalAccess) at(r int) (*simt.Value, int) {
	p, off := g.base, 0
	c := g.l.Register(r)
	for axis := range g.shape {
		d := g.axisDim(axis)
		if d < 0 {
			for rd, i := range g.indices {
				if i.Type.IsTile() {
					p = g.step(p, rd, g.rowAt[g.rowTable[r]])
				}
			}
			continue
		}
		n := c.At(axis)
		if s := g.v.stride[d].known; s != 0 && s*int64(n*g.elem) < 1<<30 {
			off += int(s) * n * g.elem
			continue
		}
		p = g.step(p, d, g.b.Const32(n))
	}
	return p, off
}

// guard is the predicate under which register r may be accessed; nil if always.
func (g *globalAccess) guard(r int) *simt.Value {
	b := g.b
	var p *simt.Value
	and := func(q *simt.Value) {
		if p == nil {
			p = q
		} else {
			p = b.And(p, q)
		}
	}
	c := g.l.Register(r)
	for _, e := range g.bounds {
		n := b.Const32(c.At(e.axis))
		and(b.Cmp(simt.GT, e.room, n))
		if e.low != nil {
			and(b.Cmp(simt.LE, e.low, n))
		}
	}
	if g.rowAt != nil {
		for d, i := range g.indices {
			if i.Type.IsTile() {
				and(b.Cmp(simt.LTU, g.rowAt[g.rowTable[r]], g.v.size[d]()))
			}
		}
		if g.limit != nil {
			and(b.Cmp(simt.LT, g.coordinate(g.l, r, 0), g.limit))
		}
	}
	return p
}

// both is p and q, either of which may be nil for true.
func (l *lowering) both(p, q *simt.Value) *simt.Value {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return l.b.And(p, q)
}

// under builds f guarded by p, or plainly if p is nil.
func (l *lowering) under(p *simt.Value, f func()) {
	if p == nil {
		f()
		return
	}
	l.b.Guarded(p, f)
}

// load lowers a load into registers.
func (l *lowering) load(o *ir.Op) {
	t := o.Result().Type
	if t.IsScalar() {
		l.loadScalar(o)
		return
	}
	g := l.accessFor(o, t.Layout, 16)
	var mask []*simt.Value
	if m := o.Operand("mask"); m != nil {
		mask = l.elements(l.tile(m))
	}
	var fill *simt.Value
	if v := o.Operand("fill"); v != nil {
		fill = l.scalar(v)
	}
	out := make([]*simt.Value, 0, t.Layout.Registers())
	for r := 0; r < t.Layout.Registers(); r += g.vector {
		p := g.guard(r)
		if mask != nil {
			p = l.both(p, mask[r])
		}
		l.under(p, func() { out = append(out, g.loadVector(r, fill, t.Elem)...) })
	}
	l.set(o.Result(), l.packed(t, out))
}

// loadVector loads the elements of a vector, of elements' own type.
func (g *globalAccess) loadVector(r int, fill *simt.Value, e ir.Elem) []*simt.Value {
	addr, off := g.at(r)
	t, n := elementType(e), g.vector
	if e.Bits() == 8 || e == ir.I1 {
		return g.loadBytes(addr, off, e)
	}
	a := simt.Access{Offset: off, Cache: g.cache()}
	if is16(e) && n > 1 {
		t, n = packedType(e, 2), n/2
	}
	if fill != nil {
		f := fill
		if t.Bits() != fill.Type.Bits() {
			f = g.b.Pack(fill, fill, t)
		}
		for range min(n, 4) {
			a.Default = append(a.Default, f)
		}
	}
	var out []*simt.Value
	per := 16 / (t.Bits() / 8)
	for i := 0; i < n; i += per {
		k := min(per, n-i)
		b := a
		b.Offset += i * t.Bits() / 8
		if b.Default != nil {
			b.Default = b.Default[:k]
		}
		out = append(out, g.b.LdGlobal(t, k, addr, b)...)
	}
	if t == elementType(e) {
		return out
	}
	halves := make([]*simt.Value, 0, 2*len(out))
	for _, v := range out {
		lo, hi := g.b.Unpack(v, elementType(e))
		halves = append(halves, lo, hi)
	}
	return halves
}

func (g *globalAccess) loadBytes(addr *simt.Value, off int, e ir.Elem) []*simt.Value {
	var out []*simt.Value
	mem := simt.S8
	if e != ir.I8 {
		mem = simt.U8
	}
	for i := range g.vector {
		v := g.b.LdMem(simt.Global, simt.I32, mem, 1, addr, simt.Access{Offset: off + i})[0]
		if e == ir.I1 {
			v = g.b.Cmp(simt.NE, v, g.b.Const32(0))
		}
		out = append(out, v)
	}
	return out
}

// cache hints: what a kernel only reads goes through the read-only path.
func (g *globalAccess) cache() simt.Cache {
	p, _ := root(g.view)
	if g.writes(g.k.Body, p) {
		return 0
	}
	return simt.CacheNC
}

func (l *lowering) loadScalar(o *ir.Op) {
	v := l.viewOf(o.View())
	var p *simt.Value
	for d, i := range o.Indices() {
		p = l.both(p, l.b.Cmp(simt.LTU, l.scalar(i), v.size[d]()))
	}
	addr := l.offset(v, o.Indices())
	var a simt.Access
	if fill := o.Operand("fill"); fill != nil {
		a.Default = []*simt.Value{l.scalar(fill)}
	}
	if m := o.Operand("mask"); m != nil {
		p = l.both(p, l.scalar(m))
	}
	l.under(p, func() { l.scalars[o.Result()] = l.b.LdGlobal(elementType(v.elem), 1, addr, a)[0] })
}

// store lowers a store from registers.
func (l *lowering) store(o *ir.Op) {
	value := o.Operand("value")
	if value.Type.IsScalar() {
		l.storeScalar(o)
		return
	}
	f := l.tile(value)
	g := l.accessFor(o, f.l, 16)
	var mask []*simt.Value
	if m := o.Operand("mask"); m != nil {
		mask = l.elements(l.tile(m))
	}
	regs := f.regs
	if g.vector%f.pack != 0 {
		regs = l.elements(f)
	}
	per := f.l.Registers() / len(regs) // elements in a register
	for r := 0; r < f.l.Registers(); r += g.vector {
		p := l.both(g.idle, g.guard(r))
		if mask != nil {
			p = l.both(p, mask[r])
		}
		vs := regs[r/per : (r+g.vector)/per]
		l.under(p, func() { g.storeVector(r, vs) })
	}
	l.dirty = true
}

func (g *globalAccess) storeVector(r int, vs []*simt.Value) {
	addr, off := g.at(r)
	if vs[0].Type == simt.Pred || g.elem == 1 {
		for i, v := range vs {
			if v.Type == simt.Pred {
				v = g.b.Select(v, g.b.Const32(1), g.b.Const32(0))
			}
			g.b.StMem(simt.Global, simt.U8, addr, []*simt.Value{v}, simt.Access{Offset: off + i})
		}
		return
	}
	size := vs[0].Type.Bits() / 8
	per := 16 / size
	for i := 0; i < len(vs); i += per {
		n := min(per, len(vs)-i)
		n = 1 << (bits.Len(uint(n)) - 1)
		g.b.StGlobal(addr, vs[i:i+n], simt.Access{Offset: off + i*size})
	}
}

func (l *lowering) storeScalar(o *ir.Op) {
	v := l.viewOf(o.View())
	p := l.b.Cmp(simt.EQ, l.tid(), l.b.Const32(0))
	for d, i := range o.Indices() {
		p = l.both(p, l.b.Cmp(simt.LTU, l.scalar(i), v.size[d]()))
	}
	if m := o.Operand("mask"); m != nil {
		p = l.both(p, l.scalar(m))
	}
	addr := l.offset(v, o.Indices())
	l.under(p, func() { l.b.StGlobal(addr, []*simt.Value{l.scalar(o.Operand("value"))}, simt.Access{}) })
}
