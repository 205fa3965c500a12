package numcheck

import (
	"math"
	"strconv"
)

// Value is one element. Integers are exact. In JSON a NaN or an infinity is
// the string "NaN", "Infinity" or "-Infinity".
type Value struct {
	Type  Type
	float float64
	int   uint64
}

// Float is the value as a float64, rounded where a 64-bit integer needs it.
func (v Value) Float() float64 {
	switch {
	case v.Type.Float():
		return v.float
	case v.Type.signed():
		return float64(int64(v.int))
	}
	return float64(v.int)
}

func (t Type) signed() bool { return t >= I8 && t <= I64 }

// distance is |v - w|, exact for integers before it is rounded to a float64.
func (v Value) distance(w Value) float64 {
	switch {
	case v.Type.Float():
		return math.Abs(v.float - w.float)
	case v.Type.signed() && int64(v.int) < int64(w.int), !v.Type.signed() && v.int < w.int:
		return float64(w.int - v.int)
	}
	return float64(v.int - w.int)
}

func (v Value) String() string {
	switch {
	case v.Type.Float():
		return strconv.FormatFloat(v.float, 'g', -1, v.Type.printBits())
	case v.Type.signed():
		return strconv.FormatInt(int64(v.int), 10)
	}
	return strconv.FormatUint(v.int, 10)
}

// printBits is the precision that tells a type's values apart in print.
func (t Type) printBits() int {
	if t == F64 {
		return 64
	}
	return 32
}

// MarshalJSON writes a number, or a string where JSON has no number.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case math.IsNaN(v.float):
		return []byte(`"NaN"`), nil
	case math.IsInf(v.float, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v.float, -1):
		return []byte(`"-Infinity"`), nil
	}
	return []byte(v.String()), nil
}
