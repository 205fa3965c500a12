package ir

import "fmt"

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
}{
	NoElem: {"none", 0, false},
	I1:     {"i1", 1, false},
	I4:     {"i4", 4, false},
	I8:     {"i8", 8, false},
	I32:    {"i32", 32, false},
	I64:    {"i64", 64, false},
	F16:    {"f16", 16, true},
	BF16:   {"bf16", 16, true},
	F32:    {"f32", 32, true},
	F64:    {"f64", 64, true},
	E4M3:   {"e4m3", 8, true},
	E5M2:   {"e5m2", 8, true},
	E2M1:   {"e2m1", 4, true},
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
