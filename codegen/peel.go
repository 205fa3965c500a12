package codegen

import "github.com/kgen-dev/kgen/ir"

// peel splits a loop where a mask becomes partial: up to the split every element
// of the mask is proved true, so the first loop selects nothing; the second loop
// keeps the mask. Only masks linear in the loop's index and in tile indices are
// looked at, such as row >= col and col < size.
func peel(k *ir.Kernel) {
	p := &peeler{k: k}
	p.region(k.Body)
}

type peeler struct {
	k *ir.Kernel
}

func (p *peeler) region(r *ir.Region) {
	e := &editor{k: p.k}
	for _, o := range r.Ops {
		for _, in := range o.Regions {
			p.region(in)
		}
		e.pos = o.Pos
		if o.Code == ir.OpFor {
			o = p.split(e, o)
		}
		e.ops = append(e.ops, o)
	}
	r.Ops = e.ops
}

// split emits the loop's part without masks, if there is one, and returns the rest.
func (p *peeler) split(e *editor, o *ir.Op) *ir.Op {
	step := o.Args[2]
	if !isConst(step) || step.Def.Int <= 0 {
		return o
	}
	body := o.Regions[0]
	var bounds []bound
	proved := map[*ir.Value]bool{}
	for _, b := range body.Ops {
		if b.Code != ir.OpSelect || !b.Args[0].Type.IsTile() {
			continue
		}
		for _, c := range conjuncts(b.Args[0]) {
			if l, ok := p.limit(c, body); ok {
				proved[c] = true
				bounds = append(bounds, l)
			}
		}
	}
	if len(bounds) == 0 {
		return o
	}
	mid := p.middle(e, o, bounds)
	c := ir.NewCloner(p.k)
	first := c.Op(o)
	first.Args[1] = mid
	held := map[*ir.Value]bool{}
	for v := range proved {
		held[c.Value(v)] = true
	}
	assumeTrue(first.Regions[0], held)
	e.ops = append(e.ops, first)
	o.Args[0] = mid
	for i, r := range first.Results {
		o.Args[3+i] = r
	}
	return o
}

// conjuncts are the comparisons whose conjunction a mask is; a mask of another
// form is its own only one.
func conjuncts(v *ir.Value) []*ir.Value {
	if o := v.Def; o != nil {
		switch o.Code {
		case ir.OpAnd:
			return append(conjuncts(o.Args[0]), conjuncts(o.Args[1])...)
		case ir.OpBroadcast, ir.OpExpand:
			return conjuncts(o.Args[0])
		}
	}
	return []*ir.Value{v}
}

// bound says that something holds while factor*k <= rest, with factor > 0.
type bound struct {
	factor int64
	rest   affine
}

// limit finds up to which value of the loop's index a comparison is true
// everywhere.
func (p *peeler) limit(v *ir.Value, body *ir.Region) (bound, bool) {
	o := v.Def
	if o == nil || o.Code != ir.OpCmp || !v.Type.IsTile() {
		return bound{}, false
	}
	x, okX := affineOf(o.Args[0])
	y, okY := affineOf(o.Args[1])
	if !okX || !okY {
		return bound{}, false
	}
	var slack affine // >= 0 where the comparison holds
	switch o.Pred {
	case ir.LT:
		slack = y.plus(x, -1)
		slack.c--
	case ir.LE:
		slack = y.plus(x, -1)
	case ir.GT:
		slack = x.plus(y, -1)
		slack.c--
	case ir.GE:
		slack = x.plus(y, -1)
	default:
		return bound{}, false
	}
	slack = slack.least(v.Type.Shape)
	k := body.Params[0]
	f := slack.factor(k)
	rest := slack.without(k)
	if f >= 0 || !outside(rest, body) {
		return bound{}, false
	}
	return bound{-f, rest}, true
}

// outside tells whether a depends on nothing that a loop's body computes.
func outside(a affine, body *ir.Region) bool {
	inside := map[*ir.Value]bool{}
	for _, v := range body.Params {
		inside[v] = true
	}
	for _, o := range body.Ops {
		for _, v := range o.Results {
			inside[v] = true
		}
	}
	for _, t := range a.terms {
		if inside[t.v] {
			return false
		}
	}
	return true
}

// middle computes the first index of the loop, on its grid, where not all bounds
// hold; at least lo, at most hi rounded up to the grid.
func (p *peeler) middle(e *editor, o *ir.Op, bounds []bound) *ir.Value {
	lo, hi, step := o.Args[0], o.Args[1], o.Args[2].Def.Int
	var n *ir.Value // iterations that need no mask
	for _, b := range bounds {
		// factor*(lo + t*step) <= rest holds for t <= (rest - factor*lo) / (factor*step).
		room := e.binary(ir.OpSub, e.emit(b.rest), e.times(lo, b.factor))
		room = e.plus(room, b.factor*step)
		room = e.binary(ir.OpMax, room, e.int(0))
		t := e.binary(ir.OpDiv, room, e.int(b.factor*step))
		if n == nil {
			n = t
		} else {
			n = e.binary(ir.OpMin, n, t)
		}
	}
	trips := e.binary(ir.OpMax, e.binary(ir.OpSub, hi, lo), e.int(0))
	trips = e.binary(ir.OpDiv, e.plus(trips, step-1), e.int(step))
	n = e.binary(ir.OpMin, n, trips)
	return e.binary(ir.OpAdd, lo, e.times(n, step))
}

// assumeTrue drops comparisons that hold everywhere from the masks and selects of a
// loop's body.
func assumeTrue(r *ir.Region, proved map[*ir.Value]bool) {
	is := map[*ir.Value]bool{}        // values that are true everywhere
	same := map[*ir.Value]*ir.Value{} // values that equal another
	for _, o := range r.Ops {
		replace(o, same)
		if len(o.Results) != 1 {
			continue
		}
		v := o.Result()
		switch {
		case proved[v]:
			is[v] = true
		case o.Code == ir.OpAnd && v.Type.Elem == ir.I1:
			x, y := o.Args[0], o.Args[1]
			is[v] = is[x] && is[y]
			if is[x] && !is[y] {
				same[v] = y
			} else if is[y] && !is[x] {
				same[v] = x
			}
		case o.Code == ir.OpBroadcast || o.Code == ir.OpExpand:
			is[v] = is[o.Args[0]]
		case o.Code == ir.OpSelect && is[o.Args[0]]:
			same[v] = o.Args[1]
		}
	}
}

// replace puts other values in the place of operands of o and of what it contains.
func replace(o *ir.Op, same map[*ir.Value]*ir.Value) {
	for i, a := range o.Args {
		if w, ok := same[a]; ok {
			o.Args[i] = w
		}
	}
	for _, r := range o.Regions {
		for _, in := range r.Ops {
			replace(in, same)
		}
	}
}
