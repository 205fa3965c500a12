package ptx

import (
	"fmt"
	"slices"
)

// operandMatch compares operands with a form's. It remembers the complaint
// about the last operand that any form got to.
type operandMatch struct {
	c      *checker
	r      *reading
	in     *Instruction
	now    int // operand looked at
	at     int // operand complained about; len(in.Operands) is one missing
	reason string
}

func (m *operandMatch) pos() Pos {
	if m.at >= 0 && m.at < len(m.in.Operands) {
		return m.in.Operands[m.at].Pos
	}
	return m.in.Pos
}

// complain keeps a complaint if no form got further.
func (m *operandMatch) complain(at int, format string, args ...any) {
	if at > m.at {
		m.at, m.reason = at, fmt.Sprintf(format, args...)
	}
}

// all matches operands with their specs; optional ones may be left out.
func (m *operandMatch) all(specs []operandSpec, ops []Operand) bool {
	at := len(m.in.Operands) - len(ops)
	if len(specs) == 0 {
		if len(ops) > 0 {
			m.complain(at, "operand %d: want %d operands", at+1, at)
		}
		return len(ops) == 0
	}
	s := &specs[0]
	if len(ops) > 0 && m.one(s, &ops[0], at) && m.all(specs[1:], ops[1:]) {
		return true
	}
	if s.optional && m.all(specs[1:], ops) {
		return true
	}
	if len(ops) == 0 {
		m.complain(at, "%d operands: want %s after them", at, s)
	}
	return false
}

// one matches one operand and says why not.
func (m *operandMatch) one(s *operandSpec, o *Operand, at int) bool {
	m.now = at
	if m.fits(s, o) {
		return true
	}
	m.complain(at, "operand %d is %s: want %s", at+1, m.describe(o), m.want(s))
	return false
}

// fits says whether an operand is of a spec's kind and type.
func (m *operandMatch) fits(s *operandSpec, o *Operand) bool {
	switch s.kind {
	case kindAny:
		return true
	case kindDest:
		return m.register(s, o) && (o.Member == m.component(o) || m.r.simd)
	case kindReg:
		return m.register(s, o)
	case kindDestSink:
		return o.Kind == OpSink || m.register(s, o)
	case kindSink:
		return o.Kind == OpSink
	case kindDestSelect:
		return m.register(s, o) && o.Member != 0
	case kindDestPair:
		return m.pair(o, func(d *Operand) bool { return m.register(s, d) }, true)
	case kindDestBoth:
		return m.pair(o, func(d *Operand) bool { return m.register(s, d) }, false)
	case kindDestBothSink:
		return m.pair(o, func(d *Operand) bool { return d.Kind == OpSink || m.register(s, d) }, false)
	case kindPred:
		return m.c.isPredicate(o) && !o.Neg || o.Kind == OpSink
	case kindPredPair:
		return m.pair(o, m.predOrSink, true)
	case kindPredBoth:
		return m.pair(o, m.predOrSink, false)
	case kindSource, kindSize:
		return m.source(s, o)
	case kindAddress:
		return m.source(s, o) || m.special(s, o) || o.Kind == OpSymbol || o.Kind == OpFunc || o.Kind == OpIndex
	case kindCond:
		return m.c.isPredicate(o) || o.Kind == OpImm && o.Imm <= ImmUint
	case kindImm:
		return m.immediate(s, o)
	}
	return m.fitsCompound(s, o)
}

// fitsCompound is fits for operands that have parts.
func (m *operandMatch) fitsCompound(s *operandSpec, o *Operand) bool {
	switch s.kind {
	case kindMem:
		return o.Kind == OpIndex || o.Kind == OpAddr && len(o.Elems()) == 1 && m.base(&o.Elems()[0])
	case kindMemMore:
		return o.Kind == OpAddr && len(o.Elems()) > 1
	case kindMemTensor:
		return o.Kind == OpAddr && m.tensor(o.Elems())
	case kindFabric:
		return o.Kind == OpAddr && m.handle(o.Elems(), 2)
	case kindFabricCounter:
		return o.Kind == OpAddr && m.handle(o.Elems(), 3)
	case kindTensorMemory:
		return o.Kind == OpAddr && len(o.Elems()) == 1 && m.register(s, &o.Elems()[0])
	case kindOffsets:
		return o.Kind == OpVector && len(o.Elems()) == m.r.offsets
	case kindLanes:
		return m.vector(&coordinateSpec, o, m.r.lanes)
	case kindVectorD, kindVectorS:
		return m.vector(s, o, m.r.vec)
	case kindVector:
		return m.vector(s, o, m.r.registers(s))
	case kindVectorAny:
		return o.Kind == OpVector
	case kindAccumulator:
		return m.vector(s, o, m.r.acc)
	case kindPackD, kindPackS:
		return m.packed(s, o)
	case kindDescriptor:
		return o.Kind == OpReg && o.registerType().Bits() == 64 ||
			o.Kind == OpAddr && len(o.Elems()) == 1 && m.register(s, &o.Elems()[0])
	case kindLabel:
		return o.Kind == OpLabel
	case kindTargets:
		return o.Kind == OpTargets
	case kindCallee:
		return o.Kind == OpFunc || o.Kind == OpReg
	case kindList:
		return o.Kind == OpList
	case kindCallTail:
		return o.Kind == OpProto || o.Kind == OpTargets
	}
	return false
}

// tensor is a tensor's map and coordinates, and between them what the
// instruction takes in place of the map's address and sizes: a 64-bit register,
// and sizes alone or with the low and the high bits of the strides.
func (m *operandMatch) tensor(parts []Operand) bool {
	if len(parts) != 2+len(m.r.overrides) || !m.vector(&coordinateSpec, &parts[len(parts)-1], m.r.coords) {
		return false
	}
	for i, o := range m.r.overrides {
		part := &parts[1+i]
		switch {
		case o.count == 0 && !m.register(&o, part):
			return false
		case o.count != 0 && !m.vector(&o, part, o.count) && !m.vector(o.bytes(), part, o.count):
			return false
		}
	}
	return true
}

// bytes is the spec of a vector of 16-bit sizes for one of 8-bit ones.
func (s *operandSpec) bytes() *operandSpec {
	b := *s
	if b.typ.typ == U16 {
		b.typ.typ = U8
	}
	return &b
}

// handle is the number of an endpoint and offsets into its memory.
func (m *operandMatch) handle(parts []Operand, n int) bool {
	for i := range parts {
		want := operandSpec{kind: kindReg, typ: typeRule{from: typeFixed, typ: U64}}
		if i == 0 {
			want.typ.typ = U32
		}
		if !m.register(&want, &parts[i]) || parts[i].Value != 0 {
			return false
		}
	}
	return len(parts) == n
}

// coordinateSpec is a 32-bit integer inside another operand.
var coordinateSpec = operandSpec{kind: kindVectorS, typ: typeRule{from: typeFixed, typ: U32}}

// component is the member that an operand may have as a plain register: that
// of a vector register.
func (m *operandMatch) component(o *Operand) Member {
	if v, ok := o.Decl().(*Variable); ok && v.Vector > 0 {
		return o.Member
	}
	return 0
}

func (m *operandMatch) pair(o *Operand, first func(*Operand) bool, alone bool) bool {
	if o.Kind != OpPair {
		return alone && first(o)
	}
	return first(&o.Elems()[0]) && m.predOrSink(&o.Elems()[1])
}

func (m *operandMatch) predOrSink(o *Operand) bool {
	return o.Kind == OpSink || m.c.isPredicate(o) && !o.Neg
}

// registerType is the type of a register operand.
func (o *Operand) registerType() Type {
	if v, ok := o.Decl().(*Variable); ok && o.Kind == OpReg {
		return v.Type
	}
	return NoType
}

func (c *checker) isPredicate(o *Operand) bool {
	return o.Kind == OpReg && o.registerType() == Pred ||
		o.Kind == OpSpecial && Special(o.Slot()).Type() == Pred
}

// typeOf is the type that a rule asks for, NoType for any.
func (m *operandMatch) typeOf(r typeRule) Type {
	switch r.from {
	case typeFixed:
		return r.typ
	case typeMod:
		return m.r.types[r.index]
	case typeAccumulator:
		if m.r.types[0] == F16 {
			return F16x2 // two to a register
		}
		return m.r.types[0]
	case typeWide:
		return wideTypes[m.r.types[0]]
	}
	return NoType
}

var wideTypes = map[Type]Type{U16: U32, S16: S32, U32: U64, S32: S64}

func (m *operandMatch) register(s *operandSpec, o *Operand) bool {
	if o.Kind != OpReg || o.Neg || (o.Minus || o.Member != m.component(o)) && !m.r.video {
		return false
	}
	t, have := m.typeOf(s.typ), o.registerType()
	if t == NoType {
		return isAddressType(have)
	}
	if have == F16x2 && (m.r.video || s.typ.from != typeFixed) && containerBits(t) == 32 && !t.Float() {
		return true // ptxas takes it for untyped bits
	}
	return agrees(t, have, s.typ.wider) && (!s.typ.plain || isBits(have))
}

// isAddressType says whether a register may hold an address.
func isAddressType(t Type) bool { return (t.Bits() == 32 || t.Bits() == 64) && !t.Float() }

func (m *operandMatch) special(s *operandSpec, o *Operand) bool {
	if o.Kind != OpSpecial {
		return false
	}
	t, have := m.typeOf(s.typ), Special(o.Slot()).Type()
	return t == NoType || agrees(t, have, false) || t.Bits() == 16 && have.Bits() == 32 ||
		t.Bits() == 32 && Special(o.Slot()) == Gridid
}

func (m *operandMatch) source(s *operandSpec, o *Operand) bool {
	return m.register(s, o) || o.Kind == OpImm && immediateAgrees(m.typeOf(s.typ), o) && s.allows(o)
}

func (m *operandMatch) immediate(s *operandSpec, o *Operand) bool {
	return o.Kind == OpImm && o.Imm <= ImmUint && s.allows(o)
}

// allows says whether a number is one of those that a spec lists.
func (s *operandSpec) allows(o *Operand) bool {
	if s.kind == kindSize {
		return o.Value%uint64(s.multiple()) == 0
	}
	return s.values == nil || slices.Contains(s.values, int64(o.Value))
}

// multiple is what a size must be a multiple of.
func (s *operandSpec) multiple() int64 {
	if s.values != nil {
		return s.values[0]
	}
	return 16
}

// base is the first part of an address.
func (m *operandMatch) base(o *Operand) bool {
	switch o.Kind {
	case OpReg:
		return isAddressType(o.registerType())
	case OpImm:
		return o.Imm <= ImmUint && slices.Contains(m.in.Mods, "local")
	}
	return o.Kind == OpSymbol || o.Kind == OpFunc
}

// vector is n elements in braces, or one alone where n is 1.
func (m *operandMatch) vector(s *operandSpec, o *Operand, n int) bool {
	result := s.kind == kindVectorD || s.kind == kindVector && m.now == 0
	element := func(e *Operand) bool {
		if result {
			return m.register(s, e) || e.Kind == OpSink && n > 1
		}
		return m.source(s, e) || m.in.Name == "mov" && m.special(s, e)
	}
	if o.Kind != OpVector {
		return n == 1 && s.kind != kindVector && element(o)
	}
	if len(o.Elems()) != n {
		return false
	}
	for i := range o.Elems() {
		if e := &o.Elems()[i]; !element(e) || s.kind != kindVector && e.Kind == OpReg &&
			o.Elems()[0].Kind == OpReg && e.registerType().Bits() != o.Elems()[0].registerType().Bits() {
			return false
		}
	}
	return true
}

// packed is elements that together have the instruction type's bits.
func (m *operandMatch) packed(s *operandSpec, o *Operand) bool {
	if o.Kind != OpVector || len(o.Elems()) == 0 {
		return false
	}
	t := m.r.types[0]
	bits := t.Bits() / len(o.Elems())
	if !slices.ContainsFunc(o.Elems(), func(e Operand) bool { return e.Kind == OpReg || e.Kind == OpImm }) {
		return false
	}
	for i := range o.Elems() {
		e := &o.Elems()[i]
		switch {
		case e.Kind == OpSink && s.kind == kindPackD:
		case e.Kind == OpReg && e.registerType().Bits() == bits && e.registerType() != Pred:
		case e.Kind == OpImm && s.kind == kindPackS:
		default:
			return false
		}
	}
	return true
}

// agrees says whether a register's type goes with an instruction's: PTX ISA
// 9.2 and 9.4.1. Untyped bits go with everything of their size, integers with
// integers, floats with the same float; of integers and bits a wider register
// may stand where the instruction widens.
func agrees(t, reg Type, wider bool) bool {
	if reg == Pred || t == Pred {
		return t == reg
	}
	size, have := containerBits(t), reg.Bits()
	if have != size && !(wider && have > size && t != BF16) {
		return false
	}
	switch {
	case isBits(reg), isBits(t):
		return true
	case reg.Float():
		return t == reg
	}
	return (t.Signed() || t.Unsigned()) && t != U16x2 && t != S16x2
}

func isBits(t Type) bool { return t >= B1 && t <= B1024 }

// containerBits is the size of the register that holds a value of a type.
func containerBits(t Type) int {
	n := t.Bits()
	for _, size := range []int{8, 16, 32, 64} {
		if n <= size {
			return size
		}
	}
	return n
}

// immediateAgrees says whether a number may stand for a type.
func immediateAgrees(t Type, o *Operand) bool {
	integer := o.Imm <= ImmUint
	switch {
	case t == NoType || t == Pred:
		return integer
	case t == F32 || t == F64:
		return !integer
	case isBits(t):
		return integer || t == B32 && o.Imm == ImmF32 || t == B64 && o.Imm == ImmF64
	}
	return integer && !t.Float() && t != U16x2 && t != S16x2 && t != U8x4 && t != S8x4
}
