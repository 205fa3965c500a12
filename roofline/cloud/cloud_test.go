package cloud

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/plot"
)

func TestDecodeCloud(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	c, err := Of(g, measured.Decode, "float16")
	require.NoError(t, err)
	dots := 0
	for _, s := range c.Figure.Series {
		dots += len(s.Dots)
	}
	require.Equal(t, c.Best.Points, dots)
	require.Len(t, c.Odd, c.Best.Impossible)
	require.Equal(t, c.Best.Impossible, c.Doubts[measured.Impossible])
	require.Positive(t, c.Doubts[measured.Cached])
	scene, err := c.Figure.Scene()
	require.NoError(t, err)
	require.Len(t, scene.Data, dots)
	crosses, clouds := 0, 0
	for _, group := range scene.Groups {
		for _, e := range group.Elements {
			switch {
			case e.Marker != nil && group.Name == "data" && e.Marker.Shape == plot.Cross:
				crosses++
				require.Contains(t, e.Marker.Title, "impossible: ")
			case e.Cloud != nil:
				clouds += len(e.Cloud.Points)
			}
		}
	}
	require.Equal(t, c.Best.Impossible, crosses)
	require.Equal(t, dots, crosses+clouds)
}

func TestNothingMeasured(t *testing.T) {
	g, err := target.Lookup("l4")
	require.NoError(t, err)
	_, err = Of(g, measured.GEMM, "float16")
	require.ErrorContains(t, err, "no gemm of type float16 on l4")
}
