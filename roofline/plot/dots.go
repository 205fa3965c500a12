package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/roofline"
)

// shapeOf gives each level of memory its shape.
func shapeOf(u roofline.Unit) Shape {
	switch u {
	case roofline.L2:
		return Square
	case roofline.Shared:
		return Triangle
	case sectors:
		return Diamond
	}
	return Circle
}

// mark is a dot's marker for one level, with the place where it is drawn.
type mark struct {
	Marker
	series  int
	dot     *Dot
	level   roofline.Intensity
	outside bool // of the frame
}

// data draws clouds first and the best last, then writes labels where room is.
func (d *drawing) data() {
	g := d.scene.group("data", false)
	var labelled []mark
	for i := range d.figure.Series {
		s := &d.figure.Series[i]
		d.scene.Series = append(d.scene.Series, SeriesKey{s.Name, colourOf(i), s.From})
		if s.Joined {
			d.join(g, s, colourOf(i))
		}
		labelled = append(labelled, d.series(g, i, false)...)
	}
	for i := range d.figure.Series {
		labelled = append(labelled, d.series(g, i, true)...)
	}
	slices.SortStableFunc(d.scene.Data, func(a, b Datum) int { return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(a.Dot, b.Dot)) })
	labels := d.scene.group("labels", false)
	for _, best := range []bool{true, false} {
		for _, m := range labelled {
			if m.dot.Best == best {
				d.label(labels, m)
			}
		}
		if best { // the ceilings have their whole length to be named at
			d.ceilingLabels()
		}
	}
}

func colourOf(series int) string { return palette[series%len(palette)] }

// series draws the dots of a series that are best, or those that are not, and
// returns the first marker of each that has a label.
func (d *drawing) series(g *Group, i int, best bool) []mark {
	s := &d.figure.Series[i]
	var labelled, crowd []mark
	if !best && len(s.Dots) > cloudFrom {
		crowd = make([]mark, 0, len(s.Dots))
		d.scene.Data = slices.Grow(d.scene.Data, len(s.Dots))
	}
	for k, named := range s.named() {
		dot := &s.Dots[k]
		if (dot.Best && named) != best {
			continue
		}
		if !named {
			crowd = append(crowd, d.marks(i, k, dot.At[:1])...)
			continue
		}
		marks := d.marks(i, k, dot.At)
		d.draw(g, s, marks)
		if dot.Label != "" {
			labelled = append(labelled, marks[0])
		}
	}
	d.crowd(g, i, crowd)
	return labelled
}

// marks places the markers of a dot, one for each level of memory that is given.
func (d *drawing) marks(series, k int, levels []roofline.Intensity) []mark {
	s := &d.figure.Series[series]
	dot, colour := &s.Dots[k], colourOf(series)
	var marks []mark
	for _, a := range levels {
		m := mark{series: series, dot: dot, level: a, Marker: Marker{
			At: d.at(d.x.clamp(a.Value), d.y.clamp(dot.TFLOPS)), Shape: shapeOf(a.Level), Size: 4.5,
			Style: Style{Fill: colour, Stroke: "#ffffff", Width: 0.8},
		}}
		m.outside = !d.x.holds(a.Value) || !d.y.holds(dot.TFLOPS)
		switch {
		case m.outside: // a hollow marker at the edge
			d.outside = true
			m.Style = Style{Fill: "#ffffff", Stroke: colour, Width: 1.5}
		case dot.Doubt != "":
			d.doubted = true
			m.Shape, m.Size, m.Style = Cross, 4.5, Style{Fill: doubtful, Stroke: "#ffffff", Width: 0.5}
		case dot.Hollow:
			m.Style = Style{Fill: "#ffffff", Stroke: colour, Width: 2}
		case dot.Best:
			m.Size, m.Style = 8, Style{Fill: colour, Stroke: ink, Width: 1.2}
			if a.Level == roofline.HBM {
				m.Shape = Star
			}
		case len(s.Dots) > crowdFrom:
			m.Size, m.Style = 3, Style{Fill: colour, Opacity: 0.45}
		}
		marks = append(marks, m)
		d.scene.Data = append(d.scene.Data, Datum{Series: series, Dot: k, Level: a.Level, At: m.At, Name: dot.name(s), Doubt: dot.Doubt, Outside: m.outside})
	}
	return marks
}

// draw puts the markers of a dot down, joined by a thin line.
func (d *drawing) draw(g *Group, s *Series, marks []mark) {
	for i := 1; i < len(marks); i++ {
		g.line(Style{Stroke: marks[i].colour(), Width: 0.8, Opacity: 0.7}, marks[i-1].At, marks[i].At)
		d.space.takeLine(marks[i-1].At, marks[i].At)
	}
	for i := len(marks) - 1; i >= 0; i-- {
		m := marks[i]
		m.Title = d.title(s, m.dot, m.level)
		g.marker(m.Marker)
		d.space.take(box{m.At.X - m.Size, m.At.Y - m.Size, m.At.X + m.Size, m.At.Y + m.Size}, solid)
	}
}

// colour is the mark's series' colour, which a hollow marker has around it.
func (m *mark) colour() string {
	if m.outside || m.dot.Hollow {
		return m.Style.Stroke
	}
	return m.Style.Fill
}

// name is what a dot is called on hover and in the table.
func (dot *Dot) name(s *Series) string { return cmp.Or(dot.Title, dot.Label, s.Name) }

func (d *drawing) title(s *Series, dot *Dot, a roofline.Intensity) string {
	axes := d.figure.axes()
	t := fmt.Sprintf("%s: %s %s%s, %s %s at %s", dot.name(s), plain(dot.TFLOPS), axes.Rate, from(s.From), plain(a.Value), axes.Per, levelName(a.Level, d.figure.Memory))
	if dot.Doubt != "" {
		t += "; " + dot.Doubt
	}
	return t
}

// join draws a trajectory; with arrows, a head at the end of every piece.
func (d *drawing) join(g *Group, s *Series, colour string) {
	var path []Point
	for _, dot := range s.Dots {
		path = append(path, d.at(d.x.clamp(dot.At[0].Value), d.y.clamp(dot.TFLOPS)))
	}
	if len(path) > cloudFrom { // many of them lie on each other
		path = grains(path)
	}
	g.line(Style{Stroke: colour, Width: 1.4, Opacity: 0.8}, path...)
	for i := 1; i < len(path); i++ {
		d.space.takeLine(path[i-1], path[i])
		if s.Arrows {
			d.arrow(g, path[i-1], path[i], colour)
		}
	}
}

// arrow draws the head of an arrow, its tip short of the marker at b. A piece
// too short for one has none.
func (d *drawing) arrow(g *Group, a, b Point, colour string) {
	const gap, length, half = 6.0, 9.0, 3.5
	dx, dy := b.X-a.X, b.Y-a.Y
	way := math.Hypot(dx, dy)
	if way < gap+length {
		return
	}
	dx, dy = dx/way, dy/way
	tip := Point{b.X - gap*dx, b.Y - gap*dy}
	back := Point{tip.X - length*dx, tip.Y - length*dy}
	g.area(Style{Fill: colour}, tip, Point{back.X - half*dy, back.Y + half*dx}, Point{back.X + half*dy, back.Y - half*dx})
}

// reach is how far from its dot a label is looked for, and over what it may lie.
type reach struct {
	from, until float64
	clear       layer
	share       float64 // of the frame's width that it may take
	through     bool    // its leader may cross markers and text
}

// near is up to where a label needs no leader's help to be found.
const near = 40

// The places for labels: of the best, which may lie on lines and comes first; of a few
// dots, where a near place on a line is better than a far one, and a shorter text than one
// on lines; and of a crowd, whose dots
// go without where there is no room.
var (
	bestReach = []reach{{6, 200, everything, 0.8, false}, {6, 200, everything, 0.5, false}, {6, 200, roofs | solid, 0.8, false}, {6, 200, roofs | solid, 0.5, false},
		{6, 200, solid, 0.8, false}, {6, 200, solid, 0.5, false}}
	fewReach = []reach{{6, near, everything, 0.5, false}, {6, near, everything, 0.3, false}, {6, near, roofs | solid, 0.5, false}, {near, 200, everything, 0.5, false},
		{near, 200, everything, 0.25, false}, {near, 200, roofs | solid, 0.5, false}, {6, 200, roofs | solid, 0.25, false}, {near, 200, everything, 0.5, true},
		{6, 200, solid, 0.5, false}, {6, 200, solid, 0.25, false}}
	crowdReach = []reach{{6, 120, everything, 0.5, false}}
)

// label writes a dot's name as near as nothing else is in the way, with a leader where
// that is not beside it.
func (d *drawing) label(g *Group, m mark) {
	reaches := fewReach
	switch {
	case m.dot.Best:
		reaches = bestReach
	case len(d.figure.Series[m.series].Dots) > crowdFrom:
		reaches = crowdReach
	}
	for _, r := range reaches {
		if d.labelWithin(g, m, r) {
			return
		}
	}
}

func (d *drawing) labelWithin(g *Group, m mark, within reach) bool {
	text := fit(m.dot.Label, smallFont, m.dot.Best, frameWidth*within.share)
	for away := within.from; away < within.until; away *= 1.25 {
		for _, dir := range directions {
			r := m.Size + away
			t := Text{
				At:     Point{m.At.X + dir.X*r, m.At.Y + dir.Y*r + 4},
				Anchor: Start, Size: smallFont, Bold: m.dot.Best, Fill: ink, Text: text,
			}
			switch {
			case dir.X < 0:
				t.Anchor = End
			case dir.X == 0:
				t.Anchor = Middle
			}
			start := Point{m.At.X + dir.X*m.Size, m.At.Y + dir.Y*m.Size}
			end := Point{t.At.X - dir.X*2, t.At.Y - 4 - dir.Y*6}
			leader := away > 14
			if leader && !within.through && !d.space.clearLine(Point{start.X + dir.X*cell, start.Y + dir.Y*cell}, end) || !d.space.place(&t, d.inside, within.clear) {
				continue
			}
			if leader {
				g.line(Style{Stroke: faded, Width: 0.7}, start, end)
				d.space.takeLine(start, end)
			}
			t.Halo = within.clear&lines == 0
			g.text(t)
			return true
		}
	}
	return false
}

// directions are where a label is tried, in order of preference.
var directions = [...]Point{
	{1, 0}, {1, -0.7}, {1, 0.7}, {-1, 0}, {-1, -0.7}, {-1, 0.7}, {0, -1}, {0, 1},
	{0.5, -1}, {0.5, 1}, {-0.5, -1}, {-0.5, 1}, {1, -0.35}, {1, 0.35}, {-1, -0.35}, {-1, 0.35},
}
