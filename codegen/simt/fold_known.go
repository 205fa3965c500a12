package simt

import (
	"math"
	"math/bits"
)

// foldKnown simplifies integer operations with a constant by what is known of
// the other operand's bits, and moves added constants outwards: an address
// that ends in "+ constant" costs nothing.
func (b *Builder) foldKnown(op Op, t Type, x *Value, n int64) *Value {
	switch op {
	case OpAnd:
		return b.foldMask(t, x, n)
	case OpOr, OpXor:
		return b.foldFlip(op, t, x, n)
	case OpShrU:
		if s := uint64(n); s < 64 && b.zeros.most(x)>>s == 0 {
			return b.Const(t, 0)
		}
		if y, c, ok := b.addConst(x); ok && n < int64(t.Bits()) && c > 0 && c&(1<<n-1) == 0 && b.zeros.nowrap(y, c, width(t)) {
			return b.Add(b.ShrU(y, b.Const32(int(n))), b.Const(t, c>>n))
		}
	case OpShl:
		if y, c, ok := b.addConst(x); ok && n < int64(t.Bits()) {
			return b.Add(b.Shl(y, b.Const32(int(n))), b.Const(t, c<<n))
		}
	case OpMul:
		if y, c, ok := b.addConst(x); ok {
			return b.Add(b.Mul(y, b.Const(t, n)), b.Const(t, c*n))
		}
	case OpMulWide:
		if y, c, ok := b.addConst(x); ok && b.zeros.nowrap(y, c, math.MaxInt32) {
			return b.Add(b.MulWide(y, b.Const32(int(n))), b.Const64(c*n))
		}
	case OpMulWideU:
		if y, c, ok := b.addConst(x); ok && b.zeros.nowrap(y, c, math.MaxUint32) {
			return b.Add(b.MulWideU(y, b.Const32(int(n))), b.Const64(c*int64(uint32(n))))
		}
	}
	return nil
}

// foldMask simplifies x & n.
func (b *Builder) foldMask(t Type, x *Value, n int64) *Value {
	mask := zext(t, n)
	if ^mask&^b.zeros.zeros(x)&width(t) == 0 {
		return x
	}
	if mask&^b.zeros.zeros(x) == 0 {
		return b.Const(t, 0)
	}
	// Adding a multiple of a power of two changes no bit below it.
	if y, c, ok := b.addConst(x); ok && c != 0 && bits.TrailingZeros64(uint64(c)) >= bits.Len64(mask) {
		return b.And(y, b.Const(t, n))
	}
	if x.Block == nil && x.Def.Op == OpShrU && x.Def.Args[1].IsConst() {
		s := x.Def.Args[1].Int()
		if y, c, ok := b.addConst(x.Def.Args[0]); ok && c != 0 && s >= 0 && s < 32 && int64(bits.TrailingZeros64(uint64(c))) >= s+int64(bits.Len64(mask)) {
			return b.And(b.ShrU(y, b.Const32(int(s))), b.Const(t, n))
		}
	}
	return nil
}

// foldFlip turns the bits of x ^ n (or x | n) that are zero in x into an
// addition.
func (b *Builder) foldFlip(op Op, t Type, x *Value, n int64) *Value {
	if t != I32 && t != I64 {
		return nil
	}
	bits := zext(t, n)
	free := bits & b.zeros.zeros(x)
	if free == 0 {
		return nil
	}
	if bits &^= free; bits != 0 {
		x = b.pure(op, t, t, attrs{}, x, b.Const(t, int64(bits)))
	}
	return b.Add(x, b.Const(t, int64(free)))
}

// addConst takes y + c apart.
func (b *Builder) addConst(x *Value) (y *Value, c int64, ok bool) {
	k, ok := constOperand(x, OpAdd)
	if !ok {
		return nil, 0, false
	}
	return x.Def.Args[0], k.Int(), true
}

// foldAdd moves constants out of the operands of x + y.
func (b *Builder) foldAdd(x, y *Value) *Value {
	if z, c, ok := b.addConst(x); ok {
		return b.Add(b.Add(z, y), b.Const(offsetType(x.Type), c))
	}
	if z, c, ok := b.addConst(y); ok {
		return b.Add(b.Add(x, z), b.Const(offsetType(x.Type), c))
	}
	return nil
}

// offsetType is the type of what is added to a value of type t.
func offsetType(t Type) Type {
	if t == Ptr {
		return I64
	}
	return t
}

// foldExtend moves an added constant out of a widening, where the sum is known
// not to wrap.
func (b *Builder) foldExtend(op Op, t Type, x *Value) *Value {
	y, c, ok := b.addConst(x)
	if !ok || x.Type != I32 || t != I64 {
		return nil
	}
	if op == OpZext && b.zeros.nowrap(y, c, math.MaxUint32) {
		return b.Add(b.Zext(y, t), b.Const(t, c))
	}
	if op == OpSext && b.zeros.nowrap(y, c, math.MaxInt32) {
		return b.Add(b.Sext(y, t), b.Const(t, c))
	}
	return nil
}

// foldMadConst moves constants out of x*y + z.
func (b *Builder) foldMadConst(op Op, x, y, z *Value) *Value {
	mad := func(x, z *Value) *Value {
		switch op {
		case OpMadWide:
			return b.MadWide(x, y, z)
		case OpMadWideU:
			return b.MadWideU(x, y, z)
		}
		return b.Mad(x, y, z)
	}
	if w, c, ok := b.addConst(z); ok {
		return b.Add(mad(x, w), b.Const(offsetType(z.Type), c))
	}
	if !y.IsConst() {
		return nil
	}
	w, c, ok := b.addConst(x)
	if !ok {
		return nil
	}
	switch op {
	case OpMadWide:
		ok = b.zeros.nowrap(w, c, math.MaxInt32)
		c *= y.Int()
	case OpMadWideU:
		ok = b.zeros.nowrap(w, c, math.MaxUint32)
		c *= int64(uint32(y.Int()))
	default:
		c *= y.Int()
	}
	if !ok {
		return nil
	}
	return b.Add(mad(w, z), b.Const(offsetType(z.Type), c))
}
