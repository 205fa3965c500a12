package codegen

import (
	"math/bits"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// The raster: which tile a block computes, by its number. The first two axes may be walked in
// strips of rows, each column by column, so that blocks that run together share rows and
// columns. Along Hilbert's curve it is the same strips, with whole squares of them walked
// along the curve: then what runs together is about a square, however many blocks that are,
// and what runs next lies beside it. What is left of a strip behind its whole squares, and
// of rows behind whole strips, has the order that strips have, so that no number is skipped.
// Every other strip is walked from its end, as the last one left off there.

// stripOf is how many clusters of so many blocks a strip is high; 0 where there are none.
func stripOf(o ir.Order, axes, blocks int) int {
	switch {
	case axes < 2:
		return 0
	case o.Hilbert > 1:
		return o.Hilbert
	case o.Group > 1:
		return max(1, o.Group/blocks)
	}
	return 0
}

// tileAt computes the tile-space variables of the block's tile in a cluster of a number.
func (l *lowering) tileAt(id *simt.Value) {
	b := l.b
	axes, counts := l.k.Space, slices.Clone(l.space.counts)
	if len(axes) == 0 {
		return
	}
	blocks := l.cluster.blocks
	at := make([]*simt.Value, len(axes))
	first, strip := 0, stripOf(l.k.Order, len(axes), blocks)
	if strip > 0 {
		first = 2
	}
	for i := len(axes) - 1; i >= first; i-- {
		if i == 0 {
			at[i] = id
			break
		}
		at[i] = b.RemU(id, counts[i])
		id = b.DivU(id, counts[i])
	}
	if strip > 0 {
		at[0], at[1] = l.inStrips(id, counts[0], counts[1], strip)
	}
	at[0], counts[0] = b.Add(b.Mul(at[0], b.Const32(blocks)), l.space.rank), b.Mul(counts[0], b.Const32(blocks))
	for _, r := range l.k.Order.Reversed {
		at[r] = b.Sub(b.Sub(counts[r], b.Const32(1)), at[r])
	}
	for i, a := range axes {
		l.scalars[a.Var] = at[i].Named(a.Var.Name)
	}
}

// inStrips is the place of a number among rows and columns that are walked in strips.
func (l *lowering) inStrips(id, rows, cols *simt.Value, strip int) (i, j *simt.Value) {
	b := l.b
	// Of at most the rows there are, so that a strip has no more blocks than the grid.
	high := b.Min(rows, b.Const32(strip))
	width := b.Mul(high, cols)
	number := b.DivU(id, width)
	first := b.Mul(number, high)
	size := b.Min(b.Sub(rows, first), high)
	in := b.RemU(id, width)
	i, j = b.Add(first, b.RemU(in, size)), b.DivU(in, size)
	if l.k.Order.Hilbert < 2 {
		return i, j
	}
	last := b.Or(j, b.Const32(strip-1)) // column of the square
	whole := b.And(b.Cmp(simt.EQ, size, b.Const32(strip)), b.Cmp(simt.LT, last, cols))
	row, col := l.hilbert(in, bits.Len(uint(strip-1)))
	i = b.Select(whole, b.Add(first, row), i)
	j = b.Select(whole, b.Add(b.Sub(last, b.Const32(strip-1)), col), j)
	back := b.Cmp(simt.NE, b.And(number, b.Const32(1)), b.Const32(0))
	return i, b.Select(back, b.Sub(b.Sub(cols, b.Const32(1)), j), j)
}

// hilbert is the place in a square of 2^levels rows along Hilbert's curve of a number's low
// bits: see curve.
func (l *lowering) hilbert(number *simt.Value, levels int) (row, col *simt.Value) {
	b := l.b
	row, col = b.Const32(0), b.Const32(0)
	bit := func(i int) *simt.Value { return b.And(b.ShrU(number, b.Const32(i)), b.Const32(1)) }
	for i := range levels {
		right := bit(2*i + 1)
		down := b.Xor(bit(2*i), right)
		if i > 0 {
			flip := b.And(b.Sub(b.Const32(0), right), b.Const32(1<<i-1))
			top := b.Cmp(simt.EQ, down, b.Const32(0))
			row, col = b.Select(top, b.Xor(col, flip), row), b.Select(top, b.Xor(row, flip), col)
		}
		row, col = b.Add(row, b.Shl(down, b.Const32(i))), b.Add(col, b.Shl(right, b.Const32(i)))
	}
	return row, col
}

// curve is the place in a square of 2^levels rows of a number along Hilbert's curve, which
// begins in the first row's first column and ends in its last one. Level by level from the
// smallest squares: of each four, the two of the upper row are turned.
func curve(number int64, levels int) (row, col int64) {
	for i := range levels {
		right := number >> (2*i + 1) & 1
		down := number>>(2*i)&1 ^ right
		row, col = turned(row, col, right, down, i)
		row, col = row+down<<i, col+right<<i
	}
	return row, col
}

// alongCurve is the number of a place: the inverse of curve.
func alongCurve(row, col int64, levels int) int64 {
	number := int64(0)
	for i := levels - 1; i >= 0; i-- {
		right, down := col>>i&1, row>>i&1
		number = number<<2 | right<<1 | (down ^ right)
		row, col = turned(row&(1<<i-1), col&(1<<i-1), right, down, i)
	}
	return number
}

// turned is a place in a square of 2^level rows, turned as the curve is in one of four: rows
// and columns change places in the upper two, in the right one from the other end. It is its
// own inverse.
func turned(row, col, right, down int64, level int) (r, c int64) {
	if down != 0 {
		return row, col
	}
	flip := -right & (1<<level - 1)
	return col ^ flip, row ^ flip
}

// tile is the number of a tile in the order of the raster; at is overwritten.
func (s *PlanStep) tile(at []int64) int64 {
	if len(at) == 0 {
		return 0
	}
	counts := s.clusters()
	rank := at[0] % s.blocks
	at[0] /= s.blocks
	id := int64(0)
	rest := 0
	if strip := int64(stripOf(s.order, len(at), int(s.blocks))); strip > 0 {
		id, rest = s.stripsNumber(at[0], at[1], counts, strip), 2
	}
	for i := rest; i < len(at); i++ {
		id = id*counts[i] + at[i]
	}
	return id*s.blocks + rank
}

// stripsNumber is the number of a place among counts[0] rows and counts[1] columns that are
// walked in strips.
func (s *PlanStep) stripsNumber(i, j int64, counts []int64, strip int64) int64 {
	first := i / strip * strip
	size := min(counts[0]-first, strip)
	if s.order.Hilbert > 1 {
		if first/strip%2 != 0 {
			j = counts[1] - 1 - j
		}
		if j|(strip-1) < counts[1] && size == strip {
			n := alongCurve(i-first, j&(strip-1), bits.Len64(uint64(strip-1)))
			return first*counts[1] + j&^(strip-1)*strip + n
		}
	}
	return first*counts[1] + j*size + i - first
}

// tileOf is the point of the tile that a block, or several together, has first.
func (s *PlanStep) tileOf(block int64) []int {
	at := make([]int, len(s.counts))
	if len(at) == 0 {
		return at
	}
	counts := s.clusters()
	rank := block % s.blocks
	block /= s.blocks
	first, strip := 0, int64(stripOf(s.order, len(at), int(s.blocks)))
	if strip > 0 {
		first = 2
	}
	for i := len(at) - 1; i >= first; i-- {
		at[i] = int(block % counts[i])
		block /= counts[i]
	}
	if strip > 0 {
		i, j := s.inStrips(block, counts, strip)
		at[0], at[1] = int(i), int(j)
	}
	at[0] = at[0]*int(s.blocks) + int(rank)
	for _, r := range s.order.Reversed {
		at[r] = int(s.counts[r]) - 1 - at[r]
	}
	return at
}

// inStrips is the place of a number: the inverse of stripsNumber.
func (s *PlanStep) inStrips(number int64, counts []int64, strip int64) (i, j int64) {
	first := number / (strip * counts[1]) * strip
	size := min(counts[0]-first, strip)
	in := number - first*counts[1]
	i, j = in%size, in/size
	if s.order.Hilbert > 1 {
		if j|(strip-1) < counts[1] && size == strip {
			row, col := curve(in, bits.Len64(uint64(strip-1)))
			i, j = row, j&^(strip-1)+col
		}
		if first/strip%2 != 0 {
			j = counts[1] - 1 - j
		}
	}
	return first + i, j
}
