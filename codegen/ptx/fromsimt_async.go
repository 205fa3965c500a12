package ptx

import "github.com/kgen-dev/kgen/codegen/simt"

// wgmma is an instruction of a warpgroup's asynchronous matrix product. What it changes
// in place is first brought into its registers.
func (e *emitter) wgmma(in *simt.Instr) {
	if edges := e.regs.Edges[in]; edges != nil {
		e.copies(edges.Enter)
	}
	c := e.opcode(in)
	switch in.Op {
	case simt.OpWgmmaWait:
		e.op(c, operandInt(in.Imm))
		return
	case simt.OpWgmmaFence, simt.OpWgmmaCommit:
		e.op(c)
		return
	}
	s := in.Wgmma()
	a, b, acc := in.WgmmaOperands()
	ops := []Operand{e.vector(in.Results, true), e.vector(a, len(a) > 1), e.inReg(b), flagOperand(len(acc) > 0), operandInt(1), operandInt(1)}
	if s.Form.Info().Trans {
		if len(a) == 1 {
			ops = append(ops, flagOperand(s.TransA))
		}
		ops = append(ops, flagOperand(s.TransB))
	}
	e.op(c, ops...)
}

func flagOperand(v bool) Operand {
	if v {
		return operandInt(1)
	}
	return operandInt(0)
}

// mbarrier is an instruction on an mbarrier. A wait asks again until the phase is over.
func (e *emitter) mbarrier(in *simt.Instr) {
	c := e.opcode(in)
	at := e.at(in.Args[0], int64(in.Offset))
	switch in.Op {
	case simt.OpMbarWait:
		again := e.label()
		done := operandName(e.fresh(classPred))
		e.place(again)
		e.op(c, done, at, e.value(in.Args[1]))
		e.jump(again, done, true, false)
		return
	case simt.OpMbarArriveAt:
		there := e.there(in)
		e.guard(e.op(c, Operand{Kind: OpSink}, there), in)
	case simt.OpMbarCopied:
		e.op(c, at)
	case simt.OpMbarInit:
		e.guard(e.op(c, at, operandInt(in.Imm)), in)
	case simt.OpMbarExpect:
		e.guard(e.op(c, Operand{Kind: OpSink}, at, operandInt(in.Imm)), in)
	default:
		e.guard(e.op(c, Operand{Kind: OpSink}, at), in)
	}
}

// there is where the first operand, a shared address, is in the block of the cluster that
// is the second.
func (e *emitter) there(in *simt.Instr) Operand {
	there := e.fresh(regClassOf(simt.I32))
	e.op(mapaU32, operandName(there), e.inReg(in.Args[0]), e.value(in.Args[1]))
	return e.address(there, 0)
}

// tensorLoad is a copy by a tensor map.
func (e *emitter) tensorLoad(in *simt.Instr) {
	c := e.opcode(in)
	box, parts := e.group(OpAddr, 2)
	at, policy := in.Box()
	parts[0], parts[1] = e.inReg(in.Args[1]), e.vectorOf(at)
	ops := []Operand{e.at(in.Args[0], int64(in.Offset)), box, e.at(in.Args[2], 0)}
	if in.Imm != 0 {
		ops = append(ops, operandInt(in.Imm))
	}
	if policy != nil {
		ops = append(ops, e.inReg(policy))
	}
	e.guard(e.op(c, ops...), in)
}

// tensorStore is a copy to global memory by a tensor map.
func (e *emitter) tensorStore(in *simt.Instr) {
	c := e.opcode(in)
	box, parts := e.group(OpAddr, 2)
	at, policy := in.Box()
	parts[0], parts[1] = e.inReg(in.Args[1]), e.vectorOf(at)
	ops := []Operand{box, e.at(in.Args[0], int64(in.Offset))}
	if policy != nil {
		ops = append(ops, e.inReg(policy))
	}
	e.guard(e.op(c, ops...), in)
}

// tensorMap is an instruction on a tensor map in memory.
func (e *emitter) tensorMap(in *simt.Instr) {
	c, at := e.opcode(in), e.at(in.Args[0], int64(in.Offset))
	switch in.Op {
	case simt.OpMapSet:
		ops := []Operand{at}
		if f := in.MapField(); f.Numbered() {
			ops = append(ops, operandInt(int64(f.Dim)))
		}
		e.op(c, append(ops, e.value(in.Args[1]))...)
	case simt.OpMapPublish:
		e.op(c, at, e.at(in.Args[1], 0), operandInt(simt.MapBytes))
	default:
		e.op(c, at, operandInt(simt.MapBytes))
	}
}

// vectorOf is {a, b, ...} of registers and immediates.
func (e *emitter) vectorOf(vs []*simt.Value) Operand {
	o, parts := e.group(OpVector, len(vs))
	for i, v := range vs {
		parts[i] = e.value(v)
	}
	return o
}
