package vm

import "github.com/kgen-dev/kgen/bench"

// Shared memory is another block's once its own has ended, and a store that still reads it
// stores what that one writes. When it is really done does not matter, only whether
// somebody waited. Loads may be left to themselves: CUTLASS does so, with boxes past the
// end of a tensor.

// checkSources reports the stores of some warps whose sources nobody has waited for.
func (b *block) checkSources(warps []*warp) {
	if b.race == nil {
		return
	}
	for _, w := range warps {
		for _, s := range w.bulk {
			if s == nil {
				continue
			}
			for _, g := range s.groups {
				b.outlived(g)
			}
			b.outlived(s.open)
		}
	}
}

func (b *block) outlived(copies []*bulkCopy) {
	for _, c := range copies {
		if c.reading == nil || c.op.told {
			continue
		}
		b.outlives(c)
		c.reading = nil
	}
}

func (b *block) outlives(c *bulkCopy) {
	w := c.w
	if current := w.fr; c.fr != current { // it may be long issued
		w.enter(c.fr)
		defer w.enter(current)
	}
	addr := b.address(c.shared)
	w.faultAt(bench.AsyncCopyRace, c.in, c.lane, &addr, "shared", "the block ends while the copy still reads its shared memory")
}
