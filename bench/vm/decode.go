package vm

import (
	"fmt"
	"math"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// decoder turns one PTX function into a program. Until slots are assigned an
// instruction's operands are values, in uses and defs too.
type decoder struct {
	mod   *module
	kern  *kernel
	fn    *ptx.Function
	p     *program
	insts []*inst

	values          []value
	regs            []int32 // value of each PTX register; -1 where not met yet
	consts          map[constant]int32
	passed          map[*ptx.Label]bool // labels before the instruction being decoded
	tensorReduction string
	wgmmaRegs       []int32 // values that wgmma writes when it lands
	wgmmaWaits      []*inst
	fragments       map[int32]int32 // numbers of the values that wgmma uses as registers
	cc              int32           // the carry register's value; -1 where nothing uses it
	binds           []bind
	clocks          []*inst                 // that read one
	extra           []ptx.Register          // temporaries, numbered after the function's registers
	wide            map[int32][]ptx.Operand // the halves of registers of 128 bits

	// The instruction being decoded.
	src   *ptx.Instruction
	words []string // opcode and modifiers
	used  []bool   // of words
}

// value is a register before it has a slot: one of the function's, a
// constant, or one that decoding added.
type value struct {
	k        class
	bits     int
	constant bool
	shared   bool // a constant that is an address of shared memory
	content  uint64
	reg      int32 // PTX register, -1
}

type constant struct {
	k      class
	bits   uint64
	shared bool // an address of shared memory
}

// bind is an operand field to fill in once the value has a slot.
type bind struct {
	field *int32
	value int32
}

// taking returns what takes the next of the operands that are left, and refuses where
// there is none.
func (d *decoder) taking(left *[]ptx.Operand) func() *ptx.Operand {
	return func() *ptx.Operand {
		if len(*left) == 0 {
			d.refuse("want more operands")
		}
		o := &(*left)[0]
		*left = (*left)[1:]
		return o
	}
}

// refuse ends decoding of the module with a complaint about the current
// instruction.
func (d *decoder) refuse(format string, args ...any) {
	panic(&ptx.Error{File: d.mod.src.File, Pos: d.src.Pos, Msg: fmt.Sprintf("%s: ", d.opcode()) + fmt.Sprintf(format, args...)})
}

// opcode is the current instruction's name with its modifiers.
func (d *decoder) opcode() string { return opcode(d.src) }

func opcode(in *ptx.Instruction) string {
	if len(in.Mods) == 0 {
		return in.Name
	}
	return in.Name + "." + strings.Join(in.Mods, ".")
}

// decode makes a function's program. The error is a *ptx.Error.
func decode(k *kernel, fn *ptx.Function) (p *program, err error) {
	d := newDecoder(k, fn)
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*ptx.Error)
			if !ok {
				panic(r)
			}
			p, err = nil, e
		}
	}()
	d.variables()
	end := &ptx.Instruction{Opcode: &ptx.Opcode{Name: "end"}, Pos: fn.Body.End, PC: -1}
	if !fn.Kernel {
		d.src = end
		d.ownRegisters("ld", fn.Params)
	}
	d.block(fn.Body)
	d.src = end
	d.ret() // falling off the end returns
	d.finish()
	return d.p, nil
}

func newDecoder(k *kernel, fn *ptx.Function) *decoder {
	d := &decoder{
		mod: k.mod, kern: k, fn: fn,
		p: &program{
			name: fn.Name, fn: fn, mod: k.mod, locals: map[*ptx.Variable]int64{},
			counter: make([]counter, len(fn.Code)), tensor: map[int32]bench.TensorCount{},
		},
		cc:     -1,
		regs:   make([]int32, len(fn.Registers)),
		consts: map[constant]int32{}, passed: map[*ptx.Label]bool{},
		wide: map[int32][]ptx.Operand{},
	}
	for i := range d.regs {
		d.regs[i] = -1
	}
	return d
}

func (d *decoder) block(b *ptx.Block) {
	for _, s := range sinkMoves(b.Stmts) {
		switch s := s.(type) {
		case *ptx.Instruction:
			d.instruction(s)
		case *ptx.Label:
			d.insts = append(d.insts, &inst{kind: kindControl, pc: -1, guard: -1, jump: &jump{label: s, reconverge: -1}})
			d.passed[s] = true
		case *ptx.Block:
			d.block(s)
		}
	}
}

func (d *decoder) instruction(in *ptx.Instruction) {
	d.src = in
	d.words = append(strings.Split(in.Name, "."), in.Mods...)
	d.used = make([]bool, len(d.words))
	f, ok := decoders[d.words[0]]
	if !ok {
		d.refuse("the virtual machine does not execute it")
	}
	d.used[0] = true
	f(d)
	for i, u := range d.used {
		if !u {
			d.refuse("the virtual machine does not execute it with .%s", d.words[i])
		}
	}
}

// within decodes an instruction of which the current one is made up, under its
// guard.
func (d *decoder) within(name string, mods []string, ops ...ptx.Operand) {
	d.madeUp(d.src.PC, name, mods, ops)
}

// aside is within for an instruction that is not counted.
func (d *decoder) aside(name string, mods []string, ops ...ptx.Operand) {
	d.madeUp(-1, name, mods, ops)
}

func (d *decoder) madeUp(pc int32, name string, mods []string, ops []ptx.Operand) {
	src, words, used := d.src, d.words, d.used
	d.instruction(&ptx.Instruction{Pos: src.Pos, Guard: src.Guard, Opcode: &ptx.Opcode{Name: name, Mods: mods}, Operands: ops, PC: pc})
	d.src, d.words, d.used = src, words, used
}

// temporary makes a register for instructions within the current one.
func (d *decoder) temporary(name string, t ptx.Type) ptx.Operand {
	d.regs = append(d.regs, -1)
	d.extra = append(d.extra, ptx.Register{Name: name, Type: t})
	return ptx.Operand{Kind: ptx.OpReg, Symbol: &ptx.Symbol{Name: name, Slot: int32(len(d.regs) - 1)}}
}

// registerInfo is a register of the function or a temporary.
func (d *decoder) registerInfo(slot int32) ptx.Register {
	if n := int32(len(d.fn.Registers)); slot >= n {
		return d.extra[slot-n]
	}
	return d.fn.Registers[slot]
}

// has takes a modifier if it is there.
func (d *decoder) has(word string) bool {
	for i, w := range d.words {
		if w == word && !d.used[i] {
			d.used[i] = true
			return true
		}
	}
	return false
}

// take takes the first modifier that is one of those given, or "".
func (d *decoder) take(choices ...string) string {
	for i, w := range d.words {
		if d.used[i] {
			continue
		}
		for _, c := range choices {
			if w == c {
				d.used[i] = true
				return w
			}
		}
	}
	return ""
}

// typ takes the next modifier that is a type.
func (d *decoder) typ() ptx.Type {
	t := d.optionalType()
	if t == ptx.NoType {
		d.refuse("want a type")
	}
	return t
}

func (d *decoder) optionalType() ptx.Type {
	for i, w := range d.words {
		if d.used[i] {
			continue
		}
		if t, ok := ptx.ParseType(w); ok {
			d.used[i] = true
			return t
		}
	}
	return ptx.NoType
}

// operands wants so many operands.
func (d *decoder) operands(least, most int) []ptx.Operand {
	ops := d.src.Operands
	if len(ops) < least || len(ops) > most {
		want := fmt.Sprint(least)
		if most > least {
			want = fmt.Sprintf("%d to %d", least, most)
		}
		d.refuse("%d operands: want %s", len(ops), want)
	}
	return ops
}

// new is an instruction without operands yet.
func (d *decoder) new(k kind) *inst {
	in := &inst{kind: k, pc: d.src.PC, guard: -1, d: -1, d2: -1}
	zero := d.constant(class32, 0)
	for _, f := range []*int32{&in.a, &in.b, &in.c} {
		d.bind(f, zero)
	}
	return in
}

// emit appends an instruction under the source instruction's guard.
func (d *decoder) emit(in *inst) {
	if g := d.src.Guard; g != nil {
		in.guard = 0
		in.flip = d.predicate(in, &in.guard, g) // the guard is the last of in.uses
	}
	d.insts = append(d.insts, in)
}

// meetAfter lets the lanes that part at the instruction just emitted meet right
// after it.
func (d *decoder) meetAfter() {
	d.insts = append(d.insts, &inst{kind: kindControl, pc: -1, guard: -1, jump: &jump{label: new(ptx.Label), target: 1, reconverge: -1}})
}

func (d *decoder) bind(field *int32, v int32) { d.binds = append(d.binds, bind{field, v}) }

func (d *decoder) newValue(v value) int32 {
	d.values = append(d.values, v)
	return int32(len(d.values) - 1)
}

func (d *decoder) constant(k class, bits uint64) int32 { return d.fixed(constant{k: k, bits: bits}) }

func (d *decoder) fixed(c constant) int32 {
	v, ok := d.consts[c]
	if !ok {
		width := 32
		if c.k == class64 {
			width = 64
		}
		v = d.newValue(value{k: c.k, bits: width, constant: true, shared: c.shared, content: c.bits, reg: -1})
		d.consts[c] = v
	}
	return v
}

// register is the value of a PTX register.
func (d *decoder) register(o *ptx.Operand) int32 {
	v := d.regs[o.Slot()]
	if v < 0 {
		t := d.registerInfo(o.Slot()).Type
		k := classOf(t.Bits())
		if t == ptx.Pred {
			k = classPred
		}
		if t.Bits() > 64 {
			d.refuse("register %s has %d bits: want up to 64", o.Name(), t.Bits())
		}
		v = d.newValue(value{k: k, bits: t.Bits(), reg: o.Slot()})
		d.regs[o.Slot()] = v
	}
	return v
}

// fit says how an operand's register may relate to the instruction's type.
type fit uint8

const (
	exact fit = iota // the same width
	wider            // at least the width: ld, st, cvt
)

// source binds a source operand of a type to a field.
func (d *decoder) source(in *inst, field *int32, o *ptx.Operand, t ptx.Type, f fit) operand {
	v := d.sourceValue(o, t, f)
	d.bind(field, v)
	in.uses = append(in.uses, v)
	return operand{k: d.values[v].k, bits: uint8(d.values[v].bits)}
}

// sourceValue is the value of a source operand.
func (d *decoder) sourceValue(o *ptx.Operand, t ptx.Type, f fit) int32 {
	k := classOf(t.Bits())
	if o.Neg || o.Minus {
		d.refuse("operand %s can't be negated here", o.Name())
	}
	switch o.Kind {
	case ptx.OpReg:
		v := d.register(o)
		d.width(o.Name(), d.values[v], t, f)
		return v
	case ptx.OpImm:
		return d.constant(k, d.immediate(o, t))
	case ptx.OpSpecial:
		return d.special(ptx.Special(o.Slot()), k)
	case ptx.OpSymbol, ptx.OpFunc:
		return d.symbol(o, k)
	}
	d.refuse("operand %s: want a register or a constant", describe(o))
	return 0
}

func (d *decoder) width(name string, v value, t ptx.Type, f fit) {
	bits := max(t.Bits(), 8)
	if v.k == classPred {
		d.refuse("operand %s is a predicate: want %d bits", name, bits)
	}
	if v.bits == bits || f == wider && v.bits > bits || bits < 8 {
		return
	}
	d.refuse("operand %s has %d bits: want %d", name, v.bits, bits)
}

// destination binds a destination register to a field; `_` leaves -1.
func (d *decoder) destination(in *inst, field *int32, o *ptx.Operand, t ptx.Type, f fit) operand {
	if o.Kind == ptx.OpSink {
		*field = -1
		return operand{slot: -1, k: classOf(t.Bits()), bits: uint8(max(t.Bits(), 8))}
	}
	if o.Kind != ptx.OpReg {
		d.refuse("operand %s: want a register", describe(o))
	}
	v := d.register(o)
	d.width(o.Name(), d.values[v], t, f)
	d.bind(field, v)
	in.defs = append(in.defs, v)
	return operand{k: d.values[v].k, bits: uint8(d.values[v].bits)}
}

// predicate binds a source predicate and says (as all ones or 0) whether it is
// negated.
func (d *decoder) predicate(in *inst, field *int32, o *ptx.Operand) uint32 {
	v := d.predicateValue(o)
	d.bind(field, v)
	in.uses = append(in.uses, v)
	if o.Neg {
		return allLanes
	}
	return 0
}

func (d *decoder) predicateValue(o *ptx.Operand) int32 {
	switch o.Kind {
	case ptx.OpReg:
		if v := d.register(o); d.values[v].k == classPred {
			return v
		}
	case ptx.OpImm:
		if o.Value != 0 {
			return d.constant(classPred, uint64(allLanes))
		}
		return d.constant(classPred, 0)
	case ptx.OpSpecial:
		if ptx.Special(o.Slot()).Type() == ptx.Pred {
			return d.special(ptx.Special(o.Slot()), classPred)
		}
	}
	d.refuse("operand %s: want a predicate", describe(o))
	return 0
}

// predicateDestination binds a destination predicate; `_` leaves -1.
func (d *decoder) predicateDestination(in *inst, field *int32, o *ptx.Operand) {
	if o.Kind == ptx.OpSink {
		*field = -1
		return
	}
	if o.Kind == ptx.OpReg {
		if v := d.register(o); d.values[v].k == classPred {
			d.bind(field, v)
			in.defs = append(in.defs, v)
			return
		}
	}
	d.refuse("operand %s: want a predicate", describe(o))
}

// elements are a vector operand's elements, or the operand itself.
func elements(o *ptx.Operand) []ptx.Operand {
	if o.Kind == ptx.OpVector {
		return o.Elems()
	}
	return []ptx.Operand{*o}
}

// integer is an operand that must be a constant integer.
func (d *decoder) integer(o *ptx.Operand) int64 {
	if o.Kind != ptx.OpImm || o.Imm == ptx.ImmF32 || o.Imm == ptx.ImmF64 {
		d.refuse("operand %s: want an integer constant", describe(o))
	}
	return int64(o.Value)
}

// pendingGroups is how many groups a wait leaves in flight.
func (d *decoder) pendingGroups(o *ptx.Operand) uint64 {
	n := d.integer(o)
	if n < 0 || n > math.MaxInt32 {
		d.refuse("%d groups: want 0 to %d", n, math.MaxInt32)
	}
	return uint64(n)
}

// immediate is a constant operand's bits as a value of a type.
func (d *decoder) immediate(o *ptx.Operand, t ptx.Type) uint64 {
	v := o.Value
	switch o.Imm {
	case ptx.ImmF32:
		if t.Bits() == 64 && t == ptx.F64 {
			v = math.Float64bits(float64(math.Float32frombits(uint32(v))))
		}
	case ptx.ImmF64:
		switch {
		case t == ptx.F32 || t.Bits() == 32:
			v = uint64(math.Float32bits(float32(math.Float64frombits(v))))
		case t.Bits() < 32:
			d.refuse("floating-point constant: want 32 or 64 bits")
		}
	default:
		switch t {
		case ptx.F32, ptx.F64:
			d.refuse("integer constant %d: want a floating-point one", int64(v))
		}
	}
	if b := t.Bits(); b < 64 {
		v &= 1<<b - 1
	}
	return v
}

// describe names an operand for a message.
func describe(o *ptx.Operand) string {
	switch o.Kind {
	case ptx.OpImm:
		return fmt.Sprintf("%#x", o.Value)
	case ptx.OpSink:
		return "_"
	case ptx.OpVector:
		return "{...}"
	case ptx.OpAddr:
		return "[...]"
	case ptx.OpPair:
		return "...|..."
	}
	if o.Name() != "" {
		return o.Name()
	}
	return "?"
}
