package ir

import (
	"math"
	"strings"

	"github.com/kgen-dev/kgen/ir/layout"
)

// typ reads a type.
func (p *parser) typ() Type {
	p.blank()
	start := p.pos
	t := p.rawType()
	if p.err == nil {
		if err := t.Check(); err != nil {
			p.fail(start, "%w", err)
		}
	}
	return t
}

func (p *parser) rawType() Type {
	switch {
	case p.accept("<"):
		shape, e := p.shapeElem()
		t := TileOf(e, shape...)
		if p.accept(",") {
			t.Layout = p.layoutRef("layout").tile
		}
		p.expect(">")
		return t
	case p.accept("view"):
		p.expect("<")
		e := p.elem()
		p.expect(">")
		return ViewOf(e, p.dims()...)
	case p.accept("ring"):
		p.expect("<")
		depth := p.int()
		p.expect("x")
		shape, e := p.shapeElem()
		t := RingOf(depth, e, shape...)
		if p.accept(",") {
			t.Shared = p.layoutRef("shared").shared
		}
		p.expect(">")
		return t
	}
	return ScalarOf(p.elem())
}

func (p *parser) elem() Elem {
	p.blank()
	start := p.pos
	e, ok := ElemByName(p.word())
	if !ok {
		p.pos = start
		p.want("an element type such as bf16")
	}
	return e
}

// shapeElem reads 128x64xbf16, one word to the scanner.
func (p *parser) shapeElem() ([]int, Elem) {
	p.blank()
	start := p.pos
	parts := strings.Split(p.word(), "x")
	e, ok := ElemByName(parts[len(parts)-1])
	if !ok || len(parts) > MaxTileRank+1 {
		p.pos = start
		p.want("a shape and an element type such as 128x64xbf16")
		return nil, NoElem
	}
	var shape []int
	for _, s := range parts[:len(parts)-1] {
		n := 0
		for _, c := range []byte(s) {
			if c < '0' || c > '9' || n > MaxTileElements {
				p.fail(start, "tile size %q: want 1 to %d", s[:min(len(s), 24)], MaxTileElements)
				return nil, NoElem
			}
			n = n*10 + int(c-'0')
		}
		shape = append(shape, n)
	}
	return shape, e
}

func (p *parser) dims() []Dim {
	p.expect("[")
	var dims []Dim
	for p.err == nil && !p.accept("]") {
		if len(dims) > 0 {
			p.expect(",")
		}
		dims = append(dims, p.dim())
		if len(dims) > MaxViewRank {
			p.fail(p.pos, "a view of more than %d dimensions", MaxViewRank)
		}
	}
	return dims
}

func (p *parser) dim() Dim {
	p.blank()
	if p.accept("?") {
		return Dim{}
	}
	if p.pos < len(p.src) && (p.src[p.pos] == '-' || p.src[p.pos] >= '0' && p.src[p.pos] <= '9') {
		return Dim{Size: int(p.int64(1, MaxDim))}
	}
	return Dim{Sym: p.name("a dimension: a symbol or a number")}
}

// placement is a layout of registers or of shared memory.
type placement struct {
	tile   *layout.Layout
	shared *layout.Shared
}

// layoutRef reads #3, a layout defined at the head of the file, or a layout
// spelled out; kind is the word its text begins with.
func (p *parser) layoutRef(kind string) placement {
	p.blank()
	start := p.pos
	if !p.accept("#") {
		return p.layout(kind)
	}
	name := p.word()
	l, ok := p.layouts[name]
	if !ok || kind == "layout" && l.tile == nil || kind == "shared" && l.shared == nil {
		p.fail(start, "#%s is not defined as a %s<..>", name, kind)
	}
	return l
}

// layout reads layout<..> or shared<..>; kind says which, "" any of them. The
// text has no > but the last.
func (p *parser) layout(kind string) placement {
	p.blank()
	start := p.pos
	rest := p.src[start:]
	n := strings.IndexByte(rest, '>') + 1
	var l placement
	var err error
	switch {
	case p.err != nil || n == 0:
		p.want("layout<..> or shared<..>")
	case kind != "shared" && strings.HasPrefix(rest, "layout"):
		l.tile, err = layout.Parse(rest[:n])
	case kind != "layout" && strings.HasPrefix(rest, "shared"):
		l.shared, err = layout.ParseShared(rest[:n])
	default:
		p.want("layout<..> of a tile, shared<..> of a ring")
	}
	if err != nil {
		p.fail(start, "%w", err)
	}
	p.pos += n
	return l
}

// expr reads a size expression.
func (p *parser) expr() Expr {
	if !p.nested(MaxNesting) {
		return Expr{}
	}
	defer p.unnest()
	x := p.term()
	for p.err == nil {
		switch {
		case p.accept("+"):
			x = x.Plus(p.term())
		case p.accept("-"):
			x = x.Minus(p.term())
		default:
			return x
		}
		p.checkExpr(x)
	}
	return x
}

func (p *parser) term() Expr {
	x := p.factor()
	for p.err == nil {
		p.blank()
		switch {
		case p.accept("*"):
			x = x.Times(p.factor())
		case !strings.HasPrefix(p.src[p.pos:], "//") && p.accept("/"):
			x = x.Div(p.factor())
		default:
			return x
		}
		p.checkExpr(x)
	}
	return x
}

// maxExprDepth bounds what a chain of operators may build.
const maxExprDepth = 64

func (p *parser) checkExpr(x Expr) {
	if x.depth() > maxExprDepth {
		p.fail(p.pos, "a size of more than %d operators in a chain", maxExprDepth)
	}
}

func (x Expr) depth() int {
	if x.Op <= ExprSym {
		return 0
	}
	return 1 + max(x.X.depth(), x.Y.depth())
}

func (p *parser) factor() Expr {
	p.blank()
	if p.accept("(") {
		x := p.expr()
		p.expect(")")
		return x
	}
	if p.pos < len(p.src) && (p.src[p.pos] == '-' || p.src[p.pos] >= '0' && p.src[p.pos] <= '9') {
		return Lit(p.int64(math.MinInt64, math.MaxInt64))
	}
	name := p.name("a size: a number, a symbol, ceildiv(a, b), min(a, b) or max(a, b)")
	for op := ExprCeilDiv; op <= ExprMax; op++ {
		if exprNotation[op].text == name && p.accept("(") {
			x := p.expr()
			p.expect(",")
			y := p.expr()
			p.expect(")")
			return joinExpr(op, x, y)
		}
	}
	return Sym(name)
}
