package vm_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// both applies a reference to the two values of a packed operand.
func (f format) both(g func(v []uint64) uint64) func(v []uint64) uint64 {
	return func(v []uint64) uint64 {
		lo, hi := make([]uint64, len(v)), make([]uint64, len(v))
		for i, x := range v {
			lo[i], hi[i] = x&(1<<f.bits-1), x>>f.bits
		}
		return g(lo) | g(hi)<<f.bits
	}
}

// pairs are operands of two values each.
func pairsOf(f format) func(r *rand.Rand, bits int) uint64 {
	one := floatValues(f)
	return func(r *rand.Rand, _ int) uint64 {
		mask := uint64(1)<<f.bits - 1
		return one(r, f.bits)&mask | one(r, f.bits)&mask<<f.bits
	}
}

// flushed is a reference under .ftz, saturated one under .sat.
func (f format) flushed(g func(v []uint64) uint64) func(v []uint64) uint64 {
	return func(v []uint64) uint64 {
		w := make([]uint64, len(v))
		for i := range v {
			w[i] = f.flush(v[i])
		}
		return f.flush(g(w))
	}
}

func (f format) saturated(v uint64) uint64 {
	switch x := f.value(v); {
	case x != x || x <= 0:
		return 0
	case x > 1:
		return f.one()
	}
	return v
}

// widen is a value of a narrower format in f32.
func (f format) widen(v uint64) uint64 { return widened(f, v) }

// packedInstructions are f32x2 and those of f32 with narrower operands.
func packedInstructions() []instruction {
	var list []instruction
	f := single
	add := func(mode string) func(v []uint64) uint64 {
		return func(v []uint64) uint64 { return f.fma(v[0], f.one(), v[1], mode) }
	}
	sub := func(mode string) func(v []uint64) uint64 {
		return func(v []uint64) uint64 {
			if f.isNaN(v[1]) {
				return f.nan()
			}
			return f.fma(v[0], f.one(), v[1]^f.sign(), mode)
		}
	}
	mul := func(mode string) func(v []uint64) uint64 {
		return func(v []uint64) uint64 { return f.mul(v[0], v[1], mode) }
	}
	fma := func(mode string) func(v []uint64) uint64 {
		return func(v []uint64) uint64 { return f.fma(v[0], v[1], v[2], mode) }
	}
	for _, mode := range []string{"rn", "rz", "rm", "rp"} {
		for name, g := range map[string]func(string) func([]uint64) uint64{"add": add, "sub": sub, "mul": mul, "fma": fma} {
			src := []int{64, 64}
			if name == "fma" {
				src = append(src, 64)
			}
			list = append(list,
				instruction{op: fmt.Sprintf("%s.%s.f32x2", name, mode), dst: 64, src: src, target: "sm_100", values: pairsOf(f), want: f.both(g(mode))},
				instruction{op: fmt.Sprintf("%s.%s.ftz.f32x2", name, mode), dst: 64, src: src, target: "sm_100", values: pairsOf(f), want: f.both(f.flushed(g(mode)))})
		}
		for _, h := range []format{half, brain} {
			values := func(r *rand.Rand, bits int) uint64 {
				if bits == 16 {
					return floatValues(h)(r, 16)
				}
				return floatValues(f)(r, 32)
			}
			for _, sat := range []string{"", ".sat"} {
				finish := func(v uint64) uint64 {
					if sat != "" {
						return f.saturated(v)
					}
					return v
				}
				list = append(list,
					instruction{op: fmt.Sprintf("add.%s%s.f32.%s", mode, sat, h.name), dst: 32, src: []int{16, 32}, target: "sm_100", values: values, want: func(v []uint64) uint64 {
						return finish(add(mode)([]uint64{h.widen(v[0]), v[1]}))
					}},
					instruction{op: fmt.Sprintf("sub.%s%s.f32.%s", mode, sat, h.name), dst: 32, src: []int{16, 32}, target: "sm_100", values: values, want: func(v []uint64) uint64 {
						return finish(sub(mode)([]uint64{h.widen(v[0]), v[1]}))
					}},
					instruction{op: fmt.Sprintf("fma.%s%s.f32.%s", mode, sat, h.name), dst: 32, src: []int{16, 16, 32}, target: "sm_100", values: values, want: func(v []uint64) uint64 {
						return finish(fma(mode)([]uint64{h.widen(v[0]), h.widen(v[1]), v[2]}))
					}})
			}
		}
	}
	for _, h := range []format{half, brain} {
		oob := func(v []uint64) uint64 {
			if v[0] == 0x7fff || v[1] == 0x7fff {
				return 0
			}
			return h.fma(v[0], v[1], v[2], "rn")
		}
		list = append(list,
			instruction{op: "fma.rn.oob." + h.name, dst: 16, src: []int{16, 16, 16}, values: floatValues(h), want: oob},
			instruction{op: "fma.rn.oob." + h.name + "x2", dst: 32, src: []int{32, 32, 32}, values: pairsOf(h), want: h.both(oob)},
		)
	}
	return append(list, extremesOfThree()...)
}

// extremesOfThree are min and max of three values, and .xorsign.abs.
func extremesOfThree() []instruction {
	var list []instruction
	f := single
	for _, op := range []string{"min", "max"} {
		better := func(a, b float64) bool { // a stands before b
			if a == b {
				return math.Signbit(a) == (op == "min")
			}
			return (a < b) == (op == "min")
		}
		for _, nan := range []string{"", ".NaN"} {
			for _, abs := range []string{"", ".abs"} {
				list = append(list, instruction{op: op + nan + abs + ".f32", dst: 32, src: []int{32, 32, 32}, target: "sm_100", values: floatValues(f), want: func(v []uint64) uint64 {
					best, some := uint64(0), false
					for _, x := range v {
						if abs != "" {
							x &^= f.sign()
						}
						switch {
						case f.isNaN(x) && nan != "":
							return f.nan()
						case f.isNaN(x):
						case !some || better(f.value(x), f.value(best)):
							best, some = x, true
						}
					}
					if !some {
						return f.nan()
					}
					return best
				}})
			}
			for _, h := range []format{single, half, brain} {
				list = append(list, instruction{op: op + nan + ".xorsign.abs." + h.name, dst: h.bits, src: []int{h.bits, h.bits}, values: floatValues(h), want: func(v []uint64) uint64 {
					a, b, sign := v[0]&^h.sign(), v[1]&^h.sign(), (v[0]^v[1])&h.sign()
					switch na, nb := h.isNaN(a), h.isNaN(b); {
					case na && nb, nan != "" && (na || nb):
						return h.nan()
					case na:
						return b | sign
					case nb:
						return a | sign
					}
					if (a < b) == (op == "min") { // magnitudes order as integers
						return a | sign
					}
					return b | sign
				}})
			}
		}
	}
	return list
}

func TestPackedInstructions(t *testing.T) {
	for _, ins := range packedInstructions() {
		ins.n = 256
		t.Run(fmt.Sprint(ins.op, len(ins.src)), ins.check)
	}
}

// predicateInstructions are set and setp with a predicate: the boolean comes
// last.
func predicateInstructions() []instruction {
	var list []instruction
	combine := map[string]func(p, c uint64) uint64{
		"and": func(p, c uint64) uint64 { return p & c }, "or": func(p, c uint64) uint64 { return p | c }, "xor": func(p, c uint64) uint64 { return p ^ c },
	}
	for how, g := range combine {
		less := func(v []uint64) uint64 { return yes(signed(v[0], 32).Cmp(signed(v[1], 32)) < 0) }
		list = append(list,
			instruction{op: "set.lt." + how + ".u32.s32", dst: 32, src: []int{32, 32, 1}, want: func(v []uint64) uint64 { return -g(less(v), yes(v[2] != 0)) }},
			instruction{op: "set.lt." + how + ".f32.s32", dst: 32, src: []int{32, 32, 1}, want: func(v []uint64) uint64 { return g(less(v), yes(v[2] != 0)) * single.one() }},
			instruction{op: "setp.lt." + how + ".s32", dst: 1, src: []int{32, 32, 1}, want: func(v []uint64) uint64 { return g(less(v), yes(v[2] != 0)) }},
			instruction{op: "set.geu." + how + ".ftz.u32.f16x2", dst: 32, src: []int{32, 32, 1}, values: pairsOf(half), want: func(v []uint64) uint64 {
				cmp := half.both(func(x []uint64) uint64 {
					return g(yes(!(half.value(half.flush(x[0])) < half.value(half.flush(x[1])))), yes(v[2] != 0)) * 0xffff
				})
				return cmp(v[:2])
			}},
			instruction{op: "set.eq." + how + ".bf16x2.bf16x2", dst: 32, src: []int{32, 32, 1}, values: pairsOf(brain), want: func(v []uint64) uint64 {
				cmp := brain.both(func(x []uint64) uint64 {
					return g(yes(brain.value(x[0]) == brain.value(x[1])), yes(v[2] != 0)) * brain.one()
				})
				return cmp(v[:2])
			}},
		)
	}
	for _, c := range []struct {
		op   string
		pick func(c uint64) bool
	}{
		{"slct.b64.s32", func(c uint64) bool { return int32(c) >= 0 }},
		{"slct.b64.f32", func(c uint64) bool { return single.value(c) >= 0 }},
		{"slct.ftz.b64.f32", func(c uint64) bool { return single.value(single.flush(c)) >= 0 }},
	} {
		list = append(list, instruction{op: c.op, dst: 64, src: []int{64, 64, 32}, values: floatValues(single), want: func(v []uint64) uint64 {
			if c.pick(v[2]) {
				return v[0]
			}
			return v[1]
		}})
	}
	for name, is := range map[string]func(f format, v uint64) bool{
		"finite": func(f format, v uint64) bool { return f.finite(v) }, "infinite": func(f format, v uint64) bool { return f.isInf(v) },
		"number": func(f format, v uint64) bool { return !f.isNaN(v) }, "notanumber": func(f format, v uint64) bool { return f.isNaN(v) },
		"normal":    func(f format, v uint64) bool { return f.finite(v) && (v&f.inf() != 0 || v&^f.sign() == 0) },
		"subnormal": func(f format, v uint64) bool { return v&f.inf() == 0 && v&^f.sign() != 0 },
	} {
		for _, f := range []format{single, double} {
			list = append(list, instruction{op: "testp." + name + "." + f.name, dst: 1, src: []int{f.bits}, values: floatValues(f), want: func(v []uint64) uint64 { return yes(is(f, v[0])) }})
		}
	}
	return list
}

func TestPredicateInstructions(t *testing.T) {
	for _, ins := range predicateInstructions() {
		ins.n = 256
		t.Run(ins.op, ins.check)
	}
}

// TestCarriesOfProducts multiplies 64-bit by 32-bit numbers with mad.cc and
// madc, and adds with 32-bit carries.
func TestCarriesOfProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	var in []byte
	for range 64 {
		in = append(in, words(uint32(anyBits(r, 32)), uint32(anyBits(r, 32)), uint32(anyBits(r, 32)), uint32(anyBits(r, 32)))...)
	}
	p := small{
		regs: ".reg .b64 %ad; .reg .b32 %a0, %a1, %b, %c, %d<7>;",
		body: `mad.wide.u32 %ad, %t, 16, %in0; ld.global.v4.u32 {%a0,%a1,%b,%c}, [%ad];
mul.lo.u32 %d0, %a0, %b; mul.hi.u32 %d1, %a0, %b;
mad.lo.cc.u32 %d1, %a1, %b, %d1; madc.hi.u32 %d2, %a1, %b, 0;
add.cc.u32 %d3, %a0, %b; addc.cc.u32 %d4, %a1, %c; addc.u32 %d5, 0, 0;
sub.cc.u32 %d6, %a0, %b; subc.u32 %d3, %a1, %c;
mad.wide.u32 %ad, %t, 32, %in1;
st.global.v4.u32 [%ad], {%d0,%d1,%d2,%d3}; st.global.v2.u32 [%ad+16], {%d4,%d5}; st.global.u32 [%ad+24], %d6;`,
		block: 64,
	}
	out, report := p.run(t, in, make([]byte, 64*32))
	require.Empty(t, report.Faults)
	a, d := toWords(in), toWords(out[1])
	number := func(w ...uint32) *big.Int { // the lowest first
		x := new(big.Int)
		for i := len(w) - 1; i >= 0; i-- {
			x.Add(x.Lsh(x, 32), big.NewInt(int64(w[i])))
		}
		return x
	}
	for i := range 64 {
		x, b, c := number(a[4*i], a[4*i+1]), number(a[4*i+2]), a[4*i+3]
		require.Zero(t, number(d[8*i:8*i+3]...).Cmp(new(big.Int).Mul(x, b)))
		y := number(a[4*i+2], c)
		sum := new(big.Int).Add(x, y)
		require.Zero(t, number(d[8*i+4], d[8*i+5]).Cmp(sum.Rsh(sum, 32)))
		diff := new(big.Int).Mod(new(big.Int).Sub(x, y), new(big.Int).Lsh(big.NewInt(1), 64))
		require.Zero(t, number(d[8*i+6], d[8*i+3]).Cmp(diff))
	}
}
