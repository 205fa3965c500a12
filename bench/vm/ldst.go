package vm

import (
	"unsafe"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// word is an element of memory.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// chooseLoad picks the function of a load.
func (d *decoder) chooseLoad(in *inst) {
	m := in.mem
	switch m.space {
	case ptx.SpaceShared:
		in.fn[modeFull] = bySize(m, loadShared[uint8], loadShared[uint16], loadShared[uint32], loadShared[uint64])
		if plainWords(m) {
			in.fn[modeFull] = loadSharedWords
		}
		if m.order != weak {
			d.strong(in)
		}
	case ptx.SpaceGlobal, ptx.SpaceConst:
		in.fn[modeFull] = bySize(m, loadGlobal[uint8], loadGlobal[uint16], loadGlobal[uint32], loadGlobal[uint64])
		if plainWords(m) {
			in.fn[modeFull] = loadGlobalWords
		}
		if m.order != weak {
			d.strong(in)
		}
	case ptx.SpaceLocal:
		in.fn[modeFull] = bySize(m, loadLocal[uint8], loadLocal[uint16], loadLocal[uint32], loadLocal[uint64])
	case ptx.SpaceParam:
		in.fn[modeFull] = loadParam
	default:
		in.fn[modeFull] = bySize(m, loadGeneric[uint8], loadGeneric[uint16], loadGeneric[uint32], loadGeneric[uint64])
		if m.order != weak {
			d.strong(in)
		}
	}
	if in.fn[modeFull] == nil && in.ctl == nil {
		d.refuse("elements of %d bytes: want 1, 2, 4 or 8", m.size)
	}
}

func (d *decoder) chooseStore(in *inst) {
	m := in.mem
	switch m.space {
	case ptx.SpaceShared:
		in.fn[modeFull] = bySize(m, storeShared[uint8], storeShared[uint16], storeShared[uint32], storeShared[uint64])
		if plainWords(m) {
			in.fn[modeFull] = storeSharedWords
		}
		if m.order != weak {
			d.strong(in)
		}
	case ptx.SpaceGlobal, ptx.SpaceConst:
		in.fn[modeFull] = bySize(m, storeGlobal[uint8], storeGlobal[uint16], storeGlobal[uint32], storeGlobal[uint64])
		if plainWords(m) {
			in.fn[modeFull] = storeGlobalWords
		}
		if m.order != weak {
			d.strong(in)
		}
	case ptx.SpaceLocal:
		in.fn[modeFull] = bySize(m, storeLocal[uint8], storeLocal[uint16], storeLocal[uint32], storeLocal[uint64])
	default:
		in.fn[modeFull] = bySize(m, storeGeneric[uint8], storeGeneric[uint16], storeGeneric[uint32], storeGeneric[uint64])
		if m.order != weak {
			d.strong(in)
		}
	}
	if in.fn[modeFull] == nil && in.ctl == nil {
		d.refuse("elements of %d bytes: want 1, 2, 4 or 8", m.size)
	}
}

func bySize(m *memOp, f1, f2, f4, f8 execFn) execFn {
	switch m.size {
	case 1:
		return f1
	case 2:
		return f2
	case 4:
		return f4
	case 8:
		return f8
	}
	return nil
}

// addresses computes the lanes' addresses.
func (w *warp) addresses(m *memOp, out *lanes64) {
	off := m.offset
	if m.frame {
		off += uint64(w.fr.local)
	}
	if m.wide {
		a := &w.q[m.base]
		for i := range out {
			out[i] = a[i] + off
		}
		return
	}
	a := &w.r[m.base]
	o := uint32(off)
	for i := range out {
		out[i] = uint64(a[i] + o)
	}
}

// aligned reports accesses that are not aligned to their size and returns
// the lanes whose are.
func (w *warp) aligned(in *inst, addr *lanes64, size int, space string) uint32 {
	var bad uint32
	low := uint64(size - 1)
	for i := range addr {
		if addr[i]&low != 0 {
			bad |= 1 << i
		}
	}
	bad &= w.mask
	for m := bad; m != 0; m &= m - 1 {
		i := firstLane(m)
		if w.again(bench.MisalignedAddress, in) {
			continue
		}
		w.faultAt(bench.MisalignedAddress, in, i, &addr[i], space, "%s address %#x: want a multiple of %d%s", space, addr[i], size, w.b.liesAt(space, addr[i]))
	}
	return w.mask &^ bad
}

// put writes an element that was loaded to a register.
func put[T word](w *warp, o *operand, signed bool, i int, v T) {
	if o.slot < 0 {
		return
	}
	x := uint64(v)
	if signed {
		n := 64 - 8*int(unsafe.Sizeof(v))
		x = uint64(int64(x<<n) >> n)
		if o.bits < 32 {
			x &= 1<<o.bits - 1
		}
	}
	if o.k == class64 {
		w.q[o.slot][i] = x
	} else {
		w.r[o.slot][i] = uint32(x)
	}
}

// get reads an element to store from a register.
func get[T word](w *warp, o *operand, i int) T {
	if o.k == class64 {
		return T(w.q[o.slot][i])
	}
	return T(w.r[o.slot][i])
}

// at is the element at the start of some bytes.
func at[T word](p []byte) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(p))) }

// sharedOffsets turns addresses into offsets in shared memory and returns the
// lanes whose accesses lie in it.
func (w *warp) sharedOffsets(in *inst, addr *lanes64, size int) uint32 {
	n := w.b.l.sharedSize
	if n < int64(size) {
		return w.outOfShared(in, addr, size, w.mask)
	}
	limit := uint64(n) - uint64(size)
	base, begin := w.cta.window, w.cta.low
	low := uint64(size - 1)
	var bad, odd uint32
	for i := range addr {
		off := addr[i] - base
		if off > limit {
			bad |= 1 << i
		}
		if addr[i]&low != 0 {
			odd |= 1 << i
		}
		addr[i] = off + begin
	}
	if (bad|odd)&w.mask == 0 {
		return w.mask
	}
	return w.badShared(in, addr, size, bad&w.mask, odd&w.mask)
}

func (w *warp) badShared(in *inst, off *lanes64, size int, bad, odd uint32) uint32 {
	var addr lanes64
	for i := range addr {
		addr[i] = off[i] - w.cta.low + w.cta.window
	}
	good := w.mask
	if odd != 0 {
		saved := w.mask
		w.mask = odd
		w.aligned(in, &addr, size, "shared")
		w.mask = saved
		good &^= odd
		if in.rule == ruleStore || in.rule == ruleStoreMatrix || in.rule == ruleAsyncCopy {
			w.missedShared(&addr, size, odd)
		}
	}
	for l := bad &^ odd; l != 0; l &= l - 1 {
		i := firstLane(l)
		var ok bool
		if off[i], ok = w.locate(in, i, addr[i], size, in.mem.reaches()); !ok {
			good &^= 1 << i
		}
	}
	return good
}

func (w *warp) outOfShared(in *inst, addr *lanes64, size int, bad uint32) uint32 {
	b := w.b
	for m := bad; m != 0; m &= m - 1 {
		i := firstLane(m)
		if w.again(bench.SharedOutOfBounds, in) {
			continue
		}
		who := ""
		if addr[i]>>rankShift == noRank {
			who = " (mapa of a rank that the cluster has not got)"
		}
		w.faultAt(bench.SharedOutOfBounds, in, i, &addr[i], "shared",
			"shared address %#x%s, %d bytes: the block has %d bytes from %#x", addr[i], who, size, b.l.sharedSize, w.cta.window)
	}
	return 0
}

func loadShared[T word](w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	loadSharedAt[T](w, in, &addr)
}

func loadSharedAt[T word](w *warp, in *inst, addr *lanes64) {
	m := in.mem
	var zero T
	step := uint64(unsafe.Sizeof(zero))
	size := m.bytes()
	good := w.sharedOffsets(in, addr, size)
	w.countShared(m, addr, size, good, sharedLoads)
	mem := w.b.shared
	if r := w.b.race; r != nil {
		r.sharedAccess(w, in, m, addr, size, good, false, 0)
	}
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		p := mem[addr[i]:]
		for j := range m.data {
			put(w, &m.data[j], m.signed, i, *at[T](p[uint64(j)*step:]))
		}
	}
	w.zero(m, w.mask&^good)
	if w.u != nil {
		w.loadedFrom(in, w.b.undef, ptx.SpaceShared, w.cta.window-w.cta.low, addr, good)
	}
}

// zero gives the lanes of accesses that failed the value 0.
func (w *warp) zero(m *memOp, lanes uint32) {
	for l := lanes; l != 0; l &= l - 1 {
		i := firstLane(l)
		for j := range m.data {
			put[uint64](w, &m.data[j], false, i, 0)
		}
	}
}

func storeShared[T word](w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	storeSharedAt[T](w, in, &addr)
}

func storeSharedAt[T word](w *warp, in *inst, addr *lanes64) {
	m := in.mem
	var zero T
	step := uint64(unsafe.Sizeof(zero))
	size := m.bytes()
	good := w.sharedOffsets(in, addr, size)
	w.countShared(m, addr, size, good, sharedStores)
	mem := w.b.shared
	if u := w.b.undef; u != nil {
		storedTo(u, addr, size, good)
	}
	r := w.b.race
	var watched side
	if r != nil && !r.off {
		watched = side{w: w, in: in, space: ptx.SpaceShared, write: true, id: r.eventFor(w, in, m, 0)}
	} else {
		r = nil
	}
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		if r != nil {
			watched.lane = i
			r.sharedLane(&watched, addr[i], size)
		}
		p := mem[addr[i]:]
		for j := range m.data {
			*at[T](p[uint64(j)*step:]) = get[T](w, &m.data[j], i)
		}
	}
}

// globalBytes is the memory of a lane's access, or nil after a report.
func (w *warp) globalBytes(in *inst, lane int, addr uint64, size int, write bool) (*allocation, int64) {
	a := w.b.l.dev.mem.find(addr)
	if a == nil || addr < a.addr || addr-a.addr > uint64(a.size-int64(size)) || a.size < int64(size) {
		w.outOfGlobal(in, lane, addr, size)
		return nil, 0
	}
	if write && a.constant {
		if w.again(bench.WriteToConst, in) {
			return nil, 0
		}
		w.faultAt(bench.WriteToConst, in, lane, &addr, "global", "write of %d bytes at %#x: %s is constant", size, addr, a)
		return nil, 0
	}
	return a, int64(addr - a.addr)
}

func (w *warp) outOfGlobal(in *inst, lane int, addr uint64, size int) {
	if w.again(bench.GlobalOutOfBounds, in) {
		return
	}
	w.faultAt(bench.GlobalOutOfBounds, in, lane, &addr, "global", "global address %#x, %d bytes: %s", addr, size, w.b.l.dev.mem.describe(addr))
}

func loadGlobal[T word](w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	loadGlobalAt[T](w, in, &addr)
}

func loadGlobalAt[T word](w *warp, in *inst, addr *lanes64) {
	m := in.mem
	var zero T
	step := uint64(unsafe.Sizeof(zero))
	size := m.bytes()
	good := w.aligned(in, addr, size, "global")
	if m.space == ptx.SpaceConst {
		w.count(addr, 0, size, good, m, constLoads)
	} else {
		w.count(addr, 0, size, good, m, globalLoads)
	}
	if w.b.race != nil {
		w.zero(m, w.mask&^good)
		loadPaged[T](w, in, addr, good)
		return
	}
	var al *allocation
	var base, limit uint64
	var data []byte
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		off := addr[i] - base
		if al == nil || off > limit {
			var o int64
			if al, o = w.globalBytes(in, i, addr[i], size, false); al == nil {
				w.zero(m, 1<<i)
				continue
			}
			off, base, limit, data = uint64(o), al.addr, uint64(al.size-int64(size)), al.data
		}
		p := data[off:]
		for j := range m.data {
			put(w, &m.data[j], m.signed, i, *at[T](p[uint64(j)*step:]))
		}
		if w.u != nil && al.undef != nil && al.someUndefined(int64(off), size) {
			a := al
			w.loadedGlobal(in, i, func(o, n int) uint64 { return a.undefinedBytes(int64(off)+int64(o), n) }, addr[i])
		}
	}
	w.zero(m, w.mask&^good)
}

func storeGlobal[T word](w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	storeGlobalAt[T](w, in, &addr)
}

func storeGlobalAt[T word](w *warp, in *inst, addr *lanes64) {
	m := in.mem
	var zero T
	step := uint64(unsafe.Sizeof(zero))
	size := m.bytes()
	good := w.aligned(in, addr, size, "global")
	if good != w.mask {
		w.missedGlobal(addr, size, w.mask&^good)
	}
	w.count(addr, 0, size, good, m, globalStores)
	if w.b.race != nil {
		storePaged[T](w, in, addr, good)
		return
	}
	var al *allocation
	var base, limit uint64
	var data []byte
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		off := addr[i] - base
		if al == nil || off > limit {
			var o int64
			if al, o = w.globalBytes(in, i, addr[i], size, true); al == nil {
				continue
			}
			off, base, limit, data = uint64(o), al.addr, uint64(al.size-int64(size)), al.data
		}
		p := data[off:]
		for j := range m.data {
			*at[T](p[uint64(j)*step:]) = get[T](w, &m.data[j], i)
		}
		if al.undef != nil {
			al.defineShared(int64(off), int64(size))
		}
	}
}

// localBytes is the memory of a lane's access in its own local memory.
func (w *warp) localBytes(in *inst, lane int, addr uint64, size int) []byte {
	top, low := uint64(w.stackTop(lane)), uint64(w.fr.local)
	if addr > top || top-addr < uint64(size) || addr >= low && !w.fr.prog.holds(addr-low, size) {
		if w.again(bench.LocalOutOfBounds, in) {
			return nil
		}
		if addr <= top && top-addr >= uint64(size) {
			w.faultAt(bench.LocalOutOfBounds, in, lane, &addr, "local", "local address %#x, %d bytes: they are not all of one variable", addr, size)
		} else {
			w.faultAt(bench.LocalOutOfBounds, in, lane, &addr, "local", "local address %#x, %d bytes: the frame ends at %d", addr, size, top)
		}
		return nil
	}
	if addr&uint64(size-1) != 0 {
		if w.again(bench.MisalignedAddress, in) {
			return nil
		}
		w.faultAt(bench.MisalignedAddress, in, lane, &addr, "local", "local address %#x: want a multiple of %d", addr, size)
		return nil
	}
	return w.local[uint64(lane)*uint64(w.localSize)+addr:]
}

func loadLocal[T word](w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	loadLocalAt[T](w, in, &addr)
}

func loadLocalAt[T word](w *warp, in *inst, addr *lanes64) {
	m := in.mem
	var zero T
	step := int(unsafe.Sizeof(zero))
	size := m.bytes()
	w.countLocal(m, size)
	for l := w.mask; l != 0; l &= l - 1 {
		i := firstLane(l)
		p := w.localBytes(in, i, addr[i], size)
		if p == nil {
			w.zero(m, 1<<i)
			continue
		}
		for j := range m.data {
			put(w, &m.data[j], m.signed, i, *at[T](p[j*step:]))
		}
		if off := uint64(i)*uint64(w.localSize) + addr[i]; w.u != nil && w.localUndef.any(off, size) {
			w.undefineLoad(in, w.localUndef, ptx.SpaceLocal, -uint64(i)*uint64(w.localSize), i, off)
		}
	}
}

func storeLocal[T word](w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	storeLocalAt[T](w, in, &addr)
}

func storeLocalAt[T word](w *warp, in *inst, addr *lanes64) {
	m := in.mem
	var zero T
	step := int(unsafe.Sizeof(zero))
	size := m.bytes()
	w.countLocal(m, size)
	for l := w.mask; l != 0; l &= l - 1 {
		i := firstLane(l)
		p := w.localBytes(in, i, addr[i], size)
		if p == nil {
			continue
		}
		for j := range m.data {
			*at[T](p[j*step:]) = get[T](w, &m.data[j], i)
		}
		if w.localUndef != nil {
			w.localUndef.define(uint64(i)*uint64(w.localSize)+addr[i], size)
		}
	}
}

// loadParam reads a kernel's parameters.
func loadParam(w *warp, in *inst) {
	m := in.mem
	var addr lanes64
	w.addresses(m, &addr)
	data := w.b.l.params
	for l := w.mask; l != 0; l &= l - 1 {
		i := firstLane(l)
		for j := range m.data {
			at := addr[i] + uint64(j*m.size)
			var v uint64
			if at+uint64(m.size) <= uint64(len(data)) && at < uint64(len(data)) {
				for k := m.size - 1; k >= 0; k-- {
					v = v<<8 | uint64(data[at+uint64(k)])
				}
			}
			if m.signed {
				v = uint64(extend(v, 8*m.size))
			}
			if b := m.data[j].bits; b < 32 {
				v &= 1<<b - 1
			}
			put(w, &m.data[j], false, i, v)
		}
	}
}

// bySpace runs an access of generic addresses, one space after the other.
func (w *warp) bySpace(in *inst, shared, local, global func(w *warp, in *inst, addr *lanes64)) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	var sm, lm uint32
	for i, a := range addr {
		switch spaceOf(a) {
		case ptx.SpaceShared:
			sm |= 1 << i
			addr[i] = a - sharedWindow
		case ptx.SpaceLocal:
			lm |= 1 << i
			addr[i] = a - localWindow
		}
	}
	all := w.mask
	for _, part := range []struct {
		mask uint32
		run  func(w *warp, in *inst, addr *lanes64)
	}{{all & sm, shared}, {all & lm, local}, {all &^ (sm | lm), global}} {
		if part.mask == 0 {
			continue
		}
		w.mask = part.mask
		copied := addr
		part.run(w, in, &copied)
	}
	w.mask = all
}

func loadGeneric[T word](w *warp, in *inst) {
	w.bySpace(in, loadSharedAt[T], loadLocalAt[T], loadGlobalAt[T])
}

func storeGeneric[T word](w *warp, in *inst) {
	w.bySpace(in, storeSharedAt[T], storeLocalAt[T], storeGlobalAt[T])
}
