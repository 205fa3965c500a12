package vm

import "github.com/kgen-dev/kgen/bench"

// Who is told that a bulk copy has landed.

// mbarrierBlock is the block whose mbarrier a copy tells: that of the data, or the
// other of the pair.
func (b *block) mbarrierBlock(c *bulkCopy) *cta {
	if peer := c.to.rank ^ 1; c.op.pair && peer < len(b.ctas) && uint64(c.mbar)-b.ctas[peer].low < uint64(b.l.sharedSize) {
		return b.ctas[peer]
	}
	return c.to
}

// bulkTold finds the mbarrier that is told of a copy.
func (w *warp) bulkTold(c *bulkCopy, addr uint64) bool {
	off, to := w.find(addr, 8, c.op.mbar.reaches())
	if to == nil {
		w.locate(c.in, c.lane, addr, 8, c.op.mbar.reaches())
		return false
	}
	if off%8 != 0 {
		w.faultAt(bench.MisalignedAddress, c.in, c.lane, &addr, "shared", "shared address %#x: want a multiple of 8", addr)
		w.b.refused = true
		return false
	}
	if to != c.to && !(c.op.pair && to.rank^1 == c.to.rank) {
		w.faultAt(bench.MbarrierMisuse, c.in, c.lane, &addr, "shared", "the mbarrier at %#x is in block %v, the data in block %v: want both in one", addr, to.id, c.to.id)
		return false
	}
	c.mbar = uint32(off)
	return c.op.mask >= 0 || w.tellable(c)
}

// tellable says whether the mbarrier is there that a copy is to tell.
func (w *warp) tellable(c *bulkCopy) bool {
	if w.b.mbarriers[c.mbar] == nil {
		w.unready(c.in, c.lane, c.mbar, "a copy is to tell it, and it is not initialised")
		return false
	}
	return true
}

// alive says whether the block is there that a copy writes to.
func (w *warp) alive(c *bulkCopy) bool {
	if c.to == w.cta || !c.to.gone {
		return true
	}
	addr := w.b.address(c.shared)
	w.faultAt(bench.SharedOutOfBounds, c.in, c.lane, &addr, "shared", "shared address %#x: block %v, of rank %d in the cluster, has exited", addr, c.to.id, c.to.rank)
	return false
}
