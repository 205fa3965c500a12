package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// sum is c + the sum of k*size over terms: an end of where an index lies. A nil sum is
// not known, and neither is what is computed from it.
type sum struct {
	c     int64
	terms []sizeTerm // in order of their text, no zero factors
}

// sizeTerm is a size, or what divisions, products and the like make of sizes, times k.
type sizeTerm struct {
	k    int64
	size ir.Expr
	text string
	over *sum // of a ceildiv by a number: what is divided
	// The least and greatest value over all sizes.
	lo, hi float64
}

// mostFactor bounds the numbers of a sum: beyond it nothing fits 32 bits anyway, and
// below it a few sums and products fit 64.
const mostFactor = 1 << 40

func constant(n int64) *sum { return &sum{c: n} }

func symbol(name string, lo, hi float64) *sum { return one(ir.Sym(name), lo, hi) }

func one(e ir.Expr, lo, hi float64) *sum {
	return &sum{terms: []sizeTerm{{k: 1, size: e, text: e.String(), lo: lo, hi: hi}}}
}

// number tells whether a value is one number for all sizes.
func (s span) number() (int64, bool) {
	if s.lo == nil || s.hi == nil || len(s.lo.terms)+len(s.hi.terms) > 0 || s.lo.c != s.hi.c {
		return 0, false
	}
	return s.lo.c, true
}

// least is the least value over all sizes.
func (s *sum) least() float64 {
	v := float64(s.c)
	for _, t := range s.terms {
		v += min(float64(t.k)*t.lo, float64(t.k)*t.hi)
	}
	return v
}

// most is the greatest.
func (s *sum) most() float64 { return -s.times(-1).least() }

// plus is s + factor*t.
func (s *sum) plus(t *sum, factor int64) *sum {
	t = t.times(factor)
	if s == nil || t == nil {
		return nil
	}
	r := &sum{c: s.c + t.c, terms: slices.Clone(s.terms)}
	for _, x := range t.terms {
		i := slices.IndexFunc(r.terms, func(y sizeTerm) bool { return y.text >= x.text })
		switch {
		case i < 0:
			r.terms = append(r.terms, x)
		case r.terms[i].text != x.text:
			r.terms = slices.Insert(r.terms, i, x)
		default:
			if r.terms[i].k += x.k; r.terms[i].k == 0 {
				r.terms = slices.Delete(r.terms, i, i+1)
			}
		}
	}
	return r.small()
}

// times is n*s.
func (s *sum) times(n int64) *sum {
	switch {
	case s == nil || n > mostFactor || n < -mostFactor:
		return nil
	case n == 0:
		return constant(0)
	}
	r := &sum{terms: slices.Clone(s.terms)}
	if r.c = s.c * n; r.c/n != s.c {
		return nil
	}
	for i := range r.terms {
		t := &r.terms[i]
		if t.k *= n; t.k/n != s.terms[i].k {
			return nil
		}
	}
	return r.small()
}

// small is s, or nothing where a number in it is beyond mostFactor.
func (s *sum) small() *sum {
	large := func(n int64) bool { return n > mostFactor || n < -mostFactor }
	if large(s.c) || slices.ContainsFunc(s.terms, func(t sizeTerm) bool { return large(t.k) }) {
		return nil
	}
	return s
}

// ceilDiv is s / n rounded up, of sums from 0 on; n >= 1.
func (s *sum) ceilDiv(n int64) *sum {
	switch {
	case s == nil || n == 1:
		return s
	case len(s.terms) == 0:
		return constant((s.c + n - 1) / n)
	case s.least() < 0:
		return nil
	}
	r := one(s.expr().CeilDiv(ir.Lit(n)), s.least()/float64(n), s.most()/float64(n)+1)
	r.terms[0].over = s
	return r
}

// scaled is an upper bound of n*s, n >= 0, in which divisions by what divides n are gone,
// so that sizes may cancel: n * ceildiv(x, n) is at most x + n-1.
func (s *sum) scaled(n int64) *sum {
	if s == nil || n < 1 {
		return s.times(n)
	}
	r := constant(s.c).times(n)
	for _, t := range s.terms {
		k, by := t.k*n, int64(0)
		if t.over != nil {
			by = t.size.Y.Val
		}
		if by > 0 && k > 0 && k%by == 0 {
			r = r.plus(t.over.plus(constant(by-1), 1), k/by)
		} else {
			r = r.plus(&sum{terms: []sizeTerm{t}}, n)
		}
	}
	return r
}

// expr writes the sum as a size expression.
func (s *sum) expr() ir.Expr {
	var e ir.Expr
	first := true
	for _, t := range s.terms {
		if t.k > 0 {
			e, first = join(e, t.scaled(t.k), first, ir.Expr.Plus), false
		}
	}
	if s.c != 0 || first {
		c := s.c
		if c < 0 && !first {
			e = e.Minus(ir.Lit(-c))
		} else {
			e = join(e, ir.Lit(c), first, ir.Expr.Plus)
		}
	}
	for _, t := range s.terms {
		if t.k < 0 {
			e = e.Minus(t.scaled(-t.k))
		}
	}
	return e
}

func (t sizeTerm) scaled(k int64) ir.Expr {
	if k == 1 {
		return t.size
	}
	return ir.Lit(k).Times(t.size)
}

func join(e, x ir.Expr, first bool, plus func(x, y ir.Expr) ir.Expr) ir.Expr {
	if first {
		return x
	}
	return plus(e, x)
}

// lesser is the better of two upper bounds of a value, either of which may be unknown.
func lesser(x, y *sum) *sum {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	if d := x.plus(y, -1); d != nil && d.most() <= 0 {
		return x
	} else if d != nil && d.least() >= 0 {
		return y
	}
	if x.most() <= y.most() {
		return x
	}
	return y
}

// lowest is the smaller of two sums, highest the larger.
func lowest(x, y *sum) *sum  { return extreme(x, y, 1, ir.MinOf) }
func highest(x, y *sum) *sum { return extreme(x, y, -1, ir.MaxOf) }

// extreme is one of two sums where it is the smaller for all sizes (sign 1) or the larger
// (-1), otherwise a term of its own.
func extreme(x, y *sum, sign int64, op func(x, y ir.Expr) ir.Expr) *sum {
	d := x.plus(y, -1).times(sign)
	if d == nil {
		return nil
	}
	if d.most() <= 0 {
		return x
	}
	if d.least() >= 0 {
		return y
	}
	if sign > 0 {
		return one(op(x.expr(), y.expr()), min(x.least(), y.least()), min(x.most(), y.most()))
	}
	return one(op(x.expr(), y.expr()), max(x.least(), y.least()), max(x.most(), y.most()))
}

// hull holds what either span holds.
func hull(x, y span) span { return span{lowest(x.lo, y.lo), highest(x.hi, y.hi)} }

// product is where a product lies.
func (s span) product(t span) span {
	if _, ok := s.number(); ok {
		s, t = t, s
	}
	if n, ok := t.number(); ok {
		if n < 0 {
			return span{s.hi.scaled(-n).times(-1), s.lo.times(n)}
		}
		return span{s.lo.times(n), s.hi.scaled(n)}
	}
	if !s.natural() || !t.natural() {
		return span{}
	}
	r := span{lo: constant(0)}
	switch {
	case s.hi == nil || t.hi == nil:
	case len(s.hi.terms) == 0 && s.hi.c >= 0:
		r.hi = t.hi.scaled(s.hi.c)
	case len(t.hi.terms) == 0 && t.hi.c >= 0:
		r.hi = s.hi.scaled(t.hi.c)
	default:
		r.hi = one(s.hi.expr().Times(t.hi.expr()), 0, s.hi.most()*t.hi.most())
	}
	return r
}

// quotient is where a quotient lies that is rounded towards 0.
func (s span) quotient(t span) span {
	n, ok := t.number()
	switch {
	case !s.natural() && (!ok || n < 1 || s.lo == nil || s.hi == nil):
		return span{}
	case !s.natural():
		return span{constant(int64(min(0, s.lo.least()/float64(n)))), constant(int64(max(0, s.hi.most()/float64(n))))}
	case ok && n >= 1:
		// Rounded down it is one less than the next number's rounded up.
		return span{constant(0), s.hi.plus(constant(1), 1).ceilDiv(n).plus(constant(1), -1)}
	case t.natural():
		return span{constant(0), s.hi}
	}
	return span{}
}
