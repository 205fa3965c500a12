package vm

// A wait that may fail tells a thread something only if the thread looks at the
// answer: one that goes on whatever it was may as well have been told no.

// ignoredWaits finds the tests of mbarriers whose answer nothing looks at.
func (d *decoder) ignoredWaits(g *graph) {
	var matters []bool // of each value; made when needed
	for i, in := range d.insts {
		if in.mbar == nil || in.mbar.kind != mbarrierTest && in.mbar.kind != mbarrierTry {
			continue
		}
		if len(in.defs) == 0 {
			in.mbar.ignored = true
			continue
		}
		if matters == nil {
			matters = d.mattering()
		}
		in.mbar.ignored = !d.reachesUse(g, int32(i), in.defs[0], matters)
	}
}

// mattering is which values something depends on that others can see: where
// control goes, what is stored, what waits.
func (d *decoder) mattering() []bool {
	m := make([]bool, len(d.values))
	for changed := true; changed; {
		changed = false
		for i := len(d.insts) - 1; i >= 0; i-- {
			in := d.insts[i]
			if in.idle(m) {
				continue
			}
			for _, v := range in.uses {
				changed = changed || !m[v]
				m[v] = true
			}
		}
	}
	return m
}

// idle says whether an instruction only computes values that do not matter.
func (in *inst) idle(matters []bool) bool {
	if in.kind != kindPure || len(in.defs) == 0 {
		return false
	}
	for _, v := range in.defs {
		if matters[v] {
			return false
		}
	}
	return true
}

// reachesUse says whether what instruction i leaves in a value is used somewhere
// before it is overwritten.
func (d *decoder) reachesUse(g *graph, i, v int32, matters []bool) bool {
	seen := make([]bool, len(g.blocks))
	// scan goes through the rest of a block; it says whether it met a use, and
	// whether the value lives on.
	scan := func(from, end int32) (used, on bool) {
		for j := from; j < end; j++ {
			in := d.insts[j]
			if !in.idle(matters) {
				for _, u := range in.uses {
					if u == v {
						return true, false
					}
				}
			}
			for _, x := range in.defs {
				if x == v && in.guard < 0 {
					return false, false
				}
			}
		}
		return false, true
	}
	b := g.of[i]
	used, on := scan(i+1, g.blocks[b].end)
	if used || !on {
		return used
	}
	stack := append([]int32(nil), g.blocks[b].succ...)
	for len(stack) > 0 {
		b := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if int(b) == len(g.blocks) || seen[b] {
			continue
		}
		seen[b] = true
		used, on := scan(g.blocks[b].first, g.blocks[b].end)
		if used {
			return true
		}
		if on {
			stack = append(stack, g.blocks[b].succ...)
		}
	}
	return false
}
