package eval

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

// Tensor is global memory as a kernel's view sees it: little-endian bytes, with
// shape and strides. I4 and E2M1 hold two elements a byte, the even one in the
// low nibble; I1 is a byte.
type Tensor struct {
	Elem    ir.Elem
	Shape   []int
	Strides []int // elements
	Offset  int   // of element (0, 0, ..), in elements
	Data    []byte
}

// NewTensor returns a dense row-major tensor of zeros.
func NewTensor(e ir.Elem, shape ...int) *Tensor {
	t := &Tensor{Elem: e, Shape: shape, Strides: make([]int, len(shape))}
	n := 1
	for d := len(shape) - 1; d >= 0; d-- {
		t.Strides[d] = n
		n *= shape[d]
	}
	t.Data = make([]byte, (n*e.MemoryBits()+7)/8)
	return t
}

// Len returns the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, s := range t.Shape {
		n *= s
	}
	return n
}

// at returns the place of the element with row-major number i.
func (t *Tensor) at(i int) int {
	place := t.Offset
	for d := len(t.Shape) - 1; d >= 0; d-- {
		place += i % t.Shape[d] * t.Strides[d]
		i /= t.Shape[d]
	}
	return place
}

// Float returns element i, in row-major order, as a number.
func (t *Tensor) Float(i int) float64 {
	c := classOf(t.Elem)
	s := newStore(c, 1)
	s.decode(t.Elem, t.Data, t.at(i), 1, 0, 1)
	switch c {
	case inF32:
		return float64(s.f[0])
	case inF64:
		return s.d[0]
	case inI32:
		return float64(s.i[0])
	}
	return float64(s.l[0])
}

// SetFloat sets element i, in row-major order, to v as a cast from f64 gives it.
func (t *Tensor) SetFloat(i int, v float64) {
	from, to := newStore(inF64, 1), newStore(classOf(t.Elem), 1)
	from.d[0] = v
	cast(to, t.Elem, from, ir.F64, false)
	to.encode(t.Elem, t.Data, t.at(i), 1, 0, 1)
}

// Floats returns all elements in row-major order.
func (t *Tensor) Floats() []float64 {
	out := make([]float64, t.Len())
	for i := range out {
		out[i] = t.Float(i)
	}
	return out
}

// SetFloats sets the elements, in row-major order, as SetFloat does.
func (t *Tensor) SetFloats(vs []float64) {
	for i, v := range vs {
		t.SetFloat(i, v)
	}
}

// Poison fills the memory with NaN, or with a large number for integers.
func (t *Tensor) Poison() {
	for i := range t.Data {
		t.Data[i] = poisonByte(t.Elem)
	}
}

// poisonByte is NaN repeated for floats, 0x5a for integers, where it is large in
// every width; i1 gets 1.
func poisonByte(e ir.Elem) byte {
	switch {
	case e == ir.I1:
		return 1
	case e.IsFloat():
		return 0xff
	}
	return 0x5a
}

// check reports what is wrong with a tensor: an element outside its memory.
func (t *Tensor) check() error {
	if len(t.Shape) != len(t.Strides) {
		return fmt.Errorf("%d sizes and %d strides: want as many", len(t.Shape), len(t.Strides))
	}
	lo, hi := int64(t.Offset), int64(t.Offset)
	empty := false
	for d, n := range t.Shape {
		if n < 0 || n > ir.MaxDim {
			return fmt.Errorf("size %d of dimension %d: want 0 to %d", n, d, ir.MaxDim)
		}
		empty = empty || n == 0
		over, span := bits.Mul64(uint64(max(n-1, 0)), uint64(max(t.Strides[d], -t.Strides[d])))
		if over != 0 || span > 1<<48 {
			return fmt.Errorf("stride %d of dimension %d: too large", t.Strides[d], d)
		}
		if t.Strides[d] < 0 {
			lo -= int64(span)
		} else {
			hi += int64(span)
		}
	}
	room := int64(len(t.Data)) * 8 / int64(max(t.Elem.MemoryBits(), 1))
	if !empty && (lo < 0 || hi >= room) {
		return fmt.Errorf("shape %v, strides %v, offset %d reach element %d to %d: memory holds %d", t.Shape, t.Strides, t.Offset, lo, hi, room)
	}
	return nil
}

// decode reads n elements of memory, from element at on by stride, into s[to..].
func (s *store) decode(e ir.Elem, mem []byte, at, stride, to, n int) {
	switch e {
	case ir.F32:
		for i := range n {
			s.f[to+i] = math.Float32frombits(binary.LittleEndian.Uint32(mem[4*(at+i*stride):]))
		}
	case ir.BF16:
		for i := range n {
			s.f[to+i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(mem[2*(at+i*stride):])) << 16)
		}
	case ir.F16:
		for i := range n {
			s.f[to+i] = num.F16ToF32(binary.LittleEndian.Uint16(mem[2*(at+i*stride):]))
		}
	case ir.E4M3, ir.E5M2:
		for i := range n {
			s.f[to+i] = decode8(e, mem[at+i*stride])
		}
	case ir.E2M1:
		for i := range n {
			s.f[to+i] = num.E2M1ToF32(nibble(mem, at+i*stride))
		}
	case ir.F64:
		for i := range n {
			s.d[to+i] = math.Float64frombits(binary.LittleEndian.Uint64(mem[8*(at+i*stride):]))
		}
	case ir.I64:
		for i := range n {
			s.l[to+i] = int64(binary.LittleEndian.Uint64(mem[8*(at+i*stride):]))
		}
	case ir.I32:
		for i := range n {
			s.i[to+i] = int32(binary.LittleEndian.Uint32(mem[4*(at+i*stride):]))
		}
	case ir.I8:
		for i := range n {
			s.i[to+i] = int32(int8(mem[at+i*stride]))
		}
	case ir.I4:
		for i := range n {
			s.i[to+i] = int32(int8(nibble(mem, at+i*stride)<<4) >> 4)
		}
	case ir.I1:
		for i := range n {
			s.i[to+i] = int32(mem[at+i*stride] & 1)
		}
	}
}

// encode writes what decode reads.
func (s *store) encode(e ir.Elem, mem []byte, at, stride, from, n int) {
	switch e {
	case ir.F32:
		for i := range n {
			binary.LittleEndian.PutUint32(mem[4*(at+i*stride):], math.Float32bits(s.f[from+i]))
		}
	case ir.F16, ir.BF16:
		for i := range n {
			binary.LittleEndian.PutUint16(mem[2*(at+i*stride):], encode16(e, s.f[from+i]))
		}
	case ir.E4M3, ir.E5M2:
		for i := range n {
			mem[at+i*stride] = encode8(e, s.f[from+i])
		}
	case ir.E2M1:
		for i := range n {
			setNibble(mem, at+i*stride, num.E2M1FromF32(s.f[from+i]))
		}
	case ir.F64:
		for i := range n {
			binary.LittleEndian.PutUint64(mem[8*(at+i*stride):], math.Float64bits(s.d[from+i]))
		}
	case ir.I64:
		for i := range n {
			binary.LittleEndian.PutUint64(mem[8*(at+i*stride):], uint64(s.l[from+i]))
		}
	case ir.I32:
		for i := range n {
			binary.LittleEndian.PutUint32(mem[4*(at+i*stride):], uint32(s.i[from+i]))
		}
	case ir.I8, ir.I1:
		for i := range n {
			mem[at+i*stride] = byte(s.i[from+i])
		}
	case ir.I4:
		for i := range n {
			setNibble(mem, at+i*stride, byte(s.i[from+i])&15)
		}
	}
}

func nibble(mem []byte, at int) byte { return mem[at/2] >> (4 * (at % 2)) & 15 }

func setNibble(mem []byte, at int, v byte) {
	shift := 4 * (at % 2)
	mem[at/2] = mem[at/2]&^(15<<shift) | v<<shift
}
