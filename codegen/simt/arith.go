package simt

// Integer, predicate and float arithmetic of the Builder. Types follow from
// the operands; integer operations come in signed and unsigned (U) forms
// where it matters.

func (b *Builder) binary(op Op, x, y *Value) *Value {
	return b.pure(op, x.Type, x.Type, attrs{}, x, y)
}

// Add is x + y; a Ptr takes an I64 to its right.
func (b *Builder) Add(x, y *Value) *Value { return b.binary(OpAdd, x, y) }

// Sub is x - y.
func (b *Builder) Sub(x, y *Value) *Value { return b.binary(OpSub, x, y) }

// Mul is x * y, the low half for integers.
func (b *Builder) Mul(x, y *Value) *Value { return b.binary(OpMul, x, y) }

// MulHi is the high half of the signed product.
func (b *Builder) MulHi(x, y *Value) *Value { return b.binary(OpMulHi, x, y) }

// MulHiU is the high half of the unsigned product.
func (b *Builder) MulHiU(x, y *Value) *Value { return b.binary(OpMulHiU, x, y) }

// MulWide is the signed 64-bit product of two I32.
func (b *Builder) MulWide(x, y *Value) *Value { return b.pure(OpMulWide, I64, I64, attrs{}, x, y) }

// MulWideU is the unsigned 64-bit product of two I32.
func (b *Builder) MulWideU(x, y *Value) *Value { return b.pure(OpMulWideU, I64, I64, attrs{}, x, y) }

// Mad is x*y + z of integers, the low half.
func (b *Builder) Mad(x, y, z *Value) *Value {
	return b.pure(OpMad, x.Type, x.Type, attrs{}, x, y, z)
}

// MadWide is z + x*y, the product of two I32 signed and 64 bits wide; z is
// an I64 or a Ptr.
func (b *Builder) MadWide(x, y, z *Value) *Value {
	return b.pure(OpMadWide, z.Type, z.Type, attrs{}, x, y, z)
}

// MadWideU is MadWide of unsigned factors.
func (b *Builder) MadWideU(x, y, z *Value) *Value {
	return b.pure(OpMadWideU, z.Type, z.Type, attrs{}, x, y, z)
}

// Div is x / y: signed and towards zero for integers, correctly rounded for floats.
func (b *Builder) Div(x, y *Value) *Value { return b.binary(OpDiv, x, y) }

// DivApprox is x / y of f32 within 2 ulp.
func (b *Builder) DivApprox(x, y *Value) *Value {
	return b.pure(OpDiv, x.Type, x.Type, attrs{flags: Approx}, x, y)
}

// DivU is the unsigned quotient.
func (b *Builder) DivU(x, y *Value) *Value { return b.binary(OpDivU, x, y) }

// Rem is the signed remainder, with the sign of x.
func (b *Builder) Rem(x, y *Value) *Value { return b.binary(OpRem, x, y) }

// RemU is the unsigned remainder.
func (b *Builder) RemU(x, y *Value) *Value { return b.binary(OpRemU, x, y) }

// Min is the smaller of x and y (signed); a NaN loses.
func (b *Builder) Min(x, y *Value) *Value { return b.binary(OpMin, x, y) }

// Max is the larger of x and y (signed); a NaN loses.
func (b *Builder) Max(x, y *Value) *Value { return b.binary(OpMax, x, y) }

// MinNaN is the smaller of two floats, NaN if either is.
func (b *Builder) MinNaN(x, y *Value) *Value {
	return b.pure(OpMin, x.Type, x.Type, attrs{flags: NaN}, x, y)
}

// MaxNaN is the larger of two floats, NaN if either is.
func (b *Builder) MaxNaN(x, y *Value) *Value {
	return b.pure(OpMax, x.Type, x.Type, attrs{flags: NaN}, x, y)
}

// MinU is the unsigned minimum.
func (b *Builder) MinU(x, y *Value) *Value { return b.binary(OpMinU, x, y) }

// MaxU is the unsigned maximum.
func (b *Builder) MaxU(x, y *Value) *Value { return b.binary(OpMaxU, x, y) }

// Neg is -x.
func (b *Builder) Neg(x *Value) *Value { return b.pure(OpNeg, x.Type, x.Type, attrs{}, x) }

// Abs is |x|.
func (b *Builder) Abs(x *Value) *Value { return b.pure(OpAbs, x.Type, x.Type, attrs{}, x) }

// And is x & y, of integers or predicates.
func (b *Builder) And(x, y *Value) *Value { return b.binary(OpAnd, x, y) }

// Or is x | y, of integers or predicates.
func (b *Builder) Or(x, y *Value) *Value { return b.binary(OpOr, x, y) }

// Xor is x ^ y, of integers or predicates.
func (b *Builder) Xor(x, y *Value) *Value { return b.binary(OpXor, x, y) }

// Not is the complement, of an integer or predicate.
func (b *Builder) Not(x *Value) *Value { return b.pure(OpNot, x.Type, x.Type, attrs{}, x) }

// Lop3 is any bitwise function of three: table is its truth table over
// a=0xF0, b=0xCC, c=0xAA.
func (b *Builder) Lop3(x, y, z *Value, table uint8) *Value {
	return b.pure(OpLop3, I32, I32, attrs{imm: int64(table)}, x, y, z)
}

// Shl is x << n.
func (b *Builder) Shl(x, n *Value) *Value { return b.binary(OpShl, x, n) }

// Shr is the arithmetic x >> n.
func (b *Builder) Shr(x, n *Value) *Value { return b.binary(OpShr, x, n) }

// ShrU is the logical x >> n.
func (b *Builder) ShrU(x, n *Value) *Value { return b.binary(OpShrU, x, n) }

// Shf is the high word of hi:lo << (n mod 32).
func (b *Builder) Shf(lo, hi, n *Value) *Value { return b.pure(OpShf, I32, I32, attrs{}, lo, hi, n) }

// Bfe is the unsigned field of length bits at pos.
func (b *Builder) Bfe(x, pos, length *Value) *Value {
	return b.pure(OpBfe, x.Type, x.Type, attrs{}, x, pos, length)
}

// Prmt picks four bytes out of x (0 to 3) and y (4 to 7) by the selector's nibbles.
func (b *Builder) Prmt(x, y, sel *Value) *Value { return b.pure(OpPrmt, I32, I32, attrs{}, x, y, sel) }

// Popc is the number of one bits, as I32.
func (b *Builder) Popc(x *Value) *Value { return b.pure(OpPopc, x.Type, I32, attrs{}, x) }

// Clz is the number of leading zeros, as I32.
func (b *Builder) Clz(x *Value) *Value { return b.pure(OpClz, x.Type, I32, attrs{}, x) }

// Brev is x with its bits in reverse order.
func (b *Builder) Brev(x *Value) *Value { return b.pure(OpBrev, x.Type, x.Type, attrs{}, x) }

// Cmp compares x and y and gives a predicate.
func (b *Builder) Cmp(c Cmp, x, y *Value) *Value {
	if x.IsConst() && !y.IsConst() {
		x, y, c = y, x, c.Swapped()
	}
	return b.pure(OpCmp, x.Type, Pred, attrs{sub: uint8(c)}, x, y)
}

// Select is x where p holds, otherwise y.
func (b *Builder) Select(p, x, y *Value) *Value {
	if x.Type == Pred && !p.IsConst() && x != y {
		return b.Or(b.And(p, x), b.And(b.Not(p), y))
	}
	return b.pure(OpSelect, x.Type, x.Type, attrs{}, p, x, y)
}

// Fma is x*y + z rounded once.
func (b *Builder) Fma(x, y, z *Value) *Value {
	return b.pure(OpFma, x.Type, x.Type, attrs{}, x, y, z)
}

func (b *Builder) unary(op Op, x *Value, f Flags) *Value {
	return b.pure(op, x.Type, x.Type, attrs{flags: f}, x)
}

// Ex2 is 2^x (approximate, subnormals flushed).
func (b *Builder) Ex2(x *Value) *Value {
	if x.Type == F16 || x.Type == F16x2 {
		return b.unary(OpEx2, x, 0)
	}
	return b.unary(OpEx2, x, FTZ)
}

// Lg2 is log2 x (approximate, subnormals flushed).
func (b *Builder) Lg2(x *Value) *Value { return b.unary(OpLg2, x, FTZ) }

// Rsqrt is 1/sqrt(x) (approximate).
func (b *Builder) Rsqrt(x *Value) *Value { return b.unary(OpRsqrt, x, 0) }

// Rcp is 1/x correctly rounded.
func (b *Builder) Rcp(x *Value) *Value { return b.unary(OpRcp, x, 0) }

// RcpApprox is 1/x of f32 within 1 ulp.
func (b *Builder) RcpApprox(x *Value) *Value { return b.unary(OpRcp, x, Approx) }

// Sqrt is the square root correctly rounded.
func (b *Builder) Sqrt(x *Value) *Value { return b.unary(OpSqrt, x, 0) }

// SqrtApprox is the approximate square root of f32.
func (b *Builder) SqrtApprox(x *Value) *Value { return b.unary(OpSqrt, x, Approx) }

// Tanh is the approximate hyperbolic tangent (sm_75).
func (b *Builder) Tanh(x *Value) *Value { return b.unary(OpTanh, x, 0) }

// Sin is the approximate sine of f32.
func (b *Builder) Sin(x *Value) *Value { return b.unary(OpSin, x, 0) }

// Cos is the approximate cosine of f32.
func (b *Builder) Cos(x *Value) *Value { return b.unary(OpCos, x, 0) }
