package codegen

import (
	"math"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// smallFloat describes a floating-point type of at most 8 bits.
type smallFloat struct {
	bits, mantissa int
	bias           int
	largest        int // code of the largest finite value
	beyond         int // code of what is larger when not saturating: infinity or NaN
	nan            int // code of NaN
}

// smallFloats are the types of OCP's 8-bit and microscaling formats.
var smallFloats = map[ir.Elem]smallFloat{
	ir.E4M3: {bits: 8, mantissa: 3, bias: 7, largest: 0x7e, beyond: 0x7f, nan: 0x7f},
	ir.E5M2: {bits: 8, mantissa: 2, bias: 15, largest: 0x7b, beyond: 0x7c, nan: 0x7f},
	ir.E2M1: {bits: 4, mantissa: 1, bias: 1, largest: 7, beyond: 7, nan: 7},
}

// decode widens an element to what arithmetic works on: an 8- or 4-bit float to f32,
// exactly.
func (l *lowering) decode(e ir.Elem, x *simt.Value) *simt.Value {
	f, ok := smallFloats[e]
	if !ok {
		return x
	}
	b := l.b
	magnitude := b.And(x, b.Const32(1<<(f.bits-1)-1))
	sign := b.Shl(b.And(x, b.Const32(1<<(f.bits-1))), b.Const32(32-f.bits))
	// With exponent and mantissa in f32's places only the bias is wrong, for subnormal
	// numbers too.
	scale := b.ConstF32(float32(math.Ldexp(1, 127-f.bias)))
	v := b.Mul(b.Bitcast(b.Shl(magnitude, b.Const32(23-f.mantissa)), simt.F32), scale)
	bits := b.Or(b.Bitcast(v, simt.I32), sign)
	nan := b.Const32(0x7fffffff)
	switch e {
	case ir.E4M3:
		bits = b.Select(b.Cmp(simt.EQ, magnitude, b.Const32(f.nan)), nan, bits)
	case ir.E5M2:
		infinity := b.Or(bits, b.Const32(0x7f800000))
		special := b.Select(b.Cmp(simt.EQ, magnitude, b.Const32(f.beyond)), infinity, nan)
		bits = b.Select(b.Cmp(simt.LT, magnitude, b.Const32(f.beyond)), bits, special)
	}
	return b.Bitcast(bits, simt.F32)
}

// encode rounds an f32 to an 8- or 4-bit float, to nearest even.
func (l *lowering) encode(e ir.Elem, saturate bool, x *simt.Value) *simt.Value {
	f := smallFloats[e]
	b := l.b
	c := func(n int) *simt.Value { return b.Const32(n) }
	all := b.Bitcast(x, simt.I32)
	u := b.And(all, c(0x7fffffff))
	cut := 23 - f.mantissa
	least := (128 - f.bias) << 23 // bits of the least normal number
	odd := b.And(b.ShrU(u, c(cut)), c(1))
	normal := b.ShrU(b.Add(b.Add(u, c(1<<(cut-1)-1)), odd), c(cut))
	normal = b.Sub(normal, c((127-f.bias)<<f.mantissa))
	// Added to a number whose last place is the type's least step, subnormals are
	// rounded by the addition.
	magic := float32(math.Ldexp(1, 1-f.bias-f.mantissa+23))
	sum := b.Add(b.Bitcast(u, simt.F32), b.ConstF32(magic))
	subnormal := b.Sub(b.Bitcast(sum, simt.I32), c(int(math.Float32bits(magic))))
	code := b.Select(b.Cmp(simt.LT, u, c(least)), subnormal, normal)
	beyond := f.beyond
	if saturate {
		beyond = f.largest
	}
	code = b.Select(b.Cmp(simt.GT, code, c(f.largest)), c(beyond), code)
	code = b.Or(code, b.And(b.ShrU(all, c(32-f.bits)), c(1<<(f.bits-1))))
	return b.Select(b.Cmp(simt.GT, u, c(0x7f800000)), c(f.nan), code)
}

// halves widens a fragment of 8-bit floats, four to a register, to pairs of f16: all of
// them are values of f16.
func (l *lowering) halves(f *fragment) []*simt.Value {
	b := l.b
	format := simt.E4M3
	if f.elem == ir.E5M2 {
		format = simt.E5M2
	}
	out := make([]*simt.Value, 0, 2*len(f.regs))
	for _, r := range f.regs {
		if l.m.sm >= 89 && format == simt.E4M3 {
			lo, hi := b.Unpack(r, simt.I16)
			out = append(out, b.UnpackFP8(lo, format), b.UnpackFP8(hi, format))
			continue
		}
		for _, selector := range []int{0x1404, 0x3424} { // each byte the upper one of a half
			v := b.Prmt(r, b.Const32(0), b.Const32(selector))
			if format == simt.E4M3 {
				v = l.halvesOfE4M3(v)
			}
			out = append(out, b.Bitcast(v, simt.F16x2))
		}
	}
	return out
}

// halvesOfE4M3 makes f16 of two e4m3 in the upper bytes of halves: one place to the
// right they are f16 but for the bias.
func (l *lowering) halvesOfE4M3(v *simt.Value) *simt.Value {
	b := l.b
	magnitude := b.And(v, b.Const32(0x7f007f00))
	w := b.Or(b.And(v, b.Const(simt.I32, 0x80008000)), b.ShrU(magnitude, b.Const32(1)))
	scaled := b.Mul(b.Bitcast(w, simt.F16x2), b.Const(simt.F16x2, 0x5c005c00))
	// A magnitude of 0x7f, NaN, carries into its half's top bit.
	nan := b.And(b.Add(magnitude, b.Const32(0x01000100)), b.Const(simt.I32, 0x80008000))
	ones := b.Sub(nan, b.ShrU(nan, b.Const32(15)))
	return b.Or(b.Bitcast(scaled, simt.I32), ones)
}

// castPacked casts fragments from or to 8-bit floats several elements at a time; nil
// where elements go one by one.
func (l *lowering) castPacked(o *ir.Op) *fragment {
	from, t := l.tile(o.Args[0]), o.Result().Type
	small := func(e ir.Elem) bool { return e == ir.E4M3 || e == ir.E5M2 }
	switch {
	case small(from.elem) && from.pack == 4 && t.Elem == ir.F16:
		return l.fromRuns(t, l.halves(from), 2)
	case small(from.elem) && from.pack == 4 && (t.Elem == ir.F32 || t.Elem == ir.BF16):
		return l.rounded(t, l.widened(from))
	case small(t.Elem) && newFragment(t).pack == 4 && l.m.sm >= 89 && (o.Saturate || t.Elem == ir.E4M3) && from.elem.IsFloat() && from.elem != ir.F64:
		return l.castToFP8(o, from, t)
	}
	return nil
}

// castToFP8 uses the saturating conversion of two numbers. Where it shall not saturate
// (to e4m3), what is too large is made NaN before.
func (l *lowering) castToFP8(o *ir.Op, from *fragment, t ir.Type) *fragment {
	b := l.b
	format := simt.E4M3
	if t.Elem == ir.E5M2 {
		format = simt.E5M2
	}
	f := newFragment(t)
	vs := l.widened(from)
	if !o.Saturate {
		const tie = 464 // halfway from the largest, 448; to even, so it stays
		for i, x := range vs {
			vs[i] = b.Select(b.Cmp(simt.GT, b.Abs(x), b.ConstF32(tie)), b.Const(simt.F32, 0x7fffffff), x)
		}
	}
	for i := 0; i < len(vs); i += 4 {
		lo, hi := b.PackFP8(vs[i], vs[i+1], format), b.PackFP8(vs[i+2], vs[i+3], format)
		f.regs = append(f.regs, b.Pack(lo, hi, simt.I32))
	}
	return f
}

// widened are a fragment's elements as arithmetic wants them, 8-bit floats decoded.
func (l *lowering) widened(f *fragment) []*simt.Value {
	if f.pack == 4 && f.elem.IsFloat() {
		h := &fragment{l: f.l, elem: ir.F16, pack: 2, regs: l.halves(f)}
		return l.operands(h)
	}
	vs := slices.Clone(l.operands(f))
	for i, v := range vs {
		vs[i] = l.decode(f.elem, v)
	}
	return vs
}
