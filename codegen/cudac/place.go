package cudac

import "github.com/kgen-dev/kgen/codegen/simt"

// Where variables are declared, and which values need none because they are
// printed inside the expression that uses them.

// inlineWeight is how many operations an expression printed in one piece has
// at most.
const inlineWeight = 6

// chooseInline marks pure values that are used once, in the block that defines
// them, have no name of their own, and depend on nothing that is assigned more
// than once.
func (p *printer) chooseInline() {
	n := p.k.NumValues()
	p.inline, p.uses = make([]bool, n), make([]int32, n)
	in := inliner{p: p, user: make([]int32, n), home: make([]int32, n)}
	in.block(p.k.Body)
	in.choose(p.k.Body)
}

type inliner struct {
	p          *printer
	user, home []int32 // block that uses, that defines, a value
	next       int32
	weight     map[int32]int
}

func (in *inliner) use(v *simt.Value, block int32) {
	in.p.uses[v.ID]++
	in.user[v.ID] = block
}

func (in *inliner) block(b *simt.Block) {
	if b == nil {
		return
	}
	in.next++
	id := in.next
	for _, y := range b.Yield {
		in.use(y, -1)
	}
	for n := len(b.Instrs) - 1; n >= 0; n-- { // backwards, to leave out what is dead
		i := b.Instrs[n]
		if in.p.dead(i) {
			continue
		}
		for _, x := range i.Args {
			in.use(x, id)
		}
		if i.Guard != nil {
			in.use(i.Guard, id)
		}
		if i.Op == simt.OpFor { // looked at again each round
			in.use(i.Args[1], -1)
			in.use(i.Args[2], -1)
		}
		for _, r := range i.Results {
			in.home[r.ID] = id
		}
		in.block(i.Body)
		in.block(i.Else)
	}
}

// dead tells whether an instruction only computes what nothing uses.
func (p *printer) dead(in *simt.Instr) bool {
	if in.Body != nil || !in.Removable() {
		return false
	}
	for _, r := range in.Results {
		if p.uses[r.ID] > 0 {
			return false
		}
	}
	return true
}

func (in *inliner) choose(b *simt.Block) {
	if b == nil {
		return
	}
	if in.weight == nil {
		in.weight = map[int32]int{}
	}
	for _, i := range b.Instrs {
		in.one(i)
		in.choose(i.Body)
		in.choose(i.Else)
	}
}

func (in *inliner) one(i *simt.Instr) {
	if len(i.Results) != 1 || !i.Pure() || i.Body != nil {
		return
	}
	v := i.Results[0]
	p := in.p
	if p.uses[v.ID] != 1 || in.user[v.ID] != in.home[v.ID] || v.Name != "" || p.regs.Many[p.regs.Reg(v)] {
		return
	}
	w := 1
	for _, x := range i.Args {
		switch {
		case x.IsConst():
		case p.inline[x.ID]:
			w += in.weight[x.ID]
		case p.regs.Many[p.regs.Reg(x)]:
			return
		}
	}
	if w > inlineWeight {
		return
	}
	p.inline[v.ID] = true
	in.weight[v.ID] = w
}

// place finds the block that declares each register: the innermost that holds
// all its definitions. Where the first of them stands deeper, the variable is
// declared before the loop or branch that holds it.
func (p *printer) place() {
	pl := placer{p: p, parent: []int{-1}, depth: []int{0}, owner: []*simt.Instr{nil}, first: make([]int, len(p.regs.First))}
	p.home = make([]int, len(p.regs.First))
	for i := range p.home {
		p.home[i] = -1
		pl.first[i] = -1
	}
	p.outside = map[*simt.Instr][]int32{}
	pl.block(p.k.Body, 0)
	for r, home := range p.home {
		b := pl.first[r]
		if home < 0 || b == home {
			continue
		}
		for pl.parent[b] != home {
			b = pl.parent[b]
		}
		p.outside[pl.owner[b]] = append(p.outside[pl.owner[b]], int32(r))
	}
}

// placer walks the blocks in the order they are printed, which numbers them.
type placer struct {
	p      *printer
	parent []int
	depth  []int
	owner  []*simt.Instr
	first  []int // by register: block of its first definition
}

func (pl *placer) define(r int32, b int) {
	p := pl.p
	if r < 0 {
		return
	}
	if p.home[r] < 0 {
		p.home[r], pl.first[r] = b, b
		return
	}
	a := p.home[r]
	for a != b {
		if pl.depth[a] >= pl.depth[b] {
			a = pl.parent[a]
		} else {
			b = pl.parent[b]
		}
	}
	p.home[r] = a
}

func (pl *placer) enter(b *simt.Block, owner *simt.Instr, parent int) {
	if b == nil {
		return
	}
	id := len(pl.parent)
	pl.parent = append(pl.parent, parent)
	pl.depth = append(pl.depth, pl.depth[parent]+1)
	pl.owner = append(pl.owner, owner)
	pl.block(b, id)
	e := pl.p.regs.Edges[owner]
	copies := e.Next
	if owner.Op == simt.OpIf {
		copies = e.Then
		if b == owner.Else {
			copies = e.Else
		}
	}
	for _, c := range copies {
		pl.define(c.To, id)
	}
}

func (pl *placer) block(b *simt.Block, id int) {
	regs := pl.p.regs
	for _, in := range b.Instrs {
		if pl.p.dead(in) {
			continue
		}
		if e := regs.Edges[in]; e != nil {
			for _, c := range e.Enter {
				if in.Op != simt.OpFor || c.To != regs.Reg(in.Body.Params[0]) {
					pl.define(c.To, id)
				}
			}
			pl.enter(in.Body, in, id)
			pl.enter(in.Else, in, id)
		}
		for _, r := range in.Results {
			if !pl.p.inline[r.ID] {
				pl.define(regs.Reg(r), id)
			}
		}
	}
}
