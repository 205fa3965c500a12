package plot

import (
	"fmt"
	"math"
	"sort"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

// Colours: ink for text and roofs, and the Okabe-Ito palette for series, which
// readers who do not see all colours can tell apart.
const (
	ink   = "#222222"
	faded = "#8a8a8a"
	grid  = "#e6e6e6"
	tint  = "#f2f6fb"
)

var palette = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// Sizes in pixels.
const (
	frameWidth  = 840.0
	leftMargin  = 76.0
	rightMargin = 34.0
	fontSize    = 12.0
	smallFont   = 11.0
)

// drawing is a figure on its way to a scene.
type drawing struct {
	figure  *Figure
	scene   *Scene
	x, y    axis
	space   *space
	inside  box  // the frame
	outside bool // some dot does not
}

// Scene lays the figure out. The error names a value that a logarithmic axis
// cannot show.
func (f *Figure) Scene() (*Scene, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	xs, ys := f.spans()
	// Decades of equal length show bandwidth at 45 degrees, if the frame's
	// height stays sensible.
	height := min(max(frameWidth/(xs[1]-xs[0])*(ys[1]-ys[0]), 400), 640)
	h := f.heading()
	top := h.bottom + 16
	d := &drawing{
		figure: f,
		x:      axis{xs[0], xs[1], leftMargin, leftMargin + frameWidth},
		y:      axis{ys[0], ys[1], top + height, top},
		inside: box{leftMargin + 2, top + 2, leftMargin + frameWidth - 2, top + height - 2},
	}
	d.scene = &Scene{
		Width: leftMargin + frameWidth + rightMargin,
		Title: f.Title,
		Frame: [2]Point{{leftMargin, top}, {leftMargin + frameWidth, top + height}},
	}
	d.space = newSpace(d.scene.Width, top+height+200)
	d.scene.group("heading", false).Elements = h.elements
	d.grid()
	d.ceilings()
	d.data()
	d.legend()
	return d.scene, nil
}

func (d *drawing) at(intensity, tflops float64) Point {
	return Point{d.x.at(intensity), d.y.at(tflops)}
}

// heading is the title and the subtitle, in two lines each where one is too
// short, and the lowest baseline of them.
type heading struct {
	elements []Element
	bottom   float64
}

func (f *Figure) heading() heading {
	h := &Group{}
	y := 6.0
	for _, part := range []struct {
		Text
		leading float64
	}{
		{Text{Size: 18, Bold: true, Fill: ink, Text: f.Title}, 22},
		{Text{Size: 13, Fill: "#555555", Text: f.Subtitle}, 20},
	} {
		for _, line := range wrap(part.Text.Text, part.Size, part.Bold, frameWidth, 2) {
			y += part.leading
			t := part.Text
			t.At, t.Text = Point{leftMargin, y}, line
			h.text(t)
		}
	}
	return heading{elements: h.Elements, bottom: y}
}

func (d *drawing) grid() {
	f := d.scene.Frame
	tinted := d.scene.group("region", true)
	lines := d.scene.group("grid", false)
	labels := d.scene.group("axes", false)
	tinted.area(Style{Fill: tint}, d.envelope()...)
	for _, t := range d.x.ticks() {
		x := d.x.at(t.value)
		switch {
		case t.decade:
			lines.line(Style{Stroke: grid, Width: 1}, Point{x, f[0].Y}, Point{x, f[1].Y})
		default:
			lines.line(Style{Stroke: ink, Width: 0.7}, Point{x, f[1].Y}, Point{x, f[1].Y + 4})
		}
		if t.label != "" {
			labels.text(Text{At: Point{x, f[1].Y + 18}, Anchor: Middle, Size: fontSize, Fill: ink, Text: t.label})
		}
	}
	for _, t := range d.y.ticks() {
		y := d.y.at(t.value)
		switch {
		case t.decade:
			lines.line(Style{Stroke: grid, Width: 1}, Point{f[0].X, y}, Point{f[1].X, y})
		default:
			lines.line(Style{Stroke: ink, Width: 0.7}, Point{f[0].X - 4, y}, Point{f[0].X, y})
		}
		if t.label != "" {
			labels.text(Text{At: Point{f[0].X - 8, y + 4}, Anchor: End, Size: fontSize, Fill: ink, Text: t.label})
		}
	}
	lines.line(Style{Stroke: ink, Width: 1}, f[0], Point{f[0].X, f[1].Y}, f[1])
	middle := (f[0].X + f[1].X) / 2
	labels.text(Text{At: Point{middle, f[1].Y + 38}, Anchor: Middle, Size: 13, Fill: ink, Text: "arithmetic intensity (FLOP/byte)"})
	labels.text(Text{At: Point{22, (f[0].Y + f[1].Y) / 2}, Anchor: Middle, Angle: -90, Size: 13, Fill: ink, Text: "TFLOP/s"})
}

// envelope is the region under the slowest memory and the highest roof.
func (d *drawing) envelope() []Point {
	s := d.figure.Slopes[0]
	for _, t := range d.figure.Slopes {
		if t.GBs < s.GBs {
			s = t
		}
	}
	peak := d.figure.peak()
	left := d.x.min()
	return []Point{
		d.at(left, d.y.min()), d.at(left, left*s.GBs/1e3), d.at(ridge(s, peak), peak),
		d.at(d.x.max(), peak), d.at(d.x.max(), d.y.min()),
	}
}

// ceilings draws roofs and slopes from edge to edge of the frame: strong where
// they can bind, faint beyond their crossing.
func (d *drawing) ceilings() {
	g := d.scene.group("ceilings", true)
	peak := d.figure.peak()
	fastest := 0.0
	for _, s := range d.figure.Slopes {
		fastest = max(fastest, s.GBs)
	}
	strong := Style{Stroke: ink, Width: 1.8}
	faint := Style{Stroke: faded, Width: 0.8, Dash: "2 3"}
	for _, s := range d.figure.Slopes {
		a, b := d.at(d.x.min(), d.x.min()*s.GBs/1e3), d.at(ridge(s, peak), peak)
		c := d.at(d.x.max(), d.x.max()*s.GBs/1e3)
		g.line(faint, b, c)
		g.line(strong, a, b)
		d.space.takeLine(a, c)
	}
	for _, r := range d.figure.Roofs {
		st := strong
		if r.Second {
			st.Dash, st.Width = "7 4", 1.3
		}
		start := max(r.TFLOPS*1e3/fastest, d.x.min())
		a, b, c := d.at(d.x.min(), r.TFLOPS), d.at(start, r.TFLOPS), d.at(d.x.max(), r.TFLOPS)
		g.line(faint, a, b)
		g.line(st, b, c)
		d.space.takeLine(a, c)
	}
	d.ridges()
}

// ridges marks where the slowest memory meets the highest roof.
func (d *drawing) ridges() {
	g := d.scene.group("ridge", false)
	e := d.envelope()
	at := e[2]
	bottom := d.scene.Frame[1].Y
	if at.X < d.inside.x0 || at.X > d.inside.x1 {
		return
	}
	g.line(Style{Stroke: faded, Width: 0.8, Dash: "2 3"}, at, Point{at.X, bottom})
	d.space.takeLine(at, Point{at.X, bottom})
	value := math.Pow(10, d.x.low+(at.X-d.x.start)/(d.x.end-d.x.start)*(d.x.high-d.x.low))
	t := Text{At: Point{at.X + 7, bottom - 7}, Size: smallFont, Fill: faded, Text: "ridge " + plain(value)}
	d.space.place(&t, d.inside, lines|solid)
	g.text(t)
}

func (d *drawing) ceilingLabels() {
	g := d.scene.group("ceiling labels", false)
	for _, s := range d.figure.Slopes {
		if t, ok := d.slopeLabel(s); ok {
			g.text(t)
		}
	}
	roofs := append([]Roof(nil), d.figure.Roofs...)
	sort.SliceStable(roofs, func(i, j int) bool { return roofs[i].TFLOPS > roofs[j].TFLOPS })
	for _, r := range roofs {
		if t, ok := d.roofLabel(r); ok {
			g.text(t)
		}
	}
}

// slopeLabel sets the text along its line, at the line's own angle: on the part
// that can bind and clear of everything, else across other lines, else further
// up.
func (d *drawing) slopeLabel(s Slope) (Text, bool) {
	a, b := d.at(d.x.min(), d.x.min()*s.GBs/1e3), d.at(ridge(s, d.figure.peak()), d.figure.peak())
	angle := math.Atan2(b.Y-a.Y, b.X-a.X)
	sin, cos := math.Sincos(angle)
	length := math.Hypot(b.X-a.X, b.Y-a.Y)
	fits := length - width(s.Label, fontSize, false)
	for _, try := range []struct {
		until float64
		clear layer
	}{{fits, lines | solid}, {fits, solid}, {length, solid}} {
		for along := 12.0; along < try.until; along += 8 {
			for _, lift := range []float64{6, 8, 10, 12, -14, -16, -18} {
				t := Text{
					At:     Point{a.X + along*cos + lift*sin, a.Y + along*sin - lift*cos},
					Anchor: Start, Angle: angle * 180 / math.Pi, Size: fontSize, Fill: ink, Text: s.Label,
				}
				if d.space.place(&t, d.inside, try.clear) {
					return t, true
				}
			}
		}
	}
	return Text{}, false
}

func (d *drawing) roofLabel(r Roof) (Text, bool) {
	y := d.y.at(r.TFLOPS)
	for _, lift := range []float64{6, -(fontSize + 2)} {
		for x := d.inside.x1 - 6; x > d.inside.x0; x -= 10 {
			t := Text{At: Point{x, y - lift}, Anchor: End, Size: fontSize, Fill: ink, Text: r.Label}
			if d.space.place(&t, d.inside, lines|solid) {
				return t, true
			}
		}
	}
	return Text{}, false
}

// shapeOf gives each level of memory its shape.
func shapeOf(u roofline.Unit) Shape {
	switch u {
	case roofline.L2:
		return Square
	case roofline.Shared:
		return Triangle
	}
	return Circle
}

// mark is a dot's marker for one level, with the place where it is drawn.
type mark struct {
	Marker
	dot *Dot
}

// data draws clouds first and the best last, then writes labels where room is.
func (d *drawing) data() {
	g := d.scene.group("data", false)
	var labelled []mark
	for _, best := range []bool{false, true} {
		for i := range d.figure.Series {
			s := &d.figure.Series[i]
			colour := palette[i%len(palette)]
			if s.Joined && !best {
				d.join(g, s, colour)
			}
			crowd := len(s.Dots) > 24
			for k := range s.Dots {
				if s.Dots[k].Best == best {
					if m, ok := d.dot(g, s, &s.Dots[k], colour, crowd); ok {
						labelled = append(labelled, m)
					}
				}
			}
		}
	}
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

// dot draws all markers of a kernel and returns the first, to be labelled.
func (d *drawing) dot(g *Group, s *Series, dot *Dot, colour string, crowd bool) (mark, bool) {
	var marks []mark
	for _, a := range dot.At {
		m := mark{dot: dot, Marker: Marker{
			At: d.at(d.x.clamp(a.Value), d.y.clamp(dot.TFLOPS)), Shape: shapeOf(a.Level), Size: 4.5,
			Style: Style{Fill: colour, Stroke: "#ffffff", Width: 0.8}, Title: d.title(s, dot, a),
		}}
		switch {
		case !d.x.holds(a.Value) || !d.y.holds(dot.TFLOPS):
			// Off the frame: a hollow marker at the edge.
			d.outside = true
			m.Style = Style{Fill: "#ffffff", Stroke: colour, Width: 1.5}
		case dot.Best:
			m.Size, m.Style = 8, Style{Fill: colour, Stroke: ink, Width: 1.2}
			if a.Level == roofline.HBM {
				m.Shape = Star
			}
		case crowd:
			m.Size, m.Style = 3, Style{Fill: colour, Opacity: 0.45}
		}
		marks = append(marks, m)
	}
	for i := 1; i < len(marks); i++ {
		g.line(Style{Stroke: colour, Width: 0.8, Opacity: 0.7}, marks[i-1].At, marks[i].At)
		d.space.takeLine(marks[i-1].At, marks[i].At)
	}
	for i := len(marks) - 1; i >= 0; i-- {
		m := marks[i]
		g.marker(m.Marker)
		d.space.take(box{m.At.X - m.Size, m.At.Y - m.Size, m.At.X + m.Size, m.At.Y + m.Size}, solid)
	}
	return marks[0], dot.Label != ""
}

func (d *drawing) title(s *Series, dot *Dot, a roofline.Intensity) string {
	t := dot.Title
	if t == "" {
		t = dot.Label
	}
	if t == "" {
		t = s.Name
	}
	return fmt.Sprintf("%s: %s TFLOP/s%s, %s FLOP/byte at %s", t, plain(dot.TFLOPS), from(s.From), plain(a.Value), a.Level)
}

func (d *drawing) join(g *Group, s *Series, colour string) {
	var path []Point
	for _, dot := range s.Dots {
		path = append(path, d.at(d.x.clamp(dot.At[0].Value), d.y.clamp(dot.TFLOPS)))
	}
	g.line(Style{Stroke: colour, Width: 1.4, Opacity: 0.8}, path...)
	for i := 1; i < len(path); i++ {
		d.space.takeLine(path[i-1], path[i])
	}
}

// label writes a dot's name as near as nothing else is in the way, with a
// leader where that is not beside it; in a crowd without room not at all, but
// for the best's, which is first cut less and may lie on lines.
func (d *drawing) label(g *Group, m mark) {
	if !m.dot.Best {
		d.labelWithin(g, m, frameWidth/2, lines|solid)
		return
	}
	for _, clear := range []layer{lines | solid, solid} {
		for _, share := range []float64{0.8, 0.5} {
			if d.labelWithin(g, m, frameWidth*share, clear) {
				return
			}
		}
	}
}

func (d *drawing) labelWithin(g *Group, m mark, limit float64, clear layer) bool {
	text := fit(m.dot.Label, smallFont, m.dot.Best, limit)
	for away := 6.0; away < 200; away *= 1.25 {
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
			if leader && !d.space.clearLine(Point{start.X + dir.X*cell, start.Y + dir.Y*cell}, end) || !d.space.place(&t, d.inside, clear) {
				continue
			}
			if leader {
				g.line(Style{Stroke: faded, Width: 0.7}, start, end)
			}
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

// legend lists series and, where more than one is drawn, levels of memory,
// below the frame; the scene grows by as many lines as that takes.
func (d *drawing) legend() {
	g := d.scene.group("legend", false)
	x, y := leftMargin, d.scene.Frame[1].Y+64
	entry := func(m Marker, text string) {
		w := 18 + width(text, fontSize, false) + 22
		if x+w > leftMargin+frameWidth && x > leftMargin {
			x, y = leftMargin, y+20
		}
		m.At = Point{x + 6, y - 4}
		g.marker(m)
		g.text(Text{At: Point{x + 18, y}, Size: fontSize, Fill: ink, Text: text})
		x += w
	}
	used := map[roofline.Unit]bool{}
	for i, s := range d.figure.Series {
		best := false
		for _, dot := range s.Dots {
			best = best || dot.Best
			for _, a := range dot.At {
				used[a.Level] = true
			}
		}
		colour := palette[i%len(palette)]
		entry(Marker{Size: 4.5, Style: Style{Fill: colour}}, fit(s.Name, fontSize, false, frameWidth/2)+from(s.From))
		if best {
			entry(Marker{Shape: Star, Size: 6.5, Style: Style{Fill: colour, Stroke: ink, Width: 1}}, "best of them")
		}
	}
	if d.outside {
		entry(Marker{Size: 4.5, Style: Style{Fill: "#ffffff", Stroke: ink, Width: 1.5}}, "outside the frame")
	}
	if len(used) > 1 {
		for _, u := range roofline.Units() {
			if used[u] {
				entry(Marker{Shape: shapeOf(u), Size: 4.5, Style: Style{Stroke: ink, Width: 1.2, Fill: "#ffffff"}}, "by "+string(u)+" bytes")
			}
		}
	}
	d.scene.Height = y + 20
}

func from(p bench.Provenance) string {
	if p == 0 {
		return ""
	}
	return " (" + p.String() + ")"
}
