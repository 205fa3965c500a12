package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
	"github.com/kgen-dev/kgen/ir/num"
)

// value lowers an operation that computes one value from others.
func (l *lowering) value(o *ir.Op) {
	r := o.Result()
	switch {
	case o.Code == ir.OpConst:
		l.uniform(r, l.constant(r.Type.Elem, o))
	case o.Code == ir.OpSplat:
		l.uniform(r, l.scalar(o.Args[0]))
	case o.Code == ir.OpIota:
		l.iota(o)
	case o.Code == ir.OpBroadcast, o.Code == ir.OpExpand, o.Code == ir.OpReshape:
		l.reshape(o)
	case o.Code == ir.OpJoin:
		l.join(o)
	case r.Type.IsScalar():
		l.scalarValue(o)
	default:
		l.elementwise(o)
	}
}

// uniform defines a scalar, or a tile with the same in every element.
func (l *lowering) uniform(r *ir.Value, v *simt.Value) {
	if !r.Type.IsScalar() {
		l.set(r, l.fill(r.Type, v))
		return
	}
	l.scalars[r] = v
	if r.Name != "" {
		v.Named(r.Name)
	}
}

func (l *lowering) scalarValue(o *ir.Op) {
	r := o.Result()
	args := make([]*simt.Value, len(o.Args))
	for i, a := range o.Args {
		args[i] = l.scalar(a)
		if !native(o) {
			args[i] = l.widen(args[i], a.Type.Elem)
		}
	}
	if v := l.compute(o, args); v != nil {
		l.uniform(r, l.narrow(v, r.Type.Elem))
	}
}

// native tells whether an operation on 16-bit floats is done on them as they are: one
// that only moves them, or one that f32 would round twice.
func native(o *ir.Op) bool {
	return o.Code == ir.OpFma || o.Code == ir.OpSelect || o.Code == ir.OpBitcast
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
	case ir.E4M3:
		return l.b.Const(simt.I32, int64(num.E4M3.Encode(o.Float, num.Even, false)))
	case ir.E5M2:
		return l.b.Const(simt.I32, int64(num.E5M2.Encode(o.Float, num.Even, false)))
	case ir.E2M1:
		return l.b.Const(simt.I32, int64(num.E2M1.Encode(o.Float, num.Even, false)))
	}
	return l.b.Const(elementType(e), o.Int)
}

// fill makes a tile with v in every element.
func (l *lowering) fill(t ir.Type, v *simt.Value) *fragment {
	f := newFragment(t)
	v = l.repeat(v, t.Elem, f.pack)
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
		f.regs[i] = l.b.Sext(l.coordinate(t.Layout, i, o.Axis), elementType(t.Elem))
	}
	l.set(o.Result(), f)
}

// renumber makes a fragment whose element i is src's element table[i].
func (l *lowering) renumber(src *fragment, t ir.Type, table []int) *fragment {
	f := newFragment(t)
	if f.pack == src.pack && whole(table, f.pack) {
		for i := 0; i < len(table); i += f.pack {
			f.regs = append(f.regs, src.regs[table[i]/f.pack])
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

// whole tells whether a table moves whole registers of pack elements.
func whole(table []int, pack int) bool {
	for i, s := range table {
		if first := table[i/pack*pack]; first%pack != 0 || s != first+i%pack {
			return false
		}
	}
	return true
}

// transpose keeps every element in its register. A read that was put off stays so.
func (l *lowering) transpose(o *ir.Op) {
	t := o.Result().Type
	if t.IsScalar() {
		l.uniform(o.Result(), l.scalar(o.Args[0]))
		return
	}
	if r, ok := l.reads[o.Args[0]]; ok && l.tiles[o.Args[0]] == nil {
		l.reads[o.Result()] = &ringRead{ring: r.ring, slot: r.slot, l: r.l, value: o.Result(), perm: compose(r.perm, o.Perm)}
		return
	}
	src := l.tile(o.Args[0])
	from, err := src.l.Transpose(o.Perm)
	if err != nil {
		panic(unsupported(o, "%w", err))
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

// join takes each element from the half its last coordinate says.
func (l *lowering) join(o *ir.Op) {
	t := o.Result().Type
	if o.Args[0].Type.IsScalar() {
		l.joinScalars(o)
		return
	}
	first := l.tile(o.Args[0])
	halves := [2][]*simt.Value{l.elements(first), l.elements(l.tile(o.Args[1]))}
	last := t.Layout.Rank() - 1
	at := registersAt(first.l.Expand(last))
	out := make([]*simt.Value, t.Layout.Registers())
	for r := range out {
		c := t.Layout.Register(r).Unpack(last + 1)
		side := c[last]
		c[last] = 0
		out[r] = halves[side][at[layout.Pack(c)]]
	}
	l.set(o.Result(), l.packed(t, out))
}

// joinScalars makes a tile of two elements.
func (l *lowering) joinScalars(o *ir.Op) {
	t := o.Result().Type
	x, y := l.scalar(o.Args[0]), l.scalar(o.Args[1])
	out := make([]*simt.Value, t.Layout.Registers())
	for r := range out {
		second := l.b.Cmp(simt.NE, l.coordinate(t.Layout, r, 0), l.b.Const32(0))
		out[r] = l.choose(second, y, x)
	}
	l.set(o.Result(), l.packed(t, out))
}

// split takes the pairs of a last axis, which a thread has whole, apart.
func (l *lowering) split(o *ir.Op) {
	src := l.tile(o.Args[0])
	vs := l.elements(src)
	at := registersAt(src.l)
	last := src.l.Rank() - 1
	half := src.l.Slice(last)
	for side, r := range o.Results {
		if r.Type.IsScalar() {
			l.uniform(r, vs[at[layout.Pack([]int{side})]])
			continue
		}
		out := make([]*simt.Value, half.Registers())
		for i := range out {
			c := append(half.Register(i).Unpack(last), side)
			out[i] = vs[at[layout.Pack(c)]]
		}
		l.set(r, l.packed(r.Type, out))
	}
}

// registersAt finds the register of a thread by the coordinate it adds.
func registersAt(l *layout.Layout) map[layout.Coord]int {
	at := make(map[layout.Coord]int, l.Registers())
	for r := l.Registers() - 1; r >= 0; r-- {
		at[l.Register(r)] = r
	}
	return at
}

// elementwise lowers arithmetic element by element.
func (l *lowering) elementwise(o *ir.Op) {
	t := o.Result().Type
	if l.onRegisters(o) {
		return
	}
	if o.Code == ir.OpCast {
		if f := l.castPacked(o); f != nil {
			l.set(o.Result(), f)
			return
		}
	}
	args := make([][]*simt.Value, len(o.Args))
	for i, a := range o.Args {
		switch {
		case a.Type.IsScalar(): // select's condition
			args[i] = slices.Repeat([]*simt.Value{l.scalar(a)}, t.Layout.Registers())
		case native(o):
			args[i] = l.elements(l.tile(a))
		default:
			args[i] = l.operands(l.tile(a))
		}
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

// onRegisters does an operation on registers of several elements at once where that
// gives the same: bits, or halves that an instruction computes with in pairs.
func (l *lowering) onRegisters(o *ir.Op) bool {
	f := newFragment(o.Result().Type)
	if f.pack == 1 || !packable(o, f.elem) {
		return false
	}
	args := make([][]*simt.Value, len(o.Args))
	for i, a := range o.Args {
		x := l.tile(a)
		if x.parts != nil && f.pack == 4 {
			return false // they are apart already
		}
		args[i] = x.regs
	}
	in := make([]*simt.Value, len(args))
	for r := range f.count() {
		for i := range args {
			in[i] = args[i][r]
		}
		f.regs = append(f.regs, l.arithmetic(o, in))
	}
	l.set(o.Result(), f)
	return true
}

// packable tells whether an operation may work on several elements of e at once.
func packable(o *ir.Op, e ir.Elem) bool {
	switch o.Code {
	case ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpNot:
		return e == ir.I8
	case ir.OpFma:
		return is16(e)
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		return e == ir.F16
	}
	return false
}

// compute builds one element of o. 16-bit floats come as f32 but for native operations.
func (l *lowering) compute(o *ir.Op, x []*simt.Value) *simt.Value {
	switch o.Code {
	case ir.OpCast:
		return l.cast(o.Args[0].Type.Elem, o.Result().Type.Elem, o.Saturate, x[0])
	case ir.OpBitcast:
		return l.bitcast(o.Args[0].Type.Elem, o.Result().Type.Elem, x[0])
	case ir.OpCmp:
		return l.compare(o.Pred, x[0], x[1])
	case ir.OpSelect:
		return l.choose(x[0], x[1], x[2])
	case ir.OpShl, ir.OpShr, ir.OpUshr:
		return l.shift(o, x[0], x[1])
	}
	if v := l.arithmetic(o, x); v != nil {
		if o.Result().Type.Elem == ir.I8 {
			v = l.extend8(v) // wraps
		}
		return v
	}
	return l.function(o, x[0])
}

// arithmetic builds what has an instruction for every type; nil if o is something else.
func (l *lowering) arithmetic(o *ir.Op, x []*simt.Value) *simt.Value {
	b := l.b
	switch o.Code {
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
	case ir.OpFma:
		return b.Fma(x[0], x[1], x[2])
	case ir.OpNeg:
		return b.Neg(x[0])
	case ir.OpAbs:
		return b.Abs(x[0])
	case ir.OpNot:
		return b.Not(x[0])
	}
	return nil
}

// shift builds a shift. Counts are unsigned in the operands' width; from the width on
// they shift everything out, as the instructions have it for 32 and 64 bits.
func (l *lowering) shift(o *ir.Op, x, n *simt.Value) *simt.Value {
	b := l.b
	narrow := o.Result().Type.Elem == ir.I8
	switch {
	case n.Type == simt.I64:
		n = b.Trunc(b.MinU(n, b.Const64(64)), simt.I32)
	case narrow:
		n = b.And(n, b.Const32(0xff))
	}
	switch {
	case o.Code == ir.OpShr:
		return b.Shr(x, n)
	case o.Code == ir.OpShl:
		x = b.Shl(x, n)
	case narrow:
		x = b.ShrU(b.And(x, b.Const32(0xff)), n)
	default:
		x = b.ShrU(x, n)
	}
	if narrow {
		return l.extend8(x)
	}
	return x
}

// compare builds a comparison. Not equal is true of NaN, all others are false.
func (l *lowering) compare(p ir.Pred, x, y *simt.Value) *simt.Value {
	b := l.b
	switch {
	case x.Type == simt.Pred:
		return l.compareFlags(p, x, y)
	case p == ir.NE && x.Type.IsFloat():
		return b.Not(b.Cmp(simt.EQ, x, y))
	}
	return b.Cmp([...]simt.Cmp{ir.EQ: simt.EQ, ir.NE: simt.NE, ir.LT: simt.LT, ir.LE: simt.LE, ir.GT: simt.GT, ir.GE: simt.GE}[p], x, y)
}

// compareFlags compares predicates as 0 and 1.
func (l *lowering) compareFlags(p ir.Pred, x, y *simt.Value) *simt.Value {
	b := l.b
	switch p {
	case ir.EQ:
		return b.Not(b.Xor(x, y))
	case ir.NE:
		return b.Xor(x, y)
	case ir.LT:
		return b.And(b.Not(x), y)
	case ir.LE:
		return b.Or(b.Not(x), y)
	case ir.GT:
		return b.And(x, b.Not(y))
	}
	return b.Or(x, b.Not(y))
}

// choose is x where p holds, else y.
func (l *lowering) choose(p, x, y *simt.Value) *simt.Value {
	if x.Type != simt.Pred {
		return l.b.Select(p, x, y)
	}
	return l.b.Or(l.b.And(p, x), l.b.And(l.b.Not(p), y))
}
