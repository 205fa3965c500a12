package plot

import "math"

// Dots of a series beyond crowdFrom are drawn small. Of a series beyond cloudFrom those
// that have no words of their own are drawn as one cloud of each kind, and at most
// mostNamed have words.
const (
	crowdFrom = 24
	cloudFrom = 1000
	mostNamed = 200
)

// Kind is what a cloud is of.
type Kind uint8

// The kinds.
const (
	Dots    Kind = iota
	Crosses      // dots that cannot be taken at their word
	Rings        // dots beyond the frame, at its edge
	kinds
)

// kind of a mark.
func (m *mark) kind() Kind {
	switch {
	case m.outside:
		return Rings
	case m.dot.Doubt != "":
		return Crosses
	}
	return Dots
}

// named says which dots of a series are drawn by themselves, with their words: all of few,
// and of many the first of the best and of those that have a label.
func (s *Series) named() []bool {
	out := make([]bool, len(s.Dots))
	left := mostNamed
	for _, wanted := range []func(*Dot) bool{
		func(d *Dot) bool { return d.Best },
		func(d *Dot) bool { return d.Label != "" },
		func(*Dot) bool { return len(s.Dots) <= cloudFrom },
	} {
		for k := range s.Dots {
			if !out[k] && wanted(&s.Dots[k]) && (left > 0 || len(s.Dots) <= cloudFrom) {
				out[k] = true
				left--
			}
		}
	}
	return out
}

// crowd draws the marks of a series that have no words: as a cloud of each kind. Crosses
// and rings that are few stay by themselves.
func (d *drawing) crowd(g *Group, series int, marks []mark) {
	s := &d.figure.Series[series]
	var byKind [kinds][]*mark
	for i := range marks {
		m := &marks[i]
		byKind[m.kind()] = append(byKind[m.kind()], m)
	}
	for kind, of := range byKind {
		if len(of) == 0 {
			continue
		}
		if Kind(kind) != Dots && len(of) <= cloudFrom {
			for _, m := range of {
				d.draw(g, s, []mark{*m})
			}
			continue
		}
		c := &Cloud{Series: series, Kind: Kind(kind), Colour: colourOf(series), Points: placesOf(of)}
		if c.Kind != Dots {
			c.Points = grains(c.Points)
		}
		g.Elements = append(g.Elements, Element{Cloud: c})
		d.merged[kind] += len(of)
		if c.Kind == Dots {
			d.clouded[series] = len(of)
		}
		for _, p := range c.Points {
			d.space.take(box{p.X - 1, p.Y - 1, p.X + 1, p.Y + 1}, lines)
		}
	}
}

func placesOf(marks []*mark) []Point {
	out := make([]Point, len(marks))
	for i := range marks {
		out[i] = marks[i].At
	}
	return out
}

// grain is how near marks that cover each other may lie, in pixels.
const grain = 2

// grains are the places on a grid, each once, in the order of the first.
func grains(points []Point) []Point {
	seen := map[Point]bool{}
	var out []Point
	for _, p := range points {
		p = Point{math.Round(p.X/grain) * grain, math.Round(p.Y/grain) * grain}
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}
