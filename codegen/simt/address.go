package simt

// Most pointers and offsets that reducing addresses may carry through a loop: each takes
// two registers for the whole loop, which a loop full of fragments does not have.
const reducePointers = 8

// ReduceAddresses replaces addresses in loops that rise by the same amount
// each round by carried values that are bumped once a round. Addresses that
// differ by a constant share one. Loops where that would not save
// instructions stay as they are.
//
// It takes the 32-bit arithmetic under a widening (Sext, Zext, MulWide,
// MadWide) that leads to an address not to wrap, as lowering promises:
// an index that wrapped would be outside its view.
func ReduceAddresses(k *Kernel) {
	r := reducer{k: k}
	r.block(k.Body)
}

type reducer struct{ k *Kernel }

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
	inside map[*Value]bool
	memo   map[*Value]affine
}

// addressUse is one address operand.
type addressUse struct {
	in   *Instr
	arg  int
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
	uses := addressesIn(loop.Body, nil)
	if len(uses) == 0 {
		return nil
	}
	l := loopAddresses{k: r.k, b: NewBuilder(r.k), loop: loop, inside: map[*Value]bool{}, memo: map[*Value]affine{}}
	l.b.block = &Block{}
	l.b.note = loop.Note
	l.enter(loop.Body)
	l.counters()
	kept := uses[:0]
	for _, u := range uses {
		v := u.in.Args[u.arg]
		if !l.inside[v] || v.Block == loop.Body {
			continue
		}
		if u.at = l.affine(v); u.at.ok && u.at.step != nil {
			u.base, u.off = l.b.split(u.at.start, u.offset())
			kept = append(kept, u)
		}
	}
	if len(kept) == 0 || !l.pays(kept) {
		return nil
	}
	l.carry(kept)
	return l.b.block.Instrs
}

// addressesIn finds the address operands of a loop's body, without those of
// loops within.
func addressesIn(b *Block, uses []addressUse) []addressUse {
	if b == nil {
		return uses
	}
	for _, in := range b.Instrs {
		switch in.Op {
		case OpLd, OpSt, OpAtom, OpRed, OpLdMatrix, OpStMatrix, OpPrefetch:
			uses = append(uses, addressUse{in: in})
		case OpCpAsync:
			uses = append(uses, addressUse{in: in}, addressUse{in: in, arg: 1})
		case OpIf:
			uses = addressesIn(in.Else, addressesIn(in.Body, uses))
		}
	}
	return uses
}

func (l *loopAddresses) enter(b *Block) {
	if b == nil {
		return
	}
	for _, p := range b.Params {
		l.inside[p] = true
	}
	for _, in := range b.Instrs {
		for _, r := range in.Results {
			l.inside[r] = true
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
		if step := y.Def.Args[1]; !l.inside[step] || step.Floating() {
			l.memo[p] = affine{l.loop.Args[3+i], step, true}
		}
	}
}

func (l *loopAddresses) affine(v *Value) affine {
	if v.Floating() || !l.inside[v] {
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

// pays tells whether carrying the addresses takes fewer instructions a round
// than computing them.
func (l *loopAddresses) pays(uses []addressUse) bool {
	type pointer struct{ base, step *Value }
	groups := map[pointer]bool{}
	cost := 0
	for _, u := range uses {
		p := pointer{u.base, u.at.step}
		if !groups[p] {
			groups[p] = true
			cost += weight(u.base.Type)
		}
	}
	if len(groups) > reducePointers {
		return false
	}
	return cost < l.saved(uses)
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
	left := map[*Value]int{} // uses that would remain
	countUses(l.loop.Body, left)
	var work []*Value
	release := func(v *Value) {
		if left[v]--; left[v] == 0 {
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
		if v.Block != nil || !l.inside[v] {
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

func countUses(b *Block, n map[*Value]int) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		for _, x := range in.Args {
			n[x]++
		}
		if in.Guard != nil {
			n[in.Guard]++
		}
		countUses(in.Body, n)
		countUses(in.Else, n)
	}
	for _, y := range b.Yield {
		n[y]++
	}
}

// carry adds the carried pointers to the loop and makes the uses use them.
func (l *loopAddresses) carry(uses []addressUse) {
	type pointer struct{ base, step *Value }
	params := map[pointer]*Value{}
	for _, u := range uses {
		id := pointer{u.base, u.at.step}
		p, ok := params[id]
		if !ok {
			p = l.param(u.base, u.at.step)
			params[id] = p
		}
		u.in.Args[u.arg] = p
		if u.in.Op == OpCpAsync && u.arg == 1 {
			u.in.Imm = int64(u.in.CpAsyncBytes()) | int64(u.off)<<8
		} else {
			u.in.Offset = u.off
		}
	}
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
	add := k.newInstr()
	add.Op, add.Type = OpAdd, start.Type
	add.Args = k.copyList([]*Value{p, step})
	add.Results = k.list(1)
	add.Results[0] = k.newValue(start.Type, add, 0)
	loop.Body.Instrs = append(loop.Body.Instrs, add)
	loop.Body.Yield = append(loop.Body.Yield[:len(loop.Body.Yield):len(loop.Body.Yield)], add.Results[0])
	return p
}
