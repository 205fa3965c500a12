package ptx

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// FromSIMT turns a module of thread IR into PTX: an entry a kernel, with the
// lowest version its target and instructions need.
func FromSIMT(m *simt.Module) (*Module, error) {
	if err := uniqueNames(m); err != nil {
		return nil, err
	}
	version := m.Version()
	out := &Module{
		Version:     Version{version / 10, version % 10},
		Targets:     []string{m.Arch},
		AddressSize: 64,
	}
	if v := dynamicShared(m); v != nil {
		out.Decls = append(out.Decls, v)
	}
	for _, k := range m.Kernels {
		if err := supported(m, k); err != nil {
			return nil, err
		}
		e := newEmitter(k)
		out.Decls = append(out.Decls, e.function())
	}
	return out, nil
}

// supported checks that a target has all of a kernel's instructions.
func supported(m *simt.Module, k *simt.Kernel) (err error) {
	if k.Cluster > 1 && m.SM < 90 {
		return fmt.Errorf("kernel %s for %s: clusters need sm_90", k.Name, m.Arch)
	}
	simt.Walk(k.Body, func(in *simt.Instr) {
		if _, sm := in.Requires(); sm > m.SM && err == nil {
			err = fmt.Errorf("kernel %s for %s: %s needs sm_%d", k.Name, m.Arch, in.Opcode(), sm)
		}
		if arch := m.Lacks(in.Op); arch != "" && err == nil {
			err = fmt.Errorf("kernel %s for %s: %s needs %s", k.Name, m.Arch, in.Opcode(), arch)
		}
	})
	return err
}

const dynamicName = "smem"

// dynamicShared declares the shared memory that launches size, nil if no
// kernel has any.
func dynamicShared(m *simt.Module) *Variable {
	align, any := 16, false
	for _, k := range m.Kernels {
		if k.Dynamic && k.Shared > 0 {
			align, any = max(align, k.SharedAlign), true
		}
	}
	if !any {
		return nil
	}
	return &Variable{Linkage: Extern, Space: SpaceShared, Bank: -1, Align: align, Type: B8, Name: dynamicName, Dims: []int64{-1}}
}

// emitter writes one kernel. Instructions and operands come out of slabs.
type emitter struct {
	k       *simt.Kernel
	regs    *simt.Registers
	uniform []bool
	names   []*Symbol // a register's name
	opcodes map[opcodeKey]*Opcode
	stmts   []Stmt
	head    []Stmt // entry: parameters, special registers, constants
	consts  map[constKey]*Symbol
	classes [numClasses]int // registers used of each regClass
	labels  int
	slabI   []Instruction
	slabO   []Operand
	slabP   [][]Operand
}

// regClass is a kind of register: what its name begins with and its type.
type regClass uint8

const (
	classPred regClass = iota
	class16
	classF32
	class32
	class64
	classF64
	numClasses
)

var regClassInfo = [numClasses]struct {
	prefix string
	typ    Type
}{
	classPred: {"%p", Pred}, class16: {"%h", B16}, classF32: {"%f", B32}, class32: {"%r", B32}, class64: {"%rd", B64}, classF64: {"%fd", B64},
}

func regClassOf(t simt.Type) regClass {
	switch t {
	case simt.Pred:
		return classPred
	case simt.F32:
		return classF32
	case simt.F64:
		return classF64
	}
	switch t.Bits() {
	case 16:
		return class16
	case 64:
		return class64
	}
	return class32
}

type constKey struct {
	c    regClass
	bits int64
}

type opcodeKey struct {
	op       simt.Op
	typ, arg simt.Type
	cmp      simt.Cmp
	round    simt.Round
	mma      simt.Mma
	space    simt.Space
	mem      simt.Mem
	vec      uint8
	cache    simt.Cache
	shfl     simt.ShflMode
	atom     simt.AtomOp
	scope    simt.Scope
	flags    simt.Flags
	imm      int64
}

func newEmitter(k *simt.Kernel) *emitter {
	e := &emitter{
		k: k, regs: simt.AssignRegisters(k, simt.ForPTX), uniform: simt.Uniform(k),
		opcodes: map[opcodeKey]*Opcode{}, consts: map[constKey]*Symbol{},
	}
	e.names = make([]*Symbol, len(e.regs.First))
	symbols := make([]Symbol, len(e.names))
	var text strings.Builder
	text.Grow(8 * len(e.names))
	ends := make([]int32, len(e.names))
	var number [20]byte
	for i, v := range e.regs.First {
		c := regClassOf(v.Type)
		text.WriteString(regClassInfo[c].prefix)
		text.Write(strconv.AppendInt(number[:0], int64(e.take(c)), 10))
		ends[i] = int32(text.Len())
	}
	all, from := text.String(), int32(0)
	for i, to := range ends {
		symbols[i].Name, from = all[from:to], to
		e.names[i] = &symbols[i]
	}
	return e
}

// take numbers a register of a regClass, from 1.
func (e *emitter) take(c regClass) int {
	e.classes[c]++
	return e.classes[c]
}

func (e *emitter) fresh(c regClass) *Symbol {
	return &Symbol{Name: regClassInfo[c].prefix + strconv.Itoa(e.take(c))}
}

// function is the whole entry.
func (e *emitter) function() *Function {
	f := &Function{Linkage: Visible, Kernel: true, Name: e.k.Name}
	for i := range e.k.Params {
		f.Params = append(f.Params, e.parameter(&e.k.Params[i]))
	}
	e.directives(f)
	n := 0
	simt.Walk(e.k.Body, func(*simt.Instr) { n++ })
	e.stmts = make([]Stmt, 0, n+n/8)
	e.block(e.k.Body)
	e.op(opRet)
	e.inputs()
	body := make([]Stmt, 0, len(e.stmts)+len(e.head)+8)
	for c := range numClasses {
		if n := e.classes[c]; n > 0 {
			body = append(body, &Variable{Space: SpaceReg, Bank: -1, Type: regClassInfo[c].typ, Name: regClassInfo[c].prefix, Range: n + 1})
		}
	}
	if e.k.Shared > 0 && !e.k.Dynamic {
		body = append(body, &Variable{
			Space: SpaceShared, Bank: -1, Align: max(16, e.k.SharedAlign), Type: B8, Name: e.sharedName(), Dims: []int64{int64(e.k.Shared)},
		})
	}
	body = append(body, e.head...)
	f.Body = &Block{Stmts: append(body, e.stmts...)}
	return f
}

func (e *emitter) directives(f *Function) {
	f.Directives = append(f.Directives, Directive{Name: "maxntid", Values: []int64{int64(e.k.Threads)}})
	if e.k.MinBlocks > 0 {
		f.Directives = append(f.Directives, Directive{Name: "minnctapersm", Values: []int64{int64(e.k.MinBlocks)}})
	}
	if e.k.Cluster > 1 {
		f.Directives = append(f.Directives, Directive{Name: "explicitcluster"}, Directive{Name: "reqnctapercluster", Values: []int64{int64(e.k.Cluster)}})
	}
	if e.k.MaxRegs > 0 {
		f.Directives = append(f.Directives, Directive{Name: "maxnreg", Values: []int64{int64(e.k.MaxRegs)}})
	}
}

func (e *emitter) sharedName() string {
	if e.k.Dynamic {
		return dynamicName
	}
	return dynamicName + "_" + e.k.Name
}

func (e *emitter) paramName(p *simt.Param) string { return e.k.Name + "_" + p.Name }

func (e *emitter) parameter(p *simt.Param) *Variable {
	v := &Variable{Space: SpaceParam, Bank: -1, Name: e.paramName(p)}
	switch {
	case p.Bytes > 0:
		v.Align, v.Type, v.Dims = 64, B8, []int64{int64(p.Bytes)}
	case p.Type == simt.Ptr:
		v.Type, v.Ptr, v.PtrSpace, v.PtrAlign = U64, true, SpaceGlobal, max(p.Align, 1)
	case p.Type == simt.F32:
		v.Type = F32
	case p.Type == simt.F64:
		v.Type = F64
	case p.Type.Bits() == 16:
		v.Type = B16
	case p.Type.Bits() == 64:
		v.Type = U64
	default:
		v.Type = U32
	}
	return v
}

// inputs loads what exists at entry.
func (e *emitter) inputs() {
	body := e.stmts
	e.stmts = e.head
	for _, v := range e.k.Inputs {
		d := e.reg(v)
		switch in := v.Def; in.Op {
		case simt.OpParam:
			p := &e.k.Params[in.Imm]
			if p.Bytes > 0 {
				e.op(movB64, d, operandName(&Symbol{Name: e.paramName(p)}))
				e.op(&Opcode{"cvta", []string{"param", "u64"}}, d, d)
				continue
			}
			c := &Opcode{"ld", []string{"param", "b" + strconv.Itoa(p.Type.Bits())}}
			e.op(c, d, e.address(&Symbol{Name: e.paramName(p)}, 0))
		case simt.OpSpecial:
			e.op(movU32, d, operandName(&Symbol{Name: "%" + in.Special.String()}))
		case simt.OpSharedBase:
			e.op(movU32, d, operandName(&Symbol{Name: e.sharedName()}))
		}
	}
	e.head, e.stmts = e.stmts, body
}

// operands returns n operands out of the slab.
func (e *emitter) operands(n int) []Operand {
	return cutSlice(&e.slabO, n, 512)
}

// group is an operand with parts, n of them, to be filled in.
func (e *emitter) group(kind OperandKind, n int) (o Operand, parts []Operand) {
	all := cut(&e.slabP, 128)
	*all = e.operands(n)
	return Operand{Kind: kind, Parts: all}, *all
}

// op appends an instruction.
func (e *emitter) op(c *Opcode, ops ...Operand) *Instruction {
	own := e.operands(len(ops))
	copy(own, ops)
	return e.put(c, own)
}

// put appends an instruction, which keeps ops.
func (e *emitter) put(c *Opcode, ops []Operand) *Instruction {
	in := cut(&e.slabI, 256)
	in.Opcode, in.Operands = c, ops
	e.stmts = append(e.stmts, in)
	return in
}

// opcode is the instruction's opcode, split as the table of instructions has it.
func (e *emitter) opcode(in *simt.Instr) *Opcode {
	key := opcodeKey{
		op: in.Op, typ: in.Type, cmp: in.Cmp, round: in.Round, mma: in.Mma, space: in.Space, mem: in.Mem, vec: in.Vec,
		cache: in.Cache, shfl: in.Shfl, atom: in.Atom, scope: in.Scope, flags: in.Flags,
	}
	if len(in.Args) > 0 {
		key.arg = in.Args[0].Type
	}
	switch in.Op {
	case simt.OpCpAsync:
		key.imm = int64(in.CpAsyncBytes())
	case simt.OpFloatCvt, simt.OpWgmma, simt.OpMapSet, simt.OpPolicy:
		key.imm = in.Imm
	case simt.OpTensorStore:
		key.imm = int64(len(in.Args))
	case simt.OpTensorLoad:
		key.imm = int64(len(in.Args))
		if in.Imm != 0 {
			key.imm = -key.imm
		}
	}
	c, ok := e.opcodes[key]
	if !ok {
		c = newOpcode(in.Opcode())
		e.opcodes[key] = c
	}
	return c
}

func operandName(n *Symbol) Operand { return Operand{Kind: OpName, Symbol: n} }

func (e *emitter) reg(v *simt.Value) Operand { return operandName(e.names[e.regs.Reg(v)]) }

func operandInt(n int64) Operand { return Operand{Kind: OpImm, Value: uint64(n)} }

// constant is a constant as an immediate operand.
func operandConst(v *simt.Value) Operand {
	o := operandInt(v.Def.Imm)
	switch v.Type {
	case simt.F32:
		o.Imm = ImmF32
	case simt.F64:
		o.Imm = ImmF64
	case simt.F16, simt.BF16, simt.F16x2, simt.BF16x2:
		o.Radix = 16
	}
	return o
}

// value is an operand: a register, or an immediate for a constant.
func (e *emitter) value(v *simt.Value) Operand {
	if e.regs.Reg(v) >= 0 {
		return e.reg(v)
	}
	return operandConst(v)
}

// inReg is an operand where only a register may stand.
func (e *emitter) inReg(v *simt.Value) Operand { return operandName(e.symbol(v)) }

// symbol is a value's register. A constant is put in one, once, at the
// kernel's entry.
func (e *emitter) symbol(v *simt.Value) *Symbol {
	if r := e.regs.Reg(v); r >= 0 {
		return e.names[r]
	}
	key := constKey{regClassOf(v.Type), v.Def.Imm}
	n, ok := e.consts[key]
	if !ok {
		n = e.fresh(key.c)
		e.consts[key] = n
		body := e.stmts
		e.stmts = e.head
		e.move(operandName(n), operandConst(v), v.Type)
		e.head, e.stmts = e.stmts, body
	}
	return n
}

var (
	opRet   = &Opcode{"ret", nil}
	movB32  = &Opcode{"mov", []string{"b32"}}
	movB64  = &Opcode{"mov", []string{"b64"}}
	movB16  = &Opcode{"mov", []string{"b16"}}
	movPred = &Opcode{"mov", []string{"pred"}}
	movU32  = &Opcode{"mov", []string{"u32"}}
	setpNE  = &Opcode{"setp", []string{"ne", "b32"}}
	setpGE  = &Opcode{"setp", []string{"ge", "s32"}}
	setpLT  = &Opcode{"setp", []string{"lt", "s32"}}
	addS32  = &Opcode{"add", []string{"s32"}}
	mapaU32 = &Opcode{"mapa", []string{"shared::cluster", "u32"}}
	bra     = &Opcode{"bra", nil}
	braUni  = &Opcode{"bra", []string{"uni"}}
)

// move copies to a register.
func (e *emitter) move(to, from Operand, t simt.Type) {
	if t == simt.Pred && from.Kind == OpImm {
		// There is no predicate immediate: compare instead.
		e.op(setpNE, to, Operand{Kind: OpImm, Value: from.Value}, operandInt(0))
		return
	}
	c := movB32
	switch t.Bits() {
	case 1:
		c = movPred
	case 16:
		c = movB16
	case 64:
		c = movB64
	}
	e.op(c, to, from)
}

// address is [base+offset].
func (e *emitter) address(base *Symbol, offset int64) Operand {
	o, parts := e.group(OpAddr, 1)
	parts[0] = Operand{Kind: OpName, Symbol: base, Value: uint64(offset)}
	return o
}

func (e *emitter) at(v *simt.Value, offset int64) Operand {
	return e.address(e.symbol(v), offset)
}

// vector is {a, b, ...} of registers, or the register alone.
func (e *emitter) vector(vs []*simt.Value, always bool) Operand {
	if len(vs) == 1 && !always {
		return e.inReg(vs[0])
	}
	o, parts := e.group(OpVector, len(vs))
	for i, v := range vs {
		parts[i] = e.inReg(v)
	}
	return o
}

func (e *emitter) label() *Symbol {
	e.labels++
	return &Symbol{Name: "$L" + strconv.Itoa(e.labels)}
}

func (e *emitter) place(l *Symbol) { e.stmts = append(e.stmts, &Label{Name: l.Name}) }
