package family

import (
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// UnitRoundoff returns the largest relative error of rounding to a type, half an ulp of
// 1: 2^-11 for f16, 2^-8 for bf16, 2^-24 for f32.
func UnitRoundoff(e ir.Elem) float64 {
	switch e {
	case ir.F16:
		return 0x1p-11
	case ir.BF16:
		return 0x1p-8
	}
	return 0x1p-24
}

// Tiny returns half the smallest number of a type above zero, the largest error of
// rounding where the type underflows.
func Tiny(e ir.Elem) float64 {
	switch e {
	case ir.F16:
		return 0x1p-25
	case ir.BF16:
		return 0x1p-134
	}
	return 0x1p-150
}

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
		if !close(x, e.Want[i], e.Tol[i]) {
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

func close(got, want, tol float64) bool {
	if math.IsInf(want, 0) {
		return got == want
	}
	return math.Abs(got-want) <= tol // false for NaN
}

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
