package plot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// View is what a drawing of judged kernels sets against what.
type View string

// The views.
const (
	RateView        View = "roofline"     // rates over operations per byte
	TimeView        View = "time"         // time of arithmetic over time of memory
	FloorView       View = "floors"       // a bar for each unit's least time
	InstructionView View = "instructions" // warp instructions over transactions
)

// views lists them with what each draws.
var views = []struct {
	view View
	draw func(s *Subject) (*Scene, error)
}{
	{RateView, func(s *Subject) (*Scene, error) { return laidOut(s.rates()) }},
	{TimeView, func(s *Subject) (*Scene, error) { return laidOut(s.times()) }},
	{FloorView, (*Subject).bars},
	{InstructionView, func(s *Subject) (*Scene, error) { return laidOut(s.instructions()) }},
}

// Views returns the names of all views.
func Views() []string {
	var names []string
	for _, v := range views {
		names = append(names, string(v.view))
	}
	return names
}

// Subject is what a view draws: kernels judged by the roofs of one GPU.
type Subject struct {
	Title, Subtitle string
	Kernels         []*roofline.Judged
	Roofs           []Roof // beside the hardware's, in RateView
	Alternatives    bool   // ways to do the same, which are not summed up
}

// Draw lays a subject out in a view. The error says what the kernels lack for it.
func (s *Subject) Draw(v View) (*Scene, error) {
	if len(s.Kernels) == 0 {
		return nil, errors.New("roofline plot: no kernels")
	}
	for _, known := range views {
		if known.view == v {
			return known.draw(s)
		}
	}
	return nil, fmt.Errorf("roofline plot: view %q: want one of %v", v, Views())
}

func laidOut(f *Figure, err error) (*Scene, error) {
	if err != nil {
		return nil, err
	}
	return f.Scene()
}

// ownSeries is up to how many kernels have a colour each.
const ownSeries = 8

// series gives each kernel a series of its own, or one to all where they are many.
func (s *Subject) series(dots func(j *roofline.Judged) (Dot, bool)) []Series {
	var out []Series
	for _, j := range s.Kernels {
		d, ok := dots(j)
		if !ok {
			continue
		}
		if d.Title == "" {
			d.Title = j.Kernel.Name
		}
		if len(s.Kernels) <= ownSeries {
			out = append(out, Series{Name: j.Kernel.Name, From: provenance(j), Dots: []Dot{d}})
			continue
		}
		i := slices.IndexFunc(out, func(t Series) bool { return t.From == provenance(j) })
		if i < 0 {
			i = len(out)
			out = append(out, Series{Name: "kernels", From: provenance(j)})
		}
		out[i].Dots = append(out[i].Dots, d)
	}
	return out
}

// provenance is that of a kernel's time: that of its work where it has none, for
// then it is drawn at its least time.
func provenance(j *roofline.Judged) bench.Provenance {
	if j.Kernel.TimeUS > 0 {
		return j.Kernel.From
	}
	return j.Binding.From
}

// timeOf is a kernel's time in microseconds, or its least.
func timeOf(j *roofline.Judged) float64 {
	if j.Kernel.TimeUS > 0 {
		return j.Kernel.TimeUS
	}
	return j.LeastUS()
}

func doubtOf(j *roofline.Judged) string {
	if j.Verdict != nil && j.Verdict.Cause == roofline.NotPossible {
		return j.Verdict.Doubt
	}
	return ""
}

// rates is the roofline itself: kernels that have operations, at each level of memory
// whose bytes are known.
func (s *Subject) rates() (*Figure, error) {
	f := &Figure{Title: s.Title, Subtitle: s.Subtitle}
	f.Slopes, f.Roofs = ceilings(s.Kernels[0].Roofs, s.works()...)
	f.Roofs = append(f.Roofs, s.Roofs...)
	f.Series = s.series(func(j *roofline.Judged) (Dot, bool) {
		rate := j.Work.Total().Value / timeOf(j) / 1e6
		return Dot{Label: fmt.Sprintf("%s TFLOP/s: %s", plain(max(rate, 1e-12)), j.Kernel.Name), TFLOPS: rate, At: j.Intensities, Doubt: doubtOf(j)}, len(j.Intensities) > 0
	})
	if len(f.Series) == 0 {
		return nil, fmt.Errorf("%s: no operations, or no bytes to set them against: want --view %s or %s", s.Kernels[0].Kernel.Name, TimeView, FloorView)
	}
	return f, nil
}

func (s *Subject) works() []*roofline.Work {
	var out []*roofline.Work
	for _, j := range s.Kernels {
		out = append(out, &j.Work)
	}
	return out
}
