package codegen

import (
	"math"

	"github.com/kgen-dev/kgen/ir"
)

// boundsOf finds what a launch must hold sizes to so that no index leaves 32 bits: each
// sum must be at most math.MaxInt32. Sums that are so for all sizes up to ir.MaxDim are
// left out, which are those of most kernels.
//
// Indices are what a program computes loops' ends, places in views and comparisons from;
// what it computes for other ends wraps as the operations say. Nothing is said of indices
// that depend on data.
func boundsOf(k *ir.Kernel) []ir.Expr {
	b := &bounder{k: k, f: newFacts(k), index: map[*ir.Value]bool{}, spans: map[*ir.Value]span{}}
	b.roots(k.Body)
	b.region(k.Body)
	var out []ir.Expr
	for _, s := range b.found {
		out = append(out, s.expr())
	}
	return out
}

type bounder struct {
	k     *ir.Kernel
	f     *facts
	index map[*ir.Value]bool // i32 values that are indices, or become part of one
	spans map[*ir.Value]span
	found []sum // that may be beyond 32 bits
}

// span is where an i32 value lies, both ends included; nil where nothing is known.
type span struct{ lo, hi *sum }

func exactly(n int64) span { return span{constant(n), constant(n)} }

// natural tells whether the values are known to be 0 or more.
func (s span) natural() bool { return s.lo != nil && s.lo.least() >= 0 }

// roots marks the values that indices are computed from.
func (b *bounder) roots(r *ir.Region) {
	for _, o := range r.Ops {
		switch o.Code {
		case ir.OpFor:
			b.mark(o.Args[:3])
		case ir.OpCmp:
			b.mark(o.Args)
		}
		for _, name := range []string{"indices", "extents", "limit"} {
			b.mark(o.Operands(name))
		}
		for _, in := range o.Regions {
			b.roots(in)
		}
	}
}

func (b *bounder) mark(vs []*ir.Value) {
	for _, v := range vs {
		if v.Type.Elem != ir.I32 || b.index[v] {
			continue
		}
		b.index[v] = true
		o := v.Def
		if o == nil {
			continue
		}
		switch o.Code {
		case ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpNot, ir.OpUshr: // of a hash: bits, whatever was lost above
		case ir.OpIf:
			for _, r := range o.Regions {
				b.mark(r.Yield().Args[v.Index : v.Index+1])
			}
		case ir.OpFor:
		default:
			b.mark(o.Args)
		}
	}
}

// region looks at all indices of a region, and at what lowering computes with them.
func (b *bounder) region(r *ir.Region) {
	for _, o := range r.Ops {
		for _, v := range o.Results {
			if b.index[v] {
				b.of(v)
			}
		}
		switch o.Code {
		case ir.OpFor:
			// The index goes one step beyond the last round's.
			if end, step := b.of(o.Args[1]), b.of(o.Args[2]); end.hi != nil && step.hi != nil {
				b.within(end.hi.plus(step.hi, 1).plus(constant(1), -1))
			}
		case ir.OpSubview:
			for i, d := range o.Dims {
				b.left(b.of(o.Indices()[d]), 0, o.View(), o.Dims[i])
			}
		default:
			b.access(o)
		}
		for _, in := range o.Regions {
			b.region(in)
		}
	}
}

// access looks at the coordinates of a tile's elements in a view.
func (b *bounder) access(o *ir.Op) {
	view := o.View()
	if view == nil || len(o.Indices()) == 0 {
		return
	}
	var t ir.Type
	switch {
	case o.Operand("ring") != nil:
		t = o.Operand("ring").Type
	case o.Operand("value") != nil:
		t = o.Operand("value").Type
	case o.Result() != nil:
		t = o.Result().Type
	}
	if len(t.Shape) == 0 {
		return
	}
	a := accessOf(o, t.Shape)
	for axis, n := range t.Shape {
		if d := a.axisDim(axis); d >= 0 && d < len(a.indices) {
			b.left(b.of(a.indices[d]), int64(n-1), view, d)
		}
	}
}

// left is about what is left of a view from an index on: the index with up to more added,
// and the view's size less it.
func (b *bounder) left(index span, more int64, view *ir.Value, d int) {
	if index.hi != nil {
		b.within(index.hi.plus(constant(1), more))
	}
	if size := b.size(view, d); index.lo != nil && size.hi != nil {
		b.within(size.hi.plus(index.lo, -1))
	}
}

// within notes that a sum must fit 32 bits.
func (b *bounder) within(s *sum) {
	if s == nil || s.most() <= math.MaxInt32 || len(s.terms) == 0 {
		return
	}
	kept := b.found[:0]
	for _, other := range b.found {
		if other.plus(s, -1).least() >= 0 {
			return
		}
		if s.plus(&other, -1).least() < 0 {
			kept = append(kept, other)
		}
	}
	kept = append(kept, *s)
	b.found = kept
}

// of is where a value lies, given that no index wraps.
func (b *bounder) of(v *ir.Value) span {
	if v.Type.Elem != ir.I32 || v.Type.Kind != ir.Tile {
		return span{}
	}
	if s, ok := b.spans[v]; ok {
		return s
	}
	b.spans[v] = span{} // a value that depends on itself through a loop
	s := b.find(v)
	b.spans[v] = s
	return s
}

func (b *bounder) find(v *ir.Value) span {
	if count, ok := b.f.count[v]; ok {
		return span{constant(0), b.sum(count).plus(constant(1), -1)}
	}
	if o, ok := b.f.loops[v]; ok {
		return span{b.of(o.Args[0]).lo, b.of(o.Args[1]).hi.plus(constant(1), -1)}
	}
	o := v.Def
	if o == nil {
		if b.k.Param(v.Name) == v {
			s := b.sum(ir.Sym(v.Name))
			return span{s, s}
		}
		return span{}
	}
	s := b.op(v, o)
	switch o.Code {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpShl, ir.OpNeg:
		return b.unwrapped(v, s)
	}
	return s
}

// unwrapped is what a computation gives: without leaving 32 bits where it is an index,
// anything where it may leave them.
func (b *bounder) unwrapped(v *ir.Value, s span) span {
	if s.lo == nil || s.hi == nil {
		if s.hi != nil && s.hi.most() > math.MaxInt32 || s.lo != nil && s.lo.least() < math.MinInt32 {
			return span{} // beside an end that is not known, neither bounds it
		}
		return s
	}
	low, high := s.lo.least() < math.MinInt32, s.hi.most() > math.MaxInt32
	if (low || high) && (!b.index[v] || low && len(s.lo.terms) == 0 || high && len(s.hi.terms) == 0) {
		return span{} // it is not an index, or wraps for all sizes: a hash
	}
	b.within(s.hi)
	b.within(s.lo.times(-1).plus(constant(1), -1))
	return s
}

func (b *bounder) op(v *ir.Value, o *ir.Op) span {
	arg := func(i int) span { return b.of(o.Args[i]) }
	switch o.Code {
	case ir.OpConst:
		return exactly(o.Int)
	case ir.OpIota:
		return span{constant(0), constant(int64(v.Type.Shape[o.Axis] - 1))}
	case ir.OpDim:
		return b.size(o.Args[0], o.Axis)
	case ir.OpSplat, ir.OpBroadcast, ir.OpExpand, ir.OpReshape, ir.OpTranspose:
		return arg(0)
	case ir.OpAdd:
		return span{arg(0).lo.plus(arg(1).lo, 1), arg(0).hi.plus(arg(1).hi, 1)}
	case ir.OpSub:
		return span{arg(0).lo.plus(arg(1).hi, -1), arg(0).hi.plus(arg(1).lo, -1)}
	case ir.OpNeg:
		return span{arg(0).hi.times(-1), arg(0).lo.times(-1)}
	case ir.OpMul:
		return arg(0).product(arg(1))
	case ir.OpShl:
		if n, ok := arg(1).number(); ok && n >= 0 && n < 31 {
			return arg(0).product(exactly(1 << n))
		}
	case ir.OpDiv:
		return arg(0).quotient(arg(1))
	case ir.OpShr:
		if n, ok := arg(1).number(); ok && n >= 0 && n < 31 && arg(0).natural() {
			return arg(0).quotient(exactly(1 << n))
		}
	case ir.OpRem:
		if x, y := arg(0), arg(1); x.natural() && y.natural() {
			return span{constant(0), lesser(x.hi, y.hi.plus(constant(1), -1))}
		}
	case ir.OpAnd:
		for i := range 2 {
			if x := arg(i); x.natural() {
				return span{constant(0), x.hi}
			}
		}
	case ir.OpMin:
		return span{lowest(arg(0).lo, arg(1).lo), lesser(arg(0).hi, arg(1).hi)}
	case ir.OpMax:
		return span{lesser(arg(0).lo.times(-1), arg(1).lo.times(-1)).times(-1), highest(arg(0).hi, arg(1).hi)}
	case ir.OpSelect:
		return hull(arg(1), arg(2))
	case ir.OpIf:
		return hull(b.of(o.Regions[0].Yield().Args[v.Index]), b.of(o.Regions[1].Yield().Args[v.Index]))
	}
	return span{}
}

// size is how large a view may be in a dimension.
func (b *bounder) size(view *ir.Value, d int) span {
	if o := view.Def; o != nil {
		if o.Code != ir.OpSubview {
			return span{}
		}
		return span{constant(0), lesser(b.size(o.View(), o.Dims[d]).hi, b.of(o.Operands("extents")[d]).hi)}
	}
	dim := view.Type.Dims[d]
	switch {
	case dim.Sym != "":
		s := b.sum(ir.Sym(dim.Sym))
		return span{s, s}
	case dim.Size > 0:
		return exactly(int64(dim.Size))
	}
	return span{}
}

// sum is the value of a size expression.
func (b *bounder) sum(e ir.Expr) *sum {
	switch e.Op {
	case ir.ExprConst:
		return constant(e.Val)
	case ir.ExprSym:
		lo, hi, ok := b.rangeOf(e.Name)
		if !ok {
			return nil
		}
		return symbol(e.Name, lo, hi)
	case ir.ExprAdd:
		return b.sum(*e.X).plus(b.sum(*e.Y), 1)
	case ir.ExprSub:
		return b.sum(*e.X).plus(b.sum(*e.Y), -1)
	}
	x, y := b.sum(*e.X), b.sum(*e.Y)
	switch e.Op {
	case ir.ExprMul:
		return span{x, x}.product(span{y, y}).hi
	case ir.ExprDiv:
		return span{x, x}.quotient(span{y, y}).hi
	case ir.ExprCeilDiv:
		if x == nil || y == nil || len(y.terms) > 0 || y.c < 1 {
			return nil
		}
		return x.ceilDiv(y.c)
	case ir.ExprMin:
		return lesser(x, y)
	}
	return highest(x, y)
}

// rangeOf is how small and large a size or an integer parameter may be; ok is false for
// one of more than 32 bits.
func (b *bounder) rangeOf(name string) (lo, hi float64, ok bool) {
	lo, hi = 0, ir.MaxDim
	p := b.k.Param(name)
	if p != nil && p.Type.IsScalar() {
		if p.Type.Elem != ir.I32 {
			return 0, 0, false
		}
		lo, hi = math.MinInt32, math.MaxInt32
	}
	for _, a := range b.k.Assume {
		named := a.Kind == ir.AssumeRange && a.Param == p || a.Kind == ir.AssumeDimRange && a.Param.Type.Dims[a.Dim].Sym == name
		if named {
			lo, hi = max(lo, float64(a.Lo)), min(hi, float64(a.Hi))
		}
	}
	return lo, hi, true
}
