package simt

import (
	"cmp"
	"slices"
)

// Most pointers and offsets that reducing addresses may carry through a loop: each takes
// two registers for the whole loop, which a loop full of fragments does not have.
const reducePointers = 8

// ReduceAddresses replaces addresses in loops that rise by the same amount
// each round by carried values that are bumped once a round. Addresses that
// differ by a constant share one, and those at equal distances follow from one. Loops where that would not save
// instructions stay as they are.
//
// It takes the 32-bit arithmetic under a widening (Sext, Zext, MulWide,
// MadWide) that leads to an address not to wrap, as lowering promises:
// an index that wrapped would be outside its view.
func ReduceAddresses(k *Kernel) {
	r := reducer{k: k}
	r.block(k.Body)
}

type reducer struct {
	k *Kernel
	// Of the loop at hand, by value: whether its body defines it, and uses of it
	// in the body.
	inside stamps
	left   []int32
}

// stamps is a set of values that empties at once.
type stamps struct {
	at  []int32
	now int32
}

func (s *stamps) clear(n int) {
	if len(s.at) < n {
		s.at = make([]int32, n+n/2)
	}
	s.now++
}

func (s *stamps) add(v *Value)      { s.at[v.ID] = s.now }
func (s *stamps) has(v *Value) bool { return int(v.ID) < len(s.at) && s.at[v.ID] == s.now }

func (r *reducer) block(b *Block) {
	out := make([]*Instr, 0, len(b.Instrs))
	for _, in := range b.Instrs {
		if in.Body != nil {
			r.block(in.Body)
			if in.Else != nil {
				r.block(in.Else)
			}
		}
		if in.Op == OpFor {
			out = append(out, r.loop(in)...)
		}
		out = append(out, in)
	}
	b.Instrs = out
}

// affine is a value that is start in a loop's first round and rises by step
// each round; both exist before the loop. step is nil where it never changes.
type affine struct {
	start, step *Value
	ok          bool
}

// loopAddresses reduces the addresses of one loop. What it builds before the
// loop is in b's block.
type loopAddresses struct {
	k      *Kernel
	b      *Builder
	loop   *Instr
	inside *stamps
	left   []int32
	memo   map[*Value]affine
}

// addressUse is one address operand.
type addressUse struct {
	in   *Instr
	arg  int
	top  int // the body's instruction that holds it
	at   affine
	base *Value // start without its constant part
	off  int32  // the constant part and the instruction's offset
}

func (u *addressUse) offset() int {
	if u.in.Op == OpCpAsync && u.arg == 1 {
		return u.in.CpAsyncGlobalOffset()
	}
	return int(u.in.Offset)
}

func (r *reducer) loop(loop *Instr) []*Instr {
	var uses []addressUse
	for i, in := range loop.Body.Instrs {
		uses = addressesIn(in, i, uses)
	}
	if len(uses) == 0 {
		return nil
	}
	r.inside.clear(r.k.NumValues())
	if len(r.left) < r.k.NumValues() {
		r.left = make([]int32, r.k.NumValues()*2)
	}
	l := loopAddresses{k: r.k, b: NewBuilder(r.k), loop: loop, inside: &r.inside, left: r.left, memo: map[*Value]affine{}}
	l.b.block = &Block{}
	l.b.note = loop.Note
	l.enter(loop.Body)
	l.counters()
	kept := uses[:0]
	for _, u := range uses {
		v := u.in.Args[u.arg]
		if !l.inside.has(v) || v.Block == loop.Body {
			continue
		}
		if u.at = l.affine(v); u.at.ok && u.at.step != nil {
			u.base, u.off = l.b.split(u.at.start, u.offset())
			kept = append(kept, u)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	pointers := l.group(kept)
	if !l.pays(kept, pointers) {
		return nil
	}
	l.carry(pointers)
	return l.b.block.Instrs
}

// pointer is an address that several uses share up to constants.
type pointer struct {
	base, step *Value
	uses       []addressUse
	same       poly     // of base: what is the same in all threads
	after      *pointer // the pointer this one is a fixed distance from, or nil
	ahead      poly     // that distance
}

// group puts uses that differ by constants together, and chains pointers that
// lie at equal distances, as the rows of a tile do: one of them is carried,
// the next is computed from it, and so on, which takes no more instructions
// and far fewer registers.
func (l *loopAddresses) group(uses []addressUse) []*pointer {
	type id struct{ base, step *Value }
	at := map[id]*pointer{}
	var all []*pointer
	for _, u := range uses {
		i := id{u.base, u.at.step}
		if at[i] == nil {
			at[i] = &pointer{base: u.base, step: u.at.step}
			all = append(all, at[i])
		}
		at[i].uses = append(at[i].uses, u)
	}
	for _, p := range all {
		slices.SortStableFunc(p.uses, func(a, b addressUse) int { return cmp.Compare(a.top, b.top) })
	}
	l.chain(all)
	return all
}

// chain links pointers to the one before where at most two distances occur.
func (l *loopAddresses) chain(all []*pointer) {
	ps := polys{zeros: &l.b.zeros, memo: map[*Value]poly{}}
	type cluster struct {
		rest poly
		step *Value
		in   []*pointer
	}
	var clusters []*cluster
	for _, p := range all {
		if p.base.Type != Ptr {
			continue
		}
		same, rest := ps.of(p.base).split()
		p.same = same
		i := slices.IndexFunc(clusters, func(c *cluster) bool { return c.step == p.step && c.rest.equal(rest) })
		if i < 0 {
			i = len(clusters)
			clusters = append(clusters, &cluster{rest: rest, step: p.step})
		}
		clusters[i].in = append(clusters[i].in, p)
	}
	for _, c := range clusters {
		slices.SortStableFunc(c.in, func(a, b *pointer) int { return cmp.Compare(a.uses[0].top, b.uses[0].top) })
		var distances []poly
		for i := 1; i < len(c.in); i++ {
			d := c.in[i].same.plus(c.in[i-1].same, -1)
			if !slices.ContainsFunc(distances, d.equal) {
				distances = append(distances, d)
			}
		}
		if len(c.in) < 3 || len(distances) > 2 {
			continue
		}
		for i := 1; i < len(c.in); i++ {
			c.in[i].after, c.in[i].ahead = c.in[i-1], c.in[i].same.plus(c.in[i-1].same, -1)
		}
	}
}

// addressesIn finds the address operands of an instruction of a loop's body,
// number top, and of branches, but not of loops within.
func addressesIn(in *Instr, top int, uses []addressUse) []addressUse {
	switch in.Op {
	case OpLd, OpSt, OpAtom, OpRed, OpLdMatrix, OpStMatrix, OpPrefetch:
		return append(uses, addressUse{in: in, top: top})
	case OpCpAsync:
		return append(uses, addressUse{in: in, top: top}, addressUse{in: in, arg: 1, top: top})
	case OpIf:
		for _, b := range []*Block{in.Body, in.Else} {
			if b == nil {
				continue
			}
			for _, i := range b.Instrs {
				uses = addressesIn(i, top, uses)
			}
		}
	}
	return uses
}

func (l *loopAddresses) enter(b *Block) {
	if b == nil {
		return
	}
	for _, p := range b.Params {
		l.inside.add(p)
	}
	for _, in := range b.Instrs {
		for _, r := range in.Results {
			l.inside.add(r)
		}
		l.enter(in.Body)
		l.enter(in.Else)
	}
}

// counters notes what rises by a fixed amount by itself: the loop's counter,
// and carried values that have something invariant added.
func (l *loopAddresses) counters() {
	params := l.loop.Body.Params
	l.memo[params[0]] = affine{l.loop.Args[0], l.loop.Args[2], true}
	for i, p := range params[1:] {
		y := l.loop.Body.Yield[i]
		if y.Block != nil || y.Def == nil || y.Def.Op != OpAdd || y.Def.Args[0] != p {
			continue
		}
		if step := y.Def.Args[1]; !l.inside.has(step) || step.Floating() {
			l.memo[p] = affine{l.loop.Args[3+i], step, true}
		}
	}
}

func (l *loopAddresses) affine(v *Value) affine {
	if v.Floating() || !l.inside.has(v) {
		return affine{v, nil, true}
	}
	if a, ok := l.memo[v]; ok {
		return a
	}
	a := l.compute(v)
	l.memo[v] = a
	return a
}

func (l *loopAddresses) compute(v *Value) affine {
	in := v.Def
	if v.Block != nil || in == nil || !in.Pure() || len(in.Results) != 1 || in.Body != nil {
		return affine{}
	}
	var args [3]affine
	if len(in.Args) > 3 {
		return affine{}
	}
	fixed := true
	for i, x := range in.Args {
		args[i] = l.affine(x)
		if !args[i].ok {
			return affine{}
		}
		fixed = fixed && args[i].step == nil
	}
	starts := make([]*Value, len(in.Args))
	for i := range in.Args {
		starts[i] = args[i].start
	}
	start := l.b.pure(in.Op, in.Type, v.Type, in.attrs(), starts...)
	if fixed {
		return affine{start, nil, true}
	}
	step, ok := l.step(in, args)
	return affine{start, step, ok}
}

// step is how much an operation's result rises a round.
func (l *loopAddresses) step(in *Instr, a [3]affine) (*Value, bool) {
	x, y, z := a[0], a[1], a[2]
	b := l.b
	switch in.Op {
	case OpAdd:
		return l.sum(x.step, y.step), true
	case OpSub:
		if y.step == nil {
			return x.step, true
		}
		return l.sum(x.step, b.Neg(y.step)), true
	case OpShl:
		if y.step == nil {
			return b.Shl(x.step, y.start), true
		}
	case OpMul:
		return l.product(x, y, b.Mul)
	case OpMulWide:
		return l.product(x, y, b.MulWide)
	case OpMulWideU:
		return l.product(x, y, b.MulWideU)
	case OpMad:
		return l.productSum(x, y, z, b.Mul)
	case OpMadWide:
		return l.productSum(x, y, z, b.MulWide)
	case OpMadWideU:
		return l.productSum(x, y, z, b.MulWideU)
	case OpSext, OpZext:
		if in.Type == I64 && in.Args[0].Type == I32 {
			return b.Sext(x.step, I64), true
		}
	}
	return nil, false
}

// sum adds two steps, either of which may be none.
func (l *loopAddresses) sum(x, y *Value) *Value {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return l.b.Add(x, y)
}

// product is the step of x*y, one of which does not change.
func (l *loopAddresses) product(x, y affine, mul func(x, y *Value) *Value) (*Value, bool) {
	switch {
	case y.step == nil && x.step == nil:
		return nil, true
	case y.step == nil:
		return mul(x.step, y.start), true
	case x.step == nil:
		return mul(x.start, y.step), true
	}
	return nil, false
}

func (l *loopAddresses) productSum(x, y, z affine, mul func(x, y *Value) *Value) (*Value, bool) {
	p, ok := l.product(x, y, mul)
	if !ok {
		return nil, false
	}
	return l.sum(p, z.step), true
}

// pays tells whether carrying the pointers takes fewer instructions a round
// than computing the addresses, or as many and fewer registers.
func (l *loopAddresses) pays(uses []addressUse, pointers []*pointer) bool {
	cost, carried := 0, 0
	for _, p := range pointers {
		cost += weight(p.base.Type)
		if p.after == nil {
			carried++
		}
	}
	if carried > reducePointers {
		return false
	}
	saved := l.saved(uses)
	return cost < saved || cost == saved && carried < len(pointers)
}

// weight is how many instructions an addition takes.
func weight(t Type) int {
	if t.Bits() == 64 {
		return 2
	}
	return 1
}

// saved counts the instructions that only serve to compute the addresses in
// each round.
func (l *loopAddresses) saved(uses []addressUse) int {
	countUses(l.loop.Body, l.left)
	defer clearUses(l.loop.Body, l.left)
	var work []*Value
	release := func(v *Value) {
		if l.left[v.ID]--; l.left[v.ID] == 0 {
			work = append(work, v)
		}
	}
	for _, u := range uses {
		release(u.in.Args[u.arg])
	}
	n := 0
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v.Block != nil || !l.inside.has(v) {
			continue
		}
		if l.memo[v].step != nil {
			n += weight(v.Type)
		}
		for _, x := range v.Def.Args {
			release(x)
		}
	}
	return n
}

func countUses(b *Block, n []int32) {
	eachUseIn(b, func(v *Value) { n[v.ID]++ })
}

func clearUses(b *Block, n []int32) {
	eachUseIn(b, func(v *Value) { n[v.ID] = 0 })
}

// eachUseIn calls f for every use of a value in a block.
func eachUseIn(b *Block, f func(*Value)) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		for _, x := range in.Args {
			f(x)
		}
		if in.Guard != nil {
			f(in.Guard)
		}
		eachUseIn(in.Body, f)
		eachUseIn(in.Else, f)
	}
	for _, y := range b.Yield {
		f(y)
	}
}

// carry adds the carried pointers to the loop and makes the uses use them.
func (l *loopAddresses) carry(pointers []*pointer) {
	at := map[*pointer]*Value{}
	before := map[int][]*Instr{} // additions to insert before the body's instructions
	slices.SortStableFunc(pointers, func(a, b *pointer) int { return cmp.Compare(a.uses[0].top, b.uses[0].top) })
	for _, p := range pointers {
		if p.after == nil {
			at[p] = l.param(p.base, p.step)
		} else {
			add := l.add(at[p.after], p.ahead.build(l.b))
			at[p] = add.Results[0]
			before[p.uses[0].top] = append(before[p.uses[0].top], add)
		}
		for _, u := range p.uses {
			u.in.Args[u.arg] = at[p]
			if u.in.Op == OpCpAsync && u.arg == 1 {
				u.in.Imm = int64(u.in.CpAsyncBytes()) | int64(u.off)<<8
			} else {
				u.in.Offset = u.off
			}
		}
	}
	body := l.loop.Body
	out := make([]*Instr, 0, len(body.Instrs)+len(pointers))
	for i, in := range body.Instrs {
		out = append(append(out, before[i]...), in)
	}
	body.Instrs = out
}

// add is p + step, an instruction in no block yet.
func (l *loopAddresses) add(p, step *Value) *Instr {
	in := l.k.newInstr()
	in.Op, in.Type = OpAdd, p.Type
	in.Args = l.k.copyList([]*Value{p, step})
	in.Results = l.k.list(1)
	in.Results[0] = l.k.newValue(p.Type, in, 0)
	return in
}

// param adds a carried value that starts at start and rises by step.
func (l *loopAddresses) param(start, step *Value) *Value {
	loop, k := l.loop, l.k
	p := k.newValue(start.Type, loop, len(loop.Body.Params))
	p.Block, p.Name = loop.Body, "at"
	loop.Body.Params = append(loop.Body.Params[:len(loop.Body.Params):len(loop.Body.Params)], p)
	loop.Args = append(loop.Args[:len(loop.Args):len(loop.Args)], start)
	res := k.newValue(start.Type, loop, len(loop.Results))
	loop.Results = append(loop.Results[:len(loop.Results):len(loop.Results)], res)
	add := l.add(p, step)
	loop.Body.Instrs = append(loop.Body.Instrs, add)
	loop.Body.Yield = append(loop.Body.Yield[:len(loop.Body.Yield):len(loop.Body.Yield)], add.Results[0])
	return p
}
