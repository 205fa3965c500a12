package num

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// exactSum is a*b + c without rounding.
func exactSum(a, b, c float32) *big.Float {
	p := new(big.Float).SetPrec(1200).SetFloat64(float64(a))
	p.Mul(p, new(big.Float).SetPrec(1200).SetFloat64(float64(b)))
	return p.Add(p, new(big.Float).SetPrec(1200).SetFloat64(float64(c)))
}

// finite32 draws any finite binary32 number.
func finite32(r *rand.Rand) float32 {
	for {
		if x := math.Float32frombits(r.Uint32()); x-x == 0 {
			return x
		}
	}
}

func TestFMA32(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	doubleRounded := 0
	check := func(a, b, c float32) {
		sum := exactSum(a, b, c)
		want, _ := sum.Float32()
		if sum.Sign() == 0 {
			want = float32(float64(a)*float64(b) + float64(c)) // the sign of zero
		}
		if got := FMA32(a, b, c); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%x * %x + %x: %x, want %x", a, b, c, got, want)
		}
		if naive := float32(float64(a)*float64(b) + float64(c)); naive != want {
			doubleRounded++
		}
	}
	for range 100_000 {
		check(finite32(r), finite32(r), finite32(r))
	}
	for range 100_000 { // operands of like size
		a, b := float32(r.NormFloat64()), float32(r.NormFloat64())
		check(a, b, float32(r.NormFloat64()))
		check(a, b, -a*b)
	}
	// Sums a hair beside the middle of two neighbours: c's last place meets a product
	// that is half of it, give or take far less than float64 keeps.
	for range 100_000 {
		c := 1 + float32(r.IntN(1<<23))*0x1p-23
		a := float32(0x1p-24) * (1 + float32(r.IntN(8)-4)*0x1p-23)
		b := 1 + float32(r.IntN(8)-4)*0x1p-23
		scale := float32(math.Ldexp(1, r.IntN(200)-100))
		check(a*scale, b, c*scale)
		check(-a*scale, b, c*scale)
		check(a, b*scale, -c*scale)
	}
	for range 20_000 { // subnormal results
		check(finite32(r)*0x1p-20, 0x1p-120, math.Float32frombits(r.Uint32()&0xffffff))
	}
	require.NotZero(t, doubleRounded, "no case needed the care")

	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	require.Equal(t, inf, FMA32(inf, 1, 0))
	require.Equal(t, -inf, FMA32(1, 1, -inf))
	require.Equal(t, inf, FMA32(math.MaxFloat32, math.MaxFloat32, -math.MaxFloat32))
	require.True(t, math.IsNaN(float64(FMA32(inf, 0, 1))))
	require.True(t, math.IsNaN(float64(FMA32(inf, 1, -inf))))
	require.True(t, math.IsNaN(float64(FMA32(nan, 1, 1))))
}

// The odd rounding can be rounded again to any smaller format, in any mode.
func TestFMAOddRoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	modes := []big.RoundingMode{Even: big.ToNearestEven, Away: big.ToNearestAway, Zero: big.ToZero, Up: big.ToPositiveInf, Down: big.ToNegativeInf}
	for range 50_000 {
		a, b := float32(r.NormFloat64()), float32(r.NormFloat64())
		c := float32(math.Ldexp(r.NormFloat64(), r.IntN(120)-60))
		sum := exactSum(a, b, c)
		for mode, bigMode := range modes {
			want, _ := new(big.Float).SetPrec(24).SetMode(bigMode).Set(sum).Float64()
			if got := F32.Decode(F32.Encode(FMAOdd(a, b, c), Rounding(mode), false)); got != want {
				t.Fatalf("%x * %x + %x, mode %d: %x, want %x", a, b, c, mode, got, want)
			}
			want, _ = new(big.Float).SetPrec(8).SetMode(bigMode).Set(sum).Float64()
			if got := BF16.Decode(BF16.Encode(FMAOdd(a, b, c), Rounding(mode), false)); got != want {
				t.Fatalf("bf16 of %x * %x + %x, mode %d: %x, want %x", a, b, c, mode, got, want)
			}
		}
	}
}
