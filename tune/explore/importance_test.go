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
	got := explore.Importances(times)
	require.Len(t, got, 3) // one has a single value
	require.Equal(t, "a", got[0].Parameter)
	require.Greater(t, got[0].Share, 0.95)
	require.Equal(t, "b", got[1].Parameter)
	require.InDelta(t, 0.18/5.2, got[1].Share, 0.02) // variances of 0.3 b and of 2 a
	require.Less(t, got[2].Share, 0.01)
	require.Nil(t, explore.Importances(times[:explore.FewestTimes-1]))
}
