package measured

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
)

// The default attention problem: batch 4, 4096 tokens, 32 query and 8 key
// heads of 128.
var standard = Attention{Batch: 4, NewTokens: 4096, Heads: 32, KVHeads: 8, HeadDim: 128}

func TestStandardAttention(t *testing.T) {
	for _, c := range []struct {
		gpu, framework, version string
		us                      float64
	}{
		{"h100", "vLLM", "0.14.0", 1127},
		{"a100", "vLLM", "0.14.0", 3396},
	} {
		g, err := target.Lookup(c.gpu)
		require.NoError(t, err)
		for _, typ := range []string{"f16", "bf16"} {
			times, err := LookupAttention(Prefill, g.ID, typ, typ, standard)
			require.NoError(t, err)
			require.Len(t, times, 2)
			require.InDelta(t, c.us, times[0].US, 0.5)
			require.Equal(t, c.framework, times[0].Framework)
			require.Equal(t, c.version, times[0].Version)
			require.Equal(t, "float16", times[0].Type)
			require.Equal(t, typ == "bf16", times[0].Note != "")
			require.Equal(t, "TensorRT-LLM", times[1].Framework)
		}
	}
	times, err := LookupAttention(Prefill, h100, "e4m3", "e4m3", standard)
	require.NoError(t, err)
	require.Len(t, times, 1)
	require.InDelta(t, 947, times[0].US, 0.5)
}

func TestGEMM(t *testing.T) {
	times, err := LookupGEMM(a100, "f16", 4096, 4096, 4096)
	require.NoError(t, err)
	require.Len(t, times, 2)
	require.InDelta(t, 514.08, times[0].US, 0.01)
	require.Equal(t, "TensorRT-LLM", times[0].Framework)
	times, err = LookupGEMM(h100, "bf16", 8192, 8192, 8192)
	require.NoError(t, err)
	// 800 TFLOP/s, as the origin's notes say.
	require.InEpsilon(t, 800, 2*8192.*8192*8192/times[0].US/1e6, 0.005)
	require.Contains(t, times[0].String(), "vLLM 0.14.0, float16; a bf16 problem")
}

func TestDecode(t *testing.T) {
	times, err := LookupAttention(Decode, a100, "f16", "f16", Attention{Batch: 1, NewTokens: 1, PastTokens: 1, Heads: 4, KVHeads: 1, HeadDim: 128})
	require.NoError(t, err)
	require.NotEmpty(t, times)
	require.InDelta(t, 10.752, times[0].US, 0.01)
}

func TestNothingKnown(t *testing.T) {
	for _, f := range []func() ([]Time, error){
		func() ([]Time, error) { return LookupGEMM("h200-sxm-141", "f16", 4096, 4096, 4096) },
		func() ([]Time, error) { return LookupGEMM(h100, "f32", 4096, 4096, 4096) },
		func() ([]Time, error) { return LookupGEMM(h100, "f16", 4099, 4096, 4096) },
		func() ([]Time, error) { return LookupGEMM(h100, "f16", 0, 12288, 1024) },
		func() ([]Time, error) { return LookupAttention(Prefill, h100, "f16", "f32", standard) },
		func() ([]Time, error) {
			return LookupAttention(Prefill, h100, "f16", "f16", Attention{Batch: 4, NewTokens: 4096, Heads: 32, KVHeads: 8, HeadDim: 112})
		},
	} {
		times, err := f()
		require.NoError(t, err)
		require.Empty(t, times)
	}
	_, err := LookupAttention(GEMM, h100, "f16", "f16", standard)
	require.ErrorContains(t, err, "gemm")
}

// Every embedded row has the columns the heading names and a time above 0.
func TestTablesAreWhole(t *testing.T) {
	rows := 0
	for _, tab := range tables {
		_, err := target.Lookup(tab.gpu)
		require.NoError(t, err)
		columns := 10
		if tab.op == GEMM {
			columns = 5
		}
		require.NoError(t, tab.lines(func(line []byte) error {
			rows++
			fields := bytes.Split(line, []byte(","))
			require.Len(t, fields, columns, "%s: %s", tab.file, line)
			ms, err := strconv.ParseFloat(string(fields[columns-1]), 64)
			require.NoError(t, err)
			require.Positive(t, ms)
			return nil
		}))
	}
	require.Equal(t, 226701, rows)
	entries, err := data.ReadDir("data")
	require.NoError(t, err)
	require.Len(t, entries, len(tables)+1, "every file is in the list")
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, err := LookupAttention(Prefill, h100, "bf16", "bf16", standard); err != nil {
			b.Fatal(err)
		}
	}
}
