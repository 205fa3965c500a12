package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// peel keeps masks off the iterations that need none: up to some index of a loop
// every element of the mask is proved true. Only masks linear in the loop's index
// and in tile indices are looked at, such as row >= col and col < size.
//
// A small loop is split there in two: the first part selects nothing. A loop with
// dots stays whole, since two copies of its body would cost twice the instruction
// cache and twice ptxas' time; its masks move behind a branch that all threads take
// alike. One that the blocks of a cluster divide keeps its masks: a part of it would be
// divided otherwise, and a branch would have a layout of its own.
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
	if !isConst(step) || step.Def.Int <= 0 || o.Blocks > 1 {
		return o
	}
	body := o.Regions[0]
	if countOps(body) > mostSplitOps {
		return o
	}
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
	if slices.ContainsFunc(body.Ops, func(b *ir.Op) bool { return b.Code == ir.OpDot }) {
		p.branch(body, mid, proved)
		return o
	}
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

// mostSplitOps bounds the loops that are split: a split doubles what is inside, loops
// that were split before included.
const mostSplitOps = 400

// countOps counts the operations of a region and of those inside it.
func countOps(r *ir.Region) int {
	n := len(r.Ops)
	for _, o := range r.Ops {
		for _, in := range o.Regions {
			n += countOps(in)
		}
	}
	return n
}

// branch puts the masks of a loop's body, and what computes them, behind a branch
// taken from index mid on.
func (p *peeler) branch(body *ir.Region, mid *ir.Value, proved map[*ir.Value]bool) {
	arithmetic := map[*ir.Op]bool{}
	for _, o := range body.Ops {
		arithmetic[o] = len(o.Results) == 1 && o.Result().Type.IsTile() && o.Code.IsPure() && len(o.Regions) == 0 && !o.Result().Type.Elem.IsFloat()
	}
	e := &editor{k: p.k}
	for _, o := range body.Ops {
		e.pos = o.Pos
		if o.Code != ir.OpSelect || !slices.ContainsFunc(conjuncts(o.Args[0]), func(c *ir.Value) bool { return proved[c] }) {
			e.ops = append(e.ops, o)
			continue
		}
		masked := func(subst map[*ir.Value]*ir.Value) *ir.Region {
			in := &editor{k: p.k, pos: o.Pos}
			m := in.repeat(o.Args[0], subst, arithmetic)
			s := &ir.Op{Code: ir.OpSelect, Args: []*ir.Value{m, o.Args[1], o.Args[2]}}
			v := in.one(s, o.Result().Type)
			in.add(&ir.Op{Code: ir.OpYield, Args: []*ir.Value{v}})
			return &ir.Region{Ops: in.ops}
		}
		subst := map[*ir.Value]*ir.Value{}
		full := masked(subst)
		held := map[*ir.Value]bool{}
		for v := range proved {
			if w, ok := subst[v]; ok {
				held[w] = true
			}
		}
		assumeTrue(full, held)
		cond := e.cmp(ir.LT, body.Params[0], mid)
		branch := &ir.Op{Code: ir.OpIf, Args: []*ir.Value{cond}, Pos: o.Pos, Results: o.Results, Regions: []*ir.Region{full, masked(map[*ir.Value]*ir.Value{})}}
		o.Result().Def = branch
		e.ops = append(e.ops, branch)
	}
	body.Ops = e.ops
}

// conjuncts are the comparisons whose conjunction a mask is; a mask of another
// form is its own only one.
func conjuncts(v *ir.Value) []*ir.Value {
	var found []*ir.Value
	seen := map[*ir.Value]bool{}
	var walk func(v *ir.Value)
	walk = func(v *ir.Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		if o := v.Def; o != nil {
			switch o.Code {
			case ir.OpAnd:
				walk(o.Args[0])
				walk(o.Args[1])
				return
			case ir.OpBroadcast, ir.OpExpand:
				walk(o.Args[0])
				return
			}
		}
		found = append(found, v)
	}
	walk(v)
	return found
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
