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
	r := &resolver{module: m, scopes: []scope{newScope()}}
	for _, d := range m.Decls {
		r.declareGlobal(d)
	}
	for _, d := range m.Decls {
		switch d := d.(type) {
		case *Variable:
			if d.Init != nil {
				r.init(d.Init)
			}
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

// A scope binds names to *Variable, *Function, *Label, *Prototype, *TargetList
// or, once mentioned, *register.
type scope struct {
	names  map[string]any
	ranged bool // some name is a run of registers
}

func newScope() scope { return scope{names: map[string]any{}} }

// register is a binding of a name to a register's slot.
type register struct {
	decl *Variable
	slot int32
}

type resolver struct {
	module *Module
	scopes []scope // innermost last
	f      *Function
	errs   Errors
}

func (r *resolver) errorf(pos Pos, format string, args ...any) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, &Error{r.module.File, pos, fmt.Sprintf(format, args...)})
	}
}

// lookup finds what a name is bound to and the scope that binds it; nil if
// nothing does. A name such as %r7 may be bound to the run %r<n> it is of.
func (r *resolver) lookup(name string) (any, *scope) {
	prefix, n := "", -2
	for i := len(r.scopes) - 1; i >= 0; i-- {
		s := &r.scopes[i]
		if d, ok := s.names[name]; ok {
			return d, s
		}
		if !s.ranged {
			continue
		}
		if n == -2 {
			prefix, n = splitNumber(name)
		}
		if d, ok := s.names[prefix].(*Variable); ok && n >= 0 && d.Range > 0 {
			return d, s
		}
	}
	return nil, nil
}

func (r *resolver) declare(pos Pos, name string, d any) {
	s := &r.scopes[len(r.scopes)-1]
	if old, ok := s.names[name]; ok {
		r.errorf(pos, "%s: declared before%s", clip(name), placeOf(old))
		return
	}
	s.names[name] = d
	if v, ok := d.(*Variable); ok && v.Range > 0 {
		s.ranged = true
	}
}

func placeOf(d any) string {
	var pos Pos
	switch d := d.(type) {
	case *Variable:
		pos = d.Pos
	case *register:
		pos = d.decl.Pos
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
		if old, ok := r.scopes[0].names[d.Name].(*Variable); ok {
			if old.Linkage != Extern && d.Linkage != Extern {
				r.errorf(d.Pos, "%s: declared before%s", clip(d.Name), placeOf(old))
			}
			if d.Linkage == Extern {
				return
			}
		}
		r.scopes[0].names[d.Name] = d
	case *Function:
		if old, ok := r.scopes[0].names[d.Name].(*Function); ok {
			if old.Body != nil && d.Body != nil {
				r.errorf(d.Pos, "%s: defined before%s", clip(d.Name), placeOf(old))
			}
			if d.Body == nil {
				return
			}
		}
		r.scopes[0].names[d.Name] = d
	case *Alias:
		if f, ok := r.scopes[0].names[d.Name].(*Function); ok && f.Body == nil {
			delete(r.scopes[0].names, d.Name) // it is declared, and here defined
		}
		r.declare(d.Pos, d.Name, d)
	}
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

// block binds a block's names: labels at once, since jumps go forward too, and
// variables where they are declared.
func (r *resolver) block(b *Block) {
	r.scopes = append(r.scopes, newScope())
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Label:
			r.declare(s.Pos, s.Name, s)
		case *Prototype:
			r.declare(s.Pos, s.Name, s)
		case *TargetList:
			r.declare(s.Pos, s.Name, s)
		}
	}
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Instruction:
			r.instruction(s)
		case *Variable:
			r.variable(s)
		case *TargetList:
			for i := range s.Names {
				r.operand(&s.Names[i])
			}
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
	if in.Guard.Kind != OpNone {
		r.operand(&in.Guard)
	}
	for i := range in.Operands {
		r.operand(&in.Operands[i])
	}
}

func (r *resolver) operand(o *Operand) {
	for i := range o.Elems {
		r.operand(&o.Elems[i])
	}
	switch o.Kind {
	case OpName:
		r.name(o)
	case OpIndex:
		d, _ := r.lookup(o.Name)
		v, ok := d.(*Variable)
		if !ok || v.Space == SpaceReg {
			r.errorf(o.Pos, "%s: want a variable before an index", clip(o.Name))
			return
		}
		o.Decl = v
	}
}

// name binds an OpName.
func (r *resolver) name(o *Operand) {
	d, s := r.lookup(o.Name)
	switch d := d.(type) {
	case *register:
		o.Kind, o.Slot, o.Decl = OpReg, d.slot, d.decl
		r.component(o, d.decl)
	case *Variable:
		if d.Space == SpaceReg {
			r.register(o, d, s)
			return
		}
		o.Kind, o.Decl = OpSymbol, d
	case *Function:
		o.Kind, o.Decl = OpFunc, d
	case *Alias:
		f, _ := r.lookup(d.Target)
		if f, ok := f.(*Function); ok {
			o.Kind, o.Decl = OpFunc, f
		}
	case *Label:
		o.Kind, o.Decl, o.Slot = OpLabel, d, d.PC
	case *TargetList:
		o.Kind, o.Decl = OpTargets, d
	case *Prototype:
		o.Kind, o.Decl = OpProto, d
	default:
		if e, ok := lookupSpecial(o.Name, o.Member); ok {
			o.Kind, o.Slot = OpSpecial, int32(e.which)
			return
		}
		r.errorf(o.Pos, "%s: not declared", clip(o.Name))
	}
}

// register binds an operand to a register mentioned for the first time.
func (r *resolver) register(o *Operand, d *Variable, s *scope) {
	if d.Range > 0 {
		if _, n := splitNumber(o.Name); o.Name == d.Name || n >= d.Range {
			r.errorf(o.Pos, "register %s: want %s0 to %s%d", clip(o.Name), clip(d.Name), clip(d.Name), d.Range-1)
			return
		}
	}
	reg := &register{d, int32(len(r.f.Registers))}
	s.names[o.Name] = reg
	if d.Vector == 0 {
		r.f.Registers = append(r.f.Registers, Register{o.Name, d.Type})
	}
	for c := range d.Vector {
		r.f.Registers = append(r.f.Registers, Register{o.Name + "." + "xyzwabcd"[c:c+1], d.Type})
	}
	o.Kind, o.Slot, o.Decl = OpReg, reg.slot, d
	r.component(o, d)
}

// component picks a vector register's component, or turns the whole into an
// OpVector.
func (r *resolver) component(o *Operand, d *Variable) {
	if c := o.Member.Component(); c >= 0 && d.Vector > 0 {
		if c >= d.Vector {
			r.errorf(o.Pos, "%s.%s: the register has %d components", clip(o.Name), o.Member, d.Vector)
			return
		}
		o.Slot += int32(c)
		return
	}
	if d.Vector == 0 {
		return
	}
	whole := *o
	o.Kind, o.Elems, o.Name, o.Decl = OpVector, make([]Operand, d.Vector), "", nil
	for c := range o.Elems {
		o.Elems[c] = Operand{Kind: OpReg, Pos: o.Pos, Name: whole.Name, Slot: whole.Slot + int32(c), Decl: d}
		if c < 4 {
			o.Elems[c].Member = Member("xyzw"[c : c+1])
		}
	}
	o.Slot = 0
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
