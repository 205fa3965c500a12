package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/internal/wordlist"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/store"
)

// tuneFlags are what kgen tune takes beside the problem.
type tuneFlags struct {
	budget budget
	effort choice
	seed   uint64
	device choice
	dir    string
	store  string

	replay   string
	space    string
	strategy string
	child    bool // serve the process that tunes
	dryRun   bool
	explain  string // a configuration
	shapes   string // a file of them

	fleet    fleetFlags
	parallel int // configurations of --space under way at a time
	compile  compileFlags

	commands []*cobra.Command // that have the flags: tune, and each family's
}

// given tells whether a flag was on the command line.
func (f *tuneFlags) given(flag string) bool {
	return slices.ContainsFunc(f.commands, func(c *cobra.Command) bool { return c.Flags().Changed(flag) })
}

// budget is how many configurations to try, or for how long.
type budget struct {
	configs int
	time    time.Duration
}

func (b *budget) String() string {
	switch {
	case b.time > 0:
		return b.time.String()
	case b.configs > 0:
		return strconv.Itoa(b.configs)
	}
	return ""
}

func (b *budget) Set(text string) error {
	const want = "a number of configurations, 1 or more, or a time such as 90s or 10m"
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 {
			return errors.New(want)
		}
		*b = budget{configs: n}
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New(want)
	}
	*b = budget{time: d}
	return nil
}

// Type is the word that help shows for the value.
func (b *budget) Type() string { return "N|time" }

// efforts are how many configurations --effort stands for.
var efforts = map[string]int{"quick": 16, "usual": tune.DefaultConfigs, "full": 512}

// most is how many configurations to try at most: without a number those of the effort,
// and under a time alone any number.
func (f *tuneFlags) most() int {
	switch {
	case f.budget.configs > 0:
		return f.budget.configs
	case f.budget.time > 0:
		return math.MaxInt32
	}
	return efforts[f.effort.value]
}

func (a *app) tuneCommand() *cobra.Command {
	f := tuneFlags{device: devices(), effort: choice{value: "usual", words: []string{"quick", "usual", "full"}}}
	return a.familyCommand(familyVerb{
		name:  "tune",
		short: "Search a problem's configurations for the fastest",
		long: `Search a problem's configurations for the fastest on a GPU: enumerate those that
meet the constraints, compile the most promising, drop what does not fit,
predict the times, and verify the best on the virtual machine. No GPU is needed:
every time is predicted, and says so. Each configuration is compiled and verified by
child processes: one that hangs or crashes ends alone. With --device cuda this machine's GPU, which
must be the --gpu, times the best of them and its results are compared too.

SCORE is the least time in which the GPU can do what the problem needs by formula, as
kgen roofline shows it, divided by the predicted time: 1 is the best possible. LIMIT is
the unit that the configuration itself keeps busy longest. A configuration that spills
registers comes after all that do not.

A configuration that a check finds wrong is named and left out, and the exit code
is 3.

Each evaluation is recorded at once: a run that was interrupted goes on where it
stopped when it is started again.

--space FILE tunes any kernel of CUDA C instead: the file says in JSON what its
parameters are, the constraints between them, how it is launched and what it must
compute; see docs/space.md. T1 files of BAT and Kernel Tuner are read too. Each
configuration is compiled with its parameters as macros and run on the virtual
machine. -o gets the best one's source with its macros and how it is launched as
comments and in JSON, its PTX and cubin, and a plot of the search.

--replay FILE searches a published space instead, in which every configuration was
timed before: a Kernel Tuner cache, T4 or KTT results, or a compact CSV, each also
packed by gzip. --budget counts the distinct configurations tried, failed ones
included; nothing is read from the store or written to it.`,
		example: `  kgen tune flashattn --gpu h100
  kgen tune gemm --gpu a100 --m 8192 --n 8192 --dtype f16 --budget 200
  kgen tune flashattn --gpu a100 --seq 16384 -o best --json
  kgen tune gemm --gpu h100 --dry-run
  kgen tune gemm --gpu h100 --shapes shapes.json --effort quick
  kgen tune --space scale.json --gpu h100 --budget 10m
  kgen tune --space scale.json --gpu h100 --serve :4222 --token-file token
  kgen tune --replay cache.json.gz --budget 100 --seed 1`,
		flags: func(c *cobra.Command) {
			c.Flags().Var(&f.budget, "budget", "how many configurations to try, or for how long (default by --effort)")
			choiceFlag(c, &f.effort, "effort", fmt.Sprintf("how many to try: %d, %d or %d", efforts["quick"], efforts["usual"], efforts["full"]))
			c.Flags().Uint64Var(&f.seed, "seed", 0, "`N` that all chance follows from (default 0)")
			choiceFlag(c, &f.device, "device", "where the times of the best are from: vm, predicted, or cuda, measured on this machine's GPU")
			filledFlag(c, &f.dir, "output", "o", "`DIR` for the best kernel and the roofline (default beside the store)")
			filledFlag(c, &f.store, "store", "", "`FILE` of the store (default in the state folder)")
			filledFlag(c, &f.replay, "replay", "", "search the published space in `FILE` instead of a family's")
			filledFlag(c, &f.shapes, "shapes", "", "tune the family for every shape in `FILE`, a JSON list of flags, and fit a rule that chooses by sizes")
			filledFlag(c, &f.space, "space", "", "tune the kernel that `FILE` describes instead of a family's")
			filledFlag(c, &f.strategy, "strategy", "", "how --space and --replay search: "+wordlist.Or(search.Names())+" (default "+search.Default+")")
			c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say how large the space is and what each constraint takes, and try nothing")
			filledFlag(c, &f.explain, "explain", "", "say where one configuration's predicted time goes: `CONFIG` such as 'BM=128 BN=128', the rest as in the default one")
			c.Flags().IntVar(&f.parallel, "parallel", explore.DefaultBatch, "`N` configurations of --space under way at a time; the search follows from it")
			f.commands = append(f.commands, c)
			f.compile.declare(c, "--space")
			f.fleet.declare(c)
			c.Flags().BoolVar(&f.child, "child", false, "try configurations for the process that started this one")
			if err := c.Flags().MarkHidden("child"); err != nil {
				panic(err)
			}
			a.jsonFlag(c)
		},
		run:       func(ctx context.Context, j *job) error { return a.tune(ctx, j, &f) },
		otherwise: "; or --space FILE or --replay FILE",
		alone: func(gpu string) func(context.Context) error {
			switch {
			case f.space != "" && f.replay != "":
				return func(context.Context) error { return usagef("--space and --replay: want one of both") }
			case f.space != "":
				return func(ctx context.Context) error { return a.tuneSpace(ctx, &f, gpu) }
			case f.replay == "":
				return nil
			}
			return func(ctx context.Context) error { return a.replay(ctx, &f, gpu) }
		},
	})
}

func (a *app) tune(ctx context.Context, j *job, f *tuneFlags) error {
	if f.strategy != "" {
		return usagef("--strategy goes with --space or --replay")
	}
	if f.compile.given() {
		return usagef("-I and -D go with --space")
	}
	if f.given("parallel") {
		return usagef("--parallel goes with --space")
	}
	if f.shapes != "" && (f.dryRun || f.explain != "") {
		return usagef("--shapes: it goes neither with --dry-run nor with --explain, which are of one problem")
	}
	if err := f.checkWorkers(); err != nil {
		return err
	}
	if f.dryRun {
		return a.dryRun(ctx, j)
	}
	if err := codegen.Supports(j.gpu); err != nil { // before every configuration finds that
		return usage(err)
	}
	if err := j.launchable(); err != nil {
		return err
	}
	if f.child {
		return a.serveFamily(ctx, f, j)
	}
	if f.explain != "" {
		return a.explainConfig(ctx, j, f)
	}
	if f.dir != "" {
		if err := checkFolder("-o", f.dir, f.dir); err != nil {
			return err
		}
	}
	if f.shapes != "" {
		return a.tuneShapes(ctx, j, f)
	}
	s, err := a.tuningStore(f)
	if err != nil {
		return err
	}
	defer s.Close()
	dir, err := artifactDir(f.dir, s, j.identity()...)
	if err != nil {
		return err
	}
	o := a.runOptions(f, j)
	o.Store, o.Dir = s, dir
	p := a.newProgress()
	t, err := a.familyTrials(ctx, f, j, s, p)
	if err != nil {
		return err
	}
	defer t.close()
	o.Trials, o.Slots, o.Timer, o.Driver = t.bench, t.slots, t.timer, t.driver
	o.Progress, o.Log = p.tuning, p.log
	r, err := tune.Run(ctx, o)
	p.done()
	for _, damaged := range s.Skipped() {
		a.log.Warn("a row of the store is not believed: it stays and its configuration is evaluated again", "error", damaged)
	}
	switch {
	case errors.Is(err, codegen.ErrUnsupported), errors.Is(err, tune.ErrNoRate):
		return usage(err)
	case errors.Is(err, context.Canceled):
		a.log.Info("what was done is recorded: the same command goes on from there", "store", s.Path())
		return err
	case err != nil:
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return a.printTuning(j, r, t.workers())
}

// runOptions are those of a run, but for its store and what tries its configurations.
func (a *app) runOptions(f *tuneFlags, j *job) tune.Options {
	o := a.familyOptions(j, f.seed)
	o.Configs, o.Time = f.most(), f.budget.time
	o.Command, o.Version, o.Build = commandLine(os.Args), readBuildInfo().Version, buildDigest()
	return o
}

// openStore opens the store, or the user's own for "", by store.Open or
// store.OpenWhole.
func (a *app) openStore(file string, open func(string) (*store.Store, error)) (*store.Store, error) {
	given := file != ""
	if !given {
		var err error
		if file, err = store.DefaultPath(); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, usagef("--store %s: a folder, pipe or device: want a file", file)
	}
	s, err := open(file)
	switch {
	case given && errors.Is(err, store.ErrReadOnly):
		return nil, fmt.Errorf("--store %s: %w: want a file in a folder that can be written", file, store.ErrReadOnly)
	case given && errors.Is(err, store.ErrFull):
		return nil, fmt.Errorf("--store %s: %w: want a file where there is room", file, store.ErrFull)
	case given && errors.Is(err, store.ErrDisk):
		return nil, fmt.Errorf("--store %s: %w: make room, or name a file on another disk", file, store.ErrDisk)
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrNewer):
		return nil, usage(err)
	case err != nil:
		return nil, err
	}
	if aside := s.Aside(); aside != "" {
		a.log.Error("the store was damaged: a new one is begun", "kept", aside)
	}
	if s.Emptied() {
		a.log.Warn("the store was an empty file: a new one is begun in it", "store", s.Path())
	}
	return s, nil
}

// identity tells a job's problem from all others.
func (j *job) identity() []any { return []any{j.family.Name, j.gpu.ID, j.problem.Settings()} }

// artifactDir is the absolute path of where the artifacts of a tuning go: dir, or for ""
// a folder beside the store whose name follows from what identifies the tuning.
func artifactDir(dir string, s *store.Store, identity ...any) (string, error) {
	if dir == "" {
		h := fnv.New32a()
		fmt.Fprint(h, identity...)
		dir = filepath.Join(filepath.Dir(s.Path()), "best", fmt.Sprintf("%08x", h.Sum32()))
	}
	return filepath.Abs(dir)
}
