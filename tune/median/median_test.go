package median

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	require.Zero(t, Of(nil))
	require.Equal(t, 3.0, Of([]float64{3}))
	require.Equal(t, 2.5, Of([]float64{4, 1}))
	require.Equal(t, 4.0, Of([]float64{9, 1, 4}))
	v := []float64{8, 1, 4, 2}
	require.Equal(t, 3.0, Of(v))
	require.Equal(t, []float64{8, 1, 4, 2}, v, "the caller's numbers stay where they are")
}
