package bench

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench/numcheck"
)

// scalar encodes a JSON number (or "NaN", "Infinity", "-Infinity") as a value
// of a kind such as "i32". A number that the kind does not hold is refused; a
// float is rounded to nearest.
func scalar(kind string, v json.RawMessage) ([]byte, error) {
	t, err := numcheck.ParseType(kind)
	if err != nil {
		return nil, fmt.Errorf("%s: want one of %s", kind, argForms)
	}
	return ParseScalar(t, strings.Trim(string(v), `"`))
}

// ParseScalar encodes the text of a number as a little-endian value of a type.
func ParseScalar(t numcheck.Type, text string) ([]byte, error) {
	if t.Float() {
		return parseFloat(t, text)
	}
	bits := 8 * t.Size()
	if strings.HasPrefix(t.String(), "i") {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return nil, fmt.Errorf("%s %s: want a whole number from %d to %d", t, clip(text), int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
		}
		return appendBits(uint64(n), t.Size()), nil
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return nil, fmt.Errorf("%s %s: want a whole number from 0 to %d", t, clip(text), ^uint64(0)>>(64-bits))
	}
	return appendBits(n, t.Size()), nil
}

func appendBits(v uint64, size int) []byte {
	return binary.LittleEndian.AppendUint64(nil, v)[:size]
}

func parseFloat(t numcheck.Type, text string) ([]byte, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s %s: want a number", t, clip(text))
	}
	switch t {
	case numcheck.F64:
		return appendBits(math.Float64bits(v), 8), nil
	case numcheck.F32:
		return appendBits(uint64(math.Float32bits(float32(v))), 4), nil
	}
	return numcheck.Encode(t, v)
}
