package plot

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/roofline"
)

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
		colour := colourOf(i)
		entry(Marker{Size: 4.5, Style: Style{Fill: colour}}, fit(s.Name, fontSize, false, frameWidth/2)+from(s.From)+merged(d.clouded[i]))
		if best {
			entry(Marker{Shape: Star, Size: 6.5, Style: Style{Fill: colour, Stroke: ink, Width: 1}}, "best of them")
		}
	}
	if hollow := d.hollow(); hollow != "" {
		entry(Marker{Size: 4.5, Style: Style{Fill: "#ffffff", Stroke: ink, Width: 2}}, hollow)
	}
	if d.outside {
		entry(Marker{Size: 4.5, Style: Style{Fill: "#ffffff", Stroke: ink, Width: 1.5}}, "outside the frame"+merged(d.merged[Rings]))
	}
	if d.doubted {
		entry(Marker{Shape: Cross, Size: 4.5, Style: Style{Fill: doubtful, Stroke: "#ffffff", Width: 0.5}}, "impossible by rule"+merged(d.merged[Crosses]))
	}
	if len(used) > 1 {
		for _, u := range append(roofline.Units(), sectors) {
			if used[u] {
				entry(Marker{Shape: shapeOf(u), Size: 4.5, Style: Style{Stroke: ink, Width: 1.2, Fill: "#ffffff"}}, "by "+levelName(u, d.figure.Memory)+" "+d.figure.axes().counts())
			}
		}
	}
	d.scene.Height = y + 20
}

// hollow says what the hollow dots are, "" where there are none.
func (d *drawing) hollow() string {
	for _, s := range d.figure.Series {
		for _, dot := range s.Dots {
			switch {
			case dot.Hollow && s.Arrows:
				return "before the change"
			case dot.Hollow:
				return "at the time it took"
			}
		}
	}
	return ""
}

func from(p bench.Provenance) string {
	if p == 0 {
		return ""
	}
	return " (" + p.String() + ")"
}

// merged says how many dots are drawn together, without words of their own.
func merged(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d merged", n)
}
