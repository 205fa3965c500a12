package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// loop pipelines a loop: copies of the loads that its dots use run ahead of
// them. before emits what must stand between the first copies and the loop.
func (s *stager) loop(e *editor, o *ir.Op, before func()) {
	p := s.pipeliner(o)
	if p == nil {
		before()
		s.region(o.Regions[0])
		e.ops = append(e.ops, o)
		return
	}
	p.order()
	for _, st := range p.found {
		s.newRings(e, st, p.depth)
	}
	if p.specialises() {
		before()
		p.specialise(e)
		return
	}
	p.prologue(e)
	before()
	p.rewrite(e)
	e.ops = append(e.ops, o)
}

// pipeliner is for a loop with loads that run ahead; nil where it has none.
func (s *stager) pipeliner(o *ir.Op) *pipeliner {
	body := o.Regions[0]
	within := s.dependents(body, body.Params[0])
	found := slices.DeleteFunc(s.find(body), func(st *staged) bool { return !within[st.load] })
	if len(found) == 0 {
		return nil
	}
	depth := o.Stages
	if depth == 0 {
		depth = s.k.Hints.Stages
	}
	depth = min(max(depth, 1), mostStages)
	return &pipeliner{stager: s, loop: o, found: found, within: within, groups: s.groupsOf(found), depth: depth}
}

// mostStages bounds the depth of a ring, whatever a program asks for.
const mostStages = 16

type pipeliner struct {
	*stager
	loop   *ir.Op
	found  []*staged
	within map[*ir.Op]bool
	groups []*group
	depth  int
}

// dependents are the operations of a loop's body that depend on its index alone
// (and on what stands outside the loop), and have no effect: they may be done ahead of
// time.
func (s *stager) dependents(body *ir.Region, k *ir.Value) map[*ir.Op]bool {
	ok := map[*ir.Value]bool{k: true}
	inside := map[*ir.Value]bool{}
	for _, p := range body.Params {
		inside[p] = true
	}
	within := map[*ir.Op]bool{}
	for _, o := range body.Ops {
		pure := len(o.Regions) == 0 && (o.Code.IsPure() || o.Code == ir.OpLoad && !s.writes(o.View()))
		for _, a := range o.Args {
			pure = pure && (ok[a] || !inside[a])
		}
		for _, r := range o.Results {
			inside[r] = true
			ok[r] = pure
		}
		within[o] = pure
	}
	return within
}

// groupsOf joins loads with the same first consumer, in order of use. What a role transposes
// is by itself, and before the others, which need not wait for that.
func (s *stager) groupsOf(found []*staged) []*group {
	var groups []*group
	alone := func(st *staged) bool { return s.across[st.load] != nil }
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(x, y *staged) int {
		switch {
		case alone(x) == alone(y):
			return 0
		case alone(x):
			return -1
		}
		return 1
	})
	for _, st := range found {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.first == st.first && !alone(g.loads[0]) })
		if i < 0 || alone(st) {
			groups = append(groups, &group{first: st.first})
			i = len(groups) - 1
		}
		g := groups[i]
		g.loads = append(g.loads, st)
		g.last = max(g.last, st.last)
	}
	slices.SortStableFunc(groups, func(x, y *group) int { return x.first - y.first })
	return groups
}

// order decides after which wait, and how far ahead, each group is refilled.
func (p *pipeliner) order() {
	for i, g := range p.groups {
		g.after, g.ahead = 0, p.depth-1
		for j := i + 1; j < len(p.groups); j++ {
			if p.groups[j].first > g.last {
				g.after, g.ahead = j, p.depth
				break
			}
		}
		// One buffer that the loop's first wait guards can only be refilled before
		// that wait, behind a barrier of its own.
		g.bare = g.ahead == 0 && g.after == i
	}
}

// pending is the least number of groups committed after the one that group g
// waits for, found by playing prologue and iterations through.
func (p *pipeliner) pending(g int) int {
	type commit struct{ group, index int }
	var done []commit
	for index := range p.depth {
		for i, gr := range p.groups {
			if index < gr.ahead {
				done = append(done, commit{i, index})
			}
		}
	}
	least := -1
	for t := range 2*p.depth + 2 {
		for j := range p.groups {
			if p.groups[j].bare {
				done = append(done, commit{j, t})
			}
			if j == g {
				later := len(done) - 1 - slices.Index(done, commit{g, t})
				if least < 0 || later < least {
					least = later
				}
			}
			for i, gr := range p.groups {
				if gr.after == j && !gr.bare {
					done = append(done, commit{i, t + gr.ahead})
				}
			}
		}
	}
	return least
}

// prologue starts the copies that the first iterations find already under way.
func (p *pipeliner) prologue(e *editor) {
	lo, hi, step := p.loop.Args[0], p.loop.Args[1], p.loop.Args[2]
	for index := range p.depth {
		for _, g := range p.groups {
			if index >= g.ahead {
				continue
			}
			slot := e.int(int64(index))
			k := p.advance(e, lo, step, index)
			p.refill(e, g, slot, k, e.cmp(ir.LT, k, hi))
		}
	}
}

// advance returns k + n*step.
func (p *pipeliner) advance(e *editor, k, step *ir.Value, n int) *ir.Value {
	if n == 0 {
		return k
	}
	if isConst(step) {
		return e.plus(k, step.Def.Int*int64(n))
	}
	return e.binary(ir.OpAdd, k, e.times(step, int64(n)))
}

// refill copies a group's loads as they are at loop index k into buffer slot.
func (p *pipeliner) refill(e *editor, g *group, slot, k, pred *ir.Value) {
	subst := map[*ir.Value]*ir.Value{p.loop.Regions[0].Params[0]: k}
	args := make([]*ir.Value, 0, len(g.loads)+1)
	for _, st := range g.loads {
		p.copy(e, st, slot, pred, subst, p.within)
		args = append(args, st.filled())
	}
	e.add(&ir.Op{Code: ir.OpCommit, Args: append(args, slot)})
}

func (g *group) rings(slot *ir.Value) []*ir.Value {
	var args []*ir.Value
	for _, st := range g.loads {
		args = append(args, st.ring)
	}
	return append(args, slot)
}

// rewrite turns the loop's body into its pipelined form; the loop carries the
// iteration's number.
func (p *pipeliner) rewrite(outer *editor) {
	p.body(outer, p.consume, func(e *editor, g *group, it *ir.Value) {
		e.add(&ir.Op{Code: ir.OpRelease, Args: g.rings(it)})
	})
}

// body rewrites the loop's body. consume reads group j before its first use, free
// gives its buffers back after its last; it is the iteration's number.
func (p *pipeliner) body(outer *editor, consume func(e *editor, j int, g *group, it *ir.Value), free func(e *editor, g *group, it *ir.Value)) {
	o := p.loop
	body := o.Regions[0]
	it := p.k.NewValue("it", scalarI32)
	e := &editor{k: p.k, pos: o.Pos}
	for i, b := range body.Ops {
		e.pos = b.Pos
		if owner(p.found, b) != nil {
			continue
		}
		for j, g := range p.groups {
			if g.first == i {
				consume(e, j, g, it)
			}
		}
		if b.Code == ir.OpYield {
			b.Args = append(b.Args, e.plus(it, 1))
		}
		for _, r := range b.Regions {
			p.region(r)
		}
		e.ops = append(e.ops, b)
		for _, g := range p.groups {
			if g.last == i {
				free(e, g, it)
			}
		}
	}
	p.carry(o, outer, e.ops, it)
	o.Stages = 0
}

// carry gives a loop its new body, and the iteration's number to carry.
func (s *stager) carry(o *ir.Op, outer *editor, ops []*ir.Op, it *ir.Value) {
	body := o.Regions[0]
	body.Ops = ops
	body.Params = append(body.Params, it)
	o.Args = append(o.Args, outer.int(0))
	last := s.k.NewValue("", scalarI32)
	last.Def, last.Index = o, len(o.Results)
	o.Results = append(o.Results, last)
}

// consume waits for a group, refills those that this wait sets free, and reads.
func (p *pipeliner) consume(e *editor, j int, g *group, it *ir.Value) {
	k, hi, step := p.loop.Regions[0].Params[0], p.loop.Args[1], p.loop.Args[2]
	if g.bare {
		e.add(&ir.Op{Code: ir.OpAcquire, Args: g.rings(it)})
		p.refill(e, g, it, k, nil)
	}
	w := &ir.Op{Code: ir.OpWait, Args: g.rings(it)}
	w.Pending = p.pending(j)
	e.add(w)
	for _, f := range p.groups {
		if f.after != j || f.bare {
			continue
		}
		slot := e.plus(it, int64(f.ahead))
		ahead := p.advance(e, k, step, f.ahead)
		var pred *ir.Value
		if f.ahead > 0 {
			pred = e.cmp(ir.LT, ahead, hi)
		}
		e.add(&ir.Op{Code: ir.OpAcquire, Args: f.rings(slot)})
		p.refill(e, f, slot, ahead, pred)
	}
	for _, st := range g.loads {
		p.read(e, st, it)
	}
}
