package vm

import (
	"math/bits"
	"unsafe"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// A block that is watched for races works on copies of the pages of global
// memory it touches, each with a shadow. In its turn it writes back what it
// wrote and compares its accesses with those of the blocks before. So what a
// block sees, and what is reported, does not depend on how blocks run beside
// one another.

const (
	shadowBits = 9
	shadowSize = 1 << shadowBits
	shadowMask = shadowSize - 1
	maxPages   = 4096 // that a block keeps before it takes its turn

	pageLineBits = 6 // of a line of a page, which is filled and compared by itself
	pageLineSize = 1 << pageLineBits
	pageLines    = shadowSize / pageLineSize
)

// page is a block's copy of a page of global memory: of the lines that it touched.
type page struct {
	key     uint64 // address >> shadowBits
	al      *allocation
	off     int64 // in the allocation
	n       int   // bytes of the page that are the allocation's
	slot    int   // of the table
	cells   []cell
	data    [shadowSize]byte
	written [pageLines]uint64
	undef   [pageLines]uint64 // bytes that were never written
	lines   lineSet           // that are filled
	someUndefined,
	dirty bool
}

// lineSet is lines of a page, a bit each.
type lineSet uint8

// linesOf is the lines that n bytes from an offset on are in.
func linesOf(off, n int) lineSet {
	first, last := off>>pageLineBits, (off+max(n, 1)-1)>>pageLineBits
	return lineSet(2<<last - 1<<first)
}

func (s lineSet) first() int { return bits.TrailingZeros8(uint8(s)) }

// line is the cells of a line.
func (p *page) line(i int) []cell {
	n := len(p.cells) / pageLines
	return p.cells[i*n:][:n]
}

// pageTable finds a block's pages: a hash table with open addressing.
type pageTable struct {
	slots []*page
	list  []*page // in the order they were made
	free  []*page
	shift uint
}

func (t *pageTable) find(key uint64) *page {
	if len(t.slots) == 0 {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> t.shift; ; i++ {
		p := t.slots[i&mask]
		if p == nil || p.key == key {
			return p
		}
	}
}

func (t *pageTable) insert(p *page) {
	if 2*len(t.list) >= len(t.slots) {
		n := max(2*len(t.slots), 64)
		t.slots = make([]*page, n)
		t.shift = uint(64 - bits.Len(uint(n-1)))
		for _, old := range t.list {
			t.place(old)
		}
	}
	t.list = append(t.list, p)
	t.place(p)
}

func (t *pageTable) place(p *page) {
	mask := uint64(len(t.slots) - 1)
	for i := p.key * 0x9e3779b97f4a7c15 >> t.shift; ; i++ {
		if t.slots[i&mask] == nil {
			p.slot = int(i & mask)
			t.slots[p.slot] = p
			return
		}
	}
}

// reset gives all pages back.
func (t *pageTable) reset() {
	t.free = append(t.free, t.list...)
	if len(t.free) > maxPages {
		t.free = t.free[:maxPages]
	}
	if 8*len(t.list) < len(t.slots) {
		for _, p := range t.list {
			t.slots[p.slot] = nil
		}
	} else {
		clear(t.slots)
	}
	t.list = t.list[:0]
}

// page is the block's copy of the page of an address, nil where nothing is
// allocated.
func (r *raceState) page(w *warp, addr uint64) *page {
	key := addr >> shadowBits
	if p := r.pages.find(key); p != nil {
		return p
	}
	l := r.b.l
	al := l.dev.mem.find(addr)
	if al == nil || addr-al.addr >= uint64(al.size) {
		return nil
	}
	var p *page
	if n := len(r.pages.free); n > 0 {
		p = r.pages.free[n-1]
		r.pages.free = r.pages.free[:n-1]
		p.lines, p.someUndefined, p.dirty = 0, false, false
	} else {
		p = &page{cells: make([]cell, shadowSize>>l.kern.globalGrain)}
	}
	p.key, p.al = key, al
	p.off = int64(key<<shadowBits - al.addr)
	p.n = int(min(shadowSize, al.size-p.off))
	r.pages.insert(p)
	if len(r.pages.list) >= maxPages {
		w.limit = 0 // the block stops at the next chance and takes its turn
	}
	return p
}

// pageAt is the block's copy of the page of an address, filled for n bytes from there on;
// nil if it has none.
func (r *raceState) pageAt(addr uint64, n int) *page {
	p := r.pages.find(addr >> shadowBits)
	off := int(addr & shadowMask)
	if p == nil || off+n > p.n {
		return nil
	}
	r.fill(p, off, n)
	return p
}

// fill fills the lines of a page that n bytes from an offset on are in.
func (r *raceState) fill(p *page, off, n int) {
	missing := linesOf(off, n) &^ p.lines
	if missing == 0 {
		return
	}
	p.lines |= missing
	for s := missing; s != 0; s &= s - 1 {
		i := s.first()
		clear(p.line(i))
		p.written[i], p.undef[i] = 0, 0
	}
	r.b.l.before.read(p, missing, r.hadTurn)
}

// access notes an access to a page and returns its bytes; nil if it is out of
// bounds.
func (r *raceState) access(w *warp, p *page, at *side, size int) []byte {
	off := int(at.addr & shadowMask)
	if p == nil || off+size > p.n {
		w.outOfGlobal(at.in, at.lane, at.addr, size)
		return nil
	}
	if at.write && p.al.constant {
		if w.again(bench.WriteToConst, at.in) {
			return nil
		}
		w.faultAt(bench.WriteToConst, at.in, at.lane, &at.addr, "global", "write of %d bytes at %#x: %s is constant", size, at.addr, p.al)
		return nil
	}
	r.fill(p, off, size)
	grain := r.b.l.kern.globalGrain
	cells := p.cells[off>>grain : off>>grain+max(size>>grain, 1)]
	me := stamp(at.id)<<eventShift | stamp(at.lane)
	at.bytes = p.data[off:]
	if r.off {
		cells = nil
	}
	if len(r.stores) > 0 && !r.off {
		r.againstStores(p.key, at, size)
	}
	if at.write && !r.off {
		r.againstFetches(at, size)
	}
	if len(r.past) > 0 && !r.off {
		r.againstPast(at, size)
	}
	whole := at.data
	if !at.write && !r.off && r.events[at.id].flags&eventProxy != 0 {
		r.seenByProxy(cells, at)
	}
	if !at.write && !r.off && r.events[at.id].flags&eventReadOnly != 0 {
		r.staleReads(cells, at)
	}
	at.width = 1 << grain
	for j := range cells {
		c := &cells[j]
		at.cell = j << grain
		switch {
		case c.w >= r.floor || c.r >= r.floor:
			if whole != nil {
				i := j << grain
				at.bytes, at.data = p.data[off+i:], whole[i:min(i+1<<grain, size)]
			}
			if at.write {
				r.write(c, at)
			} else {
				r.read(c, at)
			}
		case at.write && c.w|c.r != 0 && whole == nil:
			c.w, c.r = me, r.earlier(c, at)
		case at.write:
			c.w, c.r = me, 0
		default:
			c.r = me
		}
	}
	if at.write {
		p.markWritten(off, size)
	}
	return p.data[off:]
}

// markWritten notes bytes that the block wrote.
func (p *page) markWritten(off, n int) {
	p.dirty = true
	for n > 0 {
		bit := off & 63
		k := min(64-bit, n)
		mask := ^uint64(0) >> (64 - k) << bit
		p.written[off>>6] |= mask
		if p.someUndefined {
			p.undef[off>>6] &^= mask
		}
		off += k
		n -= k
	}
}

// undefinedBytes is the undefined bits of up to 8 bytes.
func (p *page) undefinedBytes(off, n int) uint64 {
	var v uint64
	for i := range n {
		if k := off + i; p.undef[k>>6]>>(k&63)&1 != 0 {
			v |= 0xff << (8 * i)
		}
	}
	return v
}

// undefinedAt says whether some of the bytes were never written.
func (p *page) undefinedAt(off, n int) bool {
	if !p.someUndefined {
		return false
	}
	if n >= 64 {
		return true
	}
	return p.undef[off>>6]>>(off&63)&(1<<n-1) != 0
}

// loadPaged is loadGlobalAt over the block's copies.
func loadPaged[T word](w *warp, in *inst, addr *lanes64, good uint32) {
	m := in.mem
	var zero T
	step := int(unsafe.Sizeof(zero))
	size := m.bytes()
	r := w.b.race
	access := side{w: w, in: in, space: ptx.SpaceGlobal, id: r.eventFor(w, in, m, 0)}
	var p *page
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		access.lane, access.addr = i, addr[i]
		if p == nil || addr[i]>>shadowBits != p.key {
			p = r.page(w, addr[i])
		}
		b := r.access(w, p, &access, size)
		if b == nil {
			w.zero(m, 1<<i)
			continue
		}
		for j := range m.data {
			put(w, &m.data[j], m.signed, i, *at[T](b[j*step:]))
		}
		if off := int(addr[i] & shadowMask); w.u != nil && p.undefinedAt(off, size) {
			w.loadedGlobal(in, i, func(o, n int) uint64 { return p.undefinedBytes(off+o, n) }, addr[i])
		}
	}
}

// storePaged is storeGlobalAt over the block's copies.
func storePaged[T word](w *warp, in *inst, addr *lanes64, good uint32) {
	m := in.mem
	var zero T
	step := int(unsafe.Sizeof(zero))
	size := m.bytes()
	r := w.b.race
	access := side{w: w, in: in, space: ptx.SpaceGlobal, write: true, id: r.eventFor(w, in, m, 0)}
	var p *page
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		access.lane, access.addr = i, addr[i]
		if p == nil || addr[i]>>shadowBits != p.key {
			p = r.page(w, addr[i])
		}
		b := r.access(w, p, &access, size)
		if b == nil {
			continue
		}
		for j := range m.data {
			*at[T](b[j*step:]) = get[T](w, &m.data[j], i)
		}
	}
}

// renumber replaces events in all stamps, after a compaction.
func (t *pageTable) renumber(number func(uint32) uint32, r *raceState) {
	fix := func(s stamp) stamp {
		if s&specialStamp != 0 {
			s = r.globalReaders.all[uint32(s&^specialStamp)].s
		}
		if s == 0 {
			return 0
		}
		return stamp(number(s.event()))<<eventShift | s&(1<<eventShift-1)
	}
	for _, p := range t.list {
		for s := p.lines; s != 0; s &= s - 1 {
			cells := p.line(s.first())
			for i := range cells {
				c := &cells[i]
				c.w, c.r = fix(c.w), fix(c.r)
			}
		}
	}
}
