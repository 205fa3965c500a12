package plot

import (
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/roofline"
)

// Times are the axes of the time-based roofline of Wang and others (arXiv 2009.04598):
// what the arithmetic takes at its peak against what a level of memory takes at its
// bandwidth. Times of kernels that follow one another add up; rates do not.
var Times = Axes{"least time of the memory's bytes (us)", "least time of the arithmetic (us)", "us of memory", "us of arithmetic", "", 1}

// Corner is all that takes equally long: arithmetic or memory, whichever is slower.
type Corner struct {
	Label  string
	At     float64
	Second bool // a scale alone: thin
}

// times is the time-based view: each kernel at its least times and, where it has a
// time, also there where that time would be the least, with the same balance.
func (s *Subject) times() (*Figure, error) {
	r := s.Kernels[0].Roofs
	launch := r.GPU.Architecture().LaunchUS
	f := &Figure{
		Title: s.Title, Subtitle: s.Subtitle, Axes: Times, Memory: r.GPU.Memory(),
		Slopes:  []Slope{{Label: "memory = arithmetic", GBs: 1}},
		Corners: []Corner{{Label: fmt.Sprintf("a launch: %g us", launch), At: launch}},
	}
	f.Series = s.series(func(j *roofline.Judged) (Dot, bool) {
		compute := j.Compute()
		d := Dot{Label: fmt.Sprintf("at least %s us: %s", plain(j.LeastUS()), brief(j.Kernel.Name, labelLetters)), TFLOPS: max(compute, unseen)}
		for _, level := range []roofline.Unit{roofline.HBM, roofline.L2, roofline.Shared} {
			if us := j.Limits()[string(level)]; us > 0 {
				d.At = append(d.At, roofline.Intensity{Level: level, Value: us})
			}
		}
		if len(d.At) == 0 {
			d.At = []roofline.Intensity{{Level: roofline.HBM, Value: unseen}}
		}
		return d, compute > 0 || d.At[0].Value > unseen
	})
	if len(s.Kernels) <= ownSeries {
		s.taken(f)
	}
	f.scale()
	return f, nil
}

// unseen stands for a time of nothing, which a logarithmic axis cannot show: it lies
// below every frame.
const unseen = 1e-9

// taken adds to each kernel's series where its time lies.
func (s *Subject) taken(f *Figure) {
	for _, j := range s.Kernels {
		i := slices.IndexFunc(f.Series, func(t Series) bool { return t.Name == j.Kernel.Name && len(t.Dots) == 1 })
		if i < 0 || j.Kernel.TimeUS == 0 {
			continue
		}
		t := &f.Series[i]
		least := t.Dots[0]
		slower := j.Kernel.TimeUS / max(least.TFLOPS, least.At[0].Value)
		t.Joined = true
		t.Dots = append(t.Dots, Dot{
			Label: fmt.Sprintf("%s us (%s)", plain(j.Kernel.TimeUS), j.Kernel.From), Title: fmt.Sprintf("%s: %s us (%s)", j.Kernel.Name, plain(j.Kernel.TimeUS), j.Kernel.From),
			TFLOPS: least.TFLOPS * slower, At: []roofline.Intensity{{Level: least.At[0].Level, Value: least.At[0].Value * slower}}, Hollow: true,
		})
	}
}

// scale adds a corner at every decade that the frame will show.
func (f *Figure) scale() {
	x, y := f.spans()
	for n := math.Ceil(min(x[0], y[0])); n <= max(x[1], y[1]); n++ {
		f.Corners = append(f.Corners, Corner{Label: duration(math.Pow(10, n)), At: math.Pow(10, n), Second: true})
	}
}

// duration writes microseconds in the unit that leaves the fewest digits.
func duration(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%g ms", us/1e3)
	case us >= 1:
		return fmt.Sprintf("%g us", us)
	}
	return fmt.Sprintf("%g ns", us*1e3)
}

// timeSpans returns the ends of both axes of times as decimal logarithms: steps of 1, 2
// and 5 around the launch and all that data show, from a hundredth of a launch on.
func (f *Figure) timeSpans() (x, y [2]float64) {
	least, most := f.Corners[0].At/100, f.Corners[0].At
	x, y = [2]float64{math.Inf(1), 0}, [2]float64{math.Inf(1), 0}
	grow := func(span *[2]float64, v float64) {
		span[0], span[1] = min(span[0], max(v, least)), max(span[1], v)
	}
	for _, s := range f.Series {
		for _, d := range s.Dots {
			grow(&y, d.TFLOPS)
			for _, a := range d.At {
				grow(&x, a.Value)
			}
		}
	}
	for _, span := range []*[2]float64{&x, &y} {
		span[0], span[1] = steps(min(span[0], most)/1.5, max(span[1], most)*1.5)
		span[0] = max(span[0], span[1]-maxDecades)
	}
	return x, y
}

// corners draws the lines of equal time, from edge to edge of the frame.
func (d *drawing) corners() {
	g := d.scene.group("times", true)
	names := d.scene.group("time labels", false)
	for _, c := range d.figure.Corners {
		style := Style{Stroke: ink, Width: 1.4, Dash: "7 4"}
		colour := ink
		if c.Second {
			style, colour = Style{Stroke: faded, Width: 0.8, Dash: "2 3"}, faded
		}
		left, corner, foot := d.at(d.x.min(), c.At), d.at(c.At, c.At), d.at(c.At, d.y.min())
		if !d.x.holds(c.At) && !d.y.holds(c.At) {
			continue
		}
		g.line(style, left, corner, foot)
		d.space.takeLine(left, corner)
		d.space.takeLine(corner, foot)
		d.cornerLabel(names, c, left, corner, foot, colour)
	}
}

// cornerLabel names a corner on its level part, or on its upright one where the frame
// has no room there, or else beyond the corner.
func (d *drawing) cornerLabel(g *Group, c Corner, left, corner, foot Point, colour string) {
	level := func(along float64) Text {
		return Text{At: Point{left.X + along, left.Y - 5}, Anchor: Start, Size: smallFont, Fill: colour, Text: c.Label}
	}
	const first, step = 6.0, 12.0
	room := corner.X - left.X - width(c.Label, smallFont, false)
	var tries []Text
	for along := first; along < room; along += step {
		tries = append(tries, level(along))
	}
	for up := first; up < d.inside.y1-d.inside.y0; up += step {
		tries = append(tries, Text{At: Point{foot.X - 5, foot.Y - up}, Anchor: Start, Angle: -90, Size: smallFont, Fill: colour, Text: c.Label})
	}
	for along := max(first, room); along < frameWidth; along += step {
		tries = append(tries, level(along))
	}
	for _, t := range tries {
		if d.space.place(&t, d.inside, everything) {
			g.text(t)
			return
		}
	}
}
