// Package plot draws rooflines. A Figure says what to show; it becomes a Scene
// of lines, markers and text at fixed places, which a back end writes out. The
// same figure always gives the same bytes.
package plot

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// Point is a place in a scene, in pixels from its top left corner.
type Point struct{ X, Y float64 }

// Anchor says which end of a text its place is.
type Anchor string

// The anchors, as SVG names them.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Shape is the outline of a marker.
type Shape uint8

// The shapes.
const (
	Circle Shape = iota
	Square
	Triangle
	Diamond
	Star
	Cross
)

// Style is how lines, areas and text look. Colours are "#rrggbb"; empty means
// none.
type Style struct {
	Stroke  string
	Width   float64 // of the stroke, pixels
	Dash    string  // SVG's stroke-dasharray, empty for a full line
	Fill    string
	Opacity float64 // 0 counts as 1
}

// Line is an open polyline.
type Line struct {
	Points []Point
	Style  Style
}

// Area is a filled polygon; Title is shown when a pointer rests on it.
type Area struct {
	Points []Point
	Style  Style
	Title  string
}

// Marker is a data point; Title is shown when a pointer rests on it.
type Marker struct {
	At    Point
	Shape Shape
	Size  float64 // half its height, pixels
	Style Style
	Title string
}

// Text is one line of text in the sans-serif face that width knows.
type Text struct {
	At     Point // on the baseline
	Anchor Anchor
	Angle  float64 // degrees clockwise
	Size   float64 // pixels
	Bold   bool
	Fill   string
	Halo   bool // a pale edge around the letters, which lie on lines
	Text   string
}

// haloWidth is how far a halo reaches beyond the letters, in pixels.
const haloWidth = 1.5

// Cloud is many marks of one kind and series, without words of their own.
type Cloud struct {
	Series int // its place in the figure
	Kind   Kind
	Colour string // the series'
	Points []Point
}

// cloudStyle is what the marks of a cloud look like.
type cloudStyle struct {
	size    float64 // half a mark's height, pixels
	width   float64 // of the strokes, pixels; 0: full dots
	opacity float64
}

var cloudStyles = [kinds]cloudStyle{
	Dots:    {size: 1.5, opacity: 0.35},
	Crosses: {size: 2.5, width: 1.4, opacity: 0.6},
	Rings:   {size: 3.5, width: 1.2, opacity: 0.8},
}

// colour is what the marks are drawn in.
func (c *Cloud) colour() string {
	if c.Kind == Crosses {
		return doubtful
	}
	return c.Colour
}

// Element is one thing to draw: exactly one of its fields is set.
type Element struct {
	Line   *Line
	Area   *Area
	Marker *Marker
	Cloud  *Cloud
	Text   *Text
}

// Group is elements that belong together, painted in order; Clip keeps them
// inside the plot's frame.
type Group struct {
	Name     string
	Clip     bool
	Elements []Element
}

// Scene is a finished drawing.
type Scene struct {
	Width, Height float64
	Title         string
	Frame         [2]Point // top left and bottom right of the plot's frame
	Axes          Axes
	Groups        []*Group
	Series        []SeriesKey // of the figure, in its order
	Data          []Datum     // every point drawn, in the figure's order

	x, y   axis
	memory string // as in Figure
}

// SeriesKey is how a series shows in the drawing.
type SeriesKey struct {
	Name, Colour string
	From         bench.Provenance
}

// Datum is a point of the figure and where it is drawn.
type Datum struct {
	Series, Dot int // places in the figure
	Level       roofline.Unit
	At          Point
	Name, Doubt string
	Outside     bool    // it lies beyond the frame: At is on its edge
	Exact       float64 // its value on a linear axis of x, which pixels tell badly; else 0
}

// Read returns the values that the axes show at a place.
func (s *Scene) Read(p Point) (x, y float64) { return s.x.value(p.X), s.y.value(p.Y) }

func (s *Scene) group(name string, clip bool) *Group {
	g := &Group{Name: name, Clip: clip}
	s.Groups = append(s.Groups, g)
	return g
}

func (g *Group) line(style Style, points ...Point) {
	g.Elements = append(g.Elements, Element{Line: &Line{points, style}})
}

func (g *Group) area(style Style, points ...Point) {
	g.Elements = append(g.Elements, Element{Area: &Area{Points: points, Style: style}})
}

func (g *Group) marker(m Marker) { g.Elements = append(g.Elements, Element{Marker: &m}) }

func (g *Group) text(t Text) { g.Elements = append(g.Elements, Element{Text: &t}) }

// outline returns the corners of a marker's shape; Circle has none.
func (m *Marker) outline() []Point {
	unit := shapes[m.Shape]
	out := make([]Point, len(unit))
	for i, p := range unit {
		out[i] = Point{m.At.X + p.X*m.Size, m.At.Y + p.Y*m.Size}
	}
	return out
}

// shapes are outlines of half height 1, of about equal area.
var shapes = [...][]Point{
	Square:   {{-0.88, -0.88}, {0.88, -0.88}, {0.88, 0.88}, {-0.88, 0.88}},
	Triangle: {{0, -1.15}, {1.1, 0.8}, {-1.1, 0.8}},
	Diamond:  {{0, -1.2}, {1.2, 0}, {0, 1.2}, {-1.2, 0}},
	Cross:    {{-1, -0.6}, {-0.6, -1}, {0, -0.4}, {0.6, -1}, {1, -0.6}, {0.4, 0}, {1, 0.6}, {0.6, 1}, {0, 0.4}, {-0.6, 1}, {-1, 0.6}, {-0.4, 0}},
	Star: {{0, -1.4}, {0.36, -0.49}, {1.33, -0.43}, {0.58, 0.19}, {0.82, 1.13}, {0, 0.61},
		{-0.82, 1.13}, {-0.58, 0.19}, {-1.33, -0.43}, {-0.36, -0.49}},
}
