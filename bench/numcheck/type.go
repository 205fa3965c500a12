// Package numcheck compares buffers of numbers with what they should hold:
// within a tolerance, with NaN equal to NaN, counting mismatches, the largest
// errors and distances in units in the last place.
package numcheck

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
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
		return Value{Type: t, float: decode(uint32(b), 5, 10)}
	case BF16:
		return Value{Type: t, float: float64(math.Float32frombits(uint32(b) << 16))}
	case F32:
		return Value{Type: t, float: float64(math.Float32frombits(uint32(b)))}
	case F64:
		return Value{Type: t, float: math.Float64frombits(b)}
	case E4M3:
		return Value{Type: t, float: decodeE4M3(uint32(b))}
	case E5M2:
		return Value{Type: t, float: decode(uint32(b), 5, 2)}
	case I8, I16, I32:
		shift := 64 - 8*t.Size()
		return Value{Type: t, int: uint64(int64(b<<shift) >> shift)}
	}
	return Value{Type: t, int: b}
}

// decode reads an IEEE 754 format of a sign, e exponent and m fraction bits.
func decode(bits uint32, e, m int) float64 {
	frac := bits & (1<<m - 1)
	exp := int(bits>>m) & (1<<e - 1)
	bias := 1<<(e-1) - 1
	var v float64
	switch {
	case exp == 1<<e-1 && frac != 0:
		return math.NaN()
	case exp == 1<<e-1:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(float64(frac), 1-bias-m)
	default:
		v = math.Ldexp(float64(frac|1<<m), exp-bias-m)
	}
	if bits>>(e+m)&1 != 0 {
		v = -v
	}
	return v
}

// decodeE4M3 reads e4m3, which has no infinities: only all ones is NaN.
func decodeE4M3(bits uint32) float64 {
	if bits&0x7f == 0x7f {
		return math.NaN()
	}
	if bits&0x78 != 0x78 {
		return decode(bits, 4, 3)
	}
	v := math.Ldexp(float64(bits&7|8), 15-7-3)
	if bits&0x80 != 0 {
		v = -v
	}
	return v
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
