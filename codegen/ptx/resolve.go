package ptx

import (
	"fmt"
	"strconv"
)

// Resolve binds every name in a module: each OpName becomes OpReg, OpSpecial,
// OpSymbol, OpFunc, OpLabel, OpTargets or OpProto. It numbers a function's
// instructions and those of its registers that are mentioned, and splits
// vector registers into their components. The error is Errors.
func Resolve(m *Module) error {
	r := &resolver{module: m, scopes: []scope{newScope()}, vectors: map[*Symbol][]Symbol{}}
	for _, d := range m.Decls {
		if v, ok := d.(*Variable); ok && v.Init != nil {
			r.init(v.Init)
		}
		r.declareGlobal(d)
		switch d := d.(type) {
		case *Function:
			r.function(d)
		case *Alias:
			if f, _ := r.lookup(d.Target); f == nil {
				r.errorf(d.Pos, "alias of %s: no such function", clip(d.Target))
			}
		}
	}
	return r.errs.orNil()
}

// A scope binds names to symbols. A register's is bound when it is mentioned
// first: till then its slot is unbound.
type scope struct {
	names map[string]*Symbol
	runs  map[string]*Symbol // of registers or variables, %r<n>, by what comes before the number; nil is none
}

func newScope() scope { return scope{names: map[string]*Symbol{}} }

// bodyScopes is how many scopes there are in a function's body: of the module, the
// parameters and the body.
const bodyScopes = 3

// unbound is the slot of a register that was not mentioned yet.
const unbound = -1

type resolver struct {
	module  *Module
	scopes  []scope // innermost last
	f       *Function
	vectors map[*Symbol][]Symbol // components of registers of vectors
	chunk   []Symbol
	errs    Errors
}

// symbol makes a symbol.
func (r *resolver) symbol(name string, decl any, slot int32) *Symbol {
	s := cut(&r.chunk, 64)
	*s = Symbol{name, decl, slot}
	return s
}

func (r *resolver) errorf(pos Pos, format string, args ...any) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, &Error{r.module.File, pos, fmt.Sprintf(format, args...)})
	}
}

// lookup finds what a name is bound to and the scope that binds it; nil if
// nothing does. A name such as %r7 may be bound to the run %r<n> it is of.
func (r *resolver) lookup(name string) (*Symbol, *scope) {
	prefix, n := "", -2
	for i := len(r.scopes) - 1; i >= 0; i-- {
		s := &r.scopes[i]
		if d, ok := s.names[name]; ok {
			return d, s
		}
		if s.runs == nil {
			continue
		}
		if n == -2 {
			prefix, n = splitNumber(name)
		}
		if d := s.runs[prefix]; d != nil && n >= 0 && n < d.Decl.(*Variable).Range {
			return d, s
		}
	}
	for i := len(r.scopes) - 1; i >= 0 && n >= 0; i-- { // past the last of a run
		if d := r.scopes[i].runs[prefix]; d != nil {
			return d, &r.scopes[i]
		}
	}
	for i := len(r.scopes) - 1; i >= 0; i-- { // the run itself, for what is said about it
		if d := r.scopes[i].runs[name]; d != nil {
			return d, &r.scopes[i]
		}
	}
	return nil, nil
}

// isRun says whether a symbol is a run of registers or variables, not one of
// them.
func isRun(s *Symbol) bool {
	v, ok := s.Decl.(*Variable)
	return ok && v.Range > 0 && (s.Slot == unbound || v.Space != SpaceReg)
}

func (r *resolver) declare(pos Pos, name string, d any) {
	s := &r.scopes[len(r.scopes)-1]
	symbol := r.declared(name, d)
	run := isRun(symbol)
	old := s.clash(name, symbol, run)
	if old == nil && !run && len(r.scopes) == bodyScopes {
		old = r.scopes[bodyScopes-2].names[name] // a parameter
	}
	if old != nil {
		r.errorf(pos, "%s: declared before%s", clip(name), placeOf(old))
		return
	}
	switch {
	case !run:
		s.names[name] = symbol
	case s.runs == nil:
		s.runs = map[string]*Symbol{name: symbol}
	default:
		s.runs[name] = symbol
	}
}

// clash is what a scope has already of a name, or of one of a run's names.
func (s *scope) clash(name string, symbol *Symbol, run bool) *Symbol {
	if !run {
		prefix, n := splitNumber(name)
		if old := s.runs[prefix]; old != nil && n >= 0 && n < old.Decl.(*Variable).Range {
			return old
		}
		return s.names[name]
	}
	if old := s.runs[name]; old != nil {
		return old
	}
	var first *Symbol
	least := symbol.Decl.(*Variable).Range
	for have, old := range s.names {
		if prefix, n := splitNumber(have); prefix == name && n >= 0 && n < least {
			first, least = old, n
		}
	}
	return first
}

// declared is the symbol of a declaration.
func (r *resolver) declared(name string, d any) *Symbol {
	slot := int32(0)
	switch d := d.(type) {
	case *Variable:
		if d.Space == SpaceReg {
			slot = unbound
		}
	case *Label:
		slot = d.PC
	}
	return r.symbol(name, d, slot)
}

func placeOf(s *Symbol) string {
	var pos Pos
	switch d := s.Decl.(type) {
	case *Variable:
		pos = d.Pos
	case *Function:
		pos = d.Pos
	case *Label:
		pos = d.Pos
	case *Prototype:
		pos = d.Pos
	case *TargetList:
		pos = d.Pos
	}
	return " at " + pos.String()
}

// declareGlobal binds a module-level name. Functions and variables may be
// declared several times and defined once.
func (r *resolver) declareGlobal(d Decl) {
	switch d := d.(type) {
	case *Variable:
		old := r.scopes[0].names[d.Name]
		switch v := declOf(old).(type) {
		case nil:
		case *Variable:
			r.redeclaredVariable(v, d)
			if d.Linkage == Extern {
				return
			}
		default:
			r.errorf(d.Pos, "%s: declared before%s", clip(d.Name), placeOf(old))
		}
		r.scopes[0].names[d.Name] = r.declared(d.Name, d)
	case *Function:
		old := r.scopes[0].names[d.Name]
		switch f := declOf(old).(type) {
		case nil:
		case *Function:
			r.redeclared(f, d)
			if d.Body == nil {
				return
			}
		default:
			r.errorf(d.Pos, "%s: declared before%s", clip(d.Name), placeOf(old))
		}
		r.scopes[0].names[d.Name] = r.declared(d.Name, d)
	case *Alias:
		if f, ok := declOf(r.scopes[0].names[d.Name]).(*Function); ok && f.Body == nil {
			delete(r.scopes[0].names, d.Name) // it is declared, and here defined
		}
		r.declare(d.Pos, d.Name, d)
	}
}

func declOf(s *Symbol) any {
	if s == nil {
		return nil
	}
	return s.Decl
}

func (r *resolver) init(in *Init) {
	for i := range in.List {
		r.init(&in.List[i])
	}
	if in.Value.Kind == OpName && in.Field == "" {
		r.operand(&in.Value)
	}
}

func (r *resolver) function(f *Function) {
	if f.Body == nil {
		return
	}
	r.f = f
	f.Code, f.Registers, f.Variables = nil, nil, nil
	r.number(f.Body)
	r.scopes = append(r.scopes, newScope())
	for _, v := range f.Returns {
		r.declare(v.Pos, v.Name, v)
	}
	for _, v := range f.Params {
		r.declare(v.Pos, v.Name, v)
	}
	r.block(f.Body)
	r.scopes = r.scopes[:len(r.scopes)-1]
}

// number gives instructions and labels their places.
func (r *resolver) number(b *Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Instruction:
			s.PC = int32(len(r.f.Code))
			r.f.Code = append(r.f.Code, s)
		case *Label:
			s.PC = int32(len(r.f.Code))
		case *Block:
			r.number(s)
		}
	}
}

// block binds a block's names: labels at once, since jumps go forward too, all
// else where it is declared.
func (r *resolver) block(b *Block) {
	r.scopes = append(r.scopes, newScope())
	for _, s := range b.Stmts {
		if s, ok := s.(*Label); ok {
			r.declare(s.Pos, s.Name, s)
		}
	}
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Prototype:
			r.declare(s.Pos, s.Name, s)
		case *Instruction:
			r.instruction(s)
		case *Variable:
			r.variable(s)
		case *TargetList:
			r.declare(s.Pos, s.Name, s)
			r.targets(s)
		case *Block:
			r.block(s)
		}
	}
	r.scopes = r.scopes[:len(r.scopes)-1]
}

func (r *resolver) variable(v *Variable) {
	r.declare(v.Pos, v.Name, v)
	if v.Init != nil {
		r.init(v.Init)
	}
	if v.Space != SpaceReg {
		r.f.Variables = append(r.f.Variables, v)
	}
}

func (r *resolver) instruction(in *Instruction) {
	if in.Guard != nil {
		r.operand(in.Guard)
	}
	for i := range in.Operands {
		r.operand(&in.Operands[i])
	}
}

func (r *resolver) operand(o *Operand) {
	elems := o.Elems()
	for i := range elems {
		r.operand(&elems[i])
	}
	switch o.Kind {
	case OpName:
		r.name(o)
	case OpIndex:
		s, _ := r.lookup(o.Name())
		v, ok := declOf(s).(*Variable)
		if !ok || v.Space == SpaceReg {
			r.errorf(o.Pos, "%s: want a variable before an index", clip(o.Name()))
			return
		}
		o.Symbol = r.as(o.Name(), s)
	}
}

// as is a symbol under the name it was found by: one of a run has its own.
func (r *resolver) as(name string, s *Symbol) *Symbol {
	if s.Name == name {
		return s
	}
	return r.symbol(name, s.Decl, s.Slot)
}

// targets binds the names of a list of targets.
func (r *resolver) targets(t *TargetList) {
	for i := range t.Names {
		o := &t.Names[i]
		r.operand(o)
		switch {
		case o.Kind == OpName: // none of that name, which is said elsewhere
		case t.Call && o.Kind != OpFunc:
			r.errorf(o.Pos, "target %s: want a function", clip(o.Name()))
		case !t.Call && o.Kind != OpLabel:
			r.errorf(o.Pos, "target %s: want a label", clip(o.Name()))
		}
	}
}

// name binds an OpName.
func (r *resolver) name(o *Operand) {
	s, at := r.lookup(o.Name())
	switch d := declOf(s).(type) {
	case *Variable:
		if d.Space == SpaceReg {
			r.register(o, s, at)
			return
		}
		o.Kind = OpSymbol
	case *Function:
		o.Kind = OpFunc
	case *Alias:
		s, _ = r.lookup(d.Target)
		if _, ok := declOf(s).(*Function); !ok {
			return
		}
		o.Kind = OpFunc
	case *Label:
		o.Kind = OpLabel
	case *TargetList:
		o.Kind = OpTargets
	case *Prototype:
		o.Kind = OpProto
	default:
		e, ok := lookupSpecial(o.Name(), o.Member)
		if !ok {
			if !r.specialVector(o) {
				r.errorf(o.Pos, "%s: not declared", clip(o.Name()))
			}
			return
		}
		o.Kind, s = OpSpecial, e.symbol
	}
	o.Symbol = r.as(o.Name(), s)
}

// register binds an operand to a register, which may be mentioned for the
// first time.
func (r *resolver) register(o *Operand, s *Symbol, at *scope) {
	d := s.Decl.(*Variable)
	if s.Slot == unbound {
		if d.Range > 0 {
			if _, n := splitNumber(o.Name()); o.Name() == d.Name || n >= d.Range {
				r.errorf(o.Pos, "register %s: want %s0 to %s%d", clip(o.Name()), clip(d.Name), clip(d.Name), d.Range-1)
				return
			}
		}
		s = r.mention(o.Name(), d)
		at.names[o.Name()] = s
	}
	o.Kind, o.Symbol = OpReg, s
	r.component(o, d)
}

// mention gives a register its slots.
func (r *resolver) mention(name string, d *Variable) *Symbol {
	s := r.symbol(name, d, int32(len(r.f.Registers)))
	if d.Vector == 0 {
		r.f.Registers = append(r.f.Registers, Register{name, d.Type})
		return s
	}
	parts := make([]Symbol, d.Vector)
	for c := range parts {
		parts[c] = Symbol{name, d, s.Slot + int32(c)}
		r.f.Registers = append(r.f.Registers, Register{name + "." + "xyzwabcd"[c:c+1], d.Type})
	}
	r.vectors[s] = parts
	return s
}

// component picks a vector register's component, or turns the whole into an
// OpVector.
func (r *resolver) component(o *Operand, d *Variable) {
	if d.Vector == 0 {
		return
	}
	parts := r.vectors[o.Symbol]
	if c := o.Member.Component(); c >= 0 {
		if c >= d.Vector {
			r.errorf(o.Pos, "%s.%s: the register has %d components", clip(o.Name()), o.Member, d.Vector)
			return
		}
		o.Symbol = &parts[c]
		return
	}
	elems := make([]Operand, d.Vector)
	for c := range elems {
		elems[c] = Operand{Kind: OpReg, Pos: o.Pos, Symbol: &parts[c]}
		if c < 4 {
			elems[c].Member = Member(1 + c)
		}
	}
	o.Kind, o.Symbol, o.Parts = OpVector, nil, &elems
}

// specialVector turns a special register of four components, such as %tid, into
// an OpVector; false if it is none.
func (r *resolver) specialVector(o *Operand) bool {
	e, ok := lookupSpecial(o.Name(), 1)
	if !ok || !e.special.vector || o.Member != 0 {
		return false
	}
	elems := make([]Operand, 4)
	for c := range elems {
		m := Member(1 + c)
		e, _ := lookupSpecial(o.Name(), m)
		elems[c] = Operand{Kind: OpSpecial, Pos: o.Pos, Member: m, Symbol: r.as(o.Name(), e.symbol)}
	}
	o.Kind, o.Symbol, o.Parts = OpVector, nil, &elems
	return true
}

// splitNumber cuts a name before its last digits; n is -1 if it has none, or
// ones that no register of a range has.
func splitNumber(name string) (prefix string, n int) {
	i := len(name)
	for i > 0 && byteClass[name[i-1]] == isDigit {
		i--
	}
	digits := name[i:]
	if digits == "" || len(digits) > 1 && digits[0] == '0' {
		return name, -1
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return name, -1
	}
	return name[:i], n
}
