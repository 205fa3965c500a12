package vm_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tiny is a format of few codes: the value of each, NaN where it is none, and
// what NaN becomes.
type tiny struct {
	name  string
	width int // from one value to the next
	bits  int
	nan   uint64
	value func(code uint64) float64
}

// miniFloat is a floating-point format's value, worked out from its fields.
func miniFloat(exponent, mantissa int, ieee, oneNaN bool) func(code uint64) float64 {
	return func(code uint64) float64 {
		bias := 1<<(exponent-1) - 1
		e, m := int(code>>mantissa)&(1<<exponent-1), float64(code&(1<<mantissa-1))
		x := math.Ldexp(m, 1-bias-mantissa)
		if e > 0 {
			x = math.Ldexp(m+math.Ldexp(1, mantissa), e-bias-mantissa)
		}
		switch top := 1<<exponent - 1; {
		case ieee && e == top && m == 0:
			x = math.Inf(1)
		case ieee && e == top, oneNaN && e == top && int(m) == 1<<mantissa-1:
			x = math.NaN()
		}
		if code>>(exponent+mantissa)&1 == 1 {
			return -x
		}
		return x
	}
}

var tinyFormats = []tiny{
	{"e4m3", 8, 8, 0x7f, miniFloat(4, 3, false, true)},
	{"e5m2", 8, 8, 0x7f, miniFloat(5, 2, true, false)},
	{"e2m3", 8, 6, 0x1f, miniFloat(2, 3, false, false)},
	{"e3m2", 8, 6, 0x1f, miniFloat(3, 2, false, false)},
	{"e2m1", 4, 4, 0x7, miniFloat(2, 1, false, false)},
	{"s2f6", 8, 8, 0x7f, func(code uint64) float64 { return float64(int8(code)) / 64 }},
}

// nearest is the code of the nearest finite value, of two as near the even one;
// a zero keeps its sign where there are two.
func (f tiny) nearest(x float64) uint64 {
	if x != x {
		return f.nan
	}
	x = max(min(x, 1e6), -1e6) // beyond all, and differences stay exact enough
	best, least := uint64(0), math.Inf(1)
	for c := range uint64(1) << f.bits {
		y := f.value(c)
		if y != y || math.IsInf(y, 0) || y == 0 && f.name != "s2f6" && math.Signbit(x) != math.Signbit(y) {
			continue
		}
		if d := math.Abs(x - y); d < least || d == least && c%2 == 0 {
			best, least = c, d
		}
	}
	return best
}

// smallConversions are the conversions to and from formats of 8 bits and fewer.
func smallConversions() []instruction {
	var list []instruction
	near := func(r *rand.Rand, bits int) uint64 {
		if r.IntN(3) == 0 {
			return floatValues(single)(r, 32)
		}
		return uint64(math.Float32bits(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(20)-12)))))
	}
	for _, f := range tinyFormats {
		target := "sm_120a"
		relu := func(mod string, x float64) float64 {
			if mod != "" && x <= 0 {
				return 0
			}
			return x
		}
		for _, mod := range []string{"", ".relu"} {
			list = append(list, instruction{op: "cvt.rn.satfinite" + mod + "." + f.name + "x2.f32", dst: 2 * f.width, src: []int{32, 32}, target: target, values: near, want: func(v []uint64) uint64 {
				return f.nearest(relu(mod, single.value(v[1]))) | f.nearest(relu(mod, single.value(v[0])))<<f.width
			}})
			for _, h := range []format{half, brain} {
				if f.name == "s2f6" && h == half {
					continue
				}
				pairs := func(r *rand.Rand, _ int) uint64 {
					one := func() uint64 {
						x := near(r, 32)
						if !single.finite(x) || single.exact(x).Sign() == 0 {
							return h.special(single.value(x))
						}
						return h.round(single.exact(x), "rn")
					}
					return one() | one()<<16
				}
				list = append(list, instruction{op: "cvt.rn.satfinite" + mod + "." + f.name + "x2." + h.name + "x2", dst: 2 * f.width, src: []int{32}, target: target, values: pairs, want: func(v []uint64) uint64 {
					return f.nearest(relu(mod, h.value(v[0]&0xffff))) | f.nearest(relu(mod, h.value(v[0]>>16)))<<f.width
				}})
			}
		}
	}
	scaled := func(r *rand.Rand, bits int) uint64 {
		if bits == 16 {
			return uint64(120+r.IntN(16)) | uint64(120+r.IntN(16))<<8
		}
		return near(r, bits)
	}
	s2f6 := tinyFormats[5]
	factor := func(code uint64) float64 { return math.Ldexp(1, int(code&0xff)-127) }
	list = append(list,
		instruction{op: "cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", dst: 16, src: []int{32, 32, 16}, target: "sm_120a", values: scaled, want: func(v []uint64) uint64 {
			return s2f6.nearest(single.value(v[1])/factor(v[2])) | s2f6.nearest(single.value(v[0])/factor(v[2]>>8))<<8
		}},
		instruction{op: "cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", dst: 32, src: []int{16, 16}, target: "sm_120a", values: func(r *rand.Rand, _ int) uint64 {
			return uint64(100+r.IntN(60)) | uint64(100+r.IntN(60))<<8
		}, want: func(v []uint64) uint64 {
			one := func(x, s uint64) uint64 {
				y := s2f6.value(x&0xff) * factor(s)
				if y == 0 {
					return 0
				}
				return brain.round(big.NewFloat(y), "rn")
			}
			return one(v[0], v[1]) | one(v[0]>>8, v[1]>>8)<<16
		}},
	)
	for _, f := range tinyFormats[:5] {
		list = append(list, widenedScaled(f)...)
	}
	return append(list, slices.Concat(powersOfTwo(), randomRounding(), randomFours())...)
}

// widenedScaled are the conversions of a small format to bf16, with a factor for
// each value: what overflows is an infinity, or the largest value by .satfinite.
func widenedScaled(f tiny) []instruction {
	var list []instruction
	for _, mod := range []string{"", ".satfinite", ".relu", ".satfinite.relu"} {
		one := func(code, scale uint64) uint64 {
			x := f.value(code & (1<<f.bits - 1))
			if scale &= 0xff; scale == 0xff {
				x = math.NaN()
			}
			x = math.Ldexp(x, int(scale)-127)
			const most = 0x1.fep127
			switch {
			case strings.Contains(mod, "relu") && x <= 0:
				return 0
			case strings.Contains(mod, "satfinite") && math.Abs(x) > most:
				x = math.Copysign(most, x)
			}
			if x != x || x == 0 || math.IsInf(x, 0) {
				return brain.special(x)
			}
			return brain.round(big.NewFloat(x), "rn")
		}
		list = append(list, instruction{
			op: "cvt.rn" + mod + ".scaled::n2::ue8m0.bf16x2." + f.name + "x2", dst: 32, src: []int{2 * f.width, 16}, target: "sm_120a", n: 4096,
			values: func(r *rand.Rand, bits int) uint64 { return r.Uint64() },
			want:   func(v []uint64) uint64 { return one(v[0], v[1]) | one(v[0]>>f.width, v[1]>>8)<<16 },
		})
	}
	return list
}

// powersOfTwo are the conversions of ue8m0.
func powersOfTwo() []instruction {
	var list []instruction
	for _, mode := range []string{"rz", "rp"} {
		for _, sat := range []string{"", ".satfinite"} {
			one := func(x float64) uint64 {
				x = math.Abs(x)
				beyond := uint64(0xff)
				if sat != "" {
					beyond = 0xfe
				}
				if x != x {
					return 0xff
				}
				if math.IsInf(x, 0) {
					return beyond
				}
				// The largest power of two at most x, or the smallest at least x.
				for c := range uint64(255) {
					p := math.Ldexp(1, int(c)-127)
					if mode == "rp" && p >= x {
						return c
					}
					if mode == "rz" && 2*p > x {
						return c
					}
				}
				return beyond
			}
			list = append(list,
				instruction{op: "cvt." + mode + sat + ".ue8m0x2.f32", dst: 16, src: []int{32, 32}, target: "sm_120a", values: floatValues(single), want: func(v []uint64) uint64 {
					return one(single.value(v[1])) | one(single.value(v[0]))<<8
				}},
				instruction{op: "cvt." + mode + sat + ".ue8m0x2.bf16x2", dst: 16, src: []int{32}, target: "sm_120a", values: pairsOf(brain), want: func(v []uint64) uint64 {
					return one(brain.value(v[0]&0xffff)) | one(brain.value(v[0]>>16))<<8
				}})
		}
	}
	return list
}

// randomRounding is .rs: up where the bits dropped and the random ones carry.
func randomRounding() []instruction {
	var list []instruction
	for _, c := range []struct {
		f    format
		bits int
	}{{half, 13}, {brain, 16}} {
		f := c.f
		one := func(v, random uint64) uint64 {
			random &= 1<<c.bits - 1
			if !single.finite(v) || single.exact(v).Sign() == 0 {
				return f.special(single.value(v))
			}
			x := single.exact(v)
			code := f.round(x, "rz")
			ulp := math.Ldexp(1, max(int(code>>f.mantissa)&(1<<f.exponentBits()-1), 1)-f.bias-f.mantissa)
			rest, _ := new(big.Float).SetPrec(200).Sub(new(big.Float).Abs(x), new(big.Float).Abs(f.exact(code))).Float64()
			if rest/ulp+float64(random)/math.Exp2(float64(c.bits)) >= 1 {
				code++
			}
			return code
		}
		list = append(list, instruction{op: "cvt.rs." + f.name + "x2.f32", dst: 32, src: []int{32, 32, 32}, target: "sm_100a", values: floatValues(single), want: func(v []uint64) uint64 {
			return one(v[1], v[2]) | one(v[0], v[2]>>16)<<16
		}})
	}
	return list
}

// randomFours are .rs to four values of a small format: up where the bits dropped
// and the value's 16 random ones carry.
func randomFours() []instruction {
	near := func(r *rand.Rand, _ int) uint64 {
		if r.IntN(16) == 0 {
			return anyBits(r, 32)
		}
		return uint64(math.Float32bits(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(20)-12)))))
	}
	var list []instruction
	for _, f := range tinyFormats[:5] {
		for _, mod := range []string{"", ".relu"} {
			list = append(list, instruction{
				op: "cvt.rs" + mod + ".satfinite." + f.name + "x4.f32", dst: 4 * f.width, src: []int{32, 32, 32, 32, 32}, vector: 4, target: "sm_100a", n: 4096,
				values: near, want: func(v []uint64) uint64 {
					var d uint64
					for i := range 4 {
						x := single.value(v[i])
						if mod != "" && x <= 0 {
							x = 0
						}
						d = d<<f.width | f.randomly(x, sharedRandom(v[4], i, f.width))
					}
					return d
				},
			})
		}
	}
	return list
}

// sharedRandom is the random bits of value i of four, bit by bit: byte by byte in
// the operand's order for formats of 8 bits, every other byte for those of 4.
func sharedRandom(operand uint64, i, width int) uint64 {
	bytes := map[int][2][2]int{8: {{3, 2}, {1, 0}}, 4: {{3, 1}, {2, 0}}}[width][i/2]
	var v uint64
	for k := range 16 {
		bit := operand >> (8*bytes[1-k/8] + k%8) & 1
		if i%2 == 0 {
			k = 15 - k
		}
		v |= bit << k
	}
	return v
}

// randomly is the code at or below a magnitude, or the next one where the
// distance and the random bits make a whole step.
func (f tiny) randomly(x float64, random uint64) uint64 {
	if x != x {
		return f.nan
	}
	sign := uint64(0)
	if math.Signbit(x) {
		sign = 1 << (f.bits - 1)
	}
	x = math.Abs(x)
	c := uint64(0)
	next := func() bool {
		y := f.value(c + 1)
		return c+1 < 1<<(f.bits-1) && y == y && !math.IsInf(y, 0)
	}
	for next() && f.value(c+1) <= x {
		c++
	}
	if next() && (x-f.value(c))/(f.value(c+1)-f.value(c))+float64(random)/(1<<16) >= 1 {
		c++
	}
	return sign | c
}

// TestRandomBitsOfFours holds the split of the random bits to what a B200 was
// measured to do: of bits 0x12345678 the four values take these.
func TestRandomBitsOfFours(t *testing.T) {
	for width, want := range map[int][]uint64{8: {0x2c48, 0x1234, 0x1e6a, 0x5678}, 4: {0x6a48, 0x1256, 0x1e2c, 0x3478}} {
		for i := range want {
			require.Equal(t, want[i], sharedRandom(0x12345678, i, width))
		}
	}
}

func TestSmallConversions(t *testing.T) {
	for _, ins := range smallConversions() {
		if ins.n == 0 {
			ins.n = 256
		}
		t.Run(ins.op, ins.check)
	}
}

// TestSmallFormatsWidened widens every code of every small format.
func TestSmallFormatsWidened(t *testing.T) {
	widen := func(f tiny, op string, h format, codes int) {
		var in []byte
		for v := range codes {
			in = append(in, longs(uint64(v))...)
		}
		got := instruction{op: op, dst: 32, src: []int{2 * f.width}, target: "sm_120a"}.run(t, in, codes)
		for v := range uint64(codes) {
			for i := range 2 {
				x := f.value(v >> (i * f.width) & (1<<f.bits - 1))
				want := h.special(x)
				if x == x && x != 0 && !math.IsInf(x, 0) {
					want = h.round(big.NewFloat(x), "rn")
				}
				require.Equal(t, want, got[v]>>(16*i)&0xffff, "%s of %#x", op, v)
			}
		}
	}
	for _, f := range tinyFormats[:5] {
		codes := 1 << (f.width + f.bits)
		widen(f, fmt.Sprintf("cvt.rn.bf16x2.%sx2", f.name), brain, codes)
		if f.bits == 8 {
			continue // TestSmallFormatsExhaustive
		}
		widen(f, fmt.Sprintf("cvt.rn.f16x2.%sx2", f.name), half, codes)
	}
	widen(tiny{"ue8m0", 8, 8, 0xff, func(c uint64) float64 {
		if c == 0xff {
			return math.NaN()
		}
		return math.Ldexp(1, int(c)-127)
	}}, "cvt.rn.bf16x2.ue8m0x2", brain, 1<<16)
	widen(tinyFormats[5], "cvt.rn.bf16x2.s2f6x2", brain, 1<<16)
}
