package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/store"
)

// tuneFlags are what kgen tune takes beside the problem.
type tuneFlags struct {
	budget int
	seed   uint64
	device choice
	dir    string
	store  string

	replay   string
	strategy string
}

func (a *app) tuneCommand() *cobra.Command {
	f := tuneFlags{device: devices()}
	return a.familyCommand(familyVerb{
		name:  "tune",
		short: "Search a problem's configurations for the fastest",
		long: `Search a problem's configurations for the fastest on a GPU: enumerate those that
meet the constraints, compile the most promising, drop what does not fit,
predict the times, and verify the best on the virtual machine. No GPU is needed:
every time is predicted, and says so. With --device cuda this machine's GPU, which
must be the --gpu, times the best of them and its results are compared too.

SCORE is the least time in which the GPU can do what the problem needs by formula, as
kgen roofline shows it, divided by the predicted time: 1 is the best possible. LIMIT is
the unit that the configuration itself keeps busy longest. A configuration that spills
registers comes after all that do not.

A configuration that a check finds wrong is named and left out, and the exit code
is 3.

Each evaluation is recorded at once: a run that was interrupted goes on where it
stopped when it is started again.

--replay FILE searches a published space instead, in which every configuration was
timed before: a Kernel Tuner cache, T4 or KTT results, or a compact CSV, each also
packed by gzip. --budget counts the distinct configurations tried, failed ones
included; nothing is read from the store or written to it.`,
		example: `  kgen tune flashattn --gpu h100
  kgen tune gemm --gpu a100 --m 8192 --n 8192 --dtype f16 --budget 200
  kgen tune flashattn --gpu a100 --seq 16384 -o best --json
  kgen tune --replay cache.json.gz --budget 100 --seed 1`,
		flags: func(c *cobra.Command) {
			c.Flags().IntVar(&f.budget, "budget", tune.DefaultConfigs, "compile at most `N` configurations")
			c.Flags().Uint64Var(&f.seed, "seed", 0, "`N` that all chance follows from (default 0)")
			choiceFlag(c, &f.device, "device", "where the times of the best are from: vm, predicted, or cuda, measured on this machine's GPU")
			c.Flags().StringVarP(&f.dir, "output", "o", "", "`DIR` for the best kernel and the roofline (default beside the store)")
			c.Flags().StringVar(&f.store, "store", "", "`FILE` of the store (default in the state folder)")
			c.Flags().StringVar(&f.replay, "replay", "", "search the published space in `FILE` instead of a family's")
			c.Flags().StringVar(&f.strategy, "strategy", "", "how --replay searches: "+orList(search.Names())+" (default "+search.Default+")")
			a.jsonFlag(c)
		},
		run: func(ctx context.Context, j *job) error { return a.tune(ctx, j, &f) },
		alone: func(gpu string) func(context.Context) error {
			if f.replay == "" {
				return nil
			}
			return func(ctx context.Context) error { return a.replay(ctx, &f, gpu) }
		},
	})
}

func (a *app) tune(ctx context.Context, j *job, f *tuneFlags) error {
	if f.budget < 1 {
		return usagef("--budget %d: want 1 or more", f.budget)
	}
	if f.strategy != "" {
		return usagef("--strategy goes with --replay")
	}
	if err := codegen.Supports(j.gpu); err != nil { // before every configuration finds that
		return usage(err)
	}
	if err := j.launchable(); err != nil {
		return err
	}
	if f.dir != "" {
		if err := checkFolder("-o", f.dir, f.dir); err != nil {
			return err
		}
	}
	s, err := a.openStore(f.store)
	if err != nil {
		return err
	}
	defer s.Close()
	dir, err := artifactDir(f.dir, s, j)
	if err != nil {
		return err
	}
	var device bench.Device
	if f.device.value == "cuda" {
		if device, err = openThisGPU(j.gpu); err != nil {
			return err
		}
		defer device.Close() // what was measured is recorded
	}
	p := a.newProgress()
	r, err := tune.Run(ctx, tune.Options{
		Device: device,
		Family: j.family, Problem: j.problem, GPU: j.gpu,
		Toolchain: tune.FindToolchain(), Cache: a.openCache(), Store: s, Dir: dir,
		Seed: f.seed, Configs: f.budget,
		Command: strings.Join(os.Args, " "), Version: readBuildInfo().Version, Build: buildDigest(),
		Progress: p.show, Log: p.log,
	})
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
	return a.printTuning(j, r)
}

// openStore opens the store, or the user's own for "".
func (a *app) openStore(file string) (*store.Store, error) {
	given := file != ""
	if !given {
		var err error
		if file, err = store.DefaultPath(); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return nil, usagef("--store %s: a folder: want a file", file)
	}
	s, err := store.Open(file)
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
	return s, nil
}

// artifactDir is where a problem's artifacts go: dir, or else a folder of the
// problem's own beside the store.
func artifactDir(dir string, s *store.Store, j *job) (string, error) {
	if dir == "" {
		h := fnv.New32a()
		fmt.Fprint(h, j.family.Name, j.gpu.ID, j.problem.Settings())
		return filepath.Abs(filepath.Join(filepath.Dir(s.Path()), "best", fmt.Sprintf("%08x", h.Sum32())))
	}
	return filepath.Abs(dir)
}

func (a *app) printTuning(j *job, r *tune.Result) error {
	if err := a.printResult(j, r); err != nil {
		return err
	}
	if n := len(r.Wrong); n > 0 {
		return wrong(fmt.Errorf("%s: %d wrong kernels found and left out; the first: %s", r.Kernel, n, r.Wrong[0].Config))
	}
	return nil
}

func (a *app) printResult(j *job, r *tune.Result) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s (%s) on %s\n", r.Kernel, r.Problem, j.gpu.Name)
	fmt.Fprintf(a.out, "space     %s\n", r.Removed)
	fmt.Fprintf(a.out, "compiled  %d%s%s%s\n\n", r.Compiled, parenthesised(r.Toolchain), droppedText(r.Dropped), failures(r))
	if err := a.printBest(r.Best); err != nil {
		return err
	}
	for _, w := range r.Wrong {
		fmt.Fprintf(a.out, "wrong     %s: %s\n", w.Config, oneLine(errors.New(w.Fault)))
	}
	fmt.Fprintln(a.out)
	a.printSASS(r.Best)
	a.printLibrary(r.Library)
	for _, n := range r.Notes {
		fmt.Fprintf(a.out, "note      %s\n", n)
	}
	for _, x := range []struct{ name, path string }{
		{"cuda", r.Artifacts.CUDA},
		{"ptx", r.Artifacts.PTX},
		{"cubin", r.Artifacts.Cubin},
		{"roofline", r.Artifacts.Roofline},
		{"store", r.Artifacts.Store},
	} {
		if x.path != "" {
			fmt.Fprintf(a.out, "%-8s  %s\n", x.name, x.path)
		}
	}
	return nil
}

func parenthesised(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// droppedText says how many of the compiled configurations were not taken, and why.
func droppedText(d tune.Dropped) string {
	var why []string
	if d.Spilled > 0 {
		why = append(why, fmt.Sprintf("%d spill more than %d bytes a thread", d.Spilled, tune.MostSpill))
	}
	if d.Unfit > 0 {
		why = append(why, fmt.Sprintf("%d do not fit an SM", d.Unfit))
	}
	if len(why) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them dropped: %s", d.Spilled+d.Unfit, strings.Join(why, ", "))
}

// failures counts what came to nothing without or after being compiled and taken.
func failures(r *tune.Result) string {
	var parts []string
	n := 0
	for _, f := range r.Failures {
		count := f.Count
		if f.Outcome == store.Resources {
			count -= r.Dropped.Spilled + r.Dropped.Unfit
		}
		if count > 0 {
			n += count
			parts = append(parts, fmt.Sprintf("%s %d", f.Outcome, count))
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d failed%s", n, parenthesised(strings.Join(parts, ", ")))
}

// printBest prints the best configurations as a table: the tile, which are the
// parameters in capitals, then the others, then what came of them.
func (a *app) printBest(best []tune.Best) error {
	if len(best) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	tile, others := splitConfig(best[0].Config)
	decimals := rateDecimals(best)
	fmt.Fprintf(w, "TILE %s\t%s\tREGISTERS\tSHARED B\tSPILLS B\tCTAS/SM\tTIME\t\tTFLOP/S\tSCORE\tLIMIT\tVERIFIED\n", strings.Join(tile, "x"), strings.ToUpper(strings.Join(others, "\t")))
	for _, b := range best {
		verified, registers, spills, ctas := "no", "?", "?", strconv.Itoa(b.CTAsPerSM) // nothing compiled
		if b.Verified {
			verified = "yes"
		}
		if b.Estimated {
			ctas = "~" + ctas
		}
		if b.Registers > 0 {
			registers, spills = strconv.Itoa(b.Registers), strconv.Itoa(b.SpillBytes)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%.1f us\t%s\t%.*f\t%.2f\t%s\t%s\n", values(b.Config, tile, "x"), values(b.Config, others, "\t"),
			registers, b.SharedBytes, spills, ctas, b.TimeUS, b.Provenance, decimals, b.TFLOPS, b.Score, b.Limit, verified)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, `
TFLOP/S, SCORE and LIMIT are %s like TIME; SCORE is the least possible time over TIME.
REGISTERS, SHARED and SPILLS are the compiled kernel's, CTAS/SM by formula (~: with an estimate of the registers).
`, best[0].Provenance)
	return nil
}

// printSASS says what the compiled code of the best configuration is made of.
func (a *app) printSASS(best []tune.Best) {
	if len(best) == 0 || best[0].Instructions == nil {
		return
	}
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(best[0].Instructions)) {
		parts = append(parts, fmt.Sprintf("%d %s", best[0].Instructions[op], op))
	}
	fmt.Fprintf(a.out, "sass      %s; %d registers, %d bytes of spills\n", strings.Join(parts, ", "), best[0].Registers, best[0].SpillBytes)
}

// rateDecimals is how many decimals show three digits of the slowest.
func rateDecimals(best []tune.Best) int {
	slowest := slices.MinFunc(best, func(a, b tune.Best) int { return cmp.Compare(a.TFLOPS, b.TFLOPS) })
	switch {
	case slowest.TFLOPS >= 10:
		return 1
	case slowest.TFLOPS >= 1:
		return 2
	}
	return 4
}

// splitConfig sets the names of the tile's parameters apart from the others.
func splitConfig(c space.Config) (tile, others []string) {
	for i := range c.Len() {
		name, _ := c.At(i)
		if strings.ContainsFunc(name, unicode.IsLower) {
			others = append(others, name)
		} else {
			tile = append(tile, name)
		}
	}
	return tile, others
}

func values(c space.Config, names []string, sep string) string {
	words := make([]string, len(names))
	for i, n := range names {
		v, _ := c.Get(n)
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, sep)
}
