package vm

import "math/bits"

// graph is a function's control flow.
type graph struct {
	blocks []basicBlock
	of     []int32 // block of each instruction
}

// basicBlock is a straight run of instructions [first, end).
type basicBlock struct {
	first, end int32
	succ       []int32 // exit is the index len(blocks)
	pred       []int32
}

// buildGraph cuts decoded instructions into blocks. Labels stand as
// instructions of their own and start blocks.
func buildGraph(insts []*inst) *graph {
	g := &graph{of: make([]int32, len(insts))}
	start := int32(0)
	cut := func(end int32) {
		if end > start {
			g.blocks = append(g.blocks, basicBlock{first: start, end: end})
			start = end
		}
	}
	at := map[any]int32{} // label -> instruction
	for i, in := range insts {
		if in.isLabel() {
			cut(int32(i))
			at[in.jump.label] = int32(i)
		}
		if in.flow != flowNext {
			cut(int32(i) + 1)
		}
	}
	cut(int32(len(insts)))
	for b := range g.blocks {
		for i := g.blocks[b].first; i < g.blocks[b].end; i++ {
			g.of[i] = int32(b)
		}
	}
	exit := int32(len(g.blocks))
	for b := range g.blocks {
		blk := &g.blocks[b]
		last := insts[blk.end-1]
		link := func(to int32) {
			for _, s := range blk.succ {
				if s == to {
					return
				}
			}
			blk.succ = append(blk.succ, to)
			if to != exit {
				g.blocks[to].pred = append(g.blocks[to].pred, int32(b))
			}
		}
		switch {
		case last.flow == flowBranch && last.jump.label != nil:
			link(g.of[at[last.jump.label]])
		case last.flow == flowBranch:
			for _, l := range last.jump.labels {
				link(g.of[at[l]])
			}
		case last.flow == flowLeave:
			link(exit)
		}
		if last.flow == flowNext || last.guard >= 0 {
			link(int32(b) + 1)
		}
	}
	return g
}

func (in *inst) isLabel() bool { return in.jump != nil && in.flow == flowNext }

// onlyLeaves says whether a block does nothing but leave the function.
func (b *basicBlock) onlyLeaves(insts []*inst) bool {
	for i := b.first; i < b.end; i++ {
		if in := insts[i]; !in.isLabel() {
			return in.flow == flowLeave && in.guard < 0
		}
	}
	return false
}

// postDominators finds where the paths from each block meet again: its
// immediate post-dominator, the nearest block that every path to the function's
// end runs through. It is -1 where that is the end itself, or where no path
// leads there.
//
// A way out in the middle of a function would make the end the only such block
// for all that is before it. But lanes that leave are waited for by nobody: so
// of the ways out only the last in the text counts for the blocks that lead to
// it, of the others the last for those that lead there, and so on. (Compilers
// too let what leaves early go, and bring the rest together before a barrier.)
func (g *graph) postDominators(insts []*inst) []int32 {
	n := int32(len(g.blocks))
	d := &dominance{g: g, leaves: make([]bool, n), idom: make([]int32, n+1), number: make([]int32, n+1), seen: make([]bool, n+1)}
	var exits []int32
	for b := range g.blocks {
		d.leaves[b] = g.blocks[b].onlyLeaves(insts)
	}
	for b := range g.blocks {
		d.idom[b] = -1
		for _, s := range g.blocks[b].succ {
			if s == n || d.leaves[s] {
				exits = append(exits, int32(b))
				break
			}
		}
	}
	for i := len(exits) - 1; i >= 0; i-- {
		if e := exits[i]; !d.seen[e] && !d.leaves[e] {
			d.leadingTo(e)
		}
	}
	for b := range d.idom {
		if d.idom[b] == n {
			d.idom[b] = -1
		}
	}
	return d.idom[:n]
}

// dominance is the state of postDominators.
type dominance struct {
	g            *graph
	leaves       []bool // blocks that only leave
	idom, number []int32
	seen         []bool // those whose way out is chosen
}

// leadingTo finds the post-dominators of the blocks that lead to one that
// leaves the function, and have no way out yet. (The iterative algorithm of
// Cooper, Harvey and Kennedy on the reversed graph.)
func (d *dominance) leadingTo(exit int32) {
	n := int32(len(d.g.blocks))
	order := d.order(exit)
	d.idom[n] = n
	meet := func(a, b int32) int32 {
		for a != b {
			for d.number[a] > d.number[b] {
				a = d.idom[a]
			}
			for d.number[b] > d.number[a] {
				b = d.idom[b]
			}
		}
		return a
	}
	for changed := true; changed; {
		changed = false
		for _, b := range order {
			at := int32(-1)
			if b == exit {
				at = n
			}
			for _, s := range d.g.blocks[b].succ {
				switch {
				case s == n || d.idom[s] < 0: // another way out, or nothing known yet
				case at < 0:
					at = s
				default:
					at = meet(s, at)
				}
			}
			if at != d.idom[b] {
				d.idom[b] = at
				changed = true
			}
		}
	}
}

// order numbers the blocks that lead to one, on the reversed graph and in
// reverse postorder, after the end.
func (d *dominance) order(exit int32) []int32 {
	type visit struct {
		block int32
		next  int
	}
	var order []int32
	stack := []visit{{block: exit}}
	d.seen[exit] = true
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		preds := d.g.blocks[v.block].pred
		if v.next == len(preds) {
			order = append(order, v.block)
			stack = stack[:len(stack)-1]
			continue
		}
		p := preds[v.next]
		v.next++
		if !d.seen[p] {
			d.seen[p] = true
			stack = append(stack, visit{block: p})
		}
	}
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	d.number[len(d.g.blocks)] = 0
	for i, b := range order {
		d.number[b] = int32(i) + 1
	}
	return order
}

// bitset is a set of small integers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) add(i int32)    { s[i>>6] |= 1 << (i & 63) }
func (s bitset) remove(i int32) { s[i>>6] &^= 1 << (i & 63) }

// each calls f for each member in order.
func (s bitset) each(f func(i int32)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			f(int32(w<<6 + bits.TrailingZeros64(word)))
		}
	}
}

// liveness is which values are live at the start and the end of each block.
type liveness struct {
	in, out []bitset
}

// liveValues solves liveness. A guarded definition keeps what was there
// before, so it ends no live range.
func (g *graph) liveValues(insts []*inst, values int) *liveness {
	n := len(g.blocks)
	l := &liveness{make([]bitset, n), make([]bitset, n)}
	gen, kill := make([]bitset, n), make([]bitset, n)
	for b := range g.blocks {
		l.in[b], l.out[b] = newBitset(values), newBitset(values)
		gen[b], kill[b] = newBitset(values), newBitset(values)
		for i := g.blocks[b].end - 1; i >= g.blocks[b].first; i-- {
			stepBack(insts[i], gen[b], kill[b])
		}
	}
	for changed := true; changed; {
		changed = false
		for b := n - 1; b >= 0; b-- {
			out := l.out[b]
			for _, s := range g.blocks[b].succ {
				if int(s) == n {
					continue
				}
				for w, v := range l.in[s] {
					out[w] |= v
				}
			}
			in := l.in[b]
			for w := range in {
				v := gen[b][w] | out[w]&^kill[b][w]
				if v != in[w] {
					in[w] = v
					changed = true
				}
			}
		}
	}
	return l
}

// stepBack moves a live set (and, where not nil, the set of definitions) from
// after an instruction to before it.
func stepBack(in *inst, live, kill bitset) {
	if in.guard < 0 {
		for _, d := range in.defs {
			live.remove(d)
			if kill != nil {
				kill.add(d)
			}
		}
	}
	for _, u := range in.uses {
		live.add(u)
	}
}
