package vm

import (
	"github.com/kgen-dev/kgen/bench"
)

// trafficKind is what an instruction does to a memory.
type trafficKind uint8

// Kinds of traffic.
const (
	noTraffic trafficKind = iota
	globalLoads
	globalStores
	globalCopies
	globalWrites
	globalReductions
	globalAtomics
	constLoads
	localAccesses
	sharedLoads
	sharedStores
	sharedMatrix
	sharedCopies
	sharedAtomics
	sharedOperands
)

// medium is a memory that traffic goes to.
type medium uint8

const (
	inGlobal medium = iota // and constant memory
	inShared
	inLocal
	numMedia
)

// medium is the memory that a kind of traffic goes to.
func (k trafficKind) medium() medium {
	switch {
	case k >= sharedLoads:
		return inShared
	case k == localAccesses:
		return inLocal
	}
	return inGlobal
}

// traffic is what one memory instruction did to one memory. Instructions with
// generic addresses may do something to each.
type traffic struct {
	kind     trafficKind
	requests int64
	bytes    int64
	units    int64 // sectors, or wavefronts
	ideal    int64 // wavefronts without conflicts
}

func (t *traffic) add(o *traffic) {
	if o.requests == 0 {
		return
	}
	t.kind = o.kind
	t.requests += o.requests
	t.bytes += o.bytes
	t.units += o.units
	t.ideal += o.ideal
}

func (t *traffic) access() *bench.AccessCount {
	return &bench.AccessCount{Requests: t.requests, Bytes: t.bytes, Sectors: t.units}
}

func (t *traffic) shared() *bench.SharedCount {
	return &bench.SharedCount{Requests: t.requests, Bytes: t.bytes, Wavefronts: t.units, Ideal: t.ideal}
}

// addTo adds the traffic to a launch's counters.
func (t *traffic) addTo(c *bench.Counters) {
	g, s := &c.Global, &c.Shared
	switch t.kind {
	case globalLoads:
		g.Loads.Add(t.access())
	case globalStores:
		g.Stores.Add(t.access())
	case globalCopies:
		g.Copies.Add(t.access())
	case globalWrites, globalReductions:
		g.Writes.Add(t.access())
	case globalAtomics:
		g.Atomics.Add(t.access())
	case constLoads:
		c.Const.Add(t.access())
	case localAccesses:
		c.Local.Add(t.access())
	case sharedLoads:
		s.Loads.Add(t.shared())
	case sharedStores:
		s.Stores.Add(t.shared())
	case sharedMatrix:
		s.Matrix.Add(t.shared())
	case sharedCopies:
		s.Copies.Add(t.shared())
	case sharedAtomics:
		s.Atomics.Add(t.shared())
	case sharedOperands:
		s.Operands.Add(t.shared())
	}
}

// requested counts one request of an instruction.
func (b *block) requested(id int32, kind trafficKind, bytes, units, ideal int64) {
	t := &b.traffic[id][kind.medium()]
	t.kind = kind
	t.requests++
	t.bytes += bytes
	t.units += units
	t.ideal += ideal
}

// pattern remembers what the last access of an instruction cost. In a loop the
// lanes' addresses move together, and what counts stays the same.
type pattern struct {
	rel    lanes32 // addresses relative to the first active lane's
	mask   uint32
	low    uint32 // of the first address, where that matters
	to     medium
	set    bool
	count  int64
	ideal  int64
	runs   []run  // of global memory
	extent extent // where all lanes are active
	logged uint32 // barriers of the block, and 1, when it was last listed by the race detector
}

// run is a run of bytes, from a distance to the first active lane's address.
type run struct{ at, n int64 }

// matches says whether addresses look like the last ones.
func (p *pattern) matches(addr *lanes64, to medium, mask, low uint32) bool {
	if !p.set || p.to != to || p.mask != mask || p.low != low {
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

// changing is the pattern of an instruction, which is to change: another one where
// the race detector still needs what it was.
func (w *warp) changing(m *memOp) *pattern {
	p := w.patterns[m.id]
	if r := w.b.race; r != nil && p.logged == r.epoch+1 {
		p = new(pattern)
		w.patterns[m.id] = p
	}
	return p
}

func (p *pattern) remember(addr *lanes64, to medium, mask, low uint32, count, ideal int64) {
	first := uint32(addr[firstLane(mask)])
	for i := range addr {
		p.rel[i] = uint32(addr[i]) - first
	}
	p.to, p.mask, p.low, p.set, p.count, p.ideal = to, mask, low, true, count, ideal
	p.extent = extent{}
}

// count adds a request to global memory: its bytes and distinct 32-byte
// sectors, and which they are. Addresses count from a base that is a multiple
// of a sector.
func (w *warp) count(addr *lanes64, base uint64, size int, mask uint32, m *memOp, kind trafficKind) {
	if mask == 0 {
		return
	}
	p := w.patterns[m.id]
	first := addr[firstLane(mask)]
	low := uint32(first) & (bench.SectorBytes - 1)
	if !p.matches(addr, inGlobal, mask, low) {
		p = w.changing(m)
		p.runs = distinct(p.runs[:0], addr, int64(size), mask)
		p.remember(addr, inGlobal, mask, low, sectors(p.runs, int64(low)), 0)
	}
	w.countAlike(p, base+first, size, m, kind)
}

// countAlike adds a request to global memory whose lanes are as far apart as the
// last time, from the first one's address on.
func (w *warp) countAlike(p *pattern, first uint64, size int, m *memOp, kind trafficKind) {
	w.b.requested(m.id, kind, popcount(p.mask)*int64(size), p.count, 0)
	if kind == constLoads {
		return
	}
	w.b.trace.newRequest()
	for _, r := range p.runs {
		w.reach(m, first+uint64(r.at), uint64(r.n), kind)
	}
}

// distinct is the bytes of a request, each once of a request, in order of their addresses.
func distinct(list []run, addr *lanes64, size int64, mask uint32) []run {
	var at [warpSize]int64
	n := 0
	first := addr[firstLane(mask)]
	for m := mask; m != 0; m &= m - 1 {
		d := int64(addr[firstLane(m)] - first)
		i := n
		for ; i > 0 && at[i-1] > d; i-- {
			at[i] = at[i-1]
		}
		at[i] = d
		n++
	}
	for _, d := range at[:n] {
		if k := len(list); k > 0 && list[k-1].at+list[k-1].n >= d {
			list[k-1].n = max(list[k-1].n, d+size-list[k-1].at)
			continue
		}
		list = append(list, run{d, size})
	}
	return list
}

// sectors is the number of distinct 32-byte sectors of a request whose first
// active lane is that far into one.
func sectors(list []run, low int64) (n int64) {
	done := int64(-1 << 62) // the last sector that was counted
	for _, r := range list {
		from, to := max((low+r.at)>>5, done+1), (low+r.at+r.n-1)>>5
		n += to - from + 1
		done = to
	}
	return n
}

// countShared adds a request to shared memory: its wavefronts. Offsets from
// the base do, since the banks repeat every 128 bytes and the base is a
// multiple of that.
func (w *warp) countShared(m *memOp, off *lanes64, size int, mask uint32, kind trafficKind) {
	if mask == 0 {
		return
	}
	p := w.patterns[m.id]
	low := uint32(off[firstLane(mask)]) & 3
	if !p.matches(off, inShared, mask, low) {
		n, ideal := wavefronts(off, size, mask)
		p = w.changing(m)
		p.remember(off, inShared, mask, low, n, ideal)
	}
	w.b.requested(m.id, kind, popcount(mask)*int64(size), p.count, p.ideal)
}

// countSharedWords is countShared for words of all lanes, whose addresses are good.
func (w *warp) countSharedWords(m *memOp, off *lanes32, kind trafficKind) {
	p := w.patterns[m.id]
	size := 4 * len(m.data)
	wide := off.wide()
	if !p.matches(&wide, inShared, allLanes, 0) {
		n, ideal := wavefronts(&wide, size, allLanes)
		p = w.changing(m)
		p.remember(&wide, inShared, allLanes, 0, n, ideal)
	}
	p.extent.measure(&p.rel, &wide, uint32(size))
	w.b.requested(m.id, kind, int64(warpSize*size), p.count, p.ideal)
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
func (w *warp) countLocal(m *memOp, size int) {
	bytes := popcount(w.mask) * int64(size)
	w.b.requested(m.id, localAccesses, bytes, (bytes+bench.SectorBytes-1)/bench.SectorBytes, 0)
}

// traffics is the traffic of a kernel's memory instructions, by their numbers.
type traffics [][numMedia]traffic

func (t traffics) add(o traffics) {
	for i := range o {
		for j := range o[i] {
			t[i][j].add(&o[i][j])
		}
	}
}
