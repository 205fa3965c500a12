package vm

import (
	"sync"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// A tensor map that a kernel writes is seen by copies only once some thread has acquired
// it by fence.proxy.tensormap: PTX ISA 9.7.13.4.

// madeMaps are the places in global memory to which kernels of any launch have published
// tensor maps.
type madeMaps struct {
	mu sync.Mutex
	at map[uint64]bool
}

func (m *madeMaps) add(addr uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = map[uint64]bool{}
	}
	m.at[addr] = true
}

func (m *madeMaps) has(addr uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[addr]
}

// acquireMaps notes the tensor maps that lanes acquire.
func (r *raceState) acquireMaps(w *warp, in *inst, lanes uint32) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	if r.maps == nil {
		r.maps = map[uint64]bool{}
	}
	for l := lanes; l != 0; l &= l - 1 {
		r.maps[addr[firstLane(l)]] = true
	}
}

// unacquired reports a tensor map that the block's threads wrote, or that kernels published,
// and that none of them has acquired.
func (r *raceState) unacquired(c *bulkCopy, addr uint64) {
	if r.maps[addr] {
		return
	}
	cells := r.b.l.kern.globalGrain
	for a := addr; a < addr+TensorMapSize; a += 1 << cells {
		s := r.pastWriter(a)
		if p := r.pageAt(a, 1); p != nil && p.cells[a&shadowMask>>cells].w != 0 {
			s = p.cells[a&shadowMask>>cells].w
		}
		if s == 0 || r.events[s.event()].tick == 0 {
			continue
		}
		e := &r.events[s.event()]
		at := side{w: c.w, in: c.in, lane: c.lane, space: ptx.SpaceGlobal, addr: a}
		r.reportAs(bench.MissingProxyFence, &at, e.src, int(e.warp), s.lane(), "wrote it, a tensor map that nobody in the block has acquired by fence.proxy.tensormap")
		return
	}
	if r.b.l.dev.made.has(addr) {
		c.w.faultAt(bench.MissingProxyFence, c.in, c.lane, &addr, "global", "another block or launch made this tensor map, and nobody in the block has acquired it by fence.proxy.tensormap")
	}
}
