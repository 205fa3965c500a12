package numcheck

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
)

// Encode rounds v to the nearest value of a floating-point type, to even
// between two, and returns its little-endian bytes. It is for single values:
// what the type does not hold, an infinity or too large a number, is an error.
func Encode(t Type, v float64) ([]byte, error) {
	switch t {
	case F64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), nil
	case F32:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))), nil
	case F16, BF16, E4M3, E5M2:
	default:
		return nil, fmt.Errorf("%v as %s: want a floating-point type", v, t)
	}
	sign := uint32(1) << (8*t.Size() - 1)
	code := func(i int) float64 { return t.At(binary.LittleEndian.AppendUint32(nil, uint32(i)), 0).float }
	abs := math.Abs(v)
	// The codes from 0 up hold rising values, then infinity or NaN.
	above := sort.Search(int(sign), func(i int) bool { return !(code(i) <= abs) })
	var bits uint32
	switch {
	case math.IsNaN(v):
		bits = sign - 1
	case math.IsInf(v, 0):
		if above == int(sign) || above == 0 || !math.IsInf(code(above-1), 0) {
			return nil, fmt.Errorf("%v as %s: the type has no infinity", v, t)
		}
		bits = uint32(above - 1)
	case above == int(sign) || math.IsNaN(code(above)) || math.IsInf(code(above), 0):
		below := code(above - 1)
		if half := (below - code(above-2)) / 2; abs-below >= half {
			return nil, fmt.Errorf("%v as %s: want at most %v", v, t, below)
		}
		bits = uint32(above - 1)
	default:
		down, up := abs-code(above-1), code(above)-abs
		bits = uint32(above - 1)
		if up < down || up == down && bits&1 == 1 {
			bits++
		}
	}
	if math.Signbit(v) {
		bits |= sign
	}
	return binary.LittleEndian.AppendUint32(nil, bits)[:t.Size()], nil
}
