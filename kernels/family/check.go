package family

import (
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

// UnitRoundoff returns the largest relative error of rounding to a type, half an ulp of
// 1: 2^-11 for f16, 2^-8 for bf16, 2^-24 for f32.
func UnitRoundoff(e ir.Elem) float64 { return format(e).Epsilon() / 2 }

// Tiny returns half the smallest number of a type above zero, the largest error of
// rounding where the type underflows.
func Tiny(e ir.Elem) float64 {
	f := format(e)
	return f.MinNormal() * f.Epsilon() / 2
}

// NarrowSum returns what tensor cores may lose in a sum of products of 8-bit floats whose
// root sum of squares is 1, as a bound of its standard deviation, if up to chain of them
// are added on the tensor core before f32 takes over. Ada and Hopper cut each product, the
// accumulator and the result of an instruction off 13 bits below the largest exponent of
// the instruction's (at most 32) products and its accumulator (MMA-Sim, arXiv 2511.10909).
//
// With u that unit, a term whose sign is random loses u/sqrt(3) in root mean square. In
// terms of root mean square r, u is at most 2^-13 times the largest product, whose square
// is at most the sum of those of the instruction's 32, or times the accumulator, whose
// square is chain/2 r^2 in the mean. That is 2^-13 sqrt((32 + chain/2)/3) for all of the
// terms together. Normal data have a quarter of that or less, as most products of so few
// bits lose nothing: twice it is 8 or more standard deviations of theirs.
func NarrowSum(chain int) float64 { return 0x1p-13 * math.Sqrt((32+float64(chain)/2)/3) }

// Rounded returns the tolerance of a value once it is rounded to e, from its tolerance
// before.
func Rounded(e ir.Elem, want, tol float64) float64 {
	return tol + UnitRoundoff(e)*(math.Abs(want)+tol) + Tiny(e)
}

// Check compares a region of an output with what is expected and describes the first
// element that is too far off.
func (t *Tensor) Check(r Region, e Expected) error {
	got := t.Region(r)
	if len(got) != len(e.Want) {
		return fmt.Errorf("%s: %d elements expected for a region of %d", t.Name, len(e.Want), len(got))
	}
	bad, first := 0, -1
	for i, x := range got {
		if !Right(t.Elem, x, e.Want[i], e.Tol[i]) {
			if bad++; first < 0 {
				first = i
			}
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%s%v: got %g, want %g within %.3g; %d of %d elements of %v to %v are wrong",
		t.Name, r.index(first), got[first], e.Want[first], e.Tol[first], bad, len(got), r.Lo, r.Hi)
}

// Right tells whether got, a value of type e, is what a result within tol of want may
// become. Where want is near the end of the type's range, that is its largest finite
// value or, in a type that does not saturate, an infinity.
func Right(e ir.Elem, got, want, tol float64) bool {
	switch {
	case math.IsInf(tol, 1):
		return true
	case math.IsNaN(want):
		return math.IsNaN(got)
	case math.IsInf(want, 0):
		return got == want
	}
	f := format(e)
	if saturates(e) {
		want = max(-f.Max(), min(want, f.Max()))
	} else if math.IsInf(got, 0) {
		return math.Signbit(got) == math.Signbit(want) && math.Abs(want)+tol >= f.Overflow()
	}
	return math.Abs(got-want) <= tol // false for NaN
}

// format returns the format of a floating-point type.
func format(e ir.Elem) num.Format {
	switch e {
	case ir.F16:
		return num.F16
	case ir.BF16:
		return num.BF16
	case ir.E4M3:
		return num.E4M3
	case ir.E5M2:
		return num.E5M2
	}
	return num.F32
}

// saturates tells whether casts to a type stop at its largest finite value.
func saturates(e ir.Elem) bool { return e == ir.E4M3 || e == ir.E5M2 }

// index returns the coordinates of a region's i-th element.
func (r Region) index(i int) []int {
	at := make([]int, len(r.Lo))
	for d := len(at) - 1; d >= 0; d-- {
		n := r.Hi[d] - r.Lo[d]
		at[d] = r.Lo[d] + i%n
		i /= n
	}
	return at
}

// Whole returns all of an output.
func (a Arg) Whole() Region {
	return Region{Out: a.Name, Lo: make([]int, len(a.Dims)), Hi: slices.Clone(a.Dims)}
}
