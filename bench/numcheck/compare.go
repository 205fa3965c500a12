package numcheck

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/ir/num"
)

// Tolerance says when a value is right: |got - want| <= Absolute + Relative *
// |want|. NaN is right where NaN is wanted, an infinity where the same
// infinity is. Between an infinity and a finite number of the same sign and of
// fewer than 64 bits the distance is that from where rounding gives an
// infinity: a sum just below the end of the type's range may be rounded to
// either, and which one says nothing about the kernel.
type Tolerance struct {
	Absolute float64 `json:"absolute"`
	Relative float64 `json:"relative"`
}

// Validate refuses tolerances that are no bounds.
func (t Tolerance) Validate() error {
	for _, v := range []float64{t.Absolute, t.Relative} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("tolerance %v: want a number that is not negative", v)
		}
	}
	return nil
}

// Allows says whether got is right where want is wanted.
func (t Tolerance) Allows(got, want Value) bool {
	g, w := got.Float(), want.Float()
	if math.IsNaN(g) || math.IsNaN(w) {
		return math.IsNaN(g) && math.IsNaN(w)
	}
	if math.IsInf(g, 0) || math.IsInf(w, 0) {
		over, ok := got.Type.overflow()
		if g == w || !ok || math.Signbit(g) != math.Signbit(w) {
			return g == w
		}
		g, w = cut(g, over), cut(w, over)
		return math.Abs(g-w) <= t.Absolute+t.Relative*math.Abs(w)
	}
	return got.distance(want) <= t.Absolute+t.Relative*math.Abs(w)
}

// overflow is the magnitude from which a type's values are rounded to an
// infinity; ok is false for a type without one, and for f64, which holds what
// tolerances are computed in.
func (t Type) overflow() (over float64, ok bool) {
	switch t {
	case F16:
		return num.F16.Overflow(), true
	case BF16:
		return num.BF16.Overflow(), true
	case F32:
		return num.F32.Overflow(), true
	case E5M2:
		return num.E5M2.Overflow(), true
	}
	return 0, false
}

// cut takes an infinity to where rounding begins to give it.
func cut(v, over float64) float64 { return max(-over, min(v, over)) }

// Mismatch is an element that is not right.
type Mismatch struct {
	Index int64 `json:"index"` // of the element, in C order
	Got   Value `json:"got"`
	Want  Value `json:"want"`

	Unwritten bool `json:"never_written,omitempty"` // then Got is no one's value
	Unset     bool `json:"no_reference,omitempty"`  // the reference did not write it: Want is no one's value
}

func (m *Mismatch) String() string {
	switch {
	case m.Unwritten:
		return fmt.Sprintf("[%d] was never written, want %v", m.Index, m.Want)
	case m.Unset:
		return fmt.Sprintf("[%d] is %v, but the reference did not write element %d", m.Index, m.Got, m.Index)
	}
	return fmt.Sprintf("[%d] is %v, want %v", m.Index, m.Got, m.Want)
}

// Comparison is what a comparison of two buffers found. The largest errors are
// over the pairs of finite values; a NaN or an infinity that is not wanted is a
// mismatch alone.
type Comparison struct {
	Elements   int64
	Mismatches int64
	MaxAbs     float64    // largest |got - want|
	MaxRel     float64    // largest |got - want| / |want|, where want is not 0
	MaxULP     int64      // largest distance in units in the last place, of floats
	First      []Mismatch // in the order of the buffer, at most as many as asked for
}

// Compare compares got with want, element by element. It keeps up to keep
// mismatches. The buffers must have the same, whole number of elements.
func Compare(t Type, got, want []byte, tol Tolerance, keep int) (Comparison, error) {
	size := t.Size()
	if len(got) != len(want) || len(got)%size != 0 {
		return Comparison{}, fmt.Errorf("%d bytes of %s for %d wanted: want as many, a multiple of %d", len(got), t, len(want), size)
	}
	n := len(got) / size
	c := Comparison{Elements: int64(n)}
	for i := range n {
		if t.bits(got, i) == t.bits(want, i) {
			continue
		}
		g, w := t.At(got, i), t.At(want, i)
		c.measure(t, got, want, i, g, w)
		if tol.Allows(g, w) {
			continue
		}
		if c.Mismatches++; len(c.First) < keep {
			c.First = append(c.First, Mismatch{Index: int64(i), Got: g, Want: w})
		}
	}
	return c, nil
}

// measure takes a pair into the largest errors.
func (c *Comparison) measure(t Type, got, want []byte, i int, g, w Value) {
	if !isFinite(g.Float()) || !isFinite(w.Float()) {
		return
	}
	d := g.distance(w)
	c.MaxAbs = max(c.MaxAbs, d)
	if a := math.Abs(w.Float()); a != 0 {
		c.MaxRel = max(c.MaxRel, d/a)
	}
	if t.Float() {
		c.MaxULP = max(c.MaxULP, ulps(t.ordinal(got, i), t.ordinal(want, i)))
	}
}

// ulps is the distance of two ordinals; of the farthest f64 it does not fit
// and is the largest int64.
func ulps(a, b int64) int64 {
	if a < b {
		a, b = b, a
	}
	if d := uint64(a) - uint64(b); d <= math.MaxInt64 {
		return int64(d)
	}
	return math.MaxInt64
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
