package vm

import (
	"unsafe"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Loads and stores of 32-bit words, one to four a lane: what kernels do most.
// They run when every lane is active and all addresses are good, and leave the
// rest to the general functions.

// plainWords says whether an access is one of those.
func plainWords(m *memOp) bool {
	if m.size != 4 || m.order != weak || len(m.data) > 4 {
		return false
	}
	for _, o := range m.data {
		if o.k != class32 || o.bits != 32 || o.slot < 0 {
			return false
		}
	}
	return true
}

// sharedWords computes the offsets of an access in shared memory; false if some
// lane's is not good.
func (w *warp) sharedWords(m *memOp, off *lanes32) bool {
	size := uint32(4 * len(m.data))
	n := uint32(w.b.l.sharedSize)
	if n < size || w.mask != allLanes || m.frame {
		return false
	}
	limit, low := n-size, size-1
	if size == 12 {
		return false
	}
	base, begin := uint32(w.cta.window), uint32(w.cta.low)
	add := uint32(m.offset) - base
	var bad uint32
	if m.wide {
		a := &w.q[m.base]
		for i := range off {
			o := uint32(a[i]) + add
			if o > limit || (o+base)&low != 0 || (a[i]+m.offset)>>32 != 0 {
				bad = 1
			}
			off[i] = o + begin
		}
		return bad == 0
	}
	a := &w.r[m.base]
	for i := range off {
		o := a[i] + add
		if o > limit || (o+base)&low != 0 {
			bad = 1
		}
		off[i] = o + begin
	}
	return bad == 0
}

// wordAt is a word of memory at an offset that was checked.
func wordAt(mem unsafe.Pointer, off uint32) *uint32 { return (*uint32)(unsafe.Add(mem, off)) }

func loadSharedWords(w *warp, in *inst) {
	m := in.mem
	if at, p := w.sharedAlike(m); p != nil {
		loadSharedAlike(w, in, at, p)
		return
	}
	var off lanes32
	if !w.sharedWords(m, &off) {
		loadShared[uint32](w, in)
		return
	}
	w.countSharedWords(m, &off, sharedLoads)
	if r := w.b.race; r != nil && !r.off {
		r.readWords(w, in, &off)
	}
	mem := unsafe.Pointer(unsafe.SliceData(w.b.shared))
	for j := range m.data {
		d := &w.r[m.data[j].slot]
		at := uint32(4 * j)
		for i := range d {
			d[i] = *wordAt(mem, off[i]+at)
		}
	}
	if w.u == nil {
		return
	}
	undef := unsafe.Pointer(unsafe.SliceData(w.b.undef.bytes))
	var some uint32
	for i := range off {
		for j := range m.data {
			some |= *wordAt(undef, off[i]+uint32(4*j))
		}
	}
	if some != 0 {
		wide := off.wide()
		w.loadedFrom(in, w.b.undef, ptx.SpaceShared, w.cta.window-w.cta.low, &wide, allLanes)
	}
}

// loadSharedAlike is loadSharedWords of lanes as far apart as the last time, the
// first of which reads at an offset.
func loadSharedAlike(w *warp, in *inst, first uint64, p *pattern) {
	m := in.mem
	w.b.requested(m.id, sharedLoads, int64(warpSize*4*len(m.data)), p.count, p.ideal)
	if r := w.b.race; r != nil && !r.off && !r.logRead(w, in, first, p) {
		off := p.offsets(uint32(first))
		r.readWords(w, in, &off)
	}
	mem := unsafe.Pointer(&w.b.shared[first])
	for j := range m.data {
		p.gather(&w.r[m.data[j].slot], unsafe.Add(mem, 4*j))
	}
	if w.u != nil && p.any(unsafe.Pointer(&w.b.undef.bytes[first]), len(m.data)) {
		off := p.offsets(uint32(first))
		wide := off.wide()
		w.loadedFrom(in, w.b.undef, ptx.SpaceShared, w.cta.window-w.cta.low, &wide, allLanes)
	}
}

// wide is the lanes as 64-bit numbers.
func (l *lanes32) wide() (out lanes64) {
	for i, v := range l {
		out[i] = uint64(v)
	}
	return out
}

func storeSharedWords(w *warp, in *inst) {
	m := in.mem
	if w.b.race != nil {
		storeShared[uint32](w, in)
		return
	}
	if at, p := w.sharedAlike(m); p != nil {
		storeSharedAlike(w, in, at, p)
		return
	}
	var off lanes32
	if !w.sharedWords(m, &off) {
		storeShared[uint32](w, in)
		return
	}
	w.countSharedWords(m, &off, sharedStores)
	mem := unsafe.Pointer(unsafe.SliceData(w.b.shared))
	for j := range m.data {
		s := &w.r[m.data[j].slot]
		at := uint32(4 * j)
		for i := range s {
			*wordAt(mem, off[i]+at) = s[i]
		}
	}
	if u := w.b.undef; u != nil {
		undef := unsafe.Pointer(unsafe.SliceData(u.bytes))
		for j := range m.data {
			at := uint32(4 * j)
			for i := range off {
				*wordAt(undef, off[i]+at) = 0
			}
		}
	}
}

// storeSharedAlike is storeSharedWords of lanes as far apart as the last time.
func storeSharedAlike(w *warp, in *inst, first uint64, p *pattern) {
	m := in.mem
	w.b.requested(m.id, sharedStores, int64(warpSize*4*len(m.data)), p.count, p.ideal)
	mem := unsafe.Pointer(&w.b.shared[first])
	for j := range m.data {
		p.scatter(&w.r[m.data[j].slot], unsafe.Add(mem, 4*j))
	}
	if u := w.b.undef; u != nil {
		undef := unsafe.Pointer(&u.bytes[first])
		for j := range m.data {
			p.scatter(&lanes32{}, unsafe.Add(undef, 4*j))
		}
	}
}

// globalWords finds the memory of an access to global memory and the lanes'
// offsets in it; nil if it is not all good and in one allocation.
func (w *warp) globalWords(m *memOp, off *lanes64, write bool) *allocation {
	if w.mask != allLanes || !m.wide || m.frame || w.b.race != nil {
		return nil
	}
	size := uint64(4 * len(m.data))
	a := &w.q[m.base]
	al := w.b.l.dev.mem.find(a[0] + m.offset)
	if al == nil || uint64(al.size) < size || size == 12 || write && al.constant || al.undef != nil {
		return nil
	}
	add, limit, low := m.offset-al.addr, uint64(al.size)-size, size-1
	bad := false
	for i := range off {
		o := a[i] + add
		if o > limit || o&low != 0 { // allocations begin on pages
			bad = true
		}
		off[i] = o
	}
	if bad {
		return nil
	}
	return al
}

func loadGlobalWords(w *warp, in *inst) {
	m := in.mem
	kind := globalLoads
	if m.space == ptx.SpaceConst {
		kind = constLoads
	}
	if al, first, p := w.globalAlike(m, false); p != nil {
		w.countAlike(p, al.addr+first, 4*len(m.data), m, kind)
		mem := unsafe.Pointer(&al.data[first])
		for j := range m.data {
			p.gather(&w.r[m.data[j].slot], unsafe.Add(mem, 4*j))
		}
		return
	}
	var off lanes64
	al := w.globalWords(m, &off, false)
	if al == nil {
		loadGlobal[uint32](w, in)
		return
	}
	w.countGlobalWords(&off, al, m, kind)
	mem := unsafe.Pointer(unsafe.SliceData(al.data))
	for j := range m.data {
		d := &w.r[m.data[j].slot]
		p := unsafe.Add(mem, 4*j)
		for i := range d {
			d[i] = *(*uint32)(unsafe.Add(p, off[i]))
		}
	}
}

func storeGlobalWords(w *warp, in *inst) {
	m := in.mem
	if al, first, p := w.globalAlike(m, true); p != nil {
		w.countAlike(p, al.addr+first, 4*len(m.data), m, globalStores)
		mem := unsafe.Pointer(&al.data[first])
		for j := range m.data {
			p.scatter(&w.r[m.data[j].slot], unsafe.Add(mem, 4*j))
		}
		return
	}
	var off lanes64
	al := w.globalWords(m, &off, true)
	if al == nil {
		storeGlobal[uint32](w, in)
		return
	}
	w.countGlobalWords(&off, al, m, globalStores)
	mem := unsafe.Pointer(unsafe.SliceData(al.data))
	for j := range m.data {
		s := &w.r[m.data[j].slot]
		p := unsafe.Add(mem, 4*j)
		for i := range s {
			*(*uint32)(unsafe.Add(p, off[i])) = s[i]
		}
	}
}

// countGlobalWords is count for words of all lanes, whose addresses are good.
func (w *warp) countGlobalWords(off *lanes64, al *allocation, m *memOp, kind trafficKind) {
	size := 4 * len(m.data)
	w.count(off, al.addr, size, allLanes, m, kind)
	p := w.patterns[m.id]
	p.extent.measure(&p.rel, off, uint32(size))
}

// readWords notes a load of words from shared memory by all lanes.
func (r *raceState) readWords(w *warp, in *inst, off *lanes32) {
	n := uint64(4 * len(in.mem.data))
	for i := range off {
		if i == 0 || off[i] != off[i-1] {
			r.touch(uint64(off[i]), uint64(off[i])+n)
		}
	}
	r.noteWords(w, in, r.eventFor(w, in, in.mem, 0), off)
}

// noteWords is readWords of an event, in the cells alone.
func (r *raceState) noteWords(w *warp, in *inst, id uint32, off *lanes32) {
	m := in.mem
	me := stamp(id) << eventShift
	floor := r.floor
	n := uint32(4*len(m.data)) >> r.grain
	var at side
	last, repeats := ^uint32(0), 0
	for i := range off {
		o := off[i]
		if o == last { // the lane before read the same: two stand for all
			if repeats++; repeats > 1 && !r.b.l.kern.parts {
				continue
			}
		} else {
			last, repeats = o, 0
		}
		first := o >> r.grain
		cells := r.shared[first : first+n]
		for j := range cells {
			c := &cells[j]
			if c.w < floor {
				switch {
				case c.r < floor:
					c.r = me | stamp(i)
					continue
				case c.r&^(1<<eventShift-1) == me && !r.b.l.kern.parts:
					if c.r&(warpSize-1) != stamp(i) {
						c.r |= severalLanes
					}
					continue
				}
			}
			if at.w == nil {
				at = side{w: w, in: in, space: ptx.SpaceShared, id: id}
			}
			at.lane, at.addr, at.bytes = i, r.b.address(uint64(o)), r.b.shared[o:]
			r.read(c, &at)
		}
	}
}
