package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
)

func TestLibraryPeaks(t *testing.T) {
	g, err := target.Lookup("h100")
	require.NoError(t, err)
	found := map[string]float64{}
	for _, p := range libraryPeaks(g) {
		require.Equal(t, bench.Measured, p.Provenance)
		found[string(p.Op)+" "+p.Type] = p.TFLOPS
	}
	require.InDelta(t, 937, found["gemm float16"], 0.5)
	require.InDelta(t, 1511, found["gemm fp8"], 0.5)
	g, err = target.Lookup("t4")
	require.NoError(t, err)
	require.Empty(t, libraryPeaks(g))
}
