package vm

// A store that was refused for its address leaves bytes as they were. Who reads them
// finds nothing there that anybody wrote, but the one defect is the address.

// meant is what an access of a power of two of bytes may have been meant for, where its
// address is no multiple of that: the bytes it names and those of the multiple below.
func meant(addr uint64, size int) (from uint64, n int) {
	off := addr & uint64(size-1)
	return addr - off, size + int(off)
}

// missedShared takes the bytes that lanes were to store in shared memory for written.
func (w *warp) missedShared(addr *lanes64, size int, lanes uint32) {
	u := w.b.undef
	if u == nil {
		return
	}
	for l := lanes; l != 0; l &= l - 1 {
		from, n := meant(addr[firstLane(l)], size)
		if off, c := w.find(from, n, true); c != nil {
			u.define(off, n)
		}
	}
}

// missedGlobal is missedShared for global memory.
func (w *warp) missedGlobal(addr *lanes64, size int, lanes uint32) {
	l := w.b.l
	if !l.checks.has(checkUndefined) {
		return
	}
	l.before.memory.Lock()
	defer l.before.memory.Unlock()
	for m := lanes; m != 0; m &= m - 1 {
		for a, n := meant(addr[firstLane(m)], size); n > 0; a, n = a+1, n-1 {
			al := l.dev.mem.find(a)
			if al == nil || a-al.addr >= uint64(al.size) {
				continue
			}
			if al.undef != nil {
				al.defineShared(int64(a-al.addr), 1)
			}
			if r := w.b.race; r != nil {
				if p := r.pages.find(a >> shadowBits); p != nil {
					k := a & shadowMask
					p.undef[k>>6] &^= 1 << (k & 63)
				}
			}
		}
	}
}
