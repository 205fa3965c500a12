package ptx

import (
	"slices"
	"strings"
)

// addresses refuses 32-bit addresses where the module's have 64 bits: only
// shared, local, constant and parameter memory are small enough for less.
func (c *checker) addresses(in *Instruction, r *reading) {
	if c.m.AddressSize != 64 {
		return
	}
	switch in.Name {
	case "cvta", "stacksave", "stackrestore", "alloca":
		if r.types[0] == U32 {
			c.errorf(in.Pos, "%s: an address has 64 bits in this module; want .u64", title(in))
		}
	case "mov":
		if o := &in.Operands[len(in.Operands)-1]; o.Kind == OpSymbol && r.types[0].Bits() < 64 {
			if v, ok := o.Decl().(*Variable); ok && v.Space == SpaceGlobal {
				c.errorf(o.Pos, "%s: %s is at a 64-bit address; want .u64", title(in), clip(v.Name))
			}
		}
	case "ld", "ldu", "st", "atom", "red", "prefetch", "discard", "applypriority":
		c.wideBase(in)
	default:
		if strings.HasPrefix(in.Name, "mbarrier.") {
			c.wideBase(in)
		}
	}
}

// variableSpaces refuses the address of a variable of another space than the
// instruction's, and what is no address at all.
func (c *checker) variableSpaces(in *Instruction) {
	spaces := addressSpaces(in)
	n := 0
	for i := range in.Operands {
		o := &in.Operands[i]
		switch o.Kind {
		case OpAddr:
		case OpIndex:
			c.indexed(in, o)
			continue
		default:
			c.addressTaken(in, o)
			continue
		}
		base := &o.Elems()[0]
		switch v, ok := base.Decl().(*Variable); {
		case base.Kind == OpFunc:
			c.errorf(base.Pos, "%s: %s is a function; want a variable or a register", title(in), clip(base.Name()))
		case ok && base.Kind == OpSymbol && len(o.Elems()) == 1:
			c.variableSpace(in, v, spaces(n))
		}
		n++
	}
}

// indexed refuses `a[i]` as the address of anything but plain loads and stores, where
// ptxas has it, too, and of what takes an address as its operand.
func (c *checker) indexed(in *Instruction, o *Operand) {
	switch in.Name {
	case "ld", "ldu", "st", "mov", "cvta", "mapa":
	default:
		c.errorf(o.Pos, "%s: an element of %s by its index is for ld and st; want [%s+OFFSET] or a register's address", title(in), clip(o.Name()), clip(o.Name()))
	}
}

// anyAddress are instructions whose addresses may be of any space, or of none.
var anyAddress = map[string]bool{
	"fence.proxy": true, "tex": true, "tld4": true, "txq": true, "suld": true, "sust": true, "sured": true, "suq": true,
}

// addressSpaces is the space of an instruction's addresses, by number: the first
// that it names is that of the first, the second that of the second, and what
// completion is told to is in shared memory.
func addressSpaces(in *Instruction) func(i int) Space {
	var named []Space
	for _, m := range in.Mods {
		word, _, _ := strings.Cut(m, "::")
		if s, ok := spaceByName[word]; ok {
			named = append(named, s)
		}
	}
	return func(i int) Space {
		switch {
		case len(named) == 0 && strings.HasPrefix(in.Name, "mbarrier."):
			return SpaceShared
		case len(named) == 0:
			return SpaceGeneric
		case len(named) == 1:
			return named[0]
		case i < len(named):
			return named[i]
		}
		return SpaceShared
	}
}

// variableSpace refuses a variable where an address of another space stands.
func (c *checker) variableSpace(in *Instruction, v *Variable, want Space) {
	switch {
	case anyAddress[in.Name] || v.Space == want && want != SpaceParam:
	case want == SpaceParam && v.Space == SpaceParam:
		if in.Name == "st" && slices.Contains(c.f.Params, v) {
			c.errorf(in.Pos, "%s: %s is a parameter that is passed in; want it read alone", title(in), clip(v.Name))
		}
		if in.Name == "prefetch" && c.ownParam(v) {
			c.errorf(in.Pos, "%s: the address of %s, which is for calls alone, can't be taken", title(in), clip(v.Name))
		}
	case want == SpaceGeneric && (v.Space == SpaceGlobal || v.Space != SpaceConst && v.Space != SpaceParam && in.Name != "prefetchu"):
	default:
		c.errorf(in.Pos, "%s: %s is in .%s space", title(in), clip(v.Name), v.Space)
	}
}

// addressTaken refuses an operand that is the address of something where it can't
// be taken.
func (c *checker) addressTaken(in *Instruction, o *Operand) {
	v, _ := o.Decl().(*Variable)
	if o.Kind != OpFunc && (o.Kind != OpSymbol || v == nil) {
		return
	}
	space := SpaceGeneric // of a function
	if v != nil {
		space = v.Space
	}
	switch in.Name {
	case "cvt", "isspacep":
		c.wantRegister(in, o)
		return
	case "cvta":
		if slices.Contains(in.Mods, "to") {
			c.wantRegister(in, o)
			return
		}
		if addressSpaces(in)(0) != space {
			c.wrongSpace(in, o, space)
			return
		}
	case "mapa", "getctarank":
		if space != SpaceShared {
			c.wrongSpace(in, o, space)
			return
		}
	case "mov":
		if slices.Contains(in.Mods, "f32") || slices.Contains(in.Mods, "f64") {
			c.errorf(o.Pos, "%s: %s is an address; want an integer or untyped .u64", title(in), clip(o.Name()))
			return
		}
		if v == nil && o.Value != 0 {
			c.errorf(o.Pos, "%s: an offset from function %s; want its address alone", title(in), clip(o.Name()))
			return
		}
	default:
		return
	}
	if v != nil && c.ownParam(v) {
		c.errorf(o.Pos, "%s: the address of %s, which is for calls alone, can't be taken", title(in), clip(v.Name))
	}
}

func (c *checker) wantRegister(in *Instruction, o *Operand) {
	c.errorf(o.Pos, "%s: %s is a variable or a function; want a register", title(in), clip(o.Name()))
}

// ownParam says whether a variable is a .param variable of a function's body.
func (c *checker) ownParam(v *Variable) bool {
	return v.Space == SpaceParam && !slices.Contains(c.f.Params, v)
}

func (c *checker) wrongSpace(in *Instruction, o *Operand, space Space) {
	if space == SpaceGeneric {
		c.errorf(o.Pos, "%s: %s is a function", title(in), clip(o.Name()))
		return
	}
	c.errorf(o.Pos, "%s: %s is in .%s space", title(in), clip(o.Name()), space)
}

// wideBase refuses a 32-bit register as the base of a global or generic
// address.
func (c *checker) wideBase(in *Instruction) {
	for _, m := range in.Mods {
		space, _, _ := strings.Cut(m, "::")
		switch space {
		case "shared", "local", "const", "param":
			return
		}
	}
	for i := range in.Operands {
		o := &in.Operands[i]
		if o.Kind == OpAddr && o.Elems()[0].Kind == OpReg && o.Elems()[0].registerType().Bits() == 32 {
			c.errorf(o.Pos, "%s: base %s has 32 bits; want a 64-bit register, or a space such as .shared", title(in), &o.Elems()[0])
		}
	}
}

// sourceSize refuses a cp.async that reads more than it writes.
func (c *checker) sourceSize(in *Instruction) {
	if in.Name != "cp.async" || len(in.Operands) < 4 {
		return
	}
	if size, source := &in.Operands[2], &in.Operands[3]; source.Kind == OpImm && source.Value > size.Value {
		c.errorf(source.Pos, "%s: %d bytes of %d to read: want no more than are written", title(in), source.Value, size.Value)
	}
}
