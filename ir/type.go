package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/ir/layout"
)

// Limits that verifier and parser hold; they keep hostile text from using
// unbounded memory.
const (
	MaxTileRank     = 4       // axes of a tile
	MaxViewRank     = 8       // dimensions of a view
	MaxTileElements = 1 << 24 // elements of one tile, and of one ring
	MaxDepth        = 256     // buffers of a ring
)

// MaxDim is the largest size of a view's dimension. Indices are 32-bit numbers, and those
// of a tile that reaches beyond a view's end, or of a step that is loaded ahead, are larger
// than its size: the 64 Ki left below 2^31 are more than the tiles and steps of almost
// every program take. What takes more is held to smaller sizes when it is launched.
const MaxDim = 1<<31 - 1<<16

// Kind says what a value is.
type Kind uint8

// The kinds of values.
const (
	Void Kind = iota
	Tile      // rank 0 is a scalar
	View      // pointer, run-time sizes (i32) and strides (i64, elements) of global memory
	Ring      // staged: a ring of shared buffers
)

// Dim is a view's size in one dimension: a symbol, a constant, or neither.
// Equal symbols in two views of one kernel mean equal sizes, checked at launch.
type Dim struct {
	Sym  string // not empty: symbolic
	Size int    // > 0 where Sym is empty: constant; 0: known at run time only
}

// String returns the symbol, the number, or "?".
func (d Dim) String() string {
	switch {
	case d.Sym != "":
		return d.Sym
	case d.Size > 0:
		return strconv.Itoa(d.Size)
	}
	return "?"
}

// Type is the type of a value.
type Type struct {
	Kind  Kind
	Elem  Elem
	Shape []int // tile: its shape; ring: the shape of one buffer
	Dims  []Dim // view
	Depth int   // ring: number of buffers

	Layout *layout.Layout // tile of rank 1 or more, staged: who holds what; nil: not chosen yet
	Shared *layout.Shared // ring: where elements lie in a buffer; nil: not chosen yet
}

// ScalarOf returns the type of a scalar.
func ScalarOf(e Elem) Type { return Type{Kind: Tile, Elem: e} }

// TileOf returns the type of a tile of the given shape; no shape makes a scalar.
func TileOf(e Elem, shape ...int) Type { return Type{Kind: Tile, Elem: e, Shape: shape} }

// ViewOf returns the type of a view with the given dimensions.
func ViewOf(e Elem, dims ...Dim) Type { return Type{Kind: View, Elem: e, Dims: dims} }

// RingOf returns the type of a ring of depth shared buffers of the given shape.
func RingOf(depth int, e Elem, shape ...int) Type {
	return Type{Kind: Ring, Elem: e, Shape: shape, Depth: depth}
}

// IsScalar reports whether t is a tile of rank 0.
func (t Type) IsScalar() bool { return t.Kind == Tile && len(t.Shape) == 0 }

// IsTile reports whether t is a tile of rank 1 or more.
func (t Type) IsTile() bool { return t.Kind == Tile && len(t.Shape) > 0 }

// Rank returns the number of axes of a tile or ring, or of dimensions of a view.
func (t Type) Rank() int {
	if t.Kind == View {
		return len(t.Dims)
	}
	return len(t.Shape)
}

// Elements returns the number of elements of a tile, or of one buffer of a ring.
func (t Type) Elements() int {
	n := 1
	for _, s := range t.Shape {
		n *= s
	}
	return n
}

// WithLayout returns t with another layout.
func (t Type) WithLayout(l *layout.Layout) Type {
	t.Layout = l
	return t
}

// WithElem returns t with another element type.
func (t Type) WithElem(e Elem) Type {
	t.Elem = e
	return t
}

// WithShape returns t with another shape, and without a layout.
func (t Type) WithShape(shape ...int) Type {
	t.Shape, t.Layout = shape, nil
	return t
}

// Equal reports whether t and u are the same type.
func (t Type) Equal(u Type) bool {
	return t.Kind == u.Kind && t.Elem == u.Elem && t.Depth == u.Depth &&
		slices.Equal(t.Shape, u.Shape) && slices.Equal(t.Dims, u.Dims) && sameLayout(t.Layout, u.Layout) && sameShared(t.Shared, u.Shared)
}

func sameLayout(l, m *layout.Layout) bool {
	return l == m || l != nil && m != nil && l.Equal(m)
}

func sameShared(s, u *layout.Shared) bool {
	return s == u || s != nil && u != nil && s.Equal(u)
}

// SameTile reports whether t and u agree in kind, element type and shape,
// whatever their layouts.
func (t Type) SameTile(u Type) bool { return t.WithLayout(u.Layout).Equal(u) }

// String returns the textual form: f32, <128x64xbf16>, view<bf16>[M, K],
// ring<3 x 128x64xbf16>, with the layouts spelled out.
func (t Type) String() string { return t.text(func(layout string) string { return layout }) }

// text writes t; short turns the text of a layout into what stands for it.
func (t Type) text(short func(layout string) string) string {
	shape, suffix := shapeString(t.Shape), ""
	if t.Layout != nil {
		suffix = ", " + short(t.Layout.String())
	}
	if t.Shared != nil {
		suffix += ", " + short(t.Shared.String())
	}
	switch t.Kind {
	case Tile:
		if len(t.Shape) == 0 {
			return t.Elem.String()
		}
		return "<" + shape + t.Elem.String() + suffix + ">"
	case View:
		dims := make([]string, len(t.Dims))
		for i, d := range t.Dims {
			dims[i] = d.String()
		}
		return "view<" + t.Elem.String() + ">[" + strings.Join(dims, ", ") + "]"
	case Ring:
		return "ring<" + strconv.Itoa(t.Depth) + " x " + shape + t.Elem.String() + suffix + ">"
	}
	return "void"
}

func shapeString(shape []int) string {
	var b strings.Builder
	for _, s := range shape {
		b.WriteString(strconv.Itoa(s))
		b.WriteByte('x')
	}
	return b.String()
}

// Check reports what is wrong with t taken alone: shape, rank, size.
func (t Type) Check() error {
	if t.Elem == NoElem || t.Elem >= numElems {
		return fmt.Errorf("type %s: no such element type", t)
	}
	if err := t.checkLayouts(); err != nil {
		return err
	}
	switch t.Kind {
	case Tile:
		return checkShape(t.Shape, 1)
	case Ring:
		if t.Depth < 1 || t.Depth > MaxDepth {
			return fmt.Errorf("ring depth %d: want 1 to %d", t.Depth, MaxDepth)
		}
		if len(t.Shape) == 0 {
			return fmt.Errorf("type %s: want buffers of rank 1 or more", t)
		}
		return checkShape(t.Shape, t.Depth)
	case View:
		return checkDims(t.Dims)
	}
	return fmt.Errorf("type %s: want a scalar, tile, view or ring", t)
}

// checkLayouts checks that layouts are where they belong and fit the shape.
func (t Type) checkLayouts() error {
	if l := t.Layout; l != nil && (!t.IsTile() || !slices.Equal(l.Shape(), t.Shape)) {
		return fmt.Errorf("a layout of shape %v for %s of shape %v: want a tile of that shape", l.Shape(), t.Elem, t.Shape)
	}
	if s := t.Shared; s != nil && (t.Kind != Ring || !slices.Equal(s.Shape(), t.Shape) || s.ElemBytes()*8 != t.Elem.MemoryBits()) {
		return fmt.Errorf("a shared layout of shape %v and %d bytes an element for %s of shape %v: want a ring of that shape",
			s.Shape(), s.ElemBytes(), t.Elem, t.Shape)
	}
	return nil
}

func checkShape(shape []int, times int) error {
	if len(shape) > MaxTileRank {
		return fmt.Errorf("a tile of rank %d: want at most %d", len(shape), MaxTileRank)
	}
	n := times
	for _, s := range shape {
		if s < 1 || s > MaxTileElements/n {
			return fmt.Errorf("tile shape %v: want sizes of 1 or more and at most %d elements", shape, MaxTileElements)
		}
		n *= s
	}
	return nil
}

func checkDims(dims []Dim) error {
	if len(dims) > MaxViewRank {
		return fmt.Errorf("a view of rank %d: want at most %d", len(dims), MaxViewRank)
	}
	for _, d := range dims {
		if d.Size < 0 || d.Size > MaxDim {
			return fmt.Errorf("view dimension %d: want 1 to %d", d.Size, MaxDim)
		}
	}
	return nil
}
