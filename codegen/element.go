package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// How elements lie in registers. A type of 32 or 64 bits has a register of its own;
// two 16-bit floats, or four 8-bit numbers, share one where their number allows. Alone,
// an i8 is sign-extended in 32 bits, an 8-bit float is its bits, an i4 is
// sign-extended, an e2m1 its bits; an i1 is a predicate.

func is16(e ir.Elem) bool { return e == ir.F16 || e == ir.BF16 }

func is8(e ir.Elem) bool { return e.Bits() == 8 }

// bytesOf is what an element takes in shared memory, and in global memory but for
// 4-bit types.
func bytesOf(e ir.Elem) int { return max(e.MemoryBits()/8, 1) }

// packOf is how many of n elements share a register.
func packOf(e ir.Elem, n int) int {
	switch {
	case is16(e) && n%2 == 0:
		return 2
	case is8(e) && n%4 == 0:
		return 4
	}
	return 1
}

// packedType is the type of a register of pack elements.
func packedType(e ir.Elem, pack int) simt.Type {
	switch {
	case pack == 2 && e == ir.F16:
		return simt.F16x2
	case pack == 2:
		return simt.BF16x2
	case pack == 4:
		return simt.I32
	}
	return elementType(e)
}

// elementType is the register type of one element.
func elementType(e ir.Elem) simt.Type {
	switch e {
	case ir.I1:
		return simt.Pred
	case ir.I64:
		return simt.I64
	case ir.F16:
		return simt.F16
	case ir.BF16:
		return simt.BF16
	case ir.F32:
		return simt.F32
	case ir.F64:
		return simt.F64
	}
	return simt.I32
}

// computeType is the type arithmetic on an element is done in: f32 for 16-bit
// floats, whose results are then rounded.
func computeType(e ir.Elem) simt.Type {
	if is16(e) {
		return simt.F32
	}
	return elementType(e)
}

// unpack takes a register of pack elements of e apart.
func (l *lowering) unpack(v *simt.Value, e ir.Elem, pack int) []*simt.Value {
	switch pack {
	case 2:
		lo, hi := l.b.Unpack(v, elementType(e))
		return []*simt.Value{lo, hi}
	case 4:
		out := make([]*simt.Value, 4)
		for i := range out {
			out[i] = l.byteOf(v, i, e == ir.I8)
		}
		return out
	}
	return []*simt.Value{v}
}

// pack joins elements of e to one register.
func (l *lowering) pack(vs []*simt.Value, e ir.Elem) *simt.Value {
	switch len(vs) {
	case 2:
		return l.b.Pack(vs[0], vs[1], packedType(e, 2))
	case 4:
		return l.joinBytes(vs)
	}
	return vs[0]
}

// repeat is a register with the element v pack times.
func (l *lowering) repeat(v *simt.Value, e ir.Elem, pack int) *simt.Value {
	switch {
	case pack == 2:
		return l.b.Pack(v, v, packedType(e, 2))
	case pack == 4 && v.IsConst():
		return l.b.Const(simt.I32, (v.Int()&0xff)*0x01010101)
	case pack == 4:
		return l.b.Prmt(v, v, l.b.Const32(0))
	}
	return v
}

// byteOf is byte i of a register, sign- or zero-extended.
func (l *lowering) byteOf(v *simt.Value, i int, signed bool) *simt.Value {
	b := l.b
	if v.IsConst() {
		x := v.Int() >> (8 * i)
		if signed {
			return b.Const(simt.I32, int64(int8(x)))
		}
		return b.Const(simt.I32, x&0xff)
	}
	// Of a selector's digits, 8 more repeats the byte's sign; 4 is a byte of zeros.
	selector := 0x4440 + i
	if signed {
		selector = (8+i)*0x1110 + i
	}
	return b.Prmt(v, b.Const32(0), b.Const32(selector))
}

// joinBytes makes a register of the low bytes of four.
func (l *lowering) joinBytes(vs []*simt.Value) *simt.Value {
	b := l.b
	join := func(x, y *simt.Value) *simt.Value {
		if x.IsConst() && y.IsConst() {
			return b.Const32(int(x.Int()&0xff | y.Int()&0xff<<8))
		}
		return b.Prmt(x, y, b.Const32(0x0040))
	}
	lo, hi := join(vs[0], vs[1]), join(vs[2], vs[3])
	if lo.IsConst() && hi.IsConst() {
		return b.Const(simt.I32, lo.Int()&0xffff|hi.Int()<<16)
	}
	return b.Prmt(lo, hi, b.Const32(0x5410))
}

// extend8 sign-extends a register's low byte.
func (l *lowering) extend8(v *simt.Value) *simt.Value { return l.byteOf(v, 0, true) }
