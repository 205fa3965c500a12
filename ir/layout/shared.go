package layout

import (
	"fmt"
	"slices"
	"strings"
)

// Shared says at which byte of a shared-memory buffer each element of a tile is.
//
// A row is the run of elements along the fastest dimension; the other dimensions
// number the rows, densely. Rows are either split into atoms of 128, 64 or 32
// bytes, each atom a column of rows of its own whose 16-byte chunks are swizzled
// as TMA and wgmma do it (PTX ISA 5.5.7), or stored one after another with some
// bytes of padding.
type Shared struct {
	shape   []int
	order   []int
	elem    int // bytes of an element
	swizzle int // bytes of an atom, 0 without
	pad     int // bytes after a row
	pairs   bool

	rowStep []int // for each dimension, how many rows one step is; 0 for the fastest
	rows    int
	atom    int // elements of a row in one atom
	pitch   int // bytes from a row to the next in its atom
	column  int // bytes from an atom to the next in its row
}

// swizzleRows is after how many rows a swizzle pattern repeats. It is the same for
// the three atoms: 1024, 512 and 256 bytes.
const swizzleRows = 8

// maxSharedBytes bounds a buffer; no GPU has as much shared memory.
const maxSharedBytes = 1 << 24

// Swizzled lays a tile out in swizzled atoms of `swizzle` bytes: 32, 64 or 128.
// The fastest dimension is order[0]. Its bytes must be a multiple of the atom's,
// and the rows must come in eights.
func Swizzled(shape, order []int, elemBytes, swizzle int) (*Shared, error) {
	s, err := newShared(shape, order, elemBytes)
	if err != nil {
		return nil, err
	}
	if swizzle != 32 && swizzle != 64 && swizzle != 128 {
		return nil, fmt.Errorf("shared layout with a swizzle of %d bytes: want 32, 64 or 128", swizzle)
	}
	if s.rowBytes()%swizzle != 0 {
		return nil, fmt.Errorf("shared layout of %s: rows of %d bytes do not split into %d-byte atoms", shapeText(shape), s.rowBytes(), swizzle)
	}
	for _, d := range order[1:] {
		// A step along d must leave the pattern's phase alone, or change it bitwise.
		step := s.rowStep[d]
		if step%swizzleRows != 0 && step*pow2Part(shape[d])%swizzleRows != 0 && pow2Part(shape[d]) != shape[d] {
			return nil, fmt.Errorf("shared layout of %s: dimension %d breaks the eight-row pattern of a swizzle", shapeText(shape), d)
		}
	}
	if s.rows%swizzleRows != 0 {
		return nil, fmt.Errorf("swizzled shared layout of %d rows: want a multiple of %d", s.rows, swizzleRows)
	}
	s.swizzle = swizzle
	s.atom = swizzle / elemBytes
	s.pitch = swizzle
	s.column = s.rows * swizzle
	return s, nil
}

// Interleaved is a swizzled layout of bytes with the elements of each sixteen of a row in
// another order: pairs of the first eight in turn with pairs of the others, 0 1 8 9 2 3 10
// 11 and so on. Where rows run along the depth of a product, its other operand, in registers
// as an accumulator of wgmma has them (see AccumulatorOperandA), has the same order.
func (s *Shared) Interleaved() (*Shared, error) {
	if s.elem != 1 || s.swizzle == 0 {
		return nil, fmt.Errorf("interleaved shared layout of %d-byte elements, swizzle %d: want bytes in swizzled atoms", s.elem, s.swizzle)
	}
	t := *s
	t.pairs = true
	return &t, nil
}

// IsInterleaved tells whether Interleaved made it.
func (s *Shared) IsInterleaved() bool { return s.pairs }

// interleave is where an interleaved layout has the element of a column: bit 3 below bits 1
// and 2.
func interleave(col int) int { return col&^14 | col&6<<1 | col>>2&2 }

// Padded lays a tile out row after row, the fastest dimension order[0], with pad
// bytes (a multiple of the element) after each row.
func Padded(shape, order []int, elemBytes, pad int) (*Shared, error) {
	s, err := newShared(shape, order, elemBytes)
	if err != nil {
		return nil, err
	}
	if pad < 0 || pad > 1024 || pad%elemBytes != 0 {
		return nil, fmt.Errorf("shared layout with %d bytes of padding: want a multiple of %d up to 1024", pad, elemBytes)
	}
	s.pad = pad
	s.pitch += pad
	if s.rows*s.pitch > maxSharedBytes {
		return nil, s.tooLarge()
	}
	return s, nil
}

func newShared(shape, order []int, elemBytes int) (*Shared, error) {
	if len(shape) == 0 || len(shape) > MaxRank {
		return nil, fmt.Errorf("shared layout of rank %d: want 1 to %d", len(shape), MaxRank)
	}
	if err := checkOrder(order, len(shape)); err != nil {
		return nil, err
	}
	if elemBytes < 1 || elemBytes > 16 || elemBytes != pow2Part(elemBytes) {
		return nil, fmt.Errorf("shared layout of %d-byte elements: want 1, 2, 4, 8 or 16", elemBytes)
	}
	s := &Shared{shape: slices.Clone(shape), order: slices.Clone(order), elem: elemBytes, rowStep: make([]int, len(shape)), rows: 1}
	for i, d := range order {
		if n := shape[d]; n < 1 || n > MaxExtent {
			return nil, fmt.Errorf("shared layout extent %d of dimension %d: want 1 to %d", n, d, MaxExtent)
		}
		if i > 0 {
			s.rowStep[d] = s.rows
			s.rows *= shape[d]
		}
		if s.rows*s.rowBytes() > maxSharedBytes {
			return nil, s.tooLarge()
		}
	}
	s.atom = s.shape[order[0]]
	s.pitch = s.rowBytes()
	return s, nil
}

func (s *Shared) tooLarge() error {
	return fmt.Errorf("shared layout of %s with %d-byte elements: more than %d bytes", shapeText(s.shape), s.elem, maxSharedBytes)
}

// Shape returns the tile's extents.
func (s *Shared) Shape() []int { return slices.Clone(s.shape) }

// Order returns the dimensions, fastest first.
func (s *Shared) Order() []int { return slices.Clone(s.order) }

// ElemBytes returns the bytes of an element.
func (s *Shared) ElemBytes() int { return s.elem }

// Swizzle returns the bytes of an atom: 128, 64, 32, or 0 without swizzle.
func (s *Shared) Swizzle() int { return s.swizzle }

// Pad returns the bytes of padding after a row.
func (s *Shared) Pad() int { return s.pad }

// Atom returns how many elements of a row lie together, and Atoms how many such
// parts a row has; AtomStride is the bytes from one to the next. A TMA copy moves
// one atom's column of rows.
func (s *Shared) Atom() int { return s.atom }

// Atoms returns the number of atoms in a row.
func (s *Shared) Atoms() int { return s.shape[s.order[0]] / s.atom }

// AtomStride returns the bytes from one atom of a row to the next.
func (s *Shared) AtomStride() int { return s.column }

// RowPitch returns the bytes from a row to the next inside an atom.
func (s *Shared) RowPitch() int { return s.pitch }

// Rows returns the number of rows.
func (s *Shared) Rows() int { return s.rows }

func (s *Shared) rowBytes() int { return s.shape[s.order[0]] * s.elem }

// Align returns the alignment in bytes that the buffer needs: the swizzle acts on
// absolute addresses, and vectors on 16 bytes.
func (s *Shared) Align() int { return max(16, s.swizzle*swizzleRows) }

// Size returns the buffer's bytes, a multiple of Align so that buffers can follow
// each other in a ring.
func (s *Shared) Size() int {
	n := s.rows * s.pitch
	if s.swizzle > 0 {
		n = s.Atoms() * s.column
	}
	return (n + s.Align() - 1) / s.Align() * s.Align()
}

// Offset returns the byte offset of the element at c.
func (s *Shared) Offset(c Coord) int {
	p := s.place(c)
	return p.Xor + p.Add
}

// OffsetAt is Offset of a coordinate vector.
func (s *Shared) OffsetAt(at []int) int { return s.Offset(Pack(at)) }

// Place is a contribution to a byte offset: one part is XORed in, the other added.
// The parts of a sum of Places never overlap.
type Place struct {
	Xor, Add int
}

// place splits the offset of c. Xor, the bytes inside one period of the swizzle, is
// linear over GF(2) in the bits of c; Add is linear over the integers in its
// coordinates. They share no bits.
func (s *Shared) place(c Coord) Place {
	row := 0
	for d, step := range s.rowStep {
		row += c.At(d) * step
	}
	col := c.At(s.order[0])
	if s.pairs {
		col = interleave(col)
	}
	if s.swizzle == 0 {
		return Place{Add: row*s.pitch + col*s.elem}
	}
	x := row%swizzleRows*s.pitch + col%s.atom*s.elem
	// Bits 4 and up are XORed with the bits from 7 on: one bit for 32-byte atoms, two
	// for 64, three for 128.
	x ^= x >> 7 % 8 << 4 & (s.swizzle - 16)
	return Place{Xor: x, Add: row/swizzleRows*swizzleRows*s.pitch + col/s.atom*s.column}
}

// Transpose permutes dimensions as Layout.Transpose does: the bytes stay.
func (s *Shared) Transpose(perm []int) (*Shared, error) {
	if err := checkOrder(perm, len(s.shape)); err != nil {
		return nil, err
	}
	shape, order := make([]int, len(perm)), make([]int, len(perm))
	for d, p := range perm {
		shape[d] = s.shape[p]
		order[slices.Index(s.order, p)] = d
	}
	if s.swizzle == 0 {
		return Padded(shape, order, s.elem, s.pad)
	}
	t, err := Swizzled(shape, order, s.elem, s.swizzle)
	if err == nil {
		t.pairs = s.pairs
	}
	return t, err
}

// Equal reports whether both layouts place every element alike.
func (s *Shared) Equal(o *Shared) bool {
	return s == o || slices.Equal(s.shape, o.shape) && slices.Equal(s.order, o.order) &&
		s.elem == o.elem && s.swizzle == o.swizzle && s.pad == o.pad && s.pairs == o.pairs
}

// String returns the text form, which ParseShared reads back:
//
//	shared<128x64, order=(1,0), elem=2, swizzle=128>
//	shared<128x80, order=(1,0), elem=2, pad=16>
//	shared<128x64, order=(1,0), elem=1, swizzle=64, interleaved>
func (s *Shared) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "shared<%s, order=(", shapeText(s.shape))
	for i, d := range s.order {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, d)
	}
	fmt.Fprintf(&b, "), elem=%d, ", s.elem)
	switch {
	case s.pairs:
		fmt.Fprintf(&b, "swizzle=%d, interleaved>", s.swizzle)
	case s.swizzle > 0:
		fmt.Fprintf(&b, "swizzle=%d>", s.swizzle)
	default:
		fmt.Fprintf(&b, "pad=%d>", s.pad)
	}
	return b.String()
}

// ParseShared reads the text form of Shared.String.
func ParseShared(text string) (*Shared, error) {
	p := &parser{text: text}
	p.word("shared")
	p.word("<")
	shape := p.shape()
	p.word(",")
	p.word("order")
	p.word("=")
	p.word("(")
	var order []int
	for range shape {
		if len(order) > 0 {
			p.word(",")
		}
		order = append(order, p.number(0, MaxRank-1))
	}
	p.word(")")
	p.word(",")
	p.word("elem")
	p.word("=")
	elem := p.number(1, 16)
	p.word(",")
	var swizzle, pad int
	pairs := false
	if p.accept("swizzle") {
		p.word("=")
		swizzle = p.number(32, 128)
		if pairs = p.accept(","); pairs {
			p.word("interleaved")
		}
	} else {
		p.word("pad")
		p.word("=")
		pad = p.number(0, 1024)
	}
	p.word(">")
	p.end()
	if p.err != nil {
		return nil, p.err
	}
	if swizzle == 0 {
		return Padded(shape, order, elem, pad)
	}
	s, err := Swizzled(shape, order, elem, swizzle)
	if err == nil && pairs {
		return s.Interleaved()
	}
	return s, err
}
