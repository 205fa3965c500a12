package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// dot gives a dot its fragments: those of the tensor-core instruction that
// multiplies its types, or plain register tiles where there is none.
func (c *chooser) dot(o *ir.Op, s *slot) {
	if c.m.wgmma && staysShared(o.Args[1]) {
		c.warpgroupDot(o, s)
		return
	}
	if e := c.m.multiplied(o); e != o.Args[0].Type.Elem || e != o.Args[1].Type.Elem {
		o.Args[0], o.Args[1] = c.castTo(o.Args[0], e, o, s), c.castTo(o.Args[1], e, o, s)
	}
	x, y, acc := o.Args[0], o.Args[1], o.Args[2]
	form, ok := c.m.tensorForm(o)
	var la, lb, lc *layout.Layout
	var err error
	if ok {
		warpsM, warpsN := c.arrange(o, form)
		lc, err = layout.MMAAccumulator(acc.Type.Shape, warpsM, warpsN)
		if err == nil {
			la, err = layout.MMAOperandA(x.Type.Shape, form.bits, warpsM, warpsN)
		}
		if err == nil {
			lb, err = layout.MMAOperandB(y.Type.Shape, form.bits, warpsM, warpsN)
		}
	} else {
		la, lb, lc, err = c.outerProduct(x.Type.Shape, y.Type.Shape)
	}
	if err != nil {
		panic(unsupported(o, "%w", err))
	}
	o.Args[0], o.Args[1], o.Args[2] = c.want(x, la), c.want(y, lb), c.want(acc, lc)
	c.scales(o, lc)
	s.ops = append(s.ops, o)
	c.define(o.Result(), lc, s)
}

// warpgroupDot leaves what wgmma reads from shared memory there.
func (c *chooser) warpgroupDot(o *ir.Op, s *slot) {
	t, _ := c.m.wgmmaTile(o, c.warps)
	groups := c.warps / 4
	lc, err := layout.WGMMAAccumulator(o.Result().Type.Shape, groups)
	if err != nil {
		panic(unsupported(o, "%w", err))
	}
	if x := o.Args[0]; staysShared(x) {
		o.Args[0] = c.stay(x)
	} else {
		la, err := layout.WGMMAOperandA(x.Type.Shape, t.form.Info().Bits, groups)
		if ringOf(o.Args[1]).Type.Shared.IsInterleaved() {
			la, err = layout.AccumulatorOperandA(x.Type.Shape, groups)
		}
		if err != nil {
			panic(unsupported(o, "%w", err))
		}
		o.Args[0] = c.want(x, la)
	}
	o.Args[1], o.Args[2] = c.stay(o.Args[1]), c.want(o.Args[2], lc)
	s.ops = append(s.ops, o)
	c.define(o.Result(), lc, s)
}

// stay makes a tile that is read of a ring, perhaps transposed, without a layout: it
// stays in shared memory.
func (c *chooser) stay(v *ir.Value) *ir.Value {
	k := c.known[v]
	if k.stays {
		return v
	}
	k.stays = true
	n := &ir.Op{Code: k.def.Code, Given: k.def.Given, Attrs: k.def.Attrs, Pos: k.def.Pos, Args: slices.Clone(k.def.Args)}
	if n.Code == ir.OpTranspose {
		n.Args[0] = c.stay(n.Args[0])
	}
	v.Def, v.Index = n, 0
	n.Results = []*ir.Value{v}
	k.at.ops = append(k.at.ops, n)
	return v
}

// castTo is a tile as another type, made when it is asked for.
func (c *chooser) castTo(x *ir.Value, e ir.Elem, user *ir.Op, s *slot) *ir.Value {
	if x.Type.Elem == e {
		return x
	}
	o := &ir.Op{Code: ir.OpCast, Args: []*ir.Value{x}, Pos: user.Pos}
	v := c.k.NewValue(x.Name, x.Type.WithElem(e).WithLayout(nil))
	v.Def = o
	o.Results = []*ir.Value{v}
	c.plain(o, s)
	return v
}

// scales gives each thread the scales of its accumulators' rows and columns, those of
// all groups.
func (c *chooser) scales(o *ir.Op, acc *layout.Layout) {
	for i, a := range o.Args[3:] {
		axis := 0 // that the scales have in common with the accumulator
		if a == o.Operand("scale_y") && (i == 1 || o.Operand("scale_x") == nil) {
			axis = 1
		}
		l, err := acc.Slice(1 - axis).Expand(1 - axis).Broadcast(a.Type.Shape)
		if err != nil {
			panic(unsupported(o, "%w", err))
		}
		o.Args[3+i] = c.want(a, l)
	}
}

// arrange spreads the warps over an accumulator: all along M when its rows are
// reduced later or when its left operand comes from another dot's rows, otherwise
// as square as the tile allows.
func (c *chooser) arrange(o *ir.Op, form tensorForm) (warpsM, warpsN int) {
	shape := o.Result().Type.Shape
	mostM := max(1, pow2(shape[0]/form.m))
	if l := c.natural(o.Args[0]); l != nil {
		warpsM = 1
		for _, b := range l.WarpBases() {
			if b[0] != 0 {
				warpsM *= 2
			}
		}
		return warpsM, c.warps / warpsM
	}
	if c.reducesRows(o.Result(), map[*ir.Value]bool{}) {
		warpsM = min(c.warps, mostM)
		return warpsM, c.warps / warpsM
	}
	best := -1
	for m := 1; m <= c.warps; m *= 2 {
		n := c.warps / m
		// What the warps read from shared memory in one step, and a charge for copies
		// and for parts too narrow for a 16-byte row of B.
		rows, cols := max(shape[0]/m, form.m), max(shape[1]/n, 16)
		cost := (rows + cols) * 4
		if rows*m > shape[0] || cols*n > shape[1] {
			cost *= 2
		}
		if best < 0 || cost < best || cost == best && rows >= cols && m < warpsM {
			best, warpsM, warpsN = cost, m, n
		}
	}
	return warpsM, warpsN
}

// pow2 is the largest power of two up to n.
func pow2(n int) int {
	p := 1
	for p*2 <= n {
		p *= 2
	}
	return p
}

// reducesRows tells whether a reduction along columns depends on v by elementwise
// operations and branches.
func (c *chooser) reducesRows(v *ir.Value, seen map[*ir.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for _, u := range c.users[v] {
		switch {
		case (u.Code == ir.OpReduce || u.Code == ir.OpScan) && u.Axis == v.Type.Rank()-1:
			return true
		case u.Code.Info().Elementwise && c.reducesRows(u.Result(), seen):
			return true
		case u.Code == ir.OpYield && c.branches[u] != nil:
			for i, a := range u.Args {
				if a == v && c.reducesRows(c.branches[u].Results[i], seen) {
					return true
				}
			}
		}
	}
	return false
}

// outerProduct is the layouts of a dot without tensor cores: each thread
// multiplies its rows of x, four steps of k at a time, with its columns of y.
func (c *chooser) outerProduct(x, y []int) (la, lb, lc *layout.Layout, err error) {
	shape := []int{x[0], y[1]}
	lc, err = threadTiles(shape, c.warps)
	if err != nil {
		return nil, nil, nil, err
	}
	rows, err := lc.Slice(1).Expand(1).Broadcast(x)
	if err != nil {
		return nil, nil, nil, err
	}
	la, err = kFirst(rows, 1)
	if err != nil {
		return nil, nil, nil, err
	}
	lb, err = lc.Slice(0).Expand(0).Broadcast(y)
	return la, lb, lc, err
}

// threadTiles spreads an accumulator so that each thread holds runs of four
// columns and, where there is enough, as many rows as columns.
func threadTiles(shape []int, warps int) (*layout.Layout, error) {
	f := fillOf(shape)
	reg := f.take(1, 2)
	share := f.left() - 5 - log2(warps) // register bits still to give
	var rows [][]int
	if share > 0 {
		rows = f.take(0, min(3, share))
	}
	lane := append(f.take(1, 3), f.take(0, 2)...)
	lane = pad(append(lane, f.rest(5-len(lane))...), 5, len(shape))
	warp := pad(f.rest(log2(warps)), log2(warps), len(shape))
	reg = append(append(reg, rows...), f.rest(f.left())...)
	return layout.New(shape, reg, lane, warp, nil)
}

// kFirst moves the registers along an axis to the front, so that runs of it are
// loaded as one.
func kFirst(l *layout.Layout, axis int) (*layout.Layout, error) {
	var along, others [][]int
	for _, b := range l.RegBases() {
		if b[axis] != 0 {
			along = append(along, b)
		} else {
			others = append(others, b)
		}
	}
	return layout.New(l.Shape(), append(along, others...), l.LaneBases(), l.WarpBases(), nil)
}

// bases hands out the coordinate bits of a tile.
type bases struct {
	next, end []int // bit positions by dimension
}

func fillOf(shape []int) *bases {
	f := &bases{next: make([]int, len(shape)), end: make([]int, len(shape))}
	for d, n := range shape {
		f.end[d] = log2(n & -n)
	}
	return f
}

// take returns up to n bases along dimension d.
func (f *bases) take(d, n int) [][]int {
	var out [][]int
	for ; n > 0 && f.next[d] < f.end[d]; n-- {
		b := make([]int, len(f.next))
		b[d] = 1 << f.next[d]
		f.next[d]++
		out = append(out, b)
	}
	return out
}

// rest returns up to n bases, columns first.
func (f *bases) rest(n int) [][]int {
	var out [][]int
	for d := len(f.next) - 1; d >= 0; d-- {
		out = append(out, f.take(d, n-len(out))...)
	}
	return out
}

func (f *bases) left() int {
	n := 0
	for d := range f.next {
		n += f.end[d] - f.next[d]
	}
	return n
}

// pad fills a list of bases up with zeros, which stand for copies.
func pad(b [][]int, n, rank int) [][]int {
	for len(b) < n {
		b = append(b, make([]int, rank))
	}
	return slices.Clip(b)
}

func log2(n int) int {
	l := 0
	for 1<<(l+1) <= n {
		l++
	}
	return l
}
