package plot

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/bench"
)

// Progress is how a search went: the time of every configuration in the order in which
// they were tried, 0 for those that failed, and so the best so far.
type Progress struct {
	Title, Subtitle string
	US              []float64        // microseconds
	From            bench.Provenance // of the times
}

// bottomMargin is below the frame, for the axis' numbers and name.
const bottomMargin = 52.0

// Scene draws the times over a linear axis of evaluations and a logarithmic one of
// microseconds, with a line for the best so far. The error says that there is no time.
func (p *Progress) Scene() (*Scene, error) {
	least, most := math.Inf(1), 0.0
	for _, us := range p.US {
		if us > 0 {
			least, most = min(least, us), max(most, us)
		}
	}
	if most == 0 {
		return nil, fmt.Errorf("plot of %d evaluations: not one has a time", len(p.US))
	}
	const height = 400.0
	h := (&Figure{Title: p.Title, Subtitle: p.Subtitle}).heading()
	top := h.bottom + 16
	low, high := steps(least*0.95, most*1.05)
	y := axis{low: low, high: high, start: top + height, end: top}
	x := axis{high: float64(len(p.US) + 1), start: leftMargin, end: leftMargin + frameWidth, linear: true}
	s := &Scene{
		Width: leftMargin + frameWidth + rightMargin, Height: top + height + bottomMargin, Title: p.Title,
		Frame: [2]Point{{leftMargin, top}, {leftMargin + frameWidth, top + height}}, x: x, y: y,
	}
	s.group("heading", false).Elements = h.elements
	p.frame(s)
	p.times(s)
	return s, nil
}

// frame draws the grid and the axes.
func (p *Progress) frame(s *Scene) {
	lines, labels := s.group("grid", false), s.group("axes", false)
	a, b := s.Frame[0], s.Frame[1]
	for _, t := range s.y.ticks() {
		at := s.y.at(t.value)
		lines.line(Style{Stroke: grid, Width: 1}, Point{a.X, at}, Point{b.X, at})
		if t.label != "" {
			labels.text(Text{At: Point{a.X - 6, at + 4}, Anchor: End, Size: smallFont, Fill: ink, Text: t.label})
		}
	}
	for _, n := range s.x.linearTicks() {
		if n < 1 || n != math.Trunc(n) {
			continue
		}
		at := s.x.at(n)
		lines.line(Style{Stroke: grid, Width: 1}, Point{at, a.Y}, Point{at, b.Y})
		labels.text(Text{At: Point{at, b.Y + 16}, Anchor: Middle, Size: smallFont, Fill: ink, Text: fmt.Sprint(n)})
	}
	lines.line(Style{Stroke: faded, Width: 1}, a, Point{a.X, b.Y}, b)
	labels.text(Text{At: Point{(a.X + b.X) / 2, b.Y + 38}, Anchor: Middle, Size: fontSize, Fill: ink, Text: "configurations tried"})
	labels.text(Text{At: Point{20, (a.Y + b.Y) / 2}, Anchor: Middle, Angle: -90, Size: fontSize, Fill: ink, Text: fmt.Sprintf("time, microseconds, %s", p.From)})
}

// times draws each time as a dot, failures as crosses at the bottom, and the best so far.
func (p *Progress) times(s *Scene) {
	dots := s.group("times", true)
	many := len(p.US) > cloudFrom
	var line, passed, failed []Point
	best := math.Inf(1)
	for i, us := range p.US {
		x := s.x.at(float64(i + 1))
		if us <= 0 {
			at := Point{x, s.Frame[1].Y - 6}
			if failed = append(failed, at); !many {
				dots.marker(Marker{At: at, Shape: Cross, Size: 3, Style: Style{Fill: faded}, Title: fmt.Sprintf("%d failed", i+1)})
			}
			continue
		}
		at := Point{x, s.y.at(us)}
		if passed = append(passed, at); !many {
			dots.marker(Marker{At: at, Shape: Circle, Size: 2.5, Style: Style{Fill: palette[5]}, Title: fmt.Sprintf("%d: %.4g us", i+1, us)})
		}
		if us < best {
			if line != nil {
				line = append(line, Point{x, s.y.at(best)})
			}
			best = us
			line = append(line, at)
		}
	}
	if many {
		dots.Elements = append(dots.Elements, Element{Cloud: &Cloud{Kind: Dots, Colour: palette[5], Points: grains(passed)}}, Element{Cloud: &Cloud{Kind: Rings, Colour: faded, Points: grains(failed)}})
	}
	line = append(line, Point{s.x.at(float64(len(p.US))), s.y.at(best)})
	s.group("best", true).line(Style{Stroke: palette[0], Width: 2}, line...)
}
