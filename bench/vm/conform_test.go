package vm_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
)

// instruction is a line of the conformance table: an opcode, the widths of its
// result and operands in bits (1 is a predicate), and what it computes, worked
// out here on its own.
type instruction struct {
	op     string
	dst    int
	src    []int
	want   func(v []uint64) uint64
	consts string // further operands, ", 0x96"
	target string
	values func(r *rand.Rand, bits int) uint64 // operands; nil: any

	opt       vm.Options
	n         int      // of operands tried; 0: 1024
	selectors []string // of video instructions: of the result and the operands
	minus     int      // the operand, from 1, with a minus
	vector    int      // so many operands, from the first, are one vector
	before    string   // instructions that take the last operand
	after     string   // instructions that take the result's place, in %dq
}

// check runs the instruction on many operands, a thread each.
func (ins instruction) check(t *testing.T) {
	t.Helper()
	n := ins.n
	if n == 0 {
		n = 1024
	}
	vals, in := ins.operands(n)
	ins.compare(t, vals, ins.run(t, in, n))
}

// operands are operands for n threads, and the same as they lie in memory.
func (ins instruction) operands(n int) (vals [][]uint64, in []byte) {
	r := rand.New(rand.NewPCG(uint64(len(ins.op)), 7))
	gen := ins.values
	if gen == nil {
		gen = anyBits
	}
	in = make([]byte, 0, n*8*len(ins.src))
	vals = make([][]uint64, n)
	for i := range n {
		for _, w := range ins.src {
			v := gen(r, w)
			if w < 64 {
				v &= 1<<w - 1
			}
			vals[i] = append(vals[i], v)
			in = binary.LittleEndian.AppendUint64(in, v)
		}
	}
	return vals, in
}

// compare holds results to what the instruction computes of the operands.
func (ins instruction) compare(t *testing.T, vals [][]uint64, got []uint64) {
	t.Helper()
	for i := range vals {
		want := ins.want(vals[i])
		if ins.dst < 64 {
			want &= 1<<ins.dst - 1
		}
		require.Equal(t, want, got[i], "%s of %#x: got %#x, want %#x", ins.op, vals[i], got[i], want)
	}
}

// run gives the results for operands that lie one after the other.
func (ins instruction) run(t *testing.T, in []byte, n int) []uint64 {
	t.Helper()
	for len(in)%(128*8*len(ins.src)) != 0 { // whole blocks
		in = append(in, 0)
	}
	rows := len(in) / (8 * len(ins.src))
	var body strings.Builder
	body.WriteString("mov.u32 %c, %ctaid.x; mad.lo.u32 %t, %c, 128, %t;\n")
	fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in0;\n", 8*len(ins.src))
	ins.write(&body)
	body.WriteString("mad.wide.u32 %ad, %t, 8, %in1; st.global.b64 [%ad], %dq;")
	target := ins.target
	if target == "" {
		target = "sm_90a"
	}
	p := small{target: target, regs: instructionRegs, body: body.String(), grid: uint32(rows / 128), block: 128, opt: ins.opt}
	out, report := p.run(t, in, make([]byte, 8*rows))
	require.Empty(t, report.Faults)
	return toLongs(out[1])[:n]
}

// instructionRegs are the registers that write uses.
const instructionRegs = ".reg .b64 %ad, %dq, %q<4>; .reg .b32 %c, %x, %dr, %r<5>; .reg .b16 %dh, %h<4>; .reg .b8 %e<5>; .reg .pred %dp, %dp2, %sp<4>;"

// inBytes says whether the instruction wants registers of 8 bits.
func (ins instruction) inBytes() bool {
	small := strings.Contains(ins.op, ".u8") || strings.Contains(ins.op, ".s8")
	return strings.Contains(ins.op, "e2m1x2") || small && strings.Contains(ins.op, ".bf16")
}

// write loads the operands from %ad on, and computes the result in %dq.
func (ins instruction) write(body *strings.Builder) {
	var args []string
	bytes := ins.inBytes()
	for i, w := range ins.src {
		if w == 8 && bytes {
			fmt.Fprintf(body, "ld.global.b8 %%e%d, [%%ad+%d];\n", i, 8*i)
			args = append(args, fmt.Sprintf("%%e%d", i))
			continue
		}
		switch w {
		case 1:
			fmt.Fprintf(body, "ld.global.u32 %%x, [%%ad+%d]; setp.ne.u32 %%sp%d, %%x, 0;\n", 8*i, i)
			args = append(args, fmt.Sprintf("%%sp%d", i))
		case 8, 16:
			fmt.Fprintf(body, "ld.global.u16 %%h%d, [%%ad+%d];\n", i, 8*i)
			args = append(args, fmt.Sprintf("%%h%d", i))
		case 32:
			fmt.Fprintf(body, "ld.global.b32 %%r%d, [%%ad+%d];\n", i, 8*i)
			args = append(args, fmt.Sprintf("%%r%d", i))
		default:
			fmt.Fprintf(body, "ld.global.b64 %%q%d, [%%ad+%d];\n", i, 8*i)
			args = append(args, fmt.Sprintf("%%q%d", i))
		}
	}
	if ins.minus > 0 {
		args[ins.minus-1] = "-" + args[ins.minus-1]
	}
	for i, sel := range ins.selectors {
		if sel != "" && i > 0 {
			args[i-1] += "." + sel
		}
	}
	if n := ins.vector; n > 0 {
		args = append([]string{"{" + strings.Join(args[:n], ", ") + "}"}, args[n:]...)
	}
	dst := map[int]string{1: "%dp", 2: "%dp|%dp2", 8: "%dh", 16: "%dh", 32: "%dr", 33: "%dr|%dp", 64: "%dq"}[ins.dst]
	if ins.dst == 8 && bytes {
		dst = "%e4"
	}
	if len(ins.selectors) > 0 && ins.selectors[0] != "" {
		dst += "." + ins.selectors[0]
	}
	if ins.before != "" {
		args = args[:len(args)-1] // the last is for before
		body.WriteString(ins.before)
	}
	fmt.Fprintf(body, "%s %s, %s%s;\n", ins.op, dst, strings.Join(args, ", "), ins.consts)
	switch ins.dst {
	case 1:
		body.WriteString("selp.u64 %dq, 1, 0, %dp;\n")
	case 2:
		body.WriteString("selp.u64 %dq, 1, 0, %dp; @%dp2 add.u64 %dq, %dq, 2;\n")
	case 8, 16:
		if dst == "%e4" {
			body.WriteString("cvt.u16.u8 %dh, %e4;\n")
		}
		body.WriteString("cvt.u64.u16 %dq, %dh;\n")
	case 32:
		body.WriteString("cvt.u64.u32 %dq, %dr;\n")
	case 33:
		body.WriteString("cvt.u64.u32 %dq, %dr; @%dp add.u64 %dq, %dq, 0x100000000;\n")
	}
	body.WriteString(ins.after)
}

// anyBits favours the values where things go wrong.
func anyBits(r *rand.Rand, _ int) uint64 {
	special := []uint64{
		0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
		0x7fffffffffffffff, 0x8000000000000000, ^uint64(0), ^uint64(1),
	}
	switch r.IntN(4) {
	case 0:
		return special[r.IntN(len(special))]
	case 1:
		return uint64(r.IntN(70))
	case 2:
		return r.Uint64() >> r.IntN(64)
	}
	return r.Uint64()
}

func signed(v uint64, n int) *big.Int {
	x := new(big.Int).SetUint64(v)
	if v>>(n-1)&1 == 1 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(n)))
	}
	return x
}

func number(v uint64, n int, s bool) *big.Int {
	if s {
		return signed(v, n)
	}
	return new(big.Int).SetUint64(v)
}

// wrapped is an integer's low n bits.
func wrapped(x *big.Int, n int) uint64 {
	m := new(big.Int).Lsh(big.NewInt(1), uint(n))
	return new(big.Int).Mod(x, m).Uint64()
}

// clamped is an integer saturated to n bits.
func clamped(x *big.Int, n int, s bool) uint64 {
	lo, hi := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(n))
	if s {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	if x.Cmp(lo) < 0 {
		x = lo
	}
	if x.Cmp(hi) > 0 {
		x = hi
	}
	return wrapped(x, n)
}

// integerInstructions are the integer part of the table.
func integerInstructions() []instruction {
	var list []instruction
	add := func(ins ...instruction) { list = append(list, ins...) }
	for _, n := range []int{16, 32, 64} {
		for _, s := range []bool{false, true} {
			t := fmt.Sprintf("u%d", n)
			if s {
				t = fmt.Sprintf("s%d", n)
			}
			two := func(op string, f func(a, b *big.Int) *big.Int) {
				add(instruction{op: op + "." + t, dst: n, src: []int{n, n}, want: func(v []uint64) uint64 {
					return wrapped(f(number(v[0], n, s), number(v[1], n, s)), n)
				}})
			}
			two("add", func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) })
			two("sub", func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) })
			two("mul.lo", func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) })
			two("mul.hi", func(a, b *big.Int) *big.Int { return new(big.Int).Rsh(new(big.Int).Mul(a, b), uint(n)) })
			two("min", func(a, b *big.Int) *big.Int {
				if a.Cmp(b) < 0 {
					return a
				}
				return b
			})
			two("max", func(a, b *big.Int) *big.Int {
				if a.Cmp(b) > 0 {
					return a
				}
				return b
			})
			two("div", func(a, b *big.Int) *big.Int {
				if b.Sign() == 0 {
					return big.NewInt(-1) // what the hardware gives
				}
				return new(big.Int).Quo(a, b)
			})
			two("rem", func(a, b *big.Int) *big.Int {
				if b.Sign() == 0 {
					return a
				}
				return new(big.Int).Rem(a, b)
			})
			three := func(op string, wide int, f func(a, b, c *big.Int) *big.Int) {
				add(instruction{op: op + "." + t, dst: wide, src: []int{n, n, wide}, want: func(v []uint64) uint64 {
					return wrapped(f(number(v[0], n, s), number(v[1], n, s), number(v[2], wide, s)), wide)
				}})
			}
			three("mad.lo", n, func(a, b, c *big.Int) *big.Int { return new(big.Int).Add(new(big.Int).Mul(a, b), c) })
			three("mad.hi", n, func(a, b, c *big.Int) *big.Int {
				return new(big.Int).Add(new(big.Int).Rsh(new(big.Int).Mul(a, b), uint(n)), c)
			})
			three("sad", n, func(a, b, c *big.Int) *big.Int {
				return new(big.Int).Add(c, new(big.Int).Abs(new(big.Int).Sub(a, b)))
			})
			if n < 64 {
				three("mad.wide", 2*n, func(a, b, c *big.Int) *big.Int { return new(big.Int).Add(new(big.Int).Mul(a, b), c) })
				add(instruction{op: "mul.wide." + t, dst: 2 * n, src: []int{n, n}, want: func(v []uint64) uint64 {
					return wrapped(new(big.Int).Mul(number(v[0], n, s), number(v[1], n, s)), 2*n)
				}})
			}
			for cmp, f := range map[string]func(c int) bool{
				"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 },
				"lt": func(c int) bool { return c < 0 }, "le": func(c int) bool { return c <= 0 },
				"gt": func(c int) bool { return c > 0 }, "ge": func(c int) bool { return c >= 0 },
			} {
				add(instruction{op: "setp." + cmp + "." + t, dst: 1, src: []int{n, n}, want: func(v []uint64) uint64 {
					return yes(f(number(v[0], n, s).Cmp(number(v[1], n, s))))
				}})
			}
			add(instruction{op: "shr." + t, dst: n, src: []int{n, 32}, want: func(v []uint64) uint64 {
				return wrapped(new(big.Int).Rsh(number(v[0], n, s), uint(min(v[1], 200))), n)
			}})
		}
		b := fmt.Sprintf("b%d", n)
		add(
			instruction{op: "and." + b, dst: n, src: []int{n, n}, want: func(v []uint64) uint64 { return v[0] & v[1] }},
			instruction{op: "or." + b, dst: n, src: []int{n, n}, want: func(v []uint64) uint64 { return v[0] | v[1] }},
			instruction{op: "xor." + b, dst: n, src: []int{n, n}, want: func(v []uint64) uint64 { return v[0] ^ v[1] }},
			instruction{op: "not." + b, dst: n, src: []int{n}, want: func(v []uint64) uint64 { return ^v[0] }},
			instruction{op: "cnot." + b, dst: n, src: []int{n}, want: func(v []uint64) uint64 { return yes(v[0] == 0) }},
			instruction{op: "neg.s" + b[1:], dst: n, src: []int{n}, want: func(v []uint64) uint64 { return -v[0] }},
			instruction{op: "abs.s" + b[1:], dst: n, src: []int{n}, want: func(v []uint64) uint64 { return wrapped(new(big.Int).Abs(signed(v[0], n)), n) }},
			instruction{op: "shl." + b, dst: n, src: []int{n, 32}, want: func(v []uint64) uint64 {
				return wrapped(new(big.Int).Lsh(new(big.Int).SetUint64(v[0]), uint(min(v[1], 200))), n)
			}},
			instruction{op: "selp." + b, dst: n, src: []int{n, n, 1}, want: func(v []uint64) uint64 {
				if v[2] != 0 {
					return v[0]
				}
				return v[1]
			}},
		)
	}
	add(bitInstructions()...)
	return list
}

func yes(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// bitAt is a bit of a value; beyond its top the last one.
func bitAt(v uint64, i int) uint64 { return v >> min(i, 63) & 1 }

// bitInstructions are those on bits, with references bit by bit.
func bitInstructions() []instruction {
	list := []instruction{
		{op: "add.sat.s32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			return clamped(new(big.Int).Add(signed(v[0], 32), signed(v[1], 32)), 32, true)
		}},
		{op: "sub.sat.s32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			return clamped(new(big.Int).Sub(signed(v[0], 32), signed(v[1], 32)), 32, true)
		}},
		{op: "mad.hi.sat.s32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			p := new(big.Int).Mul(signed(v[0], 32), signed(v[1], 32))
			return clamped(new(big.Int).Add(p.Rsh(p, 32), signed(v[2], 32)), 32, true)
		}},
		{op: "lop3.b32", dst: 32, src: []int{32, 32, 32}, consts: ", 0x1b", want: func(v []uint64) uint64 {
			var out uint64
			for i := range 32 {
				out |= 0x1b >> (bitAt(v[0], i)<<2 | bitAt(v[1], i)<<1 | bitAt(v[2], i)) & 1 << i
			}
			return out
		}},
		{op: "prmt.b32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			all := longs(v[1]<<32 | v[0])
			var out uint64
			for i := range 4 {
				s := v[2] >> (4 * i) & 15
				b := all[s&7]
				if s > 7 {
					b = byte(int8(b) >> 7)
				}
				out |= uint64(b) << (8 * i)
			}
			return out
		}},
		{op: "szext.wrap.s32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			n := int(v[1] & 31)
			if n == 0 {
				return 0
			}
			return wrapped(signed(v[0]&(1<<n-1), n), 32)
		}},
		{op: "szext.clamp.u32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			if v[1] >= 32 {
				return v[0]
			}
			return v[0] & (1<<v[1] - 1)
		}},
		{op: "clmad.lo.u64", dst: 64, src: []int{64, 64, 64}, want: carryless(0)},
		{op: "clmad.hi.u64", dst: 64, src: []int{64, 64, 64}, want: carryless(64)},
		{op: "bmsk.clamp.b32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			var out uint64
			for i := range uint64(32) {
				if i >= v[0] && i < v[0]+v[1] {
					out |= 1 << i
				}
			}
			return out
		}},
		{op: "bmsk.wrap.b32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			var out uint64
			for i := range uint64(32) {
				if i >= v[0]&31 && i < v[0]&31+v[1]&31 {
					out |= 1 << i
				}
			}
			return out
		}},
		{op: "dp4a.s32.u32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			sum := signed(v[2], 32)
			for i := range 4 {
				sum.Add(sum, new(big.Int).Mul(signed(v[0]>>(8*i)&0xff, 8), new(big.Int).SetUint64(v[1]>>(8*i)&0xff)))
			}
			return wrapped(sum, 32)
		}},
		{op: "dp2a.hi.u32.s32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			sum := signed(v[2], 32)
			for i := range 2 {
				sum.Add(sum, new(big.Int).Mul(new(big.Int).SetUint64(v[0]>>(16*i)&0xffff), signed(v[1]>>(16+8*i)&0xff, 8)))
			}
			return wrapped(sum, 32)
		}},
		{op: "mul24.lo.s32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			return wrapped(new(big.Int).Mul(signed(v[0]&0xffffff, 24), signed(v[1]&0xffffff, 24)), 32)
		}},
		{op: "mul24.hi.u32", dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			return (v[0] & 0xffffff) * (v[1] & 0xffffff) >> 16
		}},
		{op: "fns.b32", dst: 32, src: []int{32, 32, 32}, values: func(r *rand.Rand, _ int) uint64 {
			return []uint64{r.Uint64(), uint64(r.IntN(32)), uint64(int64(r.IntN(20) - 10))}[r.IntN(3)]
		}, want: func(v []uint64) uint64 {
			base, n := int(v[1]&31), int(int32(v[2]))
			if n == 0 {
				if v[0]>>base&1 == 1 {
					return uint64(base)
				}
				return 0xffffffff
			}
			step := 1
			if n < 0 {
				step = -1
			}
			for i := base; i >= 0 && i < 32; i += step {
				if v[0]>>i&1 == 1 {
					if n -= step; n == 0 {
						return uint64(i)
					}
				}
			}
			return 0xffffffff
		}},
	}
	for _, n := range []int{32, 64} {
		b := fmt.Sprint(n)
		list = append(list,
			instruction{op: "popc.b" + b, dst: 32, src: []int{n}, want: func(v []uint64) uint64 {
				var c uint64
				for i := range n {
					c += bitAt(v[0], i)
				}
				return c
			}},
			instruction{op: "clz.b" + b, dst: 32, src: []int{n}, want: func(v []uint64) uint64 {
				for i := n - 1; i >= 0; i-- {
					if bitAt(v[0], i) == 1 {
						return uint64(n - 1 - i)
					}
				}
				return uint64(n)
			}},
			instruction{op: "brev.b" + b, dst: n, src: []int{n}, want: func(v []uint64) uint64 {
				var out uint64
				for i := range n {
					out |= bitAt(v[0], i) << (n - 1 - i)
				}
				return out
			}},
			instruction{op: "bfi.b" + b, dst: n, src: []int{n, n, 32, 32}, want: func(v []uint64) uint64 {
				pos, length := int(v[2]&0xff), int(v[3]&0xff)
				out := v[1]
				for i := 0; i < length && pos+i < n; i++ {
					out = out&^(1<<(pos+i)) | bitAt(v[0], i)<<(pos+i)
				}
				return out
			}},
		)
		for _, s := range []string{"u", "s"} {
			list = append(list,
				instruction{op: "bfe." + s + b, dst: n, src: []int{n, 32, 32}, want: func(v []uint64) uint64 {
					pos, length := int(v[1]&0xff), int(v[2]&0xff)
					sign := uint64(0)
					if s == "s" && length > 0 {
						sign = bitAt(v[0], min(pos+length-1, n-1))
					}
					var out uint64
					for i := range n {
						bit := sign
						if i < length && pos+i < n {
							bit = bitAt(v[0], pos+i)
						}
						out |= bit << i
					}
					return out
				}},
				instruction{op: "bfind." + s + b, dst: 32, src: []int{n}, want: func(v []uint64) uint64 {
					x := v[0]
					if s == "s" && bitAt(x, n-1) == 1 {
						x = ^x
					}
					for i := n - 1; i >= 0; i-- {
						if bitAt(x, i) == 1 {
							return uint64(i)
						}
					}
					return 0xffffffff
				}},
			)
		}
	}
	for _, mode := range []string{"clamp", "wrap"} {
		count := func(c uint64) uint {
			if mode == "wrap" {
				return uint(c & 31)
			}
			return uint(min(c, 32))
		}
		list = append(list,
			instruction{op: "shf.l." + mode + ".b32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
				return bits.RotateLeft64(v[1]<<32|v[0], int(count(v[2]))) >> 32 & (^uint64(0) << 0)
			}},
			instruction{op: "shf.r." + mode + ".b32", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
				return (v[1]<<32 | v[0]) >> count(v[2])
			}},
		)
	}
	return list
}

func TestIntegerInstructions(t *testing.T) {
	for _, ins := range integerInstructions() {
		t.Run(ins.op, ins.check)
	}
}

// TestCarries adds and subtracts 128-bit numbers.
func TestCarries(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var in []byte
	for range 64 * 4 {
		in = append(in, longs(anyBits(r, 64))...)
	}
	p := small{
		regs: ".reg .b64 %ad, %a<4>, %d<4>;",
		body: `mad.wide.u32 %ad, %t, 32, %in0;
ld.global.v2.u64 {%a0,%a1}, [%ad]; ld.global.v2.u64 {%a2,%a3}, [%ad+16];
add.cc.u64 %d0, %a0, %a2; addc.u64 %d1, %a1, %a3;
sub.cc.u64 %d2, %a0, %a2; subc.u64 %d3, %a1, %a3;
mad.wide.u32 %ad, %t, 32, %in1;
st.global.v2.u64 [%ad], {%d0,%d1}; st.global.v2.u64 [%ad+16], {%d2,%d3};`,
		block: 64,
	}
	out, report := p.run(t, in, make([]byte, 64*32))
	require.Empty(t, report.Faults)
	a, d := toLongs(in), toLongs(out[1])
	wide := func(lo, hi uint64) *big.Int {
		x := new(big.Int).SetUint64(hi)
		return x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(lo))
	}
	mod := new(big.Int).Lsh(big.NewInt(1), 128)
	for i := range 64 {
		x, y := wide(a[4*i], a[4*i+1]), wide(a[4*i+2], a[4*i+3])
		require.Zero(t, wide(d[4*i], d[4*i+1]).Cmp(new(big.Int).Mod(new(big.Int).Add(x, y), mod)))
		require.Zero(t, wide(d[4*i+2], d[4*i+3]).Cmp(new(big.Int).Mod(new(big.Int).Sub(x, y), mod)))
	}
}

// carryless is 64 bits, from one on, of the product of two polynomials over GF(2)
// that clmad adds to: long multiplication without carries.
func carryless(from uint) func(v []uint64) uint64 {
	return func(v []uint64) uint64 {
		product := new(big.Int)
		for i := range 64 {
			if v[1]>>i&1 != 0 {
				product.Xor(product, new(big.Int).Lsh(new(big.Int).SetUint64(v[0]), uint(i)))
			}
		}
		product.Rsh(product, from)
		return product.And(product, new(big.Int).SetUint64(1<<64-1)).Uint64() ^ v[2]
	}
}
