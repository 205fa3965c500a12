package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
)

// TestPointInvertsBlock takes every block of random tile spaces to its point and back.
func TestPointInvertsBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		s := PlanStep{Grid: 1, blocks: 1 << r.IntN(3)}
		for range 1 + r.IntN(4) {
			n := 1 + r.Int64N(9)
			if len(s.counts) == 0 {
				n *= s.blocks
			}
			s.counts = append(s.counts, n)
			s.Grid *= n
		}
		if r.IntN(3) == 0 {
			s.perTile = 1 << r.IntN(4)
			s.Grid *= s.perTile
		}
		switch r.IntN(3) {
		case 0:
			s.order.Group = r.IntN(6)
		case 1:
			s.order.Hilbert = 1 << r.IntN(4)
		}
		for a := range s.counts {
			if r.IntN(3) == 0 {
				s.order.Reversed = append(s.order.Reversed, a)
			}
		}
		for block := range s.Grid {
			point := s.Point(block)
			back, err := s.Block(point)
			require.NoError(t, err)
			require.Equal(t, block, back, "%v of %v, %+v", point, s.counts, s.order)
		}
	}
}

// TestCurve: each place of a square along Hilbert's curve is beside the one before, from the
// first row's first column to its last one, where the next square begins; and every other
// strip goes back.
func TestCurve(t *testing.T) {
	const side, squares = 8, 3
	s := PlanStep{Grid: 2 * squares * side * side, blocks: 1, counts: []int64{2 * side, squares * side}, order: ir.Order{Hilbert: side}}
	last := []int{0, -1}
	for block := range s.Grid / 2 {
		at := s.Point(block)
		require.Equal(t, 1, distance(last, at), "%v after %v", at, last)
		last = at
	}
	require.Equal(t, []int{0, squares*side - 1}, last)
	require.Equal(t, []int{side, squares*side - 1}, s.Point(s.Grid/2))
	require.Equal(t, []int{side, 0}, s.Point(s.Grid-1))
}

func distance(p, q []int) int {
	d := 0
	for i := range p {
		d += max(p[i]-q[i], q[i]-p[i])
	}
	return d
}
