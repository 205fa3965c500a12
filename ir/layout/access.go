package layout

import "slices"

// Basis is the composition of a distributed with a shared layout: where, in bytes
// from the buffer's start, each register of each thread lies. With base the sum of
// the buffer's aligned address and the thread's contributions, register r is at
//
//	(base ^ Registers[r].Xor) + Registers[r].Add
//
// so code needs one base for each distinct Xor, and immediates.
type Basis struct {
	// Thread has the contribution of each bit of the thread's index, five lane bits
	// and then the warp bits, those of the part last: all Xor parts are XORed together, all Add parts added,
	// and the two sums have no common bits.
	Thread []Place
	// Registers has the contribution of each register.
	Registers []Place
}

// Basis composes s with l, a layout of the same shape. ok is false if two hardware
// bits of l move the same coordinate bit and s adds there rather than XORs.
func (s *Shared) Basis(l *Layout) (b Basis, ok bool) {
	p, ok := s.places(l)
	if !ok {
		return Basis{}, false
	}
	b.Thread = p.thread()
	b.Registers = make([]Place, l.Registers())
	reached := 0
	for _, t := range b.Thread {
		reached |= t.Xor
	}
	for r := range b.Registers {
		b.Registers[r] = p.register(r).immediate(reached)
	}
	return b, true
}

// immediate turns XOR into addition in the bits that no thread sets.
func (p Place) immediate(reached int) Place {
	return Place{Xor: p.Xor & reached, Add: p.Add + p.Xor&^reached}
}

func (p Place) plus(q Place) Place { return Place{Xor: p.Xor ^ q.Xor, Add: p.Add + q.Add} }

// is reports whether the place is n bytes, by either part.
func (p Place) is(n int) bool { return p.Xor+p.Add == n }

func (p Place) multipleOf(n int) bool { return (p.Xor|p.Add)%n == 0 }

// places are the contributions of each hardware bit of a layout: registers, lanes,
// warps, parts of the warps.
type places struct {
	l   *Layout
	s   *Shared
	bit []Place
}

func (s *Shared) places(l *Layout) (places, bool) {
	if !slices.Equal(s.shape, l.shape) {
		return places{}, false
	}
	p := places{l: l, s: s, bit: make([]Place, l.bits())}
	for i := range p.bit {
		p.bit[i] = s.place(l.basis(i))
	}
	for i := range l.partBits() {
		p.bit = append(p.bit, s.place(l.part<<i))
	}
	return p, s.xors(l.shared())
}

// xors reports whether s XORs the contribution of every coordinate bit in c.
func (s *Shared) xors(c Coord) bool {
	for ; c != 0; c &= c - 1 {
		if s.place(c&-c).Add != 0 {
			return false
		}
	}
	return true
}

// shared returns the coordinate bits that more than one hardware bit moves.
func (l *Layout) shared() Coord {
	var once, twice Coord
	for i := range l.bits() {
		b := l.basis(i)
		twice |= once & b
		once |= b
	}
	return twice
}

func (p *places) thread() []Place { return p.bit[len(p.l.reg):] }

func (p *places) register(r int) Place {
	out := p.s.place(p.l.repeatCoord(r >> len(p.l.reg)))
	for i := range p.l.reg {
		if r>>i&1 == 1 {
			out = out.plus(p.bit[i])
		}
	}
	return out
}

// at is the offset of a thread's part.
func (p *places) at(lane, warp int) int {
	var out Place
	n := warp<<LaneBits | lane
	for i, b := range p.thread() {
		if n>>i&1 == 1 {
			out = out.plus(b)
		}
	}
	return out.Xor + out.Add
}

// Vector is a plan of plain shared-memory loads or stores.
type Vector struct {
	// Bytes each thread moves with an instruction: 16, 8, 4, or the element's.
	Bytes int
	// Groups has, for each instruction, its registers in the order of addresses.
	Groups [][]int
}

// Vector finds the widest accesses of at most maxBytes for a tile of layout l, each
// of registers of one repeat: runs that only an odd repeat count joins are not
// seen. ok is false where Basis has no answer.
func (s *Shared) Vector(l *Layout, maxBytes int) (Vector, bool) {
	p, ok := s.places(l)
	if !ok {
		return Vector{}, false
	}
	return p.vector(maxBytes), true
}

// VectorBytes is the width that Vector finds within 16 bytes; 0 where it has no
// answer.
func (s *Shared) VectorBytes(l *Layout) int {
	p, ok := s.places(l)
	if !ok {
		return 0
	}
	bits, _ := p.contiguous(16)
	return s.elem << len(bits)
}

// contiguous returns the register bits that walk consecutive bytes, as masks, such
// that every other contribution keeps the run aligned; rest are the other bits.
func (p *places) contiguous(maxBytes int) (run, rest []int) {
	taken := 0
	bytes := p.s.elem
	for bytes*2 <= maxBytes {
		next := -1
		for i := range p.l.reg {
			if p.bit[i].is(bytes) {
				next = i
				break
			}
		}
		if next < 0 {
			break
		}
		taken |= 1 << next
		run = append(run, 1<<next)
		bytes *= 2
	}
	for ; len(run) > 0 && !p.aligned(taken, bytes); bytes /= 2 {
		taken &^= run[len(run)-1]
		run = run[:len(run)-1]
	}
	for i := range p.l.reg {
		if taken>>i&1 == 0 {
			rest = append(rest, 1<<i)
		}
	}
	return run, rest
}

// aligned reports whether all but the taken register bits contribute multiples of
// bytes.
func (p *places) aligned(taken, bytes int) bool {
	for i, b := range p.bit {
		if i < len(p.l.reg) && taken>>i&1 == 1 {
			continue
		}
		if !b.multipleOf(bytes) {
			return false
		}
	}
	return p.repeatsAligned(bytes)
}

func (p *places) repeatsAligned(bytes int) bool {
	for d := range p.l.repeat {
		if p.l.repeats(d) > 1 && !p.s.place(axis(d, p.l.Sub(d))).multipleOf(bytes) {
			return false
		}
	}
	return true
}

func (p *places) vector(maxBytes int) Vector {
	run, rest := p.contiguous(maxBytes)
	v := Vector{Bytes: p.s.elem << len(run)}
	count := p.l.copies << len(rest)
	flat := make([]int, 0, count<<len(run))
	v.Groups = make([][]int, count)
	for g := range v.Groups {
		base := g>>len(rest)<<len(p.l.reg) | combine(rest, g)
		start := len(flat)
		for i := range 1 << len(run) {
			flat = append(flat, base|combine(run, i))
		}
		v.Groups[g] = flat[start:len(flat):len(flat)]
	}
	return v
}
