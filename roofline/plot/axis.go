package plot

import (
	"math"
	"strconv"
)

// axis maps values to pixels on a logarithmic scale of whole decades.
type axis struct {
	low, high  int // decades: from 10^low to 10^high
	start, end float64
}

// decades returns the least span of whole decades that holds low and high.
func decades(low, high float64) (int, int) {
	a := int(math.Floor(math.Log10(low) + 1e-9))
	b := int(math.Ceil(math.Log10(high) - 1e-9))
	return a, max(b, a+1)
}

func (a axis) min() float64 { return math.Pow10(a.low) }
func (a axis) max() float64 { return math.Pow10(a.high) }

// at returns the pixel of a value above 0.
func (a axis) at(v float64) float64 {
	t := (math.Log10(v) - float64(a.low)) / float64(a.high-a.low)
	return a.start + t*(a.end-a.start)
}

func (a axis) holds(v float64) bool { return v >= a.min()*(1-1e-9) && v <= a.max()*(1+1e-9) }

// clamp returns the nearest value on the axis.
func (a axis) clamp(v float64) float64 { return min(max(v, a.min()), a.max()) }

// decade writes 10^n as people read it.
func decade(n int) string {
	if n >= -3 && n <= 5 {
		return strconv.FormatFloat(math.Pow10(n), 'f', max(0, -n), 64)
	}
	return "1e" + strconv.Itoa(n)
}
