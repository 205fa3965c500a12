package vm

// A loop that polls and looks at a clock, as libcu++'s waits do before Hopper, never comes
// back to the same state: its registers say what time it is. So values that follow from a
// clock don't count where a block's state is compared, once it has waited for long.

// patience is for how much of its own time, in nanoseconds, a block must have come back to
// the same state but for the time of day before it counts as stuck.
const patience = 10_000_000_000

// findTimed finds the values that follow from a clock, by data.
func (d *decoder) findTimed() []bool {
	if len(d.clocks) == 0 {
		return nil
	}
	timed := make([]bool, len(d.values))
	mark := func(in *inst) (changed bool) {
		for _, v := range in.defs {
			changed = changed || !timed[v]
			timed[v] = true
		}
		return changed
	}
	for _, in := range d.clocks {
		mark(in)
	}
	for again := true; again; {
		again = false
		for _, in := range d.insts {
			for _, v := range in.uses {
				if timed[v] && mark(in) {
					again = true
					break
				}
			}
		}
	}
	return timed
}

// follows says whether a slot holds a value that follows from a clock.
func (p *program) follows(slot int32) bool { return p.timed != nil && p.timed[slot] }

// time is what clocks show, in nanoseconds: what the warp has executed and slept.
func (w *warp) time() int64 { return w.executed + w.slept }

// time is that of the warp which is furthest.
func (b *block) time() int64 {
	t := int64(0)
	for _, w := range b.warps {
		t = max(t, w.time())
	}
	return t
}

// timed says whether a warp of the block looks at a clock where it is.
func (b *block) timed() bool {
	for _, w := range b.warps {
		if w.fr != nil && w.fr.prog.timed != nil {
			return true
		}
		for i := range w.paths {
			if w.paths[i].fr.prog.timed != nil {
				return true
			}
		}
	}
	return false
}
