package simt

// Most registers that hoisting may keep alive through a loop. Beyond that,
// values one cheap operation away from another stay in the loop: an extra
// instruction a round costs less than a spill.
const (
	hoistRegisters  = 32
	hoistPredicates = 4 // of the seven a thread has
)

// Hoist moves pure operations whose operands a loop does not change before the
// loop, inner loops first.
func Hoist(k *Kernel) {
	n := k.NumValues()
	h := hoister{inside: make([]int32, n), moved: make([]bool, n), used: make([]int32, n)}
	h.block(k.Body)
}

type hoister struct {
	inside []int32 // the innermost loop (numbered) being hoisted that defines a value
	loop   int32
	moved  []bool  // of the loop at hand: to be hoisted
	used   []int32 // of hoisted values: uses that stay in the loop
}

func (h *hoister) block(b *Block) {
	out := make([]*Instr, 0, len(b.Instrs))
	for _, in := range b.Instrs {
		if in.Body != nil {
			h.block(in.Body)
			if in.Else != nil {
				h.block(in.Else)
			}
			if in.Op != OpIf {
				out = append(out, h.fromLoop(in)...)
			}
		}
		out = append(out, in)
	}
	b.Instrs = out
}

// fromLoop takes the invariant instructions out of a loop.
func (h *hoister) fromLoop(loop *Instr) []*Instr {
	h.loop++
	markDefined(loop.Body, h.inside, h.loop)
	var found []*Instr
	for _, in := range loop.Body.Instrs {
		if in.Pure() && in.Body == nil && len(in.Results) > 0 && h.invariant(in) {
			found = append(found, in)
			for _, r := range in.Results {
				h.moved[r.ID] = true
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	h.limit(loop, found)
	var out []*Instr
	rest := loop.Body.Instrs[:0]
	for _, in := range loop.Body.Instrs {
		if len(in.Results) > 0 && h.moved[in.Results[0].ID] {
			out = append(out, in)
		} else {
			rest = append(rest, in)
		}
	}
	clear(loop.Body.Instrs[len(rest):])
	loop.Body.Instrs = rest
	for _, in := range found {
		for _, r := range in.Results {
			h.moved[r.ID] = false
		}
	}
	return out
}

// markDefined marks what a loop's body defines with the loop's number, by ID. IDs beyond
// inside are left out.
func markDefined(b *Block, inside []int32, loop int32) {
	if b == nil {
		return
	}
	mark := func(vs []*Value) {
		for _, v := range vs {
			if int(v.ID) < len(inside) {
				inside[v.ID] = loop
			}
		}
	}
	mark(b.Params)
	for _, in := range b.Instrs {
		mark(in.Results)
		markDefined(in.Body, inside, loop)
		markDefined(in.Else, inside, loop)
	}
}

func (h *hoister) invariant(in *Instr) bool {
	for _, x := range in.Args {
		if h.inside[x.ID] == h.loop && !h.moved[x.ID] && !x.Floating() {
			return false
		}
	}
	return true
}

// limit keeps cheap operations in the loop where too many values would live
// through it.
func (h *hoister) limit(loop *Instr, found []*Instr) {
	for _, in := range found {
		for _, r := range in.Results {
			h.used[r.ID] = 0
		}
	}
	h.count(loop.Body)
	regs, preds := 0, 0
	add := func(v *Value, sign int) {
		if v.Type == Pred {
			preds += sign
		} else {
			regs += sign * max(v.Type.Bits(), 32) / 32
		}
	}
	for _, in := range found {
		for _, r := range in.Results {
			if h.used[r.ID] > 0 {
				add(r, 1)
			}
		}
	}
	for i := len(found) - 1; i >= 0 && (regs > hoistRegisters || preds > hoistPredicates); i-- {
		in := found[i]
		r := in.Results[0]
		if h.used[r.ID] == 0 || !cheap(in) || r.Type == Pred && preds <= hoistPredicates || r.Type != Pred && regs <= hoistRegisters {
			continue
		}
		h.moved[r.ID] = false
		add(r, -1)
		for _, x := range in.Args {
			if h.moved[x.ID] {
				if h.used[x.ID]++; h.used[x.ID] == 1 {
					add(x, 1)
				}
			}
		}
	}
	// What stays may not be used by what goes.
	for _, in := range found {
		if h.moved[in.Results[0].ID] && !h.invariant(in) {
			for _, r := range in.Results {
				h.moved[r.ID] = false
			}
		}
	}
}

// cheap tells whether an operation is one instruction on one register.
func cheap(in *Instr) bool {
	if len(in.Results) != 1 {
		return false
	}
	switch in.Op {
	case OpCmp:
		return true
	case OpPack: // a number in 64 bits, such as a descriptor
		return in.Type == I64 && in.Args[1].IsConst()
	case OpAdd, OpSub, OpAnd, OpOr, OpXor, OpShl, OpShrU, OpShr:
		return in.Type == I32 && in.Args[1].IsConst() || in.Type == Pred
	}
	return false
}

// count counts the uses of hoisted values by what is not hoisted.
func (h *hoister) count(b *Block) {
	if b == nil {
		return
	}
	use := func(v *Value) {
		if v != nil && h.moved[v.ID] {
			h.used[v.ID]++
		}
	}
	for _, in := range b.Instrs {
		if len(in.Results) > 0 && h.moved[in.Results[0].ID] {
			continue
		}
		for _, x := range in.Args {
			use(x)
		}
		use(in.Guard)
		h.count(in.Body)
		h.count(in.Else)
	}
	for _, y := range b.Yield {
		use(y)
	}
}
