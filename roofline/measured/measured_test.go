package measured

import (
	"bytes"
	"strconv"
	"strings"
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
	require.Contains(t, times[0].String(), "ms (vLLM 0.14.0, float16, exact; a bf16 problem")
}

func TestDecode(t *testing.T) {
	times, err := LookupAttention(Decode, a100, "f16", "f16", Attention{Batch: 1, NewTokens: 1, PastTokens: 1, Heads: 4, KVHeads: 1, HeadDim: 128})
	require.NoError(t, err)
	require.NotEmpty(t, times)
	require.InDelta(t, 10.752, times[0].US, 0.01)
}

// A time that no memory is fast enough for is said to be so, and comes last.
func TestDecodeTooFast(t *testing.T) {
	times, err := LookupAttention(Decode, a100, "bf16", "bf16", Attention{Batch: 64, NewTokens: 1, PastTokens: 4095, Heads: 32, KVHeads: 8, HeadDim: 128})
	require.NoError(t, err)
	require.Len(t, times, 2)
	require.Empty(t, times[0].Doubt)
	require.InDelta(t, 681.616, times[0].US, 0.01)
	require.Equal(t, Impossible, times[1].Doubt) // 3.17 TB/s
	require.InDelta(t, 338.261, times[1].US, 0.01)
	require.Contains(t, times[1].String(), "; impossible: ")
}

// A time between neighbours lies between theirs, and on them is theirs.
func TestBetween(t *testing.T) {
	at := func(m, n, k int) Time {
		times, err := LookupGEMM(h100, "f16", m, n, k)
		require.NoError(t, err)
		require.Len(t, times, 2)
		for _, x := range times {
			if x.Framework == "vLLM" {
				return x
			}
		}
		t.Fatal("no vLLM")
		return Time{}
	}
	low, middle, high := at(4096, 4096, 4096), at(5000, 4096, 4096), at(8192, 4096, 4096)
	require.Equal(t, Exact, low.Match)
	require.Equal(t, Interpolated, middle.Match)
	require.Contains(t, middle.String(), "interpolated between m=4096 and ")
	require.True(t, low.US < middle.US && middle.US < high.US, "%v %v %v", low, middle, high)
	require.InEpsilon(t, low.US*5000/4096, middle.US, 0.15, "nearly the neighbours' rate")
	odd := at(5000, 4100, 4100)
	require.Contains(t, odd.Between, "n=4096 and ")
	require.InEpsilon(t, middle.US*4100/4096*4100/4096, odd.US, 0.02)

	p := standard
	p.NewTokens = 5000
	times, err := LookupAttention(Prefill, h100, "bf16", "bf16", p)
	require.NoError(t, err)
	require.NotEmpty(t, times)
	require.Equal(t, Interpolated, times[0].Match)
	require.Greater(t, times[0].US, 1127.0)
}

// The tables' traps: impossible points are found by rule, sizes of 0 left out,
// the best of all shapes is what the tables' origin says.
func TestCloud(t *testing.T) {
	best, err := Best(GEMM, h100, "float16")
	require.NoError(t, err)
	require.InDelta(t, 937, best.TFLOPS, 0.5)
	require.InDelta(t, 3096, best.GBs, 1)
	require.Zero(t, best.Impossible)
	best, err = Best(Decode, a100, "float16")
	require.NoError(t, err)
	require.Positive(t, best.Impossible)
	require.Less(t, best.GBs, best.Ceilings.HBM.Value)
	_, err = Best(Decode, h100, "fp8")
	require.ErrorContains(t, err, "no decode of type fp8 on h100-sxm5-80: the tables hold a100-sxm4-80 float16, h100-sxm5-80 float16")
	_, err = Best(GEMM, a100, "fp8")
	require.ErrorContains(t, err, `no tensor cores for type "fp8"`)
}

func TestDoubts(t *testing.T) {
	g, err := target.Lookup(h100)
	require.NoError(t, err)
	c, err := CeilingsOf(g, "float16")
	require.NoError(t, err)
	s := Sample{Op: GEMM, Type: "float16", M: 8192, N: 8192, K: 8192}
	least := s.FLOPs() / c.Peak.TFLOPS / 1e6
	for us, want := range map[float64]Doubt{least * 1.01: "", least * 0.95: Boosted, least * 0.9: Impossible} {
		s.US = us
		require.Equal(t, want, c.Doubt(&s))
	}
	s = Sample{Op: GEMM, Type: "float16", M: 1, N: 4096, K: 4096}
	s.US = s.Bytes() / c.HBM.Value / 1e3 / 2
	require.Equal(t, Cached, c.Doubt(&s))
	s.N = 1 << 20
	s.US = s.Bytes() / c.HBM.Value / 1e3 / 2
	require.Equal(t, Impossible, c.Doubt(&s))
}

func TestWorkOfSamples(t *testing.T) {
	s := Sample{Op: Prefill, Type: "float16", KVType: "float16", Attention: standard}
	require.Equal(t, 2*4*32*4096.0*4096*128, s.FLOPs())
	require.Equal(t, 2*4*4096.0*128*(2*32+2*8), s.Bytes())
	s.Window = 4096
	require.Equal(t, 2*4*32*4096.0*4096*128, s.FLOPs(), "a window of all")
	s.Window = 128
	require.Equal(t, 4*4*32*128*(128*128/2+3968*128.0), s.FLOPs())
	s = Sample{Op: Decode, Type: "float16", KVType: "fp8", Attention: Attention{Batch: 2, NewTokens: 1, PastTokens: 99, Heads: 8, KVHeads: 4, HeadDim: 64}}
	require.Equal(t, 4*2*8*64*100.0, s.FLOPs())
	require.Equal(t, 2*64*(2*2*8+2*100*4.0), s.Bytes())
	s.Window = 10
	require.Equal(t, 4*2*8*64*10.0, s.FLOPs())
}

func TestNothingKnown(t *testing.T) {
	for _, f := range []func() ([]Time, error){
		func() ([]Time, error) { return LookupGEMM("h200-sxm-141", "f16", 4096, 4096, 4096) },
		func() ([]Time, error) { return LookupGEMM(h100, "f32", 4096, 4096, 4096) },
		func() ([]Time, error) { return LookupGEMM(h100, "f16", 1<<30, 4096, 4096) },
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

// A table that was cut off in its last line is refused, for the rest of a time is a time.
func TestCutOff(t *testing.T) {
	const text = gemmHeading + "\nfloat16,128,128,128,0.012\n"
	samples, err := Read(strings.NewReader(text), "t.csv")
	require.NoError(t, err)
	require.Equal(t, 12.0, samples[0].US)
	for _, cut := range []string{text[:len(text)-1], text[:len(text)-2]} {
		_, err = Read(strings.NewReader(cut), "t.csv")
		require.EqualError(t, err, "t.csv:2: no newline ends the last line: is the file cut off?")
	}
}

func TestLongLine(t *testing.T) {
	_, err := Read(strings.NewReader("type,m,n,k,latency_ms\n"+strings.Repeat("9", 1<<17)), "t.csv")
	require.EqualError(t, err, "t.csv:2: a line of more than 64 KiB: want a row of the table")
}
