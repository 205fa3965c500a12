package plot

import (
	"math"
	"strconv"
)

// axis maps values to pixels, on a logarithmic scale unless it is linear.
type axis struct {
	low, high  float64 // decimal logarithms of its ends, or these
	start, end float64
	linear     bool
}

// decades returns the least span of whole decades that holds low and high, as
// decimal logarithms.
func decades(low, high float64) (float64, float64) {
	a := math.Floor(math.Log10(low) + 1e-9)
	b := math.Ceil(math.Log10(high) - 1e-9)
	return a, max(b, a+1)
}

// steps returns the least span that holds low and high and ends at 1, 2 or 5
// times a power of ten, as decimal logarithms: at least one decade.
func steps(low, high float64) (float64, float64) {
	a, b := math.Inf(-1), math.Inf(1)
	l, h := math.Log10(low), math.Log10(high)
	for _, digit := range []float64{1, 2, 5} {
		d := math.Log10(digit)
		a = max(a, math.Floor(l-d+1e-9)+d)
		b = min(b, math.Ceil(h-d-1e-9)+d)
	}
	return a, max(b, a+1)
}

func (a axis) min() float64 { return math.Pow(10, a.low) }
func (a axis) max() float64 { return math.Pow(10, a.high) }

// at returns the pixel of a value above 0.
func (a axis) at(v float64) float64 {
	if !a.linear {
		v = math.Log10(v)
	}
	return a.start + (v-a.low)/(a.high-a.low)*(a.end-a.start)
}

// value returns what stands at a pixel.
func (a axis) value(pixel float64) float64 {
	v := a.low + (pixel-a.start)/(a.end-a.start)*(a.high-a.low)
	if a.linear {
		return v
	}
	return math.Pow(10, v)
}

// linearTicks lists the round values of a linear axis, eight at most.
func (a axis) linearTicks() []float64 {
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/10)))
	for _, by := range []float64{2, 2.5, 2, 2} { // 1, 2, 5, 10, 20
		if (a.high-a.low)/step < 7 {
			break
		}
		step *= by
	}
	var out []float64
	for n := math.Ceil(a.low / step); n*step <= a.high; n++ {
		out = append(out, n*step)
	}
	return out
}

func (a axis) holds(v float64) bool { return v >= a.min()*(1-1e-9) && v <= a.max()*(1+1e-9) }

// clamp returns the nearest value on the axis.
func (a axis) clamp(v float64) float64 { return min(max(v, a.min()), a.max()) }

// tick is a place on an axis: a whole decade or a digit between two of them.
type tick struct {
	value  float64
	label  string // empty: a mark alone
	decade bool
}

// ticks lists the axis' decades and the digits between them. A short axis has labels
// at 2 and 5 too, and so has a longer one that does not end at decades; a very long one
// has them at its ends alone.
func (a axis) ticks() []tick {
	const longest = 5 // decades
	span, whole := a.high-a.low, a.low == math.Round(a.low) && a.high == math.Round(a.high)
	short := span < 2.5 || !whole && span < longest
	end := func(v float64) bool { l := math.Log10(v); return math.Abs(l-a.low) < 1e-9 || math.Abs(l-a.high) < 1e-9 }
	var out []tick
	for n := int(math.Floor(a.low)); n <= int(math.Ceil(a.high)); n++ {
		for digit := 1; digit < 10; digit++ {
			t := tick{value: float64(digit) * math.Pow10(n), decade: digit == 1}
			if !a.holds(t.value) {
				continue
			}
			if t.decade || short && (digit == 2 || digit == 5) || end(t.value) {
				t.label = label(digit, n)
			}
			out = append(out, t)
		}
	}
	return out
}

// label writes digit times 10^n as people read it.
func label(digit, n int) string {
	if n >= -4 && n <= 5 {
		return strconv.FormatFloat(float64(digit)*math.Pow10(n), 'f', max(0, -n), 64)
	}
	return strconv.Itoa(digit) + "e" + strconv.Itoa(n)
}

// plain writes a number above 0 with three digits or its whole part, and
// without an exponent.
func plain(v float64) string {
	decimals := 2 - int(math.Floor(math.Log10(v)))
	return strconv.FormatFloat(v, 'f', max(0, min(decimals, 12)), 64)
}
