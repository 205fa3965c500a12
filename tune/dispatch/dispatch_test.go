package dispatch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/tune/dispatch"
)

// The regret that is stated is the rule's, no configuration alone loses less, and none
// that cannot run is chosen.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		configs := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "configs")]
		shapes := make([]dispatch.Shape, rapid.IntRange(1, 12).Draw(t, "shapes"))
		for i := range shapes {
			s := dispatch.Shape{Sizes: map[string]float64{
				"m": float64(rapid.IntRange(1, 5000).Draw(t, "m")), "n": float64(rapid.SampledFrom([]int{64, 128, 4096}).Draw(t, "n")),
			}}
			for c := range configs {
				us := rapid.Float64Range(1, 100).Draw(t, "us")
				if c > 0 && rapid.IntRange(0, 5).Draw(t, "runs") == 0 {
					us = math.Inf(1)
				}
				s.US = append(s.US, us)
			}
			shapes[i] = s
		}
		r, regret, err := dispatch.Fit(shapes, configs)
		require.NoError(t, err)
		loss := func(choose func(dispatch.Shape) string) float64 {
			worst := 0.0
			for _, s := range shapes {
				best, chosen := math.Inf(1), math.Inf(1)
				for c, us := range s.US {
					best = min(best, us)
					if configs[c] == choose(s) {
						chosen = us
					}
				}
				worst = max(worst, chosen/best-1)
			}
			return worst
		}
		require.InDelta(t, regret, loss(func(s dispatch.Shape) string { return r.Choose(s.Sizes) }), 1e-12)
		require.False(t, math.IsInf(regret, 0))
		for _, c := range configs {
			require.LessOrEqual(t, regret, loss(func(dispatch.Shape) string { return c })+1e-12)
		}
	})
}

func TestFitFindsTheThreshold(t *testing.T) {
	var shapes []dispatch.Shape
	for _, m := range []float64{16, 64, 256, 1024, 4096} {
		shapes = append(shapes, dispatch.Shape{Sizes: map[string]float64{"m": m}, US: []float64{10 + m, 100 + m/4}})
	}
	r, regret, err := dispatch.Fit(shapes, []string{"small", "large"})
	require.NoError(t, err)
	require.Zero(t, regret)
	require.Equal(t, "if m <= 128\n    small\nelse\n    large\n", r.String())
	_, _, err = dispatch.Fit([]dispatch.Shape{{US: []float64{math.Inf(1)}}}, []string{"a"})
	require.ErrorContains(t, err, "shape 1 has no time")
}

// A rule's regret on a shape that it was not fitted to is larger than on those that it was:
// here no other shape proposes what the outlier needs.
func TestHeldOut(t *testing.T) {
	var shapes []dispatch.Shape
	for _, m := range []float64{16, 64, 256, 1024, 4096} {
		shapes = append(shapes, dispatch.Shape{Sizes: map[string]float64{"m": m}, US: []float64{10 + m, 100 + m/4}})
	}
	configs := []string{"small", "large"}
	_, regret, err := dispatch.Fit(shapes, configs)
	require.NoError(t, err)
	require.Zero(t, regret)
	got := dispatch.HeldOut(shapes, configs, [][]int{{0, 1}, {2, 3, 4}})
	require.InDeltaSlice(t, []float64{0, 0, 266./164 - 1, 0, 0}, got, 1e-12) // without 256 the bound lies at 256

	got = dispatch.HeldOut(shapes, configs, [][]int{{0}, {1, 2, 3, 4}})
	require.InDelta(t, 104./26-1, got[0], 1e-12) // only it proposed what it needs

	shapes[4].US = []float64{math.Inf(1), 1}
	got = dispatch.HeldOut(shapes[3:], configs, [][]int{{0}, {1}})
	require.True(t, math.IsInf(got[1], 1))
	require.True(t, math.IsNaN(dispatch.HeldOut(shapes[:1], configs, [][]int{{0}, {0}})[0]))

	many := make([]dispatch.Shape, 100)
	for i := range many {
		many[i] = dispatch.Shape{Sizes: map[string]float64{"m": float64(1 + i)}, US: []float64{1, 2}}
	}
	require.Equal(t, make([]float64, 100), dispatch.HeldOut(many, configs, [][]int{{0, 1}, {2}}))
}
