package num

import "math"

// FMA32 returns a*b + c rounded once to binary32, to nearest, ties to even.
func FMA32(a, b, c float32) float32 { return float32(FMAOdd(a, b, c)) }

// FMAOdd returns a*b + c as a float64 rounded to odd: if the sum is not exact, of
// its two neighbours the one with an odd mantissa. Rounding that to a format with
// at most 51 bits, in any way, gives what rounding the exact sum would (Boldo and
// Melquiond, "Emulation of a FMA and Correctly Rounded Sums", 2008), which rounding
// twice to nearest does not.
func FMAOdd(a, b, c float32) float64 {
	product := float64(a) * float64(b) // exact: 48 bits, exponent within range
	return addOdd(product, float64(c))
}

// addOdd adds with rounding to odd. Neither operand may be so large that the sum
// overflows.
func addOdd(x, y float64) float64 {
	sum := x + y
	// The part that rounding lost, exactly (Knuth's two-sum).
	t := sum - x
	lost := (x - (sum - t)) + (y - t)
	if lost == 0 || lost != lost {
		return sum // exact, infinite or NaN
	}
	u := math.Float64bits(sum)
	if u&1 == 1 {
		return sum
	}
	if (lost > 0) == (sum > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}
