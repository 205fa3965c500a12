package vm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir/num"
)

// TestFusedEight: eight columns at a time are the columns one by one, with vector
// code and without, of all that tensor cores do and of every kind of number.
func TestFusedEight(t *testing.T) {
	vectors := vectorFused
	defer func() { vectorFused = vectors }()
	r := rand.New(rand.NewPCG(3, 1))
	ways := []fusedSum{
		{fraction: 25, kept: 23, step: 16}, {fraction: 24, kept: 23, step: 8}, {fraction: 23, kept: 23, step: 4},
		{fraction: 13, kept: 13, step: 32}, {fraction: 25, kept: 23, step: 16, half: true}, {fraction: 25, kept: 23, step: 16, apart: true},
	}
	for range 2000 {
		s := ways[r.IntN(len(ways))]
		s.a, s.b = significandsOf(num.F16), significandsOf(num.F16)
		k := s.step * (1 + r.IntN(2))
		odd := r.IntN(3) == 0 // with infinities and NaN
		draw := func(n int) []float32 {
			out := make([]float32, n)
			for i := range out {
				switch r.IntN(40) {
				case 0:
					out[i] = 0
				case 1:
					if odd {
						out[i] = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(3)]
					}
				default:
					out[i] = half(num.F16FromF64(r.NormFloat64() * math.Ldexp(1, r.IntN(20)-12)))
				}
			}
			return out
		}
		var tiles fusedTiles
		tiles.prepare(&s, draw(16*k), draw(8*k), 16, 8, k)
		tiles.sided.sideBySide(&tiles.b, 0, k)
		for row := range 16 {
			c := [eightColumns]float32(draw(8))
			var want [eightColumns]float32
			for col := range want {
				want[col] = tiles.dot(&s, c[col], row, col, k)
			}
			for _, vector := range []bool{false, vectors} {
				vectorFused = vector
				got := c
				tiles.row(&s, &got, row, k)
				require.Equal(t, bitsOf(want[:]), bitsOf(got[:]), "%+v, k %d, vectors %t", s, k, vector)
			}
		}
	}
}
