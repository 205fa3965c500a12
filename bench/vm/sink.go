package vm

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// sinkMoves puts moves out of accumulators of wgmma behind the wait for them,
// where nothing between has to do with either register: Triton writes them before
// the wait, and ptxas, which knows what the moves wait for, makes that right.
// Whatever else touches an accumulator in flight stays where it is.
func sinkMoves(stmts []ptx.Stmt) []ptx.Stmt {
	if !slices.ContainsFunc(stmts, isAsyncProduct) {
		return stmts
	}
	flying := map[int32]bool{} // slots of registers
	var out, moves []ptx.Stmt
	written := map[int32]bool{} // by moves
	flush := func() {
		out, moves = append(out, moves...), nil
		clear(written)
	}
	for _, s := range stmts {
		in, ok := s.(*ptx.Instruction)
		_, label := s.(*ptx.Label)
		_, block := s.(*ptx.Block)
		switch {
		case label || block:
			flush()
			clear(flying)
		case !ok: // a line, a declaration
		case isAsyncProduct(s):
			flush()
			eachRegister(&in.Operands[0], func(slot int32) { flying[slot] = true })
		case in.Name == "wgmma.commit_group":
		case in.Name == "wgmma.wait_group":
			out = append(out, s)
			flush()
			clear(flying)
			continue
		case in.Name == "mov" && in.Guard == nil && reads(in, flying) && !mentions(in, written):
			moves = append(moves, s)
			eachRegister(&in.Operands[0], func(slot int32) { written[slot] = true })
			continue
		case leaves[in.Name] || mentions(in, flying) || mentions(in, written):
			flush()
		}
		out = append(out, s)
	}
	flush()
	return out
}

func isAsyncProduct(s ptx.Stmt) bool {
	in, ok := s.(*ptx.Instruction)
	return ok && in.Name == "wgmma.mma_async"
}

// reads says whether all registers that a move reads are of a set, and none that
// it writes is.
func reads(in *ptx.Instruction, set map[int32]bool) bool {
	from, to := 0, false
	all := true
	eachRegister(&in.Operands[1], func(slot int32) { from++; all = all && set[slot] })
	eachRegister(&in.Operands[0], func(slot int32) { to = to || set[slot] })
	return from > 0 && all && !to
}

// leaves are the instructions after which another may be the next.
var leaves = map[string]bool{"bra": true, "brx.idx": true, "call": true, "ret": true, "exit": true, "trap": true}

func mentions(in *ptx.Instruction, set map[int32]bool) bool {
	found := in.Guard != nil && set[in.Guard.Slot()]
	for i := range in.Operands {
		eachRegister(&in.Operands[i], func(slot int32) { found = found || set[slot] })
	}
	return found
}

// eachRegister calls f with each register in an operand.
func eachRegister(o *ptx.Operand, f func(slot int32)) {
	if o.Kind == ptx.OpReg {
		f(o.Slot())
	}
	for i := range o.Elems() {
		eachRegister(&o.Elems()[i], f)
	}
}
