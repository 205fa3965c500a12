package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// What becomes of a bulk copy once it is issued.

// issue puts a copy in flight.
func (b *block) issue(c *bulkCopy) {
	r := b.race
	if r != nil && r.off {
		r = nil
	}
	switch {
	case r == nil:
	case !c.op.told:
		r.bulkReading(c, b.spans(c), c.op.shared)
		r.storing(c)
	default:
		if c.op.global != nil {
			r.bulkFetching(c)
		}
		if c.op.from != nil {
			r.bulkReading(c, []span{{c.source, c.source + uint64(c.bytes)}}, c.op.from)
		}
		if c.op.reduce != nil {
			r.bulkReducing(c)
		} else {
			r.bulkWriting(c)
		}
	}
	pending := len(b.flight)
	if r != nil {
		pending = max(pending, len(r.unseen.list))
	}
	if !c.op.told {
		b.undefinedSource(c)
		s := c.w.bulkOf(c.lane)
		s.open = append(s.open, c)
		s.pending++
		pending = max(pending, s.pending)
		if c.op.reduce != nil {
			b.reducing++
		}
	}
	c.w.crowd(pending, len(c.rows))
	b.flight = append(b.flight, c)
	if b.landsEarly() {
		b.land(c)
	}
}

// bulkOf is a thread's bulk groups.
func (w *warp) bulkOf(lane int) *bulkLane {
	if w.bulk[lane] == nil {
		w.bulk[lane] = new(bulkLane)
	}
	return w.bulk[lane]
}

// bulkCommit closes the open copies of the active lanes into groups.
func bulkCommit(w *warp, _ *inst) {
	for l := w.mask; l != 0; l &= l - 1 {
		if s := w.bulk[firstLane(l)]; s != nil {
			w.crowd(len(s.groups), 0)
			s.groups = append(s.groups, s.open)
			s.open = nil
		}
	}
}

// bulkWait lets all but the n latest groups of the active lanes land, or read
// their sources.
func (w *warp) bulkWait(n int, read bool) {
	for l := w.mask; l != 0; l &= l - 1 {
		s := w.bulk[firstLane(l)]
		if s == nil {
			continue
		}
		done := max(len(s.groups)-n, 0)
		for _, g := range s.groups[:done] {
			for _, c := range g {
				if read {
					w.b.readSource(c)
				} else {
					w.b.land(c)
					w.b.stored(c)
				}
				if r := w.b.race; r != nil && !r.off {
					r.bulkRead(c)
				}
			}
		}
		if !read {
			for _, g := range s.groups[:done] {
				s.pending -= len(g)
			}
			s.groups = s.groups[done:]
		}
	}
}

// land completes a copy: its data are where they belong, and who waits for
// them is told.
func (b *block) land(c *bulkCopy) {
	if c.landed {
		return
	}
	c.landed = true
	for i, x := range b.flight {
		if x == c {
			b.flight = append(b.flight[:i], b.flight[i+1:]...)
			break
		}
	}
	if current := c.w.fr; c.fr != current { // it may land while another function runs
		c.w.enter(c.fr)
		defer c.w.enter(current)
	}
	if c.arrival {
		b.arrive(c)
		return
	}
	if c.commit != nil {
		b.landCommit(c)
		return
	}
	if !c.op.told {
		b.readSource(c)
		if c.op.reduce != nil {
			b.reduceRows(c)
		} else {
			b.writeRows(c)
		}
		return
	}
	if c.to.gone && c.to != c.w.cta {
		if !b.faults.names(bench.AsyncCopyRace, c.from) { // who didn't wait for the copy left before it, too
			c.w.alive(c)
		}
		return
	}
	if c.op.global != nil {
		b.loadRows(c)
	} else {
		b.writeShared(c)
	}
	if c.nothing {
		b.forgetAnswer(c)
	}
	m := b.mbarriers[c.mbar]
	if r := b.race; r != nil && !r.off {
		r.bulkWritten(c, m)
	}
	if m == nil {
		c.w.misuse(c.in, c.lane, c.mbar, "it is gone when a copy completes that was to tell it")
		return
	}
	m.bytes -= c.bytes - c.padding
	b.settle(m)
}

// writeShared brings what came out of shared memory or registers to shared
// memory.
func (b *block) writeShared(c *bulkCopy) {
	n := uint64(c.bytes)
	data := c.data
	if c.op.from != nil {
		data = b.shared[c.source : c.source+n]
	}
	dst := b.shared[c.shared : c.shared+n]
	if c.op.reduce == nil {
		copy(dst, data)
	} else {
		size := c.op.typ.Size()
		for i := 0; i+size <= len(dst); i += size {
			writeElement(dst[i:], size, c.op.reduce(readElement(dst[i:], size), readElement(data[i:], size), 0))
		}
	}
	if u := b.undef; u != nil && c.op.reduce == nil {
		if c.op.from == nil {
			u.define(c.shared, int(n))
			return
		}
		copy(u.bytes[c.shared:c.shared+n], u.bytes[c.source:c.source+n])
		for i := range n {
			if id, ok := u.origins[c.source+i]; ok {
				u.origins[c.shared+i] = id
			}
		}
	}
}

// loadRows brings the data of a load to shared memory.
func (b *block) loadRows(c *bulkCopy) {
	var row []byte
	for _, r := range c.rows {
		if cap(row) < int(r.size) {
			row = make([]byte, r.size)
		}
		row = row[:r.size]
		if c.fill == nil {
			clear(row)
		} else {
			for i := range row {
				row[i] = c.fill[i%len(c.fill)]
			}
		}
		if r.n > 0 {
			c.w.peek(r.global, row[r.skip:r.skip+r.n])
		}
		some := b.undef != nil && r.n > 0 && c.w.someUndefinedGlobal(r.global, int(r.n))
		b.spread(c, r, func(at uint64, i, n int) {
			copy(b.shared[at:at+uint64(n)], row[i:i+n])
			if b.undef == nil {
				return
			}
			clear(b.undef.bytes[at : at+uint64(n)])
			if some {
				b.loadedUndefined(c, &r, at, i, n)
			}
			if c.ragged {
				b.endsUndefined(c, &r, at)
			}
			if c.padding > 0 {
				b.paddingUndefined(c, at+uint64(n), packedPiece-n)
			}
		})
	}
}

// loadedUndefined marks what was loaded from bytes that were never written: n
// bytes of a row from i on, which now lie at an offset.
func (b *block) loadedUndefined(c *bulkCopy, r *rowCopy, at uint64, i, n int) {
	first := max(i, int(r.skip))
	last := min(i+n, int(r.skip+r.n))
	from := uint32(0)
	for k := first; k < last; k++ {
		addr := r.global + uint64(k) - uint64(r.skip)
		if !c.w.neverWritten(addr) {
			continue
		}
		if from == 0 {
			from = b.addOrigin(origin{class: bench.UninitialisedGlobalRead, src: c.from, space: ptx.SpaceGlobal, addr: addr, size: 1, warp: c.w.index, lane: c.lane})
		}
		b.undef.undefine(at+uint64(k-i), 1, 0xff, from)
	}
}

// endsUndefined marks the bytes of a row at an offset that .ignore_oob left out.
func (b *block) endsUndefined(c *bulkCopy, r *rowCopy, at uint64) {
	from := b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: c.from, space: ptx.SpaceShared, addr: b.address(at), size: int(r.size), warp: c.w.index, lane: c.lane})
	for i := range r.size {
		if i < r.skip || i >= r.skip+r.n {
			b.undef.undefine(at+uint64(i), 1, 0xff, from)
		}
	}
}

// neverWritten says whether a byte of global memory was never written, as the
// block sees it.
func (w *warp) neverWritten(addr uint64) bool {
	if p := w.pageOf(addr, 1); p != nil {
		return p.undefinedBytes(int(addr&shadowMask), 1) != 0
	}
	al := w.b.l.dev.mem.find(addr)
	return al != nil && al.undef != nil && al.undefinedBytes(int64(addr-al.addr), 1) != 0
}

// someUndefinedGlobal says whether some of a range was never written.
func (w *warp) someUndefinedGlobal(addr uint64, n int) bool {
	for a, end := addr, addr+uint64(n); a < end; a = a&^shadowMask + shadowSize {
		p := w.pageOf(a, int(min(end-a, shadowSize-a&shadowMask)))
		if p != nil && p.someUndefined {
			return true
		}
		if al := w.b.l.dev.mem.find(a); p == nil && al != nil && al.undef != nil {
			return true
		}
	}
	return false
}

// spread calls f for each piece of a row that is contiguous in shared memory:
// where it lies, where in the row it begins, how long it is.
func (b *block) spread(c *bulkCopy, r rowCopy, f func(at uint64, i, n int)) {
	size := int(r.size)
	if c.squeezed {
		size = packedPiece
	}
	if c.swizzle == (swizzle{}) {
		f(c.shared+uint64(r.shared), 0, size)
		return
	}
	base := uint64(b.sharedBase)
	for i := 0; i < size; {
		a := base + c.shared + uint64(r.shared) + uint64(i)
		n := min(c.swizzle.piece-int(a)&(c.swizzle.piece-1), size-i)
		f(c.swizzle.of(a)-base, i, n)
		i += n
	}
}

// readSource takes a store's data out of shared memory.
func (b *block) readSource(c *bulkCopy) {
	if c.data != nil {
		return
	}
	c.data = make([]byte, c.bytes)
	for _, r := range c.rows {
		b.spread(c, r, func(at uint64, i, n int) {
			copy(c.data[int(r.shared)+i:], b.shared[at:at+uint64(n)])
		})
		if c.squeezed {
			squeeze(c.data[r.shared:][:packedPiece])
		}
	}
}

// undefinedSource reports a store that writes bytes of shared memory to global memory
// which are undefined: a defect once, whatever their number.
func (b *block) undefinedSource(c *bulkCopy) {
	if b.undef == nil {
		return
	}
	reported := false
	for i := range c.rows {
		r := &c.rows[i]
		c.written(r, func(from, n uint64) {
			first := int(uint64(r.skip) + from)
			b.spread(c, *r, func(at uint64, i, k int) {
				low, high := max(i, first), min(i+k, first+int(n))
				if c.squeezed {
					low, high = i, i+k
				}
				if reported || low >= high || !b.undef.any(at+uint64(low-i), high-low) {
					return
				}
				reported = true
				c.w.useUndefined(c.in, c.lane, b.originIn(c, at+uint64(low-i)), "by a bulk store to global memory")
			})
		})
	}
}

// originIn is where the first undefined byte from an offset on came from.
func (b *block) originIn(c *bulkCopy, off uint64) uint32 {
	for b.undef.bytes[off] == 0 {
		off++
	}
	if id, ok := b.undef.origins[off]; ok {
		return id
	}
	return b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: c.from, space: ptx.SpaceShared, addr: b.address(off), size: 1, warp: c.w.index, lane: c.lane})
}

// writeRows writes a store's data to global memory.
func (b *block) writeRows(c *bulkCopy) {
	for _, r := range c.rows {
		c.written(&r, func(from, n uint64) {
			src := c.data[uint64(r.shared+r.skip)+from:][:n]
			c.w.globalPieces(c.in, c.op.global, c.lane, r.global+from, int(n), true, eventAsync, src, func(dst []byte, at int) {
				copy(dst, src[at:])
			})
		})
	}
}

// reduceRows joins a reduction's data with what global memory holds: each
// element by one relaxed operation in the scope of the device. The block must
// have its turn.
func (b *block) reduceRows(c *bulkCopy) {
	b.reducing--
	r := b.race
	if r != nil {
		r.flush()
	}
	size := c.op.typ.Size()
	for _, row := range c.rows {
		if row.n == 0 {
			continue
		}
		src := c.data[row.shared+row.skip:][:row.n]
		c.w.globalPieces(c.in, c.op.global, c.lane, row.global, int(row.n), true, eventAsync|eventReduction, nil, func(dst []byte, at int) {
			for i := 0; i+size <= len(dst); i += size {
				writeElement(dst[i:], size, c.op.reduce(readElement(dst[i:], size), readElement(src[at+i:], size), 0))
			}
		})
	}
	if r != nil {
		r.flush()
	}
	b.touched()
}

// mayReduce says whether reductions in global memory may land now.
func (b *block) mayReduce() bool { return b.reducing == 0 || b.mayShare() }

// landLate completes the oldest copy that somebody may wait for, when nobody
// can go on; false if none is in flight.
func (b *block) landLate() bool {
	for _, c := range b.flight {
		if c.op.told {
			b.land(c)
			return true
		}
	}
	if len(b.flight) > 0 {
		b.land(b.flight[0])
		return true
	}
	return false
}

// landSome completes copies at moments left to chance; it says whether it did.
func (b *block) landSome() bool {
	some := false
	for len(b.flight) > 0 && b.pick.below(4) == 0 {
		b.land(b.flight[b.pick.below(len(b.flight))])
		some = true
	}
	return some
}

// landAll completes everything at the block's end. What still has to be read
// from shared memory then may find it gone.
func (b *block) landAll() {
	for len(b.flight) > 0 {
		b.land(b.flight[0])
	}
}

// countShared counts what a copy does to one block's shared memory.
func (b *block) countShared(c *bulkCopy) {
	waves := (c.bytes + bankBytes - 1) / bankBytes
	b.requested(c.op.shared.id, sharedOperands, c.bytes, waves, waves)
	switch n := &b.counts.bulk; {
	case c.op.reduce != nil:
		n.Reduces += c.bytes
	case c.op.told:
		n.Loads += c.bytes
	default:
		n.Stores += c.bytes
	}
}

// countGlobal counts what a copy does to global memory: a request for each row that
// has bytes there.
func (b *block) countGlobal(c *bulkCopy) {
	if c.op.global == nil {
		return
	}
	kind := globalCopies
	switch {
	case c.op.reduce != nil:
		kind = globalReductions
	case !c.op.told:
		kind = globalWrites
	}
	for _, r := range c.rows {
		b.trace.newRequest()
		var bytes, sectors int64
		last := r.global>>5 - 1
		c.written(&r, func(from, n uint64) {
			at := r.global + from
			bytes += int64(n)
			end := (at + n - 1) >> 5
			sectors += int64(end - max(at>>5, last+1) + 1)
			last = end
			c.w.reach(c.op.global, at, n, kind)
		})
		if bytes > 0 {
			b.requested(c.op.global.id, kind, bytes, sectors, 0)
		}
	}
}

// bankBytes is what the banks of shared memory move in a wavefront.
const bankBytes = 128

// globalPieces calls f for the pieces of a range of global memory, as the block
// sees it, to read or to write: where watched, for the part in each page. It
// stops, false, after a report.
func (w *warp) globalPieces(in *inst, m *memOp, lane int, addr uint64, n int, write bool, flags eventFlags, data []byte, f func(b []byte, at int)) bool {
	r := w.b.race
	if r == nil {
		al, off := w.globalBytes(in, lane, addr, n, write)
		if al == nil {
			return false
		}
		if write && al.undef != nil {
			al.defineShared(off, int64(n))
		}
		f(al.data[off:][:n], 0)
		return true
	}
	at := side{w: w, in: in, lane: lane, space: ptx.SpaceGlobal, write: write}
	if !r.off {
		at.id = r.eventFor(w, in, m, flags)
	}
	for i := 0; i < n; {
		k := min(n-i, shadowSize-int((addr+uint64(i))&shadowMask))
		at.addr = addr + uint64(i)
		if data != nil {
			at.data = data[i : i+k]
		}
		b := r.access(w, r.page(w, at.addr), &at, k)
		if b == nil {
			return false
		}
		f(b[:k], i)
		i += k
	}
	return true
}

// readRange reads a range of global memory as the block sees it.
func (w *warp) readRange(in *inst, m *memOp, lane int, addr uint64, dst []byte, flags eventFlags) bool {
	return w.globalPieces(in, m, lane, addr, len(dst), false, flags, nil, func(b []byte, at int) { copy(dst[at:], b) })
}
