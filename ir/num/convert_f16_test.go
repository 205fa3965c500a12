package num

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// F16FromF64 is what Encode gives, at values of binary16, halfway between them,
// just beside those, and at random.
func TestF16FromF64(t *testing.T) {
	check := func(x float64) {
		require.Equal(t, uint16(F16.Encode(x, Even, false)), F16FromF64(x), "%x", x)
	}
	for code := range uint16(0x7c00) {
		x := float64(F16ToF32(code))
		next := float64(F16ToF32(code + 1))
		if code == 0x7bff {
			next = 65536
		}
		for _, y := range []float64{x, (x + next) / 2} {
			for _, z := range []float64{y, math.Nextafter(y, 0), math.Nextafter(y, math.Inf(1))} {
				check(z)
				check(-z)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		check(math.Ldexp(r.Float64()*2-1, r.IntN(60)-40))
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-140, -0x1p128, math.Copysign(0, -1), math.NaN()} {
		check(x)
	}
}
