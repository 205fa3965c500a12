package replay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/search"
)

const spaces = "../../testdata/tuning"

func read(t *testing.T, name string) *replay.Space {
	t.Helper()
	s, err := replay.ReadFile(t.Context(), filepath.Join(spaces, name))
	require.NoError(t, err)
	return s
}

// The figures come from the methodology's own implementation.
func TestScoreMatchesPublishedVectors(t *testing.T) {
	for name, want := range map[string]struct {
		n, half, most, nearly int
		b10, b50, b200, best  float64
		at                    [3]float64 // expected fraction after 50, 100, 200
	}{
		"convolution_milo__A100":    {4201, 5, 1050, 1400, 1.0282, 0.8867, 0.7478, 0.8332, [3]float64{0.673, 0.724, 0.780}},
		"convolution_milo__MI250X":  {4362, 4, 51, 53, 5.7052, 1.7108, 0.9928, 1.5244, [3]float64{0.547, 0.677, 0.794}},
		"dedispersion_milo__MI250X": {11130, 16, 371, 530, 87.5001, 69.4758, 54.9840, 66.8110, [3]float64{0.760, 0.829, 0.893}},
		"gemm_clblast__RTX_3090":    {17956, 6, 1282, 1795, 8.7294, 7.3043, 6.6573, 7.1273, [3]float64{0.799, 0.838, 0.870}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := read(t, name+".csv.gz").Scale()
			require.NoError(t, err)
			require.Equal(t, []int{want.half, want.most, want.nearly}, []int{s.Evaluations(0.5), s.Evaluations(0.95), s.Evaluations(0.96)})
			const digits = 6e-4
			require.InDelta(t, want.b10, s.Random(10), digits)
			require.InDelta(t, want.b50, s.Random(50), digits)
			require.InDelta(t, want.b200, s.Random(200), digits)
			require.InDelta(t, want.best, s.ExpectedBest(50), digits)
			for i, k := range []int{50, 100, 200} {
				require.InDelta(t, want.at[i], s.ExpectedFraction(k), 6e-4)
			}
			require.Zero(t, s.Performance(s.Random(50), 50))
			require.InDelta(t, 1, s.Performance(s.Optimum(), 50), 0)
		})
	}
}

func TestCurveIsMedianRankAndScoreHoldsItsEnd(t *testing.T) {
	s, err := space(t, "a,status,mean_ms\n1,ok,8\n2,ok,4\n3,ok,2\n4,ok,1\n").Scale()
	require.NoError(t, err)
	nan := math.NaN()
	curve := s.Curve([][]float64{{8, 8, 1}, {nan, 4, 2}, {4, 4, 2}})
	require.Equal(t, []float64{8, 4, 2}, curve)
	mean, deviation := s.Score([]float64{1, 1, 1}, 0.01, 0.95, 100)
	require.InDelta(t, 1, mean, 1e-12)
	require.InDelta(t, 0, deviation, 1e-12)
}

func space(t *testing.T, text string) *replay.Space {
	t.Helper()
	s, err := replay.Read(t.Context(), strings.NewReader(text))
	require.NoError(t, err)
	return s
}

// The same five configurations in every format.
var formats = map[string]string{
	"kernel tuner": `{"device_name": "X", "kernel_name": "k", "tune_params_keys": ["a", "b"], "tune_params": {"a": [1, 2], "b": ["x", "y"]},
"cache": {
"1,x": {"a": 1, "b": "x", "time": 4.0, "times": [4.5, 3.5], "compile_time": 10, "verification_time": 0, "benchmark_time": 8, "framework_time": 1, "strategy_time": 0},
"2,x": {"a": 2, "b": "x", "time": "CompilationFailedConfig"},
"1,y": {"a": 1, "b": "y", "__error__": "RuntimeFailedConfig"},
"2,y": {"a": 2, "b": "y", "time": NaN},
"3,y": {"a": 3, "b": "y", "time": 2}
}}`,
	"t4": `{"schema_version": "1.0.0", "metadata": {"timeunit": "microseconds"}, "results": [
{"configuration": {"a": 1, "b": "x"}, "objectives": ["time"], "invalidity": "correct", "times": {"compilation": 10000, "framework": 1000, "runtimes": [4500, 3500]}, "measurements": [{"name": "time", "value": 4000, "unit": ""}]},
{"configuration": {"a": 2, "b": "x"}, "objectives": ["time"], "invalidity": "compile", "times": {"compilation_time": 1}, "measurements": []},
{"configuration": {"a": 1, "b": "y"}, "objectives": ["time"], "invalidity": "runtime", "times": {}, "measurements": []},
{"configuration": {"a": 2, "b": "y"}, "objectives": ["time"], "invalidity": "correct", "times": {}, "measurements": [{"name": "time", "value": NaN, "unit": ""}]},
{"configuration": {"b": "y", "a": 3}, "objectives": ["time"], "invalidity": "correct", "times": {}, "measurements": [{"name": "time", "value": 2, "unit": "ms"}]}
]}`,
	"ktt": `{"Metadata": {"Device": "X", "TimeUnit": "Microseconds"}, "Results": [
{"Configuration": [{"Name": "a", "Value": 1, "ValueType": "Int"}, {"Name": "b", "Value": "x", "ValueType": "String"}], "KernelName": "k_kernel", "Status": "Ok", "TotalDuration": 4000.0, "TotalOverhead": 19000},
{"Configuration": [{"Name": "a", "Value": 2}, {"Name": "b", "Value": "x"}], "Status": "CompilationFailed", "TotalDuration": 1.0},
{"Configuration": [{"Name": "a", "Value": 1}, {"Name": "b", "Value": "y"}], "Status": "ComputationFailed"},
{"Configuration": [{"Name": "a", "Value": 2}, {"Name": "b", "Value": "y"}], "Status": "Ok", "TotalDuration": -Infinity},
{"Configuration": [{"Name": "a", "Value": 3}, {"Name": "b", "Value": "y"}], "Status": "Ok", "TotalDuration": 2000}
]}`,
	"csv": "a,b,status,mean_ms,compile_ms\n1,x,ok,4,23\n2,x,compile,,\n1,y,runtime,,\n2,y,ok,nan,\n3,y,ok,2,\n",
}

func TestFormatsAgree(t *testing.T) {
	for name, text := range formats {
		t.Run(name, func(t *testing.T) {
			s := space(t, text)
			require.Equal(t, []string{"a", "b"}, s.Names)
			require.Empty(t, s.Cut)
			var got []string
			for _, e := range s.Entries {
				got = append(got, fmt.Sprint(e.Values[0].Text, e.Values[1].Text, " ", e.Status, " ", e.MS))
			}
			require.Equal(t, []string{`1"x" correct 4`, `2"x" compile 0`, `1"y" runtime 0`, `2"y" runtime 0`, `3"y" correct 2`}, got)
			r, err := s.Search(t.Context(), "", 100, 1)
			require.NoError(t, err)
			require.Equal(t, 5, r.Evaluations)
			require.JSONEq(t, `{"a": 3, "b": "y"}`, string(r.Best.Config))
			require.InDelta(t, 1, r.Fraction, 0)
		})
	}
}

// A file that was being written when its writer died is legal wherever it ends: what was
// complete is read, and nothing else.
func TestCutAnywhere(t *testing.T) {
	for name, text := range formats {
		whole := space(t, text).Entries
		for end := len(text) - 1; end > 0; end-- {
			s, err := replay.Read(t.Context(), strings.NewReader(text[:end]))
			if err != nil {
				require.ErrorIs(t, err, replay.ErrFormat, "%s cut at %d", name, end)
				continue
			}
			for i, e := range s.Entries {
				e.CostMS = whole[i].CostMS // of a CSV's last field nobody can tell
				require.Equal(t, whole[i], e, "%s cut at %d", name, end)
			}
		}
	}
}

func TestCutGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, "a,status,mean_ms\n")
	for i := range 5000 {
		fmt.Fprintf(z, "%d,ok,%d\n", i, i*i+1)
	}
	require.NoError(t, z.Close())
	s, err := replay.Read(t.Context(), bytes.NewReader(b.Bytes()[:b.Len()/2]))
	require.NoError(t, err)
	require.NotEmpty(t, s.Cut)
	require.Greater(t, len(s.Entries), 1000)
	last := s.Entries[len(s.Entries)-1]
	require.InDelta(t, last.Values[0].Number*last.Values[0].Number+1, last.MS, 0)
}

// What gzip says of a file that is broken, and of one that is made to fill the memory.
func TestBrokenGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, "a,status,mean_ms\n1,ok,4\n")
	require.NoError(t, z.Close())
	packed := b.Bytes()
	flipped := bytes.Clone(packed)
	flipped[10] ^= 0xff
	sum := bytes.Clone(packed)
	sum[len(sum)-5] ^= 1

	var bomb bytes.Buffer
	z = gzip.NewWriter(&bomb)
	fmt.Fprint(z, `{"cache": {"`)
	for range 256 {
		_, err := z.Write(bytes.Repeat([]byte{'a'}, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"magic alone":      {packed[:2], "it ends before anything that was packed"},
		"header alone":     {packed[:10], "it ends before anything that was packed"},
		"part of header":   {packed[:5], "it ends before anything that was packed"},
		"flipped byte":     {flipped, "flate: corrupt input"},
		"flipped checksum": {sum, "gzip: invalid checksum"},
		"bomb":             {bomb.Bytes(), "packed more than 100 times"},
	} {
		t.Run(name, func(t *testing.T) {
			from := bytes.NewReader(tt.data)
			_, err := replay.Read(t.Context(), from)
			require.ErrorIs(t, err, replay.ErrFormat)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "it is empty")
			if name == "bomb" { // which is left where it shows
				require.Greater(t, from.Len(), len(tt.data)/2)
			}
		})
	}
}

func TestBadFilesSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "it is empty",
		"{}":                       `want a member "cache"`,
		`{"a": 1, "b"`:             "ends before the first record",
		`{"cache": {"1": {}}}`:     "no tune_params_keys",
		`{"results": []}`:          "no configuration",
		`{"results": {}}`:          "results: want it to begin with [",
		`{"results": [{}]}`:        "record 1 of results: no configuration",
		"a,b\n1,2\n":               "want JSON, or CSV",
		"[]":                       "JSON that is a list: want an object",
		"null\n":                   "JSON that is null: want an object",
		"[1, 2":                    "a list: want an object",
		"PK\x03\x04\x00":           "it is binary",
		"a,status,mean_ms\n1,ok\n": "line 2 has 2 fields: want 3",
		"a,a,status,mean_ms\n":     `parameter "a" is named twice`,
		"{\"tune_params_keys\": [\"a\"],\n\"tune_params_keys\": [\"b\"]}":                              "line 2: tune_params_keys is there twice",
		"{\"tune_params_keys\": [\"a\"], \"cache\": {\n\"1\": {\"a\": 1, \"time\": 1, \"time\": 2}}}":  "line 2: record 1 of cache: time is there twice",
		"{\"results\": [{\"configuration\": {\"a\": 1}},\n{\"configuration\": {\"a\": 1, \"a\": 2}}]}": "line 2: record 2 of results: a is there twice",
		`{"tune_params_keys": ["a"],` + "\n" + `"cache": {"1": {"b": 1}}}`:                             "line 2: record 1 of cache: no value for a",
	} {
		_, err := replay.Read(t.Context(), strings.NewReader(text))
		require.ErrorIs(t, err, replay.ErrFormat, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := space(t, "a,status,mean_ms\n1,compile,\n").Search(t.Context(), "", 1, 0)
	require.ErrorContains(t, err, "not one of its 1 configurations has a time")
}

// What published files hold beside the plain case.
func TestQuirks(t *testing.T) {
	const t4 = `{"metadata": {"timeunit": "miliseconds"}, "results": [{"configuration": {"a": 1}, "invalidity": "correct", `
	const cache = `{"objective": "energy", "tune_params_keys": ["a"], "cache": {"1": `
	for name, tt := range map[string]struct {
		text, value string
		ms          float64
	}{
		"an object as a value":            {cache + `{"a": {"b": [1, 2]}, "time": 4}}}`, `{"b":[1,2]}`, 4},
		"a list as a value":               {cache + `{"a": [1, 2], "time": 4}}}`, `[1,2]`, 4},
		"a truth value":                   {cache + `{"a": true, "time": 4}}}`, `true`, 4},
		"nothing":                         {cache + `{"a": null, "time": 4}}}`, `null`, 4},
		"a fraction":                      {cache + `{"a": 0.5, "time": 4}}}`, `0.5`, 4},
		"another objective beside a time": {cache + `{"a": 1, "time": 4, "energy": 2}}}`, `1`, 4},
		"two objectives":                  {t4 + `"objectives": ["energy", "time"], "measurements": [{"name": "energy", "value": 2, "unit": "J"}, {"name": "time", "value": 4}]}]}`, `1`, 4},
		"a time of another name":          {t4 + `"objectives": ["duration"], "measurements": [{"name": "duration", "value": 4000, "unit": "us"}]}]}`, `1`, 4},
		"seconds":                         {t4 + `"objectives": ["time"], "measurements": [{"name": "time", "value": 0.004, "unit": "s"}]}]}`, `1`, 4},
		"nanoseconds":                     {t4 + `"objectives": ["time"], "measurements": [{"name": "time", "value": 4e6, "unit": "nanoseconds"}]}]}`, `1`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := space(t, tt.text)
			require.Len(t, s.Entries, 1)
			require.Equal(t, tt.value, s.Entries[0].Values[0].Text)
			require.Equal(t, replay.Correct, s.Entries[0].Status)
			require.InDelta(t, tt.ms, s.Entries[0].MS, 1e-9)
		})
	}
	for _, text := range []string{
		`{"objective": "score", "tune_params_keys": ["a"], "cache": {"1": {"a": 1, "score": 0.5}}}`,
		t4 + `"objectives": ["score"], "measurements": [{"name": "score", "value": 0.5, "unit": ""}]}]}`,
	} {
		_, err := replay.Read(t.Context(), strings.NewReader(text))
		require.ErrorIs(t, err, replay.ErrFormat)
		require.ErrorContains(t, err, `its objective is "score", and no configuration has a time`)
	}
}

// Whoever reads a file that ends early is told how.
func TestCutIsSaid(t *testing.T) {
	const cache = `{"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 4},`
	for text, want := range map[string]replay.Cut{
		"a,status,mean_ms,bench_ms\n1,ok,4,1\n":     "",
		"a,status,mean_ms,bench_ms\n1,ok,4,1":       replay.CutLine,
		"a,status,mean_ms,bench_ms\n1,ok,4,1\n2,ok": replay.CutRecord,
		"a,status,mean_ms\n1,ok,4\n2,ok,1":          replay.CutTime,
		cache:                                       replay.CutEnd,
		cache + `"2": {"a": 2`:                      replay.CutRecord,
	} {
		s := space(t, text)
		require.Equal(t, want, s.Cut, text)
		require.Len(t, s.Entries, 1, text)
	}
}

func TestNameOfPackedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "space.csv.gz")
	require.NoError(t, os.WriteFile(file, []byte("a,status,mean_ms\n1,ok,4\n"), 0o666))
	_, err := replay.ReadFile(t.Context(), file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o666))
	_, err = replay.ReadFile(t.Context(), file)
	require.ErrorContains(t, err, "gzip did not pack it")
	require.ErrorIs(t, err, replay.ErrFormat)
}

func FuzzRead(f *testing.F) {
	for _, text := range formats {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := replay.Read(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		if r, err := s.Search(t.Context(), "random", 5, 0); err == nil {
			_, err = json.Marshal(r)
			require.NoError(t, err)
		}
	})
}

// Every strategy finds the same configurations in the same order for a seed, tries
// none twice, and another seed goes another way.
func TestRepeatable(t *testing.T) {
	s := read(t, "convolution_milo__A100.csv.gz")
	for _, strategy := range search.Names() {
		t.Run(strategy, func(t *testing.T) {
			var runs []string
			for _, seed := range []uint64{7, 7, 8} {
				r, err := s.Search(t.Context(), strategy, 60, seed)
				require.NoError(t, err)
				require.Equal(t, 60, r.Evaluations)
				tried := map[string]bool{}
				for _, e := range r.Trace {
					tried[string(e.Config)] = true
				}
				require.Len(t, tried, 60)
				b, err := json.Marshal(r.Trace)
				require.NoError(t, err)
				runs = append(runs, string(b))
			}
			require.Equal(t, runs[0], runs[1])
			if strategy != "exhaustive" {
				require.NotEqual(t, runs[0], runs[2])
			}
		})
	}
}

// A budget only says when a search stops.
func TestDefaultDoesNotDependOnBudget(t *testing.T) {
	s := read(t, "convolution_milo__A100.csv.gz")
	short, err := s.Search(t.Context(), "", 40, 3)
	require.NoError(t, err)
	long, err := s.Search(t.Context(), "", 60, 3)
	require.NoError(t, err)
	require.Equal(t, short.Trace, long.Trace[:40])
}

func TestWholeSpaceIsTriedInTheEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("a,b,c,status,mean_ms\n")
	for i := range 7 * 5 * 4 {
		if a, c := i%7, i/35; a != c { // a space with a hole
			fmt.Fprintf(&b, "%d,%d,%d,ok,%d\n", a, i/7%5, c, 1+i*37%101)
		}
	}
	s := space(t, b.String())
	for _, strategy := range search.Names() {
		r, err := s.Search(t.Context(), strategy, 1000, 1)
		require.NoError(t, err)
		require.Equal(t, len(s.Entries), r.Evaluations, strategy)
		require.InDelta(t, 1, r.Fraction, 0, strategy)
	}
}

// The default is well above random on every space even with few seeds; `make
// tuner-score` has the figures.
func TestDefaultBeatsRandom(t *testing.T) {
	seeds := 4
	if os.Getenv("KGEN_FULL") != "" {
		seeds = 50
	}
	files, err := filepath.Glob(filepath.Join(spaces, "*.csv.gz"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, f := range files {
		s, err := replay.ReadFile(t.Context(), f)
		require.NoError(t, err)
		scale, err := s.Scale()
		require.NoError(t, err)
		sum := 0.0
		for seed := range seeds {
			r, err := s.Search(t.Context(), "", 100, uint64(seed))
			require.NoError(t, err)
			sum += r.Fraction
		}
		require.Greater(t, sum/float64(seeds), scale.ExpectedFraction(100), f)
	}
}
