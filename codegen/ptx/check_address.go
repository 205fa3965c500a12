package ptx

import "strings"

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
		c.namedSpace(in)
		c.wideBase(in)
	default:
		if strings.HasPrefix(in.Name, "mbarrier.") {
			c.wideBase(in)
		}
	}
}

// namedSpace refuses the address of a variable of another space than the
// instruction's.
func (c *checker) namedSpace(in *Instruction) {
	for _, m := range in.Mods {
		word, _, _ := strings.Cut(m, "::")
		space, ok := spaceByName[word]
		if !ok {
			continue
		}
		for i := range in.Operands {
			o := &in.Operands[i]
			if o.Kind != OpAddr || o.Elems()[0].Kind != OpSymbol {
				continue
			}
			if v, ok := o.Elems()[0].Decl().(*Variable); ok && v.Space != space {
				c.errorf(o.Pos, "%s: %s is in .%s space", title(in), clip(v.Name), v.Space)
			}
		}
		return
	}
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
