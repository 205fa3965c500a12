package codegen

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// layouts decides which thread holds which element of every tile.
//
// Dots, reductions and stores anchor the choice: they want their operands in
// certain layouts. Everything that costs little to make in any layout (constants,
// index tiles, broadcasts, loads, reads of shared buffers, arithmetic on those
// alone) is made when it is asked for, in the layout asked for, at the place where
// it stood: nothing cheap is ever converted, but row numbers that many lanes would each
// load (see rowNumbers). Arithmetic on a tile that has a layout follows it. Where a tile with a layout is wanted in another one, a conversion is
// put behind its definition, so outside loops when the tile is.
func layouts(k *ir.Kernel, m *machine) {
	c := &chooser{k: k, m: m, f: newFacts(k), users: usersOf(k.Body), known: map[*ir.Value]*versions{}, branches: branchesOf(k.Body), warps: max(k.Hints.Warps, 1)}
	body := c.open(k.Body, nil)
	body.close()
}

// chooser is the state of the pass.
type chooser struct {
	k        *ir.Kernel
	m        *machine
	f        *facts
	users    users
	warps    int
	known    map[*ir.Value]*versions
	branches map[*ir.Op]*ir.Op // a yield -> the if it ends a branch of
}

// branchesOf finds the if that each yield of a branch belongs to.
func branchesOf(r *ir.Region) map[*ir.Op]*ir.Op {
	found := map[*ir.Op]*ir.Op{}
	var walk func(r *ir.Region)
	walk = func(r *ir.Region) {
		for _, o := range r.Ops {
			for _, in := range o.Regions {
				if y := in.Yield(); y != nil && o.Code == ir.OpIf {
					found[y] = o
				}
				walk(in)
			}
		}
	}
	walk(r)
	return found
}

// versions is what is known of one tile value of the program being rewritten.
type versions struct {
	v     *ir.Value
	def   *ir.Op // what made it in the program as it was; nil for a region's parameter
	at    *slot  // where what makes it in a layout goes
	lazy  bool   // made when asked for
	open  bool   // a loop's carried value whose layout the body will decide
	forms []form
	stays bool // made as it lies in shared memory
}

// form is the value in one layout.
type form struct {
	l *layout.Layout
	v *ir.Value
}

// slot collects the operations that replace one operation.
type slot struct{ ops []*ir.Op }

// opened is a region whose operations are being replaced.
type opened struct {
	r     *ir.Region
	slots []*slot
}

// open rewrites a region's operations. enter gets the slot before the first.
// Until close, more may still be asked of its values.
func (c *chooser) open(r *ir.Region, enter func(*slot)) *opened {
	first := &slot{}
	n := &opened{r: r, slots: make([]*slot, 0, len(r.Ops)+1)}
	n.slots = append(n.slots, first)
	if enter != nil {
		enter(first)
	}
	for _, o := range r.Ops {
		s := &slot{}
		n.slots = append(n.slots, s)
		c.op(o, s)
	}
	return n
}

// close puts the region together again.
func (n *opened) close() {
	n.r.Ops = nil
	for _, s := range n.slots {
		n.r.Ops = append(n.r.Ops, s.ops...)
	}
}

// op rewrites one operation into s, or notes it for later.
func (c *chooser) op(o *ir.Op, s *slot) {
	switch o.Code {
	case ir.OpFor:
		c.loop(o, s)
	case ir.OpIf:
		c.branch(o, s)
	case ir.OpRoles:
		for _, r := range o.Regions {
			c.open(r, nil).close()
		}
		s.ops = append(s.ops, o)
	case ir.OpDot:
		c.dot(o, s)
	case ir.OpReduce:
		c.reduce(o, s)
	case ir.OpScan:
		c.scan(o, s)
	case ir.OpSplit:
		c.split(o, s)
	case ir.OpStore:
		c.store(o, s)
	case ir.OpAtomic:
		c.atomic(o, s)
	case ir.OpCopy:
		c.copy(o, s)
	case ir.OpWrite:
		c.write(o, s)
	case ir.OpYield:
		s.ops = append(s.ops, o) // its operands are asked for by the loop or branch
	default:
		c.plain(o, s)
	}
}

// plain handles operations without a layout of their own.
func (c *chooser) plain(o *ir.Op, s *slot) {
	if len(o.Results) == 0 || !o.Result().Type.IsTile() {
		for i, a := range o.Args {
			if a.Type.IsTile() { // reshaped to a scalar
				o.Args[i] = c.want(a, c.anyLayout(a))
			}
		}
		s.ops = append(s.ops, o)
		return
	}
	lead := c.lead(o)
	c.known[o.Result()] = &versions{v: o.Result(), def: o, at: s, lazy: true}
	if lead != nil {
		c.want(o.Result(), lead)
	}
}

// lead is the layout that an operation takes from its operands: the one that is
// most costly to leave.
func (c *chooser) lead(o *ir.Op) *layout.Layout {
	if !o.Code.Info().Elementwise && !moves(o) && o.Code != ir.OpRandom16 {
		return nil
	}
	var best *layout.Layout
	bytes := 0
	for _, a := range o.Args {
		if l := c.natural(a); l != nil {
			if n := a.Type.Elements() * a.Type.Elem.Bits(); n > bytes {
				best, bytes = l, n
			}
		}
	}
	if best != nil && moves(o) {
		return moved(o, best)
	}
	return best
}

// natural is the layout in which a tile exists, nil where it can be had in any.
func (c *chooser) natural(v *ir.Value) *layout.Layout {
	k := c.known[v]
	if k == nil || len(k.forms) == 0 || k.lazy && cheap(k.def) {
		return nil
	}
	return k.forms[0].l
}

// cheap tells whether making the tile again costs no more than converting it.
func cheap(o *ir.Op) bool {
	switch o.Code {
	case ir.OpConst, ir.OpIota, ir.OpSplat, ir.OpBroadcast, ir.OpExpand, ir.OpRead:
		return true
	}
	return false
}

// want returns v in layout l.
func (c *chooser) want(v *ir.Value, l *layout.Layout) *ir.Value {
	k := c.known[v]
	if k == nil {
		return v // a scalar or a view
	}
	for _, f := range k.forms {
		if f.l.Equal(l) {
			return f.v
		}
	}
	if k.open {
		k.open = false
		v.Type.Layout = l
		k.forms = append(k.forms, form{l, v})
		return v
	}
	if k.lazy && (len(k.forms) == 0 || c.remake(k, k.forms[0].l, l, map[*versions]bool{}) || packs(k.def, k.forms[0].l, l)) {
		return c.make(k, l)
	}
	from := k.forms[0]
	o := &ir.Op{Code: ir.OpConvert, Args: []*ir.Value{from.v}, Pos: posOf(v)}
	return c.emit(k, o, l)
}

func posOf(v *ir.Value) ir.Pos {
	if v.Def != nil {
		return v.Def.Pos
	}
	return ir.Pos{}
}

// remake tells whether a lazy tile that exists in one layout is made anew in
// another rather than converted. seen holds the answers so far.
func (c *chooser) remake(k *versions, have, want *layout.Layout, seen map[*versions]bool) bool {
	answer, ok := seen[k]
	if !ok {
		answer = k.lazy && c.remakes(k.def, have, want, seen)
		seen[k] = answer
	}
	return answer
}

func (c *chooser) remakes(o *ir.Op, have, want *layout.Layout, seen map[*versions]bool) bool {
	if cheap(o) {
		return true
	}
	if o.Code == ir.OpLoad {
		return layout.Convert(have, want).Kind == layout.Memory && o.Result().Type.Rank() < 2
	}
	if !o.Code.Info().Elementwise {
		return false
	}
	for _, a := range o.Args {
		if k := c.known[a]; k != nil && !c.remake(k, have, want, seen) {
			return false
		}
	}
	return true
}

// packs tells whether an operation casts to bytes, of which each thread is to have the same
// ones in another order: that of what is cast costs nothing, once they share registers it does.
func packs(o *ir.Op, have, want *layout.Layout) bool {
	return o.Code == ir.OpCast && o.Result().Type.Elem.Bits() <= 8 && o.Args[0].Type.Elem.Bits() == 32 && layout.Convert(have, want).Kind < layout.Shuffles
}

// emit puts o, which makes k's value in layout l, where the value stood.
func (c *chooser) emit(k *versions, o *ir.Op, l *layout.Layout) *ir.Value {
	w := k.v
	if len(k.forms) > 0 {
		w = c.k.NewValue(k.v.Name, k.v.Type)
	}
	w.Type.Layout = l
	w.Def, w.Index = o, 0
	o.Results = []*ir.Value{w}
	k.at.ops = append(k.at.ops, o)
	k.forms = append(k.forms, form{l, w})
	return w
}

// make emits the operation of a lazy value in layout l.
func (c *chooser) make(k *versions, l *layout.Layout) *ir.Value {
	o := k.def
	if o.Code == ir.OpJoin && o.Args[0].Type.IsTile() && !inRegisters(l, l.Rank()-1) {
		c.make(k, pairsInRegisters(l))
		return c.want(k.v, l)
	}
	n := &ir.Op{Code: o.Code, Given: o.Given, Attrs: o.Attrs, Pos: o.Pos, Args: slices.Clone(o.Args)}
	for i, a := range o.Args {
		if a.Type.IsTile() {
			n.Args[i] = c.want(a, c.operandLayout(o, i, l))
		}
	}
	return c.emit(k, n, l)
}

// operandLayout is the layout in which operand i of o serves to make o's result
// in layout l.
func (c *chooser) operandLayout(o *ir.Op, i int, l *layout.Layout) *layout.Layout {
	a := o.Args[i].Type
	switch o.Code {
	case ir.OpBroadcast:
		for d, n := range a.Shape {
			if n == 1 && l.Extent(d) > 1 {
				l = l.Slice(d).Expand(d)
			}
		}
	case ir.OpExpand:
		return l.Slice(o.Axis)
	case ir.OpTranspose:
		inverse := make([]int, len(o.Perm))
		for d, p := range o.Perm {
			inverse[p] = d
		}
		t, err := l.Transpose(inverse)
		if err != nil {
			panic(err)
		}
		return t
	case ir.OpReshape:
		if r, err := l.Reshape(a.Shape); err == nil {
			return r
		}
		return c.anyLayout(o.Args[i]) // it goes through shared memory
	case ir.OpJoin:
		return l.Slice(len(a.Shape))
	case ir.OpLoad:
		if len(a.Shape) == 1 { // row numbers, or a mask of rank 1
			l, _ = rowSlice(l)
		}
	}
	return l
}

// anyLayout is where a tile goes that nothing asks for in a layout: spread for
// wide accesses by the loads it is made of.
func (c *chooser) anyLayout(v *ir.Value) *layout.Layout {
	if l := c.natural(v); l != nil {
		return l
	}
	order, vector := c.spread(v, map[*ir.Value]bool{})
	if order == nil {
		order = rowMajor(v.Type.Rank())
		vector = max(1, 128/v.Type.Elem.Bits())
	}
	return c.blocked(v.Type.Shape, order, vector)
}

func rowMajor(rank int) []int {
	order := make([]int, rank)
	for i := range order {
		order[i] = rank - 1 - i
	}
	return order
}

// blocked spreads a tile over the block, with no more elements in a run than each
// thread has.
func (c *chooser) blocked(shape, order []int, vector int) *layout.Layout {
	n := 1
	for _, s := range shape {
		n *= s
	}
	for vector > 1 && vector*32*c.warps > n {
		vector /= 2
	}
	l, err := layout.Blocked(shape, order, vector, c.warps)
	if err != nil {
		panic(failure{fmt.Errorf("%w: %w", ErrUnsupported, err)})
	}
	return l
}

// spread finds the order of axes and the vector width of the widest load or read of v's
// own shape that v is made of; nil if there is none.
func (c *chooser) spread(v *ir.Value, seen map[*ir.Value]bool) (order []int, vector int) {
	k := c.known[v]
	if k == nil || !k.lazy || seen[v] {
		return nil, 0
	}
	seen[v] = true
	o := k.def
	switch o.Code {
	case ir.OpLoad:
		return c.accessOrder(accessOf(o, v.Type.Shape))
	case ir.OpRead:
		return rowMajor(v.Type.Rank()), max(1, 128/v.Type.Elem.Bits())
	}
	if !o.Code.Info().Elementwise {
		return nil, 0
	}
	for _, a := range o.Args {
		if ao, av := c.spread(a, seen); av > vector {
			order, vector = ao, av
		}
	}
	return order, vector
}

// accessOrder is the order of a tile's axes with the contiguous one first, and how
// many of its elements 16 bytes at most hold.
func (c *chooser) accessOrder(a access) (order []int, vector int) {
	order = rowMajor(len(a.shape))
	if axis := c.f.contiguous(a); axis >= 0 {
		order = slices.DeleteFunc(order, func(d int) bool { return d == axis })
		order = slices.Insert(order, 0, axis)
	}
	return order, c.f.vector(a, 16)
}

// loop rewrites a loop. A carried value takes the layout in which the body first
// needs it.
func (c *chooser) loop(o *ir.Op, s *slot) {
	body := o.Regions[0]
	in := c.open(body, func(first *slot) {
		for _, p := range body.Params {
			if p.Type.IsTile() {
				c.known[p] = &versions{v: p, at: first, open: true}
			}
		}
	})
	yield := body.Yield()
	for i, p := range body.Params[1:] {
		if !p.Type.IsTile() {
			continue
		}
		l := c.natural(p)
		if l == nil {
			l = c.anyLayout(yield.Args[i])
			c.want(p, l)
		}
		yield.Args[i] = c.want(yield.Args[i], l)
		o.Args[3+i] = c.want(o.Args[3+i], l)
		c.define(o.Results[i], l, s)
	}
	in.close()
	s.ops = append([]*ir.Op{o}, s.ops...)
}

// define notes that an operation in slot s gives v in layout l.
func (c *chooser) define(v *ir.Value, l *layout.Layout, s *slot) {
	v.Type.Layout = l
	c.known[v] = &versions{v: v, at: s, forms: []form{{l, v}}}
}

func (c *chooser) branch(o *ir.Op, s *slot) {
	var in []*opened
	for _, r := range o.Regions {
		in = append(in, c.open(r, nil))
	}
	for i, v := range o.Results {
		if !v.Type.IsTile() {
			continue
		}
		var l *layout.Layout
		for _, r := range o.Regions {
			if l == nil {
				l = c.natural(r.Yield().Args[i])
			}
		}
		if l == nil {
			l = c.anyLayout(o.Regions[0].Yield().Args[i])
		}
		for _, r := range o.Regions {
			r.Yield().Args[i] = c.want(r.Yield().Args[i], l)
		}
		c.define(v, l, s)
	}
	for _, n := range in {
		n.close()
	}
	s.ops = append([]*ir.Op{o}, s.ops...)
}

func (c *chooser) reduce(o *ir.Op, s *slot) {
	l := c.anyLayout(o.Args[0])
	if _, ok := l.Reduce(o.Axis); !ok {
		l = c.blocked(o.Args[0].Type.Shape, rowMajor(l.Rank()), 1)
	}
	o.Args[0] = c.want(o.Args[0], l)
	s.ops = append(s.ops, o)
	if o.Result().Type.IsTile() {
		c.define(o.Result(), l.Slice(o.Axis), s)
	}
}

// store picks the layout a tile is stored in: as it is, or spread anew so that
// accesses are wide, when that makes them at least twice as wide.
func (c *chooser) store(o *ir.Op, s *slot) {
	v := o.Operand("value")
	if !v.Type.IsTile() {
		s.ops = append(s.ops, o)
		return
	}
	a := accessOf(o, v.Type.Shape)
	order, vector := c.accessOrder(a)
	l := c.natural(v)
	if o.Bulk = l != nil && c.tensorStored(o, l); o.Bulk {
		c.operands(o, a, l)
		s.ops = append(s.ops, o)
		return
	}
	if l == nil || v.Type.Rank() > 1 && l.Contiguous(order[0])*2 <= vector && v.Type.Elements() >= 32*c.warps*vector {
		l = c.blocked(v.Type.Shape, order, vector)
	}
	c.operands(o, a, l)
	s.ops = append(s.ops, o)
}

// operands asks for the tiles of an access whose own tile has layout l.
func (c *chooser) operands(o *ir.Op, a access, l *layout.Layout) {
	rows, _ := rowSlice(l)
	for i, x := range o.Args {
		switch {
		case !x.Type.IsTile():
		case i > 0 && i <= len(a.indices):
			o.Args[i] = c.rowNumbers(x, rows)
		default:
			o.Args[i] = c.want(x, l)
		}
	}
}

// fewCopies is how many lanes may look up the same row number rather than be told, and
// fewLookups how many row numbers all of them may.
const (
	fewCopies  = 2
	fewLookups = 4
)

// rowNumbers asks for row numbers in a layout. Where many lanes want the same ones and
// they are loaded, each is loaded by one lane, which hands it to the others. They may be
// repeated: a row number of several rows is loaded once.
func (c *chooser) rowNumbers(v *ir.Value, rows *layout.Layout) *ir.Value {
	k, l := c.known[v], rows
	for k != nil && k.lazy && len(k.forms) == 0 && repeats(k.def) {
		l = c.operandLayout(k.def, 0, l)
		k = c.known[k.def.Args[0]]
	}
	if k != nil && k.lazy && len(k.forms) == 0 && k.def.Code == ir.OpLoad &&
		1<<bits.OnesCount(uint(l.FreeLanes())) > fewCopies && l.Registers() > fewLookups {
		if s := l.Spread(); layout.Convert(s, l).Kind == layout.Shuffles {
			c.make(k, s)
		}
	}
	return c.want(v, rows)
}

// repeats tells whether an operation's result is the elements of its operand, each once
// or several times.
func repeats(o *ir.Op) bool {
	return o.Code == ir.OpReshape || o.Code == ir.OpBroadcast || o.Code == ir.OpExpand
}

// atomic spreads the elements so that every one is held once.
func (c *chooser) atomic(o *ir.Op, s *slot) {
	v := o.Operand("value")
	if v.Type.IsTile() {
		a := accessOf(o, v.Type.Shape)
		l := c.natural(v)
		if o.Bulk = l != nil && c.tensorAdded(o, l); !o.Bulk {
			order, _ := c.accessOrder(a)
			l = c.blocked(v.Type.Shape, order, 1)
		}
		c.operands(o, a, l)
		c.define(o.Result(), l, s)
	}
	s.ops = append(s.ops, o)
}

// copy asks for row numbers and masks as the copy is shared out.
func (c *chooser) copy(o *ir.Op, s *slot) {
	ring := o.Operand("ring").Type
	if mapped(o.Operand("ring")) {
		s.ops = append(s.ops, o)
		return
	}
	l, _ := c.f.copyLayout(o, ring, c.warps)
	if l == nil {
		panic(unsupported(o, "no layout for a copy of %s", ring))
	}
	c.operands(o, accessOf(o, ring.Shape), l)
	s.ops = append(s.ops, o)
}

func (c *chooser) write(o *ir.Op, s *slot) {
	v := o.Operand("value")
	for i, x := range o.Args {
		switch {
		case x != v:
		case staysShared(v):
			o.Args[i] = c.stay(v)
		default:
			o.Args[i] = c.want(v, c.anyLayout(v))
		}
	}
	s.ops = append(s.ops, o)
}
