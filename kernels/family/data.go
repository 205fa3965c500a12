package family

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

// Tensor is an argument's memory on the host, little-endian.
type Tensor struct {
	Arg
	Bytes []byte
}

// Data is the memory of a problem's tensors, by name. Inputs are the same for the same
// seed whatever the strides.
type Data map[string]*Tensor

// NewData allocates the tensors of args. Inputs are drawn from the standard normal
// distribution (cut at 4.3 standard deviations) and rounded to the element type, by a
// counter: element i of a tensor depends on seed, the tensor's name and i; integers are
// 0 to 2^16-1, all as likely. Outputs, and the gaps between rows, hold NaN, integers -1.
func NewData(args []Arg, seed uint64) (Data, error) {
	d := Data{}
	for _, a := range args {
		if a.IsScalar() {
			continue
		}
		t, err := NewTensor(a)
		if err != nil {
			return nil, err
		}
		if !a.Out {
			if a.Integer != nil {
				for i := range a.Elements() {
					t.put(i, uint32(a.Integer(i)))
				}
			} else {
				t.fill(seed)
			}
			if a.Fill != nil {
				a.Fill(t)
			}
		}
		d[a.Name] = t
	}
	return d, nil
}

// Integers returns the elements of the arguments that are integers a family says, such as
// lengths, by their numbers; ok is false outside. None is kept in memory.
func Integers(args []Arg) map[int]func(i int64) (v int64, ok bool) {
	var out map[int]func(int64) (int64, bool)
	for i, a := range args {
		if a.Integer == nil {
			continue
		}
		if out == nil {
			out = map[int]func(int64) (int64, bool){}
		}
		n := int64(a.Elements())
		out[i] = func(e int64) (int64, bool) {
			if e < 0 || e >= n {
				return 0, false
			}
			return a.Integer(int(e)), true
		}
	}
	return out
}

// NewTensor allocates an argument's memory with NaN everywhere.
func NewTensor(a Arg) (*Tensor, error) {
	if _, ok := codecs[a.Elem]; !ok {
		return nil, fmt.Errorf("tensor %s: no host data of type %s", a.Name, a.Elem)
	}
	nan := []byte{0xff} // in every floating-point type
	return &Tensor{Arg: a, Bytes: bytes.Repeat(nan, a.Elements()*a.Elem.MemoryBits()/8)}, nil
}

// codec converts an element type's bits.
type codec struct {
	decode func(uint32) float64
	encode func(float64) uint32
}

var codecs = map[ir.Elem]codec{
	ir.F16: {
		decode: func(b uint32) float64 { return float64(num.F16ToF32(uint16(b))) },
		encode: func(x float64) uint32 { return uint32(num.F16FromF64(x)) },
	},
	ir.BF16: {
		decode: func(b uint32) float64 { return float64(num.BF16ToF32(uint16(b))) },
		encode: func(x float64) uint32 { return uint32(num.BF16FromF64(x)) },
	},
	ir.E4M3: small(num.E4M3),
	ir.E5M2: small(num.E5M2),
	ir.I32: {
		decode: func(b uint32) float64 { return float64(int32(b)) },
		encode: func(x float64) uint32 { return uint32(int32(x)) },
	},
	ir.F32: {
		decode: func(b uint32) float64 { return float64(math.Float32frombits(b)) },
		encode: func(x float64) uint32 { return math.Float32bits(float32(x)) },
	},
}

func small(f num.Format) codec {
	return codec{decode: f.Decode, encode: func(x float64) uint32 { return f.Encode(x, num.Even, false) }}
}

// Offset returns where an element is, in elements.
func (t *Tensor) Offset(index ...int) int {
	at := 0
	for i, x := range index {
		at += x * t.Strides[i]
	}
	return at
}

// At returns an element.
func (t *Tensor) At(index ...int) float64 { return t.decode(t.Offset(index...)) }

func (t *Tensor) decode(offset int) float64 { return codecs[t.Elem].decode(t.bits(offset)) }

// bits are an element's, from the lowest on.
func (t *Tensor) bits(offset int) uint32 {
	switch t.Elem.MemoryBits() {
	case 8:
		return uint32(t.Bytes[offset])
	case 16:
		return uint32(binary.LittleEndian.Uint16(t.Bytes[2*offset:]))
	}
	return binary.LittleEndian.Uint32(t.Bytes[4*offset:])
}

// Set rounds x to the element type and stores it.
func (t *Tensor) Set(x float64, index ...int) { t.put(t.Offset(index...), codecs[t.Elem].encode(x)) }

// SetInt stores an integer in a tensor of integers.
func (t *Tensor) SetInt(x int64, index ...int) { t.put(t.Offset(index...), uint32(x)) }

func (t *Tensor) put(offset int, bits uint32) {
	switch t.Elem.MemoryBits() {
	case 8:
		t.Bytes[offset] = uint8(bits)
	case 16:
		binary.LittleEndian.PutUint16(t.Bytes[2*offset:], uint16(bits))
	default:
		binary.LittleEndian.PutUint32(t.Bytes[4*offset:], bits)
	}
}

// Row reads len(dst) elements along the last dimension, whose stride is 1, from offset.
func (t *Tensor) Row(dst []float64, offset int) {
	c := codecs[t.Elem]
	for i := range dst {
		dst[i] = c.decode(t.bits(offset + i))
	}
}

// Region reads a region in row-major order.
func (t *Tensor) Region(r Region) []float64 {
	n := 1
	for d := range r.Lo {
		n *= r.Hi[d] - r.Lo[d]
	}
	out := make([]float64, 0, n)
	t.walk(r.Lo, r.Hi, func(offset int) { out = append(out, t.decode(offset)) })
	return out
}

// walk visits the offsets of a box in row-major order.
func (t *Tensor) walk(lo, hi []int, visit func(offset int)) {
	var enter func(d, offset int)
	enter = func(d, offset int) {
		if d == len(lo) {
			visit(offset)
			return
		}
		for x := lo[d]; x < hi[d]; x++ {
			enter(d+1, offset+x*t.Strides[d])
		}
	}
	enter(0, 0)
}

// quantiles are the standard normal distribution's at the middle of 65536 equal parts:
// drawing one by a 16-bit number costs a look-up.
var quantiles = sync.OnceValue(func() []float64 {
	q := make([]float64, 1<<16)
	for i := range q {
		q[i] = math.Sqrt2 * math.Erfinv((2*float64(i)+1)/(1<<16)-1)
	}
	return q
})

// fill draws the elements.
func (t *Tensor) fill(seed uint64) {
	h := fnv.New64a()
	h.Write([]byte(t.Name))
	key := mix(seed) ^ h.Sum64()
	encode := codecs[t.Elem].encode
	table := make([]uint32, 1<<16)
	for i, x := range quantiles() {
		table[i] = encode(x)
	}
	if t.Elem == ir.I32 {
		for i := range table {
			table[i] = uint32(i)
		}
	}
	// A row at a time: the rows' first elements are those of the last dimension cut to 1.
	cols, stride := t.Dims[len(t.Dims)-1], t.Strides[len(t.Dims)-1]
	first := slices.Clone(t.Dims)
	first[len(first)-1] = 1
	n := 0
	t.walk(make([]int, len(first)), first, func(offset int) {
		var word uint64
		for i := range cols {
			if n%4 == 0 || i == 0 {
				word = mix(key+uint64(n/4)) >> (16 * (n % 4))
			}
			t.put(offset+i*stride, table[word&0xffff])
			word >>= 16
			n++
		}
	})
}

// mix is splitmix64's step: an invertible hash of 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
