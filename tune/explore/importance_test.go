package explore_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/explore"
)

func TestImportances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var times []explore.Timed
	for i := range 400 {
		a, b, c := i%4, i/4%5, i/20%2
		us := math.Exp(2*float64(a) + 0.3*float64(b) + 0.1*r.NormFloat64())
		times = append(times, explore.Timed{Config: space.Of("c", c, "b", b, "a", a, "one", 1), US: us})
	}
	of := explore.Importances(times)
	got := of.Parameters
	require.Len(t, got, 3) // one has a single value
	require.Equal(t, "a", got[0].Parameter)
	require.Greater(t, got[0].Share, 0.95)
	require.Equal(t, "b", got[1].Parameter)
	require.InDelta(t, 0.18/5.2, got[1].Share, 0.02) // variances of 0.3 b and of 2 a
	require.Less(t, got[2].Share, 0.01)
	require.InDelta(t, 1-0.01/5.2, *of.Together, 1e-3)
	sum := 0.0
	for _, i := range got { // every combination as often: nothing is said twice
		require.InDelta(t, i.Share, *i.Unique, 0.03)
		sum += i.Share
	}
	require.InDelta(t, *of.Together, sum, 0.03)
	require.Equal(t, explore.Explained{Samples: explore.FewestTimes - 1}, explore.Importances(times[:explore.FewestTimes-1]))
}

// Parameters that change together explain the same: all of it each, and none of it alone.
func TestImportancesOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var times []explore.Timed
	for i := range 200 {
		a, c := i%4, i/4%3
		us := math.Exp(float64(a) + 0.01*r.NormFloat64())
		times = append(times, explore.Timed{Config: space.Of("a", a, "b", a*a, "c", c), US: us})
	}
	of := explore.Importances(times)
	for _, i := range of.Parameters[:2] {
		require.Greater(t, i.Share, 0.99, i.Parameter)
		require.Zero(t, *i.Unique, i.Parameter)
	}
	require.Less(t, *of.Parameters[2].Unique, 0.01)
	require.Greater(t, *of.Together, 0.99)
}

// What only matters together is not explained by a sum, and of too few times nothing is.
func TestImportancesOfInteractions(t *testing.T) {
	var times []explore.Timed
	for i := range 100 {
		a, b := i%2, i/2%2
		times = append(times, explore.Timed{Config: space.Of("a", a, "b", b), US: math.Exp(float64((a ^ b)))})
	}
	of := explore.Importances(times)
	require.Less(t, *of.Together, 0.01)

	times = nil
	for i := range explore.FewestTimes {
		times = append(times, explore.Timed{Config: space.Of("a", i, "b", i%2), US: float64(1 + i*i%7)})
	}
	of = explore.Importances(times)
	require.Nil(t, of.Together)
	require.Nil(t, of.Parameters[0].Unique)
	for i := range times {
		times[i].US = 3
	}
	require.Zero(t, *explore.Importances(times).Together)
}
