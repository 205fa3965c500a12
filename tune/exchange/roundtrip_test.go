package exchange_test

import (
	"bytes"
	"fmt"
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
			require.Equal(t, w.Outcome.Timed(), e.Outcome.Timed(), w.Config)
			require.Equal(t, w.Provenance == bench.Predicted, e.Outcome == store.Predicted, w.Config)
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
