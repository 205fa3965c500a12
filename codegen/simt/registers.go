package simt

import "slices"

// Copy moves a value to a register where control flow joins.
type Copy struct {
	To   int32  // register
	From *Value // a constant or a value with a register
}

// Edges are the copies of a loop or branch: for a loop on entry and at the end
// of each round, for a branch at the end of either side. Copies of an edge
// happen at once; Sequence puts them in an order.
type Edges struct {
	Enter, Next []Copy // For, Loop; Enter also of what changes operands in place
	Then, Else  []Copy // If
}

// Registers says which values share a virtual register, once SSA form is left.
// A loop's parameter and result are one register; what is yielded, what
// enters, and the accumulator of an mma join it where their lives allow.
type Registers struct {
	Of    []int32  // register of each value by ID, -1 for none (constants)
	First []*Value // each register's value with the lowest ID
	Many  []bool   // whether the register is defined in several places
	Edges map[*Instr]*Edges
}

// Reg is a value's register.
func (r *Registers) Reg(v *Value) int32 { return r.Of[v.ID] }

// Style is what the registers are for.
type Style uint8

const (
	// ForPTX lets a bitcast be its operand's register under another name, as
	// PTX has untyped registers.
	ForPTX Style = iota
	// ForC gives each loop a counter of its own, and lets values that carry the
	// same element of the same named group share a register.
	ForC
)

// AssignRegisters leaves SSA form.
func AssignRegisters(k *Kernel, style Style) *Registers {
	l := liveness{k: k, free: style == ForPTX}
	l.run()
	c := coalescer{l: &l, parent: make([]int32, k.NumValues()), style: style}
	for i := range c.parent {
		c.parent[i] = int32(i)
	}
	c.run()
	return c.finish()
}

// segment is a stretch of the program, in positions, in which a value lives.
type segment struct{ from, to int32 }

// liveness gives each value the segments it lives in. Positions rise by two
// along the program text; a block has one at its start and one at its end.
type liveness struct {
	k     *Kernel
	free  bool
	pos   int32
	from  []int32
	to    []int32
	depth []int32 // how many loops surround the definition
	loops []*Instr
	ends  map[*Instr]loopSpan
	order []*Instr // control instructions, inner before outer
	mmas  []*Instr
	tied  []*Instr
}

type loopSpan struct{ start, middle, end int32 }

// root is the value whose register v is.
func (l *liveness) root(v *Value) *Value {
	for l.free && v.Block == nil && v.Def.Op == OpBitcast {
		v = v.Def.Args[0]
	}
	return v
}

func (l *liveness) run() {
	n := l.k.NumValues()
	buf := make([]int32, 3*n)
	l.from, l.to, l.depth = buf[:n], buf[n:2*n], buf[2*n:]
	l.ends = map[*Instr]loopSpan{}
	l.number(l.k.Body)
	l.pos = 0
	for _, v := range l.k.Inputs {
		l.define(v, 0)
	}
	l.block(l.k.Body)
}

func (l *liveness) step() int32 {
	l.pos += 2
	return l.pos
}

// number finds where loops and branches start and end.
func (l *liveness) number(b *Block) {
	for _, in := range b.Instrs {
		p := l.step()
		if in.Body == nil {
			continue
		}
		s := loopSpan{start: p}
		l.number(in.Body)
		s.middle = l.step()
		if in.Else != nil {
			l.number(in.Else)
		}
		s.end = l.step()
		l.ends[in] = s
		l.order = append(l.order, in)
	}
}

func (l *liveness) define(v *Value, p int32) {
	l.from[v.ID], l.to[v.ID], l.depth[v.ID] = p, p+1, int32(len(l.loops))
}

// use extends a value's life to p, or to the end of the outermost loop that
// holds the use but not the definition.
func (l *liveness) use(v *Value, p int32) {
	v = l.root(v)
	if d := int(l.depth[v.ID]); d < len(l.loops) {
		p = l.ends[l.loops[d]].end
	}
	l.to[v.ID] = max(l.to[v.ID], p)
}

func (l *liveness) block(b *Block) {
	for _, in := range b.Instrs {
		p := l.step()
		switch {
		case in.Op == OpFor || in.Op == OpLoop:
			l.loop(in, p)
			continue
		case in.Op == OpIf:
			l.branch(in, p)
			continue
		case in.Op == OpBitcast && l.free && !l.root(in.Result()).IsConst():
			continue
		case in.Op == OpMma:
			l.mmas = append(l.mmas, in)
		default:
			if _, ok := in.Tied(); ok {
				l.tied = append(l.tied, in)
			}
		}
		late := p
		if in.Guard != nil && len(in.Results) > 0 {
			late++ // its defaults are written before it reads its address
		}
		for i, x := range in.Args {
			if in.Op == OpWgmma && x.Type == I64 {
				l.use(x, p+1)
				continue
			}
			if in.Op == OpMma && i < len(in.Args)-len(in.Results) {
				l.use(x, p+1) // D may take C's place, but not A's or B's
				continue
			}
			l.use(x, late)
		}
		if in.Guard != nil {
			l.use(in.Guard, late)
		}
		for _, r := range in.Results {
			l.define(r, p)
		}
	}
}

func (l *liveness) loop(in *Instr, p int32) {
	s := l.ends[in]
	for _, x := range in.Args {
		l.use(x, p)
	}
	l.loops = append(l.loops, in)
	for _, x := range in.Body.Params {
		l.define(x, p)
	}
	if in.Op == OpFor {
		l.use(in.Args[1], s.end)
		l.use(in.Args[2], s.end)
		l.use(in.Body.Params[0], s.end+1)
	}
	l.block(in.Body)
	l.step()
	for _, y := range in.Body.Yield {
		l.use(y, s.end)
	}
	l.step()
	l.loops = l.loops[:len(l.loops)-1]
	for _, r := range in.Results {
		l.define(r, s.end)
	}
}

func (l *liveness) branch(in *Instr, p int32) {
	s := l.ends[in]
	l.use(in.Args[0], p)
	l.block(in.Body)
	l.step()
	for _, y := range in.Body.Yield {
		l.use(y, s.middle)
	}
	if in.Else != nil {
		l.block(in.Else)
		for _, y := range in.Else.Yield {
			l.use(y, s.end)
		}
	}
	l.step()
	for _, r := range in.Results {
		l.define(r, s.end)
	}
}

// coalescer merges values into registers.
type coalescer struct {
	l      *liveness
	parent []int32
	style  Style
	merged []int32     // place in segs of a set of several values, 0 for one value
	segs   [][]segment // from 1
	chunk  []segment   // what segs are cut from
	own    [2][1]segment
}

func (c *coalescer) find(i int32) int32 {
	for c.parent[i] != i {
		c.parent[i] = c.parent[c.parent[i]]
		i = c.parent[i]
	}
	return i
}

// lives are the segments of a set. Those of a single value stand in own[n]
// until it is used again.
func (c *coalescer) lives(i int32, n int) []segment {
	if m := c.merged[i]; m != 0 {
		return c.segs[m]
	}
	c.own[n][0] = segment{c.l.from[i], c.l.to[i]}
	return c.own[n][:]
}

// live sets the segments of a set.
func (c *coalescer) live(i int32, s []segment) {
	if c.merged[i] == 0 {
		c.merged[i] = int32(len(c.segs))
		c.segs = append(c.segs, nil)
	}
	c.segs[c.merged[i]] = s
}

func (c *coalescer) run() {
	c.merged = make([]int32, len(c.parent))
	c.segs = make([][]segment, 1, 64)
	for _, in := range c.l.order {
		c.join(in)
	}
	for _, in := range c.l.order { // inner loops first
		for i, p := range carriedParams(in) {
			c.merge(p, carriedYields(in)[i])
		}
		if in.Op == OpIf {
			for i, r := range in.Results {
				c.mergeBranch(in, i, r)
			}
		}
	}
	for _, in := range c.l.mmas {
		info := in.Mma.Info()
		for i, d := range in.Results {
			c.merge(in.Args[info.A+info.B+i], d)
		}
	}
	for _, in := range c.l.tied {
		first, _ := in.Tied()
		for i, d := range in.Results {
			c.merge(in.Args[first+i], d)
		}
	}
	for i := len(c.l.order) - 1; i >= 0; i-- {
		in := c.l.order[i]
		for j, p := range carriedParams(in) {
			c.merge(p, in.Args[len(in.Args)-len(in.Results)+j])
		}
		if in.Op == OpFor && c.style == ForPTX {
			c.merge(in.Body.Params[0], in.Args[0])
		}
	}
	if c.style == ForC {
		c.mergeGroups()
	}
}

// mergeBranch merges a branch's result with what either side yields. The first
// side's value is the result already if they share a register, even while the
// other side still uses it; if they don't, the result is also written where
// that side ends.
func (c *coalescer) mergeBranch(in *Instr, i int, r *Value) {
	x, y := in.Body.Yield[i], in.Else.Yield[i]
	c.merge(r, x)
	if x.IsConst() || c.find(r.ID) != c.find(c.l.root(x).ID) {
		at := c.l.ends[in].middle
		root := c.find(r.ID) // r alone: what surrounds the branch is merged later
		u, _ := c.unite(c.lives(root, 0), []segment{{at, at + 1}})
		c.live(root, u)
	}
	c.merge(r, y)
}

// mergeGroups lets values that are the same element of a named group share a
// register where their lives allow.
func (c *coalescer) mergeGroups() {
	type element struct {
		name string
		sub  int32
		typ  Type
	}
	holders := map[element][]*Value{}
	for id := range int32(c.l.k.NumValues()) {
		v := c.l.k.Value(id)
		if v.Name == "" || v.Sub < 0 || v.Floating() || c.l.to[v.ID] == 0 {
			continue
		}
		e := element{v.Name, v.Sub, v.Type}
		joined := false
		for _, h := range holders[e] {
			c.merge(h, v)
			if joined = c.find(h.ID) == c.find(v.ID); joined {
				break
			}
		}
		if !joined {
			holders[e] = append(holders[e], v)
		}
	}
}

// carriedParams are a loop's parameters but for the counter.
func carriedParams(in *Instr) []*Value {
	switch in.Op {
	case OpFor:
		return in.Body.Params[1:]
	case OpLoop:
		return in.Body.Params
	}
	return nil
}

func carriedYields(in *Instr) []*Value {
	if in.Op == OpLoop {
		return in.Body.Yield[1:]
	}
	return in.Body.Yield
}

// join makes a loop's parameter and result one from the start.
func (c *coalescer) join(in *Instr) {
	s := c.l.ends[in]
	for i, p := range carriedParams(in) {
		r := in.Results[i]
		c.parent[r.ID] = p.ID
		c.live(p.ID, []segment{{c.l.from[p.ID], c.l.to[p.ID]}, {s.end, c.l.to[r.ID]}})
	}
}

// merge puts two values in one register if they never live at once.
func (c *coalescer) merge(a, b *Value) {
	a, b = c.l.root(a), c.l.root(b)
	if a.IsConst() || b.IsConst() || a.Type != b.Type {
		return
	}
	if a.Floating() || b.Floating() {
		return
	}
	x, y := c.find(a.ID), c.find(b.ID)
	if x == y {
		return
	}
	u, ok := c.unite(c.lives(x, 0), c.lives(y, 1))
	if !ok {
		return
	}
	if y < x {
		x, y = y, x
	}
	c.parent[y] = x
	c.live(x, u)
}

// unite joins two sorted lists of segments; ok is false where they overlap.
func (c *coalescer) unite(a, b []segment) (u []segment, ok bool) {
	n := len(a) + len(b)
	if len(c.chunk) < n {
		c.chunk = make([]segment, max(n, 512))
	}
	u = c.chunk[:0:n]
	for len(a) > 0 && len(b) > 0 {
		if b[0].from < a[0].from || b[0].from == a[0].from && b[0].to < a[0].to {
			a, b = b, a
		}
		if a[0].to > b[0].from {
			return nil, false
		}
		u = append(u, a[0])
		a = a[1:]
	}
	c.chunk = c.chunk[n:]
	return append(append(u, a...), b...), true
}

func (c *coalescer) finish() *Registers {
	k := c.l.k
	r := &Registers{
		Of: make([]int32, k.NumValues()), First: make([]*Value, 0, k.NumValues()/2), Many: make([]bool, 0, k.NumValues()/2),
		Edges: map[*Instr]*Edges{},
	}
	byRoot := make([]int32, k.NumValues())
	for i := range r.Of {
		r.Of[i], byRoot[i] = -1, -1
	}
	take := func(v *Value) {
		root := c.l.root(v)
		if root.IsConst() {
			if v == root {
				return
			}
			root = v // a bitcast constant still needs a register
		}
		f := c.find(root.ID)
		if byRoot[f] < 0 {
			byRoot[f] = int32(len(r.First))
			r.First = append(r.First, v)
			r.Many = append(r.Many, false)
		} else if v == root {
			r.Many[byRoot[f]] = true
		}
		r.Of[v.ID] = byRoot[f]
	}
	for _, v := range k.Inputs {
		take(v)
	}
	takeBlock(k.Body, take)
	for _, in := range c.l.order {
		r.Edges[in] = r.edges(in, c.l)
	}
	for _, in := range c.l.tied {
		first, _ := in.Tied()
		if cs := r.copies(c.l, in.Results, in.Args[first:]); len(cs) > 0 {
			r.Edges[in] = &Edges{Enter: cs}
		}
	}
	return r
}

func takeBlock(b *Block, take func(*Value)) {
	if b == nil {
		return
	}
	for _, v := range b.Params {
		take(v)
	}
	for _, in := range b.Instrs {
		if in.Body != nil {
			takeBlock(in.Body, take)
			takeBlock(in.Else, take)
		}
		for _, v := range in.Results {
			take(v)
		}
	}
}

func (r *Registers) edges(in *Instr, l *liveness) *Edges {
	e := &Edges{}
	if in.Op == OpIf {
		e.Then = r.copies(l, in.Results, in.Body.Yield)
		if in.Else != nil {
			e.Else = r.copies(l, in.Results, in.Else.Yield)
		}
		return e
	}
	lead := len(in.Args) - len(in.Results)
	e.Next = r.copies(l, carriedParams(in), carriedYields(in))
	params, inits := carriedParams(in), in.Args[lead:]
	if in.Op == OpFor {
		params = append([]*Value{in.Body.Params[0]}, params...)
		inits = append([]*Value{in.Args[0]}, inits...)
	}
	e.Enter = r.copies(l, params, inits)
	return e
}

func (r *Registers) copies(l *liveness, to, from []*Value) []Copy {
	var cs []Copy
	for i, t := range to {
		f := from[i]
		if root := l.root(f); root.IsConst() {
			f = root
		}
		if f.IsConst() || r.Of[f.ID] != r.Of[t.ID] {
			cs = append(cs, Copy{r.Of[t.ID], f})
		}
	}
	return cs
}

// Sequence puts copies that happen at once in an order. For each cycle of
// registers, save is called with the register whose old value is needed later
// and gives a register that holds it; emit moves register from (or, if
// negative, the constant v) to register to.
func (r *Registers) Sequence(cs []Copy, save func(reg int32) int32, emit func(to, from int32, v *Value)) {
	type move struct {
		to, from int32
		v        *Value
	}
	var pending []move
	var consts []move
	for _, c := range cs {
		if c.From.IsConst() {
			consts = append(consts, move{c.To, -1, c.From})
			continue
		}
		pending = append(pending, move{c.To, r.Of[c.From.ID], c.From})
	}
	for len(pending) > 0 {
		done := false
		for i := 0; i < len(pending); i++ {
			to := pending[i].to
			if slices.ContainsFunc(pending, func(m move) bool { return m.from == to && m.to != to }) {
				continue
			}
			emit(to, pending[i].from, pending[i].v)
			pending = slices.Delete(pending, i, i+1)
			i--
			done = true
		}
		if !done {
			old := pending[0].to
			kept := save(old)
			for i := range pending {
				if pending[i].from == old {
					pending[i].from = kept
				}
			}
		}
	}
	for _, m := range consts {
		emit(m.to, -1, m.v)
	}
}
