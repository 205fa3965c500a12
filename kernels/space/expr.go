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

	"github.com/kgen-dev/kgen/internal/wordlist"
)

// maxExpr bounds the length of an expression in bytes; it bounds the work of parsing
// text that comes from a file.
const maxExpr = 4096

// maxLets bounds the definitions of a space, and maxSteps the operations of an expression
// with those of all definitions that it uses, each as often as it is named: definitions
// that name another twice would double the work each.
const (
	maxLets  = 1000
	maxSteps = 1 << 16
)

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

// node is a compiled expression: one of num and cond is set, or words of a parameter of
// words, whose num is unset so that it is only compared. uses has the
// indices of the parameters it reads, sorted; without any, it is a constant.
// span or may bounds it; nil knows nothing.
type node struct {
	num  intFunc
	cond boolFunc
	uses []int
	span spanFunc
	may  mayFunc

	words []string // of a parameter of words
	word  intFunc  // its value
}

// scope is what the names in a space's expressions mean.
type scope struct {
	space  *Space
	params map[string]int // name -> index into frame.values
	env    Env
	let    map[string]node // those compiled so far
	costs  map[string]int  // operations of these
	open   []string        // lets being compiled, outermost first
}

// lets compiles every let of the space.
func (s *scope) lets() error {
	if n := len(s.space.Lets); n > maxLets {
		return fmt.Errorf("%d definitions: want at most %d", n, maxLets)
	}
	s.let, s.costs = map[string]node{}, map[string]int{}
	for _, l := range s.space.Lets {
		if _, done := s.let[l.Name]; done {
			continue
		}
		if err := s.compileLet(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *scope) compileLet(l Let) error {
	s.open = append(s.open, l.Name)
	c := compiler{scope: s}
	n, err := c.compile(l.Expr)
	s.open = s.open[:len(s.open)-1]
	if err != nil {
		return fmt.Errorf("let %s: %w", clip(l.Name), err)
	}
	s.let[l.Name], s.costs[l.Name] = n, c.steps
	return nil
}

// compiler turns syntax into closures.
type compiler struct {
	*scope
	given []string // the names of env met so far, each once
	steps int      // operations so far
}

// compile parses text and compiles it to a condition or a number; Constraint says what it
// may hold.
func (c *compiler) compile(text string) (node, error) {
	if len(text) > maxExpr {
		return node{}, fmt.Errorf("expression of %d bytes: want at most %d", len(text), maxExpr)
	}
	syntax, err := parser.ParseExpr(text)
	if err != nil {
		var list scanner.ErrorList
		if errors.As(err, &list) && len(list) > 0 {
			return node{}, fmt.Errorf("%q, column %d: %s", excerpt(text, list[0].Pos.Column), list[0].Pos.Column, clip(list[0].Msg))
		}
		return node{}, fmt.Errorf("%q: %w", clip(text), err)
	}
	n, err := c.expr(syntax)
	if err == nil && c.steps > maxSteps {
		return node{}, fmt.Errorf("%q: with its definitions it takes %d operations: want at most %d", clip(text), c.steps, maxSteps)
	}
	if err == nil && n.num == nil && n.cond == nil {
		err = at(syntax, "this is a word, want a number or a comparison")
	}
	var e *exprError
	if errors.As(err, &e) {
		return node{}, fmt.Errorf("%q, column %d: %s", excerpt(text, e.column), e.column, e.message)
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
	c.steps++
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
	return node{}, at(e, "want integers, names, + - * / %%, comparisons, && || !, %s", wordlist.Or(functionNames))
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
		if words := c.space.Params[i].Words; words != nil {
			return node{word: func(f *frame) int64 { return f.values[i] }, words: words, uses: []int{i}, span: func(b []interval) interval { return b[i] }}, nil
		}
		return node{num: func(f *frame) int64 { return f.values[i] }, uses: []int{i}, span: func(b []interval) interval { return b[i] }}, nil
	}
	if v, ok := c.env[e.Name]; ok {
		if !slices.Contains(c.given, e.Name) {
			c.given = append(c.given, e.Name)
		}
		return number(v), nil
	}
	if l := slices.IndexFunc(c.space.Lets, func(l Let) bool { return l.Name == e.Name }); l >= 0 {
		return c.letNode(e, c.space.Lets[l])
	}
	switch e.Name {
	case "true", "false":
		return condition(e.Name == "true"), nil
	}
	return node{}, at(e, "unknown name %s, want one of %s", e.Name, strings.Join(c.known(), ", "))
}

// letNode is what a let means, which may not need itself.
func (c *compiler) letNode(e *ast.Ident, l Let) (node, error) {
	if n, ok := c.let[l.Name]; ok {
		c.steps += c.costs[l.Name]
		return n, nil
	}
	if i := slices.Index(c.open, l.Name); i >= 0 {
		return node{}, at(e, "%s is defined by itself: %s", l.Name, strings.Join(append(c.open[i:], l.Name), " needs "))
	}
	if err := c.compileLet(l); err != nil {
		return node{}, err
	}
	c.steps += c.costs[l.Name]
	return c.let[l.Name], nil
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
	for _, l := range c.space.Lets {
		names = append(names, l.Name)
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
	if e.Op == token.EQL || e.Op == token.NEQ {
		if n, ok, err := c.compareWords(e); ok || err != nil {
			return n, err
		}
	}
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

// compareWords compares a parameter of words with one of them, in either order; ok is
// false if there is none of both.
func (c *compiler) compareWords(e *ast.BinaryExpr) (n node, ok bool, err error) {
	param, literal := unparen(e.X), unparen(e.Y)
	if isString(param) {
		param, literal = literal, param
	}
	name, isName := param.(*ast.Ident)
	if !isString(literal) || !isName {
		return node{}, false, nil
	}
	x, err := c.name(name)
	if err != nil {
		return node{}, false, err
	}
	if x.words == nil {
		return node{}, false, at(literal, "%s is no parameter of words", name.Name)
	}
	text, err := strconv.Unquote(literal.(*ast.BasicLit).Value)
	if err != nil {
		return node{}, false, at(literal, "%v", err)
	}
	i := slices.Index(x.words, text)
	if i < 0 {
		return node{}, false, at(literal, "%s is never %q, want one of %s", name.Name, text, strings.Join(x.words, ", "))
	}
	y := number(int64(i))
	return node{cond: compare(e.Op, x.word, y.num), may: mayOf(e.Op, x.bounds(), y.bounds()), uses: x.uses}, true, nil
}

func unparen(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

func isString(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.STRING
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
	if !ok || !slices.Contains(functionNames, name.Name) {
		return node{}, at(e, "unknown function, want %s", wordlist.Or(functionNames))
	}
	two := name.Name != "min" && name.Name != "max"
	switch n := len(e.Args); {
	case two && n != 2:
		return node{}, at(e, "%s of %d values: want %s(a, b)", name.Name, n, name.Name)
	case n == 0:
		return node{}, at(e, "%s of 0 values: want %s(a, ...)", name.Name, name.Name)
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
	op := divisions[name]
	return func(f *frame) int64 { return op(f, x(f), y(f)) }
}

// functionNames are the functions that expressions have.
var functionNames = []string{"min", "max", "ceildiv", "floordiv", "floormod"}

// divisions are the functions that divide.
var divisions = map[string]func(*frame, int64, int64) int64{
	"ceildiv": (*frame).ceil, "floordiv": (*frame).floor, "floormod": (*frame).floorMod,
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
	if name == "floormod" {
		return func(b []interval) interval { return remainder(x(b), y(b)) }
	}
	return divided(x, y, divisions[name])
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

func (f *frame) floor(a, b int64) int64 {
	q := f.div(a, b)
	if f.rem(a, b) != 0 && (a > 0) != (b > 0) {
		q--
	}
	return q
}

func (f *frame) floorMod(a, b int64) int64 {
	r := f.rem(a, b)
	if r != 0 && (r > 0) != (b > 0) {
		r += b
	}
	return r
}

// isName reports whether s can name a parameter in an expression.
func isName(s string) bool {
	return token.IsIdentifier(s) && s != "true" && s != "false" && !slices.Contains(functionNames, s)
}
