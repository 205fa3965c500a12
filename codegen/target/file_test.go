package target

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func readText(t *testing.T, text string) (*GPU, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "own.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return ReadFile(file)
}

func TestOwnGPU(t *testing.T) {
	g, err := readText(t, `{"id": "h20", "name": "NVIDIA H20", "compute_capability": "9.0", "sm_count": 78,
		"clock_mhz": 1980, "bandwidth_gbs": 4000, "l2_mib": 60, "fma_per_sm_clk": {"fp64": 0, "bf16": 478}}`)
	require.NoError(t, err)
	p, ok := g.Peak(BF16)
	require.True(t, ok)
	require.InEpsilon(t, 78*478*2*1980e-6, p.TFLOPS, 1e-12)
	_, ok = g.Peak(F64)
	require.False(t, ok, "a rate of 0 is none")
	require.Equal(t, 4000.0, g.HBM().Value)
	require.Equal(t, 227<<10, g.Limits().SharedPerBlock, "of a GPU like it")
	require.Positive(t, g.L2().Value)
	require.Equal(t, "sm_90a", g.Arch())
	// The known GPU's rates are not touched.
	h100, err := Lookup("h100")
	require.NoError(t, err)
	_, ok = h100.Peak(F64)
	require.True(t, ok)
}

// A record of the table is the table's GPU; changed, it is another.
func TestOwnGPUUnderAKnownName(t *testing.T) {
	for _, known := range All() {
		if known.ClockMHz == 0 {
			continue
		}
		g, err := readText(t, string(known.JSON()))
		require.NoError(t, err, known.ID)
		require.Same(t, known, g)
	}
	g, err := readText(t, `{"id":"h100-sxm5-80","compute_capability":"9.0","sm_count":100,"clock_mhz":1000,"bandwidth_gbs":1000}`)
	require.NoError(t, err)
	require.Regexp(t, `^h100-sxm5-80-[0-9a-f]{8}$`, g.ID)
	require.Equal(t, 100, g.SMs)
}

// A peak that a record states beside what it is computed from must agree with it.
func TestOwnPeak(t *testing.T) {
	g, err := readText(t, own(`"clock_mhz":1830,"bandwidth_gbs":1,"peak_dense_tflops":{"bf16":989.4}`))
	require.NoError(t, err)
	require.Equal(t, 989.4, g.PublishedTFLOPS[BF16])
	_, err = readText(t, own(`"clock_mhz":1980,"bandwidth_gbs":1,"peak_dense_tflops":{"bf16":500},"fma_per_sm_clk":{"bf16":957}`))
	require.NoError(t, err)
}

// own is a record with some keys.
func own(keys string) string {
	return `{"id":"a","sm_count":132,"compute_capability":"9.0",` + keys + `}`
}

func TestBadOwnGPU(t *testing.T) {
	for text, want := range map[string]string{
		``:                                "1: the text ends early",
		"{\n\"id\": 5\n}":                 "2: id: found a number: want a string",
		"{\n\"id\": \"x\",\n}":            "3: invalid character",
		`null`:                            "1: want an object",
		`[]`:                              "1: found a list: want an object",
		"{\n\n\"sm_cout\": 5}":            `3: unknown key "sm_cout"`,
		`{"id": "A B"}`:                   `1: id "A B": want small letters`,
		"{\"id\": \"a\",\n\"id\": \"b\"}": "2: id: there in line 1 too: want it once",
		`{"id": "a", "sm_count": 4, "clock_mhz": 1e300}`: "1: clock_mhz is 1e+300: want a number from 0.001 to 1e+07",
		`{"id": "a"}`:                                      "1: sm_count is missing: want a number from 0.001",
		"{\"id\": \"a\",\n\"sm_count\": 0}":                "2: sm_count is 0: want a number from 0.001",
		"{\"id\": \"a\",\n\"compute_capability\": \"zz\"}": `2: compute capability "zz": want major.minor, like 9.0`,
		"{\"id\":\"a\",\n\"sm_count\":-1}":                 "2: sm_count is -1",
		`{"id":"a","sm_count":1,"clock_mhz":1,"bandwidth_gbs":1,"compute_capability":"3.5"}`:                             "compute_capability 3.5: kgen knows none",
		`{"id":"a","sm_count":1,"clock_mhz":1,"bandwidth_gbs":1,"compute_capability":"9.0","rate_key":"x"}`:              `rate_key "x": want one of`,
		`{"id":"a","sm_count":1,"clock_mhz":1,"bandwidth_gbs":1,"compute_capability":"9.0","fma_per_sm_clk":{"fp99":1}}`: "fma_per_sm_clk: fp99 1: want a kind",
		`{"id":"a","sm_count":1,"clock_mhz":1,"bandwidth_gbs":1,"compute_capability":"9.0","l2_bandwidth":[{"gbs":0}]}`:  "l2_bandwidth of 0 GB/s",
		own(`"clock_mhz":1e-300,"bandwidth_gbs":1`):                                                                      "1: clock_mhz is 1e-300: want a number from 0.001 to 1e+07",
		own(`"clock_mhz":1,"bandwidth_gbs":1e-300`):                                                                      "1: bandwidth_gbs is 1e-300: want a number from 0.001 to 1e+07",
		own(`"clock_mhz":1,"bandwidth_gbs":1,"tensor_clock_mhz":1e-300`):                                                 "1: tensor_clock_mhz is 1e-300: want a number from 0.001",
		own(`"clock_mhz":1,"bandwidth_gbs":1,"l2_mib":1e-300`):                                                           "1: l2_mib is 1e-300: want a number from 0.001",
		own(`"clock_mhz":1,"bandwidth_gbs":1,"l2_bandwidth":[{"gbs":1e300}]`):                                            "1: l2_bandwidth of 1e+300 GB/s: want a number from 0.001 to 1e+07",
		own(`"clock_mhz":1,"bandwidth_gbs":1,"fma_per_sm_clk":{"bf16":1e-300}`):                                          "1: fma_per_sm_clk: bf16 1e-300: want",
		own(`"clock_mhz":1980,"bandwidth_gbs":1,` + "\n" + `"peak_dense_tflops":{"bf16":500}`):                           "2: peak_dense_tflops: bf16 500: 132 SMs x 2048 FMA x 2 x 1980 MHz are 1071: want that within 10 %, or the rate in fma_per_sm_clk",
		own(`"clock_mhz":1980,"bandwidth_gbs":1,"peak_dense_tflops":{"bf16":0}`):                                         "1: peak_dense_tflops: bf16 0: 132 SMs",
		own(`"clock_mhz":1980,"bandwidth_gbs":1,"peak_dense_tflops":{"fp4":500}`):                                        "1: peak_dense_tflops: fp4 500: no rate of it is known: want one in fma_per_sm_clk",
		own(`"clock_mhz":1980,"bandwidth_gbs":1,"peak_dense_tflops":{"banana":1}`):                                       "1: peak_dense_tflops: banana 1: want a kind of arithmetic of gpus.json",
		`{"id":"a","sm_count":1,"clock_mhz":1,"bandwidth_gbs":1,"compute_capability":"nine"}`:                            `compute capability "nine"`,
	} {
		_, err := readText(t, text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "own.json:", text)
	}
	_, err := ReadFile(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzOwnGPU(f *testing.F) {
	for _, g := range All()[:3] {
		f.Add([]byte(g.JSON()))
	}
	f.Add([]byte(`{"id":"a","sm_count":1,"clock_mhz":1e300,"bandwidth_gbs":1,"compute_capability":"9.0","fma_per_sm_clk":{"fp64":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := parseGPU(data)
		if err != nil {
			return
		}
		for _, m := range Maths() {
			g.Peak(m)
		}
		require.Positive(t, g.SMs)
		require.Positive(t, g.L2().Value)
	})
}
