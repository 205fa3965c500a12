package eval

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/ir"
)

// view is a part of a tensor.
type view struct {
	elem    ir.Elem
	mem     []byte
	at      int // of element (0, 0, ..), in elements
	sizes   []int
	strides []int
}

func newView(t *Tensor) *view {
	return &view{elem: t.Elem, mem: t.Data, at: t.Offset, sizes: t.Shape, strides: t.Strides}
}

// access is an access with its operands evaluated: it can be carried out later.
type access struct {
	view  *view
	shape []int     // of the tile
	base  []int     // per dimension: the scalar index, 0 where rows hold it
	rows  [][]int32 // per dimension: row numbers, nil where the index is a scalar
	limit int
	dims  []int // the dimension of each tile axis, -1 for the row axis
	mask  []int32
	fill  *store // nil: 0
}

// access evaluates the operands of an access of a tile of the given shape.
func (m *machine) access(o *ir.Op, shape []int) *access {
	a := &access{view: m.cells[o.View().ID].view, shape: shape, limit: math.MaxInt, dims: o.Dims}
	indices := o.Indices()
	a.base, a.rows = make([]int, len(indices)), make([][]int32, len(indices))
	for d, v := range indices {
		if v.Type.IsScalar() {
			a.base[d] = m.index(v)
		} else {
			a.rows[d] = m.get(v).i
		}
	}
	if o.Rows() != nil {
		a.dims = append([]int{-1}, o.Dims...)
	}
	if v := o.Operand("limit"); v != nil {
		a.limit = m.index(v)
	}
	if v := o.Operand("mask"); v != nil {
		a.mask = m.get(v).i
	}
	if v := o.Operand("fill"); v != nil {
		a.fill = m.get(v)
	}
	return a
}

// keep copies what later operations would overwrite.
func (a *access) keep() {
	for d, rows := range a.rows {
		if rows != nil {
			a.rows[d] = append([]int32(nil), rows...)
		}
	}
	a.mask = append([]int32(nil), a.mask...)
	if a.fill != nil {
		f := newStore(a.fill.class, 1)
		f.copyRun(0, a.fill, 0, 1)
		a.fill = f
	}
}

// run is a run of tile elements along the last axis: elements lo to hi-1 of its n
// are inside, element lo at place `at` of the memory.
type run struct {
	tile, n    int // first element and length in the tile
	lo, hi     int
	at, stride int
}

// each calls f for every run of the tile.
func (a *access) each(f func(r run)) {
	rank := len(a.shape)
	if rank == 0 {
		r := run{n: 1}
		if at, ok := a.place(nil); ok {
			r.hi, r.at = 1, at
		}
		f(r)
		return
	}
	outer := make([]int, rank-1)
	n := a.shape[rank-1]
	for tile := 0; ; tile += n {
		if a.dims[rank-1] < 0 { // rows one by one
			for i := range n {
				r := run{tile: tile + i, n: 1}
				if at, ok := a.place([]int{i}); ok {
					r.hi, r.at = 1, at
				}
				f(r)
			}
		} else {
			f(a.lastAxis(tile, outer, n))
		}
		if !next(outer, a.shape[:rank-1]) {
			return
		}
	}
}

// place returns where the element at the given coordinates of all axes but the
// last spanned ones is; ok is false if it is outside.
func (a *access) place(at []int) (int, bool) {
	place := a.view.at
	for d, size := range a.view.sizes {
		x := a.base[d]
		for axis, dim := range a.dims[:len(at)] {
			switch {
			case dim == d:
				x += at[axis]
			case dim < 0 && at[axis] >= a.limit:
				return 0, false
			case dim < 0 && a.rows[d] != nil:
				x = int(a.rows[d][at[axis]])
			}
		}
		if len(at) < len(a.dims) && a.dims[len(at)] == d {
			continue // the last axis's, which lastAxis adds
		}
		if x < 0 || x >= size {
			return 0, false
		}
		place += x * a.view.strides[d]
	}
	return place, true
}

// lastAxis returns the run at the given coordinates of the axes before the last.
func (a *access) lastAxis(tile int, outer []int, n int) run {
	r := run{tile: tile, n: n}
	d := a.dims[len(outer)]
	at, ok := a.place(outer)
	if !ok {
		return r
	}
	r.lo = min(max(-a.base[d], 0), n)
	r.hi = max(min(a.view.sizes[d]-a.base[d], n), r.lo)
	r.stride = a.view.strides[d]
	r.at = at + (a.base[d]+r.lo)*r.stride
	return r
}

// load reads the tile.
func (a *access) load(dst *store) {
	zero := newStore(dst.class, 1)
	if a.fill == nil {
		a.fill = zero
	}
	a.each(func(r run) {
		dst.fillRun(r.tile, r.lo, a.fill, 0)
		dst.fillRun(r.tile+r.hi, r.n-r.hi, a.fill, 0)
		dst.decode(a.view.elem, a.view.mem, r.at, r.stride, r.tile+r.lo, r.hi-r.lo)
	})
	for i, on := range a.mask {
		if on == 0 {
			dst.copyRun(i, a.fill, 0, 1)
		}
	}
}

// touched calls f for every element inside and not masked off, with its place in
// the tile and in the memory.
func (a *access) touched(f func(tile, at int)) {
	a.each(func(r run) {
		for i := r.lo; i < r.hi; i++ {
			if a.mask == nil || a.mask[r.tile+i] != 0 {
				f(r.tile+i, r.at+(i-r.lo)*r.stride)
			}
		}
	})
}

// store writes the tile.
func (a *access) store(src *store) {
	if a.mask != nil {
		a.touched(func(tile, at int) { src.encode(a.view.elem, a.view.mem, at, 1, tile, 1) })
		return
	}
	a.each(func(r run) {
		src.encode(a.view.elem, a.view.mem, r.at, r.stride, r.tile+r.lo, r.hi-r.lo)
	})
}

func (m *machine) load(o *ir.Op, dst *store) error {
	m.access(o, o.Results[0].Type.Shape).load(dst)
	return nil
}

func (m *machine) store(o *ir.Op) error {
	v := o.Operand("value")
	m.access(o, v.Type.Shape).store(m.get(v))
	return nil
}

// atomic combines element by element, in the order of the tile.
func (m *machine) atomic(o *ir.Op, dst *store) error {
	v := o.Operand("value")
	a, src := m.access(o, v.Type.Shape), m.get(v)
	dst.copyRun(0, newStore(dst.class, dst.len()), 0, dst.len())
	sum := newStore(dst.class, 1)
	var failed error
	a.touched(func(tile, at int) {
		dst.decode(a.view.elem, a.view.mem, at, 1, tile, 1)
		old, x := dst.sub(tile, 1), src.sub(tile, 1)
		sum.copyRun(0, &x, 0, 1)
		if o.Combine != ir.Exchange {
			if err := pairwise(combiners[o.Combine], a.view.elem, sum, &old, &x); err != nil {
				failed = err
			}
		}
		sum.encode(a.view.elem, a.view.mem, at, 1, 0, 1)
	})
	return failed
}

// subview cuts a view.
func (m *machine) subview(o *ir.Op) error {
	v := m.cells[o.View().ID].view
	out := &view{elem: v.elem, mem: v.mem, at: v.at}
	indices, extents := o.Indices(), o.Operands("extents")
	for d, x := range indices {
		i, last := m.index(x), v.sizes[d]-1
		kept := -1
		for j, dim := range o.Dims {
			if dim == d {
				kept, last = j, v.sizes[d]
			}
		}
		if i < 0 || i > last {
			return fmt.Errorf("index %d of dimension %d: want 0 to %d", i, d, last)
		}
		if kept < 0 || i < v.sizes[d] {
			out.at += i * v.strides[d]
		}
	}
	for j, d := range o.Dims {
		rest := v.sizes[d] - m.index(indices[d])
		out.sizes = append(out.sizes, max(min(m.index(extents[j]), rest), 0))
		out.strides = append(out.strides, v.strides[d])
	}
	m.cells[o.Results[0].ID].view = out
	return nil
}

// flag runs await and signal. Tiles run one after another, so a flag that is not
// set by now never will be.
func (m *machine) flag(o *ir.Op) error {
	v := m.cells[o.View().ID].view
	at := v.at
	for d, x := range o.Indices() {
		i := m.index(x)
		if i < 0 || i >= v.sizes[d] {
			return fmt.Errorf("index %d of dimension %d: want 0 to %d", i, d, v.sizes[d]-1)
		}
		at += i * v.strides[d]
	}
	want := m.get(o.Operand("value"))
	if o.Code == ir.OpSignal {
		want.encode(ir.I32, v.mem, at, 1, 0, 1)
		return nil
	}
	have := newStore(inI32, 1)
	for {
		have.decode(ir.I32, v.mem, at, 1, 0, 1)
		if have.i[0] == want.i[0] {
			return nil
		}
		if !m.role.pause() {
			return fmt.Errorf("the flag is %d and no tile before this one sets it to %d", have.i[0], want.i[0])
		}
	}
}
