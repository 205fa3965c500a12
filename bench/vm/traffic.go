package vm

import "github.com/kgen-dev/kgen/bench"

// pattern remembers what the last access of an instruction cost. In a loop the
// lanes' addresses move together, and what counts stays the same.
type pattern struct {
	rel   [warpSize]uint32 // addresses relative to the first active lane's
	mask  uint32
	low   uint32 // of the first address, where that matters
	set   bool
	count int64
	ideal int64
}

// matches says whether addresses look like the last ones.
func (p *pattern) matches(addr *lanes64, mask, low uint32) bool {
	if !p.set || p.mask != mask || p.low != low {
		return false
	}
	first := uint32(addr[firstLane(mask)])
	if mask == allLanes {
		for i := range addr {
			if uint32(addr[i])-first != p.rel[i] {
				return false
			}
		}
		return true
	}
	for m := mask; m != 0; m &= m - 1 {
		i := firstLane(m)
		if uint32(addr[i])-first != p.rel[i] {
			return false
		}
	}
	return true
}

func (p *pattern) remember(addr *lanes64, mask, low uint32, count, ideal int64) {
	first := uint32(addr[firstLane(mask)])
	for i := range addr {
		p.rel[i] = uint32(addr[i]) - first
	}
	p.mask, p.low, p.set, p.count, p.ideal = mask, low, true, count, ideal
}

// count adds a request to global memory: its bytes and distinct 32-byte
// sectors.
func (w *warp) count(addr *lanes64, size int, mask uint32, m *memOp, c *bench.AccessCount) {
	if mask == 0 {
		return
	}
	p := &w.patterns[m.id]
	low := uint32(addr[firstLane(mask)]) & 31
	if !p.matches(addr, mask, low) {
		p.remember(addr, mask, low, sectors(addr, size, mask), 0)
	}
	c.Requests++
	c.Bytes += popcount(mask) * int64(size)
	c.Sectors += p.count
}

// sectors is the number of distinct 32-byte sectors of a request.
func sectors(addr *lanes64, size int, mask uint32) int64 {
	var seen [2 * warpSize]uint64
	n := 0
	for m := mask; m != 0; m &= m - 1 {
		a := addr[firstLane(m)]
	next:
		for s := a >> 5; s <= (a+uint64(size)-1)>>5; s++ {
			for _, t := range seen[:n] {
				if t == s {
					continue next
				}
			}
			if n < len(seen) {
				seen[n] = s
				n++
			}
		}
	}
	return int64(n)
}

// countShared adds a request to shared memory: its wavefronts. Offsets from
// the base do, since the banks repeat every 128 bytes and the base is a
// multiple of that.
func (w *warp) countShared(m *memOp, off *lanes64, size int, mask uint32, c *bench.SharedCount) {
	if mask == 0 {
		return
	}
	p := &w.patterns[m.id]
	low := uint32(off[firstLane(mask)]) & 3
	if !p.matches(off, mask, low) {
		n, ideal := wavefronts(off, size, mask)
		p.remember(off, mask, low, n, ideal)
	}
	c.Requests++
	c.Bytes += popcount(mask) * int64(size)
	c.Wavefronts += p.count
	c.Ideal += p.ideal
}

// countSharedWords is countShared for all lanes.
func (w *warp) countSharedWords(m *memOp, off *lanes32, c *bench.SharedCount) {
	p := &w.patterns[m.id]
	size := 4 * len(m.data)
	same := p.set && p.mask == allLanes && p.low == 0
	if same {
		first := off[0]
		for i := range off {
			if off[i]-first != p.rel[i] {
				same = false
				break
			}
		}
	}
	if !same {
		wide := off.wide()
		n, ideal := wavefronts(&wide, size, allLanes)
		p.remember(&wide, allLanes, 0, n, ideal)
	}
	c.Requests++
	c.Bytes += int64(warpSize * size)
	c.Wavefronts += p.count
	c.Ideal += p.ideal
}

// wavefronts is how many passes over the 32 banks a request takes. Accesses of
// 8 and 16 bytes go in phases of 16 and 8 lanes; within a phase, lanes that
// read the same word share it.
func wavefronts(off *lanes64, size int, mask uint32) (n, ideal int64) {
	lanes := warpSize
	words := max(size/4, 1)
	if words > 1 {
		lanes = max(warpSize/words, 1)
	}
	for first := 0; first < warpSize; first += lanes {
		var list [warpSize]uint64 // distinct words of the phase
		k := 0
		for i := first; i < first+lanes; i++ {
			if mask>>i&1 == 0 {
				continue
			}
		next:
			for j := range words {
				word := off[i]>>2 + uint64(j)
				for _, x := range list[:k] {
					if x == word {
						continue next
					}
				}
				if k < len(list) {
					list[k] = word
					k++
				}
			}
		}
		if k == 0 {
			continue
		}
		var banks [32]int64
		most := int64(0)
		for _, word := range list[:k] {
			b := word & 31
			banks[b]++
			most = max(most, banks[b])
		}
		n += most
		ideal++
	}
	return n, ideal
}

// countLocal adds a request to local memory, whose words lie lane by lane.
func (w *warp) countLocal(size int) {
	c := &w.b.counts.local
	n := popcount(w.mask)
	c.Requests++
	c.Bytes += n * int64(size)
	c.Sectors += (n*int64(size) + 31) / 32
}
