package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// affine is an integer that depends linearly on scalar values and on a tile
// element's position: c + sum of k*v over terms + sum of axis[d] * index along d.
// Sums of indices are taken not to leave i32.
type affine struct {
	c     int64
	terms []term  // by ascending ID, no zero factors
	axis  []int64 // one factor for each axis of the tile; none for a scalar
}

type term struct {
	v *ir.Value
	k int64
}

func (a affine) plus(b affine, factor int64) affine {
	r := affine{c: a.c + factor*b.c, axis: slices.Clone(a.axis)}
	for d, k := range b.axis {
		if d >= len(r.axis) {
			r.axis = append(r.axis, 0)
		}
		r.axis[d] += factor * k
	}
	i := 0
	for _, t := range b.terms {
		for i < len(a.terms) && a.terms[i].v.ID < t.v.ID {
			r.terms = append(r.terms, a.terms[i])
			i++
		}
		k := factor * t.k
		if i < len(a.terms) && a.terms[i].v == t.v {
			k += a.terms[i].k
			i++
		}
		if k != 0 {
			r.terms = append(r.terms, term{t.v, k})
		}
	}
	r.terms = append(r.terms, a.terms[i:]...)
	return r
}

func (a affine) times(n int64) affine {
	if n == 0 {
		return affine{axis: make([]int64, len(a.axis))}
	}
	return affine{axis: make([]int64, len(a.axis))}.plus(a, n)
}

// equal tells whether a and b are the same sum.
func (a affine) equal(b affine) bool {
	d := a.plus(b, -1)
	return d.c == 0 && d.constant()
}

// constant tells whether a is one number.
func (a affine) constant() bool {
	return len(a.terms) == 0 && !slices.ContainsFunc(a.axis, func(k int64) bool { return k != 0 })
}

// factor is v's factor in a.
func (a affine) factor(v *ir.Value) int64 {
	for _, t := range a.terms {
		if t.v == v {
			return t.k
		}
	}
	return 0
}

// without is a with v's term removed.
func (a affine) without(v *ir.Value) affine {
	a.terms = slices.DeleteFunc(slices.Clone(a.terms), func(t term) bool { return t.v == v })
	return a
}

// least is a lower bound of a over a tile of the given shape, as a scalar.
func (a affine) least(shape []int) affine {
	r := affine{c: a.c, terms: a.terms}
	for d, k := range a.axis {
		if k < 0 {
			r.c += k * int64(shape[d]-1)
		}
	}
	return r
}

// affineOf describes an i32 value; a scalar that is nothing better is a term of
// its own. ok is false for a tile that is not linear in its indices.
func affineOf(v *ir.Value) (a affine, ok bool) {
	w := affineWalk{left: mostAffineOps}
	return w.of(v)
}

// mostAffineOps bounds the operations that affineOf looks through, some of them
// repeatedly: what is behind them counts as a term.
const mostAffineOps = 100

type affineWalk struct{ left int }

func (w *affineWalk) of(v *ir.Value) (a affine, ok bool) {
	if v.Type.Elem != ir.I32 {
		return a, false
	}
	if o := v.Def; o != nil && w.left > 0 {
		w.left--
		if a, ok = w.op(v, o); ok {
			return a, true
		}
	}
	if v.Type.IsScalar() {
		return affine{terms: []term{{v, 1}}}, true
	}
	return a, false
}

func (w *affineWalk) op(v *ir.Value, o *ir.Op) (a affine, ok bool) {
	rank := v.Type.Rank()
	switch o.Code {
	case ir.OpConst:
		return affine{c: o.Int, axis: make([]int64, rank)}, true
	case ir.OpIota:
		a = affine{axis: make([]int64, rank)}
		a.axis[o.Axis] = 1
		return a, true
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		return w.binary(o)
	case ir.OpSplat, ir.OpBroadcast:
		if a, ok = w.of(o.Args[0]); ok {
			along := make([]int64, rank)
			for d, n := range o.Args[0].Type.Shape {
				if n > 1 { // elsewhere the index stays 0
					along[d] = a.axis[d]
				}
			}
			a.axis = along
		}
		return a, ok
	case ir.OpExpand:
		if a, ok = w.of(o.Args[0]); ok {
			a.axis = slices.Insert(slices.Clone(a.axis), o.Axis, 0)
		}
		return a, ok
	}
	return a, false
}

func (w *affineWalk) binary(o *ir.Op) (affine, bool) {
	x, okX := w.of(o.Args[0])
	y, okY := w.of(o.Args[1])
	if !okX || !okY {
		return affine{}, false
	}
	var a affine
	switch {
	case o.Code == ir.OpAdd:
		a = x.plus(y, 1)
	case o.Code == ir.OpSub:
		a = x.plus(y, -1)
	case y.constant():
		a = x.times(y.c)
	case x.constant():
		a = y.times(x.c)
	default:
		return affine{}, false
	}
	return a, a.fits()
}

// fits tells whether all numbers in a are i32: beyond that the program's own arithmetic
// wraps.
func (a affine) fits() bool {
	fits := func(n int64) bool { return n == int64(int32(n)) }
	return fits(a.c) && !slices.ContainsFunc(a.terms, func(t term) bool { return !fits(t.k) }) &&
		!slices.ContainsFunc(a.axis, func(k int64) bool { return !fits(k) })
}

// emit appends what computes a, which must be free of tile indices.
func (e *editor) emit(a affine) *ir.Value {
	var sum *ir.Value
	for _, t := range a.terms {
		v := e.times(t.v, t.k)
		if sum == nil {
			sum = v
		} else {
			sum = e.binary(ir.OpAdd, sum, v)
		}
	}
	if sum == nil {
		return e.int(a.c)
	}
	return e.plus(sum, a.c)
}
