package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// facts answers what is provably true of a kernel's integers, from its
// assumptions and its tile space.
type facts struct {
	k     *ir.Kernel
	count map[*ir.Value]ir.Expr // how far a tile-space variable runs
	loops map[*ir.Value]*ir.Op  // a loop's index -> the loop
	memo  map[*ir.Value]int64   // divisors
	signs map[*ir.Value]bool    // whether values are known not to be negative
}

func newFacts(k *ir.Kernel) *facts {
	f := &facts{k: k, count: map[*ir.Value]ir.Expr{}, loops: map[*ir.Value]*ir.Op{}, memo: map[*ir.Value]int64{}, signs: map[*ir.Value]bool{}}
	for _, a := range k.Space {
		f.count[a.Var] = a.Count
	}
	f.findLoops(k.Body)
	return f
}

func (f *facts) findLoops(r *ir.Region) {
	for _, o := range r.Ops {
		if o.Code == ir.OpFor {
			f.loops[o.Regions[0].Params[0]] = o
		}
		for _, in := range o.Regions {
			f.findLoops(in)
		}
	}
}

// divisor returns a number that is known to divide the integer scalar v; 0 is divided
// by all, so it is what divides 0.
func (f *facts) divisor(v *ir.Value) int64 {
	if d, ok := f.memo[v]; ok {
		return d
	}
	f.memo[v] = 1 // a value that depends on itself through a loop
	d := f.findDivisor(v)
	f.memo[v] = d
	return d
}

func (f *facts) findDivisor(v *ir.Value) int64 {
	if o, ok := f.loops[v]; ok {
		return gcd(f.divisor(o.Args[0]), f.divisor(o.Args[2]))
	}
	o := v.Def
	if o == nil {
		return f.assumed(v)
	}
	switch o.Code {
	case ir.OpConst:
		return max(o.Int, -o.Int)
	case ir.OpDim:
		return f.dimMultiple(o.Args[0], o.Axis)
	case ir.OpAdd, ir.OpSub, ir.OpMin, ir.OpMax:
		return gcd(f.divisor(o.Args[0]), f.divisor(o.Args[1]))
	case ir.OpSelect:
		return gcd(f.divisor(o.Args[1]), f.divisor(o.Args[2]))
	case ir.OpMul:
		return product(f.divisor(o.Args[0]), f.divisor(o.Args[1]))
	case ir.OpShl:
		if n := o.Args[1]; isConst(n) && n.Def.Int >= 0 && n.Def.Int < 31 {
			return product(f.divisor(o.Args[0]), 1<<n.Def.Int)
		}
	}
	return 1
}

// product is a number that divides x*y: all of it, or, where it is large, its power of
// two up to 2^30.
func product(x, y int64) int64 {
	const most = 1 << 30
	if x == 0 || y == 0 || x <= most/y {
		return x * y
	}
	return min(x&-x*(y&-y), most)
}

func (f *facts) assumed(v *ir.Value) int64 {
	for _, a := range f.k.Assume {
		if a.Kind == ir.AssumeMultiple && a.Param == v {
			return a.Lo
		}
	}
	return 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// root follows subviews to the parameter; dims maps the view's dimensions to its.
func root(view *ir.Value) (param *ir.Value, dims []int) {
	if view.Def == nil || view.Def.Code != ir.OpSubview {
		dims = make([]int, len(view.Type.Dims))
		for i := range dims {
			dims[i] = i
		}
		return view, dims
	}
	param, outer := root(view.Def.View())
	for _, d := range view.Def.Dims {
		dims = append(dims, outer[d])
	}
	return param, dims
}

// dimMultiple returns what is known to divide a view's size in dimension d.
func (f *facts) dimMultiple(view *ir.Value, d int) int64 {
	if o := view.Def; o != nil && o.Code == ir.OpSubview {
		// Cut to the parent, so the size is the extent or what is left of the parent.
		left := gcd(f.dimMultiple(o.View(), o.Dims[d]), f.divisor(o.Indices()[o.Dims[d]]))
		return gcd(left, f.divisor(o.Operands("extents")[d]))
	}
	dim := view.Type.Dims[d]
	if dim.Sym == "" && dim.Size > 0 {
		return int64(dim.Size)
	}
	m := int64(1)
	for _, a := range f.k.Assume {
		if a.Kind != ir.AssumeDimMultiple {
			continue
		}
		if same := a.Param.Type.Dims[a.Dim]; a.Param == view && a.Dim == d || dim.Sym != "" && same.Sym == dim.Sym {
			m = product(m/gcd(m, a.Lo), a.Lo)
		}
	}
	return m
}

// stride returns the view's stride in dimension d if it is known, 0 otherwise.
func (f *facts) stride(view *ir.Value, d int) int64 {
	param, dims := root(view)
	for _, a := range f.k.Assume {
		if a.Kind == ir.AssumeStride && a.Param == param && a.Dim == dims[d] {
			return a.Lo
		}
	}
	return 0
}

// strideMultiple returns what is known to divide the stride, in elements.
func (f *facts) strideMultiple(view *ir.Value, d int) int64 {
	if s := f.stride(view, d); s > 0 {
		return s
	}
	param, dims := root(view)
	m := int64(1)
	for _, a := range f.k.Assume {
		if a.Kind == ir.AssumeStrideMultiple && a.Param == param && a.Dim == dims[d] {
			m = product(m/gcd(m, a.Lo), a.Lo)
		}
	}
	return m
}

// pointerAlign returns the known alignment of the view's first element in bytes.
func (f *facts) pointerAlign(view *ir.Value) int64 {
	size := int64(bytesOf(view.Type.Elem))
	if o := view.Def; o != nil && o.Code == ir.OpSubview {
		align := f.pointerAlign(o.View())
		for d, i := range o.Indices() {
			align = gcd(align, product(f.divisor(i), product(f.strideMultiple(o.View(), d), size)))
		}
		return align
	}
	align := size
	for _, a := range f.k.Assume {
		if a.Kind == ir.AssumePointer && a.Param == view {
			align = max(align, a.Lo)
		}
	}
	return align
}

// access is a view access of a tile.
type access struct {
	view    *ir.Value
	indices []*ir.Value
	dims    []int // the dimension each axis after the row axis spans
	rows    *ir.Value
	shape   []int
}

func accessOf(o *ir.Op, shape []int) access {
	return access{view: o.View(), indices: o.Indices(), dims: o.Dims, rows: o.Rows(), shape: shape}
}

// axisDim returns the dimension that a tile axis spans, -1 for the row axis.
func (a access) axisDim(axis int) int {
	if a.rows != nil {
		if axis == 0 {
			return -1
		}
		axis--
	}
	return a.dims[axis]
}

// contiguous returns the tile axis along which the view's elements are adjacent,
// -1 if none is known.
func (f *facts) contiguous(a access) int {
	for axis := range a.shape {
		if d := a.axisDim(axis); d >= 0 && f.stride(a.view, d) == 1 {
			return axis
		}
	}
	return -1
}

// vector returns how many elements along the contiguous axis, up to most bytes,
// may be accessed as one: aligned, and all inside the view or all outside.
func (f *facts) vector(a access, most int) int {
	axis := f.contiguous(a)
	if axis < 0 {
		return 1
	}
	size := int64(bytesOf(a.view.Type.Elem))
	n := f.pointerAlign(a.view) / size
	n = gcd(n, int64(most)/size)
	n = gcd(n, int64(a.shape[axis]))
	along := a.axisDim(axis)
	n = gcd(n, f.dimMultiple(a.view, along))
	for d, i := range a.indices {
		if i.Type.IsTile() {
			n = gcd(n, f.strideMultiple(a.view, d))
			continue
		}
		if d == along {
			n = gcd(n, f.divisor(i))
			continue
		}
		if slices.Contains(a.dims, d) {
			n = gcd(n, f.strideMultiple(a.view, d))
		} else {
			n = gcd(n, product(f.strideMultiple(a.view, d), f.divisor(i)))
		}
	}
	return int(n)
}

// inside tells whether the tile never reaches outside the view in the dimension
// that axis spans: the index counts whole tiles of a size that is a multiple.
func (f *facts) inside(a access, axis int) bool {
	d := a.axisDim(axis)
	if d < 0 {
		return false
	}
	n := int64(a.shape[axis])
	index, ok := affineOf(a.indices[d])
	if !ok {
		return false
	}
	dim := a.view.Type.Dims[d]
	if dim.Size > 0 && dim.Sym == "" && index.constant() {
		return index.c >= 0 && index.c+n <= int64(dim.Size)
	}
	if index.c != 0 || len(index.terms) != 1 || f.dimMultiple(a.view, d)%n != 0 {
		return false
	}
	return f.counts(index.terms[0], n, dim, a.view, d)
}

// within tells whether a scalar index is known to be inside dimension d of a view.
func (f *facts) within(view *ir.Value, d int, index *ir.Value) bool {
	dim := view.Type.Dims[d]
	if isConst(index) {
		n := index.Def.Int
		return n >= 0 && dim.Sym == "" && n < int64(dim.Size)
	}
	if c, ok := f.count[index]; ok {
		return dim.Sym != "" && c.Equal(ir.Sym(dim.Sym)) || dim.Size > 0 && c.Equal(ir.Lit(int64(dim.Size)))
	}
	if o, ok := f.loops[index]; ok {
		return f.nonNegative(o.Args[0]) && f.atMost(o.Args[1], dim, view, d)
	}
	switch o := index.Def; {
	case o == nil:
	case o.Code == ir.OpRem:
		return f.nonNegative(o.Args[0]) && f.atMost(o.Args[1], dim, view, d)
	case o.Code == ir.OpAnd:
		return dim.Sym == "" && slices.ContainsFunc(o.Args, func(v *ir.Value) bool {
			n, ok := everywhere(v)
			return ok && n >= 0 && n < int64(dim.Size)
		})
	}
	return false
}

// everywhere is the constant that a value, or every element of a tile, is.
func everywhere(v *ir.Value) (n int64, ok bool) {
	for v.Def != nil && v.Def.Code == ir.OpSplat {
		v = v.Def.Args[0]
	}
	if !isConst(v) {
		return 0, false
	}
	return v.Def.Int, true
}

// counts tells whether t walks a view's dimension in steps of n from 0.
func (f *facts) counts(t term, n int64, dim ir.Dim, view *ir.Value, d int) bool {
	if c, ok := f.count[t.v]; ok {
		return t.k == n && dim.Sym != "" && c.Equal(ir.Sym(dim.Sym).CeilDiv(ir.Lit(n)))
	}
	o, ok := f.loops[t.v]
	if !ok || t.k != 1 || !isConst(o.Args[2]) || o.Args[2].Def.Int != n || f.divisor(o.Args[0])%n != 0 {
		return false
	}
	return f.atMost(o.Args[1], dim, view, d)
}

// atMost tells whether v is the size of the dimension, or less.
func (f *facts) atMost(v *ir.Value, dim ir.Dim, view *ir.Value, d int) bool {
	seen := map[*ir.Value]bool{}
	var walk func(v *ir.Value) bool
	walk = func(v *ir.Value) bool {
		o := v.Def
		if o == nil || seen[v] {
			return false
		}
		seen[v] = true
		switch o.Code {
		case ir.OpConst:
			return dim.Sym == "" && o.Int <= int64(dim.Size)
		case ir.OpDim:
			same := o.Args[0].Type.Dims[o.Axis]
			return o.Args[0] == view && o.Axis == d || dim.Sym != "" && same.Sym == dim.Sym
		case ir.OpMin:
			return walk(o.Args[0]) || walk(o.Args[1])
		}
		return false
	}
	return walk(v)
}

// nonNegative tells whether an index is known not to be negative.
func (f *facts) nonNegative(v *ir.Value) bool {
	known, ok := f.signs[v]
	if !ok {
		f.signs[v] = false // a value that depends on itself through a loop
		known = f.findSign(v)
		f.signs[v] = known
	}
	return known
}

func (f *facts) findSign(v *ir.Value) bool {
	if _, ok := f.count[v]; ok {
		return true
	}
	if o, ok := f.loops[v]; ok {
		return f.nonNegative(o.Args[0])
	}
	o := v.Def
	if o == nil {
		for _, a := range f.k.Assume {
			if a.Kind == ir.AssumeRange && a.Param == v && a.Lo >= 0 {
				return true
			}
		}
		return false
	}
	switch o.Code {
	case ir.OpConst:
		return o.Int >= 0
	case ir.OpDim:
		return true
	case ir.OpAdd, ir.OpMul, ir.OpMin, ir.OpDiv, ir.OpRem:
		return f.nonNegative(o.Args[0]) && f.nonNegative(o.Args[1])
	case ir.OpMax:
		return f.nonNegative(o.Args[0]) || f.nonNegative(o.Args[1])
	case ir.OpSelect:
		return f.nonNegative(o.Args[1]) && f.nonNegative(o.Args[2])
	}
	return false
}
