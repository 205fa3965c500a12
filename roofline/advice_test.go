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

// TestAdviceOnTraffic: more bytes than needed matter where memory binds or nearly does, and
// not under a unit that works much longer.
func TestAdviceOnTraffic(t *testing.T) {
	g, err := target.Lookup("h100")
	require.NoError(t, err)
	roofs := roofline.DeviceRoofs(g)
	advice := func(share float64) string {
		const us = 500.0
		bytes := share * us * g.HBM().Value * 1e3
		peak, ok := g.Peak(target.BF16)
		require.True(t, ok)
		k := &roofline.Kernel{
			Name: "k", TimeUS: 1000, From: bench.Predicted, Least: roofline.Formula(bytes / 4),
			Work: roofline.Work{HBMBytes: roofline.Counted(bytes), Operations: []roofline.Operations{{Math: target.BF16, Count: roofline.Formula(us * peak.TFLOPS * 1e6)}}},
		}
		j, err := k.Judge(roofs)
		require.NoError(t, err)
		return j.Advice
	}
	for share, traffic := range map[float64]bool{0.3: false, 0.7: false, 0.9: true, 1.5: true} {
		if traffic {
			require.Contains(t, advice(share), "4.0 times the least bytes", share)
		} else {
			require.Contains(t, advice(share), "waits: ", share)
		}
	}
}

// TestAdviceOnSlack: where the binding unit waits for a part of the time, that comes first.
func TestAdviceOnSlack(t *testing.T) {
	g, err := target.Lookup("h100")
	require.NoError(t, err)
	for reached, want := range map[float64]string{
		0.7:  "70 % of what is attainable, bound by tensor, which waits the rest of the time: ",
		0.95: "95 % of what is attainable, bound by tensor: a faster kind of arithmetic",
	} {
		peak, ok := g.Peak(target.BF16)
		require.True(t, ok)
		k := &roofline.Kernel{
			Name: "k", TimeUS: 1000, From: bench.Predicted,
			Work: roofline.Work{Operations: []roofline.Operations{{Math: target.BF16, Count: roofline.Formula(reached * 1000 * peak.TFLOPS * 1e6)}}},
		}
		j, err := k.Judge(roofline.DeviceRoofs(g))
		require.NoError(t, err)
		require.Contains(t, j.Advice, want)
	}
}
