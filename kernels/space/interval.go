package space

import (
	"go/token"
	"math"
)

// interval is the set of numbers from lo to hi; the ends of int64 stand for no bound.
type interval struct{ lo, hi int64 }

var everything = interval{math.MinInt64, math.MaxInt64}

// truth says what a condition can be for the values that are still open. A condition
// that divides by zero or overflows for some of them may be either.
type truth struct{ yes, no bool }

var either = truth{true, true}

type (
	// spanFunc bounds a number, given bounds of each parameter.
	spanFunc func([]interval) interval
	// mayFunc tells what a condition can be, given bounds of each parameter.
	mayFunc func([]interval) truth
)

func (n node) bounds() spanFunc {
	if n.span != nil {
		return n.span
	}
	return func([]interval) interval { return everything }
}

func (n node) can() mayFunc {
	if n.may != nil {
		return n.may
	}
	return func([]interval) truth { return either }
}

// corners bounds a function of two numbers that is monotone in each, by its values at
// the corners. f reports whether it has one.
func corners(x, y interval, f func(a, b int64) (int64, bool)) interval {
	out := interval{math.MaxInt64, math.MinInt64}
	for _, a := range [2]int64{x.lo, x.hi} {
		for _, b := range [2]int64{y.lo, y.hi} {
			v, ok := f(a, b)
			if !ok {
				return everything
			}
			out.lo, out.hi = min(out.lo, v), max(out.hi, v)
		}
	}
	return out
}

// checked turns an operation on a frame into one for corners. A bound that is none has
// no arithmetic.
func checked(op func(*frame, int64, int64) int64) func(a, b int64) (int64, bool) {
	return func(a, b int64) (int64, bool) {
		if a == math.MinInt64 || a == math.MaxInt64 || b == math.MinInt64 || b == math.MaxInt64 {
			return 0, false
		}
		var f frame
		v := op(&f, a, b)
		return v, !f.fault
	}
}

// spanOf bounds the result of an operator on numbers.
func spanOf(op token.Token, x, y spanFunc) spanFunc {
	switch op {
	case token.ADD:
		return onCorners(x, y, (*frame).add)
	case token.SUB:
		return onCorners(x, y, (*frame).sub)
	case token.MUL:
		return onCorners(x, y, (*frame).mul)
	case token.QUO:
		return divided(x, y, (*frame).div)
	case token.REM:
		return func(b []interval) interval { return remainder(x(b), y(b)) }
	}
	return nil
}

func onCorners(x, y spanFunc, op func(*frame, int64, int64) int64) spanFunc {
	f := checked(op)
	return func(b []interval) interval { return corners(x(b), y(b), f) }
}

// divided is onCorners for divisors that cannot be 0.
func divided(x, y spanFunc, op func(*frame, int64, int64) int64) spanFunc {
	f := checked(op)
	return func(b []interval) interval {
		d := y(b)
		if d.lo <= 0 && d.hi >= 0 {
			return everything
		}
		return corners(x(b), d, f)
	}
}

func remainder(x, y interval) interval {
	if x.lo < 0 || y.lo <= 0 {
		return everything
	}
	if x.hi < y.lo {
		return x // smaller than what it is divided by
	}
	if x.lo == x.hi && y.lo == y.hi {
		return interval{x.lo % y.lo, x.lo % y.lo}
	}
	return interval{0, min(x.hi, y.hi-1)}
}

// mayOf tells what a comparison can be.
func mayOf(op token.Token, x, y spanFunc) mayFunc {
	less := func(a, b interval) truth { return truth{a.lo < b.hi, a.hi >= b.lo} }
	equal := func(a, b interval) truth {
		return truth{a.lo <= b.hi && b.lo <= a.hi, a.lo != a.hi || b.lo != b.hi || a.lo != b.lo}
	}
	var f func(a, b interval) truth
	switch op {
	case token.LSS:
		f = less
	case token.GTR:
		f = func(a, b interval) truth { return less(b, a) }
	case token.LEQ:
		f = func(a, b interval) truth { return less(b, a).not() }
	case token.GEQ:
		f = func(a, b interval) truth { return less(a, b).not() }
	case token.EQL:
		f = equal
	case token.NEQ:
		f = func(a, b interval) truth { return equal(a, b).not() }
	default:
		return nil
	}
	return func(b []interval) truth { return f(x(b), y(b)) }
}

func (t truth) not() truth { return truth{t.no, t.yes} }

func mayBoth(op token.Token, x, y mayFunc) mayFunc {
	if op == token.LAND {
		return func(b []interval) truth {
			p := x(b)
			if !p.yes {
				return p
			}
			q := y(b)
			return truth{q.yes, p.no || q.no}
		}
	}
	return func(b []interval) truth {
		p := x(b)
		if !p.no {
			return p
		}
		q := y(b)
		return truth{p.yes || q.yes, q.no}
	}
}
