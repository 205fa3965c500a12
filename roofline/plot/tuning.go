package plot

import (
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// Entry is one configuration of a tuning run.
type Entry struct {
	Label   string // the configuration
	Verdict *roofline.Verdict
}

// TuningRun returns the figure of a run: every configuration as a point of a
// cloud, the best (by its index) standing out with all its levels of memory,
// and the ceilings of the arithmetic it uses.
func TuningRun(title string, entries []Entry, best int) (*Figure, error) {
	if best < 0 || best >= len(entries) {
		return nil, fmt.Errorf("roofline plot: best configuration %d: want 0 to %d", best, len(entries)-1)
	}
	top := entries[best].Verdict
	f, err := Device(title, top.Assessment)
	if err != nil {
		return nil, err
	}
	f.Subtitle = fmt.Sprintf("%s; %d configurations; best %.1f TFLOP/s (%s), bound by %s; score %.2f (least time / time)",
		top.Roofs.GPU.Name, len(entries), top.TFLOPS, top.From, top.Roofs.Name(top.Binding.Unit), top.Score)
	s := Series{Name: "configurations", From: top.From}
	for i, e := range entries {
		d := Dot{Title: e.Label, TFLOPS: e.Verdict.TFLOPS, At: e.Verdict.Intensities}
		if i == best {
			d.Best, d.Label = true, fmt.Sprintf("%.0f TFLOP/s: %s", e.Verdict.TFLOPS, e.Label)
		} else if len(d.At) > 1 {
			d.At = d.At[:1]
		}
		s.Dots = append(s.Dots, d)
	}
	f.Series = append(f.Series, s)
	return f, nil
}

// Measured adds what a library was measured to take for the problem, in
// microseconds: a point of its own, at the problem's intensity by the work
// assessed, for what the library itself moves is not known.
func (f *Figure) Measured(name string, us float64, a *roofline.Assessment) error {
	v, err := a.Judge(us, bench.Measured)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(a.Intensities) == 0 {
		return fmt.Errorf("%s: no bytes to set its operations against", name)
	}
	f.Series = append(f.Series, Series{Name: name, From: bench.Measured, Dots: []Dot{{
		Label: fmt.Sprintf("%.0f TFLOP/s: %s", v.TFLOPS, name), Title: name, TFLOPS: v.TFLOPS, At: a.Intensities[:1],
	}}})
	return nil
}

// Device returns a figure of a GPU's ceilings alone, those that the work touches.
func Device(title string, a *roofline.Assessment) (*Figure, error) {
	if _, ok := a.Peak(); !ok {
		return nil, fmt.Errorf("roofline plot: %s: the work has no operations to rate", title)
	}
	f := &Figure{Title: title, Subtitle: a.Roofs.GPU.Name, Memory: a.Roofs.GPU.Memory()}
	f.Slopes, f.Roofs = ceilings(a.Roofs, &a.Work)
	return f, nil
}

// ceilings lists what some works touch of a GPU: the levels of memory whose bytes are
// known, the peaks of their arithmetic with what mma.sync reaches of tensor cores and
// what ordinary pipes do without FMAs, and f32 on these in any case.
func ceilings(r roofline.Roofs, works ...*roofline.Work) (slopes []Slope, roofs []Roof) {
	for _, level := range []struct {
		unit   roofline.Unit
		figure target.Figure
	}{{roofline.HBM, r.HBM}, {roofline.L2, r.L2}, {roofline.Shared, r.Shared}} {
		used := func(w *roofline.Work) bool { return w.Bytes(level.unit).Value > 0 }
		if level.unit == roofline.HBM || slices.ContainsFunc(works, used) {
			slopes = append(slopes, MemorySlope(r.Name(level.unit), level.figure))
		}
	}
	for _, w := range works {
		for _, o := range w.Operations {
			if o.Count.Value > 0 {
				roofs = append(roofs, peaks(r.GPU, o.Math)...)
			}
		}
	}
	if p, ok := r.GPU.Peak(target.F32); ok {
		roofs = append(roofs, PeakRoof(p))
	}
	return slopes, distinct(roofs)
}

// peaks are the roofs of one kind of arithmetic.
func peaks(g *target.GPU, m target.Math) []Roof {
	p, ok := g.Peak(m)
	if !ok {
		return nil
	}
	out := []Roof{PeakRoof(p)}
	if !m.Tensor() {
		return append(out, Roof{fmt.Sprintf("%s without FMA %.4g TFLOP/s", m, p.TFLOPS/2), p.TFLOPS / 2, true})
	}
	if share, ok := g.MMASyncOfPeak(); ok && share < 1 {
		out = append(out, Roof{fmt.Sprintf("mma.sync reaches %.0f %%: %.0f TFLOP/s", share*100, share*p.TFLOPS), share * p.TFLOPS, true})
	}
	return out
}

// distinct keeps the first of equally high roofs.
func distinct(roofs []Roof) []Roof {
	var out []Roof
	for _, r := range roofs {
		if !slices.ContainsFunc(out, func(o Roof) bool { return o.TFLOPS == r.TFLOPS }) {
			out = append(out, r)
		}
	}
	return out
}

// MemorySlope is a level's bandwidth, named with what the figure rests on.
func MemorySlope(level string, bandwidth target.Figure) Slope {
	return Slope{Label: fmt.Sprintf("%s %.0f GB/s (%s)", level, bandwidth.Value, bandwidth.Basis), GBs: bandwidth.Value}
}

// PeakRoof is a peak, named with its clock.
func PeakRoof(p target.Peak) Roof {
	kind := "dense, "
	if !p.Math.Tensor() {
		kind = "FMA, "
	}
	return Roof{Label: fmt.Sprintf("%s %.4g TFLOP/s (%s%.0f MHz)", p.Math, p.TFLOPS, kind, p.ClockMHz), TFLOPS: p.TFLOPS}
}
