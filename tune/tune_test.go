package tune

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/store"
)

// TestMain lets the test binary be its own child: with childEnv it tunes until it is
// killed, with faultyEnv it tries configurations.
func TestMain(m *testing.M) {
	var err error
	switch dir := os.Getenv(childEnv); {
	case os.Getenv(faultyEnv) != "":
		err = serveFaulty(os.Getenv(faultyEnv))
	case dir != "":
		err = child(dir)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	childEnv  = "KGEN_TUNE_TEST_CHILD"
	faultyEnv = "KGEN_TUNE_TEST_FAULTY" // the binary serves trials that go wrong
)

// options are for a small matrix product on an A100 without a compiler, in dir.
func options(dir string) (Options, error) {
	gpu, err := target.Lookup("a100")
	if err != nil {
		return Options{}, err
	}
	f, err := kernels.Family("gemm")
	if err != nil {
		return Options{}, err
	}
	p, err := f.Problem(map[string]string{"m": "260", "n": "264", "k": "200", "bias": "true", "act": "relu"}, gpu)
	if err != nil {
		return Options{}, err
	}
	s, err := store.Open(filepath.Join(dir, "tune.db"))
	if err != nil {
		return Options{}, err
	}
	return Options{Family: f, Problem: few{p}, GPU: gpu, Store: s, Dir: filepath.Join(dir, "out"), Configs: 12, Top: 3, Workers: 2}, nil
}

// few is a product with few configurations.
type few struct{ family.Problem }

func (few) Space(gpu *target.GPU) (*space.Bound, error) {
	s := space.Space{
		Params: []space.Param{
			{Name: "BM", Values: []int{32, 64}}, {Name: "BN", Values: []int{32, 64}}, {Name: "BK", Values: []int{32}},
			{Name: "warps", Values: []int{4, 8}}, {Name: "stages", Values: []int{2, 3, 4}}, {Name: "group", Values: []int{1}}, {Name: "split", Values: []int{1, 2}}, {Name: "cluster", Values: []int{1}}, {Name: "persistent", Values: []int{0}}, {Name: "hilbert", Values: []int{0}}, {Name: "portable", Values: []int{0}}, {Name: "copy", Values: []int{0}}, {Name: "atomic", Values: []int{0}},
		},
		Constraints: []space.Constraint{{Name: "warp tile", Expr: "BM*BN >= 256*warps"}},
	}
	return s.Bind(family.Env(gpu))
}

func testOptions(t *testing.T, dir string) Options {
	t.Helper()
	o, err := options(dir)
	require.NoError(t, err)
	t.Cleanup(func() { o.Store.Close() })
	return o
}

func run(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	return r
}

// withoutPaths is a result as JSON but for its files and what it took.
func withoutPaths(t *testing.T, r *Result) string {
	t.Helper()
	c := *r
	c.Artifacts, c.Seconds = Artifacts{}, nil
	b, err := json.Marshal(c)
	require.NoError(t, err)
	return string(b)
}

// What a program learned of its configurations it need not learn again: the result is
// the same, also where the store lost a part, and another program learns anew.
func TestRankingIsKept(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(t, dir)
	c, err := cache.Open(filepath.Join(dir, "cache"))
	require.NoError(t, err)
	var log bytes.Buffer
	o.Cache, o.Build, o.Top = c, "a build", 1
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	lowered := 0
	o.Problem = counting{o.Problem, &lowered}
	o.Workers = 1
	first := run(t, o)
	all := lowered

	lowered = 0
	second := run(t, o)
	require.Equal(t, withoutPaths(t, first), withoutPaths(t, second))
	require.Less(t, lowered, 4, "of %d: what is written is lowered", all)
	again, err := o.Store.Evaluations(2)
	require.NoError(t, err)
	require.Empty(t, again)

	lowered = 0
	other := o
	other.Build = "another build"
	third := run(t, other)
	require.Equal(t, withoutPaths(t, first), withoutPaths(t, third))
	require.Greater(t, lowered, all/2)

	s, err := store.Open(filepath.Join(dir, "new.db"))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	o.Store = s
	require.Equal(t, withoutPaths(t, first), withoutPaths(t, run(t, o)))
}

// counting counts the programs that are made.
type counting struct {
	family.Problem
	n *int
}

func (c counting) Program(config space.Config) (*ir.Program, error) {
	*c.n++
	return c.Problem.Program(config)
}

// A stored time that nothing can reach, or that its terms do not add up to, is
// evaluated again, and its row kept.
func TestImpossibleTimesAreNotBelieved(t *testing.T) {
	for name, damage := range map[string]string{
		"below the least": `time_us = 1e-9, terms = NULL`,
		"not its terms":   `time_us = 1e-9`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := testOptions(t, dir)
			o.Top = 1
			first := run(t, o)
			before, err := o.Store.Evaluations(1)
			require.NoError(t, err)

			db, err := sql.Open("sqlite", filepath.Join(dir, "tune.db"))
			require.NoError(t, err)
			defer db.Close()
			_, err = db.Exec(`UPDATE evaluations SET `+damage+` WHERE config <> ? AND time_us IS NOT NULL`, first.Best[0].Config.String())
			require.NoError(t, err)

			o.Dir = filepath.Join(dir, "again")
			second := run(t, o)
			require.Equal(t, withoutPaths(t, first), withoutPaths(t, second))
			again, err := o.Store.Evaluations(2)
			require.NoError(t, err)
			require.NotEmpty(t, again)
			require.Less(t, len(again), len(before))
			for _, e := range again {
				require.Greater(t, e.TimeUS, 1.0)
			}
			var kept int
			require.NoError(t, db.QueryRow(`SELECT count(*) FROM evaluations WHERE time_us = 1e-9`).Scan(&kept))
			require.Equal(t, len(again), kept)
			run(t, o)
			third, err := o.Store.Evaluations(3)
			require.NoError(t, err)
			require.Empty(t, third, "once is enough")
		})
	}
}

func TestRunWithoutACompiler(t *testing.T) {
	o := testOptions(t, t.TempDir())
	var phases []Phase
	last := Progress{}
	o.Progress = func(p Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
		last = p
	}
	r := run(t, o)
	require.Equal(t, []Phase{Rank, Compile, Verify}, phases)
	require.Equal(t, 3, last.Done)
	require.NotNil(t, last.Best)
	require.Equal(t, r.Best[0].TimeUS, last.Best.TimeUS)

	require.Zero(t, r.Compiled)
	require.Zero(t, r.Failed)
	require.NotEmpty(t, r.Notes)
	require.Greater(t, r.Space.Total, r.Space.Valid)
	require.Len(t, r.Best, 3)
	w := o.Problem.Work() // what wastes traffic does not raise the score
	least, err := roofline.Assess(roofline.DeviceRoofs(o.GPU), roofline.Work{
		Operations: []roofline.Operations{{Math: w.Math, Count: roofline.Formula(w.FLOPs)}},
		HBMBytes:   roofline.Formula(w.Bytes), Launches: roofline.Formula(1),
	})
	require.NoError(t, err)
	for i, b := range r.Best {
		require.True(t, b.Verified, "%s: %s", b.Config, b.Fault)
		require.Equal(t, bench.Predicted, b.Provenance)
		require.Zero(t, b.Registers)
		require.Positive(t, b.SharedBytes)
		require.Positive(t, b.CTAsPerSM)
		require.InEpsilon(t, 2*260*264*200/b.TimeUS/1e6, b.TFLOPS, 1e-9)
		require.InEpsilon(t, least.LeastUS()/b.TimeUS, b.Score, 1e-9)
		sum := 0.0
		for _, us := range b.Terms {
			sum += us
		}
		require.InEpsilon(t, b.TimeUS, sum, 1e-9)
		for _, us := range b.Limits {
			require.LessOrEqual(t, us, b.Limits[b.Limit])
			require.Less(t, us, b.TimeUS)
		}
		if i > 0 {
			require.GreaterOrEqual(t, b.TimeUS, r.Best[i-1].TimeUS)
		}
	}
	require.Empty(t, r.Artifacts.Cubin)
	for _, path := range []string{r.Artifacts.CUDA, r.Artifacts.PTX, r.Artifacts.Roofline, r.Artifacts.Store} {
		require.True(t, filepath.IsAbs(path))
		fi, err := os.Stat(path)
		require.NoError(t, err)
		require.Positive(t, fi.Size())
	}
	left, err := filepath.Glob(filepath.Join(o.Dir, ".new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A GPU without rates is refused as such, before any configuration.
func TestGPUWithoutRates(t *testing.T) {
	o := testOptions(t, t.TempDir())
	gpu, err := target.Lookup("gb10")
	require.NoError(t, err)
	o.GPU = gpu
	_, err = Run(context.Background(), o)
	require.ErrorIs(t, err, ErrNoRate)
	require.ErrorContains(t, err, gpu.Name)
	require.NotContains(t, err.Error(), "configuration")
	require.Empty(t, evaluations(t, o.Store))
}

// The store tells what was checked from what was only predicted.
func TestStoreSaysWhatIsPredicted(t *testing.T) {
	o := testOptions(t, t.TempDir())
	run(t, o)
	n := map[store.Outcome]int{}
	for _, e := range evaluations(t, o.Store) {
		n[e.Outcome]++
		require.Equal(t, e.Outcome == store.Correct, e.Verified)
	}
	require.Equal(t, map[store.Outcome]int{store.Predicted: 12, store.Correct: 3 + 1}, n) // the winner twice
}

// The result prints as one object with the keys that others rely on.
func TestResultAsJSON(t *testing.T) {
	r := run(t, testOptions(t, t.TempDir()))
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	require.ElementsMatch(t, []string{"kernel", "gpu", "problem", "space", "compiled", "failed", "failures", "causes", "best", "importance", "importance_together", "importance_samples", "seconds", "library_us", "library", "next", "artifacts"}, keys(m))
	require.ElementsMatch(t, []string{"total", "valid"}, keys(m["space"]))
	require.ElementsMatch(t, []string{"cuda", "ptx", "cubin", "launch", "roofline", "progress", "store"}, keys(m["artifacts"]))
	best := m["best"].([]any)[0]
	require.ElementsMatch(t, []string{"config", "time_us", "tflops", "score", "limit", "limits", "registers", "shared_bytes", "spill_bytes",
		"ctas_per_sm", "instructions", "verified", "provenance", "estimated", "terms"}, keys(best))
	require.Equal(t, "predicted", best.(map[string]any)["provenance"])
	require.Nil(t, best.(map[string]any)["registers"])
	require.Nil(t, best.(map[string]any)["spill_bytes"])
	require.Equal(t, true, best.(map[string]any)["estimated"])
	require.Nil(t, m["artifacts"].(map[string]any)["cubin"])
	require.Nil(t, m["library_us"])
	require.Nil(t, m["library"])
	require.Equal(t, 260.0, m["problem"].(map[string]any)["m"])
}

func keys(v any) []string {
	var out []string
	for k := range v.(map[string]any) {
		out = append(out, k)
	}
	return out
}

func TestRunWithCompilers(t *testing.T) {
	c, p := nvrtctest.Compiler(t), nvrtctest.Ptxas(t)
	dir := t.TempDir()
	built, err := cache.Open(filepath.Join(dir, "cache"))
	require.NoError(t, err)
	for name, tools := range map[string]Toolchain{"NVRTC": {NVRTC: c, Ptxas: &p}, "ptxas": {Ptxas: &p}} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t, t.TempDir())
			o.Toolchain, o.Cache, o.Configs, o.Top = tools, built, 3, 2
			first := run(t, o)
			require.Contains(t, first.Toolchain, name)
			require.Equal(t, 3, first.Compiled)
			for _, b := range first.Best {
				require.True(t, b.Verified, "%s: %s", b.Config, b.Fault)
				require.Positive(t, b.Registers)
			}
			image, err := os.ReadFile(first.Artifacts.Cubin)
			require.NoError(t, err)
			f, err := cubin.Parse(image)
			require.NoError(t, err)
			require.Equal(t, first.Best[0].Registers, f.Kernels[0].Registers)

			// From the store, and from the cache alone, the same comes out.
			require.Equal(t, withoutPaths(t, first), withoutPaths(t, run(t, o)))
			other := testOptions(t, t.TempDir())
			other.Toolchain, other.Cache, other.Configs, other.Top = tools, built, 3, 2
			require.Equal(t, withoutPaths(t, first), withoutPaths(t, run(t, other)))
		})
	}
}

func TestBuilderTellsRefusalsApart(t *testing.T) {
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	p := nvrtctest.Ptxas(t)
	for _, tools := range []Toolchain{{NVRTC: nvrtctest.Compiler(t)}, {Ptxas: &p}} {
		b, err := tools.builderFor(context.Background(), gpu, nil, nil)
		require.NoError(t, err)
		_, err = b.build(context.Background(), source{text: "this is no program"}, "sm_90")
		require.True(t, refused(err), "%v", err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = b.build(ctx, source{text: "this is no program"}, "sm_90")
		require.ErrorIs(t, err, context.Canceled)
	}
}

// child tunes in dir and says how far it is.
func child(dir string) error {
	o, err := options(dir)
	if err != nil {
		return err
	}
	defer o.Store.Close()
	o.Progress = func(p Progress) {
		if p.Phase != Rank {
			fmt.Println(p.Phase, p.Done)
		}
	}
	_, err = Run(context.Background(), o)
	return err
}

// A run killed again and again at different places ends with the result of one that was
// left alone, and nothing was evaluated twice.
func TestKilledRunResumes(t *testing.T) {
	dir := t.TempDir()
	for kill := 2; ; kill += 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := 0
		for s := bufio.NewScanner(out); s.Scan(); {
			if lines++; lines == kill {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		err = cmd.Wait()
		if lines < kill {
			require.NoError(t, err, "a run that was not killed")
		}
		if err == nil {
			require.Greater(t, kill, 5, "no run was killed")
			break
		}
	}
	o := testOptions(t, dir)
	resumed := run(t, o)
	require.Equal(t, withoutPaths(t, run(t, testOptions(t, t.TempDir()))), withoutPaths(t, resumed))
	require.Len(t, evaluations(t, o.Store), 12+3+1) // and the three verified, the winner twice
	for config, n := range perConfig(t, o.Store) {
		require.LessOrEqual(t, n, 2, config)
	}
}

func evaluations(t *testing.T, s *store.Store) []store.Evaluation {
	t.Helper()
	runs, err := s.Runs()
	require.NoError(t, err)
	var all []store.Evaluation
	for _, r := range runs {
		e, err := s.Evaluations(r.ID)
		require.NoError(t, err)
		all = append(all, e...)
	}
	return all
}

func perConfig(t *testing.T, s *store.Store) map[string]int {
	n := map[string]int{}
	for _, e := range evaluations(t, s) {
		if !e.Single() {
			n[e.Config]++
		}
	}
	return n
}

// Two runs at once on one store both end well, with the same result.
func TestTwoRunsOnOneStore(t *testing.T) {
	dir := t.TempDir()
	first, second := testOptions(t, dir), testOptions(t, dir)
	second.Dir = filepath.Join(dir, "other")
	got := make(chan *Result)
	go func() {
		r, err := Run(context.Background(), first)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	r := run(t, second)
	require.Equal(t, withoutPaths(t, r), withoutPaths(t, <-got))
}

func TestCancelledRunGoesOn(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = func(p Progress) {
		if p.Phase == Compile && p.Done == 4 {
			cancel()
		}
	}
	_, err := Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	before := len(evaluations(t, o.Store))
	require.GreaterOrEqual(t, before, 4)
	require.Less(t, before, 12)
	o.Progress = nil
	run(t, o)
	require.Len(t, evaluations(t, o.Store), 12+3+1)
}

// wrong is a product whose programs leave out the activation for some configurations,
// or all.
type wrong struct {
	family.Problem
	plain family.Problem
	all   bool
}

func (w wrong) Program(c space.Config) (*ir.Program, error) {
	if warps, _ := c.Get("warps"); w.all || warps == 4 {
		return w.plain.Program(c)
	}
	return w.Problem.Program(c)
}

func testWrong(t *testing.T, all bool) (Options, *countHandler) {
	o := testOptions(t, t.TempDir())
	plain, err := o.Family.Problem(map[string]string{"m": "260", "n": "264", "k": "200", "bias": "true"}, o.GPU)
	require.NoError(t, err)
	o.Problem = wrong{o.Problem, plain, all}
	words := &countHandler{Handler: slog.DiscardHandler}
	o.Log = slog.New(words)
	return o, words
}

// countHandler counts what is logged as a warning or worse.
type countHandler struct {
	slog.Handler
	n int
}

func (h *countHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h *countHandler) Handle(context.Context, slog.Record) error {
	h.n++
	return nil
}

// TestWrongKernelIsLeftOut plants programs that compute something else: they are named
// with what is wrong, once, and are not among the best, also when the store knows them.
func TestWrongKernelIsLeftOut(t *testing.T) {
	o, words := testWrong(t, false)
	o.Top = 10
	for range 2 {
		words.n = 0
		r := run(t, o)
		require.NotEmpty(t, r.Best)
		require.NotEmpty(t, r.Wrong)
		for _, b := range r.Best {
			warps, _ := b.Config.Get("warps")
			require.Equal(t, 8, warps, b.Config.String())
			require.True(t, b.Verified, "%s: %s", b.Config, b.Fault)
		}
		for _, w := range r.Wrong {
			warps, _ := w.Config.Get("warps")
			require.Equal(t, 4, warps, w.Config.String())
			require.Contains(t, w.Fault, "c[")
		}
		require.Equal(t, len(r.Wrong), words.n)
		require.Equal(t, len(r.Wrong), r.Failed)
		require.Equal(t, map[store.Outcome]int{store.Correctness: len(r.Wrong)}, r.Failures)
		svg, err := os.ReadFile(r.Artifacts.Roofline)
		require.NoError(t, err)
		for _, w := range r.Wrong {
			require.NotContains(t, string(svg), w.Config.String())
		}
	}
	for _, e := range evaluations(t, o.Store) {
		if e.Outcome == store.Correctness {
			require.Contains(t, e.Error, "are wrong")
			require.False(t, e.Verified)
		}
	}
}

// Where all kernels are wrong nothing is best, and no file is written.
func TestAllKernelsWrong(t *testing.T) {
	o, _ := testWrong(t, true)
	r := run(t, o)
	require.Empty(t, r.Best)
	require.Len(t, r.Wrong, 3)
	require.Equal(t, Artifacts{Store: o.Store.Path()}, r.Artifacts)
	require.NoDirExists(t, o.Dir)
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(b), `"best":[]`)
}
