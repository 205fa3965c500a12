package eval

import (
	"math"

	"github.com/kgen-dev/kgen/ir"
)

// class says in which slice elements of a type are kept while computing.
type class uint8

const (
	inF32 class = iota // f16, bf16, f32 and narrower floats, each a value of its type
	inF64
	inI32 // i1 as 0 and 1, i4, i8, i32 sign-extended
	inI64
)

func classOf(e ir.Elem) class {
	switch {
	case e == ir.F64:
		return inF64
	case e == ir.I64:
		return inI64
	case e.IsFloat():
		return inF32
	}
	return inI32
}

// store holds a tile's elements, row-major, in the slice of its class.
type store struct {
	class class
	f     []float32
	d     []float64
	i     []int32
	l     []int64
}

func newStore(c class, n int) *store {
	s := &store{class: c}
	switch c {
	case inF32:
		s.f = make([]float32, n)
	case inF64:
		s.d = make([]float64, n)
	case inI32:
		s.i = make([]int32, n)
	case inI64:
		s.l = make([]int64, n)
	}
	return s
}

func (s *store) len() int { return len(s.f) + len(s.d) + len(s.i) + len(s.l) }

// copyRun copies n elements from src[from..] to s[to..]; classes agree.
func (s *store) copyRun(to int, src *store, from, n int) {
	switch s.class {
	case inF32:
		copy(s.f[to:to+n], src.f[from:from+n])
	case inF64:
		copy(s.d[to:to+n], src.d[from:from+n])
	case inI32:
		copy(s.i[to:to+n], src.i[from:from+n])
	case inI64:
		copy(s.l[to:to+n], src.l[from:from+n])
	}
}

// fillRun sets s[to..to+n) to element from of src.
func (s *store) fillRun(to, n int, src *store, from int) {
	switch s.class {
	case inF32:
		fill(s.f[to:to+n], src.f[from])
	case inF64:
		fill(s.d[to:to+n], src.d[from])
	case inI32:
		fill(s.i[to:to+n], src.i[from])
	case inI64:
		fill(s.l[to:to+n], src.l[from])
	}
}

func fill[T any](xs []T, x T) {
	for i := range xs {
		xs[i] = x
	}
}

// poison makes every element NaN, or a large number.
func (s *store) poison(e ir.Elem) {
	fill(s.f, float32(math.NaN()))
	fill(s.d, math.NaN())
	fill(s.l, 0x5a5a5a5a5a5a5a5a)
	switch e {
	case ir.I1:
		fill(s.i, 1)
	case ir.I4:
		fill(s.i, 5)
	case ir.I8:
		fill(s.i, 0x5a)
	default:
		fill(s.i, 0x5a5a5a5a)
	}
}

// sub returns a store that shares n elements from `from` on.
func (s *store) sub(from, n int) store {
	out := store{class: s.class}
	switch s.class {
	case inF32:
		out.f = s.f[from : from+n]
	case inF64:
		out.d = s.d[from : from+n]
	case inI32:
		out.i = s.i[from : from+n]
	case inI64:
		out.l = s.l[from : from+n]
	}
	return out
}
