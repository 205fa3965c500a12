package vm_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir/num"
)

// toInteger rounds a value to a whole number.
func toInteger(x *big.Float, mode string) *big.Int {
	whole, _ := x.Int(nil) // toward zero
	rest := new(big.Float).SetPrec(5000).Sub(x, new(big.Float).SetInt(whole))
	away := int64(x.Sign())
	up := false
	switch c := new(big.Float).Abs(rest).Cmp(big.NewFloat(0.5)); mode {
	case "rni":
		up = c > 0 || c == 0 && whole.Bit(0) == 1
	case "rmi":
		up = rest.Sign() < 0
	case "rpi":
		up = rest.Sign() > 0
	}
	if up {
		whole.Add(whole, big.NewInt(away))
	}
	return whole
}

func conversionInstructions() []instruction {
	var list []instruction
	types := []struct {
		name string
		n    int
		s    bool
	}{{"u8", 8, false}, {"s8", 8, true}, {"u16", 16, false}, {"s16", 16, true}, {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}}
	for _, d := range types {
		for _, a := range types {
			if a.n == 8 || d.n == 8 && a.n == 8 {
				continue
			}
			dst := max(d.n, 16)
			list = append(list, instruction{op: fmt.Sprintf("cvt.%s.%s", d.name, a.name), dst: dst, src: []int{a.n}, want: func(v []uint64) uint64 {
				c := wrapped(number(v[0], a.n, a.s), d.n)
				return wrapped(number(c, d.n, d.s), dst) // extended to the register
			}})
			if d.s == a.s && d.n >= a.n || d.s && d.n > a.n {
				continue // nothing to saturate
			}
			list = append(list, instruction{op: fmt.Sprintf("cvt.sat.%s.%s", d.name, a.name), dst: dst, src: []int{a.n}, want: func(v []uint64) uint64 {
				c := clamped(number(v[0], a.n, a.s), d.n, d.s)
				return wrapped(number(c, d.n, d.s), dst)
			}})
		}
	}
	for _, f := range []format{half, single, double} {
		for _, i := range types[2:] {
			for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
				list = append(list, instruction{op: fmt.Sprintf("cvt.%s.%s.%s", mode, i.name, f.name), dst: i.n, src: []int{f.bits}, values: aroundIntegers(f), want: func(v []uint64) uint64 {
					switch {
					case f.isNaN(v[0]):
						if f.bits == 64 || i.n == 64 {
							return 1 << (i.n - 1)
						}
						return 0
					case f.isInf(v[0]):
						huge := new(big.Int).Lsh(big.NewInt(1), 2000)
						if v[0]&f.sign() != 0 {
							huge.Neg(huge)
						}
						return clamped(huge, i.n, i.s)
					}
					return clamped(toInteger(f.exact(v[0]), mode), i.n, i.s)
				}})
			}
			for _, mode := range []string{"rn", "rz", "rm", "rp"} {
				list = append(list, instruction{op: fmt.Sprintf("cvt.%s.%s.%s", mode, f.name, i.name), dst: f.bits, src: []int{i.n}, want: func(v []uint64) uint64 {
					x := number(v[0], i.n, i.s)
					if x.Sign() == 0 {
						return 0
					}
					return f.round(new(big.Float).SetInt(x), mode)
				}})
			}
		}
	}
	for _, pair := range [][2]format{{single, half}, {single, brain}, {double, single}, {double, half}} {
		a, d := pair[0], pair[1]
		for _, mode := range []string{"rn", "rz", "rm", "rp"} {
			if d == brain && (mode == "rm" || mode == "rp") {
				continue
			}
			list = append(list, instruction{op: fmt.Sprintf("cvt.%s.%s.%s", mode, d.name, a.name), dst: d.bits, src: []int{a.bits}, values: floatValues(a), want: func(v []uint64) uint64 {
				if !a.finite(v[0]) || a.exact(v[0]).Sign() == 0 {
					return d.special(a.value(v[0]))
				}
				return d.round(a.exact(v[0]), mode)
			}})
		}
	}
	for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
		list = append(list, instruction{op: "cvt." + mode + ".f32.f32", dst: 32, src: []int{32}, values: aroundIntegers(single), want: func(v []uint64) uint64 {
			if !single.finite(v[0]) {
				return single.special(single.value(v[0]))
			}
			w := toInteger(single.exact(v[0]), mode)
			if w.Sign() == 0 {
				return v[0] & single.sign()
			}
			return single.round(new(big.Float).SetInt(w), "rn")
		}})
	}
	list = append(list, packedConversions()...)
	return list
}

// aroundIntegers are values near halves and at the ends of the integers.
func aroundIntegers(f format) func(r *rand.Rand, bits int) uint64 {
	any := floatValues(f)
	return func(r *rand.Rand, bits int) uint64 {
		switch r.IntN(3) {
		case 0:
			return any(r, bits)
		case 1:
			x := float64(r.IntN(41)-20) / 2
			if x == 0 {
				return 0
			}
			return f.round(big.NewFloat(x), "rn")
		}
		x := math.Ldexp(1, []int{7, 8, 15, 16, 31, 32, 63, 64}[r.IntN(8)]) * (1 + float64(r.IntN(3)-1)*0x1p-20)
		if r.IntN(2) == 0 {
			x = -x
		}
		return f.round(big.NewFloat(x), "rn")
	}
}

// packedConversions are those of pairs: the first source goes to the top.
func packedConversions() []instruction {
	var list []instruction
	small := func(r *rand.Rand, _ int) uint64 {
		if r.IntN(3) == 0 {
			return floatValues(single)(r, 32)
		}
		return uint64(math.Float32bits(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(24)-12)))))
	}
	narrow := func(f format, v uint64) uint64 {
		if !single.finite(v) || single.exact(v).Sign() == 0 {
			return f.special(single.value(v))
		}
		return f.round(single.exact(v), "rn")
	}
	for _, f := range []format{half, brain} {
		list = append(list,
			instruction{op: "cvt.rn." + f.name + "x2.f32", dst: 32, src: []int{32, 32}, values: small, want: func(v []uint64) uint64 {
				return narrow(f, v[0])<<16 | narrow(f, v[1])
			}},
			instruction{op: "cvt.rn.relu." + f.name + "x2.f32", dst: 32, src: []int{32, 32}, values: small, want: func(v []uint64) uint64 {
				one := func(x uint64) uint64 {
					if y := narrow(f, x); y&f.sign() == 0 || f.isNaN(y) {
						return y
					}
					return 0
				}
				return one(v[0])<<16 | one(v[1])
			}},
		)
	}
	for name, f := range map[string]num.Format{"e4m3x2": num.E4M3, "e5m2x2": num.E5M2} {
		// The nearest of all finite values, ties to the even code.
		nearest := func(v uint64) uint64 {
			x := single.value(v)
			if x != x {
				return 0x7f
			}
			best, bestErr := uint64(0), math.Inf(1)
			for c := range uint64(128) {
				y := f.Decode(uint32(c))
				if y != y || math.IsInf(y, 0) {
					continue
				}
				if err := math.Abs(math.Abs(x) - y); err < bestErr || err == bestErr && c%2 == 0 {
					best, bestErr = c, err
				}
			}
			if math.Abs(x) > f.Max() {
				best = map[num.Format]uint64{num.E4M3: 0x7e, num.E5M2: 0x7b}[f]
			}
			if math.Signbit(x) {
				best |= 0x80
			}
			return best
		}
		list = append(list, instruction{op: "cvt.rn.satfinite." + name + ".f32", dst: 16, src: []int{32, 32}, values: small, want: func(v []uint64) uint64 {
			return nearest(v[0])<<8 | nearest(v[1])
		}})
	}
	list = append(list,
		instruction{op: "cvt.rna.tf32.f32", dst: 32, src: []int{32}, values: small, want: func(v []uint64) uint64 {
			if single.isNaN(v[0]) {
				return single.nan()
			}
			if single.isInf(v[0]) {
				return v[0]
			}
			return (v[0] + 0x1000) &^ 0x1fff
		}},
		instruction{op: "cvt.pack.sat.s16.s32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			return clamped(signed(v[0], 32), 16, true)<<16 | clamped(signed(v[1], 32), 16, true)
		}},
		instruction{op: "cvt.pack.sat.u8.s32.b32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			return v[2]<<16 | clamped(signed(v[0], 32), 8, false)<<8 | clamped(signed(v[1], 32), 8, false)
		}},
	)
	return list
}

func TestConversions(t *testing.T) {
	for _, ins := range conversionInstructions() {
		t.Run(ins.op, ins.check)
	}
}

// TestSmallFormatsExhaustive widens every value of the small formats.
func TestSmallFormatsExhaustive(t *testing.T) {
	for _, c := range []struct {
		op   string
		want func(v uint64) uint64
	}{
		{"cvt.f32.f16", func(v uint64) uint64 { return widened(half, v) }},
		{"cvt.f32.bf16", func(v uint64) uint64 { return widened(brain, v) }},
	} {
		var in []byte
		for v := range uint64(1 << 16) {
			in = append(in, longs(v)...)
		}
		got := instruction{op: c.op, dst: 32, src: []int{16}}.run(t, in, 1<<16)
		for v := range uint64(1 << 16) {
			require.Equal(t, c.want(v), got[v], "%s of %#x", c.op, v)
		}
	}
	for name, f := range map[string]num.Format{"e4m3x2": num.E4M3, "e5m2x2": num.E5M2} {
		var in []byte
		for v := range uint64(1 << 16) {
			in = append(in, longs(v)...)
		}
		got := instruction{op: "cvt.rn.f16x2." + name, dst: 32, src: []int{16}}.run(t, in, 1<<16)
		for v := range uint64(1 << 16) {
			for i := range 2 {
				x := f.Decode(uint32(v >> (8 * i) & 0xff))
				h := got[v] >> (16 * i) & 0xffff
				if x != x {
					require.EqualValues(t, 0x7fff, h)
					continue
				}
				require.Equal(t, num.F16.Encode(x, num.Even, false), uint32(h), "%s of %#x", name, v)
			}
		}
	}
}

func widened(f format, v uint64) uint64 {
	if !f.finite(v) || f.exact(v).Sign() == 0 {
		return single.special(f.value(v))
	}
	return single.round(f.exact(v), "rn")
}

// TestHalvesBetween converts every value between the two formats of 16 bits
// without a rounding modifier, as Triton writes it: to the nearest.
func TestHalvesBetween(t *testing.T) {
	var in []byte
	for v := range uint64(1 << 16) {
		in = append(in, longs(v)...)
	}
	for _, c := range []struct {
		op       string
		from, to format
	}{{"cvt.bf16.f16", half, brain}, {"cvt.f16.bf16", brain, half}} {
		got := instruction{op: c.op, dst: 16, src: []int{16}}.run(t, in, 1<<16)
		for v := range uint64(1 << 16) {
			want := c.to.special(c.from.value(v))
			if c.from.finite(v) && c.from.exact(v).Sign() != 0 {
				want = c.to.round(c.from.exact(v), "rn")
			}
			require.Equal(t, want, got[v], "%s of %#x", c.op, v)
		}
	}
}
