package numcheck

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/ir/num"
)

// small are the formats of the types below 32 bits.
var small = map[Type]num.Format{F16: num.F16, BF16: num.BF16, E4M3: num.E4M3, E5M2: num.E5M2}

// Encode rounds v to the nearest value of a floating-point type, to even
// between two, and returns its little-endian bytes. It is for single values:
// what the type does not hold, an infinity or too large a number, is an error.
func Encode(t Type, v float64) ([]byte, error) {
	switch t {
	case F64:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), nil
	case F32:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))), nil
	}
	f, ok := small[t]
	if !ok {
		return nil, fmt.Errorf("%v as %s: want a floating-point type", v, t)
	}
	bits := f.Encode(v, num.Even, false)
	switch got := f.Decode(bits); {
	case math.IsInf(v, 0) && got != v:
		return nil, fmt.Errorf("%v as %s: the type has no infinity", v, t)
	case isFinite(v) && !isFinite(got):
		return nil, fmt.Errorf("%v as %s: want at most %v", v, t, f.Max())
	}
	return binary.LittleEndian.AppendUint32(nil, bits)[:t.Size()], nil
}
