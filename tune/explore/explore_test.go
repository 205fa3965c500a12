package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// options are of a search of everything there is in the raw samples.
func options(s *replay.Space, db *store.Store, b trial.Bench) explore.Options {
	return explore.Options{
		Domain: s.Domain(), Bench: b, Measures: true, Store: db,
		Config: func(p search.Point) space.Config {
			c := space.Config{}
			for i, v := range p {
				c = c.With(s.Names[i], v)
			}
			return c
		},
		Program:  func(p search.Point) (string, error) { return fmt.Sprint(p), nil },
		Run:      store.Run{Family: "convolution", Problem: []byte(`{}`), GPU: "a100", Policy: "fake"},
		Strategy: "random", Budget: len(s.Entries), Batch: 8, Cool: time.Millisecond,
	}
}

func pool(t *testing.T, faults, log string) *trial.Pool {
	t.Helper()
	p := &trial.Pool{Command: child(faults, log), Workers: 2, OneDevice: true, Deadlines: trial.Deadlines{Run: time.Second}}
	t.Cleanup(p.Close)
	return p
}

func raw(t *testing.T) *replay.Space {
	t.Helper()
	s, err := replay.ReadFile(t.Context(), rawSamples)
	require.NoError(t, err)
	return s
}

func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	db, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// regret is by how much the chosen configuration's true time exceeds the best's.
func regret(s *replay.Space, r *explore.Result) float64 {
	best := truth(s, r.Tried[0].Point)
	for _, t := range r.Tried {
		best = min(best, truth(s, t.Point))
	}
	return truth(s, r.Best[0].Point)/best - 1
}

const mostRegret = 0.003

// Every fault ends its own configuration and nothing else, in the right class, and the
// best is found all the same.
func TestSurvivesEverything(t *testing.T) {
	t.Parallel()
	s := raw(t)
	r, err := explore.Explore(t.Context(), options(s, openStore(t, filepath.Join(t.TempDir(), "db")), pool(t, "1", "")))
	require.NoError(t, err)
	require.Len(t, r.Tried, len(s.Entries))
	met := map[fault]int{}
	for _, tried := range r.Tried {
		kind := faultOf(s, "1", tried.Point)
		if kind != none {
			met[kind]++
		}
		want := outcomeOf(s, "1", tried.Point)
		require.Equal(t, want, tried.Evaluation.Outcome, "%s: fault %d: %s", tried.Config, kind, tried.Evaluation.Error)
	}
	require.Len(t, met, int(faults)-1, "not every fault was met: %v", met)
	t.Logf("regret %.5f of %d configurations, %d measured anew", regret(s, r), len(r.Tried), r.Fresh)
	require.Less(t, regret(s, r), mostRegret)
	require.Equal(t, explore.DefaultFinalists, r.Finalists)
	for _, b := range r.Best[:r.Finalists] {
		require.Len(t, b.Evaluation.Samples, explore.DefaultSamples)
		require.LessOrEqual(t, b.Low, b.Evaluation.TimeUS)
		require.GreaterOrEqual(t, b.High, b.Evaluation.TimeUS)
	}
}

// outcomeOf is how a point must be classed.
func outcomeOf(s *replay.Space, faults string, p search.Point) store.Outcome {
	kind := faultOf(s, faults, p)
	switch e := s.Entry(p); {
	case faults != "" && kind != none:
		return outcomes[kind]
	case e.Status == replay.Compile:
		return store.Compile
	case e.Status != replay.Correct:
		return store.Runtime
	}
	return store.Correct
}

// tuneToEnd is the tuner that is killed.
func tuneToEnd(path string) error {
	s, err := replay.ReadFile(context.Background(), rawSamples)
	if err != nil {
		return err
	}
	db, err := store.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	p := &trial.Pool{Command: child(os.Getenv(faultsEnv), os.Getenv(logEnv)), Workers: 2, OneDevice: true, Deadlines: trial.Deadlines{Run: 200 * time.Millisecond}}
	defer p.Close()
	o := options(s, db, p)
	o.Budget = 200
	o.Progress = func(p explore.Progress) { fmt.Println(p.Phase, p.Done) }
	_, err = explore.Explore(context.Background(), o)
	return err
}

// A tuner that is killed again and again, at moments and among faults that a seed draws,
// does nothing twice but what was under way, and classes all as one that was not killed.
func TestKilledTunerResumes(t *testing.T) {
	t.Parallel()
	for seed, faults := range []string{"", "1", "2"} {
		t.Run("faults "+faults, func(t *testing.T) {
			t.Parallel()
			testKilled(t, faults, rand.New(rand.NewPCG(uint64(seed), 5)))
		})
	}
}

func testKilled(t *testing.T, faults string, r *rand.Rand) {
	dir := t.TempDir()
	log, path := filepath.Join(dir, "log"), filepath.Join(dir, "db")
	tuner := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"=tuner", storeEnv+"="+path, logEnv+"="+log, faultsEnv+"="+faults)
		cmd.Stderr = os.Stderr
		return cmd
	}
	const kills, batch = 4, 8
	for round := range kills {
		cmd := tuner()
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		at := 20*round + r.IntN(40) // of what is tried; the last is killed among the finals
		for {
			var phase string
			var done int
			if _, err := fmt.Fscan(out, &phase, &done); err != nil {
				break
			}
			if round < kills-1 && done > at || phase == string(explore.Finals) && done > r.IntN(10) {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
	}
	require.NoError(t, tuner().Run())
	lines, _, err := logged(log, 0)
	require.NoError(t, err)
	twice, samples := 0, 0
	for line, n := range lines {
		if n > 1 && line[0] == 'c' {
			twice += n - 1
		}
		if line[:4] == "run1" {
			samples += n
		}
	}
	require.LessOrEqual(t, twice, kills*batch, "compiled twice beyond what was under way")
	most := 200 + explore.DefaultFinalists*explore.DefaultSamples + kills*batch + 2*batch // steadying included
	require.LessOrEqual(t, samples, most)

	s, db := raw(t), openStore(t, path)
	runs, err := db.Runs()
	require.NoError(t, err)
	recorded, classes := map[store.Key]int{}, map[string]store.Outcome{}
	for _, r := range slices.Backward(runs) {
		all, err := db.Evaluations(r.ID)
		require.NoError(t, err)
		for _, e := range all {
			recorded[e.Key]++
			if !e.Single() {
				classes[e.Program] = e.Outcome
			}
		}
	}
	for key, n := range recorded {
		require.LessOrEqual(t, n, 2, "%s", key) // a second time where the device was slow
	}
	require.Len(t, classes, 200)
	for p, ok := s.Domain().Next(nil); ok; p, ok = s.Domain().Next(p) {
		if got, ok := classes[fmt.Sprint(p)]; ok {
			require.Equal(t, outcomeOf(s, faults, p), got, "%v", p)
		}
	}
}

func TestTimeBudgetAndNothing(t *testing.T) {
	s := raw(t)
	o := options(s, openStore(t, filepath.Join(t.TempDir(), "db")), pool(t, "", ""))
	o.Time = time.Nanosecond
	_, err := explore.Explore(t.Context(), o)
	require.ErrorIs(t, err, explore.ErrNothing)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Time = 0
	_, err = explore.Explore(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
}

// counting is a bench that predicts the published times. What of says of a point is wrong
// when it is checked again.
type counting struct {
	space *replay.Space
	wrong func(p []int) bool
	again int // checks over other contents
}

func (c *counting) Compile(_ context.Context, p []int) (trial.Built, error) {
	return trial.Built{Program: fmt.Sprint(p), Cubin: fmt.Sprint(p), Same: fmt.Sprint(p)}, nil
}

func (c *counting) Run(_ context.Context, p []int, samples int) (trial.Ran, error) {
	if samples == trial.Again {
		if c.again++; c.wrong(p) {
			return trial.Ran{Outcome: store.Correctness, Error: "other contents"}, nil
		}
	}
	e := c.space.Entry(p)
	if e.Status != replay.Correct {
		return trial.Ran{Outcome: store.Runtime, Error: "as published"}, nil
	}
	return trial.Ran{Outcome: store.Correct, TimeUS: 1000 * e.MS, Provenance: bench.Predicted, Verified: true}, nil
}

// Where times are predicted, too, the winner is checked again: one that is wrong over other
// contents does not win, and what was checked again is not checked a third time.
func TestPredictedWinnerIsCheckedAgain(t *testing.T) {
	s := raw(t)
	best := s.Optimum()
	b := &counting{space: s, wrong: func(p []int) bool { return s.Entry(p) == best }}
	db := openStore(t, filepath.Join(t.TempDir(), "db"))
	o := options(s, db, b)
	o.Measures = false
	r, err := explore.Explore(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 2, b.again)
	require.Len(t, r.Lost, 1)
	require.Equal(t, best, s.Entry(r.Lost[0].Point))
	require.Equal(t, store.Correctness, r.Lost[0].Evaluation.Outcome)
	require.NotEqual(t, best, s.Entry(r.Best[0].Point))
	for _, x := range r.Best {
		require.GreaterOrEqual(t, x.Evaluation.TimeUS, r.Best[0].Evaluation.TimeUS)
	}

	second, err := explore.Explore(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 2, b.again)
	require.Zero(t, second.Fresh)
	require.Equal(t, r.Best[0].Point, second.Best[0].Point)
	require.Empty(t, second.Lost) // it failed before it could lead
}

// heating is a measuring bench that answers from the published times. It slows down at
// some run, until somebody has looked at it so often.
type heating struct {
	counting
	runs, from, looks int
}

func (h *heating) Run(ctx context.Context, p []int, samples int) (trial.Ran, error) {
	r, err := h.counting.Run(ctx, p, samples)
	if r.Outcome != store.Correct {
		return r, err
	}
	r.Provenance, r.TimeUS = bench.Measured, 0
	us := 1000 * h.space.Entry(p).MS
	h.runs += samples
	if h.runs >= h.from && h.looks > 0 {
		us *= 1.4
		if samples == looks {
			h.looks--
		}
	}
	for range samples {
		r.Samples = append(r.Samples, us)
	}
	return r, nil
}

// failing is a measuring bench on which a configuration fails from its second run on.
type failing struct {
	heating
	entry *replay.Entry
	ran   bool
}

func (f *failing) Run(ctx context.Context, p []int, samples int) (trial.Ran, error) {
	if f.space.Entry(p) == f.entry {
		if f.ran {
			return trial.Ran{Outcome: store.Runtime, Error: "the second time"}, nil
		}
		f.ran = true
	}
	return f.heating.Run(ctx, p, samples)
}

// A leader that fails when it is timed again is lost, and no longer among the best by the
// time that it had come to before.
func TestLostLeaderIsNotAmongTheBest(t *testing.T) {
	s := raw(t)
	var second *replay.Entry // fastest
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Status == replay.Correct && e.MS > s.Optimum().MS && (second == nil || e.MS < second.MS) {
			second = e
		}
	}
	b := &failing{heating: heating{counting: counting{space: s, wrong: func([]int) bool { return false }}}, entry: second}
	o := options(s, openStore(t, filepath.Join(t.TempDir(), "db")), nil)
	o.Bench = inTurn{b, &sync.Mutex{}}
	r, err := explore.Explore(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, r.Lost, 1)
	require.Same(t, second, s.Entry(r.Lost[0].Point))
	seen := map[string]bool{}
	for _, x := range r.Best {
		require.NotSame(t, second, s.Entry(x.Point), "it failed, but is among the best with %g us", x.Evaluation.TimeUS)
		require.False(t, seen[x.Config.String()], "%s is there twice", x.Config)
		seen[x.Config.String()] = true
	}
}

// looks is how often a look at the device times a configuration.
const looks = 2

// What was timed while the device was slow is timed again once it is not, and marked if it
// stays so.
func TestThrottling(t *testing.T) {
	s := raw(t)
	for name, tt := range map[string]struct {
		looks  int
		marked bool
	}{"it cools": {2, false}, "it stays hot": {1 << 30, true}} {
		t.Run(name, func(t *testing.T) {
			b := &heating{counting: counting{space: s, wrong: func([]int) bool { return false }}, from: 100, looks: tt.looks}
			o := options(s, openStore(t, filepath.Join(t.TempDir(), "db")), b)
			o.Budget, o.Batch = 150, 4
			o.Bench = inTurn{b, &sync.Mutex{}}
			r, err := explore.Explore(t.Context(), o)
			require.NoError(t, err)
			marked := 0
			for _, x := range r.Tried {
				e := &x.Evaluation
				if !e.Outcome.Timed() {
					continue
				}
				want := 1000 * s.Entry(x.Point).MS
				if e.Throttled {
					marked++
					want *= 1.4
				}
				require.InEpsilon(t, want, e.Samples[0], 1e-9, "%s, throttled %v", x.Config, e.Throttled)
			}
			require.Equal(t, tt.marked, marked > 0)
		})
	}
}

// inTurn has one do at a time.
type inTurn struct {
	trial.Bench
	lock *sync.Mutex
}

func (i inTurn) Run(ctx context.Context, p []int, samples int) (trial.Ran, error) {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.Bench.Run(ctx, p, samples)
}
