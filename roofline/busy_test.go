package roofline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// TestProfilerOverrules: what a profiler saw busy is not called idle for want of a counter.
func TestProfilerOverrules(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	roofs := roofline.DeviceRoofs(g)
	for _, c := range []struct {
		hbm  float64 // memory's floor, as a share of the time
		busy []roofline.Busy
		by   roofline.Part
		want string
	}{
		{0.01, nil, "", "waits: of the units counted none is busy for more than 1 % of the time: "},
		{0.01, []roofline.Busy{{roofline.PartSM, 0.889}}, roofline.PartSM, "the SM is at 89 % of its peak by the profiler, and what was counted (HBM) is not why: smsp__inst_executed.sum"},
		{0.01, []roofline.Busy{{roofline.PartSM, 0.3}}, "", "waits: of the units counted none is busy for more than 30 % of the time: "},
		{0.01, []roofline.Busy{{roofline.PartSM, 0.3}, {roofline.PartMemory, 0.2}}, "", "waits: no unit is busy for more than 30 % of the time: "},
		{0.01, []roofline.Busy{{roofline.PartSM, 0.75}, {roofline.PartTensor, 0.75}}, roofline.PartTensor, "the tensor pipe is at 75 % of its peak by the profiler"},
		{0.01, []roofline.Busy{{roofline.PartSM, 0.2}, {roofline.PartMemory, 0.8}, {roofline.PartL1, 0.8}, {roofline.PartDRAM, 0.05}}, roofline.PartL1, "the L1 is at 80 %"},
		{0.9, []roofline.Busy{{roofline.PartSM, 0.2}, {roofline.PartMemory, 0.92}, {roofline.PartDRAM, 0.92}}, "", "90 % of what is attainable, bound by HBM"},
		{0.7, []roofline.Busy{{roofline.PartSM, 0.95}}, roofline.PartSM, "the SM is at 95 %"},
	} {
		k := &roofline.Kernel{
			Name: "k", TimeUS: 1000, From: bench.Measured, Work: roofline.Work{HBMBytes: roofline.Counted(c.hbm * 1e6 * g.HBM().Value)},
			Seen: roofline.Seen{Busy: c.busy},
		}
		j, err := k.Judge(roofs)
		require.NoError(t, err)
		by, ok := j.Overruled()
		require.Equal(t, c.by != "", ok, "%+v", c)
		require.Equal(t, c.by, by.Part)
		require.Contains(t, j.Advice, c.want)
	}
}

// TestBytesFromBusy: memory's share of its peak gives its bytes only where nobody counted them.
func TestBytesFromBusy(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	roofs := roofline.DeviceRoofs(g)
	k := &roofline.Kernel{Name: "k", TimeUS: 250, From: bench.Measured, Seen: roofline.Seen{Busy: []roofline.Busy{{roofline.PartSM, 0.1}, {roofline.PartDRAM, 0.9012}}}}
	require.True(t, k.FromBusy(roofs))
	require.Equal(t, bench.Counted, k.Work.HBMBytes.From)
	j, err := k.Judge(roofs)
	require.NoError(t, err)
	require.InEpsilon(t, 0.9012, j.Verdict.Score, 1e-12)
	require.False(t, k.FromBusy(roofs), "counted")
	require.False(t, (&roofline.Kernel{TimeUS: 250, Seen: roofline.Seen{Busy: []roofline.Busy{{roofline.PartSM, 0.9}}}}).FromBusy(roofs))
}

// TestMemoryByName: what people read calls memory by its kind, records do not.
func TestMemoryByName(t *testing.T) {
	for id, want := range map[string]string{"h100": "HBM", "a100": "HBM", "rtx4090": "GDDR6X", "l40": "GDDR6", "gb10": "LPDDR5X"} {
		g, err := target.Lookup(id)
		require.NoError(t, err)
		roofs := roofline.DeviceRoofs(g)
		k := &roofline.Kernel{Name: "k", TimeUS: 1000, From: bench.Measured, Work: roofline.Work{HBMBytes: roofline.Counted(0.9e6 * g.HBM().Value)}}
		j, err := k.Judge(roofs)
		require.NoError(t, err)
		require.Contains(t, j.Advice, "bound by "+want)
		require.Equal(t, roofline.HBM, j.Binding.Unit)
	}
}

// TestLaunchBeaten: a kernel may take less than a launch by itself does.
func TestLaunchBeaten(t *testing.T) {
	g, err := target.Lookup("a100")
	require.NoError(t, err)
	k := &roofline.Kernel{Name: "k", TimeUS: 1, From: bench.Measured, Work: roofline.Work{Launches: roofline.Formula(1)}}
	j, err := k.Judge(roofline.DeviceRoofs(g))
	require.NoError(t, err)
	require.Equal(t, roofline.WrongPeak, j.Verdict.Cause)
	require.Contains(t, j.Verdict.Doubt, "2.4 us each")
}
