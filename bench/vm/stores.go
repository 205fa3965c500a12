package vm

import (
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// pendingStores are what bulk stores and reductions in global memory write that
// their threads have not waited for, by the number of the page. Waiting until
// they have read their source (.read) says nothing of these.
type pendingStores map[uint64][]pendingStore

// pendingStore is a range of global memory, [first, end), in one page.
type pendingStore struct {
	first, end uint64
	c          *bulkCopy
}

// pieces calls f for the parts in each page of what a store writes.
func (c *bulkCopy) pieces(f func(page, first, end uint64)) {
	for _, row := range c.rows {
		c.written(&row, func(from, n uint64) {
			end := row.global + from + n
			for at := row.global + from; at < end; {
				next := min(at&^shadowMask+shadowSize, end)
				f(at>>shadowBits, at, next)
				at = next
			}
		})
	}
}

// written calls f for the runs of a row's bytes that a store writes: where each
// begins, and how long it is. That is all of them, but for a mask over each 16.
func (c *bulkCopy) written(row *rowCopy, f func(from, n uint64)) {
	if row.n == 0 {
		return
	}
	if c.mask == 0xffff {
		f(0, uint64(row.n))
		return
	}
	from := uint64(0)
	for i := uint64(0); i <= uint64(row.n); i++ {
		if i < uint64(row.n) && c.mask>>(i&15)&1 != 0 {
			continue
		}
		if i > from {
			f(from, i-from)
		}
		from = i + 1
	}
}

// storing notes a store that was issued.
func (r *raceState) storing(c *bulkCopy) {
	if r.stores == nil {
		r.stores = pendingStores{}
	}
	c.pieces(func(page, first, end uint64) {
		list := r.stores[page]
		r.againstOlder(c, list, first, end)
		for i := range list {
			// A thread's stores complete in order: the later speaks for both.
			if s := &list[i]; s.first == first && s.end == end && s.c.w == c.w && s.c.lane == c.lane {
				s.c = c
				return
			}
		}
		r.stores[page] = append(list, pendingStore{first, end, c})
	})
}

// againstOlder reports a store to what an older one is still to write otherwise: which of
// them is done last nobody can tell, of one thread's where they are of one group.
func (r *raceState) againstOlder(c *bulkCopy, list []pendingStore, first, end uint64) {
	for _, s := range list {
		if s.c.w == c.w && s.c.lane == c.lane && !slices.Contains(c.w.bulkOf(c.lane).open, s.c) {
			continue
		}
		from, to := max(first, s.first), min(end, s.end)
		if from >= to || s.c == c || c.op.reduce != nil && s.c.op.reduce != nil || r.storesAlike(c, s.c, from, to) {
			continue
		}
		at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceGlobal, addr: from, write: true}
		r.reportAs(bench.AsyncCopyRace, &at, s.c.from, s.c.w.index, s.c.lane, "has an asynchronous write of it under way, which was not waited for")
		return
	}
}

// storesAlike says whether two stores write the same to a range.
func (r *raceState) storesAlike(a, b *bulkCopy, from, to uint64) bool {
	if a.op.reduce != nil || b.op.reduce != nil {
		return false
	}
	r.b.readSource(a)
	r.b.readSource(b)
	for addr := from; addr < to; addr++ {
		if a.stores(addr) != b.stores(addr) {
			return false
		}
	}
	return true
}

// stores is what a store writes to an address of global memory.
func (c *bulkCopy) stores(addr uint64) byte {
	for i := range c.rows {
		if row := &c.rows[i]; addr-row.global < uint64(row.n) {
			return c.data[uint64(row.shared+row.skip)+addr-row.global]
		}
	}
	return 0
}

// stored forgets a store that its thread has waited for.
func (b *block) stored(c *bulkCopy) {
	r := b.race
	if r == nil || len(r.stores) == 0 {
		return
	}
	c.pieces(func(page, _, _ uint64) {
		list, kept := r.stores[page], 0
		for _, s := range list {
			if s.c != c {
				list[kept] = s
				kept++
			}
		}
		if kept == 0 {
			delete(r.stores, page)
		} else {
			r.stores[page] = list[:kept]
		}
	})
}

// againstStores reports an access to what a store is still to write. What is
// written asynchronously is compared where it lands.
func (r *raceState) againstStores(page uint64, at *side, size int) {
	if at.write && r.events[at.id].flags&eventAsync != 0 {
		return
	}
	for _, s := range r.stores[page] {
		if at.addr < s.end && s.first < at.addr+uint64(size) {
			r.reportAs(bench.AsyncCopyRace, at, s.c.from, s.c.w.index, s.c.lane,
				"has an asynchronous write of it under way, and waited at most for its source to be read")
			return
		}
	}
}
