package plot

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// WritePNG writes the scene as a PNG image of scale image pixels for each of
// the scene's. Text is in the Go fonts.
func (s *Scene) WritePNG(w io.Writer, scale float64) error {
	r, err := newRaster(s, scale)
	if err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}
	for _, g := range s.Groups {
		r.clip = r.img.Bounds()
		if g.Clip {
			a, b := s.Frame[0], s.Frame[1]
			r.clip = image.Rect(r.pixel(a.X), r.pixel(a.Y), r.pixel(b.X), r.pixel(b.Y))
		}
		for _, e := range g.Elements {
			if err := r.element(e); err != nil {
				return fmt.Errorf("write PNG: %w", err)
			}
		}
	}
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(w, r.img); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}
	return nil
}

// raster paints into an image.
type raster struct {
	img   *image.RGBA
	scale float64
	clip  image.Rectangle
	shape vector.Rasterizer
	path  [][]Point // what is filled next, in image pixels

	plain, bold *sfnt.Font
	glyphs      sfnt.Buffer
}

func newRaster(s *Scene, scale float64) (*raster, error) {
	if !(scale > 0) || scale*max(s.Width, s.Height) > 1<<15 {
		return nil, fmt.Errorf("scale %g: want at most %d pixels a side", scale, 1<<15)
	}
	r := &raster{scale: scale}
	var err error
	if r.plain, err = sfnt.Parse(goregular.TTF); err != nil {
		return nil, err
	}
	if r.bold, err = sfnt.Parse(gobold.TTF); err != nil {
		return nil, err
	}
	r.img = image.NewRGBA(image.Rect(0, 0, int(math.Ceil(s.Width*scale)), int(math.Ceil(s.Height*scale))))
	draw.Draw(r.img, r.img.Bounds(), image.White, image.Point{}, draw.Src)
	return r, nil
}

func (r *raster) pixel(v float64) int { return int(math.Round(v * r.scale)) }

func (r *raster) element(e Element) error {
	switch {
	case e.Line != nil:
		r.stroke(e.Line.Points, e.Line.Style)
	case e.Area != nil:
		r.filled(e.Area.Points, e.Area.Style)
	case e.Marker != nil:
		r.marker(e.Marker)
	case e.Cloud != nil:
		return r.cloud(e.Cloud)
	case e.Text != nil:
		return r.text(e.Text)
	}
	return nil
}

func (r *raster) marker(m *Marker) {
	points := m.outline()
	if m.Shape == Circle {
		points = circle(m.At, m.Size)
	}
	r.filled(points, m.Style)
}

// circle is a polygon that no eye tells from a circle at these sizes.
func circle(at Point, radius float64) []Point {
	const corners = 24
	out := make([]Point, corners)
	for i := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		out[i] = Point{at.X + radius*cos, at.Y + radius*sin}
	}
	return out
}

func (r *raster) filled(points []Point, st Style) {
	if st.Fill != "" {
		r.add(points)
		r.paint(st.Fill, st.Opacity)
	}
	if st.Stroke != "" {
		st.Dash = ""
		r.stroke(append(append([]Point(nil), points...), points[0]), st)
	}
}

// stroke paints a polyline, in dashes if the style has some.
func (r *raster) stroke(points []Point, st Style) {
	for _, piece := range dashes(points, st.Dash) {
		a, b := piece[0], piece[1]
		way := math.Hypot(b.X-a.X, b.Y-a.Y)
		if way == 0 {
			continue
		}
		nx, ny := (b.Y-a.Y)/way*st.Width/2, -(b.X-a.X)/way*st.Width/2
		r.add([]Point{{a.X + nx, a.Y + ny}, {b.X + nx, b.Y + ny}, {b.X - nx, b.Y - ny}, {a.X - nx, a.Y - ny}})
	}
	r.paint(st.Stroke, st.Opacity)
}

// dashes cuts a polyline into its straight pieces, or into those that an SVG
// stroke-dasharray paints.
func dashes(points []Point, dash string) [][2]Point {
	var lengths []float64
	for _, word := range strings.Fields(dash) {
		if v, err := strconv.ParseFloat(word, 64); err == nil && v > 0 {
			lengths = append(lengths, v)
		}
	}
	var out [][2]Point
	k, left := 0, math.Inf(1)
	if len(lengths) > 0 {
		left = lengths[0]
	}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		way := math.Hypot(b.X-a.X, b.Y-a.Y)
		for done := 0.0; done < way; {
			step := min(left, way-done)
			if k%2 == 0 {
				t, u := done/way, (done+step)/way
				out = append(out, [2]Point{{a.X + t*(b.X-a.X), a.Y + t*(b.Y-a.Y)}, {a.X + u*(b.X-a.X), a.Y + u*(b.Y-a.Y)}})
			}
			done += step
			if left -= step; left <= 0 {
				k++
				left = lengths[k%len(lengths)]
			}
		}
	}
	return out
}

// add takes a closed path, in the scene's pixels, into what is painted next.
func (r *raster) add(points []Point) {
	out := make([]Point, len(points))
	for i, p := range points {
		out[i] = Point{p.X * r.scale, p.Y * r.scale}
	}
	r.path = append(r.path, out)
}

// paint fills the paths taken in, over the part of the image that they touch.
func (r *raster) paint(fill string, opacity float64) {
	defer func() { r.path = r.path[:0] }()
	c, ok := parseColour(fill, opacity)
	if !ok || len(r.path) == 0 {
		return
	}
	low, high := Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	for _, p := range r.path {
		for _, q := range p {
			low, high = Point{min(low.X, q.X), min(low.Y, q.Y)}, Point{max(high.X, q.X), max(high.Y, q.Y)}
		}
	}
	limit := func(v float64) int { return int(math.Floor(min(max(v, -1e4), 1e5))) }
	where := image.Rect(limit(low.X), limit(low.Y), limit(high.X)+1, limit(high.Y)+1)
	seen := where.Intersect(r.clip)
	if seen.Empty() {
		return
	}
	r.shape.Reset(seen.Dx(), seen.Dy())
	x, y := float64(seen.Min.X), float64(seen.Min.Y)
	for _, p := range r.path {
		r.shape.MoveTo(float32(p[0].X-x), float32(p[0].Y-y))
		for _, q := range p[1:] {
			r.shape.LineTo(float32(q.X-x), float32(q.Y-y))
		}
		r.shape.ClosePath()
	}
	r.shape.Draw(r.img, seen, image.NewUniform(c), image.Point{})
}

// parseColour reads "#rrggbb"; an opacity of 0 counts as 1.
func parseColour(s string, opacity float64) (color.NRGBA, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "#"), 16, 32)
	if err != nil || len(s) != 7 {
		return color.NRGBA{}, false
	}
	if opacity <= 0 || opacity > 1 {
		opacity = 1
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), uint8(math.Round(opacity * 255))}, true
}

// cloud paints a mark once and copies it to every place, to whole image pixels.
func (r *raster) cloud(c *Cloud) error {
	st := cloudStyles[c.Kind]
	fill, ok := parseColour(c.colour(), st.opacity)
	if !ok {
		return fmt.Errorf("colour %q: want #rrggbb", c.colour())
	}
	side := 2*int(math.Ceil((st.size+st.width/2)*r.scale)) + 1
	mark := image.NewAlpha(image.Rect(0, 0, side, side))
	middle := Point{float64(side) / 2, float64(side) / 2}
	r.shape.Reset(side, side)
	for _, outline := range c.Kind.outlines(middle, st.size*r.scale, st.width*r.scale) {
		r.shape.MoveTo(float32(outline[0].X), float32(outline[0].Y))
		for _, p := range outline[1:] {
			r.shape.LineTo(float32(p.X), float32(p.Y))
		}
		r.shape.ClosePath()
	}
	r.shape.Draw(mark, mark.Bounds(), image.Opaque, image.Point{})
	source := image.NewUniform(fill)
	for _, p := range c.Points {
		corner := image.Pt(r.pixel(p.X)-side/2, r.pixel(p.Y)-side/2)
		draw.DrawMask(r.img, mark.Bounds().Add(corner).Intersect(r.clip), source, image.Point{}, mark, image.Point{}, draw.Over)
	}
	return nil
}

// outlines are the closed paths of a cloud's mark; one that runs the other way is a hole.
func (k Kind) outlines(at Point, size, width float64) [][]Point {
	switch k {
	case Crosses:
		m := Marker{At: at, Shape: Cross, Size: size + width/2}
		return [][]Point{m.outline()}
	case Rings:
		hole := circle(at, size-width/2)
		slices.Reverse(hole)
		return [][]Point{circle(at, size+width/2), hole}
	}
	return [][]Point{circle(at, size)}
}

// text sets a line, narrowed where the Go font is wider than the room that was
// kept for it.
func (r *raster) text(t *Text) error {
	face := r.plain
	if t.Bold {
		face = r.bold
	}
	size := fixed.Int26_6(math.Round(t.Size * r.scale * 64))
	var glyphs []sfnt.GlyphIndex
	var ends []float64
	wide := 0.0
	for _, c := range t.Text {
		if joins(c) {
			continue
		}
		g, err := face.GlyphIndex(&r.glyphs, c)
		if err == nil && g == 0 { // the font has no such letter
			g, err = face.GlyphIndex(&r.glyphs, '?')
		}
		if err != nil {
			return err
		}
		a, err := face.GlyphAdvance(&r.glyphs, g, size, font.HintingNone)
		if err != nil {
			return err
		}
		glyphs, ends = append(glyphs, g), append(ends, wide)
		wide += float64(a) / 64
	}
	narrow := 1.0
	if room := width(t.Text, t.Size, t.Bold) * r.scale; wide > room {
		narrow = room / wide
	}
	shift := map[Anchor]float64{Middle: -wide / 2, End: -wide}[t.Anchor]
	sin, cos := math.Sincos(t.Angle * math.Pi / 180)
	letters := func(by Point) error {
		for i, g := range glyphs {
			segments, err := face.LoadGlyph(&r.glyphs, g, size, nil)
			if err != nil {
				return err
			}
			r.outline(segments, func(x, y float64) Point {
				x = (x + ends[i] + shift) * narrow
				return Point{(t.At.X+by.X)*r.scale + x*cos - y*sin, (t.At.Y+by.Y)*r.scale + x*sin + y*cos}
			})
		}
		return nil
	}
	if t.Halo { // the letters in white, moved every way
		for _, by := range circle(Point{}, haloWidth) {
			if err := letters(by); err != nil {
				return err
			}
			r.paint("#ffffff", 1)
		}
	}
	if err := letters(Point{}); err != nil {
		return err
	}
	r.paint(t.Fill, 1)
	return nil
}

// outline takes a glyph's contours in, its curves as short straight pieces.
func (r *raster) outline(segments sfnt.Segments, place func(x, y float64) Point) {
	at := func(p fixed.Point26_6) (float64, float64) { return float64(p.X) / 64, float64(p.Y) / 64 }
	var contour []Point
	var fromX, fromY float64
	flush := func() {
		if len(contour) > 2 {
			r.path = append(r.path, contour)
		}
		contour = nil
	}
	for _, s := range segments {
		x, y := at(s.Args[0])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			flush()
			contour = append(contour, place(x, y))
		case sfnt.SegmentOpLineTo:
			contour = append(contour, place(x, y))
		case sfnt.SegmentOpQuadTo:
			const pieces = 4
			toX, toY := at(s.Args[1])
			for i := 1; i <= pieces; i++ {
				u := float64(i) / pieces
				v := 1 - u
				contour = append(contour, place(v*v*fromX+2*u*v*x+u*u*toX, v*v*fromY+2*u*v*y+u*u*toY))
			}
			x, y = toX, toY
		case sfnt.SegmentOpCubeTo: // TrueType has none
			x, y = at(s.Args[2])
			contour = append(contour, place(x, y))
		}
		fromX, fromY = x, y
	}
	flush()
}
