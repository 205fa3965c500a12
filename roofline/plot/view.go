package plot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	Paths           []Path // beside the kernels
	Roofs           []Roof // beside the hardware's, in RateView
	Alternatives    bool   // ways to do the same: they are not summed up, and of many the fastest stands out
}

// Path is kernels joined in order in RateView: a tuning run, a sweep of sizes, or what a
// change did.
type Path struct {
	Name    string
	Kernels []*roofline.Judged
	Arrows  bool // from the time before a change to that after it
	Bare    bool // without labels: they are among the subject's kernels too
}

// all is every kernel.
func (s *Subject) all() []*roofline.Judged {
	out := slices.Clone(s.Kernels)
	for _, p := range s.Paths {
		out = append(out, p.Kernels...)
	}
	return out
}

// Draw lays a subject out in a view. The error says what the kernels lack for it.
func (s *Subject) Draw(v View) (*Scene, error) {
	if len(s.all()) == 0 {
		return nil, errors.New("roofline plot: no kernels")
	}
	if v != RateView && len(s.Paths) > 0 {
		flat := *s
		flat.Kernels, flat.Paths = s.all(), nil
		s = &flat
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

// Up to ownSeries kernels have a colour each, and up to ownLabels a label.
const (
	ownSeries = 8
	ownLabels = 60
)

// series gives each kernel a series of its own, or one to all where they are many.
func (s *Subject) series(dots func(j *roofline.Judged) (Dot, bool)) []Series {
	var out []Series
	best := s.fastest()
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
		if d.Best = j == best; !d.Best { // whose numbers the axes have
			d.Label = brief(j.Kernel.Name, labelLetters)
		}
		if !d.Best && (best != nil || len(s.Kernels) > ownLabels) {
			d.Label, d.At = "", d.At[:1]
		}
		out[i].Dots = append(out[i].Dots, d)
	}
	return out
}

// fastest is the one of many alternatives that stands out; nil where none does.
func (s *Subject) fastest() *roofline.Judged {
	if !s.Alternatives || len(s.Kernels) <= ownSeries {
		return nil
	}
	return slices.MinFunc(s.Kernels, func(a, b *roofline.Judged) int { return cmp.Compare(timeOf(a), timeOf(b)) })
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
	all := s.all()
	f := &Figure{Title: s.Title, Subtitle: s.Subtitle, Memory: all[0].Roofs.GPU.Memory()}
	f.Slopes, f.Roofs = ceilings(all[0].Roofs, works(all)...)
	f.Roofs = append(f.Roofs, s.Roofs...)
	f.Series = s.series(rate)
	paths := s.paths()
	if left := len(s.Paths) - len(paths); left > 0 {
		f.Subtitle += fmt.Sprintf("; the longest %d of the paths, without %d more", len(paths), left)
	}
	for _, p := range paths {
		f.Series = append(f.Series, p.series()...)
	}
	if len(f.Series) == 0 {
		return nil, fmt.Errorf("%s: no operations, or no bytes to set them against: want --view %s or %s", all[0].Kernel.Name, TimeView, FloorView)
	}
	return f, nil
}

// rate is a kernel's dot in a roofline, at every level of memory; false where it has no
// operations or no bytes.
func rate(j *roofline.Judged) (Dot, bool) {
	tflops := j.Work.Total().Value / timeOf(j) / 1e6
	return Dot{Label: fmt.Sprintf("%s TFLOP/s: %s", plain(max(tflops, unseen)), brief(j.Kernel.Name, labelLetters)), TFLOPS: tflops, At: j.Intensities, Doubt: doubtOf(j)}, len(j.Intensities) > 0
}

// labelLetters bounds a name in the drawing; hover, legend and table have it whole.
const labelLetters = 30

// brief shortens a name to a number of letters.
func brief(name string, most int) string {
	if r := []rune(name); len(r) > most {
		return strings.TrimRight(string(r[:most-1]), " _<,") + "…"
	}
	return name
}

// series is a path as a trajectory, by the bytes of the slowest memory alone.
func (p *Path) series() []Series {
	t := Series{Name: p.Name, Joined: true, Arrows: p.Arrows}
	for i, j := range p.Kernels {
		d, ok := rate(j)
		if !ok {
			continue
		}
		d.Title, d.At, t.From = j.Kernel.Name, d.At[:1], provenance(j)
		d.Hollow = p.Arrows && i == 0
		switch {
		case p.Bare:
			d.Label = ""
		case !p.Arrows: // the axis has the rate
			d.Label = j.Kernel.Name
		}
		t.Dots = append(t.Dots, d)
	}
	if len(t.Dots) == 0 {
		return nil
	}
	return []Series{t}
}

// paths are those that have a colour and a name of their own: all of few, and of many those
// that begin with the longest times, in the order given.
func (s *Subject) paths() []Path {
	if len(s.Paths) <= ownLabels {
		return s.Paths
	}
	begins := func(p *Path) float64 { return timeOf(p.Kernels[0]) }
	longest := slices.Clone(s.Paths)
	slices.SortStableFunc(longest, func(a, b Path) int { return cmp.Compare(begins(&b), begins(&a)) })
	least := begins(&longest[ownLabels-1])
	kept := slices.DeleteFunc(slices.Clone(s.Paths), func(p Path) bool { return begins(&p) < least })
	return kept[:ownLabels]
}

func works(kernels []*roofline.Judged) []*roofline.Work {
	var out []*roofline.Work
	for _, j := range kernels {
		out = append(out, &j.Work)
	}
	return out
}
