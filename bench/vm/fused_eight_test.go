package vm

import (
	"math"
	"math/big"
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
		format, spread := num.F16, 20
		if !s.apart && r.IntN(4) == 0 {
			format, spread = num.BF16, 250 // sums beyond f32's normal numbers
		}
		s.a, s.b = significandsOf(format), significandsOf(format)
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
					out[i] = float32(format.Decode(format.Encode(r.NormFloat64()*math.Ldexp(1, r.IntN(spread)-3*spread/5), num.Even, false)))
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

// TestFusedRound: a sum becomes the number of f32 at or next to it towards zero, of all
// its bits or of those that tensor cores keep.
func TestFusedRound(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for range 20000 {
		s := fusedSum{fraction: 25, kept: []int{23, 13}[r.IntN(2)]}
		v := math.Ldexp(float64(r.Int64N(1<<40)-1<<39), r.IntN(310)-205)
		units, _ := new(big.Float).SetMantExp(new(big.Float).Abs(big.NewFloat(v)), 149).Int(nil) // 2^-149 each
		drop := uint(max(units.BitLen()-s.kept-1, 23-s.kept))
		units.Lsh(units.Rsh(units, drop), drop)
		size, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(units), -149).Float32()
		want := float32(math.Copysign(float64(size), v))
		require.Equal(t, math.Float32bits(want), math.Float32bits(s.round(v)), "%v, %d bits kept", v, s.kept)
	}
}
