package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Reads of global memory that are under way: what a cp.async or a bulk load is to
// bring must not be overwritten before somebody has waited for it.

// fetches are a block's cp.async operations that still read global memory.
type fetches struct {
	list      []*inFlight
	low, high uint64 // all they read lies between
}

// fetching notes a cp.async that was issued.
func (r *raceState) fetching(c *inFlight) {
	c.low, c.high = ^uint64(0), 0
	for l := c.lanes; l != 0; l &= l - 1 {
		if i := firstLane(l); c.read[i] > 0 {
			c.low, c.high = min(c.low, c.src[i]), max(c.high, c.src[i]+uint64(c.read[i]))
		}
	}
	if c.high > 0 {
		r.fetches.add(c)
	}
}

func (f *fetches) add(c *inFlight) {
	if len(f.list) == 0 {
		f.low, f.high = c.low, c.high
	}
	f.low, f.high = min(f.low, c.low), max(f.high, c.high)
	c.fetch = len(f.list) + 1
	f.list = append(f.list, c)
}

// fetched forgets a cp.async whose lanes have all waited for it.
func (f *fetches) fetched(c *inFlight) {
	if c.fetch == 0 {
		return
	}
	last := f.list[len(f.list)-1]
	f.list[c.fetch-1], last.fetch = last, c.fetch
	f.list = f.list[:len(f.list)-1]
	c.fetch = 0
}

// againstFetches reports a write to global memory that is still being read. What
// is written asynchronously is compared where it lands.
func (r *raceState) againstFetches(at *side, size int) {
	if r.events[at.id].flags&eventAsync != 0 {
		return
	}
	first, end := at.addr, at.addr+uint64(size)
	if f := &r.fetches; len(f.list) > 0 && first < f.high && f.low < end {
		for _, c := range f.list {
			if first >= c.high || c.low >= end {
				continue
			}
			for l := c.lanes; l != 0; l &= l - 1 {
				if i := firstLane(l); first < c.src[i]+uint64(c.read[i]) && c.src[i] < end {
					r.reportFetch(at, c.from, c.warp, i)
					return
				}
			}
		}
	}
	for _, c := range r.b.flight {
		if c.fetches(first, end) {
			r.reportFetch(at, c.from, c.w.index, c.lane)
			return
		}
	}
	for i := range r.unseen.list {
		x := &r.unseen.list[i]
		if x.c.fetches(first, end) && !at.w.clock.own[at.lane].knows(int(x.agent), x.lane, x.tick) {
			r.reportFetch(at, x.c.from, x.c.w.index, x.c.lane)
			return
		}
	}
}

// bulkFetching notes what a load that is issued reads of global memory: an event of
// its own, which is put on an mbarrier's clock when the load lands. Writes that
// come before it lands againstFetches reports.
func (r *raceState) bulkFetching(c *bulkCopy) {
	cached := &c.w.clock.cache[c.op.global.id]
	*cached = cachedEvent{}
	for i := range c.rows {
		if row := &c.rows[i]; row.n > 0 {
			c.w.globalPieces(c.in, c.op.global, c.lane, row.global, int(row.n), false, eventAsync|eventProxy, nil, func([]byte, int) {})
		}
	}
	c.read, *cached = cached.id, cachedEvent{}
}

// peek reads a range of global memory, which is there, as the block sees it.
func (w *warp) peek(addr uint64, dst []byte) {
	r := w.b.race
	for len(dst) > 0 {
		n := len(dst)
		if r == nil {
			al := w.b.l.dev.mem.find(addr)
			copy(dst, al.data[addr-al.addr:])
		} else {
			p := r.page(w, addr)
			off := int(addr & shadowMask)
			n = min(len(dst), p.n-off)
			r.fill(p, off, n)
			copy(dst[:n], p.data[off:])
		}
		addr, dst = addr+uint64(n), dst[n:]
	}
}

// fetches says whether a load reads some of a range of global memory.
func (c *bulkCopy) fetches(first, end uint64) bool {
	if c == nil || c.op == nil || !c.op.told || c.op.global == nil {
		return false
	}
	for i := range c.rows {
		if row := &c.rows[i]; first < row.global+uint64(row.n) && row.global < end {
			return true
		}
	}
	return false
}

func (r *raceState) reportFetch(at *side, from *ptx.Instruction, warp, lane int) {
	r.reportAs(bench.AsyncCopyRace, at, from, warp, lane, "has a copy in flight from it that was not waited for")
}
