package vm

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// small is a format of 8 bits or fewer, of which PTX converts two at a time.
type small struct {
	width  int // bits from one value to the next; 0: no such format
	encode func(m cvtMode, x float64) uint64
	decode func(code uint64) float64
}

// smallOf is the format of a packed type's values; the zero value for others.
func smallOf(t ptx.Type) small {
	switch t {
	case ptx.E4M3x2:
		return floatSmall(num.E4M3, 8)
	case ptx.E5M2x2:
		return floatSmall(num.E5M2, 8)
	case ptx.E2M3x2:
		return floatSmall(num.E2M3, 8)
	case ptx.E3M2x2:
		return floatSmall(num.E3M2, 8)
	case ptx.E2M1x2:
		return floatSmall(num.E2M1, 4)
	case ptx.UE8M0x2:
		return small{8, encodeUE8M0, decodeUE8M0}
	case ptx.S2F6x2:
		return small{8, encodeS2F6, decodeS2F6}
	}
	return small{}
}

func floatSmall(f num.Format, width int) small {
	return small{
		width,
		func(m cvtMode, x float64) uint64 {
			if m.relu && x <= 0 {
				x = 0
			}
			return uint64(f.Encode(x, num.Even, true))
		},
		func(code uint64) float64 { return f.Decode(uint32(code)) },
	}
}

// ue8m0NaN is the one code of ue8m0 that is no power of two.
const ue8m0NaN = 0xff

// encodeUE8M0 rounds a magnitude to a power of two. Zero becomes the least.
func encodeUE8M0(m cvtMode, x float64) uint64 {
	x = math.Abs(x)
	switch {
	case x != x:
		return ue8m0NaN
	case x == 0:
		return 0
	}
	e := 1 << 10
	if !math.IsInf(x, 0) {
		fraction, exp := math.Frexp(x)
		e = exp - 1 + 127
		if m.round == num.Up && fraction > 0.5 {
			e++
		}
	}
	if e > 254 {
		if m.satfinite {
			return 254
		}
		return ue8m0NaN
	}
	return uint64(max(e, 0))
}

func decodeUE8M0(code uint64) float64 {
	if code&0xff == ue8m0NaN {
		return math.NaN()
	}
	return math.Ldexp(1, int(code&0xff)-127)
}

// encodeS2F6 rounds to sixty-fourths in 8 bits, saturating. NaN becomes the
// largest value.
func encodeS2F6(m cvtMode, x float64) uint64 {
	switch {
	case x != x:
		return 0x7f
	case m.relu && x < 0:
		return 0
	}
	return low(uint64(int64(max(min(math.RoundToEven(x*64), 127), -128))), 8)
}

func decodeS2F6(code uint64) float64 { return float64(int8(code)) / 64 }

// cvtSmall is the conversions to and from pairs and tf32. The first source of
// two goes to the upper half.
func (d *decoder) cvtSmall(m cvtMode, dt, at ptx.Type) {
	to, from := smallOf(dt), smallOf(at)
	scaled := d.has("scaled::n2::ue8m0")
	switch {
	case dt == ptx.TF32 && at == ptx.F32:
		d.pure(func(a, _, _ uint64) uint64 {
			return tf32(m, uint64(num.TF32.Encode(float64(f32(a)), m.round, m.satfinite)))
		}, nil, ptx.B32, at)
	case (dt == ptx.F16x2 || dt == ptx.BF16x2) && at == ptx.F32:
		d.cvtHalves(m, dt)
	case to.width > 0 && at == ptx.F32:
		f := func(x, scale uint64) uint64 { return to.encode(m, float64(f32(x))/scaleOf(scaled, scale)) }
		types := d.withScale(scaled, ptx.F32, ptx.F32)
		in := d.pure(func(a, b, c uint64) uint64 { return f(b, c) | f(a, c>>8)<<to.width }, nil, containerOf(2*to.width), types...)
		if !scaled {
			in.rule = rulePair
			in.imm = uint64(to.width)
		}
	case to.width > 0 && (at == ptx.F16x2 || at == ptx.BF16x2):
		t, _ := floatOf(at)
		f := func(x, scale uint64) uint64 { return to.encode(m, t.value(x&0xffff)/scaleOf(scaled, scale)) }
		types := d.withScale(scaled, at)
		d.pure(func(a, b, _ uint64) uint64 { return f(a, b) | f(a>>16, b>>8)<<to.width }, nil, containerOf(2*to.width), types...)
	case from.width > 0 && (dt == ptx.F16x2 || dt == ptx.BF16x2):
		t, _ := floatOf(dt)
		f := func(x, scale uint64) uint64 {
			v := from.decode(low(x, from.width)) * scaleOf(scaled, scale)
			return m.finish(t, uint64(t.f.Encode(v, num.Even, m.satfinite)))
		}
		types := d.withScale(scaled, containerOf(2*from.width))
		d.pure(func(a, b, _ uint64) uint64 { return f(a, b) | f(a>>from.width, b>>8)<<16 }, nil, dt, types...)
	default:
		d.refuse("conversion of .%s to .%s", at, dt)
	}
}

// withScale adds the type of a pair of scale factors.
func (d *decoder) withScale(scaled bool, types ...ptx.Type) []ptx.Type {
	if scaled {
		return append(types, ptx.B16)
	}
	return types
}

// scaleOf is the factor in the low byte of a pair.
func scaleOf(scaled bool, pair uint64) float64 {
	if scaled {
		return decodeUE8M0(pair)
	}
	return 1
}

// containerOf is the register that holds so many bits.
func containerOf(bits int) ptx.Type {
	if bits == 8 {
		return ptx.B8
	}
	return ptx.B16
}

// cvtHalves is cvt.f16x2.f32 and cvt.bf16x2.f32.
func (d *decoder) cvtHalves(m cvtMode, dt ptx.Type) {
	t, _ := floatOf(dt)
	if m.stochastic {
		// f16 takes the 13 low bits of either half of the random bits, as many as
		// it drops.
		n := map[ptx.Type]int{ptx.F16x2: 13, ptx.BF16x2: 16}[dt]
		f := func(x, random uint64) uint64 {
			return m.finish(t, encodeRandomly(t.f, float64(f32(x)), float64(low(random, n))/float64(uint64(1)<<n), m.satfinite))
		}
		d.pure(func(a, b, c uint64) uint64 { return f(b, c) | f(a, c>>16)<<16 }, nil, dt, ptx.F32, ptx.F32, ptx.B32)
		return
	}
	f := func(a uint64) uint64 {
		return m.finish(t, uint64(t.f.Encode(float64(f32(a)), m.round, m.satfinite)))
	}
	in := d.pure(func(a, b, _ uint64) uint64 { return f(b) | f(a)<<16 }, fastPairs(m, dt), dt, ptx.F32, ptx.F32)
	in.rule = rulePair
	in.imm = 16
}

// encodeRandomly rounds away from zero where what is dropped, in units of the
// last place, and a random part of a unit add up to a whole one: .rs.
func encodeRandomly(f num.Format, x, random float64, satfinite bool) uint64 {
	code := f.Encode(x, num.Zero, satfinite)
	at := f.Decode(code)
	if x != x || math.IsInf(at, 0) {
		return uint64(code)
	}
	rest := math.Abs(x) - math.Abs(at)
	if rest/f.ULP(at)+random < 1 || satfinite && math.Abs(at) == f.Max() {
		return uint64(code)
	}
	return uint64(code) + 1
}

// tf32 applies .relu.
func tf32(m cvtMode, v uint64) uint64 {
	x := f32(v)
	switch {
	case !m.relu:
	case x != x:
		return nan32
	case math.Signbit(float64(x)):
		return 0
	}
	return v
}
