package codegen

import (
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// ParamKind says what a parameter of a compiled kernel holds.
type ParamKind uint8

// The kinds of parameters.
const (
	ParamPointer   ParamKind = iota // address of a view's first element, 64 bits
	ParamSize                       // a view's size in one dimension, i32
	ParamStride                     // a view's stride in one dimension, in elements, i64
	ParamScalar                     // a scalar, of its own width
	ParamTensorMap                  // a view's tensor map, 128 bytes
)

// Param is one parameter of a compiled kernel, in the order they are passed. Only
// what the kernel uses is passed.
type Param struct {
	Kind ParamKind
	Arg  int     // which of the tile program's parameters it comes from
	Dim  int     // ParamSize, ParamStride; ParamTensorMap: the contiguous one
	Elem ir.Elem // element of the view, or type of the scalar

	// Narrow says of a stride that the kernel computes with it in 32 bits of bytes.
	Narrow bool

	// Of a ParamTensorMap: the elements that a copy moves of each dimension, in the order
	// of the tensor map, and the bytes of a swizzled row.
	Box     [mostMapDims]int
	Swizzle int
}

// view is a view in registers.
type view struct {
	elem   ir.Elem
	base   func() *simt.Value   // Ptr
	size   []func() *simt.Value // I32
	stride []stride
}

// stride is a stride in elements: a known number, or a parameter.
type stride struct {
	known int64              // 0 where it is not
	wide  func() *simt.Value // I64
	bytes func() *simt.Value // I32, in bytes
}

// param declares what a tile program's parameter becomes. Values are made on
// first use, so that unused sizes and strides are not passed.
func (l *lowering) param(p *ir.Value) {
	arg := -1
	for i, q := range l.k.Params {
		if q == p {
			arg = i
		}
	}
	if p.Type.IsScalar() {
		l.scalars[p] = l.scalarParam(Param{Kind: ParamScalar, Arg: arg, Elem: p.Type.Elem}, p.Name)
		return
	}
	v := &view{elem: p.Type.Elem}
	v.base = func() *simt.Value { return l.passed(Param{Kind: ParamPointer, Arg: arg, Elem: v.elem}, p.Name) }
	for d, dim := range p.Type.Dims {
		v.size = append(v.size, func() *simt.Value { return l.sizeOf(arg, d, dim) })
		s := stride{known: l.f.stride(p, d)}
		s.wide = func() *simt.Value {
			if s.known != 0 {
				return l.b.Const64(s.known)
			}
			return l.passed(Param{Kind: ParamStride, Arg: arg, Dim: d, Elem: v.elem}, fmt.Sprintf("%s_stride%d", p.Name, d))
		}
		s.bytes = func() *simt.Value { return l.strideBytes(s, Param{Kind: ParamStride, Arg: arg, Dim: d, Elem: v.elem}) }
		v.stride = append(v.stride, s)
	}
	l.views[p] = v
}

// scalarParam is a scalar that is passed. What is narrower than 16 bits comes in 32, of
// which the bits above its own mean nothing.
func (l *lowering) scalarParam(p Param, name string) *simt.Value {
	v := l.passed(p, name)
	switch bits := p.Elem.Bits(); {
	case p.Elem == ir.I1:
		return l.b.Cmp(simt.NE, l.b.And(v, l.b.Const32(1)), l.b.Const32(0))
	case bits < 16 && p.Elem.IsInt():
		up := l.b.Const32(32 - bits)
		return l.b.Shr(l.b.Shl(v, up), up)
	case bits < 16:
		return l.b.And(v, l.b.Const32(1<<bits-1))
	}
	return v
}

// strideBytes is a stride in bytes as 32 bits. A parameter is marked, so that a
// launch checks that it fits.
func (l *lowering) strideBytes(s stride, p Param) *simt.Value {
	size := bytesOf(p.Elem)
	if s.known != 0 {
		if s.known > maxTileStride/int64(size) || s.known < 0 {
			panic(failure{fmt.Errorf("kernel %s: an assumed stride of %d in a dimension that a tile spans: %w: want at most %d",
				l.k.Name, s.known, ErrUnsupported, maxTileStride/int64(size))})
		}
		return l.b.Const32(int(s.known) * size)
	}
	wide := s.wide()
	for i := range l.params {
		if q := &l.params[i]; q.Kind == p.Kind && q.Arg == p.Arg && q.Dim == p.Dim {
			q.Narrow = true
		}
	}
	return l.b.Mul(l.b.Trunc(wide, simt.I32), l.b.Const32(size))
}

// sizeOf is a view's size: a constant, or a parameter shared by all views with the
// same symbol.
func (l *lowering) sizeOf(arg, d int, dim ir.Dim) *simt.Value {
	if dim.Sym == "" {
		if dim.Size > 0 {
			return l.b.Const32(dim.Size)
		}
		return l.passed(Param{Kind: ParamSize, Arg: arg, Dim: d}, fmt.Sprintf("%s_size%d", l.k.Params[arg].Name, d))
	}
	return l.symbol(dim.Sym)
}

// symbol is the value of a size symbol.
func (l *lowering) symbol(name string) *simt.Value {
	for i, p := range l.k.Params {
		if p.Type.IsScalar() {
			if p.Name == name {
				return l.scalars[p]
			}
			continue
		}
		for d, dim := range p.Type.Dims {
			if dim.Sym == name {
				return l.passed(Param{Kind: ParamSize, Arg: i, Dim: d}, name)
			}
		}
	}
	panic(fmt.Sprintf("size %s: no parameter has it", name))
}

// passed returns the value of a parameter of the thread program, declaring it at
// first use.
func (l *lowering) passed(p Param, name string) *simt.Value {
	if v, ok := l.paramAt[p]; ok {
		return v
	}
	q := simt.Param{Name: name}
	switch p.Kind {
	case ParamPointer:
		q.Type, q.Elem = simt.Ptr, elementType(p.Elem)
		q.Align = int(l.f.pointerAlign(l.k.Params[p.Arg]))
		q.Const = !l.changes(l.k.Params[p.Arg])
	case ParamTensorMap:
		q.Type, q.Bytes = simt.Ptr, tensorMapBytes
		for i := 1; slices.ContainsFunc(l.s.Params, func(p simt.Param) bool { return p.Name == q.Name }); i++ {
			q.Name = fmt.Sprintf("%s%d", name, i)
		}
	case ParamSize:
		q.Type = simt.I32
	case ParamStride:
		q.Type = simt.I64
	case ParamScalar:
		q.Type = elementType(p.Elem)
		if q.Type == simt.Pred {
			q.Type = simt.I32
		}
	}
	l.params = append(l.params, p)
	v := l.b.Param(l.b.AddParam(q))
	l.paramAt[p] = v
	return v
}

// changes tells whether what a parameter points to may change while the kernel runs: it
// does so itself, or the launch before still does until the kernel has waited for it.
func (l *lowering) changes(p *ir.Value) bool {
	return l.m.changing || p == l.m.made || l.writes(l.k.Body, p)
}

// writes tells whether a region stores to a view of the parameter.
func (l *lowering) writes(r *ir.Region, p *ir.Value) bool {
	for _, o := range r.Ops {
		if o.Code.Info().Effect&ir.WritesGlobal != 0 {
			if q, _ := root(o.View()); q == p {
				return true
			}
		}
		for _, in := range o.Regions {
			if l.writes(in, p) {
				return true
			}
		}
	}
	return false
}

func (l *lowering) viewOf(v *ir.Value) *view { return l.views[v] }

// subview cuts a view: its base moves, its sizes shrink to the extents.
func (l *lowering) subview(o *ir.Op) {
	from := l.viewOf(o.View())
	v := &view{elem: from.elem}
	indices := o.Indices()
	base := l.offset(from, indices)
	v.base = func() *simt.Value { return base }
	for i, d := range o.Dims {
		left := l.b.Sub(from.size[d](), l.scalar(indices[d]))
		size := l.b.Max(l.b.Min(left, l.scalar(o.Operands("extents")[i])), l.b.Const32(0))
		v.size = append(v.size, func() *simt.Value { return size })
		v.stride = append(v.stride, from.stride[d])
	}
	l.views[o.Result()] = v
}

// offset is the address of the element at the scalar indices (tiles count as 0).
func (l *lowering) offset(v *view, indices []*ir.Value) *simt.Value {
	p := v.base()
	size := int64(bytesOf(v.elem))
	for d, i := range indices {
		if i.Type.IsTile() {
			continue
		}
		x := l.scalar(i)
		if x.IsInt(0) {
			continue
		}
		s := v.stride[d]
		switch {
		case s.known > 0 && s.known <= maxTileStride/size:
			p = l.b.MadWide(x, l.b.Const32(int(s.known*size)), p)
		default:
			p = l.b.Add(p, l.b.Mul(l.b.Sext(x, simt.I64), l.b.Mul(s.wide(), l.b.Const64(size))))
		}
	}
	return p
}

// tileSpace is a kernel's tile space, whose tiles stand in clusters along the first axis.
type tileSpace struct {
	counts []*simt.Value // clusters along the first axis, tiles along the others
	first  *simt.Value   // number of the block's cluster
	rank   *simt.Value   // of the block in it
}

// tileSpace computes the extents of the tile space, and the block's place among clusters.
func (l *lowering) tileSpace() {
	b := l.b
	axes := l.k.Space
	id := b.Special(simt.CtaX)
	if n := l.cluster.perTile; n > 1 {
		l.rank = b.And(id, b.Const32(n-1)).Named("rank")
		id = b.DivU(id, b.Const32(n))
	}
	if len(axes) == 0 {
		return
	}
	counts := make([]*simt.Value, len(axes))
	for i, a := range axes {
		counts[i] = l.expr(a.Count)
	}
	blocks := l.cluster.blocks
	rank := b.And(id, b.Const32(blocks-1))
	id, counts[0] = b.DivU(id, b.Const32(blocks)), b.DivU(b.Add(counts[0], b.Const32(blocks-1)), b.Const32(blocks))
	l.space = tileSpace{counts, id, rank}
}

// expr computes a size expression, whose value is an i32. Where a part of it may need
// more bits, all of it is computed in 64.
func (l *lowering) expr(e ir.Expr) *simt.Value {
	t := simt.I32
	if _, _, ok := l.sizeRange(e); !ok {
		t = simt.I64
	}
	return l.b.Trunc(l.exprIn(e, t), simt.I32)
}

// sizeRange is the least and greatest value of an expression over all sizes; ok is false
// if it or a part of it may not be an i32.
func (l *lowering) sizeRange(e ir.Expr) (lo, hi float64, ok bool) {
	switch e.Op {
	case ir.ExprConst:
		lo, hi = float64(e.Val), float64(e.Val)
	case ir.ExprSym:
		lo, hi = 0, math.MaxInt32
		if p := l.k.Param(e.Name); p != nil && p.Type.IsScalar() {
			lo = -math.MaxInt32
			if p.Type.Elem == ir.I64 {
				return 0, 0, false
			}
		}
	default:
		a, b, okX := l.sizeRange(*e.X)
		c, d, okY := l.sizeRange(*e.Y)
		if !okX || !okY {
			return 0, 0, false
		}
		switch e.Op {
		case ir.ExprAdd:
			lo, hi = a+c, b+d
		case ir.ExprSub:
			lo, hi = a-d, b-c
		case ir.ExprMul:
			lo, hi = min(a*c, a*d, b*c, b*d), max(a*c, a*d, b*c, b*d)
		case ir.ExprMin:
			lo, hi = min(a, c), min(b, d)
		case ir.ExprMax:
			lo, hi = max(a, c), max(b, d)
		default: // divisions, of numbers from 0 on
			lo, hi = 0, b
		}
	}
	return lo, hi, lo >= math.MinInt32 && hi <= math.MaxInt32
}

func (l *lowering) exprIn(e ir.Expr, t simt.Type) *simt.Value {
	b := l.b
	switch e.Op {
	case ir.ExprConst:
		return b.Const(t, e.Val)
	case ir.ExprSym:
		return b.Sext(l.symbol(e.Name), t)
	}
	x, y := l.exprIn(*e.X, t), l.exprIn(*e.Y, t)
	switch e.Op {
	case ir.ExprAdd:
		return b.Add(x, y)
	case ir.ExprSub:
		return b.Sub(x, y)
	case ir.ExprMul:
		return b.Mul(x, y)
	case ir.ExprDiv:
		return b.DivU(x, y)
	case ir.ExprCeilDiv:
		return b.DivU(b.Add(x, b.Sub(y, b.Const(t, 1))), y)
	case ir.ExprMin:
		return b.Min(x, y)
	}
	return b.Max(x, y)
}
