package plot

import "math"

// box is an upright rectangle in pixels.
type box struct{ x0, y0, x1, y1 float64 }

// layer says what takes a cell: lines may be crossed in need, roofs where nothing else
// is left, the rest not.
type layer uint8

const (
	lines layer = 1 << iota
	roofs       // where they bind
	solid       // markers and text

	everything = lines | roofs | solid
)

// space knows which cells of a scene are taken, so that labels keep clear of
// markers, lines and each other.
type space struct {
	columns, rows int
	taken         []layer
}

// cell is the side of a cell in pixels.
const cell = 3

func newSpace(width, height float64) *space {
	c, r := int(width/cell)+1, int(height/cell)+1
	return &space{c, r, make([]layer, c*r)}
}

// visit calls f with the index of every cell of a box until f says stop; a box
// that leaves the scene reports false at once.
func (s *space) visit(b box, f func(int) bool) bool {
	x0, y0 := int(math.Floor(b.x0/cell)), int(math.Floor(b.y0/cell))
	x1, y1 := int(math.Floor(b.x1/cell)), int(math.Floor(b.y1/cell))
	if x0 < 0 || y0 < 0 || x1 >= s.columns || y1 >= s.rows {
		return false
	}
	for y := y0; y <= y1; y++ {
		for x := x0; x <= x1; x++ {
			if !f(y*s.columns + x) {
				return false
			}
		}
	}
	return true
}

// free reports whether none of the layers has a cell of the box.
func (s *space) free(b box, of layer) bool {
	return s.visit(b, func(i int) bool { return s.taken[i]&of == 0 })
}

func (s *space) take(b box, as layer) {
	b = box{max(b.x0, 0), max(b.y0, 0), min(b.x1, float64(s.columns*cell-1)), min(b.y1, float64(s.rows*cell-1))}
	s.visit(b, func(i int) bool { s.taken[i] |= as; return true })
}

// takeLine takes the cells along a straight line.
func (s *space) takeLine(a, b Point) { s.takeAlong(a, b, lines) }

func (s *space) takeAlong(a, b Point, as layer) {
	along(a, b, func(at box) bool { s.take(at, as); return true })
}

// clearLine says whether a straight line meets no marker and no text.
func (s *space) clearLine(a, b Point) bool {
	return along(a, b, func(at box) bool { return s.free(at, solid) })
}

// along calls f for every cell along a straight line until f says stop, and
// says whether it came to the end.
func along(a, b Point, f func(at box) bool) bool {
	n := int(math.Max(math.Abs(b.X-a.X), math.Abs(b.Y-a.Y))/cell) + 1
	for i := range n + 1 {
		t := float64(i) / float64(n)
		x, y := a.X+t*(b.X-a.X), a.Y+t*(b.Y-a.Y)
		if !f(box{x, y, x, y}) {
			return false
		}
	}
	return true
}

// boxes covers a text by small upright boxes: one if it lies level, a string
// of them if it is turned.
func (t *Text) boxes() []box {
	w, up, down := width(t.Text, t.Size, t.Bold), 0.76*t.Size, 0.22*t.Size
	shift := map[Anchor]float64{Middle: -w / 2, End: -w}[t.Anchor]
	if t.Angle == 0 {
		return []box{{t.At.X + shift, t.At.Y - up, t.At.X + shift + w, t.At.Y + down}}
	}
	sin, cos := math.Sincos(t.Angle * math.Pi / 180)
	half := (up + down) / 2
	var out []box
	for along := shift + half; along < shift+w; along += half {
		// The middle of the letters lies above the baseline.
		x := t.At.X + along*cos + (up-down)/2*sin
		y := t.At.Y + along*sin - (up-down)/2*cos
		out = append(out, box{x - half, y - half, x + half, y + half})
	}
	return out
}

// place puts a text down if all its boxes are inside the limits and clear of
// the layers.
func (s *space) place(t *Text, limits box, clear layer) bool {
	boxes := t.boxes()
	for _, b := range boxes {
		if b.x0 < limits.x0 || b.y0 < limits.y0 || b.x1 > limits.x1 || b.y1 > limits.y1 || !s.free(b, clear) {
			return false
		}
	}
	for _, b := range boxes {
		s.take(b, solid)
	}
	return true
}
