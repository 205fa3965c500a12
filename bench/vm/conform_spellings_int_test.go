package vm_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// fits is an integer's bits: saturated by .sat, wrapped without.
func (s spelling) fits(x *big.Int, n int, signed bool) uint64 {
	if s.has("relu") && x.Sign() < 0 {
		return 0
	}
	if s.has("sat") {
		return clamped(x, n, signed)
	}
	return wrapped(x, n)
}

// integerSum is the value of integer arithmetic on operands of a type, and the
// number that a carry of 1 adds to it.
func integerSum(s spelling, x []*big.Int, n int) (sum *big.Int, carry int64) {
	y := new(big.Int)
	part := func() *big.Int { // of a product
		p := new(big.Int).Mul(x[0], x[1])
		switch {
		case s.has("hi"):
			return p.Rsh(p, uint(n))
		case s.has("wide"):
			return p
		}
		return new(big.Int).SetUint64(wrapped(p, n))
	}
	switch s.name {
	case "add", "addc":
		return y.Add(x[0], x[1]), 1
	case "sub", "subc":
		return y.Sub(x[0], x[1]), -1
	case "mul":
		return part(), 0
	case "mad", "madc":
		return y.Add(part(), x[2]), 1
	case "div":
		if x[1].Sign() == 0 {
			return big.NewInt(-1), 0 // what the hardware gives
		}
		return y.Quo(x[0], x[1]), 0
	case "rem":
		if x[1].Sign() == 0 {
			return x[0], 0
		}
		return y.Rem(x[0], x[1]), 0
	case "abs":
		return y.Abs(x[0]), 0
	case "neg":
		return y.Neg(x[0]), 0
	case "min", "max":
		if x[0].Cmp(x[1]) < 0 == (s.name == "min") {
			return x[0], 0
		}
		return x[1], 0
	case "sad":
		return y.Add(x[2], y.Abs(y.Sub(x[0], x[1]))), 0
	}
	return nil, 0
}

// integerReference is what arithmetic on integers computes.
func integerReference(s spelling) []instruction {
	typ, parts := packed(s.types[0])
	n, sign, ok := integerType(typ)
	if sum, _ := integerSum(s, []*big.Int{{}, {}, {}}, n); !ok || sum == nil {
		return nil
	}
	if s.has("cc") || strings.HasSuffix(s.name, "c") {
		return carries(s, n)
	}
	wide := n
	if s.has("wide") {
		wide = 2 * n
	}
	one := func(v []uint64) uint64 {
		x := make([]*big.Int, 3)
		for i := range v {
			x[i] = number(v[i], n, sign)
		}
		if len(v) == 3 {
			x[2] = number(v[2], wide, sign)
		}
		sum, _ := integerSum(s, x, n)
		return s.fits(sum, wide, sign)
	}
	ins := instruction{dst: parts * wide, want: one}
	if parts > 1 {
		ins.want = each(n, parts, one)
	}
	for i := range s.operands - 1 {
		ins.src = append(ins.src, parts*n)
		if i == 2 {
			ins.src[i] = wide
		}
	}
	return []instruction{ins}
}

// carries are an instruction's result and its carry, with a carry that comes in.
func carries(s spelling, n int) []instruction {
	set, get := "add.cc.u32 %x, %x, -1;\n", "addc.u32 %x, 0, 0; cvt.u64.u32 %dq, %x;\n"
	if strings.HasPrefix(s.name, "sub") {
		set, get = "sub.cc.u32 %x, 0, %x;\n", "subc.u32 %x, 0, 0; neg.s32 %x, %x; cvt.u64.u32 %dq, %x;\n"
	}
	ins := instruction{dst: n}
	for range s.operands - 1 {
		ins.src = append(ins.src, n)
	}
	ins.before = fmt.Sprintf("selp.u32 %%x, 1, 0, %%sp%d; ", len(ins.src)) + set
	ins.src = append(ins.src, 1)
	// The sum of the operands as they are without signs, which the carry is of.
	total := func(v []uint64) *big.Int {
		x := make([]*big.Int, 3)
		for i := range v[:len(v)-1] {
			x[i] = number(v[i], n, s.types[0][0] == 's' && i < 2 && s.has("hi"))
		}
		if s.has("hi") { // the product's upper half, as bits
			p := new(big.Int).Mul(x[0], x[1])
			high := new(big.Int).SetUint64(wrapped(p.Rsh(p, uint(n)), n))
			return withCarry(s, high.Add(high, x[2]), 1, v[len(v)-1])
		}
		sum, carry := integerSum(s, x, n)
		return withCarry(s, sum, carry, v[len(v)-1])
	}
	ins.want = func(v []uint64) uint64 { return wrapped(total(v), n) }
	list := []instruction{ins}
	if s.has("cc") {
		out := ins
		out.after = get
		out.want = func(v []uint64) uint64 {
			x := total(v)
			return yes(x.Sign() < 0 || x.BitLen() > n)
		}
		list = append(list, out)
	}
	return list
}

// withCarry adds the carry that came in where the instruction takes it.
func withCarry(s spelling, sum *big.Int, carry int64, in uint64) *big.Int {
	if strings.HasSuffix(s.name, "c") && in != 0 {
		return sum.Add(sum, big.NewInt(carry))
	}
	return sum
}

// TestIntegerSpellings: every spelling of arithmetic on integers.
func TestIntegerSpellings(t *testing.T) {
	runSpellings(t, append([]string{"sad"}, arithmetic...), integerReference, func(s spelling) bool {
		typ, _ := packed(s.types[0])
		_, float := formatOf[typ]
		return float
	})
}

// bitsReference is what instructions on bits compute, those on few bytes, and
// multiplication of 24 bits.
func bitsReference(s spelling) []instruction {
	var n int
	if len(s.types) > 0 {
		n, _, _ = integerType(s.types[0])
	}
	signs := func(i int) bool { return s.types[i][0] == 's' }
	switch s.name {
	case "mul24", "mad24":
		ins := instruction{dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			p := new(big.Int).Mul(number(v[0]&0xffffff, 24, signs(0)), number(v[1]&0xffffff, 24, signs(0)))
			if s.has("hi") {
				p.Rsh(p, 16)
			}
			if s.name == "mul24" {
				return wrapped(p, 32)
			}
			p = number(wrapped(p, 32), 32, signs(0))
			return s.fits(p.Add(p, number(v[2], 32, signs(0))), 32, true)
		}}
		if s.name == "mad24" {
			ins.src = append(ins.src, 32)
		}
		return []instruction{ins}
	case "dp4a", "dp2a":
		return []instruction{{dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			sum := new(big.Int).SetUint64(v[2])
			wide, from := 32/(map[string]int{"dp4a": 4, "dp2a": 2}[s.name]), 0
			if s.has("hi") {
				from = 16
			}
			for i := range 32 / wide {
				a := number(v[0]>>(wide*i)&(1<<wide-1), wide, signs(0))
				sum.Add(sum, a.Mul(a, number(v[1]>>(from+8*i)&0xff, 8, signs(1))))
			}
			return wrapped(sum, 32)
		}}}
	case "szext":
		return []instruction{{dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
			n := v[1] & 31
			if s.has("clamp") {
				n = min(v[1], 32)
			}
			if n == 0 {
				return 0
			}
			return wrapped(number(v[0]&(1<<n-1), int(n), signs(0)), 32)
		}}}
	case "shr":
		return []instruction{{dst: n, src: []int{n, 32}, want: func(v []uint64) uint64 {
			return wrapped(new(big.Int).Rsh(number(v[0], n, signs(0)), uint(min(v[1], 200))), n)
		}}}
	case "bfind":
		return []instruction{{dst: 32, src: []int{n}, want: func(v []uint64) uint64 {
			x := number(v[0], n, signs(0))
			if x.Sign() < 0 {
				x.Not(x)
			}
			if x.Sign() != 0 && s.has("shiftamt") {
				return uint64(n - x.BitLen())
			}
			return uint64(x.BitLen() - 1)
		}}}
	case "prmt":
		return []instruction{{dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			return permuted(s, longs(v[1]<<32|v[0]), v[2])
		}}}
	case "and", "or", "xor", "not":
		return logic(s, n)
	case "lop3":
		return tableLookup(s)
	}
	return nil
}

// permuted are the bytes that prmt picks.
func permuted(s spelling, all []byte, pick uint64) uint64 {
	var out uint64
	at := int(pick & 3)
	for i := range 4 {
		k := at
		sign := false
		switch s.one("f4e", "b4e", "rc8", "ecl", "ecr", "rc16") {
		case "f4e":
			k = at + i
		case "b4e":
			k = (at - i) & 7
		case "ecl":
			k = max(at, i)
		case "ecr":
			k = min(at, i)
		case "rc16":
			k = at&1*2 + i&1
		case "":
			k = int(pick >> (4 * i) & 7)
			sign = pick>>(4*i)&8 != 0
		}
		b := all[k]
		if sign {
			b = byte(int8(b) >> 7)
		}
		out |= uint64(b) << (8 * i)
	}
	return out
}

// logic is and, or, xor and not, of predicates too.
func logic(s spelling, n int) []instruction {
	if s.types[0] == "pred" {
		n = 1
	}
	ins := instruction{dst: n, src: []int{n, n}, want: func(v []uint64) uint64 {
		if n == 1 {
			for i := range v {
				v[i] = yes(v[i] != 0)
			}
		}
		switch s.name {
		case "and":
			return v[0] & v[1]
		case "or":
			return v[0] | v[1]
		case "xor":
			return v[0] ^ v[1]
		}
		return ^v[0]
	}}
	if s.name == "not" {
		ins.src = ins.src[:1]
	}
	return []instruction{ins}
}

// tableLookup is lop3 with every table of eight bits, or with some where a
// predicate says whether there is a bit.
func tableLookup(s spelling) []instruction {
	var list []instruction
	for lut := range 256 {
		look := func(v []uint64) uint64 {
			var out uint64
			for i := range 32 {
				out |= uint64(lut) >> (bitAt(v[0], i)<<2 | bitAt(v[1], i)<<1 | bitAt(v[2], i)) & 1 << i
			}
			return out
		}
		ins := instruction{dst: 32, src: []int{32, 32, 32}, consts: fmt.Sprintf(", %#x", lut), want: look}
		how := s.one("or", "and")
		if how == "" {
			list = append(list, ins)
			continue
		}
		if lut%15 != 0 {
			continue
		}
		for q := range uint64(2) {
			ins.dst, ins.consts = 33, fmt.Sprintf(", %#x, %d", lut, q)
			ins.want = func(v []uint64) uint64 {
				out := look(v)
				p := yes(out != 0)
				if how == "or" {
					p |= q
				} else {
					p &= q
				}
				return out | p<<32
			}
			list = append(list, ins)
		}
	}
	return list
}

// TestBitSpellings: every spelling of instructions on bits and on few bytes.
func TestBitSpellings(t *testing.T) {
	names := []string{"mul24", "mad24", "dp4a", "dp2a", "szext", "shr", "bfind", "prmt", "and", "or", "xor", "not", "lop3"}
	runSpellings(t, names, bitsReference, func(s spelling) bool { return false })
}
