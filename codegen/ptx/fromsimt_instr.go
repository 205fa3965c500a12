package ptx

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/simt"
)

func (e *emitter) block(b *simt.Block) {
	for _, in := range b.Instrs {
		e.instr(in)
	}
}

func (e *emitter) instr(in *simt.Instr) {
	switch in.Op {
	case simt.OpFor:
		e.forLoop(in)
	case simt.OpLoop:
		e.doLoop(in)
	case simt.OpIf:
		e.branch(in)
	case simt.OpBitcast:
		if x := in.Args[0]; e.regs.Reg(x) < 0 {
			e.move(e.reg(in.Result()), operandConst(x), in.Type)
		}
	case simt.OpReturn, simt.OpTrap, simt.OpCpAsyncCommit, simt.OpBulkCommit, simt.OpGridLaunch, simt.OpGridWait:
		c := e.opcode(in)
		e.op(c)
	case simt.OpPack, simt.OpUnpack:
		e.halves(in)
	case simt.OpLd, simt.OpSt, simt.OpAtom, simt.OpRed, simt.OpCpAsync, simt.OpLdMatrix, simt.OpStMatrix, simt.OpPrefetch:
		e.memory(in)
	case simt.OpMma:
		e.mma(in)
	case simt.OpWgmma, simt.OpWgmmaFence, simt.OpWgmmaCommit, simt.OpWgmmaWait:
		e.wgmma(in)
	case simt.OpMbarInit, simt.OpMbarArrive, simt.OpMbarExpect, simt.OpMbarWait, simt.OpMbarArriveAt, simt.OpMbarCopied:
		e.mbarrier(in)
	case simt.OpStAt:
		e.guard(e.op(e.opcode(in), e.there(in), e.value(in.Args[2])), in)
	case simt.OpTensorLoad:
		e.tensorLoad(in)
	case simt.OpTensorStore:
		e.tensorStore(in)
	case simt.OpMapSet, simt.OpMapPublish, simt.OpMapAcquire:
		e.tensorMap(in)
	case simt.OpShfl, simt.OpVote, simt.OpBallot, simt.OpRedux, simt.OpMatch, simt.OpElect:
		e.warp(in)
	case simt.OpBar, simt.OpBarArrive, simt.OpWarpSync, simt.OpFence, simt.OpCpAsyncWait, simt.OpBulkWait, simt.OpProxyFence, simt.OpMaxRegisters, simt.OpClusterArrive, simt.OpClusterWait:
		e.order(in)
	default:
		e.plain(in)
	}
}

// plain is an instruction with one result whose operands stand as they are.
func (e *emitter) plain(in *simt.Instr) {
	c := e.opcode(in)
	n := 1 + len(in.Args)
	if in.Op == simt.OpLop3 {
		n++
	}
	ops := e.operands(n)
	ops[0] = e.reg(in.Result())
	for i, x := range in.Args {
		if immediateAt(in, i) {
			ops[1+i] = e.value(x)
		} else {
			ops[1+i] = e.inReg(x)
		}
	}
	switch in.Op {
	case simt.OpLop3:
		ops[n-1] = Operand{Kind: OpImm, Value: uint64(in.Imm), Radix: 16}
	case simt.OpSelect:
		ops[1], ops[2], ops[3] = ops[2], ops[3], ops[1]
	}
	e.put(c, ops)
}

// immediateAt tells whether operand i may be an immediate.
func immediateAt(in *simt.Instr, i int) bool {
	switch in.Args[i].Type {
	case simt.I32, simt.I64, simt.Ptr, simt.F32, simt.F64:
	default:
		return false
	}
	switch {
	case in.Op >= simt.OpAdd && in.Op <= simt.OpPrmt, in.Op == simt.OpFma, in.Op == simt.OpCmp:
		return true
	case in.Op == simt.OpSelect:
		return i > 0
	}
	return false
}

// halves packs two registers into one of twice the width, or the reverse.
func (e *emitter) halves(in *simt.Instr) {
	c := e.opcode(in)
	if in.Op == simt.OpPack {
		e.op(c, e.reg(in.Result()), e.vector(in.Args, true))
		return
	}
	e.op(c, e.vector(in.Results, true), e.inReg(in.Args[0]))
}

// guard sets an instruction's predicate.
func (e *emitter) guard(out *Instruction, in *simt.Instr) {
	if in.Guard == nil {
		return
	}
	e.setGuard(out, e.inReg(in.Guard), in.GuardNot)
}

func (e *emitter) setGuard(out *Instruction, p Operand, not bool) {
	p.Neg = not
	out.Guard = &e.operands(1)[0]
	*out.Guard = p
}

func (e *emitter) memory(in *simt.Instr) {
	c := e.opcode(in)
	var out *Instruction
	switch in.Op {
	case simt.OpLd:
		e.defaults(in)
		out = e.op(c, e.vector(in.Results, false), e.at(in.Args[0], int64(in.Offset)))
	case simt.OpLdMatrix:
		out = e.op(c, e.vector(in.Results, true), e.at(in.Args[0], int64(in.Offset)))
	case simt.OpSt:
		out = e.op(c, e.at(in.Args[0], int64(in.Offset)), e.vector(in.Args[1:], false))
	case simt.OpStMatrix:
		out = e.op(c, e.at(in.Args[0], int64(in.Offset)), e.vector(in.Args[1:], true))
	case simt.OpAtom:
		e.defaults(in)
		ops := []Operand{e.reg(in.Result()), e.at(in.Args[0], int64(in.Offset))}
		for _, x := range in.Args[1:] {
			ops = append(ops, e.inReg(x))
		}
		out = e.op(c, ops...)
	case simt.OpRed:
		out = e.op(c, e.at(in.Args[0], int64(in.Offset)), e.inReg(in.Args[1]))
	case simt.OpCpAsync:
		ops := []Operand{e.at(in.Args[0], int64(in.Offset)), e.at(in.Args[1], int64(in.CpAsyncGlobalOffset())), operandInt(int64(in.CpAsyncBytes()))}
		if len(in.Args) > 2 {
			ops = append(ops, e.value(in.Args[2]))
		}
		out = e.op(c, ops...)
	case simt.OpPrefetch:
		out = e.op(c, e.at(in.Args[0], int64(in.Offset)))
	}
	e.guard(out, in)
}

// defaults gives a guarded load's or atomic access's results the values they have where it does
// not execute.
func (e *emitter) defaults(in *simt.Instr) {
	if in.Guard == nil {
		return
	}
	for i, r := range in.Results {
		d := operandInt(0)
		if in.Op == simt.OpLd && len(in.Args) > 1 {
			d = e.value(in.Args[1+i])
		}
		e.move(e.reg(r), d, r.Type)
	}
}

func (e *emitter) mma(in *simt.Instr) {
	c := e.opcode(in)
	info := in.Mma.Info()
	a, b := info.A, info.A+info.B
	e.op(c,
		e.vector(in.Results, true), e.vector(in.Args[:a], true), e.vector(in.Args[a:b], true), e.vector(in.Args[b:], true))
}

// allLanes is the member mask of a whole warp.
var allLanes = operandInt(-1)

func (e *emitter) warp(in *simt.Instr) {
	c := e.opcode(in)
	switch in.Op {
	case simt.OpShfl:
		e.op(c, e.reg(in.Result()), e.inReg(in.Args[0]), e.value(in.Args[1]), operandInt(in.Imm), allLanes)
	case simt.OpElect:
		pair, parts := e.group(OpPair, 2)
		parts[0], parts[1] = Operand{Kind: OpSink}, e.reg(in.Result())
		e.op(c, pair, allLanes)
	default:
		e.op(c, e.reg(in.Result()), e.inReg(in.Args[0]), allLanes)
	}
}

func (e *emitter) order(in *simt.Instr) {
	c := e.opcode(in)
	switch in.Op {
	case simt.OpBar, simt.OpBarArrive:
		ops := []Operand{e.value(in.Args[0])}
		if in.Imm > 0 {
			ops = append(ops, operandInt(in.Imm))
		}
		e.op(c, ops...)
	case simt.OpWarpSync:
		e.op(c, allLanes)
	case simt.OpCpAsyncWait, simt.OpBulkWait, simt.OpMaxRegisters:
		e.op(c, operandInt(in.Imm))
	default:
		e.op(c)
	}
}

// copies writes the copies of an edge.
func (e *emitter) copies(cs []simt.Copy) {
	save := func(r int32) int32 {
		first := e.regs.First[r]
		n := e.fresh(regClassOf(first.Type))
		e.move(operandName(n), operandName(e.names[r]), first.Type)
		e.names = append(e.names, n)
		return int32(len(e.names) - 1)
	}
	e.regs.Sequence(cs, save, func(to, from int32, v *simt.Value) {
		t := e.regs.First[to].Type
		if from < 0 {
			e.move(operandName(e.names[to]), operandConst(v), t)
			return
		}
		e.move(operandName(e.names[to]), operandName(e.names[from]), t)
	})
}

// jump branches to a label where p holds (or, not, does not).
func (e *emitter) jump(to *Symbol, p Operand, not, uniform bool) {
	c := bra
	if uniform {
		c = braUni
	}
	out := e.op(c, operandName(to))
	if p.Kind != OpNone {
		e.setGuard(out, p, not)
	}
}

// setp compares two operands into a fresh predicate.
func (e *emitter) setp(c *Opcode, x, y Operand) Operand {
	p := operandName(e.fresh(classPred))
	e.op(c, p, x, y)
	return p
}

func (e *emitter) forLoop(in *simt.Instr) {
	edges := e.regs.Edges[in]
	lo, hi, step := in.Args[0], in.Args[1], in.Args[2]
	i := in.Body.Params[0]
	uniform := e.uniform[lo.ID] && e.uniform[hi.ID] && e.uniform[step.ID]
	e.copies(edges.Enter)
	start, end := e.label(), e.label()
	enters := lo.IsConst() && hi.IsConst() && lo.Int() < hi.Int()
	if !enters {
		e.jump(end, e.setp(setpGE, e.reg(i), e.value(hi)), false, uniform)
	}
	e.place(start)
	if in.Imm == 1 {
		e.stmts = append(e.stmts, &Pragma{Text: []string{"nounroll"}})
	}
	e.block(in.Body)
	e.copies(edges.Next)
	e.op(addS32, e.reg(i), e.reg(i), e.value(step))
	e.jump(start, e.setp(setpLT, e.reg(i), e.value(hi)), false, uniform)
	if !enters {
		e.place(end)
	}
}

func (e *emitter) doLoop(in *simt.Instr) {
	edges := e.regs.Edges[in]
	e.copies(edges.Enter)
	start := e.label()
	e.place(start)
	e.block(in.Body)
	cond := in.Body.Yield[0]
	p := e.inReg(cond)
	for _, c := range edges.Next {
		if c.To == e.regs.Reg(cond) { // about to be overwritten
			p = operandName(e.fresh(classPred))
			e.move(p, e.reg(cond), simt.Pred)
		}
	}
	e.copies(edges.Next)
	e.jump(start, p, false, e.uniform[cond.ID])
}

func (e *emitter) branch(in *simt.Instr) {
	edges := e.regs.Edges[in]
	uniform := e.uniform[in.Args[0].ID]
	end := e.label()
	otherwise := end
	if in.Else != nil {
		otherwise = e.label()
	}
	e.jump(otherwise, e.inReg(in.Args[0]), true, uniform)
	e.block(in.Body)
	e.copies(edges.Then)
	if in.Else != nil {
		e.jump(end, Operand{}, false, true)
		e.place(otherwise)
		e.block(in.Else)
		e.copies(edges.Else)
	}
	e.place(end)
}

// uniqueNames checks that no two kernels of a module have the same name.
func uniqueNames(m *simt.Module) error {
	seen := map[string]bool{}
	for _, k := range m.Kernels {
		if seen[k.Name] {
			return fmt.Errorf("two kernels are named %s", k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}
