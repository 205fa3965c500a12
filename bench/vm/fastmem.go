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
	switch len(m.data) {
	case 1:
		d := &w.r[m.data[0].slot]
		for i := range d {
			d[i] = *wordAt(mem, off[i])
		}
	case 2:
		d0, d1 := &w.r[m.data[0].slot], &w.r[m.data[1].slot]
		for i := range d0 {
			p := (*[2]uint32)(unsafe.Pointer(wordAt(mem, off[i])))
			d0[i], d1[i] = p[0], p[1]
		}
	case 4:
		d0, d1, d2, d3 := &w.r[m.data[0].slot], &w.r[m.data[1].slot], &w.r[m.data[2].slot], &w.r[m.data[3].slot]
		for i := range d0 {
			p := (*[4]uint32)(unsafe.Pointer(wordAt(mem, off[i])))
			d0[i], d1[i], d2[i], d3[i] = p[0], p[1], p[2], p[3]
		}
	}
	if w.u == nil {
		return
	}
	undef := unsafe.Pointer(unsafe.SliceData(w.b.undef.bytes))
	var some uint32
	switch len(m.data) {
	case 1:
		for i := range off {
			some |= *wordAt(undef, off[i])
		}
	default:
		for i := range off {
			for j := range m.data {
				some |= *wordAt(undef, off[i]+uint32(4*j))
			}
		}
	}
	if some != 0 {
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
	var off lanes32
	if w.b.race != nil || !w.sharedWords(m, &off) {
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
	var off lanes64
	al := w.globalWords(m, &off, false)
	if al == nil {
		loadGlobal[uint32](w, in)
		return
	}
	kind := globalLoads
	if m.space == ptx.SpaceConst {
		kind = constLoads
	}
	w.count(&off, al.addr, 4*len(m.data), allLanes, m, kind)
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
	var off lanes64
	al := w.globalWords(m, &off, true)
	if al == nil {
		storeGlobal[uint32](w, in)
		return
	}
	w.count(&off, al.addr, 4*len(m.data), allLanes, m, globalStores)
	mem := unsafe.Pointer(unsafe.SliceData(al.data))
	for j := range m.data {
		s := &w.r[m.data[j].slot]
		p := unsafe.Add(mem, 4*j)
		for i := range s {
			*(*uint32)(unsafe.Add(p, off[i])) = s[i]
		}
	}
}

// readWords notes a load of words from shared memory by all lanes.
func (r *raceState) readWords(w *warp, in *inst, off *lanes32) {
	m := in.mem
	id := r.eventFor(w, in, m, 0)
	me := stamp(id) << eventShift
	floor := r.floor
	n := uint32(4*len(m.data)) >> r.grain
	var at side
	last, repeats := ^uint32(0), 0
	for i := range off {
		o := off[i]
		if o == last { // the lane before read the same: two stand for all
			if repeats++; repeats > 1 {
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
				case c.r&^(1<<eventShift-1) == me:
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
