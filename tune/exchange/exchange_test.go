package exchange_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/exchange"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/store"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// recorded is a run of 40 configurations that end in every way.
func recorded(seed uint64) exchange.Recorded {
	r := rand.New(rand.NewPCG(seed, 0))
	run := store.Run{Started: begun, Family: "scale", Problem: []byte(`{"n":1000}`), GPU: "h100-sxm5-80", Types: store.Described, Policy: "median", Seed: 1 << 63}
	out := exchange.Recorded{Run: run}
	outcomes := store.Outcomes()
	for i := range 40 {
		e := store.Evaluation{
			At: begun.Add(time.Duration(i) * time.Second), Program: fmt.Sprint("p", i), Config: fmt.Sprintf("BM=%d load=%s", 16+i, []string{"plain", "bulk"}[i%2]),
			Outcome: outcomes[i%len(outcomes)], Registers: 32, Seconds: map[string]float64{"compile": 0.25},
		}
		switch {
		case e.Outcome == store.Predicted: // a table has times of one kind
			e.Outcome = store.Correct
			fallthrough
		case e.Outcome == store.Correct:
			e.Provenance, e.Verified = bench.Measured, true
			us := 1000 * (1 + r.Float64())
			e.TimeUS, e.Samples = us, []float64{us, us, us}
		default:
			e.Error = "because"
		}
		e.Key = run.Key(e.Program, e.Config)
		out.Evaluations = append(out.Evaluations, e)
	}
	return out
}

// What is written as a form of others is read back as that form says.
func TestFormsAreReadBack(t *testing.T) {
	want := recorded(1)
	for _, name := range exchange.Formats()[1:] {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, exchange.Write(&b, name, []exchange.Recorded{want}))
			s, err := replay.Read(t.Context(), &b)
			require.NoError(t, err)
			require.Empty(t, s.Cut)
			require.Equal(t, []string{"BM", "load"}, s.Names)
			require.Len(t, s.Entries, len(want.Evaluations))
			for i, e := range s.Entries {
				w := want.Evaluations[i]
				require.Equal(t, w.Config, fmt.Sprintf("BM=%s load=%s", e.Values[0].Plain(), e.Values[1].Plain()))
				require.Equal(t, w.Outcome == store.Correct, e.Status == replay.Correct, w.Config)
				if name == "t4" && w.Outcome != store.Resources {
					require.Equal(t, string(w.Outcome), string(e.Status))
				}
				require.InDelta(t, w.TimeUS/1000, e.MS, 1e-9)
				if name != "csv" {
					require.Len(t, e.Samples, len(w.Samples))
				}
				require.GreaterOrEqual(t, e.CostMS, 250.0)
			}
		})
	}
}

func TestJSONLosesNothing(t *testing.T) {
	want := []exchange.Recorded{recorded(1), recorded(2)}
	var b bytes.Buffer
	require.NoError(t, exchange.Write(&b, "json", want))
	got, err := exchange.Read(&b)
	require.NoError(t, err)
	require.Equal(t, want, got)

	s, err := store.Open(filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	defer s.Close()
	ids, added, err := s.Import(got[:1])
	require.NoError(t, err)
	require.Equal(t, 40, added)
	require.Len(t, ids, 1)
	id := ids[0]
	again, added, err := s.Import(got[:1])
	require.NoError(t, err)
	require.Empty(t, again)
	require.Zero(t, added)

	// One that is wrong keeps all others out.
	for _, spoil := range []func(*exchange.Recorded){
		func(r *exchange.Recorded) { r.GPU = "" }, func(r *exchange.Recorded) { r.GPU = "a\nb" }, func(r *exchange.Recorded) { r.GPU = strings.Repeat("g", 300) },
		func(r *exchange.Recorded) { r.Evaluations[3].SharedBytes = -1 }, func(r *exchange.Recorded) { r.Evaluations[3].Registers = 1 << 40 },
	} {
		bad := recorded(3)
		spoil(&bad)
		_, _, err = s.Import([]exchange.Recorded{want[1], bad})
		require.ErrorContains(t, err, "run 2 of 2: ")
	}
	runs, err := s.Runs()
	require.NoError(t, err)
	require.Len(t, runs, 1)

	all, err := s.Evaluations(id)
	require.NoError(t, err)
	for i := range all {
		w := want[0].Evaluations[i]
		w.ID, w.Run = all[i].ID, id
		require.Equal(t, w, all[i])
	}
	n, err := s.Prune([]int64{id})
	require.NoError(t, err)
	require.Equal(t, int64(40), n)
	_, err = s.Prune([]int64{id})
	require.ErrorIs(t, err, store.ErrNoRun)
}

func TestPublishedSpaceIsImported(t *testing.T) {
	space, err := replay.ReadFile(t.Context(), "../../testdata/tuning/convolution_milo__A100.csv.gz")
	require.NoError(t, err)
	r, err := exchange.FromSpace(space, "digest", begun)
	require.NoError(t, err)
	for i := range r.Evaluations { // as an import does
		r.Evaluations[i].Key = r.Key(r.Evaluations[i].Program, r.Evaluations[i].Config)
	}
	require.Len(t, r.Evaluations, 4362)
	var b bytes.Buffer
	require.NoError(t, exchange.Write(&b, "kernel-tuner", []exchange.Recorded{r}))
	back, err := replay.Read(t.Context(), &b)
	require.NoError(t, err)
	require.InDelta(t, space.Optimum().MS, back.Optimum().MS, 1e-12)
}

func TestCompare(t *testing.T) {
	a, b := recorded(1), recorded(1)
	for i := range b.Evaluations {
		if e := &b.Evaluations[i]; e.Outcome == store.Correct {
			e.TimeUS /= 2
		}
	}
	last := &b.Evaluations[0]
	last.Outcome, last.Error, last.TimeUS, last.Samples, last.Provenance, last.Verified = store.Timeout, "late", 0, nil, 0, false
	c, err := exchange.Compare(&a, &b)
	require.NoError(t, err)
	require.Equal(t, 40, c.Common)
	require.Equal(t, 9, c.Timed)
	require.Equal(t, 9, c.Faster)
	require.InDelta(t, 0.5, *c.MeanRatio, 1e-12)
	require.Equal(t, []exchange.Change{{Config: "BM=16 load=plain", A: store.Correct, B: store.Timeout}}, c.Changed)
}

// Bests of runs that have no configuration in common say nothing of each other.
// A predicted time over a measured one is no ratio.
func TestCompareOtherKinds(t *testing.T) {
	a, b := recorded(1), recorded(1)
	for i := range b.Evaluations {
		if e := &b.Evaluations[i]; e.Outcome.Timed() {
			e.Provenance, e.Samples, e.TimeUS = bench.Predicted, nil, e.TimeUS/2
		}
	}
	c, err := exchange.Compare(&a, &b)
	require.NoError(t, err)
	require.Equal(t, "the first run's times are measured, the second's predicted: a ratio of both would say nothing", c.Incomparable)
	require.Equal(t, []string{"measured", "predicted"}, []string{c.A.Provenance, c.B.Provenance})
	require.Nil(t, c.BestRatio)
	require.Nil(t, c.MeanRatio)
	require.Equal(t, []int{40, 10, 0, 0}, []int{c.Common, c.Timed, c.Faster, c.Slower})
	require.Empty(t, c.Changed)
}

func TestCompareNothingInCommon(t *testing.T) {
	a, b := recorded(1), recorded(1)
	for i := range b.Evaluations {
		b.Evaluations[i].Config = fmt.Sprintf("BM=%d load=plain", 1000+i)
	}
	c, err := exchange.Compare(&a, &b)
	require.NoError(t, err)
	require.Zero(t, c.Common)
	require.NotNil(t, c.A.BestUS)
	require.NotNil(t, c.B.BestUS)
	require.Nil(t, c.BestRatio)
	require.Nil(t, c.MeanRatio)
}

func TestMistakes(t *testing.T) {
	a, b := recorded(1), recorded(2)
	b.GPU = "a100"
	var out bytes.Buffer
	require.ErrorContains(t, exchange.Write(&out, "t4", []exchange.Recorded{a, b}), "want one kernel on one GPU")
	require.ErrorContains(t, exchange.Write(&out, "xml", nil), "want one of json, t4, kernel-tuner, csv")
	require.ErrorContains(t, exchange.Write(&out, "csv", nil), "no run")
	for text, want := range map[string]string{
		`{"kgen_store": 9}`: "of form 9: this kgen reads 1",
		`{"kgen_store": 1, "runs": [{"evaluations": [{"key": "00"}]}]}`: `key "00": want 64 hexadecimal digits`,
	} {
		_, err := exchange.Read(bytes.NewBufferString(text))
		require.ErrorIs(t, err, exchange.ErrContent)
		require.ErrorContains(t, err, want)
	}
	_, err := exchange.Read(bytes.NewBufferString(""))
	require.ErrorIs(t, err, exchange.ErrFormat)
	require.ErrorContains(t, err, "no member kgen_store")
}

// A run that no kgen recorded is refused whole, and the error says why.
func TestImpossibleRuns(t *testing.T) {
	family := func(r *exchange.Recorded) {
		r.Family, r.Types, r.Problem = "layernorm", "bf16", []byte(`{"rows":64,"cols":512}`)
	}
	for name, tt := range map[string]struct {
		spoil func(*exchange.Recorded)
		want  string // "" where it is right
	}{
		"a family's":        {family, ""},
		"others' GPU":       {func(r *exchange.Recorded) { r.GPU, r.Policy = "Radeon Pro W7800", "imported, as published" }, ""},
		"path as GPU":       {func(r *exchange.Recorded) { r.GPU, r.Policy = "../../x", "imported, as published" }, `GPU "../../x"`},
		"path as kernel":    {func(r *exchange.Recorded) { r.Family = "/etc/passwd" }, `kernel "/etc/passwd"`},
		"no such GPU":       {func(r *exchange.Recorded) { r.GPU = "h9000" }, `GPU "h9000": want one of kgen gpus`},
		"no such family":    {func(r *exchange.Recorded) { family(r); r.Family = "nope" }, `unknown family "nope"`},
		"rows below one":    {func(r *exchange.Recorded) { family(r); r.Problem = []byte(`{"rows":-1}`) }, "problem: --rows -1"},
		"no such flag":      {func(r *exchange.Recorded) { family(r); r.Problem = []byte(`{"heads":8}`) }, "heads"},
		"a time to come":    {func(r *exchange.Recorded) { r.Started = time.Now().AddDate(1, 0, 0) }, "want a time that has been"},
		"no configuration":  {func(r *exchange.Recorded) { r.Evaluations[3].Config = "BM16" }, `"BM16" is no NAME=VALUE`},
		"problem of a list": {func(r *exchange.Recorded) { family(r); r.Problem = []byte(`[1]`) }, "want a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := recorded(2)
			tt.spoil(&bad)
			var b bytes.Buffer
			require.NoError(t, exchange.Write(&b, "json", []exchange.Recorded{recorded(1), bad}))
			_, err := exchange.Read(&b)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, exchange.ErrContent)
			require.ErrorContains(t, err, "run 2 of 2: ")
			require.ErrorContains(t, err, tt.want)
		})
	}
}
