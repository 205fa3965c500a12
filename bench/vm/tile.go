package vm

// How floats are multiplied in the order of K: a row of A at a time by eight
// columns of B. Each product is rounded before it is added, so that the
// vector code gives the same bits.

// eightColumns is how much of B a row of A is multiplied by at a time.
const eightColumns = 8

// columnOrder is where each of eight columns lies in what sideBySide makes.
type columnOrder [eightColumns]int

var (
	inOrder   = columnOrder{0, 1, 2, 3, 4, 5, 6, 7}
	evenFirst = columnOrder{0, 4, 1, 5, 2, 6, 3, 7} // as fragments hold them
)

// sideBySide puts eight columns of k numbers each beside one another, k after k.
func sideBySide(out, b []float32, k int, order *columnOrder) {
	out = out[:eightColumns*k]
	for col, at := range order {
		for i, v := range b[col*k : col*k+k] {
			out[eightColumns*i+at] = v
		}
	}
}

// addRows adds the product of eight rows of A, k numbers each, and eight columns
// of B, side by side, to eight rows of sums: four of a row in lo and four in hi,
// the next row's step further on.
func addRows(lo, hi []float32, step int, a, b []float32, k int) {
	const rows = 8
	lo, hi = lo[:(rows-1)*step+4], hi[:(rows-1)*step+4]
	a, b = a[:rows*k], b[:eightColumns*k]
	if vectorTiles {
		addRowsVector(&lo[0], &hi[0], step, &a[0], &b[0], k)
		return
	}
	addRowsPortable(lo, hi, step, a, b, k)
}

// addRowsPortable is addRows. Eight sums stay in registers: two rows by four
// columns.
func addRowsPortable(lo, hi []float32, step int, a, b []float32, k int) {
	for row := 0; row < 8; row += 2 {
		a0, a1 := a[row*k:row*k+k], a[(row+1)*k:(row+1)*k+k]
		a1 = a1[:len(a0)]
		for side, sums := range [2][]float32{lo, hi} {
			s0, s1 := sums[row*step:row*step+4], sums[(row+1)*step:(row+1)*step+4]
			c00, c01, c02, c03 := s0[0], s0[1], s0[2], s0[3]
			c10, c11, c12, c13 := s1[0], s1[1], s1[2], s1[3]
			cols := b[4*side:]
			for i, x := range a0 {
				y := a1[i]
				v := cols[eightColumns*i : eightColumns*i+4]
				c00 += x * v[0]
				c10 += y * v[0]
				c01 += x * v[1]
				c11 += y * v[1]
				c02 += x * v[2]
				c12 += y * v[2]
				c03 += x * v[3]
				c13 += y * v[3]
			}
			s0[0], s0[1], s0[2], s0[3] = c00, c01, c02, c03
			s1[0], s1[1], s1[2], s1[3] = c10, c11, c12, c13
		}
	}
}
