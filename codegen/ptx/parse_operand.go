package ptx

import "strings"

// instOperand reads an operand; of a call, `( ... )` is a list.
func (p *parser) instOperand(call bool) Operand {
	if call && p.tok == '(' {
		return p.group(OpList, ')')
	}
	o := p.operand()
	if p.tok != '|' {
		return o
	}
	pos := o.Pos
	base := len(p.operands)
	p.operands = append(p.operands, o)
	p.next()
	second := p.operand()
	p.operands = append(p.operands, second)
	return Operand{Kind: OpPair, Pos: pos, Parts: p.keepParts(base)}
}

// operand reads one operand other than a pair.
func (p *parser) operand() Operand {
	switch p.tok {
	case tokIdent:
		return p.named()
	case '{':
		return p.group(OpVector, '}')
	case '[':
		o := p.group(OpAddr, ']')
		if p.acceptDot("unified") {
			o.Member = unified
		}
		return o
	case '!':
		if pos := p.pos; p.peekIdent() {
			p.next()
			o := p.nameOrSink()
			o.Neg, o.Pos = true, pos
			return o
		}
	case '-':
		if pos := p.pos; p.peekIdent() {
			p.next()
			o := p.name()
			o.Minus, o.Pos = true, pos
			return o
		}
	}
	return p.immediate()
}

// peekIdent says whether a name that is no constant follows the current token
// at once.
func (p *parser) peekIdent() bool {
	return p.off < len(p.src) && byteClass[p.src[p.off]]&(isLetter|isMark) != 0 &&
		!strings.HasPrefix(p.src[p.off:], warpSize)
}

// named reads an operand that begins with a name.
func (p *parser) named() Operand {
	if p.text == warpSize {
		return p.immediate()
	}
	o := p.nameOrSink()
	if o.Kind == OpSink {
		return o
	}
	if p.tok == '[' && o.Member == 0 {
		index := p.group(OpIndex, ']')
		if n := len(index.Elems()); n != 1 {
			p.fail(index.Pos, "%d indices of %s: want one", n, clip(o.Name()))
		}
		index.Symbol, index.Pos = o.Symbol, o.Pos
		return index
	}
	if p.tok == '-' {
		p.expected("'+' and the offset, as in " + clip(o.Name()) + "+-4")
	}
	p.offset(&o)
	return o
}

// nameOrSink reads a name with its member, or `_`.
func (p *parser) nameOrSink() Operand {
	if p.tok == tokIdent && p.text == "_" {
		o := Operand{Kind: OpSink, Pos: p.pos}
		p.next()
		return o
	}
	return p.name()
}

// name reads a name with its member.
func (p *parser) name() Operand {
	o := Operand{Kind: OpName, Pos: p.pos}
	if p.tok == tokIdent && (p.text == "_" || p.text == warpSize) {
		p.expected("a name")
	}
	o.Symbol = p.symbol("a name")
	if p.tok == tokDot {
		m, ok := parseMember(p.text)
		if !ok {
			p.expected("a member such as .x")
		}
		o.Member = m
		p.next()
	}
	return o
}

// offset reads the constants added to a name.
func (p *parser) offset(o *Operand) {
	for p.tok == '+' || p.tok == '-' {
		minus := p.tok == '-'
		p.next()
		pos := p.pos
		v := p.binary(offsetLevel)
		if v.kind == ImmF32 || v.kind == ImmF64 {
			p.fail(pos, "offset %s: want a whole number", v)
		}
		if minus {
			v.bits = -v.bits
		}
		o.Value += v.bits
	}
}

// group reads operands between brackets of some kind; the opening one is the
// current token. An empty vector or address is refused.
func (p *parser) group(kind OperandKind, end token) Operand {
	p.enter()
	defer p.leave()
	pos := p.pos
	p.next()
	base := len(p.operands)
	for p.tok != end {
		o := p.operand()
		p.operands = append(p.operands, o)
		if p.tok == end {
			break
		}
		if !p.accept(',') {
			p.expected("',' or '" + string(rune(end)) + "'")
		}
	}
	if len(p.operands) == base && kind != OpList {
		p.expected("an operand")
	}
	p.next()
	return Operand{Kind: kind, Pos: pos, Parts: p.keepParts(base)}
}

// immediate reads a constant expression.
func (p *parser) immediate() Operand {
	pos, radix := p.pos, uint8(0)
	if p.tok == tokNumber {
		radix = radixOf(p.text)
	}
	v := p.constant()
	if v.computed || v.kind == ImmF32 || v.kind == ImmF64 {
		radix = 0
	}
	return Operand{Kind: OpImm, Pos: pos, Imm: v.kind, Value: v.bits, Radix: radix}
}
