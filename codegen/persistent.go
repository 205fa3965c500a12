package codegen

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
)

// Persistent kernels. One wave of blocks walks the tile space, each with the stride of the
// grid, in the order of the raster. Each role has a loop of its own over the block's tiles
// and goes on with the rings where the last tile left them, so that the copies of the next
// tile are under way while this one's sums are stored: through shared memory that no ring
// uses.

// persistentOf tells whether a staged kernel's blocks can walk the tile space as its hint
// asks. The error says why they do not although it does.
func persistentOf(k *ir.Kernel) (bool, error) {
	if k.Hints.Persistent == 0 || len(k.Space) == 0 {
		return false, nil
	}
	n := len(k.Body.Ops)
	if n == 0 || k.Body.Ops[n-1].Code != ir.OpRoles {
		return false, errNoCopies
	}
	if signals(k.Body) {
		return false, errors.New("blocks wait for each other")
	}
	if copiesByThreads(k.Body.Ops[n-1]) {
		return false, errors.New("threads copy")
	}
	roles := k.Body.Ops[n-1].Regions
	if o := filling(roles[mainRole]); o != nil {
		return false, fmt.Errorf("%s: those who multiply copy a tile to shared memory", o.Pos)
	}
	for _, r := range roles {
		if err := oneLoop(r); err != nil {
			return false, err
		}
	}
	return true, nil
}

// filling is an operation of a region that fills a ring; nil if there is none.
func filling(r *ir.Region) *ir.Op {
	for _, o := range r.Ops {
		if o.Code == ir.OpCopy || o.Code == ir.OpWrite {
			return o
		}
		for _, in := range o.Regions {
			if found := filling(in); found != nil {
				return found
			}
		}
	}
	return nil
}

// oneLoop holds a role to one loop that uses rings of several buffers, numbered from its
// first iteration on.
func oneLoop(r *ir.Region) error {
	loops := ringLoops(r, nil)
	if len(loops) != 1 {
		return fmt.Errorf("%d loops read what is copied ahead: want one", len(loops))
	}
	o := loops[0]
	count, depth := counted(o)
	if count == nil || depth < 2 {
		return fmt.Errorf("%s: buffers are not used in turns", o.Pos)
	}
	if from := o.Args[2+slices.Index(o.Regions[0].Params, count)]; !isConst(from) {
		return fmt.Errorf("%s: the loop goes on with another one's buffers", o.Pos)
	}
	return nil
}

// ringLoops appends the loops of a region that use rings to list, also those in branches.
func ringLoops(r *ir.Region, list []*ir.Op) []*ir.Op {
	for _, o := range r.Ops {
		switch {
		case o.Code == ir.OpFor && onRings(o) > 0:
			list = append(list, o)
		case o.Code == ir.OpIf:
			for _, in := range o.Regions {
				list = ringLoops(in, list)
			}
		}
	}
	return list
}

// oncePerTile tells whether a role fills rings outside of its loop: once for each tile, so that
// they have one buffer.
func oncePerTile(roles *ir.Op) bool {
	return slices.ContainsFunc(roles.Regions[copyRole].Ops, func(o *ir.Op) bool { return o.Code == ir.OpAcquire })
}

// onRings is how many operations on rings an operation is or has inside.
func onRings(o *ir.Op) int {
	n := 0
	if slices.ContainsFunc(o.Args, func(v *ir.Value) bool { return v.Type.Kind == ir.Ring }) {
		n++
	}
	for _, r := range o.Regions {
		for _, in := range r.Ops {
			n += onRings(in)
		}
	}
	return n
}

const (
	// teams are the warpgroups of a main role that have tiles in turns.
	teams = 2
	// teamBarrier is the barrier of the first team's warps; that of the second follows.
	teamBarrier = turnBarrier + teams
)

// pingpongOf tells why two warpgroups of a persistent kernel cannot have tiles in turns,
// each storing one while the other multiplies the next; nil if they can.
func pingpongOf(k *ir.Kernel, plan *sharedPlan) error {
	if k.Hints.Warps != warpgroup {
		return fmt.Errorf("a tile has %d warps: want %d", k.Hints.Warps, warpgroup)
	}
	for of := range plan.buffers {
		if o, ok := of.(*ir.Op); ok && !o.Bulk {
			return fmt.Errorf("%s: %s goes through shared memory", o.Pos, o.Code)
		}
	}
	roles := k.Body.Ops[len(k.Body.Ops)-1]
	if oncePerTile(roles) {
		return errors.New("a tile is copied before the loop")
	}
	if stepsVary(k) {
		return fmt.Errorf("%s: the number of steps depends on the tile", ringLoops(roles.Regions[mainRole], nil)[0].Pos)
	}
	return nil
}

// stepsVary tells whether the number of steps of a persistent kernel depends on the tile.
func stepsVary(k *ir.Kernel) bool {
	varies := varying(k, k.Space...)
	copies := k.Body.Ops[len(k.Body.Ops)-1].Regions[copyRole]
	return slices.ContainsFunc(ringLoops(copies, nil)[0].Args[:3], func(v *ir.Value) bool { return varies[v] })
}

// waveOf is how many blocks of a persistent kernel a GPU runs at once, in whole clusters.
func waveOf(gpu *target.GPU, k *ir.Kernel, cluster int) int64 {
	resident, cluster := max(k.Hints.Blocks, 1), max(cluster, 1)
	return int64(max(gpu.ClusterSMs(resident, cluster)*resident/cluster, 1) * cluster)
}

// persist lowers a persistent kernel: what does not depend on the tile once, the rest once
// for each tile of each role.
func (l *lowering) persist(body *ir.Region) {
	varies := varying(l.k, l.k.Space...)
	l.s.Snake = stepsVary(l.k)
	l.perTile = oncePerTile(body.Ops[len(body.Ops)-1])
	for _, o := range body.Ops {
		if o.Code != ir.OpRoles && varies[o.Result()] {
			l.tileOps = append(l.tileOps, o)
		} else {
			l.op(o)
		}
	}
}

// eachTile lowers a role's operations in a loop over the block's tiles.
func (l *lowering) eachTile(r *ir.Region) {
	b := l.b
	clusters := b.Const32(1)
	for _, n := range l.space.counts {
		clusters = b.Mul(clusters, n)
	}
	stride := b.DivU(b.Special(simt.NCtaX), b.Const32(l.cluster.blocks))
	loop := ringLoops(r, nil)[0]
	_, depth := counted(loop)
	start := counter{depth: depth, phase: b.Const32(0), remainder: b.Const32(0)}
	tiles := func() { l.tileLoop(clusters, stride, start, func(i *simt.Value) { l.oneTile(r, i) }) }
	switch {
	case l.s.Pingpong && l.inRole(mainRole):
		l.pingpong(r, clusters, stride)
	case loop.Pingpong:
		l.inTurns(l.newTurns(), tiles)
	default:
		tiles()
	}
	if l.inRole(mainRole) && len(l.plan.stores) > 0 {
		b.BulkWait(0)
	}
}

// tileLoop is a loop over numbers of clusters, whose body finds the role's rings at l.at and
// leaves them at l.left.
func (l *lowering) tileLoop(clusters, stride *simt.Value, start counter, body func(i *simt.Value)) {
	b := l.b
	init := []*simt.Value{start.phase, start.remainder}
	if l.perTile {
		init = append(init, b.Const32(0))
	}
	from, to, step, tile := l.space.first, clusters, stride, func(i *simt.Value) *simt.Value { return i }
	if l.s.Snake {
		from, to, step, tile = l.snake(clusters, stride)
	}
	b.For(from, to, step, init, func(i *simt.Value, c []*simt.Value) []*simt.Value {
		l.at = counter{depth: start.depth, phase: c[0].Named("phase"), remainder: c[1].Named("slot")}
		if l.perTile {
			l.once = counter{depth: 1, phase: c[2].Named("round"), remainder: b.Const32(0)}
		}
		body(tile(i).Named("tile"))
		next := []*simt.Value{l.left.phase, l.left.remainder}
		if l.perTile {
			next = append(next, b.Xor(l.once.phase, b.Const32(1)))
		}
		return next
	})
	b.Unroll(1)
}

// snake is the range of a loop over rounds, and the number of the cluster in one: where tiles
// take the longer the earlier they come, every other round begins at the last block, which so
// has the longest of it.
func (l *lowering) snake(clusters, stride *simt.Value) (from, to, step *simt.Value, tile func(*simt.Value) *simt.Value) {
	b := l.b
	zero, one := b.Const32(0), b.Const32(1)
	there := l.space.first
	back := b.Sub(b.Sub(stride, one), there)
	at := func(round *simt.Value) *simt.Value {
		return b.Select(b.Cmp(simt.EQ, b.And(round, one), zero), there, back)
	}
	whole := b.DivU(clusters, stride)
	last := b.Select(b.Cmp(simt.LT, at(whole), b.RemU(clusters, stride)), one, zero)
	return zero, b.Add(whole, last), one, func(round *simt.Value) *simt.Value {
		return b.Add(b.Mul(round, stride), at(round))
	}
}

// oneTile lowers a role's operations for the block's tile in a cluster of a number.
func (l *lowering) oneTile(r *ir.Region, i *simt.Value) {
	l.tileAt(i)
	for _, o := range l.tileOps {
		l.op(o)
	}
	l.pending = unordered{shared: l.leaves(r, false)} // tiles write to different places
	l.region(r)
	l.landAll()
}

// pingpong gives the block's tiles to two warpgroups in turns: one multiplies while the
// other stores. Each skips the buffers of the other's tiles. Both go through as many
// rounds, so that turns come out even: in the last one the second may have no tile.
func (l *lowering) pingpong(r *ir.Region, clusters, stride *simt.Value) {
	b := l.b
	t := l.newTurns()
	loop := ringLoops(r, nil)[0]
	_, depth := counted(loop)
	lo, hi, step := l.scalar(loop.Args[0]), l.scalar(loop.Args[1]), l.scalar(loop.Args[2])
	steps := b.DivU(b.Max(b.Add(b.Sub(hi, lo), b.Sub(step, b.Const32(1))), b.Const32(0)), step)
	odd, rest := b.And(b.DivU(steps, b.Const32(depth)), b.Const32(1)), b.RemU(steps, b.Const32(depth))
	second := b.Cmp(simt.EQ, t.group, b.Const32(1))
	from := func(v *simt.Value) *simt.Value { return b.Select(second, v, b.Const32(0)) }
	l.inTurns(t, func() {
		start := counter{depth: depth, phase: from(odd), remainder: from(rest)}
		l.tileLoop(clusters, b.Mul(stride, b.Const32(teams)), start, func(i *simt.Value) {
			mine := b.Add(i, b.Mul(t.group, stride))
			at := l.at
			ends := b.If(b.Cmp(simt.LT, mine, clusters), func() []*simt.Value {
				l.oneTile(r, mine)
				slot := b.Add(l.left.remainder, rest)
				over := b.Select(b.Cmp(simt.GE, slot, b.Const32(depth)), b.Const32(1), b.Const32(0))
				return []*simt.Value{b.Xor(b.Xor(l.left.phase, odd), over), l.wrap(slot, depth)}
			}, func() []*simt.Value {
				b.Bar(t.own, t.threads)
				b.BarArrive(t.other, t.threads)
				return []*simt.Value{at.phase, at.remainder}
			})
			l.left = counter{depth: depth, phase: ends[0], remainder: ends[1]}
		})
	})
}
