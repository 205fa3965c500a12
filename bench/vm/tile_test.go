package vm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVectorTiles: vector code gives the bits of the portable, of sums of every
// kind of number and of any distance between rows.
func TestVectorTiles(t *testing.T) {
	if !vectorTiles {
		t.Skip("this machine has none")
	}
	r := rand.New(rand.NewPCG(8, 8))
	draw := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			switch r.IntN(12) {
			case 0:
				out[i] = math.Float32frombits(r.Uint32() &^ (0xff << 23)) // subnormal
			case 1:
				out[i] = float32(math.Inf(1 - 2*r.IntN(2)))
			case 2:
				out[i] = float32(r.NormFloat64()) * 1e30
			default:
				out[i] = float32(r.NormFloat64())
			}
		}
		return out
	}
	for range 300 {
		k, step := 1+r.IntN(40), 4+r.IntN(9)
		a, b := draw(8*k), draw(8*k)
		lo, hi := draw(8*step), draw(8*step)
		wantLo, wantHi := append([]float32(nil), lo...), append([]float32(nil), hi...)
		addRowsPortable(wantLo, wantHi, step, a, b, k)
		addRowsVector(&lo[0], &hi[0], step, &a[0], &b[0], k)
		require.Equal(t, bitsOf(wantLo), bitsOf(lo), "k %d, step %d", k, step)
		require.Equal(t, bitsOf(wantHi), bitsOf(hi), "k %d, step %d", k, step)
	}
}

// TestDecodeHalves: vector code gives the bits of the portable, of all f16, at any
// distance between rows.
func TestDecodeHalves(t *testing.T) {
	if !vectorLanes {
		t.Skip("this machine has none")
	}
	for first := 0; first < 1<<16; first += 64 {
		var raw lanes32
		for i := range raw {
			raw[i] = uint32(first+2*i) | uint32(first+2*i+1)<<16
		}
		for _, step := range []int{8, 16, 19} {
			got, want := make([]float32, 8*step), make([]float32, 8*step)
			decodeHalves(got, raw[:], step)
			decodeHalvesPortable(want, raw[:], step)
			require.Equal(t, bitsOf(want), bitsOf(got), "from %#x, %d apart", first, step)
		}
	}
}

// TestCanonical: vector code copies what the loop copies.
func TestCanonical(t *testing.T) {
	vectors := vectorLanes
	defer func() { vectorLanes = vectors }()
	r := rand.New(rand.NewPCG(8, 9))
	for range 100 {
		var a, got, want lanes32
		for i := range a {
			a[i] = r.Uint32() | 0x7f<<24*uint32(r.IntN(2))
		}
		vectorLanes = vectors
		canonicalF32(got.f32(), a.f32())
		vectorLanes = false
		canonicalF32(want.f32(), a.f32())
		require.Equal(t, want, got)
	}
}

// bitsOf is numbers as bits; NaN are alike.
func bitsOf(v []float32) []uint32 {
	out := make([]uint32, len(v))
	for i, x := range v {
		if x != x {
			x = canonicalNaN
		}
		out[i] = math.Float32bits(x)
	}
	return out
}

func BenchmarkTiles(b *testing.B) {
	const k = 16
	var f fragments
	x, y := make([]float32, tileM*k), make([]float32, tileN*k)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	for i := range y {
		y[i] = float32(i%5) - 2
	}
	for name, add := range map[string]func(lo, hi []float32, step int, a, b []float32, k int){"portable": addRowsPortable, "best": addRows} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				add(f[0][:], f[1][:], 4, x, y, k)
			}
			b.ReportMetric(2*8*8*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
