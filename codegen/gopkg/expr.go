package gopkg

import (
	"fmt"
	"math"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/kgen-dev/kgen/ir"
)

// expr is an int64 expression of generated code: a number times factors that are
// variables or calls.
type expr struct {
	scale int64
	parts []jen.Code
	names []string // of the parts that are variables, else ""
}

func number(n int64) expr { return expr{scale: n} }

func variable(name string) expr {
	return expr{scale: 1, parts: []jen.Code{jen.Id(name)}, names: []string{name}}
}

func call(c jen.Code) expr { return expr{scale: 1, parts: []jen.Code{c}, names: []string{""}} }

func product(xs ...expr) expr {
	out := number(1)
	for _, x := range xs {
		out.scale *= x.scale
		out.parts = append(out.parts, x.parts...)
		out.names = append(out.names, x.names...)
	}
	return out
}

// number returns the value of an expression that is one.
func (x expr) number() (int64, bool) { return x.scale, len(x.parts) == 0 }

// simple tells whether an expression is a number or a variable.
func (x expr) simple() bool {
	return len(x.parts) == 0 || x.scale == 1 && len(x.parts) == 1 && x.names[0] != ""
}

// factor is a number that divides the expression.
func (x expr) factor() int64 {
	if x.scale == 0 {
		return math.MaxInt64
	}
	return x.scale
}

func (x expr) code() *jen.Statement {
	if len(x.parts) == 0 {
		return jen.Lit(int(x.scale))
	}
	s := jen.Add(x.parts[0])
	for _, p := range x.parts[1:] {
		s = s.Op("*").Add(p)
	}
	if x.scale != 1 {
		s = s.Op("*").Lit(int(x.scale))
	}
	return s
}

// exprOf translates a size expression.
func exprOf(e ir.Expr, env map[string]expr) (expr, error) {
	switch e.Op {
	case ir.ExprSym:
		x, ok := env[e.Name]
		if !ok {
			return expr{}, fmt.Errorf("size %s is not known", e.Name)
		}
		return x, nil
	case ir.ExprConst:
		return number(e.Val), nil
	}
	x, err := exprOf(*e.X, env)
	if err != nil {
		return expr{}, err
	}
	y, err := exprOf(*e.Y, env)
	if err != nil {
		return expr{}, err
	}
	switch e.Op {
	case ir.ExprMul:
		return product(x, y), nil
	case ir.ExprAdd:
		return call(jen.Parens(x.code().Op("+").Add(y.code()))), nil
	case ir.ExprSub:
		return call(jen.Parens(x.code().Op("-").Add(y.code()))), nil
	case ir.ExprDiv:
		return call(jen.Parens(x.code().Op("/").Parens(y.code()))), nil
	case ir.ExprCeilDiv:
		return call(jen.Id("ceilDiv").Call(x.code(), y.code())), nil
	case ir.ExprMin:
		return call(jen.Min(x.code(), y.code())), nil
	case ir.ExprMax:
		return call(jen.Max(x.code(), y.code())), nil
	}
	return expr{}, fmt.Errorf("size expression %s", strings.TrimSpace(e.String()))
}
