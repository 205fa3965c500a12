package plot

import (
	"fmt"

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
		top.Roofs.GPU.Name, len(entries), top.TFLOPS, top.From, top.Binding.Unit, top.Score)
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

// Device returns a figure of a GPU's ceilings alone: the levels of memory that
// the work touches, the peak of its main arithmetic, what mma.sync reaches of
// it, and f32 on the ordinary pipes.
func Device(title string, a *roofline.Assessment) (*Figure, error) {
	f := &Figure{Title: title, Subtitle: a.Roofs.GPU.Name}
	for _, level := range []struct {
		unit   roofline.Unit
		figure target.Figure
		used   bool
	}{
		{roofline.HBM, a.Roofs.HBM, true},
		{roofline.L2, a.Roofs.L2, a.Work.L2Bytes.Value > 0},
		{roofline.Shared, a.Roofs.Shared, a.Work.SharedBytes.Value > 0},
	} {
		if level.used {
			f.Slopes = append(f.Slopes, MemorySlope(level.unit, level.figure))
		}
	}
	peak, ok := a.Peak()
	if !ok {
		return nil, fmt.Errorf("roofline plot: %s: the work has no operations to rate", title)
	}
	f.Roofs = append(f.Roofs, PeakRoof(peak))
	if share, ok := a.Roofs.GPU.MMASyncOfPeak(); ok && share < 1 && peak.Math.Tensor() {
		f.Roofs = append(f.Roofs, Roof{fmt.Sprintf("mma.sync reaches %.0f %%: %.0f TFLOP/s", share*100, share*peak.TFLOPS), share * peak.TFLOPS, true})
	}
	if p, ok := a.Roofs.GPU.Peak(target.F32); ok && peak.Math != target.F32 {
		f.Roofs = append(f.Roofs, PeakRoof(p))
	}
	return f, nil
}

// MemorySlope is a level's bandwidth, named with what the figure rests on.
func MemorySlope(level roofline.Unit, bandwidth target.Figure) Slope {
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
