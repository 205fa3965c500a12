package simt

// Uniform tells of each value, by ID, whether all lanes of a warp hold the
// same. Branches on such values need no reconvergence.
func Uniform(k *Kernel) []bool {
	u := uniformity{k: k, varies: make([]bool, k.NumValues())}
	for _, v := range k.Inputs {
		if v.Def.Op == OpSpecial {
			switch v.Def.Special {
			case TidX, LaneID:
				u.varies[v.ID] = true
			}
		}
	}
	for u.changed = true; u.changed; {
		u.changed = false
		u.block(k.Body, false)
	}
	same := u.varies
	for i := range same {
		same[i] = !same[i]
	}
	return same
}

type uniformity struct {
	k       *Kernel
	varies  []bool
	changed bool
}

func (u *uniformity) mark(v *Value) {
	if !u.varies[v.ID] {
		u.varies[v.ID] = true
		u.changed = true
	}
}

// block goes through a block; divergent says its lanes do not all run it
// equally often.
func (u *uniformity) block(b *Block, divergent bool) {
	for _, in := range b.Instrs {
		switch in.Op {
		case OpFor, OpLoop:
			u.loop(in, divergent)
		case OpIf:
			u.branch(in, divergent)
		default:
			if u.instrVaries(in) {
				for _, r := range in.Results {
					u.mark(r)
				}
			}
		}
	}
}

func (u *uniformity) any(vs []*Value) bool {
	for _, v := range vs {
		if u.varies[v.ID] {
			return true
		}
	}
	return false
}

func (u *uniformity) instrVaries(in *Instr) bool {
	switch in.Op {
	case OpVote, OpBallot, OpRedux:
		return false
	case OpElect, OpAtom, OpLdMatrix, OpMma, OpWgmma, OpMatch:
		return true
	case OpShfl:
		return in.Shfl != Idx || in.Imm != 0x1f || u.any(in.Args[1:])
	case OpShrU, OpShr:
		// Warps are 32 consecutive threads: tid.x / 32 is one number a warp.
		if x := in.Args[0]; x.Floating() && x.Def.Op == OpSpecial && x.Def.Special == TidX && in.Args[1].IsConst() {
			return in.Args[1].Int() < 5
		}
	}
	return u.any(in.Args) || in.Guard != nil && u.varies[in.Guard.ID]
}

func (u *uniformity) loop(in *Instr, divergent bool) {
	inits := in.Args[len(in.Args)-len(in.Results):]
	params, yields := carriedParams(in), carriedYields(in)
	var odd bool // lanes may leave at different times
	if in.Op == OpFor {
		odd = u.any(in.Args[:3])
		if u.any(in.Args[:1]) || u.any(in.Args[2:3]) {
			u.mark(in.Body.Params[0])
		}
	} else {
		odd = u.varies[in.Body.Yield[0].ID]
	}
	u.block(in.Body, divergent || odd)
	for i, p := range params {
		if u.varies[inits[i].ID] || u.varies[yields[i].ID] {
			u.mark(p)
		}
		if u.varies[p.ID] || odd {
			u.mark(in.Results[i])
		}
	}
}

func (u *uniformity) branch(in *Instr, divergent bool) {
	odd := u.varies[in.Args[0].ID]
	u.block(in.Body, divergent || odd)
	if in.Else == nil {
		return
	}
	u.block(in.Else, divergent || odd)
	for i, r := range in.Results {
		if odd || u.varies[in.Body.Yield[i].ID] || u.varies[in.Else.Yield[i].ID] {
			u.mark(r)
		}
	}
}
