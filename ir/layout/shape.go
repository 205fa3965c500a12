package layout

import (
	"fmt"
	"slices"
)

// drop removes dimension d from every coordinate.
func (c Coord) drop(d int) Coord {
	low := c & (1<<(16*d) - 1)
	return low | c>>(16*d)>>16<<(16*d)
}

// insert puts a zero coordinate before dimension d.
func (c Coord) insert(d int) Coord {
	low := c & (1<<(16*d) - 1)
	return low | (c&^low)<<16
}

func (l *Layout) mapped(shape []int, f func(Coord) Coord) *Layout {
	m := &Layout{shape: shape, reg: make([]Coord, len(l.reg)), warp: make([]Coord, len(l.warp)), parts: l.parts, part: f(l.part)}
	for i, b := range l.reg {
		m.reg[i] = f(b)
	}
	for i, b := range l.lane {
		m.lane[i] = f(b)
	}
	for i, b := range l.warp {
		m.warp[i] = f(b)
	}
	return m
}

// Slice is the layout of what a reduction along dim leaves: the dimension is
// gone, registers that now hold the same element collapse into one, lanes and
// warps that differed along dim alone hold copies.
func (l *Layout) Slice(dim int) *Layout {
	m := l.mapped(slices.Delete(l.Shape(), dim, dim+1), func(c Coord) Coord { return c.drop(dim) })
	kept := m.reg[:0]
	var s span
	for _, b := range m.reg {
		if s.add(uint64(b), 0) {
			kept = append(kept, b)
		}
	}
	m.reg = kept
	return m.must()
}

// SliceTable maps each register of l to the register of l.Slice(dim), same
// thread, that holds its element's place in the slice.
func (l *Layout) SliceTable(dim int) []int {
	table, ok := Fetch(l.Slice(dim).Expand(dim), l)
	if !ok {
		panic("layout: a slice does not serve its parent")
	}
	return table
}

// Expand inserts a dimension of extent 1 before dimension dim (dim = Rank appends).
func (l *Layout) Expand(dim int) *Layout {
	if len(l.shape) == MaxRank {
		panic(fmt.Sprintf("layout: expand beyond rank %d", MaxRank))
	}
	return l.mapped(slices.Insert(l.Shape(), dim, 1), func(c Coord) Coord { return c.insert(dim) }).must()
}

// Transpose permutes dimensions: dimension d of the result is dimension perm[d]
// of l. Registers keep their elements, so the operation costs nothing; only the
// order of odd repeats may change (see Fetch for the table).
func (l *Layout) Transpose(perm []int) (*Layout, error) {
	if err := checkOrder(perm, len(l.shape)); err != nil {
		return nil, err
	}
	shape := make([]int, len(perm))
	for d, p := range perm {
		shape[d] = l.shape[p]
	}
	return l.mapped(shape, func(c Coord) Coord {
		var out Coord
		for d, p := range perm {
			out |= axis(d, c.At(p))
		}
		return out
	}).finish()
}

// Broadcast grows dimensions of extent 1 to shape; each thread holds all copies,
// in new highest register bits, last dimension lowest.
func (l *Layout) Broadcast(shape []int) (*Layout, error) {
	if len(shape) != len(l.shape) {
		return nil, fmt.Errorf("layout broadcast of %s to %s: want equal rank", shapeText(l.shape), shapeText(shape))
	}
	m := l.mapped(slices.Clone(shape), func(c Coord) Coord { return c })
	for d := len(shape) - 1; d >= 0; d-- {
		if shape[d] == l.shape[d] {
			continue
		}
		if l.shape[d] != 1 || shape[d] < 1 || shape[d] > MaxExtent {
			return nil, fmt.Errorf("layout broadcast of %s to %s: want 1 or the same extent in dimension %d", shapeText(l.shape), shapeText(shape), d)
		}
		for step := 1; step < pow2Part(shape[d]); step *= 2 {
			m.reg = append(m.reg, axis(d, step))
		}
	}
	return m.finish()
}

// Reshape regroups the row-major order of elements into new extents. Each extent
// is an odd count of power-of-two runs; the sequence of these factors must stay
// the same (128x80 can become 2x64x80 or 128x5x16, but not 128x16x5), otherwise
// the result is no layout and an error says so.
func (l *Layout) Reshape(shape []int) (*Layout, error) {
	if len(shape) > MaxRank {
		return nil, fmt.Errorf("layout of rank %d: want at most %d", len(shape), MaxRank)
	}
	for _, n := range shape {
		if n < 1 || n > MaxExtent {
			return nil, fmt.Errorf("layout reshape to %s: want extents from 1 to %d", shapeText(shape), MaxExtent)
		}
	}
	if !slices.Equal(factors(l.shape), factors(shape)) {
		return nil, fmt.Errorf("layout reshape of %s to %s: the odd factors do not line up", shapeText(l.shape), shapeText(shape))
	}
	if l.part != 0 && !slices.Equal(l.shape, shape) {
		return nil, fmt.Errorf("layout reshape of %s to %s: parts of the warps have an odd factor", shapeText(l.shape), shapeText(shape))
	}
	return l.mapped(slices.Clone(shape), func(c Coord) Coord {
		linear := 0
		for d := range l.shape {
			linear = linear*l.Sub(d) + c.At(d)
		}
		var out Coord
		for d := len(shape) - 1; d >= 0; d-- {
			sub := pow2Part(shape[d])
			out |= axis(d, linear%sub)
			linear /= sub
		}
		return out
	}).finish()
}

// factors lists the odd and power-of-two factors of the extents from the slowest
// varying, neighbours of one sort merged; odd ones negative.
func factors(shape []int) []int {
	var out []int
	push := func(n int, odd bool) {
		switch last := len(out) - 1; {
		case n == 1:
		case odd && last >= 0 && out[last] < 0:
			out[last] *= n
		case odd:
			out = append(out, -n)
		case last >= 0 && out[last] > 0:
			out[last] *= n
		default:
			out = append(out, n)
		}
	}
	for _, n := range shape {
		push(n/pow2Part(n), true)
		push(pow2Part(n), false)
	}
	return out
}

// Fetch says from which of its own registers a thread that holds src can fill
// dst, a layout of the same shape or of one that extents of 1 in src are
// broadcast to: table[dst register] = src register. ok is false if some element
// lies in another thread.
func Fetch(src, dst *Layout) (table []int, ok bool) {
	if !broadcasts(src.shape, dst.shape) || len(src.warp) != len(dst.warp) || src.parts != dst.parts {
		return nil, false
	}
	var keep Coord
	for d, n := range src.shape {
		if n == dst.shape[d] {
			keep |= axis(d, 0xffff)
		}
	}
	for i, b := range src.lane {
		if b != dst.lane[i]&keep {
			return nil, false
		}
	}
	for i, b := range src.warp {
		if b != dst.warp[i]&keep {
			return nil, false
		}
	}
	if src.part != dst.part&keep {
		return nil, false
	}
	var s span
	for i, b := range src.reg {
		s.add(uint64(b), 1<<i)
	}
	from := make([]int, len(dst.reg))
	for i, b := range dst.reg {
		rest, bits := s.reduce(uint64(b & keep))
		if rest != 0 {
			return nil, false
		}
		from[i] = int(bits)
	}
	return registerTable(src, dst, from, keep), true
}

func broadcasts(from, to []int) bool {
	if len(from) != len(to) {
		return false
	}
	for d, n := range from {
		if n != to[d] && n != 1 {
			return false
		}
	}
	return true
}

// registerTable numbers the registers of dst in terms of src's, given where each
// register bit of dst comes from and which dimensions both share.
func registerTable(src, dst *Layout, from []int, keep Coord) []int {
	table := make([]int, dst.Registers())
	n := len(dst.reg)
	for r := range 1 << n {
		if r > 0 {
			low := r & -r
			table[r] = table[r^low] ^ from[log2(low)]
		}
	}
	for c := range dst.copies {
		base := src.copyOf(dst.repeatCoord(c)&keep) << len(src.reg)
		for r := range 1 << n {
			table[c<<n|r] = base | table[r]
		}
	}
	return table
}

// copyOf is the inverse of repeatCoord.
func (l *Layout) copyOf(c Coord) int {
	n := 0
	for d := range l.shape {
		if r := l.repeats(d); r > 1 {
			n = n*r + c.At(d)/l.Sub(d)
		}
	}
	return n
}
