package vm

import "math"

// How tensor cores' sums are computed: a row of A by eight columns of B at a time,
// with vector code where there is some. Nothing is rounded but where the tensor core
// rounds, so that the order doesn't matter.

// How far fusedAdd came.
const (
	notAdded = iota // c or a product has an infinity or NaN
	added
	addedAndRounded
)

// sumsPortable are the sums of c and n products before they are rounded, unless there
// are infinities or NaN: a's exponents and x of a row, b's and y of eight columns side
// by side. It returns the largest exponents that it found.
func (s *fusedSum) sumsPortable(c *[eightColumns]float32, sums *[eightColumns]float64, a, b []int32, x, y []float64) (tops [eightColumns]int32) {
	for j, v := range c {
		tops[j] = significandsOf32.exponent(v)
	}
	for i, e := range a {
		for j, f := range b[eightColumns*i:][:eightColumns] {
			tops[j] = max(tops[j], e+f)
		}
	}
	for j, top := range tops {
		if top >= notFinite-1<<10 {
			continue
		}
		unit := power(int32(s.fraction) - top)
		sum := math.Trunc(float64(c[j]) * unit)
		for i, v := range x {
			sum += math.Trunc(v * y[eightColumns*i+j] * unit)
		}
		sums[j] = sum * power(top-int32(s.fraction))
	}
	return tops
}

// addEight is add for eight columns: c[j] + x*y[j].
func (s *fusedSum) addEight(c *[eightColumns]float32, a, b []int32, x, y []float64) {
	n := len(a)
	b, x, y = b[:eightColumns*n], x[:n], y[:eightColumns*n]
	var sums [eightColumns]float64
	if vectorFused {
		switch done := fusedAdd(c, &sums, &a[0], &b[0], &x[0], &y[0], n, s.fraction, s.keptBits()); {
		case done == addedAndRounded && !s.half:
			return
		case done != notAdded:
			for j, v := range sums {
				c[j] = s.round(v)
			}
			return
		}
	}
	tops := s.sumsPortable(c, &sums, a, b, x, y)
	odd := false
	for j, top := range tops {
		if top >= notFinite-1<<10 {
			odd = true
			continue
		}
		c[j] = s.round(sums[j])
	}
	if odd {
		specialEight(c, &tops, x, y)
	}
}

// specialEight are the sums of those of eight columns that have infinities or NaN.
func specialEight(c *[eightColumns]float32, tops *[eightColumns]int32, x, y []float64) {
	column := make([]float64, len(x))
	for j, top := range tops {
		if top < notFinite-1<<10 {
			continue
		}
		for i := range column {
			column[i] = y[eightColumns*i+j]
		}
		c[j] = special(c[j], x, column)
	}
}

// dotEight is dot for eight columns.
func (s *fusedSum) dotEight(c *[eightColumns]float32, a, b []int32, x, y []float64) {
	first := *c
	if s.apart {
		*c = [eightColumns]float32{}
	}
	for k := 0; k < len(a); k += s.step {
		end := min(k+s.step, len(a))
		s.addEight(c, a[k:end], b[eightColumns*k:eightColumns*end], x[k:end], y[eightColumns*k:eightColumns*end])
	}
	if s.apart {
		for j := range c {
			c[j] = s.joined(first[j], c[j])
		}
	}
}

// sideBySide puts the eight columns from a first one on beside one another.
func (m *fusedMatrix) sideBySide(from *fusedMatrix, first, k int) {
	m.exponents, m.values = grown(m.exponents, eightColumns*k), grown(m.values, eightColumns*k)
	for j := range eightColumns {
		at := (first + j) * k
		for i, e := range from.exponents[at : at+k] {
			m.exponents[eightColumns*i+j] = e
		}
		for i, v := range from.values[at : at+k] {
			m.values[eightColumns*i+j] = v
		}
	}
}

// grown is a list of n, the old one where it is long enough.
func grown[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	return list[:n]
}

// row adds the product of a row and the eight columns side by side.
func (t *fusedTiles) row(s *fusedSum, c *[eightColumns]float32, row, k int) {
	s.dotEight(c, t.a.exponents[row*k:][:k], t.sided.exponents, t.a.values[row*k:][:k], t.sided.values)
}

// multiply is multiply as tensor cores do it, of rows that prepareRows took.
func (s *fusedSum) multiply(t *fusedTiles, f *fragments, b []float32, rows, k int) {
	t.b.prepare(s, s.b, b, tileN, k)
	t.addToFragments(s, f, rows, k)
}

// addToFragments adds the product of rows and eight columns that prepare took.
func (t *fusedTiles) addToFragments(s *fusedSum, f *fragments, rows, k int) {
	t.sided.sideBySide(&t.b, 0, k)
	for row := range rows {
		even, odd := &f[2*(row>>3)], &f[2*(row>>3)+1] // columns, of each lane two neighbours
		lanes := 4 * (row & 7)
		var c [eightColumns]float32
		for j := range eightColumns / 2 {
			c[2*j], c[2*j+1] = even[lanes+j], odd[lanes+j]
		}
		t.row(s, &c, row, k)
		for j := range eightColumns / 2 {
			even[lanes+j], odd[lanes+j] = c[2*j], c[2*j+1]
		}
	}
}

// addTo adds the product of rows and columns that prepare took to sums, row by row.
func (t *fusedTiles) addTo(s *fusedSum, sums []float32, cols, k int) {
	for first := 0; first < cols; first += eightColumns {
		t.sided.sideBySide(&t.b, first, k)
		for row := range len(sums) / cols {
			t.row(s, (*[eightColumns]float32)(sums[row*cols+first:]), row, k)
		}
	}
}
