package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// specialises tells whether a loop's copies are done by a warp of their own: rings are
// deep enough to run ahead or the loop asks for it, it is none of another region, tensor
// maps copy all that is staged, and the warp can compute where from by itself.
func (p *pipeliner) specialises() bool {
	s, o := p.stager, p.loop
	if !s.roles || p.depth < 2 && !o.Specialise || max(s.k.Hints.Warps, 1)+copyWarps > layout.MaxWarps || s.at != s.k.Body || s.producer != nil {
		return false
	}
	alone := scalarsOf(s.k)
	for _, v := range o.Args[:3] {
		if !alone[v] {
			return false
		}
	}
	inside := map[*ir.Value]bool{o.Regions[0].Params[0]: true}
	for _, b := range o.Regions[0].Ops {
		for _, v := range b.Results {
			inside[v] = p.within[b] && v.Type.IsScalar()
		}
	}
	return !slices.ContainsFunc(p.found, func(st *staged) bool {
		return s.tensor[st.load] == nil || slices.ContainsFunc(st.load.Indices(), func(v *ir.Value) bool { return !alone[v] && !inside[v] })
	})
}

// scalarsOf are the values that every warp of a kernel can compute for itself.
func scalarsOf(k *ir.Kernel) map[*ir.Value]bool {
	alone := map[*ir.Value]bool{}
	for _, v := range k.Params {
		alone[v] = true
	}
	for _, a := range k.Space {
		alone[a.Var] = true
	}
	for _, o := range k.Body.Ops {
		ok := o.Code.IsPure() && len(o.Regions) == 0 || o.Code == ir.OpRing
		for _, a := range o.Args {
			ok = ok && alone[a]
		}
		for _, v := range o.Results {
			alone[v] = ok && !v.Type.IsTile()
		}
	}
	return alone
}

// specialise gives the copies to a role of their own, which runs ahead as far as the
// rings are deep. The loop waits, reads and releases.
func (p *pipeliner) specialise(outer *editor) {
	p.producer = p.copies(outer)
	p.transposer = p.transposes(outer)
	late := p.chained()
	p.body(outer, func(e *editor, _ int, g *group, it *ir.Value) {
		e.add(&ir.Op{Code: ir.OpWait, Args: g.rings(it)})
		for _, st := range g.loads {
			p.read(e, st, it)
		}
	}, func(e *editor, g *group, it *ir.Value) { p.free(e, g, it, late) })
	outer.ops = append(outer.ops, p.loop)
	p.consumer = p.loop
	if late && p.k.Hints.Persistent > 0 {
		p.freeLast(outer)
	}
}

// freeLast releases the buffers of the last iteration, of a loop that releases late, for
// the copies of the next tile.
func (p *pipeliner) freeLast(e *editor) {
	it := p.loop.Results[len(p.loop.Results)-1]
	for _, g := range p.groups {
		p.free(e, g, it, true)
	}
}

// free releases a group's buffers: those of this iteration, or of the one before where
// a product of this iteration is still under way.
func (p *pipeliner) free(e *editor, g *group, it *ir.Value, late bool) {
	if !late {
		e.add(&ir.Op{Code: ir.OpRelease, Args: g.rings(it)})
		return
	}
	in := &editor{k: p.k, pos: e.pos}
	in.add(&ir.Op{Code: ir.OpRelease, Args: g.rings(in.plus(it, -1))})
	in.add(&ir.Op{Code: ir.OpYield})
	none := &ir.Region{Ops: []*ir.Op{{Code: ir.OpYield, Pos: e.pos}}}
	e.add(&ir.Op{Code: ir.OpIf, Args: []*ir.Value{e.cmp(ir.GT, it, e.int(0))}, Regions: []*ir.Region{{Ops: in.ops}, none}})
}

// copies is the loop of the role that copies.
func (p *pipeliner) copies(outer *editor) *ir.Op {
	o := p.loop
	k, it := p.k.NewValue(o.Regions[0].Params[0].Name, scalarI32), p.k.NewValue("it", scalarI32)
	e := &editor{k: p.k, pos: o.Pos}
	for _, g := range p.groups {
		args := make([]*ir.Value, 0, len(g.loads)+1)
		for _, st := range g.loads {
			args = append(args, st.filled())
		}
		e.add(&ir.Op{Code: ir.OpAcquire, Args: append(args, it)})
		p.refill(e, g, it, k, nil)
	}
	return p.beside(outer, k, it, e)
}

// beside is a loop like the main role's, that another role runs: of operations that use its
// index k and the number of its round.
func (p *pipeliner) beside(outer *editor, k, it *ir.Value, e *editor) *ir.Op {
	o := p.loop
	e.add(&ir.Op{Code: ir.OpYield, Args: []*ir.Value{e.plus(it, 1)}})
	last := p.k.NewValue("", scalarI32)
	c := &ir.Op{
		Code: ir.OpFor, Pos: o.Pos, Args: []*ir.Value{o.Args[0], o.Args[1], o.Args[2], outer.int(0)},
		Regions: []*ir.Region{{Params: []*ir.Value{k, it}, Ops: e.ops}}, Results: []*ir.Value{last},
	}
	last.Def = c
	return c
}

// split puts what is left of the kernel beside the role that copies: what every warp
// computes for itself stays before both.
func (s *stager) split() {
	if s.producer == nil {
		return
	}
	body := s.k.Body
	alone := scalarsOf(s.k)
	var common, main []*ir.Op
	for _, o := range body.Ops {
		if len(o.Results) == 1 && alone[o.Result()] {
			common = append(common, o)
		} else {
			main = append(main, o)
		}
	}
	var first []*ir.Op
	if s.k.Hints.Persistent > 0 {
		first, main = s.handOver(main, alone)
	}
	yield := func() *ir.Op { return &ir.Op{Code: ir.OpYield, Pos: s.producer.Pos} }
	roles := &ir.Op{Code: ir.OpRoles, Pos: s.producer.Pos, Regions: []*ir.Region{
		{Ops: append(first, s.producer, yield())}, {Ops: append(main, yield())},
	}}
	roles.Roles = []ir.Role{copyRole: {Name: "copy", Warps: copyWarps}, mainRole: {Name: "main", Warps: max(s.k.Hints.Warps, 1)}}
	if s.transposer != nil {
		roles.Roles[copyRole].Warps -= transposeWarps
		roles.Regions = append(roles.Regions, &ir.Region{Ops: []*ir.Op{s.transposer, yield()}})
		roles.Roles = append(roles.Roles, ir.Role{Name: "transpose", Warps: transposeWarps})
	}
	body.Ops = slices.Concat(common, []*ir.Op{roles})
}

// The regions of the roles that staging makes.
const (
	copyRole      = 0
	mainRole      = 1
	transposeRole = 2 // where there is one
)

// copyWarps is how many warps the role that copies has: registers are given to warps by
// fours, so that fewer would save none.
const copyWarps = 4

// chained is the dot of a loop whose products add up in one accumulator that nothing in
// the loop looks at, the loop's only one; nil if there is none.
func chained(loop *ir.Op) *ir.Op {
	body := loop.Regions[0]
	dots := dotsIn(body, nil)
	if len(dots) != 1 || !slices.Contains(body.Ops, dots[0]) {
		return nil
	}
	o := dots[0]
	i := slices.Index(body.Params, o.Args[2])
	u := usersOf(body)
	if i < 1 || len(u[o.Args[2]]) != 1 || len(u[o.Result()]) != 1 || body.Yield().Args[i-1] != o.Result() {
		return nil
	}
	return o
}

// chained tells whether a product of one iteration may still be under way in the next:
// it reads all that is staged where it lies.
func (p *pipeliner) chained() bool {
	o := chained(p.loop)
	if o == nil || len(p.groups) != 1 {
		return false
	}
	for _, v := range o.Args[:2] {
		if load := loadOf(v); load == nil || p.tensor[load] == nil {
			return false
		}
	}
	return true
}

// releasesLate tells whether a loop's buffers are released an iteration later, when the
// product that reads them is over.
func releasesLate(loop *ir.Op) bool {
	if chained(loop) == nil {
		return false
	}
	for _, o := range loop.Regions[0].Ops {
		if o.Code == ir.OpIf && slices.ContainsFunc(o.Regions[0].Ops, func(in *ir.Op) bool { return in.Code == ir.OpRelease }) {
			return true
		}
	}
	return false
}
