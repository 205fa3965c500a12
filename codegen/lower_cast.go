package codegen

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// cast converts an element. 16-bit floats come and go as f32; where they go, the
// rounding comes when they are packed, so what is given for them is either exact or
// rounded to odd.
func (l *lowering) cast(from, to ir.Elem, saturate bool, x *simt.Value) *simt.Value {
	switch {
	case to == ir.I1:
		return l.nonZero(from, x)
	case from.IsFloat() && to.IsFloat():
		return l.castFloat(from, to, saturate, x)
	case to.IsFloat():
		return l.intToFloat(from, to, saturate, x)
	case from.IsFloat():
		return l.floatToInt(to, l.decode(from, x))
	}
	return l.castInt(from, to, saturate, x)
}

// nonZero tells whether an element is not 0; NaN is not.
func (l *lowering) nonZero(e ir.Elem, x *simt.Value) *simt.Value {
	b := l.b
	switch {
	case e == ir.I1:
		return x
	case e.IsFloat() && e.Bits() <= 8:
		x = b.And(x, b.Const32(1<<(e.Bits()-1)-1))
	case e.IsFloat():
		return b.Not(b.Cmp(simt.EQ, x, b.Const(x.Type, 0)))
	}
	return b.Cmp(simt.NE, x, b.Const(x.Type, 0))
}

func (l *lowering) castFloat(from, to ir.Elem, saturate bool, x *simt.Value) *simt.Value {
	x = l.decode(from, x)
	if to == ir.F64 {
		return l.b.FloatCvt(x, simt.F64)
	}
	if to == ir.F32 {
		if saturate {
			x = l.clamp(x, math.MaxFloat32)
		}
		return l.b.FloatCvt(x, simt.F32)
	}
	return l.toNarrow(to, saturate, l.oddF32(x))
}

// toNarrow rounds an f32 to a type of at most 16 bits; to 16 it only clamps.
func (l *lowering) toNarrow(to ir.Elem, saturate bool, x *simt.Value) *simt.Value {
	switch {
	case !is16(to):
		return l.encode(to, saturate, x)
	case saturate && to == ir.F16:
		return l.clamp(x, 65504)
	case saturate:
		return l.clamp(x, 0xffp120)
	}
	return x
}

// clamp limits a float's magnitude; NaN stays.
func (l *lowering) clamp(x *simt.Value, most float64) *simt.Value {
	b := l.b
	hi, lo := l.number(x.Type, most), l.number(x.Type, -most)
	return b.Select(b.Cmp(simt.EQ, x, x), b.Max(b.Min(x, hi), lo), x)
}

// number is a constant of f32 or f64.
func (l *lowering) number(t simt.Type, v float64) *simt.Value {
	if t == simt.F64 {
		return l.b.ConstF64(v)
	}
	return l.b.ConstF32(float32(v))
}

// oddF32 rounds an f64 to f32 to odd: what is inexact gets an odd last bit. Rounding
// that to 16 bits or less is as good as rounding once.
func (l *lowering) oddF32(x *simt.Value) *simt.Value {
	if x.Type == simt.F32 {
		return x
	}
	b := l.b
	near := b.FloatCvt(x, simt.F32)
	back := b.FloatCvt(near, simt.F64)
	bits := b.Bitcast(near, simt.I32)
	beyond := b.Cmp(simt.GT, b.Abs(back), b.Abs(x))
	odd := b.Or(b.Add(bits, b.Select(beyond, b.Const32(-1), b.Const32(0))), b.Const32(1))
	return b.Bitcast(b.Select(b.Cmp(simt.EQ, back, x), bits, odd), simt.F32)
}

func (l *lowering) intToFloat(from, to ir.Elem, saturate bool, x *simt.Value) *simt.Value {
	b := l.b
	if from == ir.I1 {
		if to.Bits() > 8 {
			t := computeType(to)
			return b.Select(x, l.number(t, 1), l.number(t, 0))
		}
		x = b.Select(x, b.Const32(1), b.Const32(0))
	}
	if to == ir.F32 || to == ir.F64 {
		return b.IntToFloat(x, elementType(to))
	}
	small := from.Bits() <= 8
	switch {
	case small:
	case to == ir.BF16:
		return l.toNarrow(to, saturate, l.oddF32(b.IntToFloat(l.oddInt(x), simt.F64)))
	default: // beyond 2^24 every number is beyond the type, before that f32 is exact
		most := b.Const(x.Type, 1<<24)
		x = b.Max(b.Min(x, most), b.Const(x.Type, -1<<24))
		x = b.Trunc(x, simt.I32)
	}
	return l.toNarrow(to, saturate, b.IntToFloat(x, simt.F32))
}

// oddInt rounds a long integer that f64 does not hold to odd, to one it holds.
func (l *lowering) oddInt(x *simt.Value) *simt.Value {
	if x.Type != simt.I64 {
		return x
	}
	b := l.b
	const lost = 0x7ff // at most 11 bits do not fit
	high := b.And(x, b.Const64(^lost))
	sticky := b.Select(b.Cmp(simt.NE, b.And(x, b.Const64(lost)), b.Const64(0)), b.Const64(lost+1), b.Const64(0))
	fits := b.Cmp(simt.LTU, b.Add(x, b.Const64(1<<53)), b.Const64(1<<54))
	return b.Select(fits, x, b.Or(high, sticky))
}

// floatToInt rounds towards 0 and clamps; NaN is 0.
func (l *lowering) floatToInt(to ir.Elem, x *simt.Value) *simt.Value {
	b := l.b
	v := b.FloatToInt(x, elementType(to), simt.RZ)
	if to == ir.I64 || x.Type == simt.F64 { // the instruction makes NaN the least number
		v = b.Select(b.Cmp(simt.EQ, x, x), v, b.Const(v.Type, 0))
	}
	if to.Bits() <= 8 {
		return l.clampInt(v, to.Bits())
	}
	return v
}

// clampInt limits an integer to the signed ones of some bits.
func (l *lowering) clampInt(x *simt.Value, bits int) *simt.Value {
	b := l.b
	top := int64(1)<<(bits-1) - 1
	return b.Max(b.Min(x, b.Const(x.Type, top)), b.Const(x.Type, -top-1))
}

func (l *lowering) castInt(from, to ir.Elem, saturate bool, x *simt.Value) *simt.Value {
	b := l.b
	if from == ir.I1 {
		return b.Select(x, b.Const(elementType(to), 1), b.Const(elementType(to), 0))
	}
	if to == ir.I64 {
		return b.Sext(x, simt.I64)
	}
	if from.Bits() <= to.Bits() {
		return x
	}
	if saturate {
		return b.Trunc(l.clampInt(x, to.Bits()), simt.I32)
	}
	return l.signed(b.Trunc(x, simt.I32), to.Bits())
}

// signed sign-extends the low bits of a register.
func (l *lowering) signed(x *simt.Value, bits int) *simt.Value {
	switch bits {
	case 32:
		return x
	case 8:
		return l.extend8(x)
	}
	up := l.b.Const32(32 - bits)
	return l.b.Shr(l.b.Shl(x, up), up)
}

// bitcast takes an element's bits as another type's of the same width.
func (l *lowering) bitcast(from, to ir.Elem, x *simt.Value) *simt.Value {
	switch bits := to.Bits(); {
	case bits > 8 || bits == 1:
		return l.b.Bitcast(x, elementType(to))
	case to.IsInt() && !from.IsInt():
		return l.signed(x, bits)
	case !to.IsInt() && from.IsInt():
		return l.b.And(x, l.b.Const32(1<<bits-1))
	}
	return x
}
