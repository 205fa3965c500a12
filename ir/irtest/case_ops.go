package irtest

import (
	"math"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

var (
	floats   = []ir.Elem{ir.F32, ir.F32, ir.F16, ir.BF16, ir.F64}
	ints     = []ir.Elem{ir.I32, ir.I32, ir.I8, ir.I64}
	numbers  = append(slices.Clone(floats), ints...)
	inMemory = append(slices.Clone(numbers), ir.I1, ir.E4M3, ir.E5M2)
	all      = append(slices.Clone(inMemory), ir.I4, ir.E2M1)
)

// shape draws a shape made of the case's extents.
func (m *maker) shape() []int {
	switch m.IntN(12) {
	case 0:
		return nil
	case 1:
		return []int{m.rows}
	case 2:
		return []int{m.cols}
	case 3:
		return []int{m.rows, 1}
	case 4:
		return []int{2, m.cols, 3}
	}
	return []int{m.rows, m.cols}
}

// get returns a tile of a type that holds what is asked for.
func (m *maker) get(e ir.Elem, shape []int, holds contents) tile {
	t := ir.TileOf(e, shape...)
	var exact, similar []tile
	for _, v := range m.pool {
		switch {
		case holds != anything && v.holds != holds && (holds != counts || v.holds != small):
		case v.Type.Equal(t):
			exact = append(exact, v)
		case slices.Equal(v.Type.Shape, shape):
			similar = append(similar, v)
		}
	}
	switch n := m.IntN(8); {
	case len(exact) > 0 && n < 6:
		return pick(m, exact)
	case len(similar) > 0 && n < 6 && holds == anything:
		return m.keep(m.b.Cast(pick(m, similar).Value, e), anything)
	case len(similar) > 0 && n < 6 && holds == small && e != ir.I1 && e != ir.E2M1:
		return m.keep(m.b.Cast(pick(m, similar).Value, e), small)
	case n == 7 && holds == anything && e.IsFloat() && m.chance(8):
		return m.keep(m.b.Full(t, math.Copysign(0, -1)), anything)
	case n == 7 && holds != positive:
		return m.keep(m.b.Full(t, m.number(e)), small)
	case !slices.Contains(inMemory, e):
		return m.keep(m.b.Cast(m.get(ir.F32, shape, holds).Value, e), holds)
	case len(m.c.Args) > 40:
		return m.keep(m.b.Full(t, 1), small)
	}
	if len(shape) == 0 && holds == anything && m.chance(2) {
		return m.argument(e)
	}
	return m.load(t, holds)
}

// number is a constant that every type has.
func (m *maker) number(e ir.Elem) float64 {
	if e == ir.I1 {
		return float64(m.IntN(2))
	}
	return float64(m.IntN(5) - 2)
}

// index draws where along a dimension a tile of n elements is accessed.
func (m *maker) index(n int) *ir.Value {
	switch m.IntN(5) {
	case 0:
		return m.b.Int(m.IntN(5) - 2)
	case 1:
		return m.b.Add(m.b.Mul(m.at, m.b.Int(n)), m.b.Int(m.IntN(9)-4))
	}
	return m.b.Mul(m.at, m.b.Int(n))
}

// load reads a tile, perhaps beyond the view's edges, masked, or of a part of it.
func (m *maker) load(t ir.Type, holds contents) tile {
	in := m.source(t, holds)
	view := in.view
	rank := view.Type.Rank()
	var at []*ir.Value
	var a ir.Access
	for d := range rank {
		axis := d - rank + t.Rank()
		switch {
		case axis < 0:
			at = append(at, m.b.Int(m.IntN(2)))
		case axis == 0:
			at = append(at, m.index(t.Shape[0]))
			a.Dims = append(a.Dims, d)
		default:
			at = append(at, m.b.Int(0))
			a.Dims = append(a.Dims, d)
			if m.chance(6) {
				at[d] = m.b.Int(m.IntN(4) - 1)
			}
		}
	}
	if m.chance(6) && t.Rank() > 0 && !slices.Contains(in.sizes[:rank-t.Rank()], 0) {
		view, at, a.Dims = m.part(view, a.Dims)
	}
	if m.chance(5) && holds == anything {
		a.Mask = m.get(ir.I1, t.Shape, anything).Value
	}
	if m.chance(5) && holds == anything {
		a.Fill = m.get(t.Elem, nil, anything).Value
	}
	if holds == positive { // outside reads as something positive too
		a.Fill = m.b.Const(t.Elem, 1)
	}
	return m.keep(m.b.Load(view, at, t, a), holds)
}

// part cuts a view to some of it, of extents known at run time only.
func (m *maker) part(view *ir.Value, dims []int) (sub *ir.Value, at []*ir.Value, kept []int) {
	from := make([]*ir.Value, view.Type.Rank())
	for d := range from {
		from[d] = m.b.Int(0)
	}
	var size []*ir.Value
	for i, d := range dims {
		if m.chance(2) {
			from[d] = m.b.Min(m.b.Int(m.IntN(3)), m.b.Dim(view, d))
		}
		size = append(size, m.b.Add(m.n, m.b.Int(m.IntN(60))))
		at = append(at, m.b.Int(m.IntN(2)))
		kept = append(kept, i)
	}
	return m.b.Subview(view, from, size, dims), at, kept
}

func (m *maker) zeros(view *ir.Value) []*ir.Value {
	out := make([]*ir.Value, view.Type.Rank())
	for d := range out {
		out[d] = m.b.Int(0)
	}
	return out
}

func (m *maker) ops(n int) {
	for range n {
		kinds := []func(){m.arithmetic, m.arithmetic, m.logic, m.unary, m.function, m.cast, m.cast, m.move, m.move, m.reduce, m.scan, m.dot, m.dot, m.random, m.gather, m.atomic, m.mask}
		if m.depth < 2 {
			kinds = append(kinds, m.loop, m.loop, m.branch)
		}
		pick(m, kinds)()
	}
}

func (m *maker) arithmetic() {
	e, shape := m.elem(numbers), m.shape()
	x, y := m.get(e, shape, anything), m.get(e, shape, anything)
	switch code := pick(m, []ir.Opcode{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpDiv, ir.OpMin, ir.OpMax, ir.OpFma, ir.OpCmp, ir.OpSelect}); code {
	case ir.OpFma:
		if e.IsFloat() {
			m.keep(m.b.Fma(x.Value, y.Value, m.get(e, shape, anything).Value), anything)
		}
	case ir.OpCmp:
		m.keep(m.b.Cmp(pick(m, []ir.Pred{ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE}), x.Value, y.Value), anything)
	case ir.OpSelect:
		cond := m.get(ir.I1, shape, anything)
		if m.chance(4) {
			cond = m.get(ir.I1, nil, anything)
		}
		m.keep(m.b.Append(&ir.Op{Code: ir.OpSelect, Args: []*ir.Value{cond.Value, x.Value, y.Value}})[0], anything)
	case ir.OpDiv:
		if e.IsInt() {
			y.Value = m.b.Or(y.Value, m.b.Full(y.Type, 1)) // no zeros
			if m.chance(2) {
				code = ir.OpRem
			}
		}
		m.keep(m.b.Emit(code, x.Value, y.Value), anything)
	default:
		m.keep(m.b.Emit(code, x.Value, y.Value), anything)
	}
}

func (m *maker) mask() {
	m.keep(m.masked(m.get(m.elem(numbers), []int{m.rows, m.cols}, anything).Value), anything)
}

func (m *maker) logic() {
	shape := m.shape()
	if m.chance(3) {
		x, y := m.get(ir.I1, shape, anything), m.get(ir.I1, shape, anything)
		v := m.b.Emit(pick(m, []ir.Opcode{ir.OpAnd, ir.OpOr, ir.OpXor}), x.Value, y.Value)
		if m.chance(3) {
			v = m.b.Cmp(pick(m, []ir.Pred{ir.EQ, ir.NE, ir.LT, ir.GE}), v, m.b.Not(y.Value))
		}
		m.keep(v, anything)
		return
	}
	e := pick(m, ints)
	x, y := m.get(e, shape, anything), m.get(e, shape, anything)
	if m.chance(3) {
		y.Value = m.b.And(y.Value, m.b.Full(y.Type, 15))
	}
	m.keep(m.b.Emit(pick(m, []ir.Opcode{ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShl, ir.OpShr, ir.OpUshr}), x.Value, y.Value), anything)
}

// unary operations are exact.
func (m *maker) unary() {
	e, shape := m.elem(numbers), m.shape()
	codes := []ir.Opcode{ir.OpNeg, ir.OpAbs, ir.OpNot}
	if e.IsFloat() {
		codes = []ir.Opcode{ir.OpNeg, ir.OpAbs, ir.OpFloor, ir.OpCeil, ir.OpRound, ir.OpSqrt, ir.OpRcp}
	}
	m.keep(m.b.Emit(pick(m, codes), m.get(e, shape, anything).Value), anything)
}

// unit is a type's unit roundoff.
func unit(e ir.Elem) float64 {
	return map[ir.Elem]float64{ir.F16: 0x1p-11, ir.BF16: 0x1p-8, ir.F32: 0x1p-24, ir.F64: 0x1p-53}[e]
}

// function approximates. The errors of the instructions are PTX ISA's; those of
// functions made of several, of codegen.
func (m *maker) function() {
	e, shape := m.elem([]ir.Elem{ir.F32, ir.F32, ir.F16, ir.BF16, ir.F64}), m.shape()
	x := m.get(e, shape, anything)
	var tol Tolerance
	code := pick(m, []ir.Opcode{ir.OpExp2, ir.OpLog2, ir.OpRsqrt, ir.OpTanh, ir.OpErf, ir.OpSin, ir.OpCos})
	fast := m.chance(3) && code != ir.OpErf && e != ir.F64
	switch code {
	case ir.OpExp2:
		tol = Tolerance{0x1p-22, 0x1p-126} // 2 ulps; subnormal numbers are flushed
	case ir.OpLog2:
		tol = Tolerance{0x1p-21, 0x1p-21}
		if fast {
			x = m.get(e, shape, positive) // of subnormal numbers it is -inf
		}
	case ir.OpRsqrt:
		tol = Tolerance{0x1p-22, 0}
	case ir.OpTanh:
		tol = Tolerance{0x1p-20, 0x1p-126}
		if fast {
			tol = Tolerance{0x1p-10, 0x1p-20}
		}
	case ir.OpErf:
		tol = Tolerance{0x1p-20, 0x1p-20}
	case ir.OpSin, ir.OpCos:
		tol = Tolerance{0x1p-22, 0x1p-22}
		x.Value = m.b.Max(m.b.Min(x.Value, m.b.Const(e, 4096)), m.b.Const(e, -4096))
		if fast {
			x = m.get(e, shape, small)
			tol = Tolerance{0, 0x1p-20}
		}
	}
	if e == ir.F64 {
		tol = Tolerance{0x1p-48, 0x1p-1022}
		if code != ir.OpExp2 && code != ir.OpRsqrt {
			tol.Abs = 0x1p-49
		}
	}
	tol.Rel += 2 * unit(e)
	if e == ir.F16 {
		tol.Abs += 0x1p-24
	}
	v := m.b.Unary(code, x.Value)
	if fast {
		v = m.b.Fast(code, x.Value)
	}
	m.output(v, tol)
}

func (m *maker) cast() {
	from, to, shape := m.elem(all), m.elem(all), m.shape()
	x := m.get(from, shape, anything)
	switch {
	case m.chance(4) && from.Bits() == to.Bits():
		x = m.get(from, shape, map[bool]contents{true: small, false: anything}[from.IsFloat()]) // no NaN, whose bits may differ
		m.keep(m.b.Bitcast(x.Value, to), anything)
	case m.chance(3):
		m.keep(m.b.CastSat(x.Value, to), anything)
	default:
		m.keep(m.b.Cast(x.Value, to), anything)
	}
}

// move takes elements elsewhere.
func (m *maker) move() {
	e, shape := m.elem(all), m.shape()
	x := m.get(e, shape, anything)
	n := len(shape)
	switch m.IntN(9) {
	case 0:
		m.keep(m.b.Transpose(x.Value, m.Perm(n)...), x.holds)
	case 1:
		if n < 4 {
			m.keep(m.b.Expand(x.Value, m.IntN(n+1)), x.holds)
		}
	case 2:
		m.reshape(x)
	case 3:
		if n < 4 {
			y := m.get(e, shape, x.holds)
			m.keep(m.b.Join(x.Value, y.Value), x.holds)
		}
	case 4:
		y := m.get(e, append(slices.Clone(shape[:min(n, 3)]), 2), anything)
		lo, hi := m.b.Split(y.Value)
		m.keep(lo, y.holds)
		m.keep(hi, y.holds)
	case 5:
		v := m.get(e, []int{m.rows, 1}, anything)
		m.keep(m.b.Fit(v.Value, m.rows, m.cols), v.holds)
	case 6:
		v := m.get(e, []int{m.cols}, anything)
		m.keep(m.b.Rows(v.Value, m.rows), v.holds)
	case 7:
		v := m.get(e, nil, anything)
		m.keep(m.b.Splat(v.Value, m.rows, m.cols), v.holds)
	case 8:
		t := ir.TileOf(pick(m, []ir.Elem{ir.I32, ir.I64}), m.rows, m.cols)
		m.keep(m.b.Append(&ir.Op{Code: ir.OpIota, Attrs: ir.Attrs{Axis: m.IntN(2)}}, t)[0], anything)
	}
}

func (m *maker) reshape(x tile) {
	n := x.Type.Elements()
	shapes := [][]int{{n}, {1, n}, {n, 1}}
	if n == m.rows*m.cols {
		shapes = append(shapes, []int{m.cols, m.rows}, []int{m.rows, m.cols})
	}
	if n%2 == 0 {
		shapes = append(shapes, []int{n / 2, 2}, []int{2, n / 2})
	}
	if n == 1 {
		shapes = append(shapes, nil)
	}
	m.keep(m.b.Reshape(x.Value, pick(m, shapes)...), x.holds)
}

// combination draws what a reduction or scan along n elements combines; exact is false
// where the order matters, within tol.
func (m *maker) combination(n int) (c ir.Combine, e ir.Elem, holds contents, tol Tolerance, exact bool) {
	switch m.IntN(6) {
	case 0:
		return pick(m, []ir.Combine{ir.And, ir.Or, ir.Xor}), pick(m, append(slices.Clone(ints), ir.I1, ir.I1)), anything, tol, true
	case 1:
		return pick(m, []ir.Combine{ir.Max, ir.Min}), m.elem(numbers), anything, tol, true
	case 2:
		return pick(m, []ir.Combine{ir.Add, ir.Mul}), pick(m, ints), anything, tol, true
	case 3:
		e := m.elem(floats)
		if e == ir.BF16 && n > 128 { // beyond 256 not every integer is a bf16
			e = ir.F32
		}
		return ir.Add, e, small, tol, true
	}
	e = m.elem(floats)
	if n > 32 && e != ir.F64 {
		e = ir.F32
	}
	return ir.Add, e, positive, Tolerance{2 * float64(n) * unit(e), 0}, false
}

func (m *maker) reduce() {
	shape := m.shape()
	if len(shape) == 0 {
		return
	}
	axis := m.IntN(len(shape))
	c, e, holds, tol, exact := m.combination(shape[axis])
	v := m.b.Reduce(c, m.get(e, shape, holds).Value, axis)
	if exact {
		m.keep(v, anything)
	} else {
		m.output(v, tol)
	}
}

func (m *maker) scan() {
	shape := m.shape()
	if len(shape) == 0 {
		return
	}
	axis := m.IntN(len(shape))
	c, e, holds, tol, exact := m.combination(shape[axis])
	o := &ir.Op{Code: ir.OpScan, Args: []*ir.Value{m.get(e, shape, holds).Value}, Attrs: ir.Attrs{Combine: c, Axis: axis, Reverse: m.chance(2)}}
	v := m.b.Append(o)[0]
	if exact {
		m.keep(v, anything)
	} else {
		m.output(v, tol)
	}
}

// dots are pairs of operand types and the accumulator's.
var dots = [][3]ir.Elem{
	{ir.F16, ir.F16, ir.F32},
	{ir.F16, ir.F16, ir.F32},
	{ir.BF16, ir.BF16, ir.F32},
	{ir.F32, ir.F32, ir.F32},
	{ir.F16, ir.F16, ir.F16},
	{ir.F64, ir.F64, ir.F64},
	{ir.I8, ir.I8, ir.I32},
	{ir.E4M3, ir.E4M3, ir.F32},
	{ir.E5M2, ir.E5M2, ir.F32},
	{ir.E4M3, ir.E5M2, ir.F32},
	{ir.E2M1, ir.E4M3, ir.F32},
	{ir.I4, ir.I4, ir.I32},
}

// dot multiplies small integers, so that sums are exact in any order.
func (m *maker) dot() {
	t := m.operands()
	depth := pick(m, []int{1, 8, 16, 16, 32, 32, 48, 64})
	acc := m.get(t[2], []int{m.rows, m.cols}, small).Value
	row, col := m.b.Iota(0, m.rows, m.cols), m.b.Iota(1, m.rows, m.cols)
	spread := m.b.And(m.b.Add(m.b.Shr(row, m.b.Int(3)), m.b.Mul(col, m.b.Int(2))), m.b.Int(7)) // so that neighbours differ
	acc = m.b.Add(acc, m.b.Cast(spread, t[2]))
	m.keep(m.multiply(t, depth, acc, nil), counts)
}

// multiply is a dot of loaded operands, at index k of a loop if that is not nil.
func (m *maker) multiply(t [3]ir.Elem, depth int, acc, k *ir.Value) *ir.Value {
	operand := func(e ir.Elem, rows, cols int) *ir.Value {
		if m.chance(3) {
			return m.b.Transpose(m.operand(e, []int{cols, rows}, k), 1, 0)
		}
		return m.operand(e, []int{rows, cols}, k)
	}
	x, y := operand(t[0], m.rows, depth), operand(t[1], depth, m.cols)
	if t[0] == ir.F32 && m.chance(2) {
		return m.b.Dot(x, y, acc, ir.TF32)
	}
	if t[2] == ir.F32 && m.chance(4) {
		groups := pick(m, []int{1, 2})
		if depth%groups == 0 {
			sx, sy := m.get(ir.F32, []int{m.rows, groups}, small).Value, m.get(ir.F32, []int{groups, m.cols}, small).Value
			switch m.IntN(3) {
			case 0:
				sx = nil
			case 1:
				sy = nil
			}
			return m.b.DotScaled(x, y, acc, sx, sy)
		}
	}
	return m.b.Dot(x, y, acc, ir.Exact)
}

// operand is a tile of small integers to multiply.
func (m *maker) operand(e ir.Elem, shape []int, k *ir.Value) *ir.Value {
	if !slices.Contains(inMemory, e) || k == nil && m.chance(2) {
		return m.get(e, shape, small).Value
	}
	in := m.source(ir.TileOf(e, shape...), small)
	at := m.zeros(in.view)
	rank := len(at)
	if m.chance(5) { // rows by a table
		at[rank-2] = m.rowNumbers(shape[0], max(in.sizes[rank-2], 1), false)
		if k != nil {
			at[rank-1] = k
			table := at[rank-2].Def.View()
			at[rank-2] = m.b.Load(table, []*ir.Value{m.b.Rem(k, m.b.Int(3))}, at[rank-2].Type)
		}
		a := ir.Access{Dims: []int{rank - 1}}
		if m.chance(2) {
			a.Limit = m.b.Int(m.IntN(shape[0] + 1))
		}
		return m.b.Load(in.view, at, ir.TileOf(e, shape...), a)
	}
	at[rank-2] = m.index(shape[0])
	if k != nil {
		at[rank-1-m.IntN(2)] = k
	}
	return m.b.Load(in.view, at, ir.TileOf(e, shape...), ir.Access{Dims: []int{rank - 2, rank - 1}})
}

// random draws bits for dropout.
func (m *maker) random() {
	row := m.b.Add(m.b.Iota(0, m.rows, m.cols), m.index(m.rows))
	col := m.b.Add(m.b.Iota(1, m.rows, m.cols), m.b.Mul(m.at, m.b.Int(pick(m, []int{m.cols, 8, 3}))))
	if m.chance(3) {
		col = m.get(ir.I32, []int{m.rows, m.cols}, anything).Value
	}
	seed := m.get(ir.I64, nil, anything)
	m.keep(m.b.Random16(seed.Value, m.n, m.at, row, col), anything)
}

// rowNumbers is a tile of row numbers of a view with the given number of rows: some
// twice, some outside.
func (m *maker) rowNumbers(n, rows int, distinct bool) *ir.Value {
	v, x := m.tensor(m.name("rows"), ir.I32, []int{n})
	order := m.Perm(max(n, rows))
	for i := range n {
		r := m.IntN(rows+2) - 1
		if distinct {
			r = order[i]
		}
		x.SetFloat(i, float64(r))
	}
	m.param(v, eval.View(x), Tolerance{})
	return m.b.Load(v, []*ir.Value{m.b.Int(0)}, ir.TileOf(ir.I32, n))
}

// gather reads rows by their numbers, and writes some.
func (m *maker) gather() {
	if len(m.c.Args) > 60 {
		return
	}
	e := m.elem(inMemory)
	n, rows := pick(m, []int{1, 3, 8, 16, 24}), 1+m.IntN(20)
	v, x := m.tensor(m.name("in"), e, []int{rows, 2, m.cols})
	m.fill(x, anything)
	m.param(v, eval.View(x), Tolerance{})
	numbers := m.rowNumbers(n, rows, false)
	a := ir.Access{Dims: []int{2}}
	if m.chance(2) {
		a.Limit = m.b.Int(m.IntN(n + 2))
	}
	at := []*ir.Value{numbers, m.b.Int(m.IntN(2)), m.b.Int(m.IntN(3) - 1)}
	if m.chance(4) { // a second tile of numbers
		at[1] = m.rowNumbers(n, 2, false)
	}
	y := m.keep(m.b.Load(v, at, ir.TileOf(e, n, m.cols), a), anything)
	if m.chance(2) {
		out, z := m.tensor(m.name("out"), e, append(slices.Clone(m.counts), rows, m.cols))
		z.Poison()
		m.param(out, eval.View(z), Tolerance{})
		at := append(slices.Clone(m.ats), m.rowNumbers(n, rows, true), m.b.Int(0))
		m.b.Store(out, at, y.Value, ir.Access{Dims: []int{len(m.ats) + 1}, Limit: a.Limit})
	}
}

// atomic combines into an output; all tiles do, in any order.
func (m *maker) atomic() {
	if len(m.c.Args) > 60 {
		return
	}
	e, c := pick(m, []ir.Elem{ir.I32, ir.I64}), pick(m, []ir.Combine{ir.Add, ir.Max, ir.Min, ir.And, ir.Or, ir.Xor})
	holds := anything
	if m.chance(2) {
		e, c, holds = m.elem([]ir.Elem{ir.F32, ir.F64, ir.F16, ir.BF16}), pick(m, []ir.Combine{ir.Add, ir.Max, ir.Min}), small
	}
	n := pick(m, []int{1, 5, 16, 33})
	v, x := m.tensor(m.name("sum"), e, append(slices.Clone(m.counts), n))
	m.fill(x, small)
	m.param(v, eval.View(x), Tolerance{})
	at, a := append(slices.Clone(m.ats), m.b.Int(0)), ir.Access{}
	t := ir.TileOf(e, n)
	switch m.IntN(4) {
	case 0:
		t, at[len(m.ats)], a.Dims = ir.TileOf(e, 8), m.rowNumbers(8, n, false), []int{}
		m.b.Atomic(c, v, at, m.get(e, t.Shape, holds).Value, a)
		return
	case 1:
		t, at[len(m.ats)], a.Dims = ir.TileOf(e), m.b.Int(m.IntN(3)-1), []int{}
	}
	if m.chance(3) {
		a.Mask = m.get(ir.I1, t.Shape, anything).Value
	}
	if m.chance(3) {
		c = ir.Exchange
	}
	old := m.b.Atomic(c, v, at, m.get(e, t.Shape, holds).Value, a)
	if m.chance(2) {
		m.keep(old, anything)
	}
}

// masked selects by comparisons of indices, which may be proved.
func (m *maker) masked(x *ir.Value) *ir.Value {
	shape := x.Type.Shape
	var base *ir.Value
	switch {
	case len(m.loops) > 0 && !m.chance(4):
		base = m.b.Mul(m.loops[len(m.loops)-1], m.b.Int(1+m.IntN(3)))
	default:
		base = m.index(shape[1])
	}
	col := m.b.Add(m.b.Iota(1, shape...), base)
	limit := m.b.Add(m.b.Mul(m.n, m.b.Int(m.IntN(9))), m.b.Int(m.IntN(shape[1]+3)))
	mask := m.b.Cmp(pick(m, []ir.Pred{ir.LT, ir.LE, ir.GT}), col, limit)
	if m.chance(2) {
		row := m.b.Add(m.b.Iota(0, shape...), m.index(shape[0]))
		mask = m.b.And(mask, m.b.Cmp(pick(m, []ir.Pred{ir.GE, ir.GT, ir.LT}), row, col))
	}
	return m.b.Select(mask, x, m.b.Full(x.Type, float64(m.IntN(3))))
}
