package bench

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// TensorMap describes a tensor in global memory to the bulk tensor copies:
// what a driver's cuTensorMapEncodeTiled takes.
type TensorMap struct {
	Type           ptx.Type // of elements
	Address        uint64   // a multiple of 16
	Dims           []uint64 // elements, innermost first; at most 5
	Strides        []uint64 // bytes between elements of dimension 1, 2...; multiples of 16
	Box            []uint32 // elements copied of each dimension, 1 to 256
	ElementStrides []uint32 // 1 to 8; nil is all 1
	Swizzle        int      // bytes of a swizzled row: 0, 32, 64 or 128
	Atom           int      // bytes that a swizzle of 128 keeps together: 0 (16), 16, 32 or 64
	Flip           bool     // with an atom of 32 bytes: halves of 16 bytes are swapped in every second row of 128
	FillNaN        bool     // elements outside read as NaN instead of 0

	Im2col *Im2col // instead of a box: what cuTensorMapEncodeIm2col takes
}

// Im2col says which pixels of a tensor of N images of D, H, W and C (innermost) a copy
// brings: so many, at the places that a filter's base takes in a box of each image.
type Im2col struct {
	// Lower and Upper are the box's corners, W first: the least place, and how far the
	// last one lies from the image's last pixel.
	Lower    []int32 `json:"lower"`
	Upper    []int32 `json:"upper"`
	Channels uint32  `json:"channels"` // of a pixel, 1 to 256
	Pixels   uint32  `json:"pixels"`   // 1 to 1024
	Wide     bool    `json:"wide"`     // along W alone: of cuTensorMapEncodeIm2colWide
}

// Corners is how many numbers a corner has in a tensor of so many dimensions.
func (m *Im2col) Corners(rank int) int {
	if m.Wide {
		return 1
	}
	return rank - 2
}

// tensorMapSize is the bytes of a tensor map.
const tensorMapSize = 128

// tensorMapFile is a tensor map as an argument of a case.
type tensorMapFile struct {
	TensorMap      string   `json:"tensor_map"` // the buffer's name, or arg0, arg1, ... of one that stands as an argument
	Offset         int64    `json:"offset"`
	Type           string   `json:"type"`
	Dims           []uint64 `json:"dims"`
	Strides        []uint64 `json:"strides"`
	Box            []uint32 `json:"box"`
	ElementStrides []uint32 `json:"element_strides"`
	Swizzle        int      `json:"swizzle"`
	Atom           int      `json:"atom"`
	Flip           bool     `json:"flip"`
	Fill           string   `json:"fill"` // "zero" or "nan"
	Interleave     int      `json:"interleave"`
	Im2col         *Im2col  `json:"im2col"`
}

// tensorTypes are the types of a tensor map's elements.
var tensorTypes = []ptx.Type{
	ptx.U8, ptx.U16, ptx.U32, ptx.S32, ptx.U64, ptx.S64, ptx.F16, ptx.F32, ptx.F64, ptx.BF16, ptx.TF32, ptx.B4x16, ptx.B4x16P64, ptx.B6x16P32,
}

// TensorUnit is the least number of elements of a tensor that take whole bytes: how
// many they are, and their bytes in global and in shared memory, where 4- and 6-bit
// elements may be padded. PTX ISA 5.5.1.1.
type TensorUnit struct{ Elements, Global, Shared uint32 }

// UnitOf is a type's.
func UnitOf(t ptx.Type) TensorUnit {
	switch t {
	case ptx.B4x16:
		return TensorUnit{2, 1, 1}
	case ptx.B4x16P64:
		return TensorUnit{16, 8, 16}
	case ptx.B6x16P32:
		return TensorUnit{16, 12, 16}
	}
	size := uint32(t.Size())
	return TensorUnit{1, size, size}
}

// Padded says whether elements take more in shared memory than in global.
func (u TensorUnit) Padded() bool { return u.Shared > u.Global }

func parseTensorType(name string) (ptx.Type, error) {
	var names []string
	for _, t := range tensorTypes {
		if t.String() == name {
			return t, nil
		}
		names = append(names, t.String())
	}
	return ptx.NoType, fmt.Errorf("type %q: want one of %s", name, strings.Join(names, " "))
}

// describe checks what does not depend on where the buffer lies.
func (f *tensorMapFile) describe() (*TensorMap, error) {
	t, err := parseTensorType(f.Type)
	if err != nil {
		return nil, err
	}
	if f.Interleave != 0 {
		return nil, fmt.Errorf("interleave %d: want 0, interleaved layouts are not supported", f.Interleave)
	}
	m := &TensorMap{Type: t, Dims: f.Dims, Strides: f.Strides, Box: f.Box, ElementStrides: f.ElementStrides, Swizzle: f.Swizzle, Atom: f.Atom, Flip: f.Flip, Im2col: f.Im2col}
	switch f.Fill {
	case "", "zero":
	case "nan":
		m.FillNaN = true
	default:
		return nil, fmt.Errorf("fill %q: want zero or nan", f.Fill)
	}
	rank := len(f.Dims)
	switch {
	case f.Im2col != nil && f.Box != nil:
		return nil, fmt.Errorf("im2col beside box %v: want one of them", f.Box)
	case f.Im2col != nil && (rank < 3 || rank > 5):
		return nil, fmt.Errorf("dims %v: want 3 to 5 numbers of an im2col map, innermost first", f.Dims)
	case f.Im2col != nil:
	case rank < 1 || rank > 5 || len(f.Box) != rank:
		return nil, fmt.Errorf("dims %v and box %v: want 1 to 5 numbers, innermost first, as many of both", f.Dims, f.Box)
	}
	if f.ElementStrides != nil && len(f.ElementStrides) != rank {
		return nil, fmt.Errorf("element_strides %v: want %d numbers, as many as dims", f.ElementStrides, rank)
	}
	if f.Strides == nil {
		m.Strides, err = denseStrides(f.Dims, UnitOf(t))
	}
	if err == nil && len(m.Strides) != rank-1 {
		err = fmt.Errorf("strides %v: want %d numbers of bytes, of all dimensions but the innermost", m.Strides, rank-1)
	}
	return m, err
}

// denseStrides are the strides of a tensor without gaps.
func denseStrides(dims []uint64, unit TensorUnit) ([]uint64, error) {
	var strides []uint64
	step := uint64(unit.Global)
	for i, n := range dims[:len(dims)-1] {
		if n > 1<<40 || step > 1<<40 {
			return nil, fmt.Errorf("dims %v: too large", dims)
		}
		if i == 0 {
			n /= uint64(unit.Elements)
		}
		step *= n
		strides = append(strides, step)
	}
	return strides, nil
}

// tensorMap finds the buffer that a tensor map describes.
func (b *caseBuilder) tensorMap(f *tensorMapFile) (CaseArg, error) {
	if f.TensorMap == "" {
		return CaseArg{}, errors.New("tensor_map is empty: want a buffer's name, or arg0, arg1, ... of an argument")
	}
	m, err := f.describe()
	if err != nil {
		return CaseArg{}, err
	}
	for i := range b.c.Buffers {
		buf := &b.c.Buffers[i]
		if buf.label() != f.TensorMap {
			continue
		}
		if size := buf.Size(); f.Offset < 0 || f.Offset > size {
			return CaseArg{}, fmt.Errorf("offset %d in buffer %q: want 0 to %d bytes", f.Offset, f.TensorMap, size)
		}
		return CaseArg{Buffer: i, Offset: f.Offset, Kind: "tensor map", Map: m}, nil
	}
	return CaseArg{}, fmt.Errorf("tensor_map %q: no such buffer", f.TensorMap)
}
