package vm

import (
	"math/bits"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// What the integer instructions compute in one lane. Values narrower than 64
// bits come and go zero-extended.

func extend(v uint64, width int) int64 { return int64(v<<(64-width)) >> (64 - width) }

func low(v uint64, width int) uint64 { return v << (64 - width) >> (64 - width) }

// integer is the lane function of add, sub, mul.lo, min, max and the like.
func integer(op string, t ptx.Type) laneFn {
	n, signed := t.Bits(), t.Signed()
	switch op {
	case "add":
		return func(a, b, _ uint64) uint64 { return low(a+b, n) }
	case "sub":
		return func(a, b, _ uint64) uint64 { return low(a-b, n) }
	case "mul.lo":
		return func(a, b, _ uint64) uint64 { return low(a*b, n) }
	case "mul.hi":
		return func(a, b, _ uint64) uint64 { return mulHigh(a, b, n, signed) }
	case "mad.lo":
		return func(a, b, c uint64) uint64 { return low(a*b+c, n) }
	case "mad.hi":
		return func(a, b, c uint64) uint64 { return low(mulHigh(a, b, n, signed)+c, n) }
	case "mul.wide":
		if signed {
			return func(a, b, _ uint64) uint64 { return low(uint64(extend(a, n)*extend(b, n)), 2*n) }
		}
		return func(a, b, _ uint64) uint64 { return low(a*b, 2*n) }
	case "mad.wide":
		if signed {
			return func(a, b, c uint64) uint64 { return low(uint64(extend(a, n)*extend(b, n))+c, 2*n) }
		}
		return func(a, b, c uint64) uint64 { return low(a*b+c, 2*n) }
	case "min", "max":
		greater := op == "max"
		if signed {
			return func(a, b, _ uint64) uint64 {
				if (extend(a, n) > extend(b, n)) == greater {
					return a
				}
				return b
			}
		}
		return func(a, b, _ uint64) uint64 {
			if (a > b) == greater {
				return a
			}
			return b
		}
	case "div":
		return func(a, b, _ uint64) uint64 { q, _ := divide(a, b, n, signed); return q }
	case "rem":
		return func(a, b, _ uint64) uint64 { _, r := divide(a, b, n, signed); return r }
	}
	return nil
}

// mulHigh is the upper half of a product of n-bit values.
func mulHigh(a, b uint64, n int, signed bool) uint64 {
	if n < 64 {
		if signed {
			return low(uint64(extend(a, n)*extend(b, n))>>n, n)
		}
		return low(a*b>>n, n)
	}
	hi, _ := bits.Mul64(a, b)
	if signed {
		if int64(a) < 0 {
			hi -= b
		}
		if int64(b) < 0 {
			hi -= a
		}
	}
	return hi
}

// divide is the quotient and the remainder. PTX leaves division by zero to the
// machine: NVIDIA's hardware gives all ones and the dividend.
func divide(a, b uint64, n int, signed bool) (q, r uint64) {
	if b == 0 {
		return low(^uint64(0), n), a
	}
	if !signed {
		return a / b, a % b
	}
	x, y := extend(a, n), extend(b, n)
	if y == -1 {
		return low(-a, n), 0 // also where the quotient overflows
	}
	return low(uint64(x/y), n), low(uint64(x%y), n)
}

// madHiSat32 is mad.hi.sat.s32.
func madHiSat32(a, b, c uint64) uint64 {
	return clamp32(extend(a, 32)*extend(b, 32)>>32 + extend(c, 32))
}

func clamp32(v int64) uint64 {
	return uint64(uint32(int32(max(min(v, 1<<31-1), -1<<31))))
}

// saturating is add or sub, clamped to what a type of up to 32 bits holds.
func saturating(op string, t ptx.Type) laneFn {
	n := t.Bits()
	least, most := int64(0), int64(1)<<n-1
	value := func(v uint64) int64 { return int64(low(v, n)) }
	if t.Signed() {
		least, most = -1<<(n-1), 1<<(n-1)-1
		value = func(v uint64) int64 { return extend(v, n) }
	}
	return func(a, b, _ uint64) uint64 {
		y := value(b)
		if op == "sub" {
			y = -y
		}
		return low(uint64(min(max(value(a)+y, least), most)), n)
	}
}

// part is the type of the integers that a type packs into 32 bits, or the type
// itself.
func part(t ptx.Type) ptx.Type {
	switch t {
	case ptx.U16x2:
		return ptx.U16
	case ptx.S16x2:
		return ptx.S16
	case ptx.U8x4:
		return ptx.U8
	case ptx.S8x4:
		return ptx.S8
	}
	return t
}

// packed applies a function of a type's parts to each of them.
func packed(f laneFn, t ptx.Type) laneFn {
	switch part(t).Bits() {
	case t.Bits():
		return f
	case 16:
		return halves(f)
	}
	return func(a, b, c uint64) uint64 {
		var v uint64
		for i := 0; i < 32; i += 8 {
			v |= f(a>>i&0xff, b>>i&0xff, c>>i&0xff) & 0xff << i
		}
		return v
	}
}

// halves applies a 16-bit lane function to both halves of 32 bits.
func halves(f laneFn) laneFn {
	return func(a, b, c uint64) uint64 {
		return f(a&0xffff, b&0xffff, c&0xffff)&0xffff | f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff)<<16&0xffff0000
	}
}

func unary(op string, t ptx.Type) laneFn {
	n := t.Bits()
	switch op {
	case "abs":
		return func(a, _, _ uint64) uint64 {
			if extend(a, n) < 0 {
				return low(-a, n)
			}
			return a
		}
	case "neg":
		return func(a, _, _ uint64) uint64 { return low(-a, n) }
	case "not":
		return func(a, _, _ uint64) uint64 { return low(^a, n) }
	case "cnot":
		return func(a, _, _ uint64) uint64 {
			if a == 0 {
				return 1
			}
			return 0
		}
	case "popc":
		return func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }
	case "clz":
		return func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a) - (64 - n)) }
	case "brev":
		return func(a, _, _ uint64) uint64 { return bits.Reverse64(a) >> (64 - n) }
	}
	return nil
}

// bfind finds the highest bit that is no copy of the sign; -1 if there is none.
func bfind(t ptx.Type, shift bool) laneFn {
	n, signed := t.Bits(), t.Signed()
	return func(a, _, _ uint64) uint64 {
		if signed && extend(a, n) < 0 {
			a = low(^a, n)
		}
		if a == 0 {
			return 0xffffffff
		}
		p := bits.Len64(a) - 1
		if shift {
			p = n - 1 - p
		}
		return uint64(p)
	}
}

// shift is shl and shr. Counts beyond the width count as the width.
func shift(op string, t ptx.Type) laneFn {
	n := t.Bits()
	switch {
	case op == "shl":
		return func(a, b, _ uint64) uint64 {
			if b >= uint64(n) {
				return 0
			}
			return low(a<<b, n)
		}
	case t.Signed():
		return func(a, b, _ uint64) uint64 { return low(uint64(extend(a, n)>>min(b, 63)), n) }
	}
	return func(a, b, _ uint64) uint64 {
		if b >= uint64(n) {
			return 0
		}
		return a >> b
	}
}

// funnel is shf: the upper (left) or lower (right) 32 bits of b:a shifted.
func funnel(left, wrap bool) laneFn {
	return func(a, b, c uint64) uint64 {
		if wrap {
			c &= 31
		} else {
			c = min(c, 32)
		}
		v := b<<32 | a
		if left {
			return v << c >> 32 & 0xffffffff
		}
		return v >> c & 0xffffffff
	}
}

// bfe extracts a bit field; one that reaches past the top is filled with the
// sign.
func bfe(t ptx.Type) laneFn {
	n := uint64(t.Bits())
	return func(a, b, c uint64) uint64 {
		pos, length := b&0xff, c&0xff
		if length == 0 {
			return 0
		}
		sign := uint64(0)
		if t.Signed() {
			sign = a >> min(pos+length-1, n-1) & 1
		}
		var v uint64
		if pos < n {
			v = a >> pos
		}
		keep := min(length, n)
		if pos+length > n && pos < n {
			keep = n - pos
		} else if pos >= n {
			keep = 0
		}
		if keep < 64 {
			v &= 1<<keep - 1
			if sign != 0 {
				v |= ^uint64(0) << keep
			}
		}
		return low(v, int(n))
	}
}

// bfi inserts the low bits of a into b.
func bfi(a, b, pos, length uint64, n uint64) uint64 {
	pos, length = pos&0xff, length&0xff
	if pos >= n || length == 0 {
		return b
	}
	length = min(length, n-pos)
	mask := (^uint64(0) >> (64 - length)) << pos
	return b&^mask | a<<pos&mask
}

// lop3 is any function of three bits, by its truth table.
func lop3(table uint64) laneFn {
	return func(a, b, c uint64) uint64 { return lop3Word(a, b, c, table) & 0xffffffff }
}

func lop3Word(a, b, c, table uint64) uint64 {
	var v uint64
	for i := range 8 {
		if table>>i&1 == 0 {
			continue
		}
		x, y, z := a, b, c
		if i&4 == 0 {
			x = ^a
		}
		if i&2 == 0 {
			y = ^b
		}
		if i&1 == 0 {
			z = ^c
		}
		v |= x & y & z
	}
	return v
}

// prmt picks four of the eight bytes of b:a.
func prmt(mode string) laneFn {
	pick := func(v uint64, n uint64) uint64 { return v >> (8 * (n & 7)) & 0xff }
	return func(a, b, c uint64) uint64 {
		v := b<<32 | a
		var out uint64
		for i := range uint64(4) {
			var x uint64
			s := c & 3
			switch mode {
			case "f4e":
				x = pick(v, s+i)
			case "b4e":
				x = pick(v, s-i)
			case "rc8":
				x = pick(v, s)
			case "ecl":
				x = pick(v, max(i, s))
			case "ecr":
				x = pick(v, min(i, s))
			case "rc16":
				x = pick(v, s<<1&2+i&1)
			default:
				sel := c >> (4 * i) & 15
				x = pick(v, sel)
				if sel&8 != 0 {
					x = -(x >> 7) & 0xff
				}
			}
			out |= x << (8 * i)
		}
		return out
	}
}

// fns finds the n-th set bit from a base: forward for n > 0, backward for
// n < 0, the base itself for 0.
func fns(mask, base, n uint64) uint64 {
	b, count := int(base&31), int32(n)
	step := 1
	if count < 0 {
		step, count = -1, -count
	}
	if count == 0 {
		if mask>>b&1 != 0 {
			return uint64(b)
		}
		return 0xffffffff
	}
	for ; b >= 0 && b < 32; b += step {
		if mask>>b&1 != 0 {
			if count--; count == 0 {
				return uint64(b)
			}
		}
	}
	return 0xffffffff
}

// szext extends the low b bits of a.
func szext(signed, wrap bool) laneFn {
	return func(a, b, _ uint64) uint64 {
		if wrap {
			b &= 31
		}
		switch {
		case b == 0:
			return 0
		case b >= 32:
			return a
		case signed:
			return uint64(uint32(extend(a, int(b))))
		}
		return low(a, int(b))
	}
}

// bmsk makes b ones from bit a up.
func bmsk(wrap bool) laneFn {
	return func(a, b, _ uint64) uint64 {
		if wrap {
			a, b = a&31, b&31
		}
		if a >= 32 {
			return 0
		}
		return (1<<min(b, 32) - 1) << a & 0xffffffff
	}
}

// dot is dp4a and dp2a: a sum of products of bytes with bytes or halves.
func dot(at, bt ptx.Type, words, high int) laneFn {
	get := func(v uint64, i, width int, signed bool) int64 {
		x := v >> (i * width)
		if signed {
			return extend(x, width)
		}
		return int64(low(x, width))
	}
	return func(a, b, c uint64) uint64 {
		sum := int64(int32(c))
		for i := range words {
			wide := 8
			if words == 2 {
				wide = 16
			}
			sum += get(a, i, wide, at.Signed()) * get(b, i+high, 8, bt.Signed())
		}
		return uint64(uint32(sum))
	}
}

// sad is c + |a - b|.
func sad(t ptx.Type) laneFn {
	n := t.Bits()
	return func(a, b, c uint64) uint64 {
		less := a < b
		if t.Signed() {
			less = extend(a, n) < extend(b, n)
		}
		if less {
			a, b = b, a
		}
		return low(c+a-b, n)
	}
}

// mul24 multiplies the low 24 bits, keeping the low or high 32 of 48.
func mul24(signed, high bool) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 {
		var p uint64
		if signed {
			p = uint64(extend(a, 24) * extend(b, 24))
		} else {
			p = low(a, 24) * low(b, 24)
		}
		if high {
			p >>= 16
		}
		return p & 0xffffffff
	}
}

// carrying is add.cc, subc and the like: a result with a carry out. The carry
// of a difference is a borrow.
func carrying(op, part string, t ptx.Type) func(a, b, c, carry uint64) (v, out uint64) {
	n := t.Bits()
	sum := func(a, b, carry uint64) (uint64, uint64) {
		if n == 64 {
			return bits.Add64(a, b, carry)
		}
		s := a + b + carry
		return low(s, n), s >> n & 1
	}
	switch op {
	case "add", "addc":
		return func(a, b, _, carry uint64) (uint64, uint64) { return sum(a, b, carry) }
	case "sub", "subc":
		return func(a, b, _, carry uint64) (uint64, uint64) {
			if n == 64 {
				return bits.Sub64(a, b, carry)
			}
			s := a - b - carry
			return low(s, n), s >> n & 1
		}
	}
	return func(a, b, c, carry uint64) (uint64, uint64) {
		p := low(a*b, n)
		if part == "hi" {
			p = mulHigh(a, b, n, t.Signed())
		}
		return sum(p, c, carry)
	}
}

// carryless is one half of the 128-bit product of polynomials over GF(2).
func carryless(a, b uint64, high bool) (r uint64) {
	for i := range 64 {
		if b>>i&1 == 0 {
			continue
		}
		if high {
			r ^= a >> 1 >> (63 - i)
		} else {
			r ^= a << i
		}
	}
	return r
}
