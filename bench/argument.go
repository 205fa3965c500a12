package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench/numcheck"
)

// Argument is an argument of a kernel in the short form of a command line, read
// by ParseArgument.
type Argument struct {
	Buffer *CaseBuffer // or nil, for a value
	Value  CaseArg
}

// ArgumentForm says in a line what ParseArgument reads.
const ArgumentForm = "TYPE=VALUE, bytes=HEX, TYPE[SHAPE]:random|zeros|iota|none|NUMBER or TYPE:FILE.npy, a buffer with ,want=FILE.npy"

// maxMadeBytes bounds a buffer whose contents are made here.
const maxMadeBytes = 1 << 31

// ParseArgument reads the argument at a place (from 0):
//
//	i32=1000, f32=0.5, bytes=00ff         a value
//	f32[1000]:random, u8[2x64]:zeros      a buffer made here
//	f32[1000]:0.5                         one that holds a number everywhere
//	f16:x.npy, f32[100]:none,want=y.npy   a buffer from a file; one never written
//
// random is -1 to 1 for floating-point types and 0 to 99 for others, the same
// for the same seed and place. iota counts from 0, again from 0 where the type
// has no next number. Names of files are relative to dir.
func ParseArgument(text string, place int, seed uint64, dir string) (*Argument, error) {
	head, contents, isBuffer := strings.Cut(text, ":")
	if !isBuffer {
		v, err := parseValue(text)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", clip(text), err)
		}
		return &Argument{Value: *v}, nil
	}
	b, err := parseBuffer(head, contents, dir, rand.New(rand.NewPCG(seed, uint64(place))))
	if err != nil {
		return nil, fmt.Errorf("argument %q: %w", clip(text), err)
	}
	b.Arg = place
	return &Argument{Buffer: b}, nil
}

// ArgumentFiles are the names of the files that an argument's text reads.
func ArgumentFiles(text string) []string {
	_, contents, _ := strings.Cut(text, ":")
	contents, want, compared := strings.Cut(contents, ",want=")
	var out []string
	if strings.HasSuffix(contents, ".npy") {
		out = append(out, contents)
	}
	if compared {
		out = append(out, want)
	}
	return out
}

// ArgumentBytes is how large the shape in an argument's text makes its buffer, in bytes,
// before anything is made: 0 of values, of buffers whose shape a file tells, and of what
// ParseArgument refuses.
func ArgumentBytes(text string) int64 {
	head, _, isBuffer := strings.Cut(text, ":")
	name, inner, shaped := strings.Cut(head, "[")
	t, err := numcheck.ParseType(name)
	if !isBuffer || !shaped || err != nil {
		return 0
	}
	shape, err := parseShape(inner, t)
	if err != nil {
		return 0
	}
	return (&CaseBuffer{Type: t, Shape: shape}).Size()
}

func parseValue(text string) (*CaseArg, error) {
	kind, value, ok := strings.Cut(text, "=")
	if !ok || value == "" {
		return nil, fmt.Errorf("want %s", ArgumentForm)
	}
	a := &CaseArg{Buffer: -1, Kind: kind}
	quoted, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if kind == "bytes" {
		a.Bytes, err = hexBytes(quoted)
		return a, err
	}
	t, err := numcheck.ParseType(kind)
	if err == nil {
		a.Bytes, err = ParseScalar(t, value)
	}
	return a, err
}

func parseBuffer(head, contents, dir string, r *rand.Rand) (*CaseBuffer, error) {
	name, shape, shaped := strings.Cut(head, "[")
	t, err := numcheck.ParseType(name)
	if err != nil {
		return nil, err
	}
	b := &CaseBuffer{Type: t}
	if shaped {
		if b.Shape, err = parseShape(shape, t); err != nil {
			return nil, err
		}
	}
	contents, want, compared := strings.Cut(contents, ",want=")
	if compared {
		if !strings.HasSuffix(want, ".npy") {
			return nil, fmt.Errorf("want=%s: want a FILE.npy with what the buffer must hold at the end", want)
		}
		a, err := readTyped(beside(dir, want), t)
		if err != nil {
			return nil, err
		}
		if b.Shape == nil {
			b.Shape = a.Shape
		}
		if b.Want = a.Data; int64(len(b.Want)) != b.Size() {
			return nil, fmt.Errorf("%s: shape %v: want the buffer's shape %v", want, a.Shape, b.Shape)
		}
	}
	return b, b.fill(contents, dir, shaped || compared, r)
}

// fill gives a buffer its contents; sized tells whether its shape is known.
func (b *CaseBuffer) fill(contents, dir string, sized bool, r *rand.Rand) error {
	var next func(i int64) float64
	switch contents {
	case "none", "zeros":
	case "random":
		next = func(int64) float64 { return float64(r.IntN(100)) }
		if b.Type.Float() {
			next = func(int64) float64 { return 2*r.Float64() - 1 }
		}
	case "iota":
		wrap := iotaWraps(b.Type)
		next = func(i int64) float64 { return float64(i % wrap) }
	default:
		if v, err := strconv.ParseFloat(contents, 64); err == nil {
			if !b.Type.Float() && (v != math.Trunc(v) || math.Abs(v) > 1<<53) {
				return fmt.Errorf("contents %s: want a whole number for %s", contents, b.Type)
			}
			next = func(int64) float64 { return v }
			break
		}
		if !strings.HasSuffix(contents, ".npy") {
			return fmt.Errorf("contents %q: want random, zeros, iota, none, a number or a FILE.npy", contents)
		}
		a, err := readTyped(beside(dir, contents), b.Type)
		if err != nil {
			return err
		}
		if sized && int64(len(a.Data)) != b.Size() {
			return fmt.Errorf("%s: shape %v: want %v", contents, a.Shape, b.Shape)
		}
		b.Shape, b.Data = a.Shape, a.Data
		return nil
	}
	if !sized {
		return fmt.Errorf("no shape: want %s[1024]:%s", b.Type, contents)
	}
	if contents == "none" {
		return nil
	}
	if b.Size() > maxMadeBytes {
		return fmt.Errorf("%d bytes: want at most %d", b.Size(), int64(maxMadeBytes))
	}
	b.Data = make([]byte, b.Size())
	if next == nil {
		return nil
	}
	size := b.Type.Size()
	for i := range len(b.Data) / size {
		v := next(int64(i))
		if !b.Type.Float() {
			copy(b.Data[i*size:], appendBits(uint64(int64(v)), size))
			continue
		}
		e, err := numcheck.Encode(b.Type, v)
		if err != nil {
			return err
		}
		copy(b.Data[i*size:], e)
	}
	return nil
}

// iotaWraps is the first whole number that is not counted to: one more than the
// last before which a type has them all.
func iotaWraps(t numcheck.Type) int64 {
	switch t {
	case numcheck.F16:
		return 1 << 11
	case numcheck.BF16:
		return 1 << 8
	case numcheck.E4M3:
		return 1 << 4
	case numcheck.E5M2:
		return 1 << 3
	case numcheck.F32:
		return 1 << 24
	case numcheck.I8:
		return 1 << 7
	case numcheck.U8:
		return 1 << 8
	case numcheck.I16:
		return 1 << 15
	case numcheck.U16:
		return 1 << 16
	}
	return 1 << 31
}

// parseShape reads "1024]" or "32x64]".
func parseShape(text string, t numcheck.Type) ([]int64, error) {
	inner, ok := strings.CutSuffix(text, "]")
	if !ok {
		return nil, fmt.Errorf("shape [%s: want an end, as in [32x64]", text)
	}
	var shape []int64
	size := int64(t.Size())
	for word := range strings.SplitSeq(inner, "x") {
		n, err := strconv.ParseInt(word, 10, 64)
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange):
			return nil, fmt.Errorf("shape [%s]: want numbers such as [1024] or [32x64]", inner)
		case n < 0:
			return nil, fmt.Errorf("shape [%s]: %s: want a size from 0", inner, word)
		case n > maxBufferBytes/max(size, 1):
			return nil, fmt.Errorf("shape [%s] of %s: want at most %d bytes", inner, t, int64(maxBufferBytes))
		}
		size *= n
		shape = append(shape, n)
	}
	return shape, nil
}
