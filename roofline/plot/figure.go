package plot

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// Figure is a roofline to draw: rates in TFLOP/s over arithmetic intensities
// in operations per byte, both axes logarithmic.
type Figure struct {
	Title    string
	Subtitle string
	Slopes   []Slope
	Roofs    []Roof
	Series   []Series
}

// Slope is a memory level's bandwidth: the line rate = intensity x bandwidth.
type Slope struct {
	Label string
	GBs   float64
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
}

// Dot is one kernel.
type Dot struct {
	Label  string // written beside the dot; empty for the many of a cloud
	Title  string // shown on hover
	TFLOPS float64
	At     []roofline.Intensity // one marker for each level of memory, joined by a thin line
	Best   bool                 // stands out
}

// maxDecades bounds each axis: what lies further off is marked at the edge.
const maxDecades = 8

func (f *Figure) check() error {
	if len(f.Slopes) == 0 || len(f.Roofs) == 0 {
		return fmt.Errorf("roofline plot: want at least one bandwidth and one peak")
	}
	for _, s := range f.Slopes {
		if err := positive(s.GBs, s.Label, "GB/s"); err != nil {
			return err
		}
	}
	for _, r := range f.Roofs {
		if err := positive(r.TFLOPS, r.Label, "TFLOP/s"); err != nil {
			return err
		}
	}
	for _, s := range f.Series {
		for _, d := range s.Dots {
			name := d.Label
			if name == "" {
				name = "a point of " + s.Name
			}
			if err := positive(d.TFLOPS, name, "TFLOP/s"); err != nil {
				return err
			}
			if len(d.At) == 0 {
				return fmt.Errorf("roofline plot: %s: no arithmetic intensity", name)
			}
			for _, a := range d.At {
				if err := positive(a.Value, name, "operations per byte at "+string(a.Level)); err != nil {
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
func ridge(s Slope, tflops float64) float64 { return tflops * 1e3 / s.GBs }

// spans returns the ends of both axes as decimal logarithms: x in whole decades
// and y in steps of 1, 2 and 5, from the ceilings, widened where data lie
// outside, so that comparisons keep the same frame.
func (f *Figure) spans() (x, y [2]float64) {
	peak, lowest := f.peak(), f.peak()
	first, last := math.Inf(1), 0.0
	for _, s := range f.Slopes {
		first, last = min(first, ridge(s, peak)), max(last, ridge(s, peak))
	}
	for _, r := range f.Roofs {
		lowest = min(lowest, r.TFLOPS)
	}
	x[0], x[1] = decades(first/2, last*4)
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
	y[0], y[1] = steps(lowest/1.25, peak)
	y[0] = max(y[0], y[1]-maxDecades)
	return x, y
}
