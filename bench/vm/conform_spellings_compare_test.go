package vm_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// compares says whether a comparison holds for numbers as Cmp or, where they have no
// order, NaN gives it.
func compares(how string, order int, unordered bool) bool {
	switch how {
	case "num":
		return !unordered
	case "nan":
		return unordered
	}
	if unordered {
		return len(how) == 3 // equ, neu, ...
	}
	switch how[:2] {
	case "eq":
		return order == 0
	case "ne":
		return order != 0
	case "lt", "lo":
		return order < 0
	case "le", "ls":
		return order <= 0
	case "gt", "hi":
		return order > 0
	}
	return order >= 0
}

// comparison compares two operands of a type by a spelling.
func comparison(s spelling, typ string) func(a, b uint64) bool {
	how := s.mods[0]
	if f, ok := formatOf[typ]; ok {
		return func(a, b uint64) bool {
			if s.has("ftz") {
				a, b = f.flush(a), f.flush(b)
			}
			x, y := f.value(a), f.value(b)
			order := 0
			if x < y {
				order = -1
			} else if x > y {
				order = 1
			}
			return compares(how, order, math.IsNaN(x) || math.IsNaN(y))
		}
	}
	n, sign, _ := integerType(typ)
	return func(a, b uint64) bool { return compares(how, number(a, n, sign).Cmp(number(b, n, sign)), false) }
}

// truth is what set gives for true in a type.
func truth(typ string) uint64 {
	if f, ok := formatOf[typ]; ok {
		return f.one()
	}
	return ^uint64(0)
}

// compareReference is what set, setp, slct and selp compute.
func compareReference(s spelling) []instruction {
	last := s.types[len(s.types)-1]
	typ, parts := packed(last)
	bits := map[string]int{"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[typ]
	if bits == 0 {
		bits, _, _ = integerType(typ)
	}
	if s.name == "slct" || s.name == "selp" {
		return choice(s, typ)
	}
	holds := comparison(s, typ)
	combine := s.one("and", "or", "xor")
	ins := instruction{src: []int{bits * parts, bits * parts}, values: compared(typ, parts)}
	if combine != "" {
		ins.src = append(ins.src, 1)
	}
	// One bit for each pair of values.
	outcome := func(v []uint64) uint64 {
		var out uint64
		for i := range parts {
			a, b := v[0]>>(i*bits), v[1]>>(i*bits)
			if bits < 64 {
				a, b = a&(1<<bits-1), b&(1<<bits-1)
			}
			c := yes(holds(a, b))
			switch combine {
			case "and":
				c &= yes(v[2] != 0)
			case "or":
				c |= yes(v[2] != 0)
			case "xor":
				c ^= yes(v[2] != 0)
			}
			out |= c << i
		}
		return out
	}
	if s.name == "setp" {
		ins.dst, ins.want = parts, outcome
		list := []instruction{ins}
		if parts == 1 && !slices.Contains([]string{"f16", "bf16"}, typ) { // with the opposite beside it
			ins.dst = 2
			ins.want = func(v []uint64) uint64 {
				opposite := spelling{name: "setp", mods: s.mods}
				p := outcome(v)
				q := yes(!comparison(opposite, typ)(v[0], v[1]))
				switch combine {
				case "and":
					q &= yes(v[2] != 0)
				case "or":
					q |= yes(v[2] != 0)
				case "xor":
					q ^= yes(v[2] != 0)
				}
				return p | q<<1
			}
			list = append(list, ins)
		}
		return list
	}
	to, n := packed(s.types[0])
	ins.dst, _, _ = integerType(to)
	if f, ok := formatOf[to]; ok {
		ins.dst = f.bits
	}
	ins.dst *= n
	ins.want = func(v []uint64) uint64 {
		out := outcome(v)
		if parts == 1 {
			return out * truth(to)
		}
		one := truth(to) & 0xffff // of each half
		return out&1*one | out>>1*one<<16
	}
	return []instruction{ins}
}

// choice is selp and slct.
func choice(s spelling, by string) []instruction {
	n, _, ok := integerType(s.types[0])
	if !ok {
		n = formatOf[s.types[0]].bits
	}
	ins := instruction{dst: n, src: []int{n, n, 1}, want: func(v []uint64) uint64 {
		if v[2] != 0 {
			return v[0]
		}
		return v[1]
	}}
	if s.name == "slct" {
		ins.src[2], ins.values = 32, floatValues(single)
		ins.want = func(v []uint64) uint64 {
			c := v[2]
			if s.has("ftz") {
				c = single.flush(c)
			}
			if by == "f32" && single.value(c) >= 0 || by == "s32" && int32(c) >= 0 {
				return v[0]
			}
			return v[1]
		}
	}
	return []instruction{ins}
}

// TestCompareSpellings: every spelling of comparisons and choices.
func TestCompareSpellings(t *testing.T) {
	runSpellings(t, []string{"set", "setp", "selp", "slct"}, compareReference, func(s spelling) bool { return strings.HasSuffix(s.op, "x4") })
}

// compared are operands of comparisons: a third of them are few values, which are
// often the same.
func compared(typ string, parts int) func(r *rand.Rand, bits int) uint64 {
	f, float := formatOf[typ]
	return func(r *rand.Rand, bits int) uint64 {
		switch {
		case bits == 1:
			return r.Uint64() & 1
		case !float && r.IntN(3) == 0:
			return uint64(r.IntN(3)) - 1
		case !float:
			return anyBits(r, bits)
		}
		few := []uint64{0, f.sign(), f.one(), f.one() | f.sign(), 1, f.inf(), f.nan()}
		var v uint64
		for i := range parts {
			x := floatValues(f)(r, f.bits)
			if r.IntN(3) == 0 {
				x = few[r.IntN(len(few))]
			}
			if f.bits < 64 {
				x &= 1<<f.bits - 1
			}
			v |= x << (i * f.bits)
		}
		return v
	}
}
