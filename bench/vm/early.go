package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
)

// The machine runs launches one after the other. What an early one does before its wait,
// it is held against what the launches that may still run then have read and written.

// gridWait is griddepcontrol.wait. A block has waited once any of its threads has: how the
// others learn of it is not looked into.
func gridWait(w *warp, _ *inst) { w.b.waited = true }

// hasty reports an access of a block that has not waited for the launch before, where that
// touched the same bytes of an allocation and one of the two wrote.
func (w *warp) hasty(m *memOp, a *allocation, off, n int64, kind trafficKind) {
	l := w.b.l
	if !a.before.wrote(off, n) && !(kind.writes() && a.before.had(off, n)) {
		return
	}
	act := "reads"
	if kind.writes() {
		act = "writes"
	}
	src := l.kern.memAt[m.id].in
	what := fmt.Sprintf("%s global address %#x, %s, which the launch before uses and may not be done with: want griddepcontrol.wait first", act, a.addr+uint64(off), l.dev.mem.describe(a.addr+uint64(off)))
	w.reportOperands(bench.GlobalRace, faultKey{class: bench.GlobalRace, in: src}, firstLane(w.mask), w, what)
}

// before is what launches that may still run have touched of an allocation: a bit for each
// byte; nil for none.
type before struct{ read, written []uint64 }

func (b *before) wrote(off, n int64) bool { return anyBit(b.written, off, n) }

func (b *before) had(off, n int64) bool { return anyBit(b.read, off, n) || b.wrote(off, n) }

func anyBit(words []uint64, off, n int64) bool {
	for i := off; words != nil && i < off+n; i++ {
		if words[i>>6]>>(i&63)&1 != 0 {
			return true
		}
	}
	return false
}

// merged adds bits to others.
func merged(old, more []uint64) []uint64 {
	if old == nil || more == nil {
		return append(old, more...)
	}
	for i, w := range more {
		old[i] |= w
	}
	return old
}
