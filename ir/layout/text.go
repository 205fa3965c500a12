package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the text form, which Parse reads back to an equal layout:
//
//	layout<16x8, reg=(0,1)(8,0), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=>
//
// Bases are coordinate vectors, lowest bit first. Repeat counts follow from the
// shape. A tile of rank 0 is spelled scalar, its bases (). Where the warps have parts,
// their number and the step from one to the next follow: warp=(0,16)(0,32)*3(64,0).
func (l *Layout) String() string {
	var b strings.Builder
	b.WriteString("layout<")
	b.WriteString(shapeText(l.shape))
	writeBases(&b, ", reg=", l.reg, len(l.shape))
	writeBases(&b, ", lane=", l.lane[:], len(l.shape))
	writeBases(&b, ", warp=", l.warp, len(l.shape))
	if l.parts > 1 {
		fmt.Fprintf(&b, "*%d%s", l.parts, basisText(l.part, len(l.shape)))
	}
	b.WriteByte('>')
	return b.String()
}

func writeBases(b *strings.Builder, label string, bases []Coord, rank int) {
	b.WriteString(label)
	for _, c := range bases {
		b.WriteString(basisText(c, rank))
	}
}

func basisText(c Coord, rank int) string {
	var b strings.Builder
	b.WriteByte('(')
	for d := range rank {
		if d > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(c.At(d)))
	}
	b.WriteByte(')')
	return b.String()
}

func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, "x")
}

// Parse reads the text form of String. Spaces are free between tokens.
func Parse(text string) (*Layout, error) {
	p := &parser{text: text}
	p.word("layout")
	p.word("<")
	l := &Layout{shape: p.shape()}
	l.reg = p.bases("reg", l.shape)
	lanes := p.bases("lane", l.shape)
	l.warp = p.bases("warp", l.shape)
	if p.accept("*") {
		l.parts = p.number(1, MaxWarps)
		l.part = p.basis(l.shape)
	}
	p.word(">")
	p.end()
	if p.err == nil && len(lanes) != LaneBits {
		p.err = fmt.Errorf("layout with %d lane bases: want %d", len(lanes), LaneBits)
	}
	if p.err != nil {
		return nil, p.err
	}
	copy(l.lane[:], lanes)
	return l.finish()
}

type parser struct {
	text string
	at   int
	err  error
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) fail(want string) {
	if p.err == nil {
		rest := p.text[p.at:]
		if len(rest) > 12 {
			rest = rest[:12] + "..."
		}
		p.err = fmt.Errorf("layout text at byte %d, %q: want %s", p.at, rest, want)
	}
}

// accept reads s if it comes next.
func (p *parser) accept(s string) bool {
	if p.err != nil {
		return false
	}
	p.space()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *parser) word(s string) {
	if !p.accept(s) {
		p.fail(strconv.Quote(s))
	}
}

func (p *parser) end() {
	p.space()
	if p.at < len(p.text) {
		p.fail("the end")
	}
}

// number reads a decimal from least up to most.
func (p *parser) number(least, most int) int {
	p.space()
	start := p.at
	n := 0
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' && n <= most {
		n = n*10 + int(p.text[p.at]-'0')
		p.at++
	}
	if p.at == start || n < least || n > most {
		p.at = start
		p.fail(fmt.Sprintf("a number from %d to %d", least, most))
		return least
	}
	return n
}

func (p *parser) shape() []int {
	if p.accept("scalar") || p.err != nil {
		return []int{}
	}
	shape := []int{p.number(1, MaxExtent)}
	for p.accept("x") {
		if len(shape) == MaxRank {
			p.fail(fmt.Sprintf("at most %d dimensions", MaxRank))
			break
		}
		shape = append(shape, p.number(1, MaxExtent))
	}
	return shape
}

func (p *parser) bases(label string, shape []int) []Coord {
	p.word(",")
	p.word(label)
	p.word("=")
	var bases []Coord
	for p.accept("(") {
		if len(bases) == 16 {
			p.fail("at most 16 bases")
			break
		}
		bases = append(bases, p.coordinates(shape))
	}
	return bases
}

// basis reads one basis.
func (p *parser) basis(shape []int) Coord {
	p.word("(")
	return p.coordinates(shape)
}

// coordinates reads a basis after its bracket.
func (p *parser) coordinates(shape []int) Coord {
	var c Coord
	for d, n := range shape {
		if d > 0 {
			p.word(",")
		}
		c |= axis(d, p.number(0, n-1))
	}
	p.word(")")
	return c
}
