package model

import (
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/simt"
)

// pointerShift spaces the addresses that pointer parameters are taken to hold: the
// number of an address's parameter is its upper bits, less one.
const pointerShift = 44

// lanes is a value in all threads of a block.
type lanes struct {
	known bool
	n     int64   // where v is nil
	v     []int64 // one a thread; nil: the same in all
}

func (x *lanes) at(i int) int64 {
	if x.v == nil {
		return x.n
	}
	return x.v[i]
}

// walk goes through a block of threads as it executes, as far as addresses, masks and
// branches go, and counts.
type walk struct {
	*kernel
	params []int64
	maps   []*codegen.TensorMap // by parameter; nil for other ones
	inputs Inputs
	block  int64
	grid   int64
	first0 int64     // number of the first thread
	size   int       // threads
	whole  bool      // goes through every round of every loop; else most are extrapolated
	probe  bool      // goes through one round of each loop, and leaves out what decides no address
	clock  *timeline // nil: nobody asks for the time

	vals   []lanes
	own    [][]int64 // by value: memory for its lanes
	active []uint32  // lanes of each warp that are here
	exited []uint32
	counts Counts
	seen   [maxPointers]int64 // sectors read in the rounds gone through
	reads  [maxPointers]footprint
	writes footprint
	first  [maxPointers]int64 // where each pointer is first read; 0: never
}

func newWalk(k *kernel, s *codegen.PlanStep, inputs Inputs, block int64, threads int) *walk {
	w := &walk{kernel: k, params: stepParams(s), maps: stepMaps(s), inputs: inputs, block: block, grid: s.Grid, size: threads}
	w.vals, w.own = make([]lanes, k.NumValues()), make([][]int64, k.NumValues())
	for range (threads + warpSize - 1) / warpSize {
		w.active = append(w.active, ^uint32(0))
	}
	if last := threads % warpSize; last != 0 {
		w.active[len(w.active)-1] = 1<<last - 1
	}
	w.exited = make([]uint32, len(w.active))
	return w
}

// restart makes the walk ready for another block of one lane.
func (w *walk) restart(block int64) {
	w.block = block
	clear(w.vals)
	w.active[0], w.exited[0] = 1, 0
	w.counts = Counts{}
	w.first = [maxPointers]int64{}
	w.first0 = 0
}

// again makes the walk ready for another thread of the same block.
func (w *walk) again(thread int) {
	first := w.first
	w.restart(w.block)
	w.first, w.first0 = first, int64(thread)
}

// run goes through the whole kernel.
func (w *walk) run() {
	for _, v := range w.Inputs {
		if w.need[v.ID] {
			w.input(v)
		}
	}
	w.instrs(w.Body)
}

// input sets a parameter or special register. Blocks are laid out along x.
func (w *walk) input(v *simt.Value) {
	in := v.Def
	switch in.Op {
	case simt.OpParam:
		w.set(v, w.params[in.Imm], true)
	case simt.OpSharedBase:
		w.set(v, 0, true)
	case simt.OpSpecial:
		switch in.Special {
		case simt.CtaX:
			w.set(v, w.block, true)
		case simt.NCtaX:
			w.set(v, w.grid, true)
		case simt.CtaY, simt.CtaZ, simt.ClusterCtaRank: // all blocks of a cluster read as much
			w.set(v, 0, true)
		case simt.TidX, simt.LaneID:
			x := w.vector(v)
			for i := range x {
				x[i] = w.first0 + int64(i)
				if in.Special == simt.LaneID {
					x[i] %= warpSize
				}
			}
		default:
			w.set(v, 0, false)
		}
	}
}

func (w *walk) set(v *simt.Value, n int64, known bool) { w.vals[v.ID] = lanes{known: known, n: n} }

// vector makes v differ between lanes and returns its memory.
func (w *walk) vector(v *simt.Value) []int64 {
	if w.own[v.ID] == nil {
		w.own[v.ID] = make([]int64, w.size)
	}
	w.vals[v.ID] = lanes{known: true, v: w.own[v.ID]}
	return w.own[v.ID]
}

func (w *walk) get(v *simt.Value) lanes {
	if v.IsConst() {
		return lanes{known: true, n: v.Def.Imm}
	}
	return w.vals[v.ID]
}

// copy gives values to others at once.
func (w *walk) copy(to, from []*simt.Value) {
	old := make([]lanes, len(from))
	for i, f := range from {
		if w.need[to[i].ID] {
			old[i] = w.get(f)
			if old[i].v != nil {
				old[i].v = append([]int64(nil), old[i].v...)
			}
		}
	}
	for i, t := range to {
		if !w.need[t.ID] {
			continue
		}
		if old[i].v == nil {
			w.vals[t.ID] = old[i]
		} else {
			copy(w.vector(t), old[i].v)
		}
	}
	if w.clock != nil {
		w.clock.copy(to, from)
	}
}

func (w *walk) instrs(b *simt.Block) {
	if b == nil {
		return
	}
	list := b.Instrs
	if w.probe {
		list = w.brief[b]
	}
	for _, in := range list {
		switch in.Op {
		case simt.OpFor:
			w.forLoop(in)
		case simt.OpLoop:
			w.doLoop(in)
		case simt.OpIf:
			w.branch(in)
		case simt.OpReturn:
			for i := range w.active {
				w.exited[i] |= w.active[i]
				w.active[i] = 0
			}
		default:
			w.plain(in)
		}
	}
}

// plain executes an instruction without blocks.
func (w *walk) plain(in *simt.Instr) {
	if len(in.Results) > 0 {
		w.compute(in)
	}
	w.count(in)
	if w.clock != nil && w.active[0] != 0 {
		w.clock.instr(in)
	}
}

// compute evaluates an instruction whose result matters.
func (w *walk) compute(in *simt.Instr) {
	r := in.Results[0]
	if in.Op == simt.OpUnpack {
		w.unpack(in)
		return
	}
	if !w.need[r.ID] {
		return
	}
	if in.LoadsInteger() {
		w.load(in)
		return
	}
	switch in.Op {
	case simt.OpShfl:
		w.shuffle(in)
		return
	case simt.OpElect:
		w.elect(r)
		return
	}
	f := w.eval[r.ID]
	if f == nil {
		for _, r := range in.Results {
			w.set(r, 0, false)
		}
		return
	}
	var x [3]lanes
	same := true
	for i, a := range in.Args {
		x[i] = w.get(a)
		if !x[i].known {
			w.set(r, 0, false)
			return
		}
		same = same && x[i].v == nil
	}
	if same {
		n, ok := f(x[0].n, x[1].n, x[2].n)
		w.set(r, n, ok)
		return
	}
	out := w.vector(r)
	if vector(in, out, &x) {
		return
	}
	for i := range out {
		out[i], _ = f(x[0].at(i), x[1].at(i), x[2].at(i))
	}
}

// unpack splits a 64-bit integer.
func (w *walk) unpack(in *simt.Instr) {
	lo, hi := in.Results[0], in.Results[1]
	if !w.need[lo.ID] && !w.need[hi.ID] {
		return
	}
	x := w.get(in.Args[0])
	half := in.Type.Bits() / 2
	if x.v != nil || !x.known || half != 32 {
		w.set(lo, 0, false)
		w.set(hi, 0, false)
		return
	}
	w.set(lo, int64(int32(x.n)), true)
	w.set(hi, x.n>>32, true)
}

// Rounds of a loop that are executed at its beginning and its end; those between are
// like the last of the beginning. A pipelined loop's first rounds do not differ, its
// last ones start no copies.
const (
	headRounds = 3
	tailRounds = 5
)

// ringRounds is a number of rounds after which the state of any ring of 1 to 6 stages
// comes back.
const ringRounds = 60

func (w *walk) forLoop(in *simt.Instr) {
	lo, hi, step := w.get(in.Args[0]), w.get(in.Args[1]), w.get(in.Args[2])
	trips := int64(1)
	known := lo.known && hi.known && step.known && lo.v == nil && hi.v == nil && step.v == nil && step.n > 0
	if known {
		trips = max(0, (hi.n-lo.n+step.n-1)/step.n)
	} else {
		w.counts.Unknown++
	}
	if w.probe {
		trips = min(trips, 1)
	}
	params, yields := in.Body.Params, in.Body.Yield
	w.copy(params[1:], in.Args[3:])
	if w.Persistent && w.clock != nil && w.clock.tile == 0 {
		w.clock.tile = w.mark() // the loop over tiles is the outermost one
	}
	var before [2][]lanes // the carried values two rounds and one round ago
	var marks [2]float64
	for i := int64(0); i < trips; i++ {
		w.set(params[0], lo.n+i*step.n, known)
		if !w.whole && trips > headRounds+tailRounds && i < headRounds {
			before[0], before[1] = before[1], w.snapshot(params[1:])
			marks[0], marks[1] = marks[1], w.mark()
		}
		counts := w.counts
		w.instrs(in.Body)
		w.copy(params[1:], yields)
		if !w.whole && i == headRounds-1 && trips > headRounds+tailRounds {
			skip := w.skip(params[1:], before, trips-headRounds-tailRounds)
			var round Counts
			round.add(&w.counts, 1)
			round.add(&counts, -1)
			w.counts.add(&round, skip)
			if w.clock != nil {
				w.clock.extra += float64(skip) * (w.mark() - marks[0]) / 2
			}
			i += skip
		}
	}
	w.copy(in.Results, params[1:])
}

func (w *walk) mark() float64 {
	if w.clock == nil {
		return 0
	}
	return w.clock.mark()
}

func (w *walk) snapshot(vs []*simt.Value) []lanes {
	out := make([]lanes, len(vs))
	for i, v := range vs {
		if w.need[v.ID] {
			out[i] = w.get(v)
			if out[i].v != nil {
				out[i].v = append([]int64(nil), out[i].v...)
			}
		}
	}
	return out
}

// skip carries the values over up to most rounds and returns how many: those that rose
// by the same amount in two rounds go on rising; others are taken to go round a ring,
// and come back to where they are.
func (w *walk) skip(vs []*simt.Value, before [2][]lanes, most int64) int64 {
	rings := false
	for i, v := range vs {
		if w.need[v.ID] && !steady(before[0][i], before[1][i], w.get(v)) {
			rings = true
		}
	}
	n := most
	if rings {
		n = most / ringRounds * ringRounds
	}
	for i, v := range vs {
		if !w.need[v.ID] || n == 0 {
			continue
		}
		now, was := w.get(v), before[1][i]
		if !steady(before[0][i], was, now) {
			continue
		}
		if now.v == nil {
			w.set(v, now.n+n*(now.n-was.n), now.known)
			continue
		}
		for j := range now.v {
			now.v[j] += n * (now.v[j] - was.at(j))
		}
	}
	return n
}

func steady(a, b, c lanes) bool {
	if !a.known || !b.known || !c.known {
		return !a.known && !b.known && !c.known
	}
	if a.v == nil && b.v == nil && c.v == nil {
		return b.n-a.n == c.n-b.n
	}
	n := max(len(a.v), len(b.v), len(c.v))
	for i := range n {
		if b.at(i)-a.at(i) != c.at(i)-b.at(i) {
			return false
		}
	}
	return true
}

// mostRounds bounds the rounds of a loop whose end is computed as it runs.
const mostRounds = 1 << 16

func (w *walk) doLoop(in *simt.Instr) {
	w.copy(in.Body.Params, in.Args)
	for round := 0; ; round++ {
		w.instrs(in.Body)
		again := w.get(in.Body.Yield[0])
		w.copy(in.Body.Params, in.Body.Yield[1:])
		if w.probe {
			break
		}
		if !again.known || again.v != nil || round == mostRounds {
			w.counts.Unknown++
			break
		}
		if again.n == 0 {
			break
		}
	}
	w.copy(in.Results, in.Body.Params)
}

func (w *walk) branch(in *simt.Instr) {
	cond := w.get(in.Args[0])
	if !cond.known {
		w.counts.Unknown++
	}
	if cond.known && cond.v == nil {
		side := in.Body
		if cond.n == 0 {
			side = in.Else
		}
		if side != nil {
			w.instrs(side)
			w.copy(in.Results, side.Yield)
		}
		return
	}
	here := append([]uint32(nil), w.active...)
	w.only(here, cond, 1)
	w.side(in.Body)
	w.only(here, cond, 0)
	w.side(in.Else)
	for i := range w.active {
		w.active[i] = here[i] &^ w.exited[i]
	}
	for i, r := range in.Results {
		if w.need[r.ID] {
			w.join(r, cond, in.Body.Yield[i], in.Else.Yield[i])
		}
	}
}

// side executes a side of a branch if any lane is there.
func (w *walk) side(b *simt.Block) {
	for _, m := range w.active {
		if m != 0 {
			w.instrs(b)
			return
		}
	}
}

// only keeps the lanes of here where cond is want; all where it is not known.
func (w *walk) only(here []uint32, cond lanes, want int64) {
	for i := range w.active {
		w.active[i] = here[i] &^ w.exited[i]
		for l := range warpSize {
			if cond.known && w.active[i]>>l&1 != 0 && cond.at(i*warpSize+l)&1 != want {
				w.active[i] &^= 1 << l
			}
		}
	}
}

func (w *walk) join(r *simt.Value, cond lanes, yes, no *simt.Value) {
	x, y := w.get(yes), w.get(no)
	if !cond.known || !x.known || !y.known {
		w.set(r, 0, false)
		return
	}
	out := make([]int64, w.size)
	for i := range out {
		out[i] = y.at(i)
		if cond.at(i)&1 != 0 {
			out[i] = x.at(i)
		}
	}
	copy(w.vector(r), out)
}
