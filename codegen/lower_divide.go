package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// exchangeOf is the key, in the plan of shared memory, of what the blocks of a cluster hand
// each other of a reduction.
type exchangeOf struct{ reduce *ir.Op }

// exchangeBytes is what a block gets of a reduction from so many: a word for each result.
func exchangeBytes(o *ir.Op, blocks int) int {
	n := 1
	for d, extent := range o.Args[0].Type.Shape {
		if d != o.Axis {
			n *= extent
		}
	}
	return n * wordBytes(o.Args[0].Type.Elem) * blocks
}

// rangeOf is from where to where a loop goes in this block: everywhere, or over the block's
// part, of as many iterations as any other's or fewer.
func (l *lowering) rangeOf(o *ir.Op) (lo, hi *simt.Value) {
	lo, hi = l.scalar(o.Args[0]), l.scalar(o.Args[1])
	if o.Blocks < 2 {
		return lo, hi
	}
	b := l.b
	step := l.scalar(o.Args[2])
	up := func(n, by *simt.Value) *simt.Value { return b.DivU(b.Add(n, b.Sub(by, b.Const32(1))), by) }
	trips := up(b.Max(b.Sub(hi, lo), b.Const32(0)), step)
	part := b.Mul(up(trips, b.Const32(o.Blocks)), step)
	lo = b.Add(lo, b.Mul(l.rank, part))
	return lo, b.Min(hi, b.Add(lo, part))
}

// storeOnce stores in the first of the blocks that divide a tile.
func (l *lowering) storeOnce(o *ir.Op) {
	before := l.pending
	l.b.If(l.b.Cmp(simt.EQ, l.rank, l.b.Const32(0)), func() []*simt.Value { l.store(o); return nil }, nil)
	l.pending = l.pending.or(before)
}

// acrossBlocks combines what each block of a cluster has, laid out alike in all: each
// writes its part into the shared memory of all of them, and all combine the parts in the
// same order.
func (l *lowering) acrossBlocks(o *ir.Op, slice *layout.Layout, vs []*simt.Value) []*simt.Value {
	b := l.b
	part := exchangeBytes(o, 1)
	base := b.Add(b.SharedBase(), b.Const32(l.plan.buffers[exchangeOf{o}].offset))
	mine := b.Add(base, b.Mul(l.rank, b.Const32(part)))
	if l.arrived { // all blocks have started
		b.ClusterWait()
		l.arrived = false
	}
	l.under(l.owners(slice), func() {
		for r, v := range vs {
			at := b.Add(mine, l.sliceOffset(slice, r, v.Type))
			for block := range o.Blocks {
				b.StAt(at, b.Const32(block), l.asWord(v))
			}
		}
	})
	b.ClusterSync()
	l.pending = unordered{}
	out := make([]*simt.Value, len(vs))
	for r, v := range vs {
		parts := make([]*simt.Value, o.Blocks)
		for i := range parts {
			parts[i] = l.loadWord(b.Add(base, l.sliceOffset(slice, r, v.Type)), i*part, v.Type)
		}
		out[r] = l.fold(o, parts)
	}
	l.pending.shared = true
	return out
}

// sliceOffset is where register r of a slice lies among words of its elements in row-major
// order, in bytes.
func (l *lowering) sliceOffset(slice *layout.Layout, r int, t simt.Type) *simt.Value {
	b := l.b
	n := b.Const32(0)
	for d := range slice.Rank() {
		n = b.Add(b.Mul(n, b.Const32(slice.Extent(d))), l.coordinate(slice, r, d))
	}
	return b.Mul(n, b.Const32(max(4, t.Bits()/8)))
}
