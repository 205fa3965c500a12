package codegen

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
	"github.com/kgen-dev/kgen/ir/num"
)

// value lowers an operation that computes one value from others.
func (l *lowering) value(o *ir.Op) {
	r := o.Result()
	if r == nil {
		l.fail(o, "no lowering for it yet")
		return
	}
	if r.Type.IsScalar() {
		args := make([]*simt.Value, len(o.Args))
		for i, a := range o.Args {
			args[i] = l.widen(l.scalar(a), a.Type.Elem)
		}
		if v := l.compute(o, args); v != nil {
			l.scalars[r] = l.narrow(v, r.Type.Elem)
			if r.Name != "" {
				l.scalars[r].Named(r.Name)
			}
		}
		return
	}
	switch o.Code {
	case ir.OpConst:
		l.set(r, l.fill(r.Type, l.constant(r.Type.Elem, o)))
	case ir.OpSplat:
		l.set(r, l.fill(r.Type, l.scalar(o.Args[0])))
	case ir.OpIota:
		l.iota(o)
	case ir.OpBroadcast, ir.OpExpand, ir.OpReshape:
		l.reshape(o)
	case ir.OpJoin:
		l.join(o)
	default:
		l.elementwise(o)
	}
}

func (l *lowering) widen(v *simt.Value, e ir.Elem) *simt.Value {
	if is16(e) {
		return l.b.FloatCvt(v, simt.F32)
	}
	return v
}

func (l *lowering) narrow(v *simt.Value, e ir.Elem) *simt.Value {
	if is16(e) && v.Type == simt.F32 {
		return l.b.FloatCvt(v, elementType(e))
	}
	return v
}

// constant is a constant of an element type.
func (l *lowering) constant(e ir.Elem, o *ir.Op) *simt.Value {
	switch e {
	case ir.F32:
		return l.b.ConstF32(float32(o.Float))
	case ir.F64:
		return l.b.ConstF64(o.Float)
	case ir.F16:
		return l.b.Const(simt.F16, int64(num.F16FromF32(float32(o.Float))))
	case ir.BF16:
		return l.b.Const(simt.BF16, int64(num.BF16FromF32(float32(o.Float))))
	}
	return l.b.Const(elementType(e), o.Int)
}

// fill makes a tile with v in every element.
func (l *lowering) fill(t ir.Type, v *simt.Value) *fragment {
	f := newFragment(t)
	if f.pack == 2 {
		v = l.b.Pack(v, v, f.regType())
	}
	f.regs = make([]*simt.Value, f.count())
	for i := range f.regs {
		f.regs[i] = v
	}
	return f
}

func (l *lowering) iota(o *ir.Op) {
	t := o.Result().Type
	f := newFragment(t)
	f.regs = make([]*simt.Value, f.count())
	for i := range f.regs {
		f.regs[i] = l.coordinate(t.Layout, i, o.Axis)
	}
	l.set(o.Result(), f)
}

// reshape renumbers a thread's own registers.
func (l *lowering) reshape(o *ir.Op) {
	t := o.Result().Type
	src := l.tile(o.Args[0])
	from := src.l
	var err error
	switch o.Code {
	case ir.OpExpand:
		from = from.Expand(o.Axis)
	case ir.OpReshape:
		from, err = from.Reshape(t.Shape)
	}
	if err != nil {
		l.fail(o, "%w", err)
		return
	}
	table, ok := layout.Fetch(from, t.Layout)
	if !ok {
		l.fail(o, "layout %v is not within a thread of %v", t.Layout, from)
		return
	}
	l.set(o.Result(), l.renumber(src, t, table))
}

// renumber makes a fragment whose element i is src's element table[i].
func (l *lowering) renumber(src *fragment, t ir.Type, table []int) *fragment {
	f := newFragment(t)
	if f.pack == 2 && src.pack == 2 && pairs(table) {
		for i := 0; i < len(table); i += 2 {
			f.regs = append(f.regs, src.regs[table[i]/2])
		}
		return f
	}
	in := l.elements(src)
	out := make([]*simt.Value, len(table))
	for i, s := range table {
		out[i] = in[s]
	}
	return l.packed(t, out)
}

// pairs tells whether a table moves elements two by two.
func pairs(table []int) bool {
	for i := 0; i < len(table); i += 2 {
		if table[i]%2 != 0 || table[i+1] != table[i]+1 {
			return false
		}
	}
	return true
}

// transpose keeps every element in its register. A read that was put off stays so.
func (l *lowering) transpose(o *ir.Op) {
	t := o.Result().Type
	if r, ok := l.reads[o.Args[0]]; ok && l.tiles[o.Args[0]] == nil {
		l.reads[o.Result()] = &ringRead{ring: r.ring, slot: r.slot, l: r.l, value: o.Result(), perm: compose(r.perm, o.Perm)}
		return
	}
	src := l.tile(o.Args[0])
	from, err := src.l.Transpose(o.Perm)
	if err != nil {
		l.fail(o, "%w", err)
		return
	}
	l.set(o.Result(), l.renumber(src, t, transposed(src.l, from, o.Perm)))
}

// transposed says which register of l holds each register of its transpose t.
func transposed(l, t *layout.Layout, perm []int) []int {
	at := map[layout.Coord]int{}
	for r := range l.Registers() {
		c := l.Register(r).Unpack(l.Rank())
		moved := make([]int, len(c))
		for d, p := range perm {
			moved[d] = c[p]
		}
		if _, ok := at[layout.Pack(moved)]; !ok {
			at[layout.Pack(moved)] = r
		}
	}
	table := make([]int, t.Registers())
	for r := range table {
		table[r] = at[t.Register(r)]
	}
	return table
}

func compose(first, then []int) []int {
	if first == nil {
		return then
	}
	out := make([]int, len(then))
	for i, p := range then {
		out[i] = first[p]
	}
	return out
}

func (l *lowering) join(o *ir.Op) {
	t := o.Result().Type
	x, y := l.elements(l.tile(o.Args[0])), l.elements(l.tile(o.Args[1]))
	last := t.Layout.Rank() - 1
	half := l.tile(o.Args[0]).l.Expand(last)
	table := map[layout.Coord]int{}
	for r := range half.Registers() {
		table[half.Register(r)] = r
	}
	out := make([]*simt.Value, t.Layout.Registers())
	for r := range out {
		at := t.Layout.Register(r).Unpack(last + 1)
		side := at[last]
		at[last] = 0
		s, ok := table[layout.Pack(at)]
		if !ok {
			l.fail(o, "its halves lie in different threads")
			return
		}
		out[r] = x[s]
		if side == 1 {
			out[r] = y[s]
		}
	}
	l.set(o.Result(), l.packed(t, out))
}

// elementwise lowers arithmetic element by element.
func (l *lowering) elementwise(o *ir.Op) {
	t := o.Result().Type
	if o.Code == ir.OpSelect && is16(t.Elem) {
		l.selectHalves(o)
		return
	}
	args := make([][]*simt.Value, len(o.Args))
	for i, a := range o.Args {
		args[i] = l.operands(l.tile(a))
	}
	out := make([]*simt.Value, t.Layout.Registers())
	in := make([]*simt.Value, len(args))
	for r := range out {
		for i := range args {
			in[i] = args[i][r]
		}
		if out[r] = l.compute(o, in); out[r] == nil {
			return
		}
	}
	l.set(o.Result(), l.rounded(t, out))
}

// selectHalves selects 16-bit elements without arithmetic.
func (l *lowering) selectHalves(o *ir.Op) {
	c := l.elements(l.tile(o.Args[0]))
	x, y := l.elements(l.tile(o.Args[1])), l.elements(l.tile(o.Args[2]))
	out := make([]*simt.Value, len(x))
	for i := range out {
		out[i] = l.b.Select(c[i], x[i], y[i])
	}
	l.set(o.Result(), l.packed(o.Result().Type, out))
}

// compute builds one element of o. 16-bit floats come as f32.
func (l *lowering) compute(o *ir.Op, x []*simt.Value) *simt.Value {
	b := l.b
	switch o.Code {
	case ir.OpConst:
		return l.constant(o.Result().Type.Elem, o)
	case ir.OpAdd:
		return b.Add(x[0], x[1])
	case ir.OpSub:
		return b.Sub(x[0], x[1])
	case ir.OpMul:
		return b.Mul(x[0], x[1])
	case ir.OpDiv:
		if o.Fast && x[0].Type == simt.F32 {
			return b.DivApprox(x[0], x[1])
		}
		return b.Div(x[0], x[1])
	case ir.OpRem:
		return b.Rem(x[0], x[1])
	case ir.OpMin:
		return b.Min(x[0], x[1])
	case ir.OpMax:
		return b.Max(x[0], x[1])
	case ir.OpAnd:
		return b.And(x[0], x[1])
	case ir.OpOr:
		return b.Or(x[0], x[1])
	case ir.OpXor:
		return b.Xor(x[0], x[1])
	case ir.OpShl:
		return b.Shl(x[0], l.count32(x[1]))
	case ir.OpShr:
		return b.Shr(x[0], l.count32(x[1]))
	case ir.OpUshr:
		return b.ShrU(x[0], l.count32(x[1]))
	case ir.OpFma:
		return b.Fma(x[0], x[1], x[2])
	case ir.OpCmp:
		return b.Cmp(compare(o.Pred, x[0].Type), x[0], x[1])
	case ir.OpSelect:
		return b.Select(x[0], x[1], x[2])
	case ir.OpNeg:
		return b.Neg(x[0])
	case ir.OpAbs:
		return b.Abs(x[0])
	case ir.OpNot:
		return b.Not(x[0])
	case ir.OpCast:
		return l.cast(o, x[0])
	case ir.OpBitcast:
		return b.Bitcast(x[0], elementType(o.Result().Type.Elem))
	}
	if x[0].Type != simt.F32 {
		l.fail(o, "no lowering for %s yet", x[0].Type)
		return nil
	}
	return l.function(o, x[0])
}

// count32 narrows a shift count; counts from the width on give 0 either way.
func (l *lowering) count32(n *simt.Value) *simt.Value {
	if n.Type == simt.I64 {
		return l.b.Trunc(l.b.MinU(n, l.b.Const64(64)), simt.I32)
	}
	return n
}

func compare(p ir.Pred, t simt.Type) simt.Cmp {
	c := [...]simt.Cmp{ir.EQ: simt.EQ, ir.NE: simt.NE, ir.LT: simt.LT, ir.LE: simt.LE, ir.GT: simt.GT, ir.GE: simt.GE}[p]
	return c
}

// function builds a float function of an f32.
func (l *lowering) function(o *ir.Op, x *simt.Value) *simt.Value {
	b := l.b
	switch o.Code {
	case ir.OpExp2:
		return b.Ex2(x)
	case ir.OpLog2:
		return b.Lg2(x)
	case ir.OpRsqrt:
		return b.Rsqrt(x)
	case ir.OpSqrt:
		if o.Fast {
			return b.SqrtApprox(x)
		}
		return b.Sqrt(x)
	case ir.OpRcp:
		if o.Fast {
			return b.RcpApprox(x)
		}
		return b.Rcp(x)
	case ir.OpTanh:
		if o.Fast {
			return b.Tanh(x)
		}
		return l.tanh(x)
	case ir.OpErf:
		return l.erf(x)
	case ir.OpSin:
		return b.Sin(x)
	case ir.OpCos:
		return b.Cos(x)
	case ir.OpFloor:
		return b.Round(x, simt.RM)
	case ir.OpCeil:
		return b.Round(x, simt.RP)
	case ir.OpRound:
		return b.Round(x, simt.RN)
	}
	l.fail(o, "no lowering for it yet")
	return nil
}

// tanh is 1 - 2/(exp(2|x|) + 1) with the sign of x; near 0, where that cancels,
// x - x^3/3 + 2x^5/15.
func (l *lowering) tanh(x *simt.Value) *simt.Value {
	b := l.b
	c := func(v float64) *simt.Value { return b.ConstF32(float32(v)) }
	a := b.Abs(x)
	e := b.Ex2(b.Mul(a, c(2*math.Log2E)))
	far := b.Sub(c(1), b.Mul(c(2), b.RcpApprox(b.Add(e, c(1)))))
	s := b.Mul(a, a)
	near := b.Fma(b.Mul(a, s), b.Fma(s, b.Fma(s, c(-17.0/315), c(2.0/15)), c(-1.0/3)), a)
	y := b.Select(b.Cmp(simt.LT, a, c(0.25)), near, far)
	return l.withSign(y, x)
}

// withSign is |y| with the sign of x.
func (l *lowering) withSign(y, x *simt.Value) *simt.Value {
	b := l.b
	bits := b.And(b.Bitcast(x, simt.I32), b.Const32(math.MinInt32))
	return b.Bitcast(b.Or(bits, b.Bitcast(y, simt.I32)), simt.F32)
}

// erf is Abramowitz and Stegun, formula 7.1.26: |error| <= 1.5e-7. Near 0, where
// its relative error would show, the series 2/sqrt(pi) (x - x^3/3 + x^5/10 - ...).
func (l *lowering) erf(x *simt.Value) *simt.Value {
	b := l.b
	c := func(v float64) *simt.Value { return b.ConstF32(float32(v)) }
	a := b.Abs(x)
	t := b.Rcp(b.Fma(a, c(0.3275911), c(1)))
	p := c(1.061405429)
	for _, k := range []float64{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		p = b.Fma(p, t, c(k))
	}
	s := b.Mul(a, a)
	e := b.Ex2(b.Mul(s, c(-math.Log2E)))
	far := b.Fma(b.Neg(b.Mul(p, t)), e, c(1))
	near := c(-1.0 / 42)
	for _, k := range []float64{1.0 / 10, -1.0 / 3, 1} {
		near = b.Fma(near, s, c(k))
	}
	near = b.Mul(b.Mul(near, a), c(2/math.Sqrt(math.Pi)))
	return l.withSign(b.Select(b.Cmp(simt.LT, a, c(0.2)), near, far), x)
}

// cast converts an element; to a 16-bit float the rounding comes when it is packed.
func (l *lowering) cast(o *ir.Op, x *simt.Value) *simt.Value {
	b := l.b
	from, to := o.Args[0].Type.Elem, o.Result().Type.Elem
	switch {
	case from.IsFloat() && to.IsFloat():
		if o.Saturate && is16(to) {
			l.fail(o, "no saturating cast to %s yet", to)
		}
		return b.FloatCvt(x, computeType(to))
	case from == ir.I1 && to.IsFloat():
		return b.Select(x, l.one(computeType(to)), b.Const(computeType(to), 0))
	case from == ir.I1:
		return b.Select(x, b.Const(elementType(to), 1), b.Const(elementType(to), 0))
	case to == ir.I1:
		return b.Cmp(simt.NE, x, b.Const(x.Type, 0))
	case to.IsFloat():
		return b.IntToFloat(x, computeType(to))
	case from.IsFloat():
		return b.FloatToInt(x, elementType(to), simt.RZ)
	case from.Bits() < to.Bits():
		return b.Sext(x, elementType(to))
	}
	return b.Trunc(x, elementType(to))
}

func (l *lowering) one(t simt.Type) *simt.Value {
	if t == simt.F64 {
		return l.b.ConstF64(1)
	}
	return l.b.ConstF32(1)
}
