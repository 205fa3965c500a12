package vm_test

import (
	"slices"
	"strings"
	"testing"
)

// positive is .relu.
func (f format) positive(v uint64) uint64 {
	if f.isNaN(v) || v&f.sign() == 0 {
		return v
	}
	return 0
}

// least is the smaller of two values, the larger where larger; a NaN gives way,
// or stays where nan.
func (f format) least(a, b uint64, larger, nan bool) uint64 {
	switch na, nb := f.isNaN(a), f.isNaN(b); {
	case na && nb, nan && (na || nb):
		return f.nan()
	case na:
		return b
	case nb:
		return a
	}
	order := func(v uint64) int64 { // as the values, -0 before 0
		if v&f.sign() != 0 {
			return -int64(v&^f.sign()) - 1
		}
		return int64(v)
	}
	if f.bits == 64 && a&b&f.sign() != 0 { // both negative: larger magnitudes come first
		if a > b != larger {
			return a
		}
		return b
	}
	if order(a) < order(b) != larger {
		return a
	}
	return b
}

// smallest is least of two or three values under .xorsign and .abs.
func (f format) smallest(s spelling, v []uint64) uint64 {
	larger, nan := s.name == "max", s.has("NaN")
	sign := uint64(0)
	if s.has("xorsign") {
		sign = (v[0] ^ v[1]) & f.sign()
	}
	w := slices.Clone(v)
	for i := range w {
		if s.has("abs") {
			w[i] &^= f.sign()
		}
	}
	best := f.least(w[0], w[1], larger, nan)
	if len(w) == 3 {
		best = f.least(best, w[2], larger, nan)
	}
	if f.isNaN(best) {
		return f.nan()
	}
	return best | sign
}

// compute is an instruction's result before .ftz, .sat and .relu.
func (f format) compute(s spelling, v []uint64) (uint64, bool) {
	mode := s.one("rn", "rz", "rm", "rp")
	if mode == "" {
		mode = "rn"
	}
	switch s.name {
	case "add":
		return f.fma(v[0], f.one(), v[1], mode), true
	case "sub":
		if f.isNaN(v[1]) {
			return f.nan(), true
		}
		return f.fma(v[0], f.one(), v[1]^f.sign(), mode), true
	case "mul":
		return f.mul(v[0], v[1], mode), true
	case "fma", "mad":
		if s.has("oob") && (v[0] == 0x7fff || v[1] == 0x7fff) {
			return 0, true
		}
		return f.fma(v[0], v[1], v[2], mode), true
	case "div":
		if big := v[1] &^ f.sign(); s.has("approx") && big > f.one()+126<<f.mantissa && big < f.inf() && !f.isNaN(v[0]) {
			if f.isInf(v[0]) { // ISA 9.7.3.8
				return f.nan(), true
			}
			return (v[0] ^ v[1]) & f.sign(), true
		}
		return f.div(v[0], v[1], mode), true
	case "rcp":
		return f.div(f.one(), v[0], mode), true
	case "sqrt":
		return f.sqrt(v[0], mode), true
	case "abs":
		return v[0] &^ f.sign(), true
	case "neg":
		return v[0] ^ f.sign(), true
	case "copysign":
		return v[1]&^f.sign() | v[0]&f.sign(), true
	case "min", "max":
		return f.smallest(s, v), true
	}
	return 0, false
}

// floatReference is what an instruction on floating-point numbers computes.
func floatReference(s spelling) []instruction {
	typ, n := packed(s.types[0])
	f, ok := formatOf[typ]
	if !ok || s.name == "rcp" && typ == "f64" && s.has("approx") {
		return nil
	}
	if _, ok := f.compute(s, []uint64{0, 0, 0}); !ok {
		return nil
	}
	narrow := f
	if len(s.types) == 2 {
		narrow = formatOf[s.types[1]]
	}
	one := func(v []uint64) uint64 {
		w := slices.Clone(v)
		for i := range w {
			if narrow != f && i < len(w)-1 {
				w[i] = widened(narrow, w[i])
			}
			if s.has("ftz") {
				w[i] = f.flush(w[i])
			}
		}
		x, _ := f.compute(s, w)
		if s.has("ftz") {
			x = f.flush(x)
		}
		if s.has("sat") {
			x = f.saturated(x)
		}
		if s.has("relu") {
			x = f.positive(x)
		}
		return x
	}
	ins := instruction{dst: n * f.bits, want: each(f.bits, n, one), values: valuesOf(f, narrow)}
	if n == 1 {
		ins.want = one
	} else {
		ins.values = pairsOf(f)
	}
	for range s.operands - 1 {
		ins.src = append(ins.src, n*narrow.bits)
	}
	if narrow != f {
		ins.src[len(ins.src)-1] = f.bits
	}
	return []instruction{ins}
}

var arithmetic = []string{"add", "addc", "sub", "subc", "mul", "mad", "madc", "fma", "div", "rem", "rcp", "sqrt", "abs", "neg", "min", "max", "copysign"}

// TestFloatSpellings: every spelling of arithmetic on floating-point numbers.
func TestFloatSpellings(t *testing.T) {
	runSpellings(t, arithmetic, floatReference, func(s spelling) bool {
		_, _, integer := integerType(strings.TrimSuffix(strings.TrimSuffix(s.types[0], "x2"), "x4"))
		return integer || s.name == "rcp" && s.has("approx") && s.types[0] == "f64"
	})
}
