package ir_test

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// generator draws random valid kernels.
type generator struct {
	*rapid.T
	b     *ir.Builder
	pool  []*ir.Value // in scope
	depth int
}

// drawKernel draws a valid kernel.
func drawKernel(t *rapid.T, name string) *ir.Kernel {
	g := &generator{T: t, b: ir.NewKernel(name)}
	g.header()
	g.ops(g.n(1, 25))
	k, err := g.b.Finish()
	if err != nil {
		t.Fatalf("generated kernel: %v", err)
	}
	return k
}

// drawProgram draws a valid program of one or two kernels.
func drawProgram(t *rapid.T) *ir.Program {
	k := drawKernel(t, "first")
	p := ir.Single(k)
	if rapid.Bool().Draw(t, "second") {
		l := drawKernel(t, "second")
		p.Kernels = append(p.Kernels, l)
		n := drawExpr(t, p.Params, 3)
		if n.Op == ir.ExprConst {
			n.Val = min(n.Val, ir.MaxDim) // a literal size is checked
		}
		p.Workspace = append(p.Workspace, ir.Buffer{Name: "flags", Elem: ir.I32, Dims: []ir.Expr{n}, Zero: true})
	}
	return p
}

// drawExpr draws a size expression over what the parameters name.
func drawExpr(t *rapid.T, params []*ir.Value, depth int) ir.Expr {
	var symbols []string
	for _, p := range params {
		for _, d := range p.Type.Dims {
			if d.Sym != "" {
				symbols = append(symbols, d.Sym)
			}
		}
	}
	op := rapid.IntRange(0, 8).Draw(t, "operator")
	if depth == 0 || op < 2 {
		if op == 0 || len(symbols) == 0 {
			return ir.Lit(int64(rapid.IntRange(-5, 1<<20).Draw(t, "number")))
		}
		return ir.Sym(rapid.SampledFrom(symbols).Draw(t, "symbol"))
	}
	x, y := drawExpr(t, params, depth-1), drawExpr(t, params, depth-1)
	return []func(ir.Expr) ir.Expr{
		x.Plus, x.Minus, x.Times, x.Div, x.CeilDiv,
		func(y ir.Expr) ir.Expr { return ir.MinOf(x, y) },
		func(y ir.Expr) ir.Expr { return ir.MaxOf(x, y) },
	}[op-2](y)
}

func (g *generator) n(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(g.T, "n") }

func (g *generator) bool() bool { return rapid.Bool().Draw(g.T, "bool") }

func draw[T any](g *generator, xs ...T) T { return rapid.SampledFrom(xs).Draw(g.T, "choice") }

var (
	elems  = []ir.Elem{ir.I1, ir.I4, ir.I8, ir.I32, ir.I64, ir.F16, ir.BF16, ir.F32, ir.F64, ir.E4M3, ir.E5M2, ir.E2M1}
	floats = []ir.Elem{ir.F16, ir.BF16, ir.F32, ir.F64}
	ints   = []ir.Elem{ir.I8, ir.I32, ir.I64}
)

func (g *generator) header() {
	for i := range g.n(1, 4) {
		name := string(rune('a' + i))
		if g.n(0, 3) == 0 {
			g.add(g.b.Scalar(name, draw(g, elems...)))
			continue
		}
		var dims []any
		for range g.n(0, 4) {
			if g.bool() {
				dims = append(dims, draw(g, "M", "N", "K"))
			} else {
				dims = append(dims, g.n(1, 300))
			}
		}
		v := g.add(g.b.View(name, draw(g, elems...), dims...))
		g.assume(v, len(dims))
	}
	for range g.n(0, 3) {
		g.add(g.b.Over("", drawExpr(g.T, g.b.Kernel().Params, 3)))
	}
	if axes := len(g.b.Kernel().Space); axes >= 2 {
		o := ir.Order{Group: g.n(0, 8), Reversed: []int{g.n(0, axes-1)}}
		if o.Group == 0 {
			o.Hilbert = 1 << g.n(0, 5)
		}
		g.b.SetOrder(o)
	}
	g.b.SetHints(ir.Hints{Warps: g.n(0, 8), Stages: g.n(0, 4)})
}

func (g *generator) assume(v *ir.Value, rank int) {
	if rank == 0 {
		return
	}
	d := g.n(0, rank-1)
	switch g.n(0, 4) {
	case 0:
		g.b.AssumeStride(v, d, 1)
	case 1:
		g.b.AssumeStrideMultiple(v, d, 8)
	case 2:
		g.b.AssumePointer(v, 16)
	case 3:
		g.b.AssumeDimMultiple(v, d, int64(g.n(1, 64)))
	}
}

func (g *generator) add(v *ir.Value) *ir.Value {
	if v.Def != nil || g.bool() {
		v.Name = draw(g, "", "", "x", "y", "x_1", "7", "tile.a", "in valid")
	}
	for _, p := range g.b.Kernel().Params {
		if v == p {
			v.Name = string(rune('a' + slices.Index(g.b.Kernel().Params, p)))
		}
	}
	g.pool = append(g.pool, v)
	return v
}

// pick returns a value in scope that ok accepts, nil if there is none.
func (g *generator) pick(ok func(ir.Type) bool) *ir.Value {
	var found []*ir.Value
	for _, v := range g.pool {
		if ok(v.Type) {
			found = append(found, v)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return draw(g, found...)
}

// value returns a value of the type, a new constant if there is none.
func (g *generator) value(t ir.Type) *ir.Value {
	if v := g.pick(t.Equal); v != nil && g.n(0, 3) > 0 {
		return v
	}
	return g.constant(t)
}

func (g *generator) constant(t ir.Type) *ir.Value {
	v := float64(g.n(0, 1))
	switch {
	case t.Elem.IsFloat() && t.Elem != ir.E2M1 && g.n(0, 4) == 0:
		v = math.NaN()
	case t.Elem.IsFloat():
		v = draw(g, 0, 1, 1.5, -0.5, 6, math.Copysign(0, -1))
	case t.Elem != ir.I1:
		v = float64(g.n(-8, 7))
	}
	return g.add(g.b.Full(t, v))
}

func (g *generator) index() *ir.Value { return g.value(ir.ScalarOf(ir.I32)) }

// tile draws a tile type of the element type; rank 0 too.
func (g *generator) tile(e ir.Elem) ir.Type {
	t := ir.TileOf(e)
	for range g.n(0, 3) {
		t.Shape = append(t.Shape, draw(g, 1, 2, 4, 7, 16))
	}
	if len(t.Shape) > 0 && g.n(0, 3) == 0 {
		order := make([]int, len(t.Shape))
		for i := range order {
			order[i] = i
		}
		if l, err := layout.Blocked(t.Shape, order, 1, draw(g, 1, 4)); err == nil {
			t.Layout = l
		}
	}
	return t
}

func (g *generator) ops(n int) {
	for range n {
		g.op()
	}
}

func (g *generator) op() {
	kinds := []func(){g.elementwise, g.elementwise, g.unary, g.shape, g.reduce, g.load, g.store, g.gather, g.dot, g.casts, g.memory}
	if g.depth < 3 {
		kinds = append(kinds, g.loop, g.branch, g.staged)
	}
	draw(g, kinds...)()
}

func (g *generator) elementwise() {
	code := draw(g, ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpDiv, ir.OpMin, ir.OpMax, ir.OpRem, ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr, ir.OpUshr, ir.OpFma, ir.OpCmp, ir.OpSelect)
	e := draw(g, append(floats, ints...)...)
	switch code {
	case ir.OpRem, ir.OpShl, ir.OpShr, ir.OpUshr, ir.OpAnd, ir.OpOr, ir.OpXor:
		e = draw(g, ints...)
	case ir.OpFma:
		e = draw(g, floats...)
	}
	t := g.tile(e)
	x, y := g.value(t), g.value(t)
	switch code {
	case ir.OpFma:
		g.add(g.b.Fma(x, y, g.value(t)))
	case ir.OpCmp:
		g.add(g.b.Cmp(draw(g, ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE), x, y))
	case ir.OpSelect:
		g.add(g.b.Select(g.value(t.WithElem(ir.I1)), x, y))
	default:
		g.add(g.b.Emit(code, x, y))
	}
}

func (g *generator) unary() {
	x := g.value(g.tile(draw(g, floats...)))
	code := draw(g, ir.OpNeg, ir.OpAbs, ir.OpExp2, ir.OpLog2, ir.OpRsqrt, ir.OpSqrt, ir.OpRcp, ir.OpTanh, ir.OpErf, ir.OpSin, ir.OpCos, ir.OpFloor, ir.OpCeil, ir.OpRound)
	g.add(g.b.Unary(code, x))
	g.add(g.b.Fast(draw(g, ir.OpExp2, ir.OpSqrt), x))
	g.add(g.b.Not(g.value(g.tile(draw(g, ints...)))))
}

func (g *generator) shape() {
	x := g.value(g.tile(draw(g, elems...)))
	shape := x.Type.Shape
	switch rank := len(shape); {
	case rank == 0:
		g.add(g.b.Splat(x, g.n(1, 9), g.n(1, 9)))
		g.add(g.b.Iota(1, 3, g.n(1, 9)))
	case rank <= 3:
		g.add(g.b.Expand(x, g.n(0, rank)))
		j := g.add(g.b.Join(x, x))
		lo, hi := g.b.Split(j)
		g.add(lo)
		g.add(hi)
		g.add(g.b.Reshape(x, x.Type.Elements()))
		g.add(g.b.Transpose(x))
		y := g.constant(ir.TileOf(ir.F32, 1, 4))
		g.add(g.b.Fit(y, g.n(1, 5), 4))
	}
}

func (g *generator) reduce() {
	e := draw(g, append(floats, ints...)...)
	x := g.value(g.tile(e))
	if rank := len(x.Type.Shape); rank > 0 {
		c := draw(g, ir.Add, ir.Mul, ir.Max, ir.Min)
		g.add(g.b.Reduce(c, x, g.n(0, rank-1)))
		g.add(g.b.Scan(c, x, g.n(0, rank-1)))
	}
}

func (g *generator) dot() {
	m, n, k := draw(g, 1, 16), draw(g, 8, 24), draw(g, 4, 16)
	in, out := ir.F16, ir.F32
	p := ir.Exact
	switch g.n(0, 4) {
	case 0:
		in, out = ir.I8, ir.I32
	case 1:
		in, p = ir.F32, ir.TF32
	case 2:
		in = ir.E5M2
	case 3:
		in, out = ir.F64, ir.F64
	}
	x, y, acc := g.value(ir.TileOf(in, m, k)), g.value(ir.TileOf(in, k, n)), g.value(ir.TileOf(out, m, n))
	g.add(g.b.Dot(x, y, acc, p))
	if out == ir.F32 {
		g.add(g.b.DotScaled(x, y, acc, g.value(ir.TileOf(ir.F32, m, 2)), nil))
		g.add(g.b.DotScaled(x, y, acc, nil, g.value(ir.TileOf(ir.F32, 2, n))))
	}
}

func (g *generator) casts() {
	x := g.value(g.tile(draw(g, elems...)))
	e := draw(g, elems...)
	if g.bool() {
		g.add(g.b.CastSat(x, e))
	} else {
		g.add(g.b.Cast(x, e))
	}
	if x.Type.Elem == ir.F16 {
		g.add(g.b.Bitcast(x, ir.BF16))
	}
}

func isView(t ir.Type) bool { return t.Kind == ir.View }

// access draws the place and options of an access of a tile of the view's
// element type.
func (g *generator) access(view *ir.Value) (indices []*ir.Value, t ir.Type, a ir.Access) {
	rank := len(view.Type.Dims)
	for range rank {
		indices = append(indices, g.index())
	}
	t = ir.TileOf(view.Type.Elem)
	dims := rapid.Permutation(seq(rank)).Draw(g.T, "dims")
	a.Dims = dims[:g.n(0, min(rank, 3))]
	for range a.Dims {
		t.Shape = append(t.Shape, draw(g, 1, 3, 8))
	}
	if g.bool() {
		a.Mask = g.value(t.WithElem(ir.I1))
	}
	return indices, t, a
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (g *generator) load() {
	view := g.pick(isView)
	if view == nil {
		return
	}
	indices, t, a := g.access(view)
	if g.bool() {
		a.Fill = g.value(ir.ScalarOf(t.Elem))
	}
	g.add(g.b.Load(view, indices, t, a))
}

func (g *generator) store() {
	view := g.pick(isView)
	if view == nil {
		return
	}
	indices, t, a := g.access(view)
	g.b.Store(view, indices, g.value(t), a)
}

// gather draws accesses with row numbers.
func (g *generator) gather() {
	view := g.pick(func(t ir.Type) bool { return t.Kind == ir.View && len(t.Dims) >= 2 })
	if view == nil {
		return
	}
	indices, t, a := g.access(view)
	d := g.n(0, len(indices)-1)
	n := draw(g, 4, 8)
	indices[d] = g.value(ir.TileOf(ir.I32, n))
	a.Dims = slices.DeleteFunc(slices.Clone(a.Dims), func(x int) bool { return x == d })
	t.Shape = append([]int{n}, make([]int, len(a.Dims))...)
	for i := range a.Dims {
		t.Shape[1+i] = draw(g, 1, 3, 8)
	}
	a.Mask = nil
	if g.bool() {
		a.Limit = g.index()
	}
	g.add(g.b.Load(view, indices, t, a))
	g.b.Store(view, indices, g.value(t), a)
}

func (g *generator) memory() {
	view := g.pick(isView)
	if view == nil || len(view.Type.Dims) == 0 {
		return
	}
	indices, t, a := g.access(view)
	if e := t.Elem; slices.Contains(floats, e) || slices.Contains(ints, e) {
		g.add(g.b.Atomic(draw(g, ir.Add, ir.Max, ir.Exchange), view, indices, g.value(t), a))
	}
	if len(a.Dims) > 0 {
		var extents []*ir.Value
		for range a.Dims {
			extents = append(extents, g.index())
		}
		g.add(g.b.Subview(view, indices, extents, a.Dims))
	}
	g.add(g.b.Dim(view, 0))
	row := g.value(ir.TileOf(ir.I32, 2, 8))
	g.add(g.b.Random16(g.value(ir.ScalarOf(ir.I64)), g.index(), g.index(), row, row))
	if view.Type.Elem == ir.I32 {
		g.b.Await(view, indices, g.index())
		g.b.Signal(view, indices, g.index())
	}
}

// inner draws the operations of a region and returns values of the given types.
func (g *generator) inner(params []*ir.Value, want []*ir.Value) []*ir.Value {
	mark := len(g.pool)
	g.depth++
	for _, p := range params {
		g.add(p)
	}
	g.ops(g.n(0, 4))
	var out []*ir.Value
	for _, w := range want {
		out = append(out, g.value(w.Type))
	}
	g.depth--
	g.pool = g.pool[:mark]
	return out
}

func (g *generator) loop() {
	var init []*ir.Value
	for range g.n(0, 3) {
		init = append(init, g.value(g.tile(draw(g, elems...))))
	}
	loop := ir.Loop{Stages: g.n(0, 4), Unroll: g.n(0, 2), Specialise: g.bool()}
	out := g.b.For(g.index(), g.index(), g.index(), init, loop, func(k *ir.Value, carried []*ir.Value) []*ir.Value {
		return g.inner(append([]*ir.Value{k}, carried...), init)
	})
	for _, v := range out {
		g.add(v)
	}
}

func (g *generator) branch() {
	var want []*ir.Value
	for range g.n(0, 2) {
		want = append(want, g.value(g.tile(draw(g, elems...))))
	}
	body := func() []*ir.Value { return g.inner(nil, want) }
	out := g.b.If(g.value(ir.ScalarOf(ir.I1)), body, body)
	for _, v := range out {
		g.add(v)
	}
}

func (g *generator) staged() {
	ring := g.add(g.b.Ring(g.n(1, 4), ir.BF16, 8, 16))
	if s, err := layout.Swizzled([]int{8, 16}, []int{1, 0}, 2, 32); err == nil && g.bool() {
		ring.Type.Shared = s
	}
	k := g.index()
	body := func() {
		g.b.Acquire(k, ring)
		if view := g.pick(func(t ir.Type) bool { return isView(t) && t.Elem == ir.BF16 && len(t.Dims) >= 2 }); view != nil {
			var indices []*ir.Value
			for range view.Type.Dims {
				indices = append(indices, g.index())
			}
			a := ir.Access{}
			if g.bool() {
				a.Pred = g.value(ir.ScalarOf(ir.I1))
			}
			g.b.Copy(view, indices, ring, k, a)
		}
		g.b.Write(ring, k, g.value(ir.TileOf(ir.BF16, 8, 16)))
		g.b.Commit(k, ring)
		g.b.Wait(k, g.n(0, 3), ring)
		g.add(g.b.Read(ring, k))
		g.b.Release(k, ring)
		g.b.Barrier()
	}
	if g.bool() {
		body()
		return
	}
	mark := len(g.pool)
	g.b.Roles([]ir.Role{{Name: "load", Warps: 1, Registers: 24}, {Name: "use", Warps: 4}}, body, func() { g.pool = g.pool[:mark]; body() })
	g.pool = g.pool[:mark]
}
