package simt

import "fmt"

// Conversions of the Builder.

// Sext sign-extends an integer to t.
func (b *Builder) Sext(x *Value, t Type) *Value {
	if x.Type == t {
		return x
	}
	return b.pure(OpSext, t, t, attrs{}, x)
}

// Zext zero-extends an integer to t.
func (b *Builder) Zext(x *Value, t Type) *Value {
	if x.Type == t {
		return x
	}
	return b.pure(OpZext, t, t, attrs{}, x)
}

// Trunc keeps an integer's low bits.
func (b *Builder) Trunc(x *Value, t Type) *Value {
	if x.Type == t {
		return x
	}
	return b.pure(OpTrunc, t, t, attrs{}, x)
}

// IntToFloat converts a signed integer, rounding to nearest.
func (b *Builder) IntToFloat(x *Value, t Type) *Value {
	return b.pure(OpIntToFloat, t, t, attrs{}, x)
}

// UintToFloat converts an unsigned integer, rounding to nearest.
func (b *Builder) UintToFloat(x *Value, t Type) *Value {
	return b.pure(OpIntToFloat, t, t, attrs{flags: Unsigned}, x)
}

// FloatToInt converts to a signed integer, clamped to its range.
func (b *Builder) FloatToInt(x *Value, t Type, r Round) *Value {
	return b.pure(OpFloatToInt, t, t, attrs{sub: uint8(r)}, x)
}

// FloatToUint converts to an unsigned integer, clamped to its range.
func (b *Builder) FloatToUint(x *Value, t Type, r Round) *Value {
	return b.pure(OpFloatToInt, t, t, attrs{sub: uint8(r), flags: Unsigned}, x)
}

// FloatCvt converts between float widths, rounding to nearest.
func (b *Builder) FloatCvt(x *Value, t Type) *Value {
	if x.Type == t {
		return x
	}
	return b.pure(OpFloatCvt, t, t, attrs{}, x)
}

// Round rounds an f32 or f64 to an integral value of the same type.
func (b *Builder) Round(x *Value, r Round) *Value {
	return b.pure(OpFloatCvt, x.Type, x.Type, attrs{sub: uint8(r), imm: 1}, x)
}

// CvtPack rounds two f32 to f16x2 or bf16x2: lo in the low half.
func (b *Builder) CvtPack(lo, hi *Value, t Type) *Value {
	return b.pure(OpCvtPack, t, t, attrs{}, hi, lo)
}

// CvtTF32 rounds an f32 to tf32, to nearest with ties away; t is F32 or I32.
func (b *Builder) CvtTF32(x *Value, t Type) *Value {
	return b.pure(OpCvtTF32, t, t, attrs{sub: uint8(RNA)}, x)
}

// E4M3 and E5M2 are the 8-bit float formats of PackFP8 and UnpackFP8.
const (
	E4M3 Mem = 16 + iota
	E5M2
)

// PackFP8 rounds two f32 to two 8-bit floats, saturating: lo in the low byte.
func (b *Builder) PackFP8(lo, hi *Value, format Mem) *Value {
	return b.pure(OpPackFP8, I16, I16, attrs{sub: uint8(format)}, hi, lo)
}

// PackFP8x2 rounds an f16x2 to two 8-bit floats, saturating.
func (b *Builder) PackFP8x2(x *Value, format Mem) *Value {
	return b.pure(OpPackFP8, I16, I16, attrs{sub: uint8(format)}, x)
}

// UnpackFP8 widens two 8-bit floats to an f16x2, exactly.
func (b *Builder) UnpackFP8(x *Value, format Mem) *Value {
	return b.pure(OpUnpackFP8, F16x2, F16x2, attrs{sub: uint8(format)}, x)
}

// Bitcast gives the same bits another type of the same width.
func (b *Builder) Bitcast(x *Value, t Type) *Value {
	if x.Type == t {
		return x
	}
	return b.pure(OpBitcast, t, t, attrs{}, x)
}

// Pack joins two halves to a whole of type t: lo in the low half.
func (b *Builder) Pack(lo, hi *Value, t Type) *Value {
	return b.pure(OpPack, t, t, attrs{}, lo, hi)
}

// Unpack splits a whole into halves of type half.
func (b *Builder) Unpack(x *Value, half Type) (lo, hi *Value) {
	if half.Bits()*2 != x.Type.Bits() {
		panic(fmt.Sprintf("simt: unpack of %s into %s: want half the width", x.Type, half))
	}
	if x.Block == nil && x.Def.Op == OpPack {
		return b.Bitcast(x.Def.Args[0], half), b.Bitcast(x.Def.Args[1], half)
	}
	if x.IsConst() {
		n := half.Bits()
		return b.Const(half, x.Def.Imm), b.Const(half, x.Def.Imm>>n)
	}
	o := operation{op: OpUnpack, t: x.Type, rt: half, args: []*Value{x}}
	v, hash := b.vn.find(&o)
	if v != nil {
		return v.Def.Results[0], v.Def.Results[1]
	}
	in := b.emit(OpUnpack, x.Type, x)
	rs := b.results(in, half, 2)
	b.vn.add(hash, rs[0])
	return rs[0], rs[1]
}
