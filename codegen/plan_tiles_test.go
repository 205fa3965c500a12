package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPointInvertsBlock takes every block of random tile spaces to its point and back.
func TestPointInvertsBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		s := PlanStep{Grid: 1, blocks: 1 << r.IntN(3)}
		for range 1 + r.IntN(4) {
			n := 1 + r.Int64N(7)
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
		if r.IntN(2) == 0 {
			s.order.Group = r.IntN(6)
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
