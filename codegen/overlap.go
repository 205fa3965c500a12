package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// overlap starts a product of one iteration before the last product of the iteration
// before, so that what lies between the two of one iteration (the softmax of attention)
// runs while the tensor cores multiply. It takes loops of the main role that have, in
// their own body, a product of warpgroups that adds to a carried accumulator and whose
// left operand another one is made into. With first(i) the operations up to the first
// product, last(i) the one that adds up and what it alone needs, rest(i) all others:
//
//	for i { first(i); rest(i); last(i) }
//
// becomes, where there is an iteration at all,
//
//	first(0); rest(0); for i from 1 { first(i); last(i-1); rest(i) }; last(end)
//
// The hint overlap asks for it. At 2 two warpgroups take turns besides: each issues the
// products of an iteration when the other has issued its own, so that the softmax of one
// runs under the products of the other. Buffers are given back, and so products waited for, as
// late as their results are needed.
func overlap(k *ir.Kernel, m *machine) {
	if k.Hints.Overlap == 0 {
		return
	}
	done := false
	for _, o := range k.Body.Ops {
		if o.Code != ir.OpRoles {
			continue
		}
		main := o.Regions[mainRole]
		var ops []*ir.Op
		for _, loop := range main.Ops {
			if s := shiftOf(loop); s != nil {
				ops = append(ops, s.rewrite(k)...)
				done = true
			} else {
				ops = append(ops, loop)
			}
		}
		main.Ops = ops
	}
	if m.wgmma && !done {
		m.notes = append(m.notes, "products of two iterations do not overlap: want a loop with copies by a role of their own, and a product that one before it feeds")
	}
}

// shift is a loop whose last product moves to the next iteration.
type shift struct {
	loop    *ir.Op
	acc     int // the carried value that the last product adds to
	it      int // the carried number of the iteration
	first   *ir.Op
	last    map[*ir.Op]bool // what moves
	release *ir.Op          // gives back what the last product read; it moves too
	wait    *ir.Op          // for what the first product reads
	late    []*ir.Op        // casts for the last product alone: they end an iteration
	crosses []*ir.Value     // what an iteration makes for the last product of its own
}

// shiftOf looks for the pattern in a loop; nil if it is not there.
func shiftOf(loop *ir.Op) *shift {
	if loop.Code != ir.OpFor {
		return nil
	}
	body := loop.Regions[0]
	u := usersOf(body)
	dots := slices.DeleteFunc(slices.Clone(body.Ops), func(o *ir.Op) bool { return o.Code != ir.OpDot || !staysShared(o.Args[1]) })
	if len(dots) < 2 || len(dotsIn(body, nil)) != len(dots) {
		return nil
	}
	s := &shift{loop: loop, first: dots[0], last: map[*ir.Op]bool{}}
	d := dots[len(dots)-1]
	yield := body.Yield()
	s.acc = slices.Index(yield.Args, d.Result())
	count, _ := counted(loop)
	s.it = slices.Index(body.Params, count) - 1
	if s.acc < 0 || count == nil || staysShared(d.Args[0]) || len(u[d.Result()]) != 1 || !s.moves(u, d) {
		return nil
	}
	ring := ringOf(s.first.Args[1])
	for _, o := range body.Ops {
		if o.Code == ir.OpWait && slices.Contains(o.Operands("rings"), ring) {
			s.wait = o
		}
	}
	if s.wait == nil || s.last[s.wait] {
		return nil
	}
	s.sink(u, d)
	return s.crossing()
}

// moves collects the last product, what its accumulator goes through before, and the read
// of its right operand; it tells whether they may move.
func (s *shift) moves(u users, d *ir.Op) bool {
	body := s.loop.Regions[0]
	grown := map[*ir.Value]bool{body.Params[1+s.acc]: true}
	for _, o := range body.Ops {
		if o.Code == ir.OpYield || !uses(o, grown) {
			continue
		}
		if o != d && (!o.Code.IsPure() || len(o.Regions) > 0) {
			return false
		}
		s.last[o] = true
		for _, v := range o.Results {
			grown[v] = true
		}
	}
	for v := d.Args[1]; ; v = v.Def.Args[0] {
		if s.last[v.Def] = true; len(u[v]) != 1 {
			return false
		}
		if v.Def.Code == ir.OpRead {
			break
		}
	}
	ring := map[*ir.Value]bool{ringOf(d.Args[1]): true}
	for _, o := range body.Ops {
		switch {
		case !uses(o, ring) || s.last[o]:
		case o.Code == ir.OpWait && len(o.Operands("rings")) == 1:
			s.last[o] = true
		case o.Code == ir.OpRelease && len(o.Operands("rings")) == 1:
			s.release = o
		default:
			return false
		}
	}
	return s.last[d] && s.release != nil
}

// sink moves what costs nothing and serves the last product alone along with it, and
// casts of its left operand to the end of the iteration, when the registers that the
// product before reads are free.
func (s *shift) sink(u users, d *ir.Op) {
	ops := s.loop.Regions[0].Ops
	for _, o := range slices.Backward(ops) {
		if len(o.Results) != 1 || len(u[o.Result()]) == 0 || slices.ContainsFunc(u[o.Result()], func(x *ir.Op) bool { return !s.last[x] }) {
			continue
		}
		switch o.Code {
		case ir.OpBroadcast, ir.OpExpand, ir.OpSplat, ir.OpConst:
			s.last[o] = true
		case ir.OpCast:
			if o.Result() == d.Args[0] {
				s.late = append(s.late, o)
			}
		}
	}
}

// crossing finds what the moved operations need of the rest of their own iteration; nil
// where that is something carried.
func (s *shift) crossing() *shift {
	body := s.loop.Regions[0]
	for _, o := range body.Ops {
		if !s.last[o] {
			continue
		}
		for _, a := range o.Args {
			i := slices.Index(body.Params, a)
			switch {
			case i == 1+s.acc || i == 1+s.it || slices.Contains(s.crosses, a):
			case i >= 0:
				return nil
			case a.Def != nil && slices.Contains(body.Ops, a.Def) && !s.last[a.Def]:
				s.crosses = append(s.crosses, a)
			}
		}
	}
	return s
}

// rewrite returns the new loop and what stands before and behind it, in a branch that gives
// what the old loop did.
func (s *shift) rewrite(k *ir.Kernel) []*ir.Op {
	o := s.loop
	out := &editor{k: k, pos: o.Pos}
	some := out.cmp(ir.LT, o.Args[0], o.Args[1])
	in := &editor{k: k, pos: o.Pos}
	inner := s.before(in)
	in.ops = append(in.ops, inner)
	in.add(&ir.Op{Code: ir.OpYield, Args: s.after(in, inner)})
	s.shifted(k, inner)
	none := &ir.Region{Ops: []*ir.Op{{Code: ir.OpYield, Pos: o.Pos, Args: slices.Clone(o.Args[3:])}}}
	branch := &ir.Op{Code: ir.OpIf, Pos: o.Pos, Args: []*ir.Value{some}, Results: o.Results, Regions: []*ir.Region{{Ops: in.ops}, none}}
	for _, v := range branch.Results {
		v.Def = branch
	}
	return append(out.ops, branch)
}

// before appends the first iteration but for its last product, and returns the new loop,
// still without a body, that goes on from there.
func (s *shift) before(e *editor) *ir.Op {
	o := s.loop
	body := o.Regions[0]
	lo, hi, step := o.Args[0], o.Args[1], o.Args[2]
	c := ir.NewCloner(e.k)
	c.Map(body.Params[0], lo)
	for i, v := range o.Args[3:] {
		c.Map(body.Params[1+i], v)
	}
	for _, b := range body.Ops {
		if b.Code != ir.OpYield && !s.last[b] && b != s.release {
			e.ops = append(e.ops, c.Op(b))
		}
	}
	from := e.binary(ir.OpAdd, lo, step)
	inner := &ir.Op{Code: ir.OpFor, Pos: o.Pos, Args: []*ir.Value{from, hi, step}}
	inner.Pingpong = e.k.Hints.Overlap > 1 && e.k.Hints.Warps == 2*warpgroup
	s.await(e, from, hi, e.plus(o.Args[3+s.it], 1))
	for i, v := range body.Yield().Args {
		switch i {
		case s.acc:
			v = o.Args[3+i]
		case s.it:
			v = e.plus(o.Args[3+i], 1)
		default:
			v = c.Value(v)
		}
		inner.Args = append(inner.Args, v)
	}
	for _, v := range s.crosses {
		inner.Args = append(inner.Args, c.Value(v))
	}
	for i, v := range inner.Args[3:] {
		r := e.k.NewValue("", v.Type)
		r.Def, r.Index = inner, i
		inner.Results = append(inner.Results, r)
	}
	return inner
}

// after appends the last product of the last iteration, and returns what the old loop gave.
func (s *shift) after(e *editor, inner *ir.Op) []*ir.Value {
	body := s.loop.Regions[0]
	c := ir.NewCloner(e.k)
	c.Map(body.Params[1+s.acc], inner.Results[s.acc])
	c.Map(body.Params[1+s.it], e.plus(inner.Results[s.it], -1))
	carried := len(body.Params) - 1
	for i, v := range s.crosses {
		c.Map(v, inner.Results[carried+i])
	}
	for _, b := range body.Ops {
		if s.last[b] || b == s.release {
			e.ops = append(e.ops, c.Op(b))
		}
	}
	final := slices.Clone(inner.Results[:carried])
	final[s.acc] = c.Value(body.Yield().Args[s.acc])
	return final
}

// shifted gives the new loop the old one's body in its new order.
func (s *shift) shifted(k *ir.Kernel, inner *ir.Op) {
	body := s.loop.Regions[0]
	e := &editor{k: k, pos: s.loop.Pos}
	subst := map[*ir.Value]*ir.Value{}
	for _, v := range s.crosses {
		p := k.NewValue(v.Name, v.Type)
		body.Params = append(body.Params, p)
		subst[v] = p
	}
	var rest []*ir.Op
	for i, b := range body.Ops {
		switch {
		case s.last[b] || b == s.release || b == s.wait || slices.Contains(s.late, b) || b.Code == ir.OpYield:
		case i > slices.Index(body.Ops, s.first):
			rest = append(rest, b)
		default:
			e.ops = append(e.ops, b)
		}
	}
	subst[body.Params[1+s.it]] = e.plus(body.Params[1+s.it], -1)
	for _, b := range body.Ops {
		if s.last[b] {
			replace(b, subst)
			e.ops = append(e.ops, b)
		}
	}
	e.ops = append(e.ops, rest...)
	next := e.binary(ir.OpAdd, body.Params[0], s.loop.Args[2])
	s.await(e, next, s.loop.Args[1], e.plus(body.Params[1+s.it], 1))
	replace(s.release, subst)
	yield := body.Yield()
	yield.Args = append(yield.Args, s.crosses...)
	body.Ops = slices.Concat(e.ops, []*ir.Op{s.release}, s.late, []*ir.Op{yield})
	inner.Regions = []*ir.Region{body}
}

// await waits for what the first product of the iteration that begins at index k reads, if
// there is one. It stands before the wait for the last product: compilers move arithmetic
// over that, from where it is hidden to where it is not, but not over a branch.
func (s *shift) await(e *editor, k, hi, it *ir.Value) {
	w := copyOp(s.wait, nil)
	w.Args[len(w.Args)-1] = it
	then := &ir.Region{Ops: []*ir.Op{w, {Code: ir.OpYield, Pos: e.pos}}}
	none := &ir.Region{Ops: []*ir.Op{{Code: ir.OpYield, Pos: e.pos}}}
	e.add(&ir.Op{Code: ir.OpIf, Args: []*ir.Value{e.cmp(ir.LT, k, hi)}, Regions: []*ir.Region{then, none}})
}
