package simt

import (
	"fmt"
	"math"
)

// Builder appends instructions to a kernel. It folds constants and trivial
// identities and gives equal pure operations one value within the scope that
// dominates them, so that lowering may be naive. A wrong operand type is a
// bug of the caller and panics.
type Builder struct {
	K     *Kernel
	block *Block
	note  int32
	guard *Value
	not   bool
	vn    numbering
	notes map[string]int32
	zeros known
	raw   bool // neither fold nor number: for tests
}

// NewBuilder returns a builder at the end of k's body.
func NewBuilder(k *Kernel) *Builder { return newBuilder(k, 0) }

// newBuilder returns a builder with room for some operations.
func newBuilder(k *Kernel, operations int) *Builder {
	return &Builder{K: k, block: k.Body, notes: map[string]int32{}, zeros: known{k: k}, vn: newNumbering(k, operations)}
}

// Note sets the text that explains the instructions built from here on:
// printers show it where a group begins.
func (b *Builder) Note(text string) {
	if text == "" {
		b.note = 0
		return
	}
	n, ok := b.notes[text]
	if !ok {
		b.K.Notes = append(b.K.Notes, text)
		n = int32(len(b.K.Notes))
		b.notes[text] = n
	}
	b.note = n
}

// Guarded builds, within f, memory accesses that execute only where p holds.
// Everything else in f executes regardless.
func (b *Builder) Guarded(p *Value, f func()) {
	b.guarded(p, false, f)
}

// GuardedNot is Guarded where p does not hold.
func (b *Builder) GuardedNot(p *Value, f func()) {
	b.guarded(p, true, f)
}

func (b *Builder) guarded(p *Value, not bool, f func()) {
	if p.IsConst() && (p.Int() != 0) != not { // always
		f()
		return
	}
	oldGuard, oldNot := b.guard, b.not
	if oldGuard != nil {
		x, y := oldGuard, p
		if oldNot {
			x = b.Not(x)
		}
		if not {
			y = b.Not(y)
		}
		p, not = b.And(x, y), false
	}
	b.guard, b.not = p, not
	f()
	b.guard, b.not = oldGuard, oldNot
}

// emit appends a new instruction.
func (b *Builder) emit(op Op, t Type, args ...*Value) *Instr {
	in := b.K.newInstr()
	in.Op, in.Type, in.Note = op, t, b.note
	in.Args = b.K.copyList(args)
	b.block.Instrs = append(b.block.Instrs, in)
	return in
}

// result gives an instruction its one result.
func (b *Builder) result(in *Instr, t Type) *Value {
	in.Results = b.K.list(1)
	in.Results[0] = b.K.newValue(t, in, 0)
	return in.Results[0]
}

// results gives an instruction n results of type t.
func (b *Builder) results(in *Instr, t Type, n int) []*Value {
	in.Results = b.K.list(n)
	for i := range in.Results {
		in.Results[i] = b.K.newValue(t, in, i)
	}
	return in.Results
}

// attrs are the attributes that take part in the identity of a pure operation.
type attrs struct {
	sub   uint8 // Cmp, Round, ...
	flags Flags
	imm   int64
}

// pure builds, folds or finds a pure operation with one result of type rt.
func (b *Builder) pure(op Op, t, rt Type, a attrs, args ...*Value) *Value {
	b.check(op, t, args)
	if b.raw {
		in := b.emit(op, t, args...)
		in.setAttrs(a)
		return b.result(in, rt)
	}
	if v := b.fold(op, t, rt, a, args); v != nil {
		return v
	}
	o := operation{op, t, rt, a, args}
	v, hash := b.vn.find(&o)
	if v != nil {
		return v
	}
	in := b.emit(op, t, args...)
	in.setAttrs(a)
	v = b.result(in, rt)
	b.vn.add(hash, v)
	return v
}

func (in *Instr) setAttrs(a attrs) {
	in.Flags, in.Imm = a.flags, a.imm
	switch in.Op {
	case OpCmp:
		in.Cmp = Cmp(a.sub)
	case OpIntToFloat, OpFloatToInt, OpFloatCvt, OpCvtPack, OpCvtTF32:
		in.Round = Round(a.sub)
	case OpPackFP8, OpUnpackFP8:
		in.Mem = Mem(a.sub)
	}
}

func (in *Instr) attrs() attrs {
	a := attrs{flags: in.Flags, imm: in.Imm}
	switch in.Op {
	case OpCmp:
		a.sub = uint8(in.Cmp)
	case OpIntToFloat, OpFloatToInt, OpFloatCvt, OpCvtPack, OpCvtTF32:
		a.sub = uint8(in.Round)
	case OpPackFP8, OpUnpackFP8:
		a.sub = uint8(in.Mem)
	}
	return a
}

func (b *Builder) check(op Op, t Type, args []*Value) {
	if err := checkOperands(op, t, args); err != nil {
		panic("simt: " + err.Error())
	}
}

// floating builds a value that stands in no block.
func (b *Builder) floating(op Op, t Type, a attrs, set func(*Instr)) *Value {
	id := rootKey{op, t, a.imm}
	if v := b.K.roots[id]; v != nil {
		return v
	}
	in := b.K.newInstr()
	in.Op, in.Type, in.Imm = op, t, a.imm
	if set != nil {
		set(in)
	}
	v := b.result(in, t)
	if b.K.roots == nil {
		b.K.roots = make(map[rootKey]*Value, 128)
	}
	b.K.roots[id] = v
	if op != OpConst {
		b.K.Inputs = append(b.K.Inputs, v)
	}
	return v
}

// Const returns the constant of type t with the given bits; integers narrower
// than 64 bits are kept sign-extended, floats zero-extended.
func (b *Builder) Const(t Type, bits int64) *Value {
	return b.floating(OpConst, t, attrs{imm: normalize(t, bits)}, nil)
}

// normalize brings a constant's bits to their one form.
func normalize(t Type, bits int64) int64 {
	switch t {
	case Pred:
		return bits & 1
	case I16:
		return int64(int16(bits))
	case I32:
		return int64(int32(bits))
	case F16, BF16:
		return bits & 0xffff
	case F32, F16x2, BF16x2:
		return bits & 0xffffffff
	}
	return bits
}

// Const32 is a 32-bit integer constant.
func (b *Builder) Const32(n int) *Value { return b.Const(I32, int64(n)) }

// Const64 is a 64-bit integer constant.
func (b *Builder) Const64(n int64) *Value { return b.Const(I64, n) }

// ConstF32 is a 32-bit float constant.
func (b *Builder) ConstF32(x float32) *Value { return b.Const(F32, int64(math.Float32bits(x))) }

// ConstF64 is a 64-bit float constant.
func (b *Builder) ConstF64(x float64) *Value { return b.Const(F64, int64(math.Float64bits(x))) }

// ConstPred is a predicate constant.
func (b *Builder) ConstPred(x bool) *Value {
	if x {
		return b.Const(Pred, 1)
	}
	return b.Const(Pred, 0)
}

// Param is parameter i's value.
func (b *Builder) Param(i int) *Value {
	p := &b.K.Params[i]
	v := b.floating(OpParam, p.Type, attrs{imm: int64(i)}, nil)
	v.Name = p.Name
	return v
}

// AddParam declares a parameter and returns its number; Param(i) is its value.
func (b *Builder) AddParam(p Param) int {
	b.K.Params = append(b.K.Params, p)
	return len(b.K.Params) - 1
}

// Special is a special register.
func (b *Builder) Special(s Special) *Value {
	return b.floating(OpSpecial, I32, attrs{imm: int64(s)}, func(in *Instr) { in.Special, in.Imm = s, int64(s) })
}

// SharedBase is the 32-bit address of the kernel's shared memory.
func (b *Builder) SharedBase() *Value { return b.floating(OpSharedBase, I32, attrs{}, nil) }

// For builds a loop: for i := lo; i < hi; i += step, compared as signed.
// body gets the counter and the carried values and returns the carried values
// of the next iteration; For returns their last ones. step must be positive,
// and hi + step must not exceed 2^31 - 1: the counter does not wrap.
func (b *Builder) For(lo, hi, step *Value, carried []*Value, body func(i *Value, c []*Value) []*Value) []*Value {
	in := b.emit(OpFor, Void)
	in.Args = b.K.list(3 + len(carried))
	in.Args[0], in.Args[1], in.Args[2] = lo, hi, step
	copy(in.Args[3:], carried)
	b.check(OpFor, Void, in.Args)
	in.Body = &Block{Params: b.K.list(1 + len(carried))}
	for i := range in.Body.Params {
		t := I32
		if i > 0 {
			t = carried[i-1].Type
		}
		v := b.K.newValue(t, in, i)
		v.Block = in.Body
		in.Body.Params[i] = v
	}
	params := in.Body.Params
	b.inBlock(in.Body, func() { in.Body.Yield = b.K.copyList(body(params[0], params[1:])) })
	b.endLoop(in, carried, in.Body.Yield)
	return in.Results
}

// Loop builds a do-while loop: body returns the condition to go on and the
// carried values of the next iteration; Loop returns their last ones.
func (b *Builder) Loop(carried []*Value, body func(c []*Value) (*Value, []*Value)) []*Value {
	in := b.emit(OpLoop, Void, carried...)
	in.Body = &Block{Params: b.K.list(len(carried))}
	for i, c := range carried {
		v := b.K.newValue(c.Type, in, i)
		v.Block = in.Body
		in.Body.Params[i] = v
	}
	b.inBlock(in.Body, func() {
		cond, next := body(in.Body.Params)
		in.Body.Yield = b.K.list(1 + len(next))
		in.Body.Yield[0] = cond
		copy(in.Body.Yield[1:], next)
	})
	b.endLoop(in, carried, in.Body.Yield[1:])
	return in.Results
}

func (b *Builder) endLoop(in *Instr, carried, yield []*Value) {
	if len(yield) != len(carried) {
		panic(fmt.Sprintf("simt: loop yields %d values, want %d", len(yield), len(carried)))
	}
	in.Results = b.K.list(len(carried))
	for i, c := range carried {
		if yield[i].Type != c.Type {
			panic(fmt.Sprintf("simt: loop's carried value %d: yields %s, want %s", i, yield[i].Type, c.Type))
		}
		in.Results[i] = b.K.newValue(c.Type, in, i)
		in.Results[i].Name, in.Results[i].Sub = in.Body.Params[len(in.Body.Params)-len(carried)+i].Name, in.Body.Params[len(in.Body.Params)-len(carried)+i].Sub
	}
}

// Unroll tells the printers how often to unroll the loop just built (its
// results' definition): 0 leaves it to the compiler, 1 forbids it.
func (b *Builder) Unroll(n int) {
	for i := len(b.block.Instrs) - 1; i >= 0; i-- {
		if in := b.block.Instrs[i]; in.Op == OpFor {
			in.Imm = int64(n)
			return
		}
	}
}

// If builds a branch. then and otherwise return as many values of the same
// types, which If returns joined; otherwise may be nil where there are none.
func (b *Builder) If(cond *Value, then, otherwise func() []*Value) []*Value {
	if cond.IsConst() {
		switch {
		case cond.Int() != 0:
			return then()
		case otherwise != nil:
			return otherwise()
		}
		return nil
	}
	in := b.emit(OpIf, Void, cond)
	b.check(OpIf, Void, in.Args)
	in.Body = &Block{}
	b.inBlock(in.Body, func() { in.Body.Yield = b.K.copyList(then()) })
	if otherwise != nil {
		in.Else = &Block{}
		b.inBlock(in.Else, func() { in.Else.Yield = b.K.copyList(otherwise()) })
	}
	n := 0
	if in.Else != nil {
		n = len(in.Else.Yield)
	}
	if n != len(in.Body.Yield) {
		panic(fmt.Sprintf("simt: branches of an if yield %d and %d values", len(in.Body.Yield), n))
	}
	in.Results = b.K.list(n)
	for i := range in.Results {
		x, y := in.Body.Yield[i], in.Else.Yield[i]
		if x.Type != y.Type {
			panic(fmt.Sprintf("simt: branches of an if yield %s and %s", x.Type, y.Type))
		}
		in.Results[i] = b.K.newValue(x.Type, in, i)
		in.Results[i].Name, in.Results[i].Sub = x.Name, x.Sub
	}
	return in.Results
}

func (b *Builder) inBlock(blk *Block, f func()) {
	old := b.block
	b.block = blk
	b.vn.enter()
	f()
	b.vn.leave()
	b.block = old
}

// Return leaves the kernel.
func (b *Builder) Return() { b.emit(OpReturn, Void) }

// Trap stops the whole launch with an error.
func (b *Builder) Trap() { b.emit(OpTrap, Void) }
