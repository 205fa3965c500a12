package vm

import "unsafe"

// In a loop an instruction's lanes mostly move together: each as far from the
// first as the last time. One comparison of those distances then stands for all
// that is to be known of 32 addresses, and lanes side by side are moved as one.

// extent is what the distances of words from the first lane's say.
type extent struct {
	known     bool
	least     int64  // of the distances
	most      int64  // of the distances, and the bytes of an access
	alignment uint32 // bits that are set in some distance
	eights    [warpSize / 8]eight
}

// eight says how the words of eight lanes lie.
type eight uint8

const (
	apart  eight = iota
	beside       // one after the other
	same         // all in one place
)

// measure works out the extent of distances between addresses, if it isn't known.
func (e *extent) measure(rel *lanes32, addr *lanes64, size uint32) {
	if e.known {
		return
	}
	*e = extent{known: true}
	for i, r := range rel {
		d := int64(int32(r))
		if int64(addr[i]-addr[0]) != d {
			e.known = false
			return
		}
		e.least, e.most = min(e.least, d), max(e.most, d+int64(size))
		e.alignment |= r
	}
	for g := range e.eights {
		e.eights[g] = beside
		if rel[8*g] == rel[8*g+1] {
			e.eights[g] = same
		}
		for i := 8 * g; i < 8*g+7; i++ {
			switch step := rel[i+1] - rel[i]; {
			case e.eights[g] == same && step != 0, e.eights[g] == beside && step != size:
				e.eights[g] = apart
			}
		}
		if e.eights[g] == beside && size != 4 {
			e.eights[g] = apart
		}
	}
}

// fits says whether the lanes' accesses lie in n bytes, the first lane's at an
// offset of them. The two may wrap.
func (e *extent) fits(first, n uint64) bool {
	return first <= n && int64(first)+e.least >= 0 && int64(first)+e.most <= int64(n)
}

// alike says whether an instruction's lanes are as far apart as the last time, and
// gives the first one's address.
func (p *pattern) alike(w *warp, m *memOp) (addr uint64, ok bool) {
	if m.wide {
		a := &w.q[m.base]
		return a[0] + m.offset, sameSteps64(a, &p.rel)
	}
	a := &w.r[m.base]
	return uint64(a[0] + uint32(m.offset)), sameSteps32(a, &p.rel)
}

func sameSteps32(a, rel *lanes32) bool {
	if vectorLanes {
		return sameSteps32Vector(a, rel)
	}
	var bad uint32
	for i := range a {
		bad |= a[i] - a[0] ^ rel[i]
	}
	return bad == 0
}

func sameSteps64(a *lanes64, rel *lanes32) bool {
	if vectorLanes {
		return sameSteps64Vector(a, rel)
	}
	var bad uint64
	for i := range a {
		bad |= a[i] - a[0] ^ uint64(int32(rel[i]))
	}
	return bad == 0
}

// sharedAlike is the first lane's offset in shared memory and the pattern of an
// access that is like the last one and good; nil if it is not.
func (w *warp) sharedAlike(m *memOp) (uint64, *pattern) {
	p := w.patterns[m.id]
	if !p.extent.known || p.to != inShared || w.mask != allLanes || m.frame {
		return 0, nil
	}
	addr, ok := p.alike(w, m)
	off := addr - w.cta.window
	if !ok || (uint32(addr)|p.extent.alignment)&uint32(4*len(m.data)-1) != 0 || !p.extent.fits(off, uint64(w.b.l.sharedSize)) {
		return 0, nil
	}
	return off + w.cta.low, p
}

// globalAlike is the same in global memory: the first lane's offset in an
// allocation.
func (w *warp) globalAlike(m *memOp, write bool) (*allocation, uint64, *pattern) {
	p := w.patterns[m.id]
	if !p.extent.known || p.to != inGlobal || w.mask != allLanes || m.frame || !m.wide || w.b.race != nil {
		return nil, 0, nil
	}
	addr, ok := p.alike(w, m)
	if !ok || uint32(addr)&31 != p.low || (uint32(addr)|p.extent.alignment)&uint32(4*len(m.data)-1) != 0 {
		return nil, 0, nil
	}
	al := w.b.l.dev.mem.find(addr)
	if al == nil || write && al.constant || al.undef != nil || !p.extent.fits(addr-al.addr, uint64(al.size)) {
		return nil, 0, nil
	}
	return al, addr - al.addr, p
}

// offsets are the lanes' own.
func (p *pattern) offsets(first uint32) (off lanes32) {
	for i, r := range p.rel {
		off[i] = first + r
	}
	return off
}

// gather loads a word for each lane.
func (p *pattern) gather(d *lanes32, first unsafe.Pointer) {
	for g, how := range p.extent.eights {
		to := (*[8]uint32)(d[8*g:])
		rel := (*[8]uint32)(p.rel[8*g:])
		from := unsafe.Add(first, int32(rel[0]))
		switch how {
		case beside:
			move32(unsafe.Pointer(to), from)
		case same:
			v := *(*uint32)(from)
			*to = [8]uint32{v, v, v, v, v, v, v, v}
		default:
			for i := range to {
				to[i] = *(*uint32)(unsafe.Add(first, int32(rel[i])))
			}
		}
	}
}

// move32 copies 32 bytes.
func move32(to, from unsafe.Pointer) {
	t, f := (*[4]uint64)(to), (*[4]uint64)(from)
	a, b, c, d := f[0], f[1], f[2], f[3]
	t[0], t[1], t[2], t[3] = a, b, c, d
}

// scatter stores a word for each lane; the last of those at the same place stays.
func (p *pattern) scatter(s *lanes32, first unsafe.Pointer) {
	for g, how := range p.extent.eights {
		from := (*[8]uint32)(s[8*g:])
		rel := (*[8]uint32)(p.rel[8*g:])
		to := unsafe.Add(first, int32(rel[0]))
		switch how {
		case beside:
			move32(to, unsafe.Pointer(from))
		case same:
			*(*uint32)(to) = from[7]
		default:
			for i := range from {
				*(*uint32)(unsafe.Add(first, int32(rel[i]))) = from[i]
			}
		}
	}
}

// any says whether some byte of the lanes' n words is not zero.
func (p *pattern) any(first unsafe.Pointer, n int) bool {
	var some uint64
	for g, how := range p.extent.eights {
		rel := (*[8]uint32)(p.rel[8*g:])
		from := unsafe.Add(first, int32(rel[0]))
		switch how {
		case beside:
			q := (*[4]uint64)(from)
			some |= q[0] | q[1] | q[2] | q[3]
		case same:
			for j := range n {
				some |= uint64(*(*uint32)(unsafe.Add(from, 4*j)))
			}
		default:
			for i := range rel {
				for j := range n {
					some |= uint64(*(*uint32)(unsafe.Add(first, int(int32(rel[i]))+4*j)))
				}
			}
		}
	}
	return some != 0
}
