package layout

import (
	"fmt"
	"slices"
)

// filler hands out the still uncovered power-of-two coordinate bits of a tile.
type filler struct {
	l    *Layout
	next []int // next uncovered step of each dimension
}

func newFiller(shape []int) (*filler, error) {
	if len(shape) > MaxRank {
		return nil, fmt.Errorf("layout of rank %d: want at most %d", len(shape), MaxRank)
	}
	f := &filler{l: &Layout{shape: slices.Clone(shape)}, next: make([]int, len(shape))}
	for d, n := range shape {
		if n < 1 || n > MaxExtent {
			return nil, fmt.Errorf("layout extent %d of dimension %d: want 1 to %d", n, d, MaxExtent)
		}
		f.next[d] = 1
	}
	return f, nil
}

// take returns the next basis along d, or zero when d is covered.
func (f *filler) take(d int) Coord {
	step := f.next[d]
	if step >= f.l.Sub(d) {
		return 0
	}
	f.next[d] = step * 2
	return axis(d, step)
}

// takeFirst returns the next basis along the first dimension of order that has one.
func (f *filler) takeFirst(order []int) Coord {
	for _, d := range order {
		if b := f.take(d); b != 0 {
			return b
		}
	}
	return 0
}

func (f *filler) register(b Coord) {
	if b != 0 {
		f.l.reg = append(f.l.reg, b)
	}
}

// registersUpTo gives registers dimension d until only `left` of it is uncovered.
func (f *filler) registersUpTo(d, left int) {
	for f.next[d]*left < f.l.Sub(d) {
		f.register(f.take(d))
	}
}

func (f *filler) fill(order []int) {
	for b := f.takeFirst(order); b != 0; b = f.takeFirst(order) {
		f.register(b)
	}
}

// Blocked spreads a tile over a CTA for wide memory accesses. Dimensions come
// from order, fastest first: each thread holds `vector` consecutive elements of
// order[0] (fewer if its power-of-two factor is less), lanes follow, then warps,
// and what is left repeats in registers. The odd factor of the warps takes the same one of
// the slowest dimension that has it. In a tile smaller than the CTA the remaining lanes and
// warps hold copies.
func Blocked(shape, order []int, vector, warps int) (*Layout, error) {
	f, err := newFiller(shape)
	if err != nil {
		return nil, err
	}
	if err := checkOrder(order, len(shape)); err != nil {
		return nil, err
	}
	if vector < 1 || vector != pow2Part(vector) {
		return nil, fmt.Errorf("blocked layout with vectors of %d elements: want a power of two", vector)
	}
	if err := checkWarps(warps); err != nil {
		return nil, err
	}
	if len(order) > 0 {
		for n := 1; n < vector; n *= 2 {
			f.register(f.take(order[0]))
		}
	}
	for i := range f.l.lane {
		f.l.lane[i] = f.takeFirst(order)
	}
	for n := 1; n < pow2Part(warps); n *= 2 {
		f.l.warp = append(f.l.warp, f.takeFirst(order))
	}
	slowest := slices.Clone(order)
	slices.Reverse(slowest)
	f.parts(warps, slowest)
	f.fill(order)
	return f.l.finish()
}

// parts gives the odd factor of a number of warps the first dimension of order whose odd
// factor is the same; where none is, the parts hold copies.
func (f *filler) parts(warps int, order []int) {
	f.l.parts = warps / pow2Part(warps)
	for _, d := range order {
		if n := f.l.shape[d]; f.l.parts > 1 && n/pow2Part(n) == f.l.parts {
			f.l.part = axis(d, pow2Part(n))
			return
		}
	}
}

// Spread is the layout in which the lanes that hold copies share the registers out: as
// many of the registers' elements as there are copies go to different lanes. Each element
// stays in its warp.
func (l *Layout) Spread() *Layout {
	reg, lane := l.RegBases(), l.LaneBases()
	for i, b := range lane {
		if n := len(reg); n > 0 && !slices.ContainsFunc(b, func(x int) bool { return x != 0 }) {
			lane[i], reg = reg[n-1], reg[:n-1]
		}
	}
	s, err := New(l.shape, reg, lane, l.WarpBases(), nil)
	if err != nil {
		panic(err) // the same bases, at other places
	}
	s.parts, s.part = l.parts, l.part
	return s.must()
}

func checkOrder(order []int, rank int) error {
	if len(order) != rank {
		return fmt.Errorf("layout order %v: want a permutation of %d dimensions", order, rank)
	}
	seen := 0
	for _, d := range order {
		if d < 0 || d >= rank || seen>>d&1 == 1 {
			return fmt.Errorf("layout order %v: want a permutation of %d dimensions", order, rank)
		}
		seen |= 1 << d
	}
	return nil
}

func checkWarps(n int) error {
	if n < 1 || n > MaxWarps {
		return fmt.Errorf("layout over %d warps: want 1 to %d", n, MaxWarps)
	}
	return nil
}

// Replicated gives every thread the whole tile; registers run in row-major order.
func Replicated(shape []int, warps int) (*Layout, error) {
	f, err := newFiller(shape)
	if err != nil {
		return nil, err
	}
	if err := checkWarps(warps); err != nil {
		return nil, err
	}
	f.l.warp = make([]Coord, log2(warps))
	f.l.parts = warps / pow2Part(warps)
	for d := len(shape) - 1; d >= 0; d-- {
		f.fill([]int{d})
	}
	return f.l.finish()
}
