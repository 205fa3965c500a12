package num

import "math"

// F16ToF32 widens exactly.
func F16ToF32(h uint16) float32 {
	u := uint32(h&0x7fff) << 13
	sign := uint32(h&0x8000) << 16
	if h&0x7c00 == 0x7c00 {
		return math.Float32frombits(sign | u | 0x7f800000)
	}
	// Scaling by 2^112 moves the bias from 15 to 127, and normalises subnormals.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(u)*0x1p112))
}

// F16FromF32 rounds to nearest, ties to even.
func F16FromF32(x float32) uint16 {
	u := math.Float32bits(x)
	sign := uint16(u >> 16 & 0x8000)
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000:
		return 0x7fff
	case u >= 0x47800000: // 65536
		return sign | 0x7c00
	case u < 0x38800000: // 2^-14
		// The mantissa of 0.5 + x ends at 2^-24, the unit of binary16's subnormals.
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-0x3f000000)
	}
	return sign | uint16((u-112<<23+0xfff+u>>13&1)>>13)
}

// F16FromF64 rounds once to nearest, ties to even: what binary32 has no room for
// makes its last bit odd, so that rounding that is rounding x.
func F16FromF64(x float64) uint16 {
	const below = 1<<29 - 1 // the bits beyond binary32's
	u := math.Float64bits(x)
	if u&below != 0 {
		u = u&^below | 1<<29
	}
	return F16FromF32(float32(math.Float64frombits(u)))
}

// BF16ToF32 widens exactly.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// BF16FromF32 rounds to nearest, ties to even.
func BF16FromF32(x float32) uint16 {
	u := math.Float32bits(x)
	if u&0x7fffffff > 0x7f800000 {
		return 0x7fff
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// BF16FromF64 rounds once to nearest, ties to even.
func BF16FromF64(x float64) uint16 { return uint16(BF16.Encode(x, Even, false)) }

// RoundTF32 rounds to tf32 to nearest, ties away from zero (cvt.rna.tf32.f32). NaN
// becomes the canonical NaN, with all mantissa bits set.
func RoundTF32(x float32) float32 {
	u := math.Float32bits(x)
	if u&0x7f800000 == 0x7f800000 {
		if u&0x7fffff != 0 {
			u = 0x7fffffff
		}
		return math.Float32frombits(u)
	}
	return math.Float32frombits((u + 0x1000) &^ 0x1fff)
}

// TruncateTF32 drops the low 13 bits, as tensor cores do with operands that were
// not rounded. A NaN whose payload is in those bits stays one.
func TruncateTF32(x float32) float32 {
	u := math.Float32bits(x)
	if x != x {
		u |= 1 << 22
	}
	return math.Float32frombits(u &^ 0x1fff)
}

// The tables below hold constants: nothing writes to them after start.
var (
	e4m3Values = values(E4M3)
	e5m2Values = values(E5M2)
	e2m1Values = values(E2M1)
)

func values(f Format) (out [256]float32) {
	for i := range out {
		out[i] = float32(f.Decode(uint32(i)))
	}
	return out
}

// E4M3ToF32 widens exactly.
func E4M3ToF32(b uint8) float32 { return e4m3Values[b] }

// E5M2ToF32 widens exactly.
func E5M2ToF32(b uint8) float32 { return e5m2Values[b] }

// E2M1ToF32 widens the low four bits exactly.
func E2M1ToF32(b uint8) float32 { return e2m1Values[b] }

// E4M3FromF32 rounds to nearest, ties to even; beyond 448 it gives 448, for NaN
// 0x7f (cvt.rn.satfinite.e4m3x2.f32).
func E4M3FromF32(x float32) uint8 {
	if x != x {
		return 0x7f
	}
	u := math.Float32bits(x)
	return uint8(u>>24&0x80 | narrow(u&0x7fffffff, 3, 7, 0x7e))
}

// E5M2FromF32 rounds to nearest, ties to even; beyond 57344 it gives 57344, for NaN
// 0x7f (cvt.rn.satfinite.e5m2x2.f32).
func E5M2FromF32(x float32) uint8 {
	if x != x {
		return 0x7f
	}
	u := math.Float32bits(x)
	return uint8(u>>24&0x80 | narrow(u&0x7fffffff, 2, 15, 0x7b))
}

// E2M1FromF32 rounds to nearest, ties to even; beyond 6, and for NaN, it gives 6
// (cvt.rn.satfinite.e2m1x2.f32).
func E2M1FromF32(x float32) uint8 {
	if x != x {
		return 7
	}
	u := math.Float32bits(x)
	return uint8(u>>28&8 | narrow(u&0x7fffffff, 1, 1, 7))
}

// narrow rounds the magnitude u of a binary32 to a format of the given mantissa
// bits and exponent bias, to nearest even, and stops at top.
func narrow(u uint32, mantissa uint, bias, top uint32) uint32 {
	if u < (128-bias)<<23 {
		// The unit in the last place of magic is that of the format's subnormals.
		magic := (151 - bias - uint32(mantissa)) << 23
		return math.Float32bits(math.Float32frombits(u)+math.Float32frombits(magic)) - magic
	}
	shift := 23 - mantissa
	rounded := u - (127-bias)<<23 + 1<<(shift-1) - 1 + u>>shift&1
	return min(rounded>>shift, top)
}
