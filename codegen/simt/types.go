// Package simt is the thread IR: one thread's program in typed virtual
// registers, in SSA form, with structured control flow and the operations PTX
// has. Tile programs are lowered to it; it is cleaned up here and printed as
// CUDA C (codegen/cudac) or PTX (codegen/ptx).
package simt

// Type is the type of a virtual register. Integers carry no sign: operations
// do.
type Type uint8

// The register types.
const (
	Void   Type = iota
	Pred        // one bit, a predicate register
	I16         // 16 bits: an integer, or two 8-bit floats
	I32         // 32 bits: an integer, a shared address, packed bytes, tf32 bits
	I64         // 64 bits: an integer
	Ptr         // 64 bits: an address of global memory
	F16         // IEEE half
	BF16        // bfloat16
	F16x2       // two halves in 32 bits
	BF16x2      // two bfloat16 in 32 bits
	F32
	F64
	numTypes
)

var typeNames = [numTypes]string{
	"void", "pred", "i16", "i32", "i64", "ptr", "f16", "bf16", "f16x2", "bf16x2", "f32", "f64",
}

func (t Type) String() string {
	if t < numTypes {
		return typeNames[t]
	}
	return "type?"
}

// Bits is the register's width: 1 for a predicate, otherwise 16, 32 or 64.
func (t Type) Bits() int {
	switch t {
	case Pred:
		return 1
	case I16, F16, BF16:
		return 16
	case I32, F32, F16x2, BF16x2:
		return 32
	case I64, Ptr, F64:
		return 64
	}
	return 0
}

// IsInt tells whether t is an integer or an address.
func (t Type) IsInt() bool { return t >= I16 && t <= Ptr }

// IsFloat tells whether t holds one or two floating-point numbers.
func (t Type) IsFloat() bool { return t >= F16 && t <= F64 }

// TypeSet is a set of types, for the table of operations.
type TypeSet uint16

func setOf(types ...Type) TypeSet {
	var s TypeSet
	for _, t := range types {
		s |= 1 << t
	}
	return s
}

// Has tells whether t is in the set.
func (s TypeSet) Has(t Type) bool { return s>>t&1 != 0 }

var (
	ints      = setOf(I32, I64)
	intsPtr   = setOf(I32, I64, Ptr)
	halves    = setOf(F16, BF16, F16x2, BF16x2)
	floats    = halves | setOf(F32, F64)
	f32f64    = setOf(F32, F64)
	any32     = setOf(I32, F32, F16x2, BF16x2)
	anyReg    = ints | floats | setOf(I16, Ptr)
	anyVal    = anyReg | setOf(Pred)
	bitsTypes = setOf(Pred, I16, I32, I64)
)
