package ptx

import (
	"math"
	"strings"
)

// section reads `.section .name { ... }`. What it holds are numbers for debuggers:
// they are checked, and kept as text.
func (p *parser) section() *Section {
	s := &Section{Pos: p.pos}
	p.next()
	if p.tok != tokDot {
		p.expected("the section's name, such as .debug_info")
	}
	s.Name = p.intern("." + p.text).Name
	p.next()
	if p.tok != '{' {
		p.expected("'{' after the section's name")
	}
	start := p.off
	p.next()
	for p.tok != '}' {
		if p.tok == tokEOF {
			p.fail(p.pos, "section %s without its end: want '}'", s.Name)
		}
		p.debugLine()
	}
	s.Text = strings.Clone(strings.TrimSpace(p.src[start : p.off-1]))
	p.next()
	return s
}

// debugLine reads a label, or a type with numbers, or with an address or the
// distance of two.
func (p *parser) debugLine() {
	if p.tok == tokIdent {
		if p.debugLabels[p.text] {
			p.fail(p.pos, "label %s: declared before", clip(p.text))
		}
		if p.debugLabels == nil {
			p.debugLabels = map[string]bool{}
		}
		p.debugLabels[strings.Clone(p.text)] = true
		p.next()
		p.expect(':', "after a label")
		return
	}
	bits, ok := map[string]uint{"b8": 8, "b16": 16, "b32": 32, "b64": 64}[p.text]
	if p.tok != tokDot || !ok {
		p.expected("a label, or .b8, .b16, .b32 or .b64, or '}'")
	}
	p.next()
	if p.tok != tokIdent && p.tok != tokDot {
		p.debugNumber(bits)
		for p.accept(',') {
			p.debugNumber(bits)
		}
		return
	}
	if bits < 32 {
		p.fail(p.pos, "an address of %d bits: want .b32 or .b64", bits)
	}
	p.next()
	switch {
	case p.accept('+'):
		if p.tok != tokNumber {
			p.expected("a number")
		}
		p.debugNumber(64)
	case p.accept('-'):
		p.ident("a label")
	}
}

// debugNumber reads a number of at most so many bits, of either sign.
func (p *parser) debugNumber(bits uint) {
	pos := p.pos
	minus := p.accept('-')
	if p.tok != tokNumber {
		p.expected("a number")
	}
	v := p.unary()
	most, least := uint64(1)<<bits-1, min(uint64(1)<<(bits-1), math.MaxInt64) // as ptxas negates what 63 bits hold
	switch {
	case v.kind != ImmInt && v.kind != ImmUint:
	case minus && v.bits <= least, !minus && (v.bits <= most || bits >= 32):
		return
	}
	p.fail(pos, "number %s: want a whole one of %d bits", v, bits)
}
