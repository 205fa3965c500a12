package plot

import (
	"cmp"
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// Figure is a roofline to draw: rates over intensities, both axes logarithmic;
// TFLOP/s over operations per byte unless Axes says otherwise.
type Figure struct {
	Title    string
	Subtitle string
	Axes     Axes   // the zero value is Operations
	Memory   string // what the device's memory is called; "" is HBM
	Slopes   []Slope
	Roofs    []Roof
	Walls    []Wall
	Corners  []Corner // of a figure of times, which has no roofs; the first is a launch
	Series   []Series
}

// Axes says what a figure's axes measure, in words and short units.
type Axes struct {
	X, Y         string  // the axes' titles
	Per, Rate    string  // units of x and y
	Transactions string  // unit of a slope
	Scale        float64 // a slope of 1 reaches 1/Scale at x = 1
}

// Operations are the axes of the usual roofline.
var Operations = Axes{"arithmetic intensity (FLOP/byte)", "TFLOP/s", "FLOP/byte", "TFLOP/s", "GB/s", 1e3}

// Instructions are the axes of the instruction roofline of Ding and Williams:
// warp instructions against 32-byte transactions of a level of memory.
var Instructions = Axes{"instruction intensity (warp instructions per transaction of 32 B, in shared memory 128 B)", "warp GIPS", "instructions/transaction", "GIPS", "GTXN/s", 1}

// Wall is an intensity that a pattern of access cannot pass, an upright line.
type Wall struct {
	Label string
	At    float64
}

// counts is what a marker of a level of memory is by.
func (a Axes) counts() string {
	if a == Instructions {
		return "transactions"
	}
	return "bytes"
}

// levelName is what a level of memory is called where the device's has this name, if any.
func levelName(u roofline.Unit, memory string) string {
	if u == roofline.HBM {
		return cmp.Or(memory, string(u))
	}
	return string(u)
}

func (f *Figure) axes() Axes {
	if f.Axes == (Axes{}) {
		return Operations
	}
	return f.Axes
}

// Slope is a memory level's bandwidth: the line rate = intensity x bandwidth.
type Slope struct {
	Label  string
	GBs    float64
	Second bool // not the hardware's bandwidth but what was reached: dashed
}

// Roof is a compute peak, a level line.
type Roof struct {
	Label  string
	TFLOPS float64
	Second bool // not the hardware's peak but what some path or library reaches: dashed
}

// Series is data points of one kind, drawn in one colour.
type Series struct {
	Name   string
	From   bench.Provenance // of the times
	Dots   []Dot
	Joined bool // a trajectory: dots joined in order
	Arrows bool // joined by arrows: what a change did
}

// Dot is one kernel.
type Dot struct {
	Label  string // written beside the dot; empty for the many of a cloud
	Title  string // shown on hover
	TFLOPS float64
	At     []roofline.Intensity // one marker for each level of memory, joined by a thin line
	Best   bool                 // stands out
	Hollow bool                 // what a line leads to, rather than the point itself
	Doubt  string               // why the point cannot be taken at its word: drawn as a cross
}

// headroom is how much higher than the highest roof the frame reaches: for names and for
// kernels above their roof.
const headroom = 1.25

// maxDecades bounds each axis: what lies further off is marked at the edge.
const maxDecades = 8

func (f *Figure) check() error {
	if len(f.Slopes) == 0 || len(f.Roofs) == 0 && len(f.Corners) == 0 {
		return fmt.Errorf("roofline plot: want at least one bandwidth and one peak")
	}
	a := f.axes()
	for _, w := range f.Walls {
		if err := positive(w.At, w.Label, a.Per); err != nil {
			return err
		}
	}
	for _, c := range f.Corners {
		if err := positive(c.At, c.Label, a.Per); err != nil {
			return err
		}
	}
	for _, s := range f.Slopes {
		if err := positive(s.GBs, s.Label, a.Transactions); err != nil {
			return err
		}
	}
	for _, r := range f.Roofs {
		if err := positive(r.TFLOPS, r.Label, a.Rate); err != nil {
			return err
		}
	}
	for _, s := range f.Series {
		for _, d := range s.Dots {
			name := d.Label
			if name == "" {
				name = "a point of " + s.Name
			}
			if err := positive(d.TFLOPS, name, a.Rate); err != nil {
				return err
			}
			if len(d.At) == 0 {
				return fmt.Errorf("roofline plot: %s: no arithmetic intensity", name)
			}
			for _, at := range d.At {
				if err := positive(at.Value, name, a.Per+" at "+string(at.Level)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func positive(v float64, name, unit string) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("roofline plot: %s: %g %s: want a finite number above 0", name, v, unit)
	}
	return nil
}

// peak returns the highest roof.
func (f *Figure) peak() float64 {
	p := 0.0
	for _, r := range f.Roofs {
		p = max(p, r.TFLOPS)
	}
	return p
}

// ridge returns the intensity at which a slope reaches a rate.
func (f *Figure) ridge(s Slope, rate float64) float64 { return rate * f.axes().Scale / s.GBs }

// rate returns what a slope reaches at an intensity.
func (f *Figure) rate(s Slope, intensity float64) float64 { return intensity * s.GBs / f.axes().Scale }

// spans returns the ends of both axes as decimal logarithms: x in whole decades
// and y in steps of 1, 2 and 5, from the ceilings, widened where data lie
// outside, so that comparisons keep the same frame.
func (f *Figure) spans() (x, y [2]float64) {
	if len(f.Corners) > 0 {
		return f.timeSpans()
	}
	peak, lowest := f.peak(), f.peak()
	first, last := math.Inf(1), 0.0
	for _, s := range f.Slopes {
		first, last = min(first, f.ridge(s, peak)), max(last, f.ridge(s, peak))
	}
	for _, r := range f.Roofs {
		lowest = min(lowest, r.TFLOPS)
	}
	x[0], x[1] = decades(first/2, last*4)
	for _, w := range f.Walls {
		l, h := decades(w.At, w.At)
		x[0], x[1] = min(x[0], l), max(x[1], h)
	}
	furthest := x[1] + 2
	for _, s := range f.Series {
		for _, d := range s.Dots {
			lowest = min(lowest, d.TFLOPS)
			for _, a := range d.At {
				l, h := decades(a.Value, a.Value)
				x[0], x[1] = min(x[0], l), max(x[1], h)
			}
		}
	}
	x[1] = min(x[1], furthest)
	x[0] = max(x[0], x[1]-maxDecades)
	y[0], y[1] = steps(lowest/1.25, peak*headroom)
	y[0] = max(y[0], y[1]-maxDecades)
	return x, y
}
