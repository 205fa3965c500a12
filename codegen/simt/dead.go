package simt

// RemoveDead removes instructions without effect whose results nobody uses,
// and values that loops and branches hand on for nobody.
func RemoveDead(k *Kernel) {
	d := deadness{live: make([]bool, k.NumValues()), kept: map[*Instr]bool{}}
	d.roots(k.Body)
	for len(d.work) > 0 {
		v := d.work[len(d.work)-1]
		d.work = d.work[:len(d.work)-1]
		d.reach(v)
	}
	d.sweep(k.Body)
	inputs := k.Inputs[:0]
	for _, v := range k.Inputs {
		if d.live[v.ID] {
			inputs = append(inputs, v)
		} else {
			delete(k.roots, rootKey{v.Def.Op, v.Type, v.Def.Imm})
		}
	}
	k.Inputs = inputs
}

type deadness struct {
	live []bool
	work []*Value
	kept map[*Instr]bool // loops and branches that stay
}

func (d *deadness) mark(v *Value) {
	if v != nil && !d.live[v.ID] {
		d.live[v.ID] = true
		d.work = append(d.work, v)
	}
}

// roots marks what instructions with effects use, and tells whether the block
// has any.
func (d *deadness) roots(b *Block) (effects bool) {
	for _, in := range b.Instrs {
		if in.Body != nil {
			inner := d.roots(in.Body)
			if in.Else != nil {
				inner = d.roots(in.Else) || inner
			}
			if inner || in.Op == OpLoop {
				d.keep(in)
				effects = true
			}
			continue
		}
		if in.Removable() {
			continue
		}
		effects = true
		for _, x := range in.Args {
			d.mark(x)
		}
		d.mark(in.Guard)
	}
	return effects
}

// keep marks what decides how a loop or branch runs.
func (d *deadness) keep(in *Instr) {
	if d.kept[in] {
		return
	}
	d.kept[in] = true
	switch in.Op {
	case OpFor:
		for _, x := range in.Args[:3] {
			d.mark(x)
		}
		d.live[in.Body.Params[0].ID] = true
	case OpLoop:
		d.mark(in.Body.Yield[0])
	case OpIf:
		d.mark(in.Args[0])
	}
}

// reach marks what a live value is made from.
func (d *deadness) reach(v *Value) {
	in := v.Def
	switch {
	case v.Block != nil:
		i := int(v.Index)
		if in.Op == OpFor {
			i--
		}
		if i >= 0 {
			d.carried(in, i)
		}
	case in.Op == OpFor || in.Op == OpLoop:
		d.keep(in)
		d.mark(carriedParams(in)[v.Index])
		d.carried(in, int(v.Index))
	case in.Op == OpIf:
		d.keep(in)
		d.mark(in.Body.Yield[v.Index])
		d.mark(in.Else.Yield[v.Index])
	default:
		for _, x := range in.Args {
			d.mark(x)
		}
		d.mark(in.Guard)
	}
}

func (d *deadness) carried(in *Instr, i int) {
	d.mark(in.Args[len(in.Args)-len(in.Results)+i])
	d.mark(carriedYields(in)[i])
}

func (d *deadness) anyLive(vs []*Value) bool {
	for _, v := range vs {
		if d.live[v.ID] {
			return true
		}
	}
	return false
}

func (d *deadness) sweep(b *Block) {
	out := b.Instrs[:0]
	for _, in := range b.Instrs {
		switch {
		case in.Body != nil:
			if !d.kept[in] {
				continue
			}
			d.shrink(in)
			d.sweep(in.Body)
			if in.Else != nil {
				d.sweep(in.Else)
			}
		case in.Removable() && !d.anyLive(in.Results):
			continue
		}
		out = append(out, in)
	}
	clear(b.Instrs[len(out):])
	b.Instrs = out
}

// shrink removes what a loop or branch hands on for nobody.
func (d *deadness) shrink(in *Instr) {
	if in.Op == OpIf {
		d.shrinkBranch(in)
		return
	}
	n := len(in.Results)
	params, yields := carriedParams(in), carriedYields(in)
	lead := len(in.Body.Params) - n
	inits := in.Args[len(in.Args)-n:]
	kept := 0
	for i, r := range in.Results {
		if !d.live[r.ID] && !d.live[params[i].ID] {
			continue
		}
		in.Results[kept], inits[kept], params[kept], yields[kept] = r, inits[i], params[i], yields[i]
		r.Index, params[kept].Index = int32(kept), int32(lead+kept)
		kept++
	}
	gone := n - kept
	in.Results = in.Results[:kept]
	in.Args = in.Args[:len(in.Args)-gone]
	in.Body.Params = in.Body.Params[:len(in.Body.Params)-gone]
	in.Body.Yield = in.Body.Yield[:len(in.Body.Yield)-gone]
}

func (d *deadness) shrinkBranch(in *Instr) {
	if in.Else == nil {
		return
	}
	kept := 0
	for i, r := range in.Results {
		if !d.live[r.ID] {
			continue
		}
		in.Results[kept], in.Body.Yield[kept], in.Else.Yield[kept] = r, in.Body.Yield[i], in.Else.Yield[i]
		r.Index = int32(kept)
		kept++
	}
	in.Results, in.Body.Yield, in.Else.Yield = in.Results[:kept], in.Body.Yield[:kept], in.Else.Yield[:kept]
}
