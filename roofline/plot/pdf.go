package plot

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WritePDF writes the scene as one page of PDF 1.4 in Helvetica, which every
// reader has. No time and no random name is in it, so that equal scenes give
// equal bytes. A pixel is a point.
func (s *Scene) WritePDF(w io.Writer) error {
	p := &pdf{scene: s}
	p.page()
	var objects []string
	objects = append(objects,
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %s %s] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R >> /ExtGState << %s >> >> >>",
			number(s.Width), number(s.Height), p.states()),
		fmt.Sprintf("<< /Length %d >>\nstream\n%sendstream", p.body.Len(), p.body.String()),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
		fmt.Sprintf("<< /Title (%s) >>", winAnsi(s.Title)),
	)
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", o)
	}
	const id = "6b67656e6b67656e6b67656e6b67656e"
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R /ID [<%s> <%[3]s>] >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, len(objects), id, table)
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write PDF: %w", err)
	}
	return nil
}

// pdf is a page on its way.
type pdf struct {
	scene     *Scene
	body      bytes.Buffer
	opacities []int // in percent, sorted: a graphics state each
}

func (p *pdf) printf(format string, args ...any) { fmt.Fprintf(&p.body, format, args...) }

func (p *pdf) page() {
	s := p.scene
	p.printf("1 0 0 -1 0 %s cm\n", number(s.Height)) // from PDF's upward y to the scene's
	for _, g := range s.Groups {
		p.printf("q\n")
		if g.Clip {
			a, b := s.Frame[0], s.Frame[1]
			p.printf("%s %s %s %s re W n\n", number(a.X), number(a.Y), number(b.X-a.X), number(b.Y-a.Y))
		}
		for _, e := range g.Elements {
			p.element(e)
		}
		p.printf("Q\n")
	}
}

func (p *pdf) element(e Element) {
	switch {
	case e.Line != nil:
		p.shape(e.Line.Points, e.Line.Style, false)
	case e.Area != nil:
		p.shape(e.Area.Points, e.Area.Style, true)
	case e.Marker != nil && e.Marker.Shape == Circle:
		p.circle(e.Marker)
	case e.Marker != nil:
		p.shape(e.Marker.outline(), e.Marker.Style, true)
	case e.Cloud != nil:
		p.cloud(e.Cloud)
	case e.Text != nil:
		p.text(e.Text)
	}
}

// begin sets the style and returns the operator that paints with it.
func (p *pdf) begin(st Style, closed bool) string {
	p.printf("q\n")
	if percent := int(math.Round(st.Opacity * 100)); percent > 0 && percent < 100 {
		p.printf("/G%d gs\n", percent)
		if i, found := slices.BinarySearch(p.opacities, percent); !found {
			p.opacities = slices.Insert(p.opacities, i, percent)
		}
	}
	fill, stroke := st.Fill != "" && closed, st.Stroke != ""
	if fill {
		p.printf("%s rg\n", rgb(st.Fill))
	}
	if stroke {
		p.printf("%s RG %s w\n", rgb(st.Stroke), number(st.Width))
	}
	if st.Dash != "" {
		p.printf("[%s] 0 d\n", st.Dash)
	}
	switch {
	case fill && stroke:
		return "B"
	case fill:
		return "f"
	case stroke && closed:
		return "s"
	case stroke:
		return "S"
	}
	return "n"
}

func (p *pdf) shape(points []Point, st Style, closed bool) {
	paint := p.begin(st, closed)
	for i, q := range points {
		p.printf("%s %s %s\n", number(q.X), number(q.Y), map[bool]string{true: "m", false: "l"}[i == 0])
	}
	if closed {
		p.printf("h ")
	}
	p.printf("%s\nQ\n", paint)
}

// circle draws four Bezier curves.
func (p *pdf) circle(m *Marker) {
	paint := p.begin(m.Style, true)
	x, y, r := m.At.X, m.At.Y, m.Size
	k := r * 4 / 3 * (math.Sqrt2 - 1)
	p.printf("%s %s m\n", number(x+r), number(y))
	for _, c := range [][6]float64{
		{x + r, y + k, x + k, y + r, x, y + r}, {x - k, y + r, x - r, y + k, x - r, y},
		{x - r, y - k, x - k, y - r, x, y - r}, {x + k, y - r, x + r, y - k, x + r, y},
	} {
		for _, v := range c {
			p.printf("%s ", number(v))
		}
		p.printf("c\n")
	}
	p.printf("h %s\nQ\n", paint)
}

// cloud draws dots as lines of no length with round ends, and crosses and rings.
func (p *pdf) cloud(c *Cloud) {
	st := cloudStyles[c.Kind]
	if c.Kind == Rings {
		for _, q := range c.Points {
			p.circle(&Marker{At: q, Size: st.size, Style: Style{Stroke: c.colour(), Width: st.width, Opacity: st.opacity}})
		}
		return
	}
	width, reach := st.width, st.size
	if c.Kind == Dots {
		width, reach = 2*st.size, 0
	}
	p.begin(Style{Stroke: c.colour(), Width: width, Opacity: st.opacity}, false)
	p.printf("1 J\n")
	for _, q := range c.Points {
		left, right, up, down := number(q.X-reach), number(q.X+reach), number(q.Y-reach), number(q.Y+reach)
		p.printf("%s %s m %s %s l", left, up, right, down)
		if c.Kind == Crosses {
			p.printf(" %s %s m %s %s l", right, up, left, down)
		}
		p.printf(" S\n")
	}
	p.printf("Q\n")
}

func (p *pdf) text(t *Text) {
	wide := helvetica(t.Text, t.Size, t.Bold)
	shift := map[Anchor]float64{Middle: -wide / 2, End: -wide}[t.Anchor]
	sin, cos := math.Sincos(t.Angle * math.Pi / 180)
	font := 1
	if t.Bold {
		font = 2
	}
	if t.Halo {
		p.printf("q %s RG %s w 1 j BT 1 Tr /F%d %s Tf %s %s %s %s %s %s Tm (%s) Tj ET Q\n", rgb("#ffffff"), number(2*haloWidth), font, number(t.Size),
			decimals(cos), decimals(sin), decimals(sin), decimals(-cos), number(t.At.X+shift*cos), number(t.At.Y+shift*sin), winAnsi(t.Text))
	}
	p.printf("BT %s rg /F%d %s Tf %s %s %s %s %s %s Tm (%s) Tj ET\n", rgb(t.Fill), font, number(t.Size),
		decimals(cos), decimals(sin), decimals(sin), decimals(-cos), number(t.At.X+shift*cos), number(t.At.Y+shift*sin), winAnsi(t.Text))
}

// decimals writes a sine or cosine.
func decimals(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6+0, 'f', -1, 64)
}

func (p *pdf) states() string {
	var parts []string
	for _, o := range p.opacities {
		parts = append(parts, fmt.Sprintf("/G%d << /CA %s /ca %[2]s >>", o, number(float64(o)/100)))
	}
	return strings.Join(parts, " ")
}

func rgb(s string) string {
	c, _ := parseColour(s, 1)
	var parts []string
	for _, v := range []uint8{c.R, c.G, c.B} {
		parts = append(parts, strconv.FormatFloat(math.Round(float64(v)/255*1000)/1000, 'f', -1, 64))
	}
	return strings.Join(parts, " ")
}

// beyondLatin1 are the characters of WinAnsiEncoding that Latin-1 lacks.
var beyondLatin1 = map[rune]byte{'…': 0x85, '–': 0x96, '—': 0x97, '‘': 0x91, '’': 0x92, '“': 0x93, '”': 0x94, '•': 0x95, '€': 0x80, '™': 0x99}

// winAnsi encodes a text for a PDF string; what the encoding lacks becomes "?".
func winAnsi(s string) string {
	var b strings.Builder
	for _, r := range s {
		c, ok := beyondLatin1[r]
		switch {
		case joins(r):
			continue
		case ok:
		case r >= ' ' && r <= '~' || r >= 0xa0 && r <= 0xff:
			c = byte(r)
		default:
			c = '?'
		}
		if c == '(' || c == ')' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
