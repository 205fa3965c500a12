package model

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// kernel is a thread program made ready to be walked.
type kernel struct {
	*simt.Kernel
	roles bool // its last warpgroup may do something else than the others
	ahead bool // products of one round of a loop are under way in the next
	turns bool // two warpgroups take turns at multiplying
	first first
	ring  ring
	need  []bool                              // by value: it decides an address, a mask or a branch
	eval  []func(x, y, z int64) (int64, bool) // by value: how to compute it; nil: not known
	brief map[*simt.Block][]*simt.Instr       // of each block, what decides and uses addresses and masks
}

// prepare finds the values that addresses, masks and branches depend on.
func prepare(k *simt.Kernel) *kernel {
	s := slicer{need: make([]bool, k.NumValues())}
	for s.changed = true; s.changed; {
		s.changed = false
		s.block(k.Body, false)
	}
	p := &kernel{Kernel: k, need: s.need, brief: map[*simt.Block][]*simt.Instr{}}
	p.eval = make([]func(x, y, z int64) (int64, bool), k.NumValues())
	p.evaluators(k.Body)
	copies, warpgroups := false, false
	simt.Walk(k.Body, func(in *simt.Instr) {
		copies = copies || in.Op == simt.OpTensorLoad || in.Op == simt.OpMbarCopied
		warpgroups = warpgroups || in.Op == simt.OpWgmma
		p.ahead = p.ahead || in.Op == simt.OpFor && leavesUnderWay(in.Body)
		p.turns = p.turns || in.Op == simt.OpFor && takesTurns(in.Body)
	})
	if p.roles = copies && warpgroups; p.roles {
		p.ring = ringOf(k)
		const copying = 4 // warps, the last, which copy or help with that
		p.first.main, p.first.copying = k.Threads/warpSize-copying, p.ring.warps
		p.first.tiles = k.Persistent
		p.first.find(k.Body)
	}
	return p
}

// ring is the buffers that a role's copies go round.
type ring struct {
	groups int // of copies that are waited for together, in a round
	depth  int // buffers of each; 0: there is none
	warps  int // that copy; 0: tensor maps do
}

// fills is how often a buffer is counted as filled in a round.
func (r ring) fills() float64 { return float64(r.groups * max(r.warps, 1)) }

// ringOf finds the ring by its mbarriers: each group of buffers has one, at which one thread
// arrives for tensor maps, or each thread of the warps that copy.
func ringOf(k *simt.Kernel) ring {
	full, once := 0, 0 // mbarriers, and those of what is copied outside of loops
	var r ring
	byThreads := false
	simt.Walk(k.Body, func(in *simt.Instr) { byThreads = byThreads || in.Op == simt.OpMbarCopied })
	says := simt.OpMbarExpect
	if byThreads {
		says = simt.OpMbarCopied
	}
	loops := 1 // around what goes round the ring
	if k.Persistent {
		loops++ // that over tiles
	}
	var walk func(b *simt.Block, around int)
	walk = func(b *simt.Block, around int) {
		if b == nil {
			return
		}
		for _, in := range b.Instrs {
			switch {
			case in.Op == simt.OpMbarInit && byThreads && in.Imm%warpSize == 0:
				full++
				r.warps = int(in.Imm) / warpSize
			case in.Op == simt.OpMbarInit && !byThreads && in.Imm == 1:
				full++
			case in.Op == says && around >= loops:
				r.groups++
			case in.Op == says:
				once++
			}
			if in.Op == simt.OpFor {
				walk(in.Body, around+1)
				continue
			}
			walk(in.Body, around)
			walk(in.Else, around)
		}
	}
	walk(k.Body, 0)
	if r.groups > 0 {
		r.depth = (full - once) / r.groups
	}
	return r
}

// leavesUnderWay tells whether the last products of a loop's body are not waited for in it.
func leavesUnderWay(body *simt.Block) bool {
	under := false
	for _, in := range body.Instrs {
		switch in.Op {
		case simt.OpWgmma:
			under = true
		case simt.OpWgmmaWait:
			under = under && in.Imm > 0
		}
	}
	return under
}

// takesTurns tells whether a loop's body arrives at named barriers between its products.
func takesTurns(body *simt.Block) bool {
	return slices.ContainsFunc(body.Instrs, func(in *simt.Instr) bool { return in.Op == simt.OpBarArrive })
}

// first is the bytes that are copied before the first product: what a block copies
// before any loop, for itself, and the first group of buffers of the loop that goes on
// copying, which others copy too.
type first struct {
	own, group    int
	main, copying int  // warps that copy before the loop, and in it, where no tensor maps do
	tiles         bool // the outermost loop is over tiles
}

// find adds what a block of instructions copies; it tells whether it found the loop.
func (f *first) find(b *simt.Block) bool {
	if b == nil {
		return false
	}
	for _, in := range b.Instrs {
		switch {
		case in.Op == simt.OpMbarExpect:
			f.own += int(in.Imm)
		case in.Op == simt.OpCpAsync:
			f.own += in.CpAsyncBytes() * warpSize * f.main
		case in.Op == simt.OpFor && f.tiles:
			f.tiles = false
			found := f.find(in.Body)
			f.tiles = true
			if found {
				return true
			}
		case in.Op == simt.OpFor:
			if x := expects(in.Body); x != nil {
				f.group = int(x.Imm)
				return true
			}
			if n, found := f.copied(in.Body); found {
				f.group = n
				return true
			}
		case in.Op == simt.OpIf && (f.find(in.Body) || f.find(in.Else)):
			return true
		}
	}
	return false
}

// copied is how much threads copy in a block, and its branches, before the first group is
// closed; found tells whether there is one.
func (f *first) copied(b *simt.Block) (bytes int, found bool) {
	if b == nil {
		return 0, false
	}
	for _, in := range b.Instrs {
		switch in.Op {
		case simt.OpCpAsync:
			bytes += in.CpAsyncBytes() * warpSize * f.copying
		case simt.OpMbarCopied:
			return bytes, true
		case simt.OpIf:
			for _, side := range []*simt.Block{in.Body, in.Else} {
				n, found := f.copied(side)
				if bytes += n; found {
					return bytes, true
				}
			}
		}
	}
	return bytes, false
}

// expects is the first instruction of a block, or of its branches, that says how many bytes
// will come; nil if there is none.
func expects(b *simt.Block) *simt.Instr {
	if b == nil {
		return nil
	}
	for _, in := range b.Instrs {
		switch in.Op {
		case simt.OpMbarExpect:
			return in
		case simt.OpIf:
			for _, side := range []*simt.Block{in.Body, in.Else} {
				if x := expects(side); x != nil {
					return x
				}
			}
		}
	}
	return nil
}

// overlap is the exponent under which times inside an SM add up.
func (p *kernel) overlap() float64 {
	switch {
	case p.ahead:
		return overlapUnderWay
	case p.turns:
		return overlapTurns
	}
	return overlap
}

func (p *kernel) evaluators(b *simt.Block) {
	if b == nil {
		return
	}
	var brief []*simt.Instr
	for _, in := range b.Instrs {
		wanted := in.Op.Info().Effect&(simt.Control|simt.Reads|simt.Writes) != 0
		for _, r := range in.Results {
			wanted = wanted || p.need[r.ID]
		}
		if wanted {
			brief = append(brief, in)
		}
		if in.Body != nil {
			p.evaluators(in.Body)
			p.evaluators(in.Else)
		} else if len(in.Results) == 1 && p.need[in.Results[0].ID] {
			p.eval[in.Results[0].ID] = in.Evaluator()
		}
	}
	p.brief[b] = brief
}

// slicer marks what is needed, from uses to definitions.
type slicer struct {
	need    []bool
	changed bool
}

func (s *slicer) mark(vs ...*simt.Value) {
	for _, v := range vs {
		if v != nil && !s.need[v.ID] {
			s.need[v.ID] = true
			s.changed = true
		}
	}
}

// block goes through a block backwards; branch says that not all lanes need be in it.
func (s *slicer) block(b *simt.Block, branch bool) {
	if b == nil {
		return
	}
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		s.mark(in.Guard)
		switch in.Op {
		case simt.OpFor:
			s.mark(in.Args[:3]...)
			s.carried(in, in.Args[3:], in.Body.Params[1:], in.Body.Yield)
			s.block(in.Body, branch)
		case simt.OpLoop:
			s.mark(in.Body.Yield[0])
			s.carried(in, in.Args, in.Body.Params, in.Body.Yield[1:])
			s.block(in.Body, branch)
		case simt.OpIf:
			s.mark(in.Args[0])
			for j, r := range in.Results {
				if s.need[r.ID] {
					s.mark(in.Body.Yield[j], in.Else.Yield[j])
				}
			}
			s.block(in.Body, true)
			s.block(in.Else, true)
		case simt.OpLd, simt.OpSt, simt.OpAtom, simt.OpRed:
			if in.Space == simt.Global || in.Waves == 0 || branch || in.Guard != nil {
				s.mark(in.Args[0])
			}
			if in.LoadsInteger() && s.need[in.Results[0].ID] {
				s.mark(in.Args...)
			}
		case simt.OpCpAsync:
			s.mark(in.Args[1:]...)
			if in.Waves == 0 || branch || in.Guard != nil {
				s.mark(in.Args[0])
			}
		case simt.OpTensorLoad:
			s.mark(in.Args[3:]...)
		case simt.OpTensorStore:
			s.mark(in.Args[2:]...)
		case simt.OpLdMatrix, simt.OpStMatrix:
			if in.Waves == 0 {
				s.mark(in.Args[0])
			}
		default:
			if in.Op.Info().Effect != 0 && in.Op != simt.OpShfl {
				continue
			}
			for _, r := range in.Results {
				if s.need[r.ID] {
					s.mark(in.Args...)
				}
			}
		}
	}
}

func (s *slicer) carried(in *simt.Instr, inits, params, yields []*simt.Value) {
	for i, r := range in.Results {
		if s.need[r.ID] || s.need[params[i].ID] {
			s.mark(r, params[i], yields[i], inits[i])
		}
	}
}
