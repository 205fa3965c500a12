package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// strong makes an access one that other threads may wait for or be waited for
// by: in global memory it needs the block's turn.
func (d *decoder) strong(in *inst) {
	in.kind = kindControl
	in.ctl = strongAccess
}

func strongAccess(w *warp, in *inst) {
	m := w.condition(in)
	if m == 0 {
		w.pc++
		return
	}
	if in.mem.space != ptx.SpaceShared && !w.b.mayShare() {
		w.retry(stopTurn)
		return
	}
	w.runMasked(in, m)
	w.pc++
	if in.rule == ruleLoad {
		w.poll(in)
	} else {
		w.b.touched()
	}
}

// runMasked runs a control instruction's function for some lanes.
func (w *warp) runMasked(in *inst, m uint32) {
	saved := w.mask
	w.mask = m
	if w.undefs > 0 {
		undefined(w, in)
	} else {
		in.fn[modeFull](w, in)
	}
	w.mask = saved
	w.setMode()
}

// pollGap is how close together two polls are when they are the same loop's.
const pollGap = 256

// poll notes that the warp looked at something that others change. Doing so
// again and again, it lets the others run.
func (w *warp) poll(in *inst) {
	if w.lastPoll == in && w.executed-w.polledAt < pollGap {
		w.stop = stopYield
		if in.mem == nil || in.mem.space != ptx.SpaceShared {
			w.b.polled = true
		}
	}
	w.lastPoll, w.polledAt = in, w.executed
}
