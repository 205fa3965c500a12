package vm

import "github.com/kgen-dev/kgen/bench"

// ld.global.nc may give what memory held at any time since the launch began, whatever
// orders it: it is for what no thread of the launch writes. What is written after the last
// such read, as by a kernel that works in place, does no harm.

// staleRead is what is wrong with a write that a read by the read-only path came after.
const staleRead = "wrote it before in the same launch, which a read by the read-only path (ld.global.nc) may not see"

// staleReads reports a read by the read-only path of what the block's threads wrote
// before. What nothing orders is reported as that.
func (r *raceState) staleReads(cells []cell, at *side) {
	for _, c := range cells {
		if c.w != 0 && c.w&specialStamp == 0 && r.before(c.w, at.w, at.lane) {
			e := &r.events[c.w.event()]
			r.reportAs(bench.GlobalRace, at, e.src, int(e.warp), c.w.lane(), staleRead)
			return
		}
	}
}

// stale reports a read by the read-only path of what other blocks wrote, or its own before
// it let the page go, if something orders the two.
func (m *meeter) stale(word int) {
	o := &m.x.line
	found := m.staleFrom(o.w[word])
	for i := 0; i < o.parts && !found; i++ {
		found = m.staleFrom(o.older[i][word])
	}
}

func (m *meeter) staleFrom(t trace) bool {
	if t == 0 || t.bytes()&m.mine.bytes() == 0 {
		return false
	}
	a, e := m.x.access(t), &m.r.events[m.id]
	block := int64(a.block)
	if block != m.r.b.order && (e.remote == nil || !a.knownTo(e.remote[m.mine.lane()].of(block), t.lane())) {
		return false
	}
	m.report(bench.GlobalRace, a, t.lane(), staleRead)
	return true
}
