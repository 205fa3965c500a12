package ncu

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/roofline"
)

// The profiler's own shares of peaks, by the names of every page.
func TestBusy(t *testing.T) {
	r, err := ReadFiles(filepath.Join("testdata", "rtx5070_gemm_tiled.csv"))
	require.NoError(t, err)
	require.Equal(t, []roofline.Busy{{Part: roofline.PartSM, Share: 0.889}}, r.Kernels[0].Seen.Busy)
	require.NotContains(t, r.Unused, "sm__throughput.avg.pct_of_peak_sustained_elapsed")
	time := row("k", "Duration", "us", "10")
	k := only(t, head+time+row("k", "Compute (SM) Throughput", "%", "95.25")+row("k", "Memory Throughput", "%", "50")+
		row("k", "DRAM Throughput", "%", "20")+row("k", "L1/TEX Cache Throughput", "%", "50")+row("k", "L2 Cache Throughput", "%", "30")+
		row("k", "Memory Throughput", "byte/second", "9600000"))
	require.Equal(t, []roofline.Busy{
		{Part: roofline.PartSM, Share: 0.9525}, {Part: roofline.PartMemory, Share: 0.5}, {Part: roofline.PartL1, Share: 0.5}, {Part: roofline.PartL2, Share: 0.3}, {Part: roofline.PartDRAM, Share: 0.2},
	}, k.Seen.Busy)
	require.InEpsilon(t, 96, k.Work.HBMBytes.Value, 1e-12, "the label's row in bytes a second")
	k = only(t, head+time+row("k", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", "75"))
	require.Equal(t, []roofline.Busy{{Part: roofline.PartTensor, Share: 0.75}}, k.Seen.Busy)
}

// Of launches of which only some have a share there is no mean of it; and passes that all
// have it are still joined.
func TestBusyOfSome(t *testing.T) {
	const sm = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
	base := []string{"gpu__time_duration.sum", "us", "100", "dram__bytes.sum", "byte", "4096"}
	text := head + launchRows("0", append(base, sm, "%", "50")...) + launchRows("1", base...)
	require.Empty(t, only(t, text).Seen.Busy)
	text = head + launchRows("0", append(base, sm, "%", "50")...) + head + launchRows("0", "gpu__time_duration.sum", "us", "101", sm, "%", "51", "lts__t_bytes.sum", "byte", "8192")
	k := only(t, text)
	require.Equal(t, 8192.0, k.Work.L2Bytes.Value)
	require.Equal(t, []roofline.Busy{{Part: roofline.PartSM, Share: 0.5}}, k.Seen.Busy)
	require.True(t, strings.HasPrefix(k.At, "f.csv:"))
}
