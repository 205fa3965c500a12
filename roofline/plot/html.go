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
			if e.Cloud == nil {
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
	Cloud              bool
}

// pagePoints are columns of equal length.
type pagePoints struct {
	Series, Level, X, Y []int
	Outside             []int     // places of the points beyond the frame
	Doubt               []int     // pairs: place of a point, place in Doubts
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
			if e.Cloud != nil {
				p.Series[e.Cloud.Series].Cloud = true
			}
		}
	}
	words, levels, doubts := newIndex(&p.Words), newIndex(&p.Levels), newIndex(&p.Doubts)
	var names strings.Builder
	for i, d := range s.Data {
		q := &p.Points
		q.Series = append(q.Series, d.Series)
		q.Level = append(q.Level, levels.of(string(d.Level)))
		q.X = append(q.X, int(d.At.X*100+0.5))
		q.Y = append(q.Y, int(d.At.Y*100+0.5))
		if s.x.linear {
			q.Exact = append(q.Exact, d.Exact)
		}
		if d.Outside {
			q.Outside = append(q.Outside, i)
		}
		if d.Doubt != "" {
			q.Doubt = append(q.Doubt, i, doubts.of(d.Doubt))
		}
		for k, word := range strings.Fields(d.Name) {
			if k > 0 {
				names.WriteByte(' ')
			}
			names.WriteString(strconv.FormatInt(int64(words.of(word)), 36))
		}
		names.WriteByte('\n')
	}
	p.Points.Name = names.String()
	return p
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
