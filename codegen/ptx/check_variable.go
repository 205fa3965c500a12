package ptx

import (
	"math/bits"
	"slices"
)

// place is where a variable is declared.
type place uint8

const (
	inModule place = iota
	inBody
	inKernelParams
	inFunctionParams
)

// fundamental are the types that a variable may have (PTX ISA 5.2.1); the
// others are of instructions alone.
var fundamental = [numTypes]bool{
	B8: true, B16: true, B32: true, B64: true, B128: true, U8: true, U16: true, U32: true, U64: true, S8: true, S16: true, S32: true, S64: true,
	F16: true, F16x2: true, F32: true, F64: true, Pred: true, TexRef: true, SamplerRef: true, SurfRef: true,
}

// variable refuses declarations that PTX does not have.
func (c *checker) variable(v *Variable, at place) {
	c.needs(v.Pos, "."+v.Type.String())
	for _, a := range v.Attributes {
		c.needs(v.Pos, "."+a.Name)
	}
	if why := c.wrongVariable(v, at); why != "" {
		c.errorf(v.Pos, "variable %s: %s", clip(v.Name), why)
		return
	}
	if v.Init != nil {
		c.initialiser(v)
	}
}

func (c *checker) wrongVariable(v *Variable, at place) string {
	space := v.Space
	switch {
	case !fundamental[v.Type]:
		return "type ." + v.Type.String() + ": want one that variables have, such as .b32"
	case v.Type == Pred && space != SpaceReg:
		return "a predicate: want it in .reg space"
	case v.Type == SamplerRef && !slices.Contains(c.m.Targets, "texmode_independent"):
		return "a sampler: want it with .target texmode_independent"
	case v.Vector > 0 && v.ElementSize() > 16:
		return "vectors of more than 128 bits: want shorter ones"
	}
	if why := wrongExtents(v, at); why != "" {
		return why
	}
	switch at {
	case inBody:
		if v.Linkage != Private {
			return "a linkage inside a function: want it outside"
		}
	case inModule:
		return c.wrongInModule(v)
	case inKernelParams:
		switch {
		case space != SpaceParam:
			return "a kernel's parameter in ." + space.String() + " space: want .param"
		case v.Vector > 0:
			return "a parameter of vectors: want an array with .align"
		case len(v.Dims) > 1 || len(v.Dims) == 1 && v.Dims[0] < 0:
			return "a kernel's parameter of this shape: want one extent"
		}
	}
	return ""
}

// wrongExtents looks at extents: only the first may be left out, of something
// defined elsewhere, of what its values make, or of a function's last parameter.
func wrongExtents(v *Variable, at place) string {
	if v.Space == SpaceReg && len(v.Dims) > 0 {
		return "an array of registers: want .reg with a number in <>, or .local"
	}
	for i, d := range v.Dims {
		if d < 0 && i > 0 {
			return "no extent: only the first may be left out"
		}
	}
	if slices.Contains(v.Dims, 0) && at == inBody {
		return "an extent of 0: want 1 or more"
	}
	if len(v.Dims) > 0 && v.Dims[0] < 0 && v.Linkage != Extern && v.Init == nil && (v.Space != SpaceParam || at == inBody) {
		return "no extent: want one, or values, or .extern"
	}
	return ""
}

// wrongInModule looks at what stands outside functions. Targets from sm_20 on
// have calls with a stack, so registers and local memory belong to functions.
func (c *checker) wrongInModule(v *Variable) string {
	version := c.m.Version
	switch {
	case (v.Space == SpaceReg || v.Space == SpaceLocal) && !version.Less(Version{3, 0}), v.Space == SpaceParam:
		return "." + v.Space.String() + " space outside a function: want .global, .const or .shared"
	case v.Space == SpaceTex && !version.Less(Version{1, 5}):
		return ".tex space: want .global .texref since PTX 1.5"
	case v.Bank >= 0 && !version.Less(Version{2, 2}):
		return "a constant bank: want .const alone since PTX 2.2"
	case v.Linkage == Common && v.Space != SpaceGlobal:
		return ".common in ." + v.Space.String() + " space: want .global"
	}
	return ""
}

// initialiser refuses values that a variable can't begin with.
func (c *checker) initialiser(v *Variable) {
	why := ""
	switch {
	case v.Linkage == Extern:
		why = "values of something defined elsewhere: want none"
	case v.Space != SpaceGlobal && v.Space != SpaceConst:
		why = "values in ." + v.Space.String() + " space: want .global or .const"
	case v.Type >= TexRef:
		return
	case v.Type == F16 || v.Type == F16x2:
		why = "values of ." + v.Type.String() + ": want .b" + map[Type]string{F16: "16", F16x2: "32"}[v.Type] + " and bits"
	default:
		shape := v.Dims
		if v.Vector > 0 {
			shape = append(shape[:len(shape):len(shape)], int64(v.Vector))
		}
		why = c.values(v, v.Init, shape)
	}
	if why != "" {
		c.errorf(v.Pos, "variable %s: %s", clip(v.Name), why)
	}
}

// values compares an initialiser with a shape.
func (c *checker) values(v *Variable, in *Init, shape []int64) string {
	if !in.IsList {
		if len(shape) == len(v.Dims) && len(shape) > 0 || len(shape) == 0 && in.IsList {
			return "one value for an array: want values in braces"
		}
		return c.value(v, in)
	}
	if len(shape) == 0 {
		return "values in braces for one: want a value"
	}
	if shape[0] >= 0 && int64(len(in.List)) > shape[0] {
		return "more values than elements"
	}
	if len(shape) == 1 && v.Vector > 0 && len(in.List) != v.Vector {
		return "not a value for each of a vector's components"
	}
	if shape[0] < 0 && len(in.List) == 0 {
		return "no values, and no extent"
	}
	for i := range in.List {
		e := &in.List[i]
		if why := ""; e.IsList {
			if why = c.values(v, e, shape[1:]); why != "" {
				return why
			}
		} else if len(shape) > 1 {
			return "one value for an array or a vector: want values in braces"
		} else if why = c.value(v, e); why != "" {
			return why
		}
	}
	return ""
}

// value compares one value with the variable's type.
func (c *checker) value(v *Variable, in *Init) string {
	o := &in.Value
	if in.Mask != 0 {
		if shift := bits.TrailingZeros64(in.Mask); in.Mask>>shift != 0xff || shift%8 != 0 {
			return "a mask of an address that is not one byte"
		}
		if v.Type.Bits() != 8 {
			return "a byte of an address: want a type of 8 bits"
		}
	}
	switch o.Kind {
	case OpImm:
		if isFloat := o.Imm == ImmF32 || o.Imm == ImmF64; isFloat != (v.Type == F32 || v.Type == F64) && !(isFloat && isBits(v.Type)) {
			return "value " + clip(o.String()) + " for ." + v.Type.String()
		}
	case OpFunc:
		if in.Generic || o.Value != 0 {
			return "a function's address with an offset or as generic: want its name alone"
		}
	case OpSymbol:
		if d, ok := o.Decl().(*Variable); ok && d.Space != SpaceGlobal && d.Space != SpaceConst {
			return "the address of " + clip(d.Name) + " in ." + d.Space.String() + " space: want .global or .const"
		}
		if v.Type.Float() {
			return "an address for ." + v.Type.String()
		}
	}
	return ""
}
