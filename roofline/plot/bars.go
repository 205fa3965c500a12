package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/roofline"
)

// Sizes of the bars in pixels.
const (
	nameWidth = 190.0 // left of the bars
	wordWidth = 270.0 // right of them
	barHeight = 9.0
	rowGap    = 12.0
	mostRows  = 60
)

// unitColours are of the units, in order, and what else takes time comes last.
var unitColours = map[roofline.Unit]string{
	roofline.HBM: "#0072b2", roofline.L2: "#56b4e9", roofline.Shared: "#009e73", roofline.Tensor: "#d55e00",
	roofline.MUFU: "#cc79a7", roofline.Issue: "#e69f00", roofline.Launch: "#8a8a8a",
}

const otherUnit = "#6b4c9a"

func unitColour(u roofline.Unit) string {
	if c, ok := unitColours[u]; ok {
		return c
	}
	return otherUnit
}

// bars is the view of floors: for each kernel a bar for each unit's least time, its own
// time across them, and under several kernels what binds how much of their sum.
func (s *Subject) bars() (*Scene, error) {
	b := &barDrawing{subject: s, kernels: s.Kernels}
	if len(b.kernels) > mostRows {
		b.kernels = slices.Clone(b.kernels)
		slices.SortStableFunc(b.kernels, func(x, y *roofline.Judged) int { return cmp.Compare(timeOf(y), timeOf(x)) })
		b.kernels = b.kernels[:mostRows]
	}
	return b.scene()
}

type barDrawing struct {
	subject *Subject
	kernels []*roofline.Judged // those that are drawn
	out     *Scene
	x       axis
	y       float64 // where the next row begins
	units   []roofline.Unit

	rows, labels *Group
}

func (b *barDrawing) scene() (*Scene, error) {
	longest := 0.0
	for _, j := range b.kernels {
		longest = max(longest, timeOf(j), j.LeastUS())
		for _, f := range j.Floors {
			if !slices.Contains(b.units, f.Unit) {
				b.units = append(b.units, f.Unit)
			}
		}
	}
	if err := positive(longest, b.subject.Title, "us"); err != nil {
		return nil, err
	}
	slices.SortStableFunc(b.units, func(x, y roofline.Unit) int { return unitRank(x) - unitRank(y) })
	f := &Figure{Title: b.subject.Title, Subtitle: b.subject.Subtitle}
	if left := len(b.subject.Kernels) - len(b.kernels); left > 0 {
		f.Subtitle += fmt.Sprintf("; the longest %d, without %d more", len(b.kernels), left)
	}
	h := f.heading()
	top := h.bottom + 16
	b.x = axis{low: 0, high: longest, start: leftMargin + nameWidth, end: leftMargin + frameWidth - wordWidth, linear: true}
	b.y = top + rowGap
	b.out = &Scene{Width: leftMargin + frameWidth + rightMargin, Title: f.Title, Axes: Axes{X: "time (us)", Per: "us"}, x: b.x, y: axis{high: 1, end: 1, linear: true}}
	b.out.group("heading", false).Elements = h.elements
	grid := b.out.group("grid", false)
	b.rows, b.labels = b.out.group("bars", false), b.out.group("labels", false)
	for _, u := range b.units {
		b.out.Series = append(b.out.Series, SeriesKey{Name: b.name(u), Colour: unitColour(u)})
	}
	b.out.Series = append(b.out.Series, SeriesKey{Name: "time", Colour: ink})
	for i, j := range b.kernels {
		b.row(i, j)
	}
	b.out.Frame = [2]Point{{b.x.start, top}, {b.x.end, b.y}}
	b.axis(grid, top)
	b.y += 52
	if len(b.kernels) > 1 && !b.subject.Alternatives {
		b.sum()
	}
	b.legend()
	return b.out, nil
}

// name is what a unit is called on the GPU of the kernels.
func (b *barDrawing) name(u roofline.Unit) string { return b.kernels[0].Roofs.Name(u) }

func unitRank(u roofline.Unit) int {
	if i := slices.Index(roofline.Units(), u); i >= 0 {
		return i
	}
	return len(roofline.Units())
}

// row draws a kernel's bars, the binding one strong, and its time across them.
func (b *barDrawing) row(i int, j *roofline.Judged) {
	top := b.y
	for _, f := range j.Floors {
		y := b.y
		end := b.x.at(f.US)
		st := Style{Fill: unitColour(f.Unit), Opacity: 0.55}
		if f.Unit == j.Binding.Unit {
			st.Opacity = 0
		}
		b.rows.Elements = append(b.rows.Elements, Element{Area: &Area{
			Points: []Point{{b.x.start, y}, {max(end, b.x.start+0.5), y}, {max(end, b.x.start+0.5), y + barHeight - 1}, {b.x.start, y + barHeight - 1}},
			Style:  st, Title: fmt.Sprintf("%s, %s: %s us (%s), %s", j.Kernel.Name, j.Roofs.Name(f.Unit), plain(f.US), f.From, f.Detail),
		}})
		b.out.Data = append(b.out.Data, Datum{Series: slices.Index(b.units, f.Unit), Dot: i, At: Point{end, y + barHeight/2}, Name: j.Kernel.Name, Exact: f.US})
		b.y += barHeight
	}
	b.y = max(b.y, top+2*barHeight)
	middle := (top + b.y) / 2
	b.title(j.Kernel.Name, middle, b.y-top)
	text := fmt.Sprintf("at least %s us, %s", plain(j.LeastUS()), j.Roofs.Name(j.Binding.Unit))
	right := b.x.at(j.LeastUS())
	if j.Kernel.TimeUS > 0 {
		x := b.x.at(j.Kernel.TimeUS)
		right = max(right, x)
		text = fmt.Sprintf("%s us (%s), at least %s us, %s", plain(j.Kernel.TimeUS), j.Kernel.From, plain(j.LeastUS()), j.Roofs.Name(j.Binding.Unit))
		b.rows.line(Style{Stroke: ink, Width: 2}, Point{x, top - 3}, Point{x, b.y + 2})
		b.out.Data = append(b.out.Data, Datum{Series: len(b.units), Dot: i, At: Point{x, middle}, Name: j.Kernel.Name, Doubt: doubtOf(j), Exact: j.Kernel.TimeUS})
	}
	b.labels.text(Text{At: Point{right + 6, middle + 4}, Anchor: Start, Size: smallFont, Fill: ink, Text: fit(text, smallFont, false, wordWidth)})
	b.y += rowGap
}

// title writes a kernel's name beside its bars, in as many lines as their height has.
func (b *barDrawing) title(name string, middle, height float64) {
	const leading = 13
	lines := wrap(name, smallFont, false, nameWidth-14, max(1, int(height/leading)))
	for i, line := range lines {
		y := middle + 4 + leading*(float64(i)-float64(len(lines)-1)/2)
		b.labels.text(Text{At: Point{b.x.start - 8, y}, Anchor: End, Size: smallFont, Fill: ink, Text: line})
	}
}

// axis draws the scale under the rows.
func (b *barDrawing) axis(g *Group, top float64) {
	labels := b.out.group("axes", false)
	for _, v := range b.x.linearTicks() {
		x := b.x.at(v)
		g.line(Style{Stroke: grid, Width: 1}, Point{x, top}, Point{x, b.y})
		labels.text(Text{At: Point{x, b.y + 18}, Anchor: Middle, Size: fontSize, Fill: ink, Text: strconv.FormatFloat(v, 'f', -1, 64)})
	}
	labels.line(Style{Stroke: ink, Width: 1}, Point{b.x.start, top}, Point{b.x.start, b.y}, Point{b.x.end, b.y})
	labels.text(Text{At: Point{(b.x.start + b.x.end) / 2, b.y + 38}, Anchor: Middle, Size: 13, Fill: ink, Text: b.out.Axes.X})
}

// sum stacks the kernels' least times by the unit that binds each.
func (b *barDrawing) sum() {
	total, by := 0.0, map[roofline.Unit]float64{}
	for _, j := range b.subject.Kernels {
		us := j.LeastUS() * float64(max(1, j.Kernel.Launches))
		by[j.Binding.Unit] += us
		total += us
	}
	units := make([]roofline.Unit, 0, len(by))
	for u := range by {
		units = append(units, u)
	}
	slices.SortFunc(units, func(x, y roofline.Unit) int { return unitRank(x) - unitRank(y) })
	g := b.out.group("sum", false)
	const height = 20
	g.text(Text{At: Point{b.x.start - 8, b.y + 14}, Anchor: End, Size: fontSize, Bold: true, Fill: ink, Text: "together, one after the other"})
	whole := min(b.x.at(total), b.x.end) // to the scale above, where it has room for the sum
	x, words := b.x.start, "at least "+plain(total)+" us"
	var narrow []string // shares without room in the bar, below it
	if total > b.x.high {
		words += ", not to the scale above"
	}
	for _, u := range units {
		w := by[u] / total * (whole - b.x.start)
		g.Elements = append(g.Elements, Element{Area: &Area{
			Points: []Point{{x, b.y}, {x + w, b.y}, {x + w, b.y + height}, {x, b.y + height}}, Style: Style{Fill: unitColour(u)},
			Title: fmt.Sprintf("bound by %s: %s us of %s us", b.name(u), plain(by[u]), plain(total)),
		}})
		text := fmt.Sprintf("%s %.0f %%", b.name(u), 100*by[u]/total)
		if width(text, smallFont, true) < w-8 {
			g.text(Text{At: Point{x + w/2, b.y + 14}, Anchor: Middle, Size: smallFont, Bold: true, Fill: "#ffffff", Text: text})
		} else {
			narrow = append(narrow, text)
		}
		x += w
	}
	g.text(Text{At: Point{whole + 6, b.y + 14}, Anchor: Start, Size: smallFont, Fill: ink, Text: fit(words, smallFont, false, b.x.end+wordWidth-whole-6)})
	if b.y += height + 16; narrow != nil {
		g.text(Text{At: Point{b.x.start, b.y}, Anchor: Start, Size: smallFont, Fill: ink, Text: fit(strings.Join(narrow, ", "), smallFont, false, b.x.end+wordWidth-b.x.start)})
		b.y += 16
	}
}

func (b *barDrawing) legend() {
	g := b.out.group("legend", false)
	x, y := leftMargin, b.y+10
	entry := func(fill string, text string) {
		w := 18 + width(text, fontSize, false) + 22
		if x+w > leftMargin+frameWidth && x > leftMargin {
			x, y = leftMargin, y+20
		}
		g.marker(Marker{At: Point{x + 6, y - 4}, Shape: Square, Size: 5, Style: Style{Fill: fill}})
		g.text(Text{At: Point{x + 18, y}, Size: fontSize, Fill: ink, Text: text})
		x += w
	}
	for _, u := range b.units {
		entry(unitColour(u), b.name(u))
	}
	if slices.ContainsFunc(b.kernels, func(j *roofline.Judged) bool { return j.Kernel.TimeUS > 0 }) {
		entry(ink, "the kernel's own time")
	}
	b.out.Height = y + 20
}
