package tune

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/plot"
	"github.com/kgen-dev/kgen/tune/explore"
)

// finish makes the result and writes the artifacts.
func (s *session) finish(ctx context.Context, found, top []finding) (*Result, error) {
	r := &s.result
	r.Best = []Best{}
	for i := range top {
		r.Best = append(r.Best, s.best(&top[i]))
	}
	times := predicted(found)
	importance := explore.Importances(times)
	r.Importance, r.Together, r.Samples = importance.Parameters, importance.Together, importance.Samples
	r.Compiled = s.progress.Compiled
	r.Failed, r.Failures, r.Causes = len(s.failed), explore.CountFailures(s.failed), explore.Causes(s.failed)
	r.Seconds = s.seconds()
	lib, err := LibraryTime(s.Problem, s.GPU)
	if err != nil {
		return nil, err
	}
	if lib != nil {
		r.Library = lib
		if lib.Match == measured.Exact && lib.Doubt == "" {
			r.LibraryUS = &lib.US
		}
	}
	if !s.builder.compiles() {
		r.Notes = append(r.Notes, "registers are not known: times are predicted with an estimate")
	}
	r.Artifacts.Store = s.Store.Path()
	if len(top) == 0 {
		return r, nil
	}
	if r.Next, err = s.next(&top[chosen(top)]); err != nil {
		return nil, err
	}
	right := slices.DeleteFunc(found, func(f finding) bool { return f.outcome != "" })
	return r, s.artifacts(ctx, right, top)
}

// predicted are the configurations with a predicted time. Measured and predicted times are
// not compared.
func predicted(found []finding) []explore.Timed {
	var times []explore.Timed
	for i := range found {
		if e := &found[i].eval; e.Outcome.Timed() && e.Provenance == bench.Predicted {
			times = append(times, explore.Timed{Config: found[i].config, US: e.TimeUS})
		}
	}
	return times
}

// chosen is the configuration whose files are written: the fastest that was verified,
// else the fastest.
func chosen(top []finding) int {
	for i := range top {
		if top[i].eval.Verified {
			return i
		}
	}
	return 0
}

// next says what to do next about a configuration, by what the model counts of it.
func (s *session) next(f *finding) (string, error) {
	k, err := PredictKernel(s.Problem, s.GPU, f.config)
	if err != nil {
		return "", err
	}
	k.TimeUS, k.From = f.eval.TimeUS, f.eval.Provenance
	j, err := k.Judge(s.roofs)
	if err != nil {
		return "", err
	}
	return j.Advice, nil
}

// artifacts writes the best configuration's files and the plot of all.
func (s *session) artifacts(ctx context.Context, found, top []finding) error {
	best := &top[chosen(top)]
	p, src, err := s.print(best.config)
	if err != nil {
		return err
	}
	b, err := s.build(ctx, p, src)
	if err != nil {
		return err
	}
	cuda, err := p.compiled.CUDA()
	if err != nil {
		return err
	}
	launch, err := s.launch(best, p)
	if err != nil {
		return err
	}
	description, err := launch.Text()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(found, func(f finding) bool { return f.config.Equal(best.config) })
	svg, err := s.plot(found, at)
	if err != nil {
		return err
	}
	progress, err := s.plotProgress(best.config)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("folder of the artifacts: %w", err)
	}
	a := &s.result.Artifacts
	var files []atomicfile.File
	for _, f := range []struct {
		path *string
		end  string
		data []byte
	}{
		{&a.CUDA, ".cu", []byte(launch.Comment(s.artifact(".json")) + "\n" + cuda)}, {&a.PTX, ".ptx", b.PTX}, {&a.Cubin, ".cubin", b.Cubin}, {&a.Roofline, ".svg", svg},
		{&a.Launch, ".json", description}, {&a.Progress, "-progress.svg", progress},
	} {
		if len(f.data) == 0 {
			continue
		}
		path := filepath.Join(dir, s.artifact(f.end))
		files = append(files, atomicfile.Bytes(path, f.data))
		*f.path = path
	}
	return atomicfile.Write(files...)
}

// artifact is the name of an artifact.
func (s *session) artifact(end string) string { return s.Family.Name + "-" + s.GPU.ID + end }

// launch describes how the artifacts are launched.
func (s *session) launch(f *finding, p *program) (*launchfile.File, error) {
	d, err := Describe(s.Family, s.Problem, s.GPU, f.config, p.compiled, p.plan, s.Version)
	if err != nil {
		return nil, err
	}
	d.Time = &launchfile.Time{US: f.eval.TimeUS, Provenance: f.eval.Provenance}
	d.Files = launchfile.Files{CUDA: s.artifact(".cu"), PTX: s.artifact(".ptx")}
	if s.builder.compiles() {
		d.Compiler, d.Files.Cubin = s.builder.name, s.artifact(".cubin")
	}
	return d, nil
}

// plot draws all configurations that have a time, the chosen one standing out. Nothing
// of kernels that only move data, which have no rate of arithmetic.
func (s *session) plot(found []finding, best int) ([]byte, error) {
	if s.Problem.Work().FLOPs == 0 {
		s.result.Notes = append(s.result.Notes, "no arithmetic: no roofline is drawn")
		return nil, nil
	}
	var entries []plot.Entry
	for i := range found {
		e := &found[i].eval
		a, err := roofline.Assess(s.roofs, usefulWork(s.Problem, s.GPU, s.roofs.WorkOf(e.Limits, bench.Predicted)))
		if err != nil {
			return nil, err
		}
		v, err := a.Judge(e.TimeUS, e.Provenance)
		if err != nil {
			return nil, err
		}
		v.Score = s.leastUS / e.TimeUS
		entries = append(entries, plot.Entry{Label: e.Config, Verdict: v})
	}
	title := fmt.Sprintf("%s %s", s.Family.Name, s.result.Problem)
	figure, err := plot.TuningRun(title, entries, best)
	if err != nil {
		return nil, err
	}
	if l := s.result.Library; l != nil {
		if err := figure.Measured(l.Framework, l.US, entries[best].Verdict.Assessment); err != nil {
			return nil, err
		}
	}
	scene, err := figure.Scene()
	if err != nil {
		return nil, err
	}
	return scene.SVG()
}

// plotProgress draws the predicted times in the order in which they were tried.
func (s *session) plotProgress(best space.Config) ([]byte, error) {
	p := plot.Progress{
		Title:    fmt.Sprintf("%s %s on %s", s.Family.Name, s.result.Problem, s.GPU.Name),
		Subtitle: fmt.Sprintf("%d configurations tried, the best: %s", len(s.tried), best),
		US:       s.tried, From: bench.Predicted,
	}
	scene, err := p.Scene()
	if err != nil {
		return nil, err
	}
	return scene.SVG()
}
