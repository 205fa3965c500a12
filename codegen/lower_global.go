package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// globalAccess computes the addresses and guards of a tile in global memory for
// the registers of a layout.
type globalAccess struct {
	*lowering
	access
	v      *view
	l      *layout.Layout
	elem   int // bytes
	contig int // axis of adjacent elements, -1 if none
	vector int // elements accessed as one, along contig
	base   *simt.Value
	bounds []edge      // axes that may reach outside
	gate   *simt.Value // false where an index that no axis spans is outside; nil for true
	idle   *simt.Value
	rowAt  [][]*simt.Value // for a gather: by dimension, the row number of each register; nil for scalars
	limit  *simt.Value     // rows left from the thread's own first one on; nil without a limit
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
	g.elem = bytesOf(g.v.elem)
	g.contig = l.f.contiguous(g.access)
	g.vector = 1
	if g.contig >= 0 && o.Operand("mask") == nil {
		g.vector = min(l.f.vector(g.access, mostBytes), lay.Contiguous(g.contig))
	}
	if limit := o.Operand("limit"); limit != nil {
		g.limit = l.b.Sub(l.b.Max(l.scalar(limit), l.b.Const32(0)), l.index(lay.ThreadBases(0), true))
	}
	g.gather()
	g.address()
	g.gates()
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
	g.base = g.offset(g.v, g.indices)
	for axis := range g.shape {
		if d := g.axisDim(axis); d >= 0 {
			g.base = g.step(g.base, d, g.index(g.l.ThreadBases(axis), true))
		}
	}
}

// step adds n elements along dimension d to an address.
func (g *globalAccess) step(p *simt.Value, d int, n *simt.Value) *simt.Value {
	if n.IsInt(0) {
		return p
	}
	return g.b.MadWide(n, g.v.stride[d].bytes(), p)
}

// gather finds the row numbers that each register's row has.
func (g *globalAccess) gather() {
	if g.rows == nil {
		return
	}
	slice, table := rowSlice(g.l)
	g.rowAt = make([][]*simt.Value, len(g.indices))
	for d, i := range g.indices {
		if !i.Type.IsTile() {
			continue
		}
		rows := g.elements(g.tile(i))
		if len(rows) != slice.Registers() {
			panic("row numbers in another layout than the tile's rows")
		}
		at := make([]*simt.Value, len(table))
		for r, s := range table {
			at[r] = rows[s]
		}
		g.rowAt[d] = at
	}
}

// rowSlice is the layout of a tile's rows, its axis 0, and which register of it each
// register of the tile has its row in.
func rowSlice(l *layout.Layout) (slice *layout.Layout, table []int) {
	table = make([]int, l.Registers())
	for r := range table {
		table[r] = r
	}
	for slice = l; slice.Rank() > 1; slice = slice.Slice(1) {
		t := slice.SliceTable(1)
		for r := range table {
			table[r] = t[table[r]]
		}
	}
	return slice, table
}

// gates checks the indices that no axis spans.
func (g *globalAccess) gates() {
	for d, i := range g.indices {
		if i.Type.IsTile() || slices.Contains(g.dims, d) || g.f.within(g.view, d, i) {
			continue
		}
		g.gate = g.both(g.gate, g.b.Cmp(simt.LTU, g.scalar(i), g.v.size[d]()))
	}
}

// edges finds the axes that may reach outside the view. The first takes the gate in:
// where that is shut, the view counts as empty.
func (g *globalAccess) edges() {
	b := g.b
	for axis := range g.shape {
		d := g.axisDim(axis)
		if d < 0 || g.f.inside(g.access, axis) {
			continue
		}
		size := g.v.size[d]()
		if g.gate != nil {
			size = b.Select(g.gate, size, b.Const32(0))
			g.gate = nil
		}
		first := b.Add(g.scalar(g.indices[d]), g.index(g.l.ThreadBases(axis), true))
		e := edge{axis: axis, room: b.Sub(size, first)}
		if !g.f.nonNegative(g.indices[d]) {
			e.low = b.Neg(first)
		}
		g.bounds = append(g.bounds, e)
	}
}

// maxOffset bounds the constant part of an address, which instructions have 32 bits for.
const maxOffset = 1 << 30

// at is the address of register r: a value and an offset.
func (g *globalAccess) at(r int) (*simt.Value, int) {
	p, off := g.base, 0
	c := g.l.Register(r)
	for axis := range g.shape {
		d := g.axisDim(axis)
		if d < 0 {
			for rd := range g.indices {
				if g.rowAt[rd] != nil {
					p = g.step(p, rd, g.rowAt[rd][r])
				}
			}
			continue
		}
		n := c.At(axis)
		if s := g.v.stride[d].known; s > 0 && s <= maxOffset/int64(n*g.elem+1) && off+int(s)*n*g.elem <= maxOffset {
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
	p := g.gate
	c := g.l.Register(r)
	for _, e := range g.bounds {
		n := b.Const32(c.At(e.axis))
		p = g.both(p, b.Cmp(simt.GT, e.room, n))
		if e.low != nil {
			p = g.both(p, b.Cmp(simt.LE, e.low, n))
		}
	}
	for d, at := range g.rowAt {
		if at != nil && !g.f.within(g.view, d, g.indices[d]) {
			p = g.both(p, b.Cmp(simt.LTU, at[r], g.v.size[d]()))
		}
	}
	if g.limit != nil {
		p = g.both(p, b.Cmp(simt.GT, g.limit, b.Const32(c.At(0))))
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
	mask := l.maskOf(o)
	var fill *simt.Value
	if v := o.Operand("fill"); v != nil {
		fill = l.scalar(v)
	}
	var out []*simt.Value
	pack := 1
	for r := 0; r < t.Layout.Registers(); r += g.vector {
		p := g.guard(r)
		if mask != nil {
			p = l.both(p, mask[r])
		}
		l.under(p, func() {
			var vs []*simt.Value
			vs, pack = g.loadVector(r, fill)
			out = append(out, vs...)
		})
	}
	l.set(o.Result(), l.fromRuns(t, out, pack))
}

// maskOf are the elements of an access's mask, nil if it has none.
func (l *lowering) maskOf(o *ir.Op) []*simt.Value {
	if m := o.Operand("mask"); m != nil {
		return l.elements(l.tile(m))
	}
	return nil
}

// loadVector loads the elements of a vector.
func (g *globalAccess) loadVector(r int, fill *simt.Value) (vs []*simt.Value, pack int) {
	addr, off := g.at(r)
	return g.loadRun(simt.Global, g.v.elem, g.vector, addr, simt.Access{Offset: off, Cache: g.cache()}, fill)
}

// cache hints: what a kernel only reads goes through the read-only path.
func (g *globalAccess) cache() simt.Cache {
	p, _ := root(g.view)
	if g.changes(p) {
		return 0
	}
	return simt.CacheNC
}

func (l *lowering) loadScalar(o *ir.Op) {
	v := l.viewOf(o.View())
	p := l.insideScalar(o, nil)
	var fill *simt.Value
	if f := o.Operand("fill"); f != nil {
		fill = l.scalar(f)
	}
	if m := o.Operand("mask"); m != nil {
		p = l.both(p, l.scalar(m))
	}
	l.under(p, func() {
		vs, _ := l.loadRun(simt.Global, v.elem, 1, l.offset(v, o.Indices()), simt.Access{}, fill)
		l.scalars[o.Result()] = vs[0]
	})
}

// insideScalar adds to p that an access of one element is inside its view.
func (l *lowering) insideScalar(o *ir.Op, p *simt.Value) *simt.Value {
	v := l.viewOf(o.View())
	for d, i := range o.Indices() {
		if !l.f.within(o.View(), d, i) {
			p = l.both(p, l.b.Cmp(simt.LTU, l.scalar(i), v.size[d]()))
		}
	}
	return p
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
	mask := l.maskOf(o)
	regs, pack := f.regs, f.pack
	cache := l.storeCache(o)
	if g.vector%pack != 0 {
		regs, pack = l.elements(f), 1
	}
	for r := 0; r < f.l.Registers(); r += g.vector {
		p := l.both(g.idle, g.guard(r))
		if mask != nil {
			p = l.both(p, mask[r])
		}
		addr, off := g.at(r)
		l.under(p, func() {
			l.storeRun(simt.Global, f.elem, addr, regs[r/pack:(r+g.vector)/pack], pack, simt.Access{Offset: off, Cache: cache})
		})
	}
}

func (l *lowering) storeScalar(o *ir.Op) {
	v := l.viewOf(o.View())
	p := l.insideScalar(o, l.b.Cmp(simt.EQ, l.tid(), l.b.Const32(0)))
	if m := o.Operand("mask"); m != nil {
		p = l.both(p, l.scalar(m))
	}
	addr := l.offset(v, o.Indices())
	l.under(p, func() {
		l.storeRun(simt.Global, v.elem, addr, []*simt.Value{l.scalar(o.Operand("value"))}, 1, simt.Access{})
	})
}
