package plot

import (
	"math"
	"sort"
)

// Colours: ink for text and roofs, and the Okabe-Ito palette for series, which
// readers who do not see all colours can tell apart.
const (
	ink   = "#222222"
	faded = "#8a8a8a"
	grid  = "#e6e6e6"
	tint  = "#f2f6fb"

	doubtful = "#d62728" // what cannot be taken at its word
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
	peak    float64 // the highest roof, or the frame's top where there is none
	space   *space
	inside  box  // the frame
	outside bool // some dot lies beyond the frame
	doubted bool // some dot cannot be taken at its word

	clouded map[int]int // dots of each series in its cloud
	merged  [kinds]int  // dots of all series in clouds
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
		figure: f, clouded: map[int]int{},
		x:      axis{low: xs[0], high: xs[1], start: leftMargin, end: leftMargin + frameWidth},
		y:      axis{low: ys[0], high: ys[1], start: top + height, end: top},
		inside: box{leftMargin + 2, top + 2, leftMargin + frameWidth - 2, top + height - 2},
	}
	if d.peak = f.peak(); d.peak == 0 {
		d.peak = d.y.max()
	}
	d.scene = &Scene{
		Width: leftMargin + frameWidth + rightMargin,
		Title: f.Title,
		Frame: [2]Point{{leftMargin, top}, {leftMargin + frameWidth, top + height}},
		Axes:  f.axes(),
		x:     d.x, y: d.y, memory: f.Memory,
	}
	d.space = newSpace(d.scene.Width, top+height+200)
	d.scene.group("heading", false).Elements = h.elements
	d.grid()
	d.ceilings()
	d.walls()
	d.corners()
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
	if len(d.figure.Roofs) > 0 {
		tinted.area(Style{Fill: tint}, d.envelope()...)
	}
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
	labels.text(Text{At: Point{middle, f[1].Y + 38}, Anchor: Middle, Size: 13, Fill: ink, Text: d.figure.axes().X})
	labels.text(Text{At: Point{22, (f[0].Y + f[1].Y) / 2}, Anchor: Middle, Angle: -90, Size: 13, Fill: ink, Text: d.figure.axes().Y})
}

// envelope is the region under the slowest memory and the highest roof: the GPU's, not
// what a second roof says was reached of it.
func (d *drawing) envelope() []Point {
	s := d.figure.Slopes[0]
	for _, t := range d.figure.Slopes {
		if t.Second == s.Second && t.GBs < s.GBs || s.Second && !t.Second {
			s = t
		}
	}
	left := d.x.min()
	return []Point{
		d.at(left, d.y.min()), d.at(left, d.figure.rate(s, left)), d.at(d.figure.ridge(s, d.peak), d.peak),
		d.at(d.x.max(), d.peak), d.at(d.x.max(), d.y.min()),
	}
}

// ceilings draws roofs and slopes from edge to edge of the frame: strong where
// they can bind, faint beyond their crossing.
func (d *drawing) ceilings() {
	g := d.scene.group("ceilings", true)
	fastest := 0.0
	for _, s := range d.figure.Slopes {
		fastest = max(fastest, s.GBs)
	}
	strong := Style{Stroke: ink, Width: 1.8}
	faint := Style{Stroke: faded, Width: 0.8, Dash: "2 3"}
	for _, s := range d.figure.Slopes {
		a, b := d.at(d.x.min(), d.figure.rate(s, d.x.min())), d.at(d.figure.ridge(s, d.peak), d.peak)
		c := d.at(d.x.max(), d.figure.rate(s, d.x.max()))
		st := strong
		if s.Second {
			st.Dash, st.Width = "7 4", 1.3
		}
		g.line(faint, b, c)
		g.line(st, a, b)
		d.space.takeAlong(a, b, roofs)
		d.space.takeLine(b, c)
	}
	for _, r := range d.figure.Roofs {
		st := strong
		if r.Second {
			st.Dash, st.Width = "7 4", 1.3
		}
		start := max(r.TFLOPS*d.figure.axes().Scale/fastest, d.x.min())
		a, b, c := d.at(d.x.min(), r.TFLOPS), d.at(start, r.TFLOPS), d.at(d.x.max(), r.TFLOPS)
		g.line(faint, a, b)
		g.line(st, b, c)
		d.space.takeLine(a, b)
		d.space.takeAlong(b, c, roofs)
	}
	d.ridges()
}

// ridges marks where the slowest memory meets the highest roof.
func (d *drawing) ridges() {
	g := d.scene.group("ridge", false)
	e := d.envelope()
	at := e[2]
	bottom := d.scene.Frame[1].Y
	if len(d.figure.Roofs) == 0 { // a diagonal alone
		return
	}
	if at.X < d.inside.x0 || at.X > d.inside.x1 {
		return
	}
	g.line(Style{Stroke: faded, Width: 0.8, Dash: "2 3"}, at, Point{at.X, bottom})
	d.space.takeLine(at, Point{at.X, bottom})
	value := d.x.value(at.X)
	t := Text{At: Point{at.X + 7, bottom - 7}, Size: smallFont, Fill: faded, Text: "ridge " + plain(value)}
	d.space.place(&t, d.inside, everything)
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
		d.roofLabel(g, r)
	}
}

// Lifts are how far a label's baseline may lie above a slope that it runs along, or below,
// in pixels: beside the line, or where markers are in the way a little further off.
var (
	nearLifts = []float64{6, 8, 10, 12, -14, -16, -18}
	farLifts  = []float64{14, -20, 16, -22, 18, -24, 20, -26, 23, -29, 26, -32, 30, -36}
)

// slopeLabel sets the text along its line, at the line's own angle: on the part
// that can bind and clear of everything, else across lines that are no roofs, else
// level beside it. Only where all that fails does it cross a roof.
func (d *drawing) slopeLabel(s Slope) (Text, bool) {
	a, b := d.at(d.x.min(), d.figure.rate(s, d.x.min())), d.at(d.figure.ridge(s, d.peak), d.peak)
	angle := math.Atan2(b.Y-a.Y, b.X-a.X)
	sin, cos := math.Sincos(angle)
	length := math.Hypot(b.X-a.X, b.Y-a.Y)
	fits := length - width(s.Label, fontSize, false)
	within := func(until float64, lifts []float64, clear layer) (Text, bool) {
		for along := 12.0; along < until; along += 8 {
			for _, lift := range lifts {
				t := Text{
					At:     Point{a.X + along*cos + lift*sin, a.Y + along*sin - lift*cos},
					Anchor: Start, Angle: angle * 180 / math.Pi, Size: fontSize, Fill: ink, Text: s.Label,
				}
				if d.space.place(&t, d.inside, clear) {
					t.Halo = clear&lines == 0
					return t, true
				}
			}
		}
		return Text{}, false
	}
	for _, try := range []struct {
		until float64
		lifts []float64
		clear layer
	}{{fits, nearLifts, everything}, {fits, farLifts, everything}, {fits, nearLifts, roofs | solid}, {fits, farLifts, roofs | solid}, {length, nearLifts, roofs | solid}} {
		if t, ok := within(try.until, try.lifts, try.clear); ok {
			return t, true
		}
	}
	if t, ok := d.levelLabel(s, a, b); ok {
		return t, true
	}
	return within(length, nearLifts, solid)
}

// levelLabel sets a slope's text level beside the part from a to b, from its lower end on.
func (d *drawing) levelLabel(s Slope, a, b Point) (Text, bool) {
	length := math.Hypot(b.X-a.X, b.Y-a.Y)
	for _, clear := range []layer{everything, roofs | solid} {
		for along := 12.0; along < length; along += 8 {
			for _, side := range []struct {
				away   float64
				anchor Anchor
			}{{-8, End}, {12, Start}} {
				t := Text{
					At:     Point{a.X + along/length*(b.X-a.X) + side.away, a.Y + along/length*(b.Y-a.Y) + 4},
					Anchor: side.anchor, Size: fontSize, Fill: ink, Text: s.Label,
				}
				if d.space.place(&t, d.inside, clear) {
					t.Halo = clear&lines == 0
					return t, true
				}
			}
		}
	}
	return Text{}, false
}

// roofLabel sets the text above its line or below, clear of everything, else across
// lines and clouds, else in smaller letters, else across other roofs, where they lie
// close together.
func (d *drawing) roofLabel(g *Group, r Roof) {
	y := d.y.at(r.TFLOPS)
	for _, try := range []struct {
		size  float64
		clear layer
	}{{fontSize, everything}, {fontSize, roofs | solid}, {smallFont, roofs | solid}, {fontSize, solid}} {
		for _, lift := range []float64{6, -(fontSize + 2)} {
			for x := d.inside.x1 - 6; x > d.inside.x0; x -= 10 {
				t := Text{At: Point{x, y - lift}, Anchor: End, Size: try.size, Fill: ink, Text: r.Label}
				if !d.space.place(&t, d.inside, try.clear) {
					continue
				}
				t.Halo = try.clear&lines == 0
				g.text(t)
				return
			}
		}
	}
}

// walls draws the figure's walls, named as near the top as no roof is in the way.
func (d *drawing) walls() {
	g := d.scene.group("walls", true)
	names := d.scene.group("wall labels", false)
	top, bottom := d.scene.Frame[0].Y, d.scene.Frame[1].Y
	for _, w := range d.figure.Walls {
		if !d.x.holds(w.At) {
			continue
		}
		x := d.x.at(w.At)
		g.line(Style{Stroke: faded, Width: 1, Dash: "6 3"}, Point{x, bottom}, Point{x, top})
		d.wallLabel(names, w, x)
		d.space.takeLine(Point{x, bottom}, Point{x, top})
	}
}

func (d *drawing) wallLabel(g *Group, w Wall, x float64) {
	top, bottom := d.scene.Frame[0].Y, d.scene.Frame[1].Y
	for _, clear := range []layer{everything, roofs | solid, solid} {
		for down := 8.0; down < bottom-top; down += 12 {
			t := Text{At: Point{x - 4, top + down}, Anchor: End, Angle: -90, Size: smallFont, Fill: faded, Text: w.Label}
			if d.space.place(&t, d.inside, clear) {
				t.Halo = clear&lines == 0
				g.text(t)
				return
			}
		}
	}
}
