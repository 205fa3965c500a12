package layout

// Stages says how to reduce a tile along one dimension: first inside a thread,
// then among lanes by butterflies, then among warps through shared memory.
type Stages struct {
	// Groups has, for each register of the slice, the registers of the operand that
	// are folded into it. Copies of an element appear once.
	Groups [][]int
	// Lanes are the masks of the butterfly shuffles (shfl.sync.bfly), one step each.
	// Afterwards every lane has its slice's result.
	Lanes []int
	// Warps are the bits of the warp's index along the dimension. When there are
	// none, no shared memory is needed.
	Warps []int
}

// Reduce plans the reduction of a tile of layout l along dim; the result has the
// layout l.Slice(dim). ok is false if a hardware bit moves along dim and another
// dimension at once, or parts of the warps lie along dim, so that no such plan covers the
// dimension: convert first.
func (l *Layout) Reduce(dim int) (stages Stages, ok bool) {
	var elements, slots span
	covered := 1
	// along reports whether hardware bit i steps along dim alone, to elements that
	// the bits before it do not reach.
	along := func(i int) bool {
		b := l.basis(i)
		if b.drop(dim) != 0 || !elements.add(uint64(b), 0) {
			return false
		}
		covered *= 2
		return true
	}
	n := len(l.reg)
	var fold, keep []int
	for i, b := range l.reg {
		switch {
		case along(i):
			fold = append(fold, 1<<i)
		case slots.add(uint64(b.drop(dim)), 0):
			keep = append(keep, 1<<i)
		}
	}
	for i := range LaneBits {
		if along(n + i) {
			stages.Lanes = append(stages.Lanes, 1<<i)
		}
	}
	for i := range l.warp {
		if along(n + LaneBits + i) {
			stages.Warps = append(stages.Warps, 1<<i)
		}
	}
	if covered != l.Sub(dim) || l.part.At(dim) != 0 {
		return Stages{}, false
	}
	stages.Groups = l.groups(dim, fold, keep)
	return stages, true
}

func (l *Layout) groups(dim int, fold, keep []int) [][]int {
	slice := l.Slice(dim)
	members := l.repeat[dim] << len(fold)
	flat := make([]int, 0, slice.Registers()*members)
	groups := make([][]int, slice.Registers())
	for s := range groups {
		c := slice.repeatCoord(s >> len(keep)).insert(dim)
		base := combine(keep, s)
		start := len(flat)
		for r := range l.repeat[dim] {
			copyNumber := l.copyOf(c | axis(dim, r*l.Sub(dim)))
			for f := range 1 << len(fold) {
				flat = append(flat, copyNumber<<len(l.reg)|base|combine(fold, f))
			}
		}
		groups[s] = flat[start:len(flat):len(flat)]
	}
	return groups
}

// combine ORs the masks that the set bits of n choose.
func combine(masks []int, n int) int {
	out := 0
	for i, m := range masks {
		out |= m & -(n >> i & 1)
	}
	return out
}
