package space

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxExpr bounds the length of an expression in bytes; it bounds the work of parsing
// text that comes from a file.
const maxExpr = 4096

// frame is what an expression is evaluated in: a value per parameter, and whether the
// evaluation left the integers (a division by zero or an overflow).
type frame struct {
	values []int64
	fault  bool
}

type (
	intFunc  func(*frame) int64
	boolFunc func(*frame) bool
)

// node is a compiled expression: exactly one of num and cond is set. uses has the
// indices of the parameters it reads, sorted; without any, it is a constant.
// span or may bounds it; nil knows nothing.
type node struct {
	num  intFunc
	cond boolFunc
	uses []int
	span spanFunc
	may  mayFunc
}

// compiler turns syntax into closures.
type compiler struct {
	params map[string]int // name -> index into frame.values
	env    Env
	given  []string // the names of env met so far, each once
}

// compile parses text and compiles it to a condition.
//
// An expression holds integers, the names of parameters and of env, true and false,
// + - * / % on integers (/ truncates as in Go), comparisons, && || ! on conditions,
// parentheses, min(a, ...), max(a, ...) and ceildiv(a, b), the quotient rounded up.
// Arithmetic is on int64. A condition that divides by zero or overflows doesn't hold.
func (c *compiler) compile(text string) (node, error) {
	if len(text) > maxExpr {
		return node{}, fmt.Errorf("expression of %d bytes: want at most %d", len(text), maxExpr)
	}
	syntax, err := parser.ParseExpr(text)
	if err != nil {
		var list scanner.ErrorList
		if errors.As(err, &list) && len(list) > 0 {
			return node{}, fmt.Errorf("%q, column %d: %s", text, list[0].Pos.Column, list[0].Msg)
		}
		return node{}, fmt.Errorf("%q: %w", text, err)
	}
	n, err := c.expr(syntax)
	if err == nil && n.cond == nil {
		err = at(syntax, "this is a number, want a condition such as a <= b")
	}
	var e *exprError
	if errors.As(err, &e) {
		return node{}, fmt.Errorf("%q, column %d: %s", text, e.column, e.message)
	}
	return n, err
}

type exprError struct {
	column  int
	message string
}

func (e *exprError) Error() string { return e.message }

func at(n ast.Node, format string, args ...any) error {
	return &exprError{column: int(n.Pos()), message: fmt.Sprintf(format, args...)}
}

func (c *compiler) expr(e ast.Expr) (node, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.expr(e.X)
	case *ast.BasicLit:
		return literal(e)
	case *ast.Ident:
		return c.name(e)
	case *ast.UnaryExpr:
		return c.unary(e)
	case *ast.BinaryExpr:
		return c.binary(e)
	case *ast.CallExpr:
		return c.call(e)
	}
	return node{}, at(e, "want integers, names, + - * / %%, comparisons, && || !, min, max or ceildiv")
}

func literal(e *ast.BasicLit) (node, error) {
	if e.Kind != token.INT {
		return node{}, at(e, "%s: want an integer", e.Value)
	}
	v, err := strconv.ParseInt(e.Value, 0, 64)
	if err != nil {
		return node{}, at(e, "%s: want an integer that fits 64 bits", e.Value)
	}
	return number(v), nil
}

func number(v int64) node {
	return node{num: func(*frame) int64 { return v }, span: func([]interval) interval { return interval{v, v} }}
}

func condition(v bool) node {
	return node{cond: func(*frame) bool { return v }, may: func([]interval) truth { return truth{v, !v} }}
}

func (c *compiler) name(e *ast.Ident) (node, error) {
	if i, ok := c.params[e.Name]; ok {
		return node{num: func(f *frame) int64 { return f.values[i] }, uses: []int{i}, span: func(b []interval) interval { return b[i] }}, nil
	}
	if v, ok := c.env[e.Name]; ok {
		if !slices.Contains(c.given, e.Name) {
			c.given = append(c.given, e.Name)
		}
		return number(v), nil
	}
	switch e.Name {
	case "true", "false":
		return condition(e.Name == "true"), nil
	}
	return node{}, at(e, "unknown name %s, want one of %s", e.Name, strings.Join(c.known(), ", "))
}

// known lists every name an expression may use, sorted.
func (c *compiler) known() []string {
	var names []string
	for name := range c.params {
		names = append(names, name)
	}
	for name := range c.env {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *compiler) unary(e *ast.UnaryExpr) (node, error) {
	x, err := c.expr(e.X)
	if err != nil {
		return node{}, err
	}
	switch {
	case e.Op == token.NOT && x.cond != nil:
		may := x.can()
		return fold(node{cond: func(f *frame) bool { return !x.cond(f) }, uses: x.uses, may: func(b []interval) truth { return may(b).not() }}), nil
	case e.Op == token.SUB && x.num != nil:
		return fold(node{num: func(f *frame) int64 { return f.sub(0, x.num(f)) }, uses: x.uses, span: spanOf(token.SUB, number(0).span, x.bounds())}), nil
	case e.Op == token.NOT:
		return node{}, at(e.X, "! wants a condition, not a number")
	case e.Op == token.SUB:
		return node{}, at(e.X, "- wants a number, not a condition")
	}
	return node{}, at(e, "operator %s is not one of + - * / %% == != < <= > >= && || !", e.Op)
}

func (c *compiler) binary(e *ast.BinaryExpr) (node, error) {
	x, err := c.expr(e.X)
	if err != nil {
		return node{}, err
	}
	y, err := c.expr(e.Y)
	if err != nil {
		return node{}, err
	}
	n := node{uses: union(x.uses, y.uses)}
	if e.Op == token.LAND || e.Op == token.LOR {
		if x.cond == nil || y.cond == nil {
			return node{}, at(e, "%s wants conditions on both sides, not numbers", e.Op)
		}
		n.cond, n.may = logic(e.Op, x.cond, y.cond), mayBoth(e.Op, x.can(), y.can())
		return fold(n), nil
	}
	n.num, n.cond = arithmetic(e.Op, x.num, y.num), compare(e.Op, x.num, y.num)
	n.span, n.may = spanOf(e.Op, x.bounds(), y.bounds()), mayOf(e.Op, x.bounds(), y.bounds())
	switch {
	case n.num == nil && n.cond == nil:
		return node{}, at(e, "operator %s is not one of + - * / %% == != < <= > >= && || !", e.Op)
	case x.num == nil || y.num == nil:
		return node{}, at(e, "%s wants numbers on both sides, not conditions", e.Op)
	}
	return fold(n), nil
}

func logic(op token.Token, x, y boolFunc) boolFunc {
	if op == token.LAND {
		return func(f *frame) bool { return x(f) && y(f) }
	}
	return func(f *frame) bool { return x(f) || y(f) }
}

func arithmetic(op token.Token, x, y intFunc) intFunc {
	switch op {
	case token.ADD:
		return func(f *frame) int64 { return f.add(x(f), y(f)) }
	case token.SUB:
		return func(f *frame) int64 { return f.sub(x(f), y(f)) }
	case token.MUL:
		return func(f *frame) int64 { return f.mul(x(f), y(f)) }
	case token.QUO:
		return func(f *frame) int64 { return f.div(x(f), y(f)) }
	case token.REM:
		return func(f *frame) int64 { return f.rem(x(f), y(f)) }
	}
	return nil
}

func compare(op token.Token, x, y intFunc) boolFunc {
	switch op {
	case token.EQL:
		return func(f *frame) bool { return x(f) == y(f) }
	case token.NEQ:
		return func(f *frame) bool { return x(f) != y(f) }
	case token.LSS:
		return func(f *frame) bool { return x(f) < y(f) }
	case token.LEQ:
		return func(f *frame) bool { return x(f) <= y(f) }
	case token.GTR:
		return func(f *frame) bool { return x(f) > y(f) }
	case token.GEQ:
		return func(f *frame) bool { return x(f) >= y(f) }
	}
	return nil
}

func (c *compiler) call(e *ast.CallExpr) (node, error) {
	name, ok := e.Fun.(*ast.Ident)
	if !ok || (name.Name != "min" && name.Name != "max" && name.Name != "ceildiv") {
		return node{}, at(e, "unknown function, want min, max or ceildiv")
	}
	if n := len(e.Args); name.Name == "ceildiv" && n != 2 || n == 0 {
		return node{}, at(e, "%s of %d values: want ceildiv(a, b), min(a, ...) or max(a, ...)", name.Name, n)
	}
	var result node
	for i, arg := range e.Args {
		x, err := c.expr(arg)
		if err != nil {
			return node{}, err
		}
		if x.num == nil {
			return node{}, at(arg, "%s wants numbers, not conditions", name.Name)
		}
		if i == 0 {
			result = x
			continue
		}
		result = fold(node{
			num: combine(name.Name, result.num, x.num), uses: union(result.uses, x.uses),
			span: spanOfCall(name.Name, result.bounds(), x.bounds()),
		})
	}
	return result, nil
}

func combine(name string, x, y intFunc) intFunc {
	switch name {
	case "min":
		return func(f *frame) int64 { return min(x(f), y(f)) }
	case "max":
		return func(f *frame) int64 { return max(x(f), y(f)) }
	}
	return func(f *frame) int64 { return f.ceil(x(f), y(f)) }
}

func spanOfCall(name string, x, y spanFunc) spanFunc {
	switch name {
	case "min":
		return func(b []interval) interval {
			p, q := x(b), y(b)
			return interval{min(p.lo, q.lo), min(p.hi, q.hi)}
		}
	case "max":
		return func(b []interval) interval {
			p, q := x(b), y(b)
			return interval{max(p.lo, q.lo), max(p.hi, q.hi)}
		}
	}
	return divided(x, y, (*frame).ceil)
}

// fold evaluates a node that reads no parameter once and for all. One that faults is
// left as it is: it faults, and so fails its constraint, whenever it is reached.
func fold(n node) node {
	if len(n.uses) > 0 {
		return n
	}
	var f frame
	if n.cond != nil {
		if v := n.cond(&f); !f.fault {
			return condition(v)
		}
		return n
	}
	if v := n.num(&f); !f.fault {
		return number(v)
	}
	return n
}

func union(a, b []int) []int {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

func (f *frame) add(a, b int64) int64 {
	s := a + b
	f.fault = f.fault || (s > a) != (b > 0) && b != 0
	return s
}

func (f *frame) sub(a, b int64) int64 {
	s := a - b
	f.fault = f.fault || (s < a) != (b > 0) && b != 0
	return s
}

func (f *frame) mul(a, b int64) int64 {
	p := a * b
	if a != 0 && (p/a != b || a == -1 && b == math.MinInt64) {
		f.fault = true
	}
	return p
}

func (f *frame) div(a, b int64) int64 {
	if b == 0 || b == -1 && a == math.MinInt64 {
		f.fault = true
		return 0
	}
	return a / b
}

func (f *frame) rem(a, b int64) int64 {
	if b == 0 {
		f.fault = true
		return 0
	}
	return a % b
}

func (f *frame) ceil(a, b int64) int64 {
	q := f.div(a, b)
	if f.rem(a, b) != 0 && (a > 0) == (b > 0) {
		q++
	}
	return q
}

// isName reports whether s can name a parameter in an expression.
func isName(s string) bool {
	return token.IsIdentifier(s) && !slices.Contains([]string{"min", "max", "ceildiv", "true", "false"}, s)
}
