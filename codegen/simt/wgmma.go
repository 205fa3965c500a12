package simt

import "fmt"

// Wgmma is a form of the warpgroup's asynchronous matrix instruction: a row of the
// table below. It multiplies 64 rows of A, in registers or in shared memory, by 8 to
// 256 columns of B in shared memory.
type Wgmma uint8

// The forms.
const (
	WgmmaF16 Wgmma = iota
	WgmmaBF16
	WgmmaF16AccF16
	WgmmaTF32
	WgmmaE4M3
	WgmmaE5M2
	numWgmmas

	// NumWgmmas is how many forms there are.
	NumWgmmas = int(numWgmmas)
)

// WgmmaM is how many rows a wgmma instruction multiplies, and WgmmaThreads how many
// threads, a warpgroup, execute it together.
const (
	WgmmaM       = 64
	WgmmaThreads = 128
)

// MaxWgmmaN is the most columns of a wgmma instruction, and WgmmaN what they are a
// multiple of.
const (
	WgmmaN    = 8
	MaxWgmmaN = 256
)

// WgmmaInfo describes a form of wgmma. Source: PTX ISA 9.1, section 9.7.15.5.
type WgmmaInfo struct {
	K     int    // of one instruction
	Types string // of D, A and B in the opcode
	Bits  int    // of an element of A or B
	Acc   Type   // register type of D
	Pack  int    // elements of D in a register
	// Trans says that operands in shared memory may lie along M or N.
	Trans bool
}

var wgmmas = [numWgmmas]WgmmaInfo{
	WgmmaF16:       {16, "f32.f16.f16", 16, F32, 1, true},
	WgmmaBF16:      {16, "f32.bf16.bf16", 16, F32, 1, true},
	WgmmaF16AccF16: {16, "f16.f16.f16", 16, F16x2, 2, true},
	WgmmaTF32:      {8, "f32.tf32.tf32", 32, F32, 1, false},
	WgmmaE4M3:      {32, "f32.e4m3.e4m3", 8, F32, 1, false},
	WgmmaE5M2:      {32, "f32.e5m2.e5m2", 8, F32, 1, false},
}

// Info returns the form's description.
func (f Wgmma) Info() *WgmmaInfo { return &wgmmas[f] }

func (f Wgmma) String() string { return wgmmas[f].Types }

// WgmmaShape is how a wgmma instruction reads its operands.
type WgmmaShape struct {
	Form   Wgmma
	N      int
	TransA bool // A in shared memory lies along M
	TransB bool // B lies along N
}

const (
	wgmmaN      = 0xffff
	wgmmaTransA = 1 << 16
	wgmmaTransB = 1 << 17
	wgmmaForm   = 24
)

// Wgmma is the shape of a wgmma instruction.
func (in *Instr) Wgmma() WgmmaShape {
	return WgmmaShape{
		Form: Wgmma(in.Imm >> wgmmaForm), N: int(in.Imm & wgmmaN),
		TransA: in.Imm&wgmmaTransA != 0, TransB: in.Imm&wgmmaTransB != 0,
	}
}

// WgmmaOperands splits a wgmma instruction's operands: A's descriptor or its four
// registers, B's descriptor, and the accumulators it adds to, none where it does not
// add.
func (in *Instr) WgmmaOperands() (a []*Value, b *Value, c []*Value) {
	n := 4
	if in.Args[0].Type == I64 {
		n = 1
	}
	return in.Args[:n], in.Args[n], in.Args[n+1:]
}

// Wgmma starts D = A*B + C, or A*B where c is nil, in the accumulators' registers. a is
// a descriptor of shared memory or four registers; bdesc is a descriptor. What it reads
// must stay as it is, and what it gives must not be looked at, until WgmmaWait.
func (b *Builder) Wgmma(s WgmmaShape, a []*Value, bdesc *Value, c []*Value) []*Value {
	info := s.Form.Info()
	n := s.N / 2 / info.Pack
	if s.N < WgmmaN || s.N > MaxWgmmaN || s.N%WgmmaN != 0 || c != nil && len(c) != n {
		panic(fmt.Sprintf("simt: wgmma of %d columns with %d accumulators: want a multiple of 8 up to 256, and %d or none", s.N, len(c), n))
	}
	in := b.emit(OpWgmma, info.Acc)
	in.Args = b.K.list(len(a) + 1 + len(c))
	at := copy(in.Args, a)
	in.Args[at] = bdesc
	copy(in.Args[at+1:], c)
	in.Imm = int64(s.Form)<<wgmmaForm | int64(s.N)
	if s.TransA {
		in.Imm |= wgmmaTransA
	}
	if s.TransB {
		in.Imm |= wgmmaTransB
	}
	d := b.results(in, info.Acc, n)
	for i, v := range c {
		d[i].Name, d[i].Sub = v.Name, v.Sub
	}
	return d
}

// WgmmaFence orders writes of registers before wgmma instructions that use them: the
// accumulators and the registers of A, which it returns.
func (b *Builder) WgmmaFence(vs []*Value) []*Value { return b.held(OpWgmmaFence, vs, len(vs)) }

// WgmmaCommit closes a group of wgmma instructions.
func (b *Builder) WgmmaCommit() { b.emit(OpWgmmaCommit, Void) }

// WgmmaWait waits until at most pending groups are in flight. It returns the
// accumulators that may be looked at from then on; used are registers that were read
// until then.
func (b *Builder) WgmmaWait(pending int, accumulators, used []*Value) []*Value {
	args := make([]*Value, 0, len(accumulators)+len(used))
	args = append(append(args, accumulators...), used...)
	vs := b.held(OpWgmmaWait, args, len(accumulators))
	b.block.Instrs[len(b.block.Instrs)-1].Imm = int64(pending)
	return vs
}

// held emits an instruction whose results are its first n operands, in their
// registers.
func (b *Builder) held(op Op, args []*Value, n int) []*Value {
	in := b.emit(op, Void, args...)
	in.Results = b.K.list(n)
	for i := range in.Results {
		v := b.K.newValue(args[i].Type, in, i)
		v.Name, v.Sub = args[i].Name, args[i].Sub
		in.Results[i] = v
	}
	return in.Results
}

// Tied tells which operands an instruction changes in place: result i has the register
// of operand first+i.
func (in *Instr) Tied() (first int, ok bool) {
	switch in.Op {
	case OpWgmmaFence, OpWgmmaWait:
		return 0, true
	case OpWgmma:
		_, _, c := in.WgmmaOperands()
		return len(in.Args) - len(c), len(c) > 0
	}
	return 0, false
}
