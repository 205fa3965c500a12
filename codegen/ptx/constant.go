package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// warpSize is the one constant with a name: 32 on every target.
const warpSize = "WARP_SZ"

// constant is the value of a constant expression. PTX evaluates integers in 64
// bits, unsigned where an operand is, and floating-point ones as f64.
type constant struct {
	kind     ImmKind
	bits     uint64
	computed bool // by an operator: its text is not one literal
}

func (c constant) String() string {
	switch c.kind {
	case ImmInt:
		return strconv.FormatInt(int64(c.bits), 10)
	case ImmUint:
		return strconv.FormatUint(c.bits, 10)
	case ImmF32:
		return fmt.Sprintf("0f%08X", uint32(c.bits))
	}
	return strconv.FormatFloat(math.Float64frombits(c.bits), 'g', -1, 64)
}

func (c constant) float() float64 {
	switch c.kind {
	case ImmInt:
		return float64(int64(c.bits))
	case ImmUint:
		return float64(c.bits)
	case ImmF32:
		return float64(math.Float32frombits(uint32(c.bits)))
	}
	return math.Float64frombits(c.bits)
}

func (c constant) isFloat() bool { return c.kind == ImmF32 || c.kind == ImmF64 }

func (c constant) isZero() bool { return c.isFloat() && c.float() == 0 || !c.isFloat() && c.bits == 0 }

func truth(b bool) constant {
	if b {
		return constant{ImmInt, 1, true}
	}
	return constant{ImmInt, 0, true}
}

// Levels of binary operators, as in C.
var binaryLevel = [256]int8{
	tokOrOr: 1, tokAndAnd: 2, '|': 3, '^': 4, '&': 5, tokEQ: 6, tokNE: 6,
	'<': 7, '>': 7, tokLE: 7, tokGE: 7, tokShl: 8, tokShr: 8, '+': 9, '-': 9, '*': 10, '/': 10, '%': 10,
}

// offsetLevel binds tighter than + and -, for what is added to a name.
const offsetLevel = 10

// constant reads a constant expression.
func (p *parser) constant() constant {
	c := p.binary(1)
	if p.tok != '?' {
		return c
	}
	p.enter()
	defer p.leave()
	p.next()
	a := p.constant()
	p.expect(':', "between the two values of a choice")
	b := p.constant()
	if c.isZero() {
		a = b
	}
	a.computed = true
	return a
}

func (p *parser) binary(level int8) constant {
	x := p.unary()
	for {
		op := p.tok
		l := binaryLevel[op]
		if l < level || l == 0 {
			return x
		}
		pos := p.pos
		p.enter()
		p.next()
		y := p.binary(l + 1)
		p.leave()
		x = p.apply(pos, op, x, y)
	}
}

func (p *parser) apply(pos Pos, op token, x, y constant) constant {
	var z constant
	var ok bool
	if x.isFloat() || y.isFloat() {
		z, ok = applyFloat(op, x.float(), y.float())
	} else {
		z, ok = applyInt(op, x, y)
	}
	if !ok {
		p.fail(pos, "constant expression with %s and %s: division by zero or no such operator", x, y)
	}
	z.computed = true
	return z
}

func applyFloat(op token, x, y float64) (constant, bool) {
	f := func(v float64) (constant, bool) { return constant{kind: ImmF64, bits: math.Float64bits(v)}, true }
	switch op {
	case '+':
		return f(x + y)
	case '-':
		return f(x - y)
	case '*':
		return f(x * y)
	case '/':
		return f(x / y)
	}
	if b, ok := compare(op, x, y); ok {
		return truth(b), true
	}
	return constant{}, false
}

func compare[T float64 | int64 | uint64](op token, x, y T) (result, ok bool) {
	switch op {
	case '<':
		return x < y, true
	case '>':
		return x > y, true
	case tokLE:
		return x <= y, true
	case tokGE:
		return x >= y, true
	case tokEQ:
		return x == y, true
	case tokNE:
		return x != y, true
	}
	return false, false
}

func applyInt(op token, x, y constant) (constant, bool) {
	kind := ImmInt
	if x.kind == ImmUint || y.kind == ImmUint {
		kind = ImmUint
	}
	a, b := x.bits, y.bits
	switch op {
	case '+':
		return constant{kind: kind, bits: a + b}, true
	case '-':
		return constant{kind: kind, bits: a - b}, true
	case '*':
		return constant{kind: kind, bits: a * b}, true
	case '&':
		return constant{kind: kind, bits: a & b}, true
	case '|':
		return constant{kind: kind, bits: a | b}, true
	case '^':
		return constant{kind: kind, bits: a ^ b}, true
	case tokAndAnd:
		return truth(a != 0 && b != 0), true
	case tokOrOr:
		return truth(a != 0 || b != 0), true
	case tokShl:
		return constant{kind: x.kind, bits: a << min(b, 64)}, true
	case tokShr:
		if x.kind == ImmInt {
			return constant{kind: ImmInt, bits: uint64(int64(a) >> min(b, 63))}, true
		}
		return constant{kind: ImmUint, bits: a >> min(b, 64)}, true
	case '/', '%':
		return divide(op, kind, a, b)
	}
	if kind == ImmUint {
		r, ok := compare(op, a, b)
		return truth(r), ok
	}
	r, ok := compare(op, int64(a), int64(b))
	return truth(r), ok
}

func divide(op token, kind ImmKind, a, b uint64) (constant, bool) {
	if b == 0 {
		return constant{}, false
	}
	q, r := a/b, a%b
	if kind == ImmInt {
		q, r = uint64(int64(a)/int64(b)), uint64(int64(a)%int64(b))
	}
	if op == '%' {
		q = r
	}
	return constant{kind: kind, bits: q}, true
}

// unary reads a sign, a cast or a primary.
func (p *parser) unary() constant {
	p.enter()
	defer p.leave()
	op, pos := p.tok, p.pos
	switch op {
	case '+', '-', '!', '~':
		p.next()
		return p.negate(pos, op, p.unary())
	case '(':
		p.next()
		if p.tok == tokDot && (p.text == "s64" || p.text == "u64") {
			kind := ImmInt
			if p.text == "u64" {
				kind = ImmUint
			}
			p.next()
			p.expect(')', "after a cast")
			c := p.unary()
			if c.isFloat() {
				p.fail(pos, "cast of %s: want a whole number", c)
			}
			return constant{kind, c.bits, true}
		}
		c := p.constant()
		p.expect(')', "in a constant expression")
		return c
	}
	return p.literal()
}

func (p *parser) negate(pos Pos, op token, c constant) constant {
	switch {
	case op == '+':
	case op == '!':
		c = truth(c.isZero())
	case op == '-' && c.kind == ImmF32:
		c.bits ^= 1 << 31
	case op == '-' && c.kind == ImmF64:
		c.bits ^= 1 << 63
	case op == '-' && c.bits == 1<<63:
		c.kind = ImmInt // the least integer has no literal of its own
	case op == '-':
		c.bits = -c.bits
	case c.isFloat():
		p.fail(pos, "~%s: want a whole number", c)
	default:
		c.bits = ^c.bits
	}
	return c
}

func (p *parser) literal() constant {
	text, pos := p.text, p.pos
	switch p.tok {
	case tokIdent:
		if text == warpSize {
			p.next()
			return constant{ImmInt, 32, true}
		}
	case tokDot:
		if byteClass[text[0]] == isDigit { // `.5`: read it again as a number
			p.off = p.start
			p.digits()
			text = "0" + p.src[p.start:p.off]
			p.tok = tokNumber
		}
	}
	if p.tok != tokNumber {
		p.expected("a constant")
	}
	c, ok := parseNumber(text)
	if !ok {
		p.fail(pos, "number %q: want decimal, 0x, 0b or octal digits with at most 64 bits, 0f and 8, or 0d and 16 hexadecimal digits", clip(text))
	}
	p.next()
	return c
}

// radixOf is the radix of an integer's text, 0 for decimal.
func radixOf(text string) uint8 {
	if len(text) < 2 || text[0] != '0' {
		return 0
	}
	switch text[1] {
	case 'x', 'X':
		return 16
	case 'b', 'B':
		return 2
	}
	return 8
}

func parseNumber(text string) (constant, bool) {
	if len(text) > 1 && text[0] == '0' {
		switch text[1] {
		case 'f', 'F':
			v, err := strconv.ParseUint(text[2:], 16, 32)
			return constant{kind: ImmF32, bits: v}, err == nil && len(text) == 10
		case 'd', 'D':
			v, err := strconv.ParseUint(text[2:], 16, 64)
			return constant{kind: ImmF64, bits: v}, err == nil && len(text) == 18
		case 'x', 'X':
			return parseInteger(text[2:], 16)
		case 'b', 'B':
			return parseInteger(text[2:], 2)
		}
	}
	if strings.ContainsAny(text, ".eE") {
		v, err := strconv.ParseFloat(text, 64)
		return constant{kind: ImmF64, bits: math.Float64bits(v)}, err == nil
	}
	if text[0] == '0' && len(text) > 1 && text != "0U" {
		return parseInteger(text[1:], 8)
	}
	return parseInteger(text, 10)
}

func parseInteger(digits string, base int) (constant, bool) {
	unsigned := strings.HasSuffix(digits, "U")
	v, err := strconv.ParseUint(strings.TrimSuffix(digits, "U"), base, 64)
	c := constant{kind: ImmInt, bits: v}
	if unsigned || v > math.MaxInt64 {
		c.kind = ImmUint
	}
	return c, err == nil
}
