package plot

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const fontFamily = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

// SVG is what WriteSVG writes.
func (s *Scene) SVG() ([]byte, error) {
	var out bytes.Buffer
	if err := s.WriteSVG(&out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// WriteSVG writes the scene as a stand-alone SVG 1.1 document: no scripts, no
// fonts, no references to other files.
func (s *Scene) WriteSVG(w io.Writer) error {
	out := &svg{w: bufio.NewWriter(w)}
	out.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %[1]s %[2]s\" font-family=\"%s\">\n",
		number(s.Width), number(s.Height), fontFamily)
	out.printf("<title>%s</title>\n", escape(s.Title))
	a, b := s.Frame[0], s.Frame[1]
	out.printf("<clipPath id=\"frame\"><rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/></clipPath>\n",
		number(a.X), number(a.Y), number(b.X-a.X), number(b.Y-a.Y))
	out.printf("<rect width=\"%s\" height=\"%s\" fill=\"#ffffff\"/>\n", number(s.Width), number(s.Height))
	for _, g := range s.Groups {
		if len(g.Elements) == 0 {
			continue
		}
		clip := ""
		if g.Clip {
			clip = " clip-path=\"url(#frame)\""
		}
		out.printf("<g id=\"%s\"%s>\n", escape(g.Name), clip)
		for _, e := range g.Elements {
			out.element(e)
		}
		out.printf("</g>\n")
	}
	out.printf("</svg>\n")
	if out.err != nil {
		return fmt.Errorf("write SVG: %w", out.err)
	}
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("write SVG: %w", err)
	}
	return nil
}

// svg remembers the first error of its writer.
type svg struct {
	w   *bufio.Writer
	err error
}

func (s *svg) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

func (s *svg) element(e Element) {
	switch {
	case e.Line != nil:
		s.printf("<polyline points=\"%s\"%s/>\n", places(e.Line.Points), style(e.Line.Style))
	case e.Area != nil:
		s.shape("polygon", fmt.Sprintf(" points=\"%s\"%s", places(e.Area.Points), style(e.Area.Style)), e.Area.Title)
	case e.Marker != nil:
		s.marker(e.Marker)
	case e.Cloud != nil:
		s.cloud(e.Cloud)
	case e.Text != nil:
		s.text(e.Text)
	}
}

func (s *svg) marker(m *Marker) {
	tag, attributes := "polygon", ""
	if m.Shape == Circle {
		tag = "circle"
		attributes = fmt.Sprintf(" cx=\"%s\" cy=\"%s\" r=\"%s\"", number(m.At.X), number(m.At.Y), number(m.Size))
	} else {
		attributes = fmt.Sprintf(" points=\"%s\"", places(m.outline()))
	}
	s.shape(tag, attributes+style(m.Style), m.Title)
}

// shape writes a tag, with what is shown when a pointer rests on it.
func (s *svg) shape(tag, attributes, title string) {
	if title == "" {
		s.printf("<%s%s/>\n", tag, attributes)
		return
	}
	s.printf("<%s%s><title>%s</title></%[1]s>\n", tag, attributes, escape(title))
}

// cloud writes many marks as one path, the shortest form that SVG has.
func (s *svg) cloud(c *Cloud) {
	mark, stroke := c.Kind.mark()
	s.printf("<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linecap=\"round\" opacity=\"%s\" d=\"", escape(c.colour()), number(stroke), number(cloudStyles[c.Kind].opacity))
	for _, p := range c.Points {
		s.printf("M%s %s%s", number(p.X), number(p.Y), mark)
	}
	s.printf("\"/>\n")
}

// mark is a cloud's mark as a path from its middle, and the width of its stroke: dots are
// points with round ends.
func (k Kind) mark() (path string, stroke float64) {
	st := cloudStyles[k]
	r, d := number(st.size), number(2*st.size)
	switch k {
	case Crosses:
		return fmt.Sprintf("m-%s-%[1]sl%[2]s %[2]sm0-%[2]sl-%[2]s %[2]s", r, d), st.width
	case Rings:
		return fmt.Sprintf("m-%s 0a%[1]s %[1]s 0 1 0 %[2]s 0a%[1]s %[1]s 0 1 0-%[2]s 0", r, d), st.width
	}
	return "h0", 2 * st.size
}

func (s *svg) text(t *Text) {
	attributes := fmt.Sprintf(" x=\"%s\" y=\"%s\" font-size=\"%s\" fill=\"%s\"", number(t.At.X), number(t.At.Y), number(t.Size), escape(t.Fill))
	if t.Anchor != Start && t.Anchor != "" {
		attributes += fmt.Sprintf(" text-anchor=\"%s\"", t.Anchor)
	}
	if t.Bold {
		attributes += " font-weight=\"bold\""
	}
	if t.Angle != 0 {
		attributes += fmt.Sprintf(" transform=\"rotate(%s %s %s)\"", number(t.Angle), number(t.At.X), number(t.At.Y))
	}
	if t.Halo { // twice: not every program that shows SVG knows paint-order
		s.printf("<text%s stroke=\"#ffffff\" stroke-width=\"%s\" stroke-linejoin=\"round\">%s</text>\n",
			strings.Replace(attributes, " fill=\""+escape(t.Fill)+"\"", " fill=\"#ffffff\"", 1), number(2*haloWidth), escape(t.Text))
	}
	s.printf("<text%s>%s</text>\n", attributes, escape(t.Text))
}

func style(st Style) string {
	var b strings.Builder
	fill := st.Fill
	if fill == "" {
		fill = "none"
	}
	fmt.Fprintf(&b, " fill=\"%s\"", escape(fill))
	if st.Stroke != "" {
		fmt.Fprintf(&b, " stroke=\"%s\" stroke-width=\"%s\"", escape(st.Stroke), number(st.Width))
	}
	if st.Dash != "" {
		fmt.Fprintf(&b, " stroke-dasharray=\"%s\"", escape(st.Dash))
	}
	if st.Opacity > 0 && st.Opacity < 1 {
		fmt.Fprintf(&b, " opacity=\"%s\"", number(st.Opacity))
	}
	return b.String()
}

func places(points []Point) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(number(p.X))
		b.WriteByte(',')
		b.WriteString(number(p.Y))
	}
	return b.String()
}

// number writes hundredths of a pixel, without an exponent, a trailing zero or
// a negative zero, so that equal scenes give equal bytes on every machine.
func number(v float64) string {
	v = math.Round(v*100) / 100
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}
