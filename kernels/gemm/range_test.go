package gemm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A product beyond the range of C's type is an infinity, as rounding has it.
func TestProductsThatOverflowTheirType(t *testing.T) {
	p := &Problem{M: 20, N: 20, K: 400, Type: "f16", Out: "f16", Layout: "nn", Act: "none", Alpha: 1500}
	d := data(t, p)
	e, err := p.Expect(d, whole(p))
	require.NoError(t, err)
	over := 0
	for i, want := range e.Want {
		if math.Abs(want) > 65520+e.Tol[i] {
			over++
		}
		d["c"].Set(want, i/p.N, i%p.N)
	}
	require.Greater(t, over, 3)
	require.Less(t, over, 100)
	require.NoError(t, d["c"].Check(whole(p), e))
}

// What f32 cannot hold before the activation is an infinity there, and silu and gelu of a
// negative one are NaN, of a positive one infinite.
func TestProductsThatOverflowTheAccumulator(t *testing.T) {
	for act, low := range map[string]float64{"relu": 0, "silu": math.NaN(), "gelu": math.NaN(), "none": math.Inf(-1)} {
		p := &Problem{M: 20, N: 20, K: 64, Type: "f16", Out: "f16", Layout: "nn", Act: act, Alpha: -3.4e38}
		d := data(t, p)
		e, err := p.Expect(d, whole(p))
		require.NoError(t, err)
		seen := map[bool]int{}
		for i, want := range e.Want {
			sum := byIndex(p, d, i/p.N, i%p.N)
			switch {
			case sum < -1.01:
				require.True(t, math.IsInf(want, 1))
				seen[true]++
			case sum > 1.01:
				require.True(t, want == low || math.IsNaN(want) && math.IsNaN(low), "%s: %v, want %v", act, want, low)
				seen[false]++
			}
			d["c"].Set(want, i/p.N, i%p.N)
		}
		require.Greater(t, seen[true], 100)
		require.Greater(t, seen[false], 100)
		require.NoError(t, d["c"].Check(whole(p), e))
	}
}

// A product that is longer than what the reference holds at a time is all taken in, the
// odd end too.
func TestLongProducts(t *testing.T) {
	for _, layout := range []string{"nn", "tt"} {
		p := &Problem{M: 2, N: 3, K: 2*stretch + 77, Type: "f32", Out: "f32", Layout: layout, Act: "none", Alpha: 1}
		d := data(t, p)
		e, err := p.Expect(d, whole(p))
		require.NoError(t, err)
		for i, want := range e.Want {
			require.InDelta(t, want, byIndex(p, d, i/p.N, i%p.N), 1e-9)
		}
	}
}
