package simt

import "fmt"

// Env is a launch, as far as it decides how often a block runs what.
type Env struct {
	Params []int64  // by number
	Block  [3]int64 // the block's place in the grid
	Grid   [3]int64
	Rounds int64 // of loops whose bounds no launch value determines; 0 means 1

	// Load gives the 32-bit integer at a global address, where it is known; nil: none is.
	Load func(address int64) (int64, bool)
}

// Counter counts a kernel's work for any launch. It knows how much each
// stretch of code is and evaluates only what decides how often it runs, so a
// count takes microseconds. Of long loops the middle is extrapolated: what changes
// there but once, far from both ends, is missed. A Counter may be used from one
// goroutine at a time.
type Counter struct {
	k      *Kernel
	body   *stretch
	inputs []*Value
	vals   []int64
	state  []uint8 // of a value: 0 not computed, 1 known, 2 unknown
	env    Env
	warp   int64
	byWarp bool // a decision depends on which warp it is
	done   bool
	work   []*Counts // what there is to execute
	hits   []int64   // how often it was, by its number in work
	misses int64     // decisions no launch value determines
	steps  int
	need   []bool  // by value: it decides what executes
	moved  []moved // memory of copyTo
}

const (
	valueKnown   = 1
	valueUnknown = 2
)

// stretch is a block as the counter sees it.
type stretch struct {
	counts Counts // of what always executes
	number int    // in the counter's work
	parts  []part // what must be evaluated, in order
}

// part is an instruction to evaluate, a guarded access, or a loop or branch.
type part struct {
	in     *Instr
	counts *Counts  // of a guarded access
	number int      // of counts, in the counter's work
	body   *stretch // of a loop or branch
	other  *stretch
	fixed  bool // a loop that runs alike in every round and decides nothing later
}

// NewCounter prepares counting.
func NewCounter(k *Kernel) *Counter {
	s := slicer{k: k, need: make([]bool, k.NumValues())}
	for s.changed = true; s.changed; {
		s.changed = false
		s.block(k.Body)
	}
	c := &Counter{k: k, vals: make([]int64, k.NumValues()), state: make([]uint8, k.NumValues()), need: s.need}
	c.body = s.plan(k.Body)
	c.number(c.body)
	c.hits = make([]int64, len(c.work))
	for _, v := range k.Inputs {
		if s.need[v.ID] {
			c.inputs = append(c.inputs, v)
		}
	}
	return c
}

func (c *Counter) number(s *stretch) {
	if s == nil {
		return
	}
	s.number = len(c.work)
	c.work = append(c.work, &s.counts)
	for i := range s.parts {
		p := &s.parts[i]
		if p.counts != nil {
			p.number = len(c.work)
			c.work = append(c.work, p.counts)
		}
		c.number(p.body)
		c.number(p.other)
	}
}

// slicer finds the values that decide what executes.
type slicer struct {
	k       *Kernel
	need    []bool
	changed bool
}

func (s *slicer) mark(v *Value) {
	if v != nil && !s.need[v.ID] {
		s.need[v.ID] = true
		s.changed = true
	}
}

func (s *slicer) block(b *Block) {
	if b == nil {
		return
	}
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		s.mark(in.Guard)
		switch in.Op {
		case OpFor:
			s.mark(in.Args[0])
			s.mark(in.Args[1])
			s.mark(in.Args[2])
			s.carried(in)
		case OpLoop:
			s.mark(in.Body.Yield[0])
			s.carried(in)
		case OpIf:
			s.mark(in.Args[0])
			for j, r := range in.Results {
				if s.need[r.ID] {
					s.mark(in.Body.Yield[j])
					s.mark(in.Else.Yield[j])
				}
			}
		default:
			if !s.wanted(in) || in.Op.Info().Effect != 0 && !in.LoadsInteger() {
				continue
			}
			for _, x := range in.Args {
				s.mark(x)
			}
		}
		s.block(in.Body)
		s.block(in.Else)
	}
}

func (s *slicer) carried(in *Instr) {
	params, yields := carriedParams(in), carriedYields(in)
	for i, r := range in.Results {
		if s.need[r.ID] || s.need[params[i].ID] {
			s.mark(params[i])
			s.mark(yields[i])
			s.mark(in.Args[len(in.Args)-len(in.Results)+i])
		}
	}
}

func (s *slicer) wanted(in *Instr) bool {
	for _, r := range in.Results {
		if s.need[r.ID] {
			return true
		}
	}
	return false
}

// plan turns a block into a stretch.
func (s *slicer) plan(b *Block) *stretch {
	if b == nil {
		return nil
	}
	st := &stretch{}
	for _, in := range b.Instrs {
		switch {
		case in.Body != nil:
			p := part{in: in, body: s.plan(in.Body), other: s.plan(in.Else)}
			p.fixed = in.Op == OpFor && len(p.body.parts) == 0 && !s.wanted(in)
			if in.Op == OpFor {
				p.body.counts.Pipe[PipeALU] += 2 // the counter and its comparison
				p.body.counts.Pipe[PipeCtrl]++
			} else {
				st.counts.Pipe[PipeCtrl]++
			}
			st.parts = append(st.parts, p)
		case in.Op == OpReturn:
			st.parts = append(st.parts, part{in: in})
		case in.Guard != nil:
			g := &Counts{}
			g.instr(in)
			// The instruction issues whether its guard holds or not.
			st.counts.Pipe[in.Pipe()] += g.Pipe[in.Pipe()]
			g.Pipe[in.Pipe()] = 0
			st.parts = append(st.parts, part{in: in, counts: g})
			if s.wanted(in) {
				st.parts = append(st.parts, part{in: in})
			}
		default:
			st.counts.instr(in)
			if s.wanted(in) {
				st.parts = append(st.parts, part{in: in})
			}
		}
	}
	return st
}

// most parts a count may evaluate, so that a count ends.
const countSteps = 50e6

// Count counts the work of one block of threads.
func (c *Counter) Count(env Env) (Counts, error) {
	if len(env.Params) < len(c.k.Params) {
		return Counts{}, fmt.Errorf("count of %s: %d parameters, want %d", c.k.Name, len(env.Params), len(c.k.Params))
	}
	c.env, c.byWarp, c.steps, c.misses = env, false, 0, 0
	clear(c.hits)
	warps := int64(c.k.Threads+warpSize-1) / warpSize
	c.runWarp(0)
	alike := warps
	if c.byWarp {
		alike = 1
		for w := int64(1); w < warps; w++ {
			c.runWarp(w)
		}
	}
	if c.steps > countSteps {
		return Counts{}, fmt.Errorf("count of %s: more than %.0g decisions", c.k.Name, float64(countSteps))
	}
	var total Counts
	for i, w := range c.work {
		total.add(w, alike*c.hits[i])
	}
	total.Unknown = alike * c.misses
	return total, nil
}

func (c *Counter) runWarp(w int64) {
	c.warp, c.done = w, false
	for _, v := range c.inputs {
		c.input(v)
	}
	c.run(c.body, 1)
}

func (c *Counter) set(v *Value, x int64, known bool) {
	if !known {
		c.state[v.ID] = valueUnknown
		return
	}
	c.vals[v.ID], c.state[v.ID] = normalize(v.Type, x), valueKnown
}

func (c *Counter) get(v *Value) (int64, bool) {
	if v.IsConst() {
		return v.Def.Imm, true
	}
	return c.vals[v.ID], c.state[v.ID] == valueKnown
}

func (c *Counter) input(v *Value) {
	switch in := v.Def; in.Op {
	case OpParam:
		c.set(v, c.env.Params[in.Imm], true)
	case OpSharedBase:
		c.set(v, 0, true)
	case OpSpecial:
		e := &c.env
		switch in.Special {
		case CtaX, CtaY, CtaZ:
			c.set(v, e.Block[in.Special-CtaX], true)
		case NCtaX, NCtaY, NCtaZ:
			c.set(v, e.Grid[in.Special-NCtaX], true)
		case ClusterCtaRank:
			c.set(v, 0, true) // the work is the same in all
		default:
			c.set(v, 0, false)
		}
	}
}

// run counts a stretch executed n times with the same decisions.
func (c *Counter) run(s *stretch, n int64) {
	c.hits[s.number] += n
	for i := range s.parts {
		if c.done {
			return
		}
		if c.steps++; c.steps > countSteps {
			c.done = true
			return
		}
		c.part(&s.parts[i], n)
	}
}

func (c *Counter) part(p *part, n int64) {
	in := p.in
	switch {
	case in.Op == OpFor:
		c.forLoop(p, n)
	case in.Op == OpLoop:
		c.doLoop(p, n)
	case in.Op == OpIf:
		c.branch(p, n)
	case in.Op == OpReturn:
		c.done = true
	case p.counts != nil:
		g, known := c.get(in.Guard)
		if !known {
			c.misses += n
		}
		if !known || (g != 0) != in.GuardNot {
			c.hits[p.number] += n
		}
	default:
		c.compute(in)
	}
}

// compute evaluates an instruction that decides something.
func (c *Counter) compute(in *Instr) {
	if in.Op == OpUnpack {
		x, ok := c.get(in.Args[0])
		c.set(in.Results[0], x, ok)
		c.set(in.Results[1], x>>(in.Type.Bits()/2), ok)
		return
	}
	if in.LoadsInteger() {
		c.load(in)
		return
	}
	if in.Op.Info().Effect != 0 || len(in.Results) != 1 || len(in.Args) > 3 {
		for _, r := range in.Results {
			c.set(r, 0, false)
		}
		return
	}
	if in.Op == OpShrU && c.isTid(in.Args[0]) && in.Args[1].IsConst() && in.Args[1].Int() >= 5 {
		c.byWarp = true
		c.set(in.Results[0], c.warp>>(in.Args[1].Int()-5), true)
		return
	}
	var x [3]int64
	known := true
	for i, a := range in.Args {
		v, ok := c.get(a)
		x[i] = v
		known = known && ok
	}
	r := in.Results[0]
	if !known {
		c.partly(in, r)
		return
	}
	v, ok := evaluate(in.Op, in.Type, in.Args[0].Type, in.attrs(), x)
	c.set(r, v, ok)
}

// LoadsInteger tells whether an instruction loads one 32-bit value from global memory,
// which may be a length or a place in a table.
func (in *Instr) LoadsInteger() bool {
	return in.Op == OpLd && in.Space == Global && in.Type == I32 && in.Vec == 1 && in.Mem.Bytes() == 4
}

// load evaluates a load that decides something.
func (c *Counter) load(in *Instr) {
	r := in.Results[0]
	if in.Guard != nil {
		if g, ok := c.get(in.Guard); !ok || (g != 0) == in.GuardNot {
			x, fallback := int64(0), false
			if ok && len(in.Args) > 1 {
				x, fallback = c.get(in.Args[1])
			}
			c.set(r, x, fallback)
			return
		}
	}
	at, ok := c.get(in.Args[0])
	if !ok || c.env.Load == nil {
		c.set(r, 0, false)
		return
	}
	x, ok := c.env.Load(at + int64(in.Offset))
	c.set(r, x, ok)
}

// partly evaluates what one known operand decides alone.
func (c *Counter) partly(in *Instr, r *Value) {
	if in.Type == Pred && (in.Op == OpAnd || in.Op == OpOr) {
		for _, a := range in.Args {
			if v, ok := c.get(a); ok && (v == 0) == (in.Op == OpAnd) {
				c.set(r, v, true)
				return
			}
		}
	}
	if in.Op == OpSelect {
		if p, ok := c.get(in.Args[0]); ok {
			v, ok := c.get(in.Args[2-p&1])
			c.set(r, v, ok)
			return
		}
	}
	c.set(r, 0, false)
}

func (c *Counter) isTid(v *Value) bool {
	return v.Floating() && v.Def.Op == OpSpecial && v.Def.Special == TidX
}

// copyTo hands values over at once; those that decide nothing stay behind.
func (c *Counter) copyTo(to, from []*Value) {
	old := c.moved[:0]
	for i, t := range to {
		if c.need[t.ID] {
			x, ok := c.get(from[i])
			old = append(old, moved{t, x, ok})
		}
	}
	for _, m := range old {
		c.set(m.to, m.x, m.known)
	}
	c.moved = old
}

// moved is a value on its way.
type moved struct {
	to    *Value
	x     int64
	known bool
}

func (c *Counter) forLoop(p *part, n int64) {
	in := p.in
	lo, ok1 := c.get(in.Args[0])
	hi, ok2 := c.get(in.Args[1])
	step, ok3 := c.get(in.Args[2])
	known := ok1 && ok2 && ok3 && step > 0
	trips := max(c.env.Rounds, 1)
	if known {
		trips = max(0, (hi-lo+step-1)/step)
	} else {
		c.misses += n
	}
	if p.fixed {
		c.run(p.body, n*trips)
		return
	}
	params := in.Body.Params
	c.copyTo(params[1:], in.Args[3:])
	var marks [2]mark
	for i := int64(0); i < trips; i++ {
		if trips > longLoop && i > 0 && i <= 3*ringRounds && i%ringRounds == 0 {
			now := c.mark(params[1:])
			if i == 3*ringRounds {
				i += c.skip(params[1:], &marks, &now, (trips-i-ringRounds)/ringRounds)
			}
			marks[0], marks[1] = marks[1], now
		}
		c.set(params[0], lo+i*step, known)
		c.run(p.body, n)
		if c.done {
			return
		}
		c.copyTo(params[1:], in.Body.Yield)
	}
	c.copyTo(in.Results, params[1:])
}

// Loops of more rounds than longLoop are gone through at both ends only. Between them
// each ringRounds rounds, after which the state of any ring of up to 6 stages comes
// back, are taken to be like the ringRounds before.
const (
	longLoop   = 1 << 10
	ringRounds = 60
)

// mark is the state of a count between two rounds of a loop.
type mark struct {
	vals   []int64
	hits   []int64
	misses int64
}

func (c *Counter) mark(carried []*Value) mark {
	m := mark{hits: append([]int64(nil), c.hits...), misses: c.misses}
	for _, v := range carried {
		x, _ := c.get(v)
		m.vals = append(m.vals, x)
	}
	return m
}

// skip goes on by times rings of rounds like those between the last mark and now and
// returns how many rounds that are. Carried values that rose by the same amount in the
// ring before go on rising; others come back to where they are.
func (c *Counter) skip(carried []*Value, before *[2]mark, now *mark, times int64) int64 {
	last := &before[1]
	for i := range c.hits {
		c.hits[i] += times * (now.hits[i] - last.hits[i])
	}
	c.misses += times * (now.misses - last.misses)
	for i, v := range carried {
		if !c.need[v.ID] {
			continue
		}
		rise := now.vals[i] - last.vals[i]
		if x, ok := c.get(v); ok && rise == last.vals[i]-before[0].vals[i] {
			c.set(v, x+times*rise, true)
		}
	}
	return times * ringRounds
}

func (c *Counter) doLoop(p *part, n int64) {
	in := p.in
	c.copyTo(in.Body.Params, in.Args)
	for round := int64(1); ; round++ {
		c.run(p.body, n)
		if c.done {
			return
		}
		again, known := c.get(in.Body.Yield[0])
		c.copyTo(in.Body.Params, in.Body.Yield[1:])
		if !known {
			c.misses += n
			if round >= max(c.env.Rounds, 1) {
				break
			}
		} else if again == 0 {
			break
		}
	}
	c.copyTo(in.Results, in.Body.Params)
}

func (c *Counter) branch(p *part, n int64) {
	in := p.in
	cond, known := c.get(in.Args[0])
	if !known {
		c.misses += n
	}
	if !known || cond != 0 {
		c.run(p.body, n)
		if c.done && !known {
			c.done = false // some lanes go on
		}
		if known && !c.done {
			c.copyTo(in.Results, in.Body.Yield)
		}
	}
	if p.other != nil && (!known || cond == 0) && !c.done {
		c.run(p.other, n)
		if known && !c.done {
			c.copyTo(in.Results, in.Else.Yield)
		}
	}
	if !known {
		for _, r := range in.Results {
			c.set(r, 0, false)
		}
	}
}
