package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/spec"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// tuneSpace tunes the kernel that a file describes.
func (a *app) tuneSpace(ctx context.Context, f *tuneFlags, gpuName string) error {
	b, err := readSpace(ctx, f.space, gpuName)
	if err != nil {
		return err
	}
	if err := f.checkStrategy(); err != nil {
		return err
	}
	if err := f.checkWorkers(); err != nil {
		return err
	}
	if f.dryRun {
		return a.drySpace(ctx, f, b)
	}
	if err := b.Unrunnable; err != nil {
		return usagef("--space %s: it cannot be run: %w", f.space, err)
	}
	compiler, err := nvrtc.Find()
	if err != nil {
		return fmt.Errorf("%w; %s", err, nvrtc.Remedy(err))
	}
	k, err := a.spaceKernel(f, b, compiler)
	if err != nil {
		return err
	}
	if f.child {
		return a.serveSpace(ctx, f, k)
	}
	first, err := f.checkSpace(k)
	if err != nil {
		return err
	}
	if f.explain != "" {
		return a.explainPoint(ctx, f, gpuName, b)
	}
	return a.exploreSpace(ctx, f, gpuName, b, k, first)
}

// checkSpace looks for mistakes that show without a compiler, and returns the default
// configuration's point; nil if there is none.
func (f *tuneFlags) checkSpace(k *trial.Kernel) (first []int, err error) {
	b := k.Spec
	err = launches(b)
	if err == nil {
		first, err = b.First()
	}
	if err == nil {
		_, err = b.Buffers(f.seed)
	}
	if err == nil {
		_, err = k.Program(firstPoint(b, first))
	}
	if err != nil {
		return nil, usagef("--space %s: %w", f.space, err)
	}
	return first, nil
}

// drySpace prints what a space holds. Of one that can be run it compiles a configuration,
// where there is a compiler, to find mistakes that a run would.
func (a *app) drySpace(ctx context.Context, f *tuneFlags, b *spec.Bound) error {
	refused := ""
	if b.Unrunnable == nil {
		compiler, noCompiler := nvrtc.Find()
		k, err := a.spaceKernel(f, b, compiler)
		if err != nil {
			return err
		}
		first, err := f.checkSpace(k)
		if err != nil {
			return err
		}
		if noCompiler == nil {
			if k.Device, err = vm.New(vm.Options{GPU: b.GPU}); err != nil {
				return err
			}
			defer k.Device.Close()
			refused, err = checkFirst(ctx, k, first)
		}
		if errors.Is(err, trial.ErrMistake) {
			return usagef("--space %s: %w", f.space, err)
		}
		if err != nil {
			return err
		}
	}
	return a.printDryRun(ctx, b.Name, b.GPU, b.Space, refused)
}

// checkFirst compiles the default configuration, or else the first, and says what it is
// refused for, if it is: others need not be.
func checkFirst(ctx context.Context, k *trial.Kernel, first []int) (refused string, err error) {
	point, which := firstPoint(k.Spec, first), "default"
	if first == nil {
		which = "first"
	}
	built, err := k.Check(ctx, point)
	switch built.Outcome {
	case "":
		return "", err
	case store.Compile:
		return fmt.Sprintf("the %s configuration does not compile: %s", which, built.Error), err
	}
	return fmt.Sprintf("the %s configuration does not fit: %s", which, built.Error), err
}

// readSpace reads a description and gives it a GPU.
func readSpace(ctx context.Context, file, gpuName string) (*spec.Bound, error) {
	s, err := spec.Read(file)
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing):
		return nil, usagef("--space %s: %w", file, missing.Err)
	case err != nil:
		return nil, usagef("--space %w", err)
	}
	gpu, err := lookupGPU(gpuName)
	if err != nil {
		return nil, err
	}
	b, err := s.BindContext(ctx, gpu)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, usagef("--space %s: %w", file, err)
	}
	return b, nil
}

// mostLaunches is how many configurations are looked at for one that can be launched.
const mostLaunches = 256

// launches refuses a description under which none of the first configurations can be
// launched.
func launches(b *spec.Bound) error {
	var first error
	point, ok := b.Space.Next(nil)
	for range mostLaunches {
		if !ok {
			break
		}
		_, err := b.Launch(point)
		if err == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("no configuration can be launched, such as %s: %w", b.Space.At(point), err)
		}
		point, ok = b.Space.Next(point)
	}
	return first
}

// firstPoint is the default configuration's point, or else the space's first.
func firstPoint(b *spec.Bound, first []int) []int {
	if first == nil {
		var ok bool
		if first, ok = b.Space.Next(nil); !ok { // there is one, as Bind looked, but its context ended
			first = b.AnyPoint()
		}
	}
	return first
}

// spaceKernel is what tries configurations; it has a device in a child alone.
func (a *app) spaceKernel(f *tuneFlags, b *spec.Bound, compiler *nvrtc.Compiler) (*trial.Kernel, error) {
	flags, err := f.compile.nvrtc()
	if err != nil {
		return nil, err
	}
	folders, err := f.compile.folders()
	if err != nil {
		return nil, err
	}
	for _, d := range f.compile.define {
		if name, _, _ := strings.Cut(d, "="); b.HasMacro(name) {
			return nil, usagef("-D %s: a parameter of the space", name)
		}
	}
	return &trial.Kernel{
		Spec: b, Compiler: compiler, Flags: flags, Includes: folders, Seed: f.seed, Cache: a.openCache(),
		Called: func(symbol, name string) bool { return symbol == name || calledInSource(symbol, name) },
	}, nil
}

// exploreSpace searches and prints.
func (a *app) exploreSpace(ctx context.Context, f *tuneFlags, gpuName string, b *spec.Bound, k *trial.Kernel, first []int) error {
	if f.dir != "" {
		if err := checkFolder("-o", f.dir, f.dir); err != nil {
			return err
		}
	}
	s, err := a.tuningStore(f)
	if err != nil {
		return err
	}
	defer s.Close()
	if why, err := k.Unrepeated(); err == nil && why != "" { // what it cannot read the first key says
		a.log.Warn("every configuration is evaluated anew, by the next run too", "reason", why)
	}
	p := a.newProgress()
	t, err := a.spaceTrials(ctx, f, gpuName, k, s, p)
	if err != nil {
		return err
	}
	defer t.close()
	measures := f.device.value == "cuda"
	o := explore.Options{
		Domain: b.Space, Config: b.Space.At, Program: k.Key, Bench: t.bench, Measures: measures,
		Store: s, Run: spaceRun(b, k, measures, t.driver),
		Strategy: f.strategy, Seed: f.seed, Budget: f.most(), Time: f.budget.time, Default: first, Batch: f.parallel,
		Cool: coolDown, Progress: p.exploring, Log: p.log,
	}
	if f.effort.value == "quick" {
		o.Finalists = 5
	}
	r, err := explore.Explore(ctx, o)
	p.done()
	switch {
	case errors.Is(err, context.Canceled):
		a.log.Info("what was done is recorded: the same command goes on from there", "store", s.Path())
		return err
	case errors.Is(err, trial.ErrMistake):
		return usagef("--space %s: %w", f.space, err)
	case errors.Is(err, explore.ErrNothing):
		err = fmt.Errorf("--space %s: %w", f.space, err)
		if slices.ContainsFunc(r.Tried, func(t explore.Trial) bool { return t.Evaluation.Outcome.Wrong() }) {
			return wrong(err)
		}
		return err
	case err != nil:
		return err
	}
	report := a.spaceReport(f, b, r)
	if err := ctx.Err(); err != nil { // while it counted
		return err
	}
	if report.Artifacts, err = spaceFiles(ctx, f, s, k, r); err != nil {
		return err
	}
	report.Artifacts.Store, report.Workers = s.Path(), t.workers()
	return a.printSpace(b, report)
}

// spaceRun is what the evaluations of a space are recorded under.
func spaceRun(b *spec.Bound, k *trial.Kernel, measures bool, driver string) store.Run {
	major, minor := k.Compiler.Version()
	problem := map[string]any{"arguments": b.Arguments, "tolerance": b.Tolerance}
	for name, v := range b.Sizes {
		problem[name] = v
	}
	if b.Reference != nil {
		problem["reference"] = b.Reference
	}
	text, err := json.Marshal(problem)
	if err != nil {
		panic(err) // strings and numbers can be written
	}
	run := store.Run{
		Command: commandLine(os.Args), Family: b.Name, Problem: text, GPU: b.GPU.ID, Types: store.Described,
		Kgen: readBuildInfo().Version, Compiler: fmt.Sprintf("NVRTC %d.%d", major, minor), Driver: driver,
	}
	if run.Family == "" {
		run.Family = "kernel"
	}
	if measures {
		run.Policy = "one launch over fresh buffers, after one"
		return run
	}
	run.Policy, run.CostModel = fmt.Sprintf("predicted from counts of %s", countedBlocks(b)), model.CountedVersion
	return run
}

func countedBlocks(b *spec.Bound) string {
	if b.Blocks == 0 {
		return "all blocks"
	}
	return fmt.Sprintf("%d blocks", b.Blocks)
}

// spaceFiles writes the winner and how the search went, beside the store or in --output.
func spaceFiles(ctx context.Context, f *tuneFlags, s *store.Store, k *trial.Kernel, r *explore.Result) (spaceArtifacts, error) {
	b := k.Spec
	var out spaceArtifacts
	dir, err := artifactDir(f.dir, s, b.Name, b.GPU.ID, string(b.Text))
	if err != nil {
		return out, err
	}
	svg, err := drawProgress(b, r)
	if err != nil {
		return out, err
	}
	best, err := k.Artifacts(ctx, r.Best[0].Point)
	if err != nil {
		return out, fmt.Errorf("files of the best configuration: %w", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return out, fmt.Errorf("folder of the best kernel: %w", err)
	}
	base := fmt.Sprintf("%s-%s", fileName(b.Name), b.GPU.ID)
	d := best.Launch
	d.Kgen, d.Files = readBuildInfo().Version, launchfile.Files{CUDA: base + ".cu", PTX: base + ".ptx", Cubin: base + ".cubin"}
	d.Time = &launchfile.Time{US: r.Best[0].Evaluation.TimeUS, Provenance: r.Best[0].Evaluation.Provenance}
	launch, err := d.Text()
	if err != nil {
		return out, err
	}
	var files []atomicfile.File
	for _, e := range []struct {
		path *string
		end  string
		data []byte
	}{{&out.CUDA, ".cu", best.CUDA}, {&out.PTX, ".ptx", best.PTX}, {&out.Cubin, ".cubin", best.Cubin}, {&out.Launch, ".json", launch}, {&out.Plot, ".svg", svg}} {
		*e.path = filepath.Join(dir, base+e.end)
		files = append(files, atomicfile.Bytes(*e.path, e.data))
	}
	return out, atomicfile.Write(files...)
}

// fileName is a name without what a path or a shell reads.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
