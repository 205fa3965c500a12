package vm_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// tensorFloat is tf32, which lies in the upper bits of an f32.
var tensorFloat = format{"tf32", 19, 10, 127}

// nearInteger is a float rounded to a whole number of its format.
func (f format) nearInteger(v uint64, mode string) uint64 {
	if !f.finite(v) {
		return f.special(f.value(v))
	}
	w := toInteger(f.exact(v), mode)
	if w.Sign() == 0 {
		return v & f.sign()
	}
	return f.round(new(big.Float).SetInt(w), "rn")
}

// converted is a float in another format.
func converted(from, to format, v uint64, mode string) uint64 {
	if !from.finite(v) || from.exact(v).Sign() == 0 {
		return to.special(from.value(v))
	}
	if mode == "rna" { // half a unit more, cut off
		return (v + 0x1000) >> 13
	}
	return to.round(from.exact(v), mode)
}

// floatToFloat is cvt between floating-point formats, of one value.
func floatToFloat(s spelling, from, to format) func(v uint64) uint64 {
	mode := s.one("rn", "rz", "rm", "rp", "rna")
	if mode == "" {
		mode = "rn"
	}
	whole := s.one("rni", "rzi", "rmi", "rpi")
	return func(v uint64) uint64 {
		if s.has("ftz") && from == single {
			v = from.flush(v)
		}
		var x uint64
		switch {
		case whole != "":
			x = from.nearInteger(v, whole)
		case from == to && from.isNaN(v):
			x = v
		default:
			x = converted(from, to, v, mode)
		}
		if s.has("ftz") && to == single {
			x = to.flush(x)
		}
		if s.has("satfinite") && x&^to.sign() == to.inf() {
			x--
		}
		if s.has("sat") {
			x = to.saturated(x)
		}
		if s.has("relu") {
			x = to.positive(x)
		}
		return x
	}
}

// convertReference is what cvt computes between formats of 16 bits and more, and
// integers.
func convertReference(s spelling) []instruction {
	to, parts := packed(s.types[0])
	f, float := formatOf[to]
	if to == "tf32" {
		f, float = tensorFloat, true
	}
	g, fromFloat := formatOf[s.types[len(s.types)-1]]
	n, sign, integer := integerType(to)
	m, fromSign, fromInteger := integerType(s.types[len(s.types)-1])
	if s.has("rs") || s.has("pack") || !float && !integer || !fromFloat && !fromInteger {
		return nil
	}
	mode := s.one("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")
	ins := instruction{src: []int{max(g.bits, m)}, dst: max(n, f.bits)}
	if fromFloat {
		ins.values = aroundIntegers(g)
	}
	switch {
	case float && fromFloat:
		one := floatToFloat(s, g, f)
		ins.want = func(v []uint64) uint64 { return one(v[0]) }
		ins.values = closeTo(g, f)
		if to == "tf32" {
			ins.dst = 32
			ins.want = func(v []uint64) uint64 {
				if x := one(v[0]); !f.isNaN(x) {
					return x << 13
				}
				return single.nan()
			}
		}
		if parts == 2 {
			ins.src, ins.dst = []int{32, 32}, 32
			ins.want = func(v []uint64) uint64 { return one(v[0])<<16 | one(v[1]) }
		}
	case float:
		ins.want = func(v []uint64) uint64 {
			x := number(v[0], m, fromSign)
			if x.Sign() == 0 {
				return 0
			}
			y := f.round(new(big.Float).SetInt(x), mode)
			if s.has("sat") {
				y = f.saturated(y)
			}
			return y
		}
	default:
		ins.dst = max(n, 16)
		if n == 8 && g == brain { // which wants a register as wide
			ins.dst = 8
		}
		ins.want = func(v []uint64) uint64 {
			var x uint64
			if fromFloat {
				x = floatToInteger(s, g, v[0], mode, n, sign)
			} else {
				x = s.fits(number(v[0], m, fromSign), n, sign)
			}
			return wrapped(number(x, n, sign), ins.dst) // extended to the register
		}
	}
	return []instruction{ins}
}

// floatToInteger is cvt of a float to an integer of n bits (ISA 9.7.9.21).
func floatToInteger(s spelling, f format, v uint64, mode string, n int, sign bool) uint64 {
	if s.has("ftz") {
		v = f.flush(v)
	}
	switch {
	case f.isNaN(v) && (f.bits == 64 || n == 64):
		return 1 << (n - 1)
	case f.isNaN(v):
		return 0
	case f.isInf(v):
		huge := new(big.Int).Lsh(big.NewInt(1), 2000)
		if v&f.sign() != 0 {
			huge.Neg(huge)
		}
		return clamped(huge, n, sign)
	}
	return clamped(toInteger(f.exact(v), mode), n, sign)
}

// closeTo are values of a format of which some are beside the values and the
// midpoints of another.
func closeTo(from, to format) func(r *rand.Rand, bits int) uint64 {
	return func(r *rand.Rand, bits int) uint64 {
		if from.mantissa <= to.mantissa || r.IntN(3) == 0 {
			return floatValues(from)(r, bits)
		}
		x := r.Uint64() & (1<<to.bits - 1)
		if r.IntN(3) == 0 {
			x = x&to.sign() | []uint64{0, 1, to.inf() - 1, to.inf() - 2, 1 << to.mantissa}[r.IntN(5)]
		}
		if !to.finite(x) || to.exact(x).Sign() == 0 {
			return to.special(to.value(x)) >> (to.bits - 1) << (from.bits - 1)
		}
		v := from.round(to.exact(x), "rn")
		v += uint64(r.IntN(2)) << (from.mantissa - to.mantissa - 1) // half a unit on
		return v + uint64(r.IntN(3)) - 1
	}
}

// smallReference is cvt to and from the formats of 8 bits and fewer, where
// TestSmallConversions has none.
func smallReference(s spelling) []instruction {
	to, parts := packed(s.types[0])
	from, _ := packed(s.types[len(s.types)-1])
	if s.has("pack") {
		return packedIntegers(s)
	}
	find := func(name string) (tiny, bool) {
		i := slices.IndexFunc(tinyFormats, func(f tiny) bool { return f.name == name })
		if i < 0 {
			return tiny{}, false
		}
		return tinyFormats[i], true
	}
	h := formatOf[to]
	f, ok := find(from)
	if !ok || parts != 2 || s.one("scaled::n2::ue8m0") != "" {
		return nil
	}
	one := func(v []uint64) uint64 {
		x := f.value(v[0] & (1<<f.bits - 1))
		if s.has("relu") && x <= 0 {
			return 0
		}
		if x != x || x == 0 || math.IsInf(x, 0) {
			y := h.special(x)
			if s.has("satfinite") && h.isInf(y) {
				y--
			}
			return y
		}
		return h.round(big.NewFloat(x), "rn")
	}
	return []instruction{{dst: 32, src: []int{2 * f.width}, want: func(v []uint64) uint64 {
		return one([]uint64{v[0] & (1<<f.width - 1)}) | one([]uint64{v[0] >> f.width})<<16
	}}}
}

// packedIntegers is cvt.pack.
func packedIntegers(s spelling) []instruction {
	n, sign, _ := integerType(s.types[0])
	ins := instruction{dst: 32, src: []int{32, 32}}
	if n < 16 {
		ins.src = append(ins.src, 32)
	}
	ins.want = func(v []uint64) uint64 {
		d := clamped(signed(v[0], 32), n, sign)<<n | clamped(signed(v[1], 32), n, sign)
		if n < 16 {
			d |= v[2] << (2 * n)
		}
		return d
	}
	return []instruction{ins}
}

// TestConvertSpellings: every spelling of conversions; of those to and from the
// formats of few bits, which TestSmallConversions has, the ones that it lacks.
func TestConvertSpellings(t *testing.T) {
	tried := map[string]bool{}
	for _, ins := range smallConversions() {
		tried[ins.op] = true
	}
	of := func(s spelling) []instruction {
		if list := convertReference(s); list != nil {
			return list
		}
		return smallReference(s)
	}
	runSpellings(t, []string{"cvt", "cvt.pack"}, of, func(s spelling) bool {
		return tried[s.op] || strings.Contains(s.op, "ue8m0") || s.has("rs")
	})
}
