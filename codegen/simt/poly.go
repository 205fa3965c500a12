package simt

import (
	"cmp"
	"slices"
)

// poly is a 64-bit integer as a sum of products of at most two values, plus a
// constant. Widenings are looked through: see ReduceAddresses for why that is
// allowed in addresses.
type poly struct {
	terms []term // sorted, without zeros
	c     int64
}

type term struct {
	x, y *Value // factors, by ID; y is nil for a single one
	k    int64
}

// most terms a poly may have; what would have more stays one value.
const polyTerms = 12

func compareTerms(a, b term) int {
	id := func(v *Value) int32 {
		if v == nil {
			return -1
		}
		return v.ID
	}
	return cmp.Or(cmp.Compare(id(a.x), id(b.x)), cmp.Compare(id(a.y), id(b.y)))
}

func (p poly) plus(q poly, k int64) poly {
	out := poly{c: p.c + k*q.c, terms: make([]term, 0, len(p.terms)+len(q.terms))}
	a, b := p.terms, q.terms
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && compareTerms(a[0], b[0]) < 0:
			out.terms = append(out.terms, a[0])
			a = a[1:]
		case len(a) == 0 || compareTerms(a[0], b[0]) > 0:
			out.terms = append(out.terms, term{b[0].x, b[0].y, k * b[0].k})
			b = b[1:]
		default:
			if n := a[0].k + k*b[0].k; n != 0 {
				out.terms = append(out.terms, term{a[0].x, a[0].y, n})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// times multiplies; ok is false where a product would have three factors.
func (p poly) times(q poly) (out poly, ok bool) {
	out = poly{}.plus(p, q.c).plus(poly{terms: q.terms}, p.c)
	for _, a := range p.terms {
		for _, b := range q.terms {
			if a.y != nil || b.y != nil {
				return poly{}, false
			}
			x, y := a.x, b.x
			if x.ID > y.ID {
				x, y = y, x
			}
			out = out.plus(poly{terms: []term{{x, y, 1}}}, a.k*b.k)
		}
	}
	return out, true
}

func (p poly) equal(q poly) bool { return p.c == q.c && slices.Equal(p.terms, q.terms) }

// polys writes values as polys.
type polys struct {
	zeros *known
	memo  map[*Value]poly
}

func (s *polys) of(v *Value) poly {
	if v.IsConst() {
		return poly{c: v.Int()}
	}
	if p, ok := s.memo[v]; ok {
		return p
	}
	p, ok := s.compute(v)
	if !ok || len(p.terms) > polyTerms {
		p = poly{terms: []term{{x: v, k: 1}}}
	}
	s.memo[v] = p
	return p
}

func (s *polys) compute(v *Value) (poly, bool) {
	if v.Block != nil || v.Floating() {
		return poly{}, false
	}
	a := v.Def.Args
	switch v.Def.Op {
	case OpAdd:
		return s.of(a[0]).plus(s.of(a[1]), 1), true
	case OpSub:
		return s.of(a[0]).plus(s.of(a[1]), -1), true
	case OpNeg:
		return poly{}.plus(s.of(a[0]), -1), true
	case OpShl:
		if a[1].IsConst() && a[1].Int() >= 0 && a[1].Int() < 63 {
			return poly{}.plus(s.of(a[0]), 1<<a[1].Int()), true
		}
	case OpMul, OpMulWide:
		return s.of(a[0]).times(s.of(a[1]))
	case OpMad, OpMadWide:
		p, ok := s.of(a[0]).times(s.of(a[1]))
		return p.plus(s.of(a[2]), 1), ok
	case OpSext:
		if a[0].Type == I32 {
			return s.of(a[0]), true
		}
	case OpZext:
		if a[0].Type == I32 && s.zeros.most(a[0])>>31 == 0 {
			return s.of(a[0]), true
		}
	}
	return poly{}, false
}

// uniform tells whether a value outside of blocks' lanes is the same in all
// threads of the launch's block, going by its operands alone.
func uniform(v *Value, depth int) bool {
	if v.IsConst() {
		return true
	}
	if v.Block != nil || depth == 0 {
		return false
	}
	if v.Floating() {
		return v.Def.Op == OpParam || v.Def.Op == OpSpecial && v.Def.Special >= CtaX && v.Def.Special <= NCtaZ
	}
	if !v.Def.Pure() || v.Def.Body != nil {
		return false
	}
	for _, x := range v.Def.Args {
		if !uniform(x, depth-1) {
			return false
		}
	}
	return true
}

// split takes the part of p that is the same in all threads from the rest.
// Pointers stay with the rest: the distance of two is no use.
func (p poly) split() (same, rest poly) {
	same.c = p.c
	for _, t := range p.terms {
		ok := t.x.Type != Ptr && uniform(t.x, 8) && (t.y == nil || t.y.Type != Ptr && uniform(t.y, 8))
		if ok {
			same.terms = append(same.terms, t)
		} else {
			rest.terms = append(rest.terms, t)
		}
	}
	return same, rest
}

// build computes p as an I64.
func (p poly) build(b *Builder) *Value {
	sum := b.Const64(p.c)
	for _, t := range p.terms {
		v := b.Sext(t.x, I64)
		switch {
		case t.y != nil && t.x.Type == I32 && t.y.Type == I32:
			v = b.Mul(b.MulWide(t.x, t.y), b.Const64(t.k))
		case t.y != nil:
			v = b.Mul(b.Mul(v, b.Sext(t.y, I64)), b.Const64(t.k))
		case t.x.Type == I32 && t.k == int64(int32(t.k)):
			v = b.MulWide(t.x, b.Const32(int(t.k)))
		default:
			v = b.Mul(v, b.Const64(t.k))
		}
		sum = b.Add(sum, v)
	}
	return sum
}
