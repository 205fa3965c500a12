package num

import "math"

// Distance returns how many representable values lie from a to b, both encodings
// of f: 0 for equal ones (and for the two zeros, and for two NaNs), 1 for
// neighbours. From a NaN to a number it is the greatest uint32.
func (f Format) Distance(a, b uint32) uint32 {
	t := &table[f]
	x, nanX := t.ordinal(a >> t.low)
	y, nanY := t.ordinal(b >> t.low)
	switch {
	case nanX && nanY:
		return 0
	case nanX || nanY:
		return math.MaxUint32
	case x < y:
		return uint32(y - x)
	}
	return uint32(x - y)
}

// ordinal numbers the values in order, zero as 0. Infinity counts as the value
// after the largest.
func (t *traits) ordinal(bits uint32) (n int64, nan bool) {
	width := t.exponent + t.mantissa
	magnitude := bits & (1<<width - 1)
	last := t.top()
	if t.special == ieee {
		last++
	}
	n = int64(magnitude)
	if bits>>width&1 == 1 {
		n = -n
	}
	return n, magnitude > last
}

// Error returns |got - want| in units in the last place of f at want: 0.5 is the
// most that one rounding to nearest may err. Equal infinities and NaN for NaN are
// 0; any other meeting of them is +Inf. Where want lies beyond the largest value,
// infinity and the largest value both count by their distance from it, with
// infinity taken as the first power of two too large.
func (f Format) Error(got uint32, want float64) float64 {
	g := f.Decode(got)
	switch {
	case math.IsNaN(g) && math.IsNaN(want), math.IsInf(g, 1) && math.IsInf(want, 1), math.IsInf(g, -1) && math.IsInf(want, -1):
		return 0
	case math.IsNaN(g), math.IsNaN(want), math.IsInf(want, 0):
		return math.Inf(1)
	case math.IsInf(g, 0):
		if math.Abs(want) < f.Max() || math.Signbit(g) != math.Signbit(want) {
			return math.Inf(1)
		}
		g = math.Copysign(f.Max()+f.ULP(f.Max()), g)
		if math.Abs(want) > math.Abs(g) {
			return 0
		}
	}
	return math.Abs(g-want) / f.ULP(want)
}
