package layout

// Matrices is a plan of ldmatrix (or, read backwards, stmatrix) instructions that
// move a tile between shared memory and fragments. Each 8x8 matrix of 16-bit
// elements fills one 32-bit register a lane.
type Matrices struct {
	// Trans asks for .trans: memory rows run across lanes instead of within.
	Trans bool
	// Count is the matrices an instruction moves: 1, 2 or 4 (.x1, .x2, .x4).
	Count int
	// Thread has the contribution of each bit of the thread's index, five lane bits
	// and then the warp bits, those of the part last, to the address that the lane hands to the instruction.
	// Lanes beyond 8*Count repeat addresses.
	Thread []Place
	// Moves are the instructions.
	Moves []Move
}

// Move is one instruction: its address is (base ^ Xor) + Add, with base as for
// Basis. Registers has, for each 32-bit operand, the first of the elements packed
// in it; the others follow in the numbering.
type Move struct {
	Place
	Registers []int
}

// Ldmatrix plans ldmatrix for fragments of layout l in s. Without transposition it
// serves elements of 1, 2 and 4 bytes whose rows lie along a fragment's packed
// direction; with it, 2-byte ones whose rows lie across. ok is false if the layouts
// do not match so.
func (s *Shared) Ldmatrix(l *Layout) (plan Matrices, ok bool) {
	p, ok := s.places(l)
	if !ok || s.elem > 4 {
		return Matrices{}, false
	}
	pack := log2(4 / s.elem)
	if len(l.reg) < pack {
		return Matrices{}, false
	}
	n := len(l.reg)
	lane := p.bit[n:][:LaneBits]
	// run are the hardware bits that walk the 16 bytes of a matrix row, rows those that
	// number its eight rows.
	run := append(append([]Place{}, p.bit[:pack]...), lane[:2]...)
	rows := lane[2:]
	inRun := 1<<pack - 1 | 3<<n
	if s.elem == 2 && !isRun(run, s.elem) {
		plan.Trans = true
		run, rows = lane[2:], run
		inRun = 7 << (n + 2)
	}
	if !isRun(run, s.elem) {
		return Matrices{}, false
	}
	for i, b := range p.bit {
		if inRun>>i&1 == 0 && !b.multipleOf(16) {
			return Matrices{}, false
		}
	}
	if !p.repeatsAligned(16) {
		return Matrices{}, false
	}
	more := min(2, n-pack)
	plan.Count = 1 << more
	plan.Thread = append(plan.Thread, rows...)
	plan.Thread = append(plan.Thread, p.bit[pack:pack+more]...)
	for len(plan.Thread) < LaneBits {
		plan.Thread = append(plan.Thread, Place{})
	}
	plan.Thread = append(plan.Thread, p.bit[n+LaneBits:]...)
	plan.Moves = p.moves(pack, more, plan.Thread)
	return plan, true
}

// isRun reports whether places are the consecutive powers of two from n on.
func isRun(places []Place, n int) bool {
	for i, p := range places {
		if !p.is(n << i) {
			return false
		}
	}
	return true
}

func (p *places) moves(pack, more int, thread []Place) []Move {
	reached := 0
	for _, t := range thread {
		reached |= t.Xor
	}
	step := 1 << (pack + more)
	moves := make([]Move, p.l.Registers()/step)
	flat := make([]int, 0, len(moves)<<more)
	for i := range moves {
		base := i * step
		start := len(flat)
		for j := range 1 << more {
			flat = append(flat, base+j<<pack)
		}
		moves[i] = Move{Place: p.register(base).immediate(reached), Registers: flat[start:len(flat):len(flat)]}
	}
	return moves
}
