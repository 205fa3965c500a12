package vm

import "github.com/kgen-dev/kgen/bench"

// What strict-proxy adds: order between the generic and the async proxy, and
// between threads that use tensor memory, that PTX asks a fence for and hardware
// keeps without.

var checkStrict = mustBit(StrictProxy)

func (r *raceState) strict() bool { return r.b.l.checks.has(checkStrict) }

// ordinary reports ordinary accesses to a range that come before an asynchronous
// write of it, with no proxy fence between them.
func (r *raceState) ordinary(at *side, s span) {
	cells := r.cells(s.off, int(s.end-s.off))
	for j := range cells {
		c := &cells[j]
		at.addr = r.b.address(s.off + uint64(j)<<r.grain)
		blame := func(x stamp, wrote bool) bool {
			if !r.hidden(x, at) {
				return false
			}
			e := &r.events[x.event()]
			r.reportAs(bench.MissingProxyFence, at, e.src, int(e.warp), x.lane(), verb(wrote)+" it the ordinary way, and no fence.proxy.async comes between")
			return true
		}
		if blame(c.w, true) || c.r&specialStamp == 0 && blame(c.r, false) {
			return
		}
		if c.r&specialStamp == 0 {
			continue
		}
		for i := r.current(&r.readers, c); i != 0; i = r.readers.all[i].next {
			if blame(r.readers.all[i].s, false) {
				return
			}
		}
	}
}

// initUnseen reports a copy that tells an mbarrier whose initialisation the async
// proxy may not see.
func (r *raceState) initUnseen(c *bulkCopy, at *side) {
	m := r.b.mbarriers[c.mbar]
	at.addr = r.b.address(uint64(c.mbar))
	if m == nil || m.fenced || !r.hidden(m.init, at) {
		return
	}
	e := &r.events[m.init.event()]
	r.reportAs(bench.MissingProxyFence, at, e.src, int(e.warp), m.init.lane(), "initialised the mbarrier there, and no fence.mbarrier_init or fence.proxy.async makes that visible to the copy that tells it")
}

// fenceInits notes that lanes made their initialisations visible.
func (r *raceState) fenceInits(w *warp, lanes uint32) {
	for _, m := range r.b.mbarriers {
		if m.init == 0 {
			continue
		}
		if e := &r.events[m.init.event()]; int(e.warp) == w.index && lanes>>m.init.lane()&1 != 0 {
			m.fenced = true
		}
	}
}

// afterSync is what a thread knew at its last tcgen05.fence::after_thread_sync.
type afterSync struct {
	own   vclock
	epoch uint32 // barriers of the whole block, plus 1; 0 is no fence
}

// fenceTensor notes a tcgen05.fence.
func (r *raceState) fenceTensor(w *warp, lanes uint32, before bool) {
	if !before {
		if w.afterSync == nil {
			w.afterSync = new([warpSize]afterSync)
		}
		for l := lanes; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.afterSync[i] = afterSync{w.clock.own[i], r.epoch + 1}
		}
		return
	}
	if w.cta.tensor == nil {
		return
	}
	for _, u := range w.cta.tensor.uses {
		if x := u.work; x.w == w && x.fenced == 0 && lanes>>x.lane&1 != 0 {
			x.fenced = w.clock.tick
		}
	}
}

// tensorFenced says whether the fences are there that PTX asks for between uses of
// tensor memory by different warps, which their order needs. Loads and stores are a
// whole warp's, for which its first lane stands.
func (r *raceState) tensorFenced(x, y *tensorWork) bool {
	if x.w == y.w {
		return true
	}
	if x.agent == 0 && x.fenced == 0 {
		return false
	}
	if y.w.afterSync == nil {
		return false
	}
	s := &y.w.afterSync[y.lane]
	switch {
	case s.epoch == 0:
		return false
	case x.agent != 0:
		return x.settled && s.epoch > x.settledEpoch || s.own.knows(int(x.agent), 0, x.doneTick)
	}
	return s.epoch > x.epoch+1 || s.own.knows(x.w.index, x.lane, x.fenced)
}
