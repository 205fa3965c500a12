// Package num holds the arithmetic that everything above must agree on to the
// bit: the conversions of the small floating-point formats, FMA with a single
// rounding, Philox random numbers and distances in units in the last place.
package num

import (
	"fmt"
	"math"
)

// Format is a binary floating-point format of at most 32 bits.
type Format uint8

const (
	F32  Format = iota // IEEE binary32
	TF32               // binary32 with 10 mantissa bits; the low 13 bits are zero
	BF16               // upper half of binary32
	F16                // IEEE binary16
	E5M2               // OCP FP8 with infinities and NaNs
	E4M3               // OCP FP8 without infinities, one NaN of each sign
	E2M1               // OCP FP4, finite only
	E2M3               // OCP FP6, finite only
	E3M2               // OCP FP6, finite only
	formats
)

// Rounding is how a value between two representable ones is settled.
type Rounding uint8

const (
	Even Rounding = iota // to nearest, ties to even: .rn
	Away                 // to nearest, ties away from zero: .rna
	Zero                 // toward zero: .rz
	Up                   // toward plus infinity: .rp
	Down                 // toward minus infinity: .rm
)

// special says what a format does beyond its largest finite value.
type special uint8

const (
	ieee    special = iota // infinities, then NaNs
	onlyNaN                // all ones is NaN
	finite                 // neither
)

type traits struct {
	name     string
	exponent uint // bits
	mantissa uint // bits, without the hidden one
	low      uint // unused bits below the mantissa (tf32)
	special  special
	nan      uint32 // what a conversion from NaN gives
}

// The canonical NaNs are those of PTX ISA 9.7.9.21 (cvt): all ones but the sign.
// A format without NaN turns it into its largest value.
var table = [formats]traits{
	F32:  {"f32", 8, 23, 0, ieee, 0x7fffffff},
	TF32: {"tf32", 8, 10, 13, ieee, 0x7fffffff},
	BF16: {"bf16", 8, 7, 0, ieee, 0x7fff},
	F16:  {"f16", 5, 10, 0, ieee, 0x7fff},
	E5M2: {"e5m2", 5, 2, 0, ieee, 0x7f},
	E4M3: {"e4m3", 4, 3, 0, onlyNaN, 0x7f},
	E2M1: {"e2m1", 2, 1, 0, finite, 0x7},
	E2M3: {"e2m3", 2, 3, 0, finite, 0x1f},
	E3M2: {"e3m2", 3, 2, 0, finite, 0x1f},
}

func (f Format) String() string {
	if f < formats {
		return table[f].name
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// Bits returns the width of an encoding; tf32 takes 32.
func (f Format) Bits() int {
	t := &table[f]
	return int(1 + t.exponent + t.mantissa + t.low)
}

// Mantissa returns the stored mantissa bits.
func (f Format) Mantissa() int { return int(table[f].mantissa) }

func (t *traits) bias() int { return 1<<(t.exponent-1) - 1 }

// top is the encoding of the largest finite value, without the unused low bits.
func (t *traits) top() uint32 {
	all := uint32(1)<<(t.exponent+t.mantissa) - 1
	switch t.special {
	case ieee:
		return all - 1<<t.mantissa
	case onlyNaN:
		return all - 1
	}
	return all
}

// Max returns the largest finite value.
func (f Format) Max() float64 { return f.Decode(table[f].top() << table[f].low) }

// Overflow returns the magnitude halfway from the largest finite value to where the next
// one would be: what is nearer to zero never rounds to nearest beyond the largest, what is
// farther always does.
func (f Format) Overflow() float64 {
	most := f.Max()
	return most + f.ULP(most)/2
}

// MinNormal returns the smallest positive value with a full mantissa.
func (f Format) MinNormal() float64 { return math.Ldexp(1, 1-table[f].bias()) }

// Epsilon returns the distance from 1 to the next value. Rounding to nearest errs
// by at most half of it, relatively, among normal values.
func (f Format) Epsilon() float64 { return math.Ldexp(1, -int(table[f].mantissa)) }

// ULP returns the unit in the last place at x: the distance between neighbouring
// values of the format around |x|. Beyond the largest value it keeps growing as if
// there were more exponents; for NaN and infinities it is NaN.
func (f Format) ULP(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.NaN()
	}
	t := &table[f]
	e := 1 - t.bias()
	if x != 0 {
		e = max(e, math.Ilogb(x))
	}
	return math.Ldexp(1, e-int(t.mantissa))
}

// Decode returns the value of an encoding exactly. Bits above the format's are
// ignored, and so are tf32's unused low bits.
func (f Format) Decode(bits uint32) float64 {
	t := &table[f]
	bits >>= t.low
	width := t.exponent + t.mantissa
	negative := bits>>width&1 == 1
	magnitude := bits & (1<<width - 1)
	value := t.magnitude(magnitude)
	if negative {
		return -value
	}
	return value
}

func (t *traits) magnitude(m uint32) float64 {
	if m > t.top() {
		if t.special == ieee && m == t.top()+1 {
			return math.Inf(1)
		}
		return math.NaN()
	}
	e := int(m >> t.mantissa)
	fraction := float64(m & (1<<t.mantissa - 1))
	if e == 0 {
		return math.Ldexp(fraction, 1-t.bias()-int(t.mantissa))
	}
	return math.Ldexp(fraction+float64(uint32(1)<<t.mantissa), e-t.bias()-int(t.mantissa))
}

// Encode rounds x once. With saturate, as .satfinite has it, a magnitude beyond
// the largest finite value, infinities included, becomes that value; without,
// IEEE's rules hold: nearest and the directed rounding that leads outward overflow
// to infinity (NaN in e4m3, the largest value in e2m1), the others stop at the
// largest value. NaN becomes the canonical NaN (the largest value in e2m1).
func (f Format) Encode(x float64, mode Rounding, saturate bool) uint32 {
	t := &table[f]
	u := math.Float64bits(x)
	if x != x {
		return t.nan
	}
	sign := uint32(u >> 63)
	m := t.round(u&^(1<<63), mode, sign)
	if top := t.top(); m > top {
		m = t.overflow(u&^(1<<63) == 0x7ff<<52, mode, saturate, sign)
		if m > top && t.special == onlyNaN {
			return t.nan
		}
	}
	return (m | sign<<(t.exponent+t.mantissa)) << t.low
}

// round returns the magnitude's encoding as if the exponents had no end, at most
// far above top.
func (t *traits) round(u uint64, mode Rounding, sign uint32) uint32 {
	least := 1 - t.bias()
	e := max(int(u>>52), 1) - 1023
	m := u & (1<<52 - 1)
	if u>>52 != 0 {
		m |= 1 << 52
	}
	if e > 2-least { // beyond every exponent field
		return math.MaxUint32
	}
	shift := 52 - t.mantissa
	if e < least {
		// From 55 on nothing is left but a trace of what was dropped.
		shift = uint(min(int(shift)+least-e, 55))
		e = least
	}
	q, rest, half := m>>shift, m&(1<<shift-1), uint64(1)<<(shift-1)
	up := false
	switch mode {
	case Even:
		up = rest > half || rest == half && q&1 == 1
	case Away:
		up = rest >= half
	case Up:
		up = rest > 0 && sign == 0
	case Down:
		up = rest > 0 && sign == 1
	}
	if up {
		q++
	}
	// A carry moves into the exponent by itself.
	return uint32(e-least)<<t.mantissa + uint32(q)
}

func (t *traits) overflow(infinite bool, mode Rounding, saturate bool, sign uint32) uint32 {
	inward := mode == Zero || mode == Up && sign == 1 || mode == Down && sign == 0
	if saturate || t.special == finite || inward && !infinite {
		return t.top()
	}
	return t.top() + 1
}
