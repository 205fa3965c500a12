// Package numcheck compares buffers of numbers with what they should hold:
// within a tolerance, with NaN equal to NaN, counting mismatches, the largest
// errors and distances in units in the last place.
package numcheck

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/kgen-dev/kgen/ir/num"
)

// Type is a buffer's element type.
type Type uint8

const (
	F16 Type = iota + 1
	BF16
	F32
	F64
	E4M3
	E5M2
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
)

// typeInfo: name, bytes, and NumPy's type that stores it. bf16, e4m3 and e5m2
// are stored as their bits.
var typeInfo = [...]struct {
	name  string
	size  int
	dtype string
}{
	F16: {"f16", 2, "f2"}, BF16: {"bf16", 2, "u2"}, F32: {"f32", 4, "f4"}, F64: {"f64", 8, "f8"},
	E4M3: {"e4m3", 1, "u1"}, E5M2: {"e5m2", 1, "u1"},
	I8: {"i8", 1, "i1"}, I16: {"i16", 2, "i2"}, I32: {"i32", 4, "i4"}, I64: {"i64", 8, "i8"},
	U8: {"u8", 1, "u1"}, U16: {"u16", 2, "u2"}, U32: {"u32", 4, "u4"}, U64: {"u64", 8, "u8"},
}

// ParseType finds a type by its name.
func ParseType(name string) (Type, error) {
	var names []string
	for t := F16; t <= U64; t++ {
		if t.String() == name {
			return t, nil
		}
		names = append(names, t.String())
	}
	return 0, fmt.Errorf("type %q: want one of %s", name, strings.Join(names, " "))
}

func (t Type) String() string { return typeInfo[t].name }

// Size is an element's size in bytes.
func (t Type) Size() int { return typeInfo[t].size }

// DType is the NumPy type, without byte order, that stores the elements.
func (t Type) DType() string { return typeInfo[t].dtype }

// Float says whether the elements are floating-point numbers.
func (t Type) Float() bool { return t <= E5M2 }

// bits is element i, zero-extended.
func (t Type) bits(data []byte, i int) uint64 {
	switch t.Size() {
	case 1:
		return uint64(data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return binary.LittleEndian.Uint64(data[8*i:])
}

// At is element i of data.
func (t Type) At(data []byte, i int) Value {
	b := t.bits(data, i)
	switch t {
	case F16:
		return Value{Type: t, float: float64(num.F16ToF32(uint16(b)))}
	case BF16:
		return Value{Type: t, float: float64(num.BF16ToF32(uint16(b)))}
	case F32:
		return Value{Type: t, float: float64(math.Float32frombits(uint32(b)))}
	case F64:
		return Value{Type: t, float: math.Float64frombits(b)}
	case E4M3:
		return Value{Type: t, float: float64(num.E4M3ToF32(uint8(b)))}
	case E5M2:
		return Value{Type: t, float: float64(num.E5M2ToF32(uint8(b)))}
	case I8, I16, I32:
		shift := 64 - 8*t.Size()
		return Value{Type: t, int: uint64(int64(b<<shift) >> shift)}
	}
	return Value{Type: t, int: b}
}

// ordinal numbers the values of a floating-point type in their order, both
// zeros 0, so that neighbours differ by 1.
func (t Type) ordinal(data []byte, i int) int64 {
	b := t.bits(data, i)
	sign := uint64(1) << (8*t.Size() - 1)
	if b&sign != 0 {
		return -int64(b &^ sign)
	}
	return int64(b)
}
