package vm

import (
	"bytes"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// pendingStores are what bulk stores and reductions in global memory write that
// their threads have not waited for, by the number of the page. Waiting until
// they have read their source (.read) says nothing of these.
type pendingStores map[uint64][]pendingStore

// pendingStore is a range of global memory, [first, end), in one page, and the row of a
// store that writes it.
type pendingStore struct {
	first, end uint64
	c          *bulkCopy
	row        *rowCopy
}

func (s *pendingStore) page() uint64 { return s.first >> shadowBits }

// pieces calls f for the parts in each page of what a store writes.
func (c *bulkCopy) pieces(f func(pendingStore)) {
	for i := range c.rows {
		row := &c.rows[i]
		c.written(row, func(from, n uint64) {
			end := row.global + from + n
			for at := row.global + from; at < end; {
				next := min(at&^shadowMask+shadowSize, end)
				f(pendingStore{at, next, c, row})
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
	c.pieces(func(piece pendingStore) {
		list := r.stores[piece.page()]
		r.againstOlder(&piece, list)
		for i := range list {
			// A thread's stores complete in order: the later speaks for both.
			if s := &list[i]; s.first == piece.first && s.end == piece.end && s.c.w == c.w && s.c.lane == c.lane {
				*s = piece
				return
			}
		}
		r.stores[piece.page()] = append(list, piece)
	})
}

// againstOlder reports a store to what an older one is still to write otherwise: which of
// them is done last nobody can tell, of one thread's where they are of one group.
func (r *raceState) againstOlder(piece *pendingStore, list []pendingStore) {
	c := piece.c
	for i := range list {
		s := &list[i]
		if s.c.w == c.w && s.c.lane == c.lane && !slices.Contains(c.w.bulkOf(c.lane).open, s.c) {
			continue
		}
		from, to := max(piece.first, s.first), min(piece.end, s.end)
		if from >= to || s.c == c || c.op.reduce != nil && s.c.op.reduce != nil || r.storesAlike(piece, s, from, to) {
			continue
		}
		at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceGlobal, addr: from, write: true}
		r.reportAs(bench.AsyncCopyRace, &at, s.c.from, s.c.w.index, s.c.lane, "has an asynchronous write of it under way, which was not waited for")
		return
	}
}

// storesAlike says whether two stores write the same to a range.
func (r *raceState) storesAlike(a, b *pendingStore, from, to uint64) bool {
	if a.c.op.reduce != nil || b.c.op.reduce != nil {
		return false
	}
	r.b.readSource(a.c)
	r.b.readSource(b.c)
	return bytes.Equal(a.data(from, to), b.data(from, to))
}

// data is what a store writes to a part of the range.
func (s *pendingStore) data(from, to uint64) []byte {
	at := uint64(s.row.shared+s.row.skip) - s.row.global
	return s.c.data[at+from : at+to]
}

// stored forgets a store that its thread has waited for.
func (b *block) stored(c *bulkCopy) {
	r := b.race
	if r == nil || len(r.stores) == 0 {
		return
	}
	c.pieces(func(piece pendingStore) {
		page := piece.page()
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
