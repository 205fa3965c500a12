package plot

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// WriteHTML writes the scene as one page that needs nothing else: the drawing,
// what a point is where the pointer rests, a table of all points with a filter,
// light and dark. It asks no network for anything.
func (s *Scene) WriteHTML(w io.Writer) error {
	drawing := *s
	drawing.Groups = nil
	for _, g := range s.Groups { // the page's script draws clouds, from the table's data
		kept := *g
		kept.Elements = nil
		for _, e := range g.Elements {
			if e.Cloud == nil || len(s.Data) == 0 {
				kept.Elements = append(kept.Elements, e)
			}
		}
		drawing.Groups = append(drawing.Groups, &kept)
	}
	var svg bytes.Buffer
	if err := drawing.WriteSVG(&svg); err != nil {
		return err
	}
	data, err := json.Marshal(s.pageData())
	if err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, pageHTML, escape(s.Title), pageCSS, svg.String(), data, pageJS)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

const pageHTML = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>%s</title>
<style>
%s</style>
</head>
<body>
<header><label>Filter <input id="filter" type="search" placeholder="words, all of which must be there" autocomplete="off"></label><span id="count"></span><button id="theme" type="button">Light or dark</button></header>
<div id="drawing">
%s</div>
<div id="hover" hidden></div>
<table><thead></thead><tbody></tbody></table>
<script type="application/json" id="points">%s</script>
<script>
%s</script>
</body>
</html>
`

// pageData is what the page's script reads. Places are hundredths of a pixel:
// the values that they stand for follow from the axes.
type pageData struct {
	X, Y   pageAxis
	Axes   Axes
	Series []pageSeries
	Levels []string
	Words  []string // names are words, given by their places here
	Doubts []string
	Points pagePoints
}

type pageAxis struct {
	Low, High, Start, End float64
	Linear                bool `json:",omitempty"`
}

type pageSeries struct {
	Name, Colour, From string
	Clouds             []pageCloud `json:",omitempty"`
}

// pageCloud is a path for the script to draw: of dots, crosses or rings.
type pageCloud struct {
	Kind           Kind
	Colour, Mark   string
	Width, Opacity float64
}

// pagePoints are columns of equal length.
type pagePoints struct {
	Series, Level, X, Y []int
	Outside             []int     // runs of points beyond the frame: how many before it, how many
	Doubt               []int     // runs of doubtful points: how many before it, how many, place in Doubts
	Exact               []float64 `json:",omitempty"` // values along x, of a figure of few points
	Name                string    // a line for each point: places in Words, in base 36
}

func (s *Scene) pageData() *pageData {
	p := &pageData{X: pageAxis{s.x.low, s.x.high, s.x.start, s.x.end, s.x.linear}, Y: pageAxis{s.y.low, s.y.high, s.y.start, s.y.end, s.y.linear}, Axes: s.Axes}
	for _, k := range s.Series {
		p.Series = append(p.Series, pageSeries{Name: k.Name, Colour: k.Colour, From: strings.Trim(from(k.From), " ()")})
	}
	for _, g := range s.Groups {
		for _, e := range g.Elements {
			if e.Cloud != nil && len(s.Data) > 0 {
				mark, width := e.Cloud.Kind.mark()
				k := &p.Series[e.Cloud.Series]
				k.Clouds = append(k.Clouds, pageCloud{e.Cloud.Kind, e.Cloud.colour(), mark, width, cloudStyles[e.Cloud.Kind].opacity})
			}
		}
	}
	levels, doubts := newIndex(&p.Levels), newIndex(&p.Doubts)
	outside, doubtful := make([]int, len(s.Data)), make([]int, len(s.Data))
	for i, d := range s.Data {
		q := &p.Points
		q.Series = append(q.Series, d.Series)
		q.Level = append(q.Level, levels.of(levelName(d.Level, s.memory)))
		q.X = append(q.X, int(d.At.X*100+0.5))
		q.Y = append(q.Y, int(d.At.Y*100+0.5))
		if s.x.linear {
			q.Exact = append(q.Exact, d.Exact)
		}
		if d.Outside {
			outside[i] = 1
		}
		if d.Doubt != "" {
			doubtful[i] = 1 + doubts.of(doubtText(d.Doubt, len(p.Doubts)))
		}
	}
	for _, r := range stretches(outside) {
		p.Points.Outside = append(p.Points.Outside, r.gap, r.length)
	}
	for _, r := range stretches(doubtful) {
		p.Points.Doubt = append(p.Points.Doubt, r.gap, r.length, r.value-1)
	}
	p.name(s.Data)
	return p
}

// mostDoubts bounds the doubts that the page has in their own words.
const mostDoubts = 1000

func doubtText(text string, known int) string {
	if known < mostDoubts {
		return brief(text, 200)
	}
	return "impossible by rule"
}

// stretch is equal values other than 0, and how many zeros lie before it.
type stretch struct{ gap, length, value int }

func stretches(values []int) []stretch {
	var out []stretch
	gap := 0
	for i, v := range values {
		switch {
		case v == 0:
			gap++
		case i > 0 && v == values[i-1]:
			out[len(out)-1].length++
		default:
			out = append(out, stretch{gap, 1, v})
			gap = 0
		}
	}
	return out
}

// mostNameBytes bounds what all names take in the page.
const mostNameBytes = 1_800_000

// name writes the names of all points: whole, or where that would be too much each
// shortened as far as it takes.
func (p *pageData) name(all []Datum) {
	longest := 0
	for _, d := range all {
		longest = max(longest, len(d.Name))
	}
	for letters := longest; !p.namedIn(all, letters) && letters > 1; {
		letters = min(letters, 1<<10) * 3 / 4
	}
}

// namedIn writes names of some letters, and says whether they are few enough bytes.
func (p *pageData) namedIn(all []Datum, letters int) bool {
	p.Words = nil
	words, size := newIndex(&p.Words), 0
	var names strings.Builder
	for _, d := range all {
		for k, word := range strings.Fields(brief(d.Name, letters)) {
			if k > 0 {
				names.WriteByte(' ')
			}
			known := len(p.Words)
			names.WriteString(strconv.FormatInt(int64(words.of(word)), 36))
			if len(p.Words) > known {
				size += jsonSize(word)
			}
		}
		names.WriteByte('\n')
		if size+names.Len() > mostNameBytes {
			return false
		}
	}
	p.Points.Name = names.String()
	return true
}

// jsonSize is about what a word takes in a list of JSON, where < becomes \u003c.
func jsonSize(word string) int {
	size := 3 + len(word)
	for _, c := range []byte(word) {
		if c < ' ' || strings.IndexByte("<>&\"\\\x7f", c) >= 0 {
			size += 5
		}
	}
	return size
}

// index gives words places in a list, in the order in which they come.
type index struct {
	list  *[]string
	place map[string]int
}

func newIndex(list *[]string) *index { return &index{list, map[string]int{}} }

func (i *index) of(word string) int {
	n, ok := i.place[word]
	if !ok {
		n = len(*i.list)
		i.place[word] = n
		*i.list = append(*i.list, word)
	}
	return n
}
