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
	for role, r := range k.Body.Ops[n-1].Regions {
		if err := oneLoop(r, role); err != nil {
			return false, err
		}
	}
	return true, nil
}

// oneLoop holds a role to one loop that uses rings of several buffers, numbered from 0 on.
// What stands behind it may give buffers back.
func oneLoop(r *ir.Region, role int) error {
	loops := 0
	for _, o := range r.Ops {
		switch {
		case onRings(o) == 0:
		case o.Code == ir.OpFor:
			count, depth := counted(o)
			if count == nil || depth < 2 {
				return fmt.Errorf("%s: buffers are not used in turns", o.Pos)
			}
			if from := o.Args[2+slices.Index(o.Regions[0].Params, count)]; !isConst(from) || from.Def.Int != 0 {
				return fmt.Errorf("%s: the loop goes on with another one's buffers", o.Pos)
			}
			loops++
		case role == mainRole && o.Code == ir.OpIf && onlyReleases(o) && loops == 1:
		default:
			return fmt.Errorf("%s: a tile is copied to shared memory outside of the loop", o.Pos)
		}
	}
	if loops != 1 {
		return fmt.Errorf("%d loops read what is copied ahead: want one", loops)
	}
	return nil
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
	varies := varying(k, k.Space...)
	if loop := ringLoop(k.Body.Ops[len(k.Body.Ops)-1].Regions[mainRole]); slices.ContainsFunc(loop.Args[:3], func(v *ir.Value) bool { return varies[v] }) {
		return fmt.Errorf("%s: the number of steps depends on the tile", loop.Pos)
	}
	return nil
}

// ringLoop is the loop of a role that uses rings.
func ringLoop(r *ir.Region) *ir.Op {
	return r.Ops[slices.IndexFunc(r.Ops, func(o *ir.Op) bool { return o.Code == ir.OpFor && onRings(o) > 0 })]
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
	if l.s.Pingpong && l.inRole(mainRole) {
		l.pingpong(r, clusters, stride)
	} else {
		l.tileLoop(clusters, stride, b.Const32(0), b.Const32(0), func(i *simt.Value) { l.oneTile(r, i) })
	}
	if l.inRole(mainRole) && len(l.plan.stores) > 0 {
		b.BulkWait(0)
	}
}

// tileLoop is a loop over numbers of clusters, whose body finds the role's rings at l.at and
// leaves there where it left them.
func (l *lowering) tileLoop(clusters, stride, phase, slot *simt.Value, body func(i *simt.Value)) {
	l.b.For(l.space.first, clusters, stride, []*simt.Value{phase, slot}, func(i *simt.Value, c []*simt.Value) []*simt.Value {
		l.at = counter{phase: c[0].Named("phase"), remainder: c[1].Named("slot")}
		body(i.Named("tile"))
		return []*simt.Value{l.at.phase, l.at.remainder}
	})
	l.b.Unroll(1)
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
	loop := ringLoop(r)
	_, depth := counted(loop)
	lo, hi, step := l.scalar(loop.Args[0]), l.scalar(loop.Args[1]), l.scalar(loop.Args[2])
	steps := b.DivU(b.Max(b.Add(b.Sub(hi, lo), b.Sub(step, b.Const32(1))), b.Const32(0)), step)
	odd, rest := b.And(b.DivU(steps, b.Const32(depth)), b.Const32(1)), b.RemU(steps, b.Const32(depth))
	second := b.Cmp(simt.EQ, t.group, b.Const32(1))
	from := func(v *simt.Value) *simt.Value { return b.Select(second, v, b.Const32(0)) }
	l.inTurns(t, func() {
		l.tileLoop(clusters, b.Mul(stride, b.Const32(teams)), from(odd), from(rest), func(i *simt.Value) {
			mine := b.Add(i, b.Mul(t.group, stride))
			at := l.at
			ends := b.If(b.Cmp(simt.LT, mine, clusters), func() []*simt.Value {
				l.oneTile(r, mine)
				slot := b.Add(l.at.remainder, rest)
				over := b.Select(b.Cmp(simt.GE, slot, b.Const32(depth)), b.Const32(1), b.Const32(0))
				return []*simt.Value{b.Xor(b.Xor(l.at.phase, odd), over), l.wrap(slot, depth)}
			}, func() []*simt.Value {
				b.Bar(t.own, t.threads)
				b.BarArrive(t.other, t.threads)
				return []*simt.Value{at.phase, at.remainder}
			})
			l.at = counter{depth: depth, phase: ends[0], remainder: ends[1]}
		})
	})
}
