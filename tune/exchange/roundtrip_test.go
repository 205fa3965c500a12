package exchange_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	_ "github.com/kgen-dev/kgen/internal/fixedseed"
	"github.com/kgen-dev/kgen/tune/exchange"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/store"
)

// Whatever way a run takes through forms of others, its times stay measured or predicted,
// and its kernel, GPU and problem what they were.
func TestOriginSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]bench.Provenance{bench.Measured, bench.Predicted}).Draw(t, "from")
		want := exchange.Recorded{Run: store.Run{
			Started: begun, Family: rapid.SampledFrom([]string{"layernorm", "a kernel, \"quoted\"", "scale"}).Draw(t, "kernel"),
			GPU:     rapid.SampledFrom([]string{"h100-sxm5-80", "Radeon Pro W7800"}).Draw(t, "gpu"),
			Policy:  "imported, as published",
			Problem: []byte(rapid.SampledFrom([]string{`{}`, `{"rows":64}`, `{"dtype":"bf16","eps":1e-05}`}).Draw(t, "problem")),
		}}
		for i := range rapid.IntRange(1, 5).Draw(t, "configurations") {
			e := store.Evaluation{At: begun, Program: "p", Config: fmt.Sprintf("BM=%d load=bulk", 16+i)}
			e.Outcome = rapid.SampledFrom([]store.Outcome{store.Correct, store.Predicted, store.Compile}).Draw(t, "outcome")
			if e.Outcome == store.Predicted && from == bench.Measured {
				e.Outcome = store.Correct
			}
			if e.Outcome.Timed() {
				e.TimeUS, e.Provenance = rapid.Float64Range(1, 1e6).Draw(t, "us"), from
			} else {
				e.Error = "because"
			}
			want.Evaluations = append(want.Evaluations, e)
		}
		got := want
		for range rapid.IntRange(1, 3).Draw(t, "ways") {
			got = throughForm(t, rapid.SampledFrom(exchange.Formats()[1:]).Draw(t, "form"), got)
		}
		require.Equal(t, want.Family, got.Family)
		require.Equal(t, want.GPU, got.GPU)
		require.JSONEq(t, string(want.Problem), string(got.Problem))
		require.Len(t, got.Evaluations, len(want.Evaluations))
		for i, e := range got.Evaluations {
			w := want.Evaluations[i]
			require.Equal(t, w.Provenance, e.Provenance, w.Config)
			require.Equal(t, w.Outcome, e.Outcome, w.Config)
			require.InEpsilon(t, 1+w.TimeUS, 1+e.TimeUS, 1e-12)
		}
	})
}

// throughForm writes a run in a form and reads it.
func throughForm(t *rapid.T, form string, r exchange.Recorded) exchange.Recorded {
	var b bytes.Buffer
	require.NoError(t, exchange.Write(&b, form, []exchange.Recorded{r}))
	s, err := replay.Read(t.Context(), &b)
	require.NoError(t, err)
	out, err := exchange.FromSpace(s, "digest", begun)
	require.NoError(t, err)
	return out
}

// Of a file that does not say, times are measured, as published.
// full is a run whose evaluations have everything that the store keeps.
func full() exchange.Recorded {
	r := recorded(7)
	r.Command, r.Kgen, r.Compiler, r.Driver, r.Budget = "kgen tune", "v1", "NVRTC 13.0 -O3", "a GPU", 40
	for i := range r.Evaluations {
		e := &r.Evaluations[i]
		e.SharedBytes, e.SpillBytes, e.CTAsPerSM, e.Cubin = 1024*i, 4*i, 1+i%8, fmt.Sprint("cubin", i)
		e.Instructions, e.Throttled = map[string]int{"HGMMA": i}, i%2 == 1
		e.Seconds["run"] = float64(i)
		if e.Outcome.Timed() {
			e.Limits = map[string]float64{"HBM": e.TimeUS / 3}
			e.Samples = []float64{e.TimeUS * 0.9, e.TimeUS * 1.5, e.TimeUS}
		} else {
			e.Error = "line 1,\n\"quoted\" µs"
		}
		e.Key, e.ID, e.Run = store.Key{}, 0, 0
	}
	return r
}

// What T4 and Kernel Tuner leave room for comes back whole, so that an import adds nothing
// to the store that wrote it; of a CSV what its columns hold.
func TestOwnEvaluationsComeBack(t *testing.T) {
	for _, form := range []string{"t4", "kernel-tuner", "csv"} {
		t.Run(form, func(t *testing.T) {
			want := full()
			var b bytes.Buffer
			require.NoError(t, exchange.Write(&b, form, []exchange.Recorded{want}))
			s, err := replay.Read(t.Context(), &b)
			require.NoError(t, err)
			got, err := exchange.FromSpace(s, "digest", begun)
			require.NoError(t, err)
			if form != "csv" {
				require.Equal(t, want, got)
				return
			}
			for i, e := range got.Evaluations {
				w := want.Evaluations[i]
				require.InEpsilon(t, 1+w.TimeUS, 1+e.TimeUS, 1e-12)
				require.InDelta(t, w.Seconds["compile"]+w.Seconds["run"], e.Seconds["all"], 1e-9)
				w.At, w.TimeUS, w.Samples, w.Seconds, w.Limits, w.Cubin, w.Instructions = e.At, e.TimeUS, nil, e.Seconds, nil, "", nil
				require.Equal(t, w, e)
			}
		})
	}
}

// A time that somebody changed is theirs: nothing is said of it that kgen knew of the old.
func TestChangedTimeIsAnothers(t *testing.T) {
	for form, old := range map[string]string{"t4": `"value": 1.25,`, "kernel-tuner": `"time": 1.25,`} {
		r := full()
		e := &r.Evaluations[0]
		e.TimeUS, e.Samples = 1250, []float64{1250}
		var b bytes.Buffer
		require.NoError(t, exchange.Write(&b, form, []exchange.Recorded{r}))
		require.Contains(t, b.String(), old)
		s, err := replay.Read(t.Context(), strings.NewReader(strings.Replace(b.String(), old, strings.Replace(old, "1.25", "0.5", 1), 1)))
		require.NoError(t, err)
		got, err := exchange.FromSpace(s, "digest", begun)
		require.NoError(t, err)
		require.Equal(t, []any{500.0, false, 0}, []any{got.Evaluations[0].TimeUS, got.Evaluations[0].Verified, got.Evaluations[0].Registers}, form)
		require.True(t, got.Evaluations[8].Verified)
	}
}

// What stands where kgen writes but is none of it is refused, or another's.
func TestStrangeOwnMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"time": 2, "kgen": {"registers": "x"}}`:     "what kgen wrote beside it",
		`{"time": 2, "kgen": {"outcome": "timeout"}}`: "",
		`{"time": 2, "kgen": 7}`:                      "",
		`{"time": 2, "kgen": {"time_us": NaN}}`:       "",
	} {
		s, err := replay.Read(t.Context(), strings.NewReader(`{"tune_params_keys": ["a"], "cache": {"1": {"a": 1, `+text[1:]+`}}`))
		require.NoError(t, err)
		r, err := exchange.FromSpace(s, "digest", begun)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []any{store.Correct, 2000.0}, []any{r.Evaluations[0].Outcome, r.Evaluations[0].TimeUS}, text)
	}
}

func TestForeignTimesAreMeasured(t *testing.T) {
	for name, text := range map[string]string{
		"csv":          "a,status,mean_ms\n1,ok,2\n",
		"kernel-tuner": `{"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 2}}}`,
		"t4":           `{"metadata": {"provenance": "from our cluster"}, "results": [{"configuration": {"a": 1}, "times": {"runtimes": [2]}}]}`,
		"ktt":          `{"Results": [{"Configuration": [{"Name": "a", "Value": 1}], "Status": "Ok", "TotalDuration": 2}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := replay.Read(t.Context(), bytes.NewBufferString(text))
			require.NoError(t, err)
			r, err := exchange.FromSpace(s, "digest", begun)
			require.NoError(t, err)
			require.Equal(t, "kernel on unknown, imported, as published, {}", fmt.Sprintf("%s on %s, %s, %s", r.Family, r.GPU, r.Policy, r.Problem))
			e := r.Evaluations[0]
			require.Equal(t, []any{store.Correct, bench.Measured, 2000.0}, []any{e.Outcome, e.Provenance, e.TimeUS})
		})
	}
}

// A kernel's or GPU's name is none that leads elsewhere as a file's.
func TestSpaceOfAPathIsRefused(t *testing.T) {
	for _, s := range []*replay.Space{{Kernel: "../../x"}, {Device: "/etc/passwd"}} {
		_, err := exchange.FromSpace(s, "digest", begun)
		require.ErrorContains(t, err, "want a name, and no path that leads elsewhere")
	}
}
