package roofline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// TestAdviceOnIdleSMs: places that stay empty are no idle SMs, and more blocks then help
// nobody.
func TestAdviceOnIdleSMs(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	advice := func(blocks float64) string {
		k := &roofline.Kernel{
			Name: "k", TimeUS: 100, From: bench.Predicted, Work: roofline.Work{HBMBytes: roofline.Formula(1e6)},
			Seen: roofline.Seen{Waves: 0.2, Blocks: blocks},
		}
		j, err := k.Judge(roofline.DeviceRoofs(g))
		require.NoError(t, err)
		return j.Advice
	}
	require.Contains(t, advice(64), "64 blocks leave 44 of 108 SMs idle")
	for _, blocks := range []float64{0, 108, 256} {
		require.Contains(t, advice(blocks), "waits: ", "%g blocks", blocks)
	}
}
