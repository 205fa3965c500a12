package simt

// Simplify builds the kernel's pure operations anew in order: constants fold,
// and an operation equal to one that dominates it becomes that one. Branches
// on constants and loops that run no or one round lose their frame.
func Simplify(k *Kernel) {
	s := simplifier{b: newBuilder(k, k.NumValues()/2), to: make([]*Value, k.NumValues())}
	s.b.block = nil
	k.Body = s.block(k.Body)
}

type simplifier struct {
	b    *Builder
	to   []*Value  // what a value has become, by ID; nil is itself
	args [4]*Value // scratch
}

func (s *simplifier) now(v *Value) *Value {
	if v == nil || int(v.ID) >= len(s.to) {
		return v
	}
	if w := s.to[v.ID]; w != nil {
		return w
	}
	return v
}

func (s *simplifier) all(vs []*Value) {
	for i, v := range vs {
		vs[i] = s.now(v)
	}
}

// block simplifies a block into a new list of instructions.
func (s *simplifier) block(b *Block) *Block {
	s.b.vn.enter()
	outer := s.b.block
	s.b.block = &Block{Params: b.Params, Instrs: make([]*Instr, 0, len(b.Instrs))}
	s.into(b)
	done := s.b.block
	done.Yield = b.Yield
	s.b.block = outer
	s.b.vn.leave()
	b.Instrs = done.Instrs
	return b
}

// into simplifies b's instructions and yields at the builder's place.
func (s *simplifier) into(b *Block) {
	for _, in := range b.Instrs {
		s.instr(in)
	}
	s.all(b.Yield)
}

func (s *simplifier) instr(in *Instr) {
	s.all(in.Args)
	in.Guard = s.now(in.Guard)
	s.b.note = in.Note
	switch {
	case in.Op == OpIf && in.Args[0].IsConst():
		s.takeBranch(in)
		return
	case in.Op == OpFor && s.unroll(in):
		return
	case in.Body != nil:
		s.keep(in)
		s.block(in.Body)
		if in.Else != nil {
			s.block(in.Else)
		}
		return
	}
	if in.Guard != nil && in.Guard.IsConst() {
		if s.constGuard(in) {
			return
		}
	}
	switch {
	case in.Op == OpUnpack:
		s.unpack(in)
	case in.Pure() && len(in.Results) == 1:
		s.pure(in)
	default:
		s.readdress(in)
		s.keep(in)
	}
}

func (s *simplifier) keep(in *Instr) { s.b.block.Instrs = append(s.b.block.Instrs, in) }

// becomes records a value's replacement, which inherits its name.
func (s *simplifier) becomes(v, w *Value) {
	if v == w {
		return
	}
	if w.Name == "" && !w.IsConst() {
		w.Name, w.Sub = v.Name, v.Sub
	}
	s.to[v.ID] = w
}

func (s *simplifier) pure(in *Instr) {
	v := in.Results[0]
	a := in.attrs()
	if w := s.b.fold(in.Op, in.Type, v.Type, a, append(s.args[:0], in.Args...)); w != nil {
		s.becomes(v, w)
		return
	}
	o := operation{in.Op, in.Type, v.Type, a, in.Args}
	w, hash := s.b.vn.find(&o)
	if w != nil {
		s.becomes(v, w)
		return
	}
	s.b.vn.add(hash, v)
	s.keep(in)
}

func (s *simplifier) unpack(in *Instr) {
	x, lo, hi := in.Args[0], in.Results[0], in.Results[1]
	o := operation{op: OpUnpack, t: x.Type, rt: lo.Type, args: in.Args}
	packed := x.Block == nil && x.Def.Op == OpPack
	if v, hash := s.b.vn.find(&o); v == nil && !packed && !x.IsConst() {
		s.b.vn.add(hash, lo)
		s.keep(in)
		return
	}
	l, h := s.b.Unpack(x, lo.Type)
	s.becomes(lo, l)
	s.becomes(hi, h)
}

// readdress moves constant parts of an address into the offset.
func (s *simplifier) readdress(in *Instr) {
	switch in.Op {
	case OpLd, OpSt, OpAtom, OpRed, OpLdMatrix, OpStMatrix, OpPrefetch:
		in.Args[0], in.Offset = s.b.split(in.Args[0], int(in.Offset))
	case OpCpAsync:
		var g int32
		in.Args[0], in.Offset = s.b.split(in.Args[0], int(in.Offset))
		in.Args[1], g = s.b.split(in.Args[1], in.CpAsyncGlobalOffset())
		in.Imm = int64(in.CpAsyncBytes()) | int64(g)<<8
	}
}

// constGuard handles a guard that is known: true needs none; false removes the
// access and leaves its defaults.
func (s *simplifier) constGuard(in *Instr) (gone bool) {
	if (in.Guard.Int() != 0) != in.GuardNot {
		in.Guard, in.GuardNot = nil, false
		if in.Op == OpLd {
			in.Args = in.Args[:1:1]
		}
		return false
	}
	for i, r := range in.Results {
		w := s.b.Const(r.Type, 0)
		if in.Op == OpLd && len(in.Args) > 1 {
			w = in.Args[1+i]
		}
		s.becomes(r, w)
	}
	return true
}

// takeBranch replaces a branch on a constant by the side it takes.
func (s *simplifier) takeBranch(in *Instr) {
	b := in.Body
	if in.Args[0].Int() == 0 {
		b = in.Else
	}
	if b == nil {
		return
	}
	s.into(b)
	for i, r := range in.Results {
		s.becomes(r, b.Yield[i])
	}
}

// unroll removes a loop that runs no round or one.
func (s *simplifier) unroll(in *Instr) bool {
	lo, hi, step := in.Args[0], in.Args[1], in.Args[2]
	if !lo.IsConst() || !hi.IsConst() {
		return false
	}
	if lo.Int() >= hi.Int() {
		for i, r := range in.Results {
			s.becomes(r, in.Args[3+i])
		}
		return true
	}
	if !step.IsConst() || lo.Int()+step.Int() < hi.Int() {
		return false
	}
	for i, p := range in.Body.Params {
		if i == 0 {
			s.to[p.ID] = lo
		} else {
			s.becomes(p, in.Args[2+i])
		}
	}
	s.into(in.Body)
	for i, r := range in.Results {
		s.becomes(r, in.Body.Yield[i])
	}
	return true
}
