package ir

import (
	"fmt"
	"math/bits"
	"strconv"
)

// ExprOp is the operator at the root of an Expr.
type ExprOp uint8

// The operators of size expressions.
const (
	ExprConst ExprOp = iota
	ExprSym
	ExprAdd
	ExprSub
	ExprMul
	ExprDiv     // rounds down; operands >= 0
	ExprCeilDiv // rounds up; operands >= 0
	ExprMin
	ExprMax
)

// Expr is an integer expression over sizes: dimension symbols of views and
// integer scalar parameters, by name. The zero value is the constant 0.
type Expr struct {
	Op   ExprOp
	Val  int64  // ExprConst
	Name string // ExprSym
	X, Y *Expr  // operands of the rest
}

// Lit returns the constant n.
func Lit(n int64) Expr { return Expr{Val: n} }

// Sym returns the size called name.
func Sym(name string) Expr { return Expr{Op: ExprSym, Name: name} }

// Plus returns x + y.
func (x Expr) Plus(y Expr) Expr { return joinExpr(ExprAdd, x, y) }

// Minus returns x - y.
func (x Expr) Minus(y Expr) Expr { return joinExpr(ExprSub, x, y) }

// Times returns x * y.
func (x Expr) Times(y Expr) Expr { return joinExpr(ExprMul, x, y) }

// Div returns x / y rounded down.
func (x Expr) Div(y Expr) Expr { return joinExpr(ExprDiv, x, y) }

// CeilDiv returns x / y rounded up.
func (x Expr) CeilDiv(y Expr) Expr { return joinExpr(ExprCeilDiv, x, y) }

// MinOf returns the smaller of x and y.
func MinOf(x, y Expr) Expr { return joinExpr(ExprMin, x, y) }

// MaxOf returns the larger of x and y.
func MaxOf(x, y Expr) Expr { return joinExpr(ExprMax, x, y) }

func joinExpr(op ExprOp, x, y Expr) Expr {
	e := Expr{Op: op, X: &x, Y: &y}
	if x.Op == ExprConst && y.Op == ExprConst {
		if v, err := e.Eval(nil); err == nil {
			return Lit(v)
		}
	}
	return e
}

// Equal reports whether x and y are the same expression, not whether they are
// equal for all sizes.
func (x Expr) Equal(y Expr) bool {
	if x.Op != y.Op || x.Val != y.Val || x.Name != y.Name {
		return false
	}
	return x.Op <= ExprSym || x.X.Equal(*y.X) && x.Y.Equal(*y.Y)
}

// Symbols calls f with each symbol of x, from left to right.
func (x Expr) Symbols(f func(name string)) {
	if x.Op == ExprSym {
		f(x.Name)
	}
	if x.Op > ExprSym {
		x.X.Symbols(f)
		x.Y.Symbols(f)
	}
}

// Eval computes x; env gives the value of a symbol. Overflow, an unknown symbol,
// a divisor <= 0 and a negative dividend are errors.
func (x Expr) Eval(env func(name string) (int64, bool)) (int64, error) {
	switch x.Op {
	case ExprConst:
		return x.Val, nil
	case ExprSym:
		if env != nil {
			if v, ok := env(x.Name); ok {
				return v, nil
			}
		}
		return 0, fmt.Errorf("size %s is unknown", x.Name)
	}
	a, err := x.X.Eval(env)
	if err != nil {
		return 0, err
	}
	b, err := x.Y.Eval(env)
	if err != nil {
		return 0, err
	}
	v, ok := x.Op.apply(a, b)
	if !ok {
		return 0, fmt.Errorf("%s: %d and %d give no 64-bit size", x, a, b)
	}
	return v, nil
}

func (op ExprOp) apply(a, b int64) (int64, bool) {
	switch op {
	case ExprAdd:
		v := a + b
		return v, (v > a) == (b > 0)
	case ExprSub:
		v := a - b
		return v, (v < a) == (b > 0)
	case ExprMul:
		return mulChecked(a, b)
	case ExprDiv:
		if a < 0 || b <= 0 {
			return 0, false
		}
		return a / b, true
	case ExprCeilDiv:
		if a < 0 || b <= 0 {
			return 0, false
		}
		v := a / b
		if a%b != 0 {
			v++
		}
		return v, true
	case ExprMin:
		return min(a, b), true
	case ExprMax:
		return max(a, b), true
	}
	return 0, false
}

func mulChecked(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > 1<<63-1 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// exprNotation says how an operator is written: an infix operator has a
// precedence, a function has none.
var exprNotation = [...]struct {
	text string
	prec int
}{
	ExprAdd:     {" + ", 1},
	ExprSub:     {" - ", 1},
	ExprMul:     {" * ", 2},
	ExprDiv:     {" / ", 2},
	ExprCeilDiv: {"ceildiv", 0},
	ExprMin:     {"min", 0},
	ExprMax:     {"max", 0},
}

// String returns x in the notation the parser reads.
func (x Expr) String() string { return string(x.append(nil, 0)) }

// append writes x where operators bind at least as tightly as prec.
func (x Expr) append(b []byte, prec int) []byte {
	switch {
	case x.Op == ExprConst && x.Val < 0 && prec > 0:
		return append(strconv.AppendInt(append(b, '('), x.Val, 10), ')')
	case x.Op == ExprConst:
		return strconv.AppendInt(b, x.Val, 10)
	case x.Op == ExprSym:
		return append(b, x.Name...)
	}
	n := exprNotation[x.Op]
	if n.prec == 0 {
		b = x.X.append(append(append(b, n.text...), '('), 0)
		b = x.Y.append(append(b, ", "...), 0)
		return append(b, ')')
	}
	if n.prec < prec {
		b = append(b, '(')
	}
	b = x.X.append(b, n.prec)
	b = x.Y.append(append(b, n.text...), n.prec+1)
	if n.prec < prec {
		b = append(b, ')')
	}
	return b
}
