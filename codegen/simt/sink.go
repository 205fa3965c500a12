package simt

import "slices"

const (
	// sunkRegisters are what loads in a row bring at least for it to matter when.
	sunkRegisters = 64
	// mostLive is what a thread's registers hold beside what ptxas adds of its own.
	mostLive = 224
)

// RegistersPerSM is how many registers of 32 bits the blocks of a multiprocessor share (CUDA
// C Programming Guide, technical specifications): a block's threads have no more.
const RegistersPerSM = 64 << 10

// Sink moves loads from global memory and arithmetic to before the first use of their
// results, where what is loaded together is more than a thread has registers for and what is
// left then is not: of a tile that is added to as large a one, each element is then loaded,
// computed and added by itself. Which of them may well be earlier, whoever assigns registers
// knows best, and better where there is too little room either way.
func Sink(k *Kernel) {
	s := sinker{k: k}
	stretches(k.Body, min(mostLive, RegistersPerSM/k.Threads), s.stretch)
}

type sinker struct {
	k        *Kernel
	pressure []int   // registers that live at each position; nil until asked for
	from     []int32 // position of each value's definition
}

// stretches visits the instructions of a block in parts that neither write nor wait, and how
// many registers may live there: most, or as many as the threads asked for before.
func stretches(b *Block, most int, visit func(list []*Instr, most int)) {
	if b == nil {
		return
	}
	first := 0
	for i, in := range b.Instrs {
		if in.Body == nil && in.Removable() {
			continue
		}
		visit(b.Instrs[first:i], most)
		first = i + 1
		if in.Op == OpMaxRegisters {
			most = min(mostLive, int(in.Imm))
		}
		stretches(in.Body, most, visit)
		stretches(in.Else, most, visit)
	}
	visit(b.Instrs[first:], most)
}

// stretch reorders instructions in place where their loads are too many, and no longer are
// then.
func (s *sinker) stretch(list []*Instr, most int) {
	loaded := 0
	for _, in := range list {
		if loadsGlobal(in) {
			loaded += registersOf(in.Results)
		}
	}
	if loaded < sunkRegisters || !s.crowded(list, most) {
		return
	}
	before := slices.Clone(list)
	copy(list, sunk(list))
	s.pressure = nil
	if s.crowded(list, most) {
		copy(list, before)
		s.pressure = nil
	}
}

// sunk is a stretch in the order of first uses.
func sunk(list []*Instr) []*Instr {
	late := late(list)
	out := make([]*Instr, 0, len(list))
	var put func(in *Instr)
	put = func(in *Instr) {
		delete(late, in)
		for _, x := range append(in.Args[:len(in.Args):len(in.Args)], in.Guard) {
			if x != nil && x.Block == nil && late[x.Def] {
				put(x.Def)
			}
		}
		out = append(out, in)
	}
	for _, in := range list {
		if !late[in] {
			put(in)
		}
	}
	return out
}

func loadsGlobal(in *Instr) bool { return in.Op == OpLd && in.Space == Global }

// registersOf is how many registers values take; predicates have their own.
func registersOf(vs []*Value) int {
	n := 0
	for _, v := range vs {
		if v.Type != Pred {
			n += max(v.Type.Bits(), 32) / 32
		}
	}
	return n
}

// crowded tells whether more registers live where a stretch loads than may.
func (s *sinker) crowded(list []*Instr, most int) bool {
	if s.pressure == nil {
		s.measure()
	}
	for _, in := range list {
		if loadsGlobal(in) && s.pressure[s.from[in.Results[0].ID]] > most {
			return true
		}
	}
	return false
}

// measure counts what lives where.
func (s *sinker) measure() {
	l := liveness{k: s.k, free: true}
	l.run()
	s.from, s.pressure = l.from, make([]int, l.pos+4)
	for id := range int32(s.k.NumValues()) {
		if v := s.k.Value(id); l.to[id] > l.from[id] && !v.IsConst() {
			n := registersOf([]*Value{v})
			s.pressure[l.from[id]] += n
			s.pressure[l.to[id]] -= n
		}
	}
	for i := 1; i < len(s.pressure); i++ {
		s.pressure[i] += s.pressure[i-1]
	}
}

// late is what may wait for its first use in a stretch.
func late(list []*Instr) map[*Instr]bool {
	late := map[*Instr]bool{}
	used := map[*Value]bool{} // behind the instruction at hand
	for _, in := range slices.Backward(list) {
		if (loadsGlobal(in) || in.Pure()) && slices.ContainsFunc(in.Results, func(r *Value) bool { return used[r] }) {
			late[in] = true
		}
		for _, x := range in.Args {
			used[x] = true
		}
		if in.Guard != nil {
			used[in.Guard] = true
		}
	}
	return late
}
