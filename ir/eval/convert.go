package eval

import (
	"math"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

// formats maps narrow floating-point types to their number formats.
var formats = map[ir.Elem]num.Format{
	ir.F16: num.F16, ir.BF16: num.BF16, ir.E4M3: num.E4M3, ir.E5M2: num.E5M2, ir.E2M1: num.E2M1,
}

// roundOne rounds once to e, which is f32 or narrower.
func roundOne(e ir.Elem, x float64) float32 { return narrow(e, x, false) }

func narrow(e ir.Elem, x float64, saturate bool) float32 {
	if e == ir.F32 {
		if saturate && !math.IsNaN(x) {
			x = min(max(x, -math.MaxFloat32), math.MaxFloat32)
		}
		return float32(x)
	}
	f := formats[e]
	return float32(f.Decode(f.Encode(x, num.Even, saturate)))
}

// round rounds elements to e in place.
func round(e ir.Elem, xs []float32) {
	switch e {
	case ir.F32:
	case ir.BF16:
		for i, x := range xs {
			xs[i] = num.BF16ToF32(num.BF16FromF32(x))
		}
	case ir.F16:
		for i, x := range xs {
			xs[i] = num.F16ToF32(num.F16FromF32(x))
		}
	default:
		for i, x := range xs {
			xs[i] = narrow(e, float64(x), false)
		}
	}
}

func toTF32(xs []float32) []float32 {
	out := make([]float32, len(xs))
	for i, x := range xs {
		out[i] = num.RoundTF32(x)
	}
	return out
}

func encode16(e ir.Elem, x float32) uint16 {
	if e == ir.BF16 {
		return num.BF16FromF32(x)
	}
	return num.F16FromF32(x)
}

func encode8(e ir.Elem, x float32) byte { return byte(formats[e].Encode(float64(x), num.Even, false)) }

func decode8(e ir.Elem, b byte) float32 {
	if e == ir.E4M3 {
		return num.E4M3ToF32(b)
	}
	return num.E5M2ToF32(b)
}

// cast converts elements as the operation of that name does.
func cast(dst *store, to ir.Elem, src *store, from ir.Elem, saturate bool) {
	switch {
	case to == ir.I1:
		for i := range dst.i {
			dst.i[i] = 0
			if !isZero(src, i) {
				dst.i[i] = 1
			}
		}
	case to.IsFloat() && from.IsFloat():
		castFloats(dst, to, src, saturate)
	case to.IsFloat():
		castToFloat(dst, to, src, saturate)
	case from.IsFloat():
		castToInt(dst, to, src)
	default:
		castInts(dst, to, src, saturate)
	}
}

func isZero(s *store, i int) bool {
	switch s.class {
	case inF32:
		return s.f[i] == 0
	case inF64:
		return s.d[i] == 0
	case inI32:
		return s.i[i] == 0
	}
	return s.l[i] == 0
}

func castFloats(dst *store, to ir.Elem, src *store, saturate bool) {
	switch {
	case dst.class == inF64 && src.class == inF64:
		copy(dst.d, src.d)
	case dst.class == inF64:
		for i, x := range src.f {
			dst.d[i] = float64(x)
		}
	case src.class == inF64:
		for i, x := range src.d {
			dst.f[i] = narrow(to, x, saturate)
		}
	case saturate:
		for i, x := range src.f {
			dst.f[i] = narrow(to, float64(x), true)
		}
	default:
		copy(dst.f, src.f)
		round(to, dst.f)
	}
}

func castToFloat(dst *store, to ir.Elem, src *store, saturate bool) {
	at := func(i int) int64 { return int64(src.i[i]) }
	if src.class == inI64 {
		at = func(i int) int64 { return src.l[i] }
	}
	for i := range dst.f {
		if to == ir.F32 {
			dst.f[i] = float32(at(i))
		} else {
			dst.f[i] = narrow(to, oddFloat(at(i)), saturate)
		}
	}
	for i := range dst.d {
		dst.d[i] = float64(at(i))
	}
}

// oddFloat converts to float64 and rounds to odd, so that rounding again to a
// narrow type is right.
func oddFloat(x int64) float64 {
	if x > -1<<53 && x < 1<<53 {
		return float64(x)
	}
	lost := x & 0x7ff // at most 11 bits do not fit
	x &^= 0x7ff
	if lost != 0 {
		x |= 0x800
	}
	return float64(x)
}

// castToInt rounds towards zero and clamps; NaN is 0.
func castToInt(dst *store, to ir.Elem, src *store) {
	at := func(int) float64 { return 0 }
	switch src.class {
	case inF32:
		at = func(i int) float64 { return float64(src.f[i]) }
	case inF64:
		at = func(i int) float64 { return src.d[i] }
	}
	for i := range dst.i {
		dst.i[i] = int32(truncate(at(i), to.Bits()))
	}
	for i := range dst.l {
		dst.l[i] = truncate(at(i), 64)
	}
}

func truncate(x float64, bits int) int64 {
	limit := math.Ldexp(1, bits-1)
	switch {
	case x != x:
		return 0
	case x >= limit:
		return 1<<(bits-1) - 1
	case x <= -limit:
		return -1 << (bits - 1)
	}
	return int64(x)
}

func castInts(dst *store, to ir.Elem, src *store, saturate bool) {
	at := func(i int) int64 { return int64(src.i[i]) }
	if src.class == inI64 {
		at = func(i int) int64 { return src.l[i] }
	}
	for i := range dst.l {
		dst.l[i] = at(i)
	}
	for i := range dst.i {
		x := at(i)
		if saturate {
			top := int64(1)<<(to.Bits()-1) - 1
			x = min(max(x, -top-1), top)
		}
		dst.i[i] = int32(x)
	}
	wrap(to, dst.i)
}

// bitcast takes the bits as another type's.
func bitcast(dst *store, to ir.Elem, src *store, from ir.Elem) {
	n := src.len()
	mem := make([]byte, (n*from.MemoryBits()+7)/8)
	src.encode(from, mem, 0, 1, 0, n)
	dst.decode(to, mem, 0, 1, 0, n)
}

func random16(dst []int32, seed int64, offset, plane int32, row, col []int32) {
	for i := range dst {
		dst[i] = int32(num.Random16(uint64(seed), uint32(offset), uint32(plane), uint32(row[i]), uint32(col[i])))
	}
}
