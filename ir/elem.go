package ir

import (
	"fmt"
	"math"
)

// Elem is an element type. TF32 is no element type but a precision of dot.
type Elem uint8

// The element types. I1 is a predicate and occupies a byte in memory; I4 and
// E2M1 are packed, two elements a byte, the lower index in the low nibble.
const (
	NoElem Elem = iota
	I1
	I4
	I8
	I32
	I64
	F16
	BF16
	F32
	F64
	E4M3
	E5M2
	E2M1
	numElems
)

var elemTable = [numElems]struct {
	name  string
	bits  int
	float bool
	// Of floats: bits of significand with the hidden one, exponent of the least
	// normal number, largest finite value, and whether there are inf and NaN.
	digits, minExp int
	largest        float64
	inf, nan       bool
}{
	NoElem: {name: "none"},
	I1:     {name: "i1", bits: 1},
	I4:     {name: "i4", bits: 4},
	I8:     {name: "i8", bits: 8},
	I32:    {name: "i32", bits: 32},
	I64:    {name: "i64", bits: 64},
	F16:    {"f16", 16, true, 11, -14, 65504, true, true},
	BF16:   {"bf16", 16, true, 8, -126, 0xff << 120, true, true},
	F32:    {"f32", 32, true, 24, -126, math.MaxFloat32, true, true},
	F64:    {"f64", 64, true, 53, -1022, math.MaxFloat64, true, true},
	E4M3:   {"e4m3", 8, true, 4, -6, 448, false, true},
	E5M2:   {"e5m2", 8, true, 3, -14, 57344, true, true},
	E2M1:   {"e2m1", 4, true, 2, 0, 6, false, false},
}

// fitsFloat reports whether v is a value of e.
func fitsFloat(v float64, e Elem) bool {
	t := &elemTable[e]
	switch {
	case math.IsNaN(v):
		return t.nan
	case math.IsInf(v, 0):
		return t.inf
	case math.Abs(v) > t.largest:
		return false
	case e == F64 || v == 0:
		return true
	}
	exp := max(math.Ilogb(v), t.minExp)
	return v == math.Trunc(math.Ldexp(v, t.digits-1-exp))*math.Ldexp(1, exp-t.digits+1)
}

// String returns the name used in text, such as "bf16".
func (e Elem) String() string {
	if e >= numElems {
		return fmt.Sprintf("Elem(%d)", uint8(e))
	}
	return elemTable[e].name
}

// Bits returns the width of a value in bits; I1 has 1, though memory gives it 8.
func (e Elem) Bits() int {
	if e >= numElems {
		return 0
	}
	return elemTable[e].bits
}

// MemoryBits returns how many bits an element takes in memory.
func (e Elem) MemoryBits() int {
	if e == I1 {
		return 8
	}
	return e.Bits()
}

// IsFloat reports whether e is a floating-point type of any width.
func (e Elem) IsFloat() bool { return e < numElems && elemTable[e].float }

// IsInt reports whether e is an integer type; I1 counts.
func (e Elem) IsInt() bool { return e > NoElem && e < numElems && !elemTable[e].float }

// ElemByName returns the element type of that name, false if there is none.
func ElemByName(name string) (Elem, bool) {
	for e := NoElem + 1; e < numElems; e++ {
		if elemTable[e].name == name {
			return e, true
		}
	}
	return NoElem, false
}
