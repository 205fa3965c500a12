package counts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

func TestCounters(t *testing.T) {
	k, err := Parse([]byte(`{"kernel": "k", "ok": true, "provenance": "counted", "counters": {
		"instructions": {"fma": {"warp": 10, "thread": 320}, "mufu": {"warp": 1, "thread": 32}},
		"tensor": [{"kind": "mma", "shape": "m16n8k16", "a": "bf16", "b": "bf16", "accumulator": "f32", "count": 2, "operations": 8192},
		           {"kind": "mma", "shape": "m16n8k8", "a": "bf16", "b": "bf16", "accumulator": "f32", "count": 1, "operations": 2048}],
		"global": {"loads": {"requests": 4, "bytes": 512, "sectors": 128}, "unique_read_bytes": 512, "unique_written_bytes": 128},
		"l2": {"read_sectors": 128, "read_hits": 100, "memory_read_sectors": 28, "memory_write_sectors": 4},
		"shared": {"loads": {"requests": 2, "bytes": 256, "wavefronts": 64, "ideal_wavefronts": 2}}},
		"lines": [{"line": 7, "shared": {"wavefronts": 64, "ideal_wavefronts": 2}}, {"source": "/tmp/a.cu:12", "line": 9, "global": {"bytes": 512, "sectors": 128}}]}`))
	require.NoError(t, err)
	require.Equal(t, []roofline.Operations{{Math: target.BF16, Count: roofline.Counted(10240)}}, k.Work.Operations)
	require.Equal(t, roofline.Counted(32*32), k.Work.HBMBytes)
	require.Equal(t, roofline.Counted(128*64), k.Work.SharedBytes)
	require.Equal(t, roofline.Counted(640), k.Least)
	require.Equal(t, 1.6, k.Traffic().Ratio)
	require.Equal(t, "PTX line 7", k.Seen.Worst)

	g, err := target.Lookup("a100")
	require.NoError(t, err)
	j, err := k.Judge(roofline.DeviceRoofs(g))
	require.NoError(t, err)
	require.Nil(t, j.Verdict)
	require.Contains(t, j.Advice, "PTX line 7")
}

func TestTimesAndNothing(t *testing.T) {
	k, err := Parse([]byte(`{"kernel": "k", "time_us": 12.5, "provenance": "measured"}`))
	require.NoError(t, err)
	require.Equal(t, 12.5, k.TimeUS)
	_, err = Parse([]byte(`{"kernel": "k"}`))
	require.ErrorContains(t, err, "neither counters nor a time")
	_, err = Parse([]byte(`{"kernel": "k", "counters": {"l2": {"read_sectors": 4}}}`))
	require.EqualError(t, err, "1: counters.instructions: no instruction was counted: want what kgen run --json prints of a kernel that ran")
	for text, want := range map[string]string{
		"{\"counters\":\n{\"l2\": {\"read_sectors\": -1}}}":                   "2: counters.l2.read_sectors -1: want a count from 0 to 2^53",
		"{\"counters\": {\"l2\":\n{\"read_sectors\": 99999999999999999999}}}": "2: counters.l2.read_sectors: found 99999999999999999999: want a whole number",
		"{\"counters\": {\"l2\": {\"read_sectors\": 9223372036854775807}}}":   "1: counters.l2.read_sectors 9223372036854775807: want a count from 0 to 2^53",
		"{\n\"lines\": [{\"shared\":\n{\"wavefronts\": -2}}]}":                "3: lines.0.shared.wavefronts -2: want a count",
		"{\"launches\": -3}":             "1: launches -3: want a count",
		"{\"counters\": {\"l2\": [\n]}}": "1: counters.l2: found a list: want an object",
	} {
		_, err = Parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
	_, err = Parse([]byte(`{"kernel": "k", "counters": {"instructions": {"alu": {"warp": 1, "thread": 32}}, "tensor": [{"shape": "m8n8k128", "a": "b1", "accumulator": "s32"}]}}`))
	require.ErrorContains(t, err, "m8n8k128 of b1")
	_, err = Parse([]byte(`{"kernel": "k", "time_us": -1, "provenance": "measured"}`))
	require.ErrorContains(t, err, "time_us -1")
	_, err = Parse([]byte(`{"kernel": `))
	require.Error(t, err)
}
