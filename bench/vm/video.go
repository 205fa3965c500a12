package vm

import (
	"math/big"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// The video instructions: PTX ISA 9.7.18. Their operands are bytes, halves or
// words that selectors pick.

func init() {
	for _, op := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"} {
		decoders[op] = func(d *decoder) { d.video(op) }
		if op != "vshl" && op != "vshr" {
			decoders[op+"2"] = func(d *decoder) { d.videoVector(op, 2) }
			decoders[op+"4"] = func(d *decoder) { d.videoVector(op, 4) }
		}
	}
	decoders["vavrg2"] = func(d *decoder) { d.videoVector("vavrg", 2) }
	decoders["vavrg4"] = func(d *decoder) { d.videoVector("vavrg", 4) }
	decoders["vmad"] = (*decoder).vmad
}

// selection is a part of a word: bits from a place on.
type selection struct {
	at, width int
	signed    bool
}

// get extracts the part, extended by its sign.
func (s selection) get(v uint64) int64 {
	if s.signed {
		return extend(v>>s.at, s.width)
	}
	return int64(low(v>>s.at, s.width))
}

// clamp is the nearest value that the part can hold.
func (s selection) clamp(v int64) int64 {
	if s.signed {
		return max(min(v, 1<<(s.width-1)-1), -1<<(s.width-1))
	}
	return max(min(v, 1<<s.width-1), 0)
}

// put replaces the part of a word.
func (s selection) put(word uint64, v int64) uint64 {
	mask := low(^uint64(0), s.width) << s.at
	return word&^mask | uint64(v)<<s.at&mask
}

// selector reads an operand's selector: .b0 to .b3, .h0, .h1 or none.
func (d *decoder) selector(o *ptx.Operand, t ptx.Type) selection {
	s := selection{0, 32, t.Signed()}
	m := o.Member.String()
	if m == "" {
		return s
	}
	size := map[byte]int{'b': 8, 'h': 16}[m[0]]
	if size == 0 || len(m) != 2 || m[1] < '0' || int(m[1]-'0')*size >= 32 {
		d.refuse("selector .%s: want .b0 to .b3, .h0 or .h1", m)
	}
	return selection{int(m[1]-'0') * size, size, t.Signed()}
}

// plainOperands are the operands without selectors and signs.
func (d *decoder) plainOperands() {
	ops := append([]ptx.Operand{}, d.src.Operands...)
	for i := range ops {
		ops[i].Member, ops[i].Minus = 0, false
	}
	src := *d.src
	src.Operands = ops
	d.src = &src
}

// videoFunction is a video operation on exact values; 34 bits hold the result,
// or its bits from 32 on only matter to .sat.
func (d *decoder) videoFunction(op string) func(a, b int64) int64 {
	switch op {
	case "vadd":
		return func(a, b int64) int64 { return a + b }
	case "vsub":
		return func(a, b int64) int64 { return a - b }
	case "vabsdiff":
		return func(a, b int64) int64 { return max(a-b, b-a) }
	case "vmin":
		return func(a, b int64) int64 { return min(a, b) }
	case "vmax":
		return func(a, b int64) int64 { return max(a, b) }
	case "vavrg":
		return func(a, b int64) int64 {
			if a+b >= 0 {
				return (a + b + 1) >> 1
			}
			return (a + b) >> 1
		}
	case "vset":
		cmp := comparison(d.take(comparisons...), ptx.S64, false)
		return func(a, b int64) int64 { return int64(cmp(uint64(a), uint64(b), 0)) }
	}
	wrap := d.take("clamp", "wrap") == "wrap"
	return func(a, b int64) int64 {
		if wrap {
			b &= 31
		}
		b = min(b, 32)
		if op == "vshr" {
			return a >> b
		}
		v := a << b
		if v>>b != a { // by 32: too large either way, with no low bits
			return max(min(a, 1), -1) << 62
		}
		return v
	}
}

// video is an operation on one value each.
func (d *decoder) video(op string) {
	f := d.videoFunction(op)
	sat, second := d.has("sat"), d.take("add", "min", "max")
	dt := ptx.U32
	if op != "vset" {
		dt = d.typ()
	}
	at, bt := d.typ(), d.typ()
	ops := d.operands(3, 4)
	to, a, b := d.selector(&ops[0], dt), d.selector(&ops[1], at), d.selector(&ops[2], bt)
	whole := selection{0, 32, dt.Signed()}
	lane := func(x, y, z uint64) uint64 {
		v := f(a.get(x), b.get(y))
		if sat {
			v = to.clamp(v)
		}
		switch c := whole.get(z); second {
		case "add":
			v += c
		case "min":
			v = min(v, c)
		case "max":
			v = max(v, c)
		}
		return to.put(z, v)
	}
	d.plainOperands()
	types := []ptx.Type{ptx.U32, ptx.U32, ptx.U32}
	d.pure(lane, nil, ptx.U32, types[:len(ops)-1]...)
}

// vmad multiplies and adds.
func (d *decoder) vmad() {
	plusOne, sat := d.has("po"), d.has("sat")
	shift := uint(0)
	switch d.take("shr7", "shr15") {
	case "shr7":
		shift = 7
	case "shr15":
		shift = 15
	}
	d.typ()
	at, bt := d.typ(), d.typ()
	ops := d.operands(4, 4)
	a, b := d.selector(&ops[1], at), d.selector(&ops[2], bt)
	negProduct, negC := ops[1].Minus != ops[2].Minus, ops[3].Minus
	final := selection{0, 32, at.Signed() || bt.Signed() || negProduct || negC}
	lane := func(x, y, z uint64) uint64 {
		v := new(big.Int).Mul(big.NewInt(a.get(x)), big.NewInt(b.get(y)))
		switch {
		case plusOne:
			v.Add(v, big.NewInt(1))
		case negProduct:
			v.Neg(v)
		case negC: // ~c + 1, in 32 bits before the extension
			z = ^z
			v.Add(v, big.NewInt(1))
		}
		v.Add(v, big.NewInt(final.get(z)))
		v.Rsh(v, shift)
		if sat {
			least, most := big.NewInt(final.clamp(-1<<40)), big.NewInt(final.clamp(1<<40))
			if v.Cmp(least) < 0 {
				v = least
			}
			if v.Cmp(most) > 0 {
				v = most
			}
		}
		return new(big.Int).And(v, big.NewInt(1<<32-1)).Uint64()
	}
	d.plainOperands()
	d.pure(lane, nil, ptx.U32, ptx.U32, ptx.U32, ptx.U32)
}

// videoVector is an operation on two halves or four bytes, picked from both
// sources together.
func (d *decoder) videoVector(op string, n int) {
	f := d.videoFunction(op)
	sat, accumulate := d.has("sat"), d.has("add")
	dt := ptx.U32
	if op != "vset" {
		dt = d.typ()
	}
	at, bt := d.typ(), d.typ()
	ops := d.operands(4, 4)
	width := 32 / n
	parts := func(o *ptx.Operand, t ptx.Type, first int) []selection {
		all := make([]selection, n)
		for i := range all {
			all[i] = selection{(first + i) * width, width, t.Signed()}
		}
		digits := d.digits(o, n, 2*n)
		if digits != "" && len(digits) != n {
			d.refuse("selector .%s: want %d digits", o.Member, n)
		}
		for i := range len(digits) {
			all[n-1-i].at = int(digits[i]-'0') * width
		}
		return all
	}
	a, b := parts(&ops[1], at, 0), parts(&ops[2], bt, n)
	to := make([]selection, 0, n) // the parts that the mask names
	mask := d.digits(&ops[0], n, n)
	for i := range n {
		if mask == "" || strings.IndexByte(mask, byte('0'+i)) >= 0 {
			to = append(to, selection{i * width, width, dt.Signed()})
		}
	}
	d.plainOperands()
	d.pure(func(x, y, z uint64) uint64 {
		v := y<<32 | x
		for _, s := range to {
			i := s.at / width
			r := f(a[i].get(v), b[i].get(v))
			if sat {
				r = s.clamp(r)
			}
			if accumulate {
				z = low(z+uint64(r), 32)
			} else {
				z = s.put(z, r)
			}
		}
		return z
	}, nil, ptx.U32, ptx.U32, ptx.U32, ptx.U32)
}

// digits are a selector's digits, each below most.
func (d *decoder) digits(o *ptx.Operand, n, most int) string {
	m := o.Member.String()
	if m == "" {
		return ""
	}
	letter := map[int]byte{2: 'h', 4: 'b'}[n]
	ok := m[0] == letter && len(m) > 1 && len(m) <= n+1
	for _, c := range m[1:] {
		ok = ok && c >= '0' && int(c-'0') < most
	}
	if !ok {
		d.refuse("selector .%s: want .%c and up to %d digits below %d", m, letter, n, most)
	}
	return m[1:]
}
