package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// mainBarrier is the barrier of the main role's warps; all threads meet at 0.
const mainBarrier = 1

// roles gives the first warps to the main role and more to the copies, of which one
// works, or all where no tensor maps copy: registers are given to warps by fours. The last
// of these transpose, if there is something to.
func (l *lowering) roles(o *ir.Op) {
	b := l.b
	multiply := l.mainWarps()
	fewer, more := l.registersOfRoles(o)
	run := func(role int) {
		l.role = &role
		outer := l.acquiring
		l.acquiring = &acquisition{at: l.b.Mark()}
		if l.s.Persistent {
			l.eachTile(o.Regions[role])
		} else {
			l.region(o.Regions[role])
			l.landAll()
		}
		l.role, l.acquiring = nil, outer
	}
	anew := func(role int) { // with layouts over its own threads
		warps := l.warps
		l.warps = o.Roles[role].Warps
		l.tidIn = b.And(l.tid(), b.Const32(32*l.warps-1))
		run(role)
		l.warps, l.tidIn = warps, nil
	}
	warp := b.ShrU(l.tid(), b.Const32(layout.LaneBits))
	main := func() []*simt.Value {
		if more > 0 {
			b.MaxRegisters(more, true)
		}
		if l.s.Pingpong {
			l.tidIn = b.And(l.tid(), b.Const32(32*l.warps-1))
		}
		run(mainRole)
		l.tidIn = nil
		return nil
	}
	copy := func() []*simt.Value {
		if fewer > 0 {
			b.MaxRegisters(fewer, false)
		}
		first := multiply + o.Roles[copyRole].Warps
		if copiesByThreads(o) {
			b.If(b.Cmp(simt.LT, warp, b.Const32(first)), func() []*simt.Value { anew(copyRole); return nil }, nil)
		} else {
			b.If(b.Cmp(simt.EQ, warp, b.Const32(multiply)), func() []*simt.Value { run(copyRole); return nil }, nil)
		}
		if len(o.Roles) > transposeRole {
			b.If(b.Cmp(simt.GE, warp, b.Const32(first)), func() []*simt.Value { anew(transposeRole); return nil }, nil)
		}
		return nil
	}
	b.If(b.Cmp(simt.LT, warp, b.Const32(multiply)), main, copy)
	if l.cluster.blocks > 1 {
		b.ClusterSync() // others copy here and arrive here until then
	}
}

// mainWarps is how many warps the main role has, which works on a tile with those that the
// kernel asks for.
func (l *lowering) mainWarps() int {
	if l.s.Pingpong {
		return teams * l.warps
	}
	return l.warps
}

const (
	// besideRegisters are what a thread needs beside accumulators, in the loop and for an
	// epilogue: where its share of a multiprocessor's registers does not leave more, it is
	// given some.
	besideRegisters = 56
	// spareRegisters are what a thread that multiplies has beside accumulators at least, if
	// those of the role that copies do not need more.
	spareRegisters = 32
	// fewRegisters are those of the role that copies, and mostRegisters what others may
	// then have: what public kernels for sm_90a settle on.
	fewRegisters  = 24
	mostRegisters = 240
	// workRegisters are those of all that do not multiply, where some transpose or copy
	// themselves: what ptxas needs for four parts on their way and their addresses.
	workRegisters = 56
	// walkRegisters are those of a role that copies for one tile after another, whose
	// places it computes.
	walkRegisters = 40
)

// registersOfRoles is how many registers the threads of the role that copies keep, and
// those of the main role then have; 0 where all keep what they start with. A block that
// asks for more has a multiprocessor to itself.
func (l *lowering) registersOfRoles(o *ir.Op) (fewer, more int) {
	accumulators := 0
	for _, d := range dotsIn(o.Regions[mainRole], nil) {
		n := registersOf(d.Result().Type, l.warps)
		accumulators += n
		if u := l.users[d.Result()]; isZero(d.Args[2]) && len(u) == 1 && u[0].Code == ir.OpAdd {
			accumulators += n // the sums that it is added to
		}
	}
	start := simt.RegistersPerSM / l.s.Threads / 8 * 8
	rest := func(fewer int) int {
		return min(mostRegisters, (start*l.s.Threads-fewer*32*copyWarps)/(32*l.mainWarps())/8*8)
	}
	fewer = fewRegisters
	switch {
	case len(o.Roles) > transposeRole || copiesByThreads(o):
		fewer = workRegisters
	case l.s.Persistent && rest(walkRegisters)-accumulators >= spareRegisters:
		fewer = walkRegisters
	}
	more = rest(fewer)
	if accumulators+besideRegisters < start || more <= start || l.s.MinBlocks > 1 || l.s.MaxRegs > 0 {
		return 0, 0
	}
	l.s.MinBlocks = 1 // so that they start with their share
	return fewer, more
}

// copiesByThreads tells whether the role that copies does so itself, without tensor maps.
func copiesByThreads(roles *ir.Op) bool {
	return !slices.ContainsFunc(ringsOf(roles.Regions[copyRole], ir.OpAcquire), mapped)
}

// ringsOf are the rings that operations of a kind name in a region.
func ringsOf(r *ir.Region, code ir.Opcode) []*ir.Value {
	var rings []*ir.Value
	for _, o := range r.Ops {
		if o.Code == code {
			rings = append(rings, o.Operands("rings")...)
		}
		for _, in := range o.Regions {
			rings = append(rings, ringsOf(in, code)...)
		}
	}
	return rings
}

// inRole tells whether a role's operations are being lowered.
func (l *lowering) inRole(role int) bool { return l.role != nil && *l.role == role }

// acquire waits until a buffer is free: in a role that fills it for another until all warps
// of that one have given it back, else until all warps have met.
func (l *lowering) acquire(o *ir.Op) {
	if l.role == nil || l.inRole(mainRole) {
		l.meet()
		return
	}
	if l.inRole(copyRole) && mapped(l.plan.signalledOf(o.Args)) {
		l.acquired = o // the thread that copies waits
		return
	}
	l.awaitFree(o)
}

// awaitFree waits until the other role's warps have given a buffer back.
func (l *lowering) awaitFree(o *ir.Op) {
	r, k := l.plan.signalledOf(o.Args), o.Operand("slot")
	free := l.b.Xor(l.phase(k, r.Type.Depth), l.b.Const32(1))
	l.b.MbarWait(l.freed(r, k), free)
}

// release gives a buffer back: each warp of the main role says so for itself.
func (l *lowering) release(o *ir.Op) {
	l.landIf(func(p underWay) bool { return slices.ContainsFunc(o.Operands("rings"), p.reads) })
	r := l.plan.signalledOf(o.Args)
	if r == nil || l.plan.handed[r].free == 0 {
		l.pending.shared = true
		return
	}
	b := l.b
	l.pending.shared = true
	if l.late {
		b.WgmmaWait(1, nil, nil)
	}
	at := l.freed(r, o.Operand("slot"))
	b.WarpSync()
	lane := b.And(l.tid(), b.Const32(31))
	if l.cluster.rings[r] {
		one := b.Cmp(simt.LT, lane, b.Const32(l.cluster.blocks)) // for each block
		l.under(l.both(l.gate, one), func() { b.MbarArriveAt(at, b.And(lane, b.Const32(l.cluster.blocks-1))) })
		return
	}
	l.under(l.both(l.gate, b.Cmp(simt.EQ, lane, b.Const32(0))), func() { b.MbarArrive(at) })
}

// releaseIf gives buffers back where a condition, alike for all warps, holds: the wait
// for what reads them does no harm where it does not.
func (l *lowering) releaseIf(o *ir.Op) {
	l.gate = l.scalar(o.Args[0])
	l.region(o.Regions[0])
	l.gate = nil
}

// onlyReleases tells whether an if does nothing but give buffers back.
func onlyReleases(o *ir.Op) bool {
	releases := false
	for _, in := range o.Regions[0].Ops {
		releases = releases || in.Code == ir.OpRelease
		if in.Code != ir.OpRelease && in.Code != ir.OpYield && (!in.Code.IsPure() || len(in.Regions) > 0) {
			return false
		}
	}
	return releases && len(o.Regions[1].Ops) == 1
}

// freed is the address of the mbarrier at which index k of a ring is given back.
func (l *lowering) freed(ring, k *ir.Value) *simt.Value {
	return l.b.Add(l.mbarrier(ring, k), l.b.Const32(ring.Type.Depth*mbarBytes))
}
