package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/dispatch"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/table"
)

// Limits of a file of shapes, and how many of each shape's best are candidates for all.
const (
	mostShapeBytes = 1 << 20
	mostShapes     = 256
	candidatesEach = 3
)

const shapesExample = `[{"m": 4096, "n": 512}]`

// shapesReport is what kgen tune --shapes --json prints.
type shapesReport struct {
	Kernel      string         `json:"kernel"`
	GPU         string         `json:"gpu"`
	Shapes      []shapeReport  `json:"shapes"`
	Rule        *dispatch.Rule `json:"rule"`
	WorstRegret float64        `json:"worst_regret"` // of the rule's configuration over the best candidate's, less 1
	// WorstHeldOut is the worst regret of shapes under rules fitted without them; null where
	// there is none, as of one shape. HeldOutRefused are shapes that such a rule gives a
	// configuration that they cannot run.
	WorstHeldOut   *float64 `json:"worst_held_out_regret"`
	HeldOutRefused int      `json:"held_out_refused"`
	Provenance     string   `json:"provenance"`     // of the times
	File           string   `json:"file,omitempty"` // that holds this report, for kgen generate --rule
}

type shapeReport struct {
	Problem family.Settings `json:"problem"`
	Best    space.Config    `json:"best"`
	BestUS  float64         `json:"best_us"`
	Chosen  string          `json:"chosen"` // by the rule
	Regret  float64         `json:"regret"`
	HeldOut *float64        `json:"held_out_regret"` // under a rule fitted without it; null without a time
}

// readShapes reads a JSON list of objects, each the flags of a problem.
func readShapes(file string) ([]map[string]string, error) {
	text, err := userfile.Read(file, mostShapeBytes)
	if err != nil {
		return nil, usagef("--shapes %s: %w", file, reason(err))
	}
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, usagef("--shapes %s: line %w; shapes are such as %s", file, jsontext.Locate(text, err), shapesExample)
	}
	if len(raw) == 0 || len(raw) > mostShapes {
		return nil, usagef("--shapes %s: %d shapes: want a JSON list of 1 to %d, such as %s", file, len(raw), mostShapes, shapesExample)
	}
	if err := jsontext.Once(text); err != nil {
		return nil, usagef("--shapes %s: line %w", file, err)
	}
	var out []map[string]string
	for _, r := range raw {
		out = append(out, family.FlagTexts(r))
	}
	return out, nil
}

// shapeJobs are the problems of a file's shapes; flags that a shape lacks are the command
// line's.
func shapeJobs(j *job, file string) ([]*job, error) {
	shapes, err := readShapes(file)
	if err != nil {
		return nil, err
	}
	var out []*job
	for i, shape := range shapes {
		given := maps.Clone(j.given)
		if given == nil {
			given = map[string]string{}
		}
		maps.Copy(given, shape)
		for name := range shape {
			if !slices.ContainsFunc(j.family.Flags, func(f family.Flag) bool { return f.Name == name }) {
				return nil, usagef("--shapes %s: shape %d: %s has no flag %q", file, i+1, j.family.Name, name)
			}
		}
		p, err := j.family.Problem(given, j.gpu)
		if err != nil {
			return nil, usagef("--shapes %s: shape %d: %w", file, i+1, err)
		}
		_, options := table.Split(j.family, p.Settings())
		if i > 0 {
			if _, first := table.Split(j.family, out[0].problem.Settings()); !maps.Equal(first, options) {
				return nil, usagef("--shapes %s: shape %d differs from the first in more than sizes: want one list for each kind", file, i+1)
			}
		}
		out = append(out, &job{family: j.family, gpu: j.gpu, gpuName: j.gpuName, problem: p, given: given})
	}
	return out, nil
}

// tuneShapes tunes every shape, then times the best of each on all, and fits a rule.
func (a *app) tuneShapes(ctx context.Context, j *job, f *tuneFlags) error {
	if f.device.value != "vm" {
		return usagef("--shapes: its times are predicted: it takes no --device %s", f.device.value)
	}
	jobs, err := shapeJobs(j, f.shapes)
	if err != nil {
		return err
	}
	s, err := a.tuningStore(f)
	if err != nil {
		return err
	}
	defer s.Close()
	trialsOf, end, err := a.shapeTrials(ctx, f, jobs[0], s)
	if err != nil {
		return err
	}
	defer end()
	r := &shapesReport{Kernel: j.family.Name, GPU: j.gpu.ID}
	var configs []space.Config
	var from [][]int // shapes that proposed each
	for i, shape := range jobs {
		a.log.Info("shape", "number", i+1, "of", len(jobs), "problem", shape.problem.Settings().String())
		best, err := a.tuneShape(ctx, shape, f, s, trialsOf)
		if err != nil {
			return fmt.Errorf("shape %d (%s): %w", i+1, shape.problem.Settings(), err)
		}
		for _, b := range best[:min(candidatesEach, len(best))] {
			if !b.Verified {
				continue
			}
			at := slices.IndexFunc(configs, b.Config.Equal)
			if at < 0 {
				at = len(configs)
				configs, from = append(configs, b.Config), append(from, nil)
			}
			from[at] = append(from[at], i)
		}
		r.Shapes = append(r.Shapes, shapeReport{Problem: shape.problem.Settings()})
		r.Provenance = best[0].Provenance.String()
	}
	if len(configs) == 0 {
		return errors.New("no configuration could be verified")
	}
	if err := a.fitRule(ctx, r, jobs, configs, from, f); err != nil {
		return err
	}
	if err := writeRule(r, f, s); err != nil {
		return err
	}
	return a.printShapes(r)
}

// writeRule writes the report where kgen generate --rule is told to read it: in the
// folder of the output, or beside the store.
func writeRule(r *shapesReport, f *tuneFlags, s *store.Store) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	dir := f.dir
	if dir == "" {
		dir = filepath.Join(filepath.Dir(s.Path()), "best")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return outputError("-o", dir, err)
	}
	r.File = filepath.Join(dir, r.Kernel+"-"+r.GPU+"-rule.json")
	return atomicfile.Write(atomicfile.Bytes(r.File, append(text, '\n')))
}

// shapeTrials are what tries a shape's configurations, one shape after the other: children,
// or workers at one server.
func (a *app) shapeTrials(ctx context.Context, f *tuneFlags, first *job, s *store.Store) (of func(*job, *progress) (*trials, error), end func(), err error) {
	if !f.fleet.remote() {
		return func(j *job, p *progress) (*trials, error) { return a.familyTrials(ctx, f, j, s, p) }, func() {}, nil
	}
	o, err := familyWork(ctx, f, first)
	if err != nil {
		return nil, nil, err
	}
	conn, end, err := a.openQueue(&f.fleet, s, o, a.log)
	if err != nil {
		return nil, nil, err
	}
	return func(j *job, p *progress) (*trials, error) {
		o, err := familyWork(ctx, f, j)
		if err != nil {
			return nil, err
		}
		return a.trialsOn(ctx, conn, s, p, o)
	}, end, nil
}

// tuneShape is the best of one shape.
func (a *app) tuneShape(ctx context.Context, j *job, f *tuneFlags, s *store.Store, trialsOf func(*job, *progress) (*trials, error)) ([]tune.Best, error) {
	dir, err := artifactDir("", s, j.identity()...)
	if err != nil {
		return nil, err
	}
	if f.dir != "" {
		dir = filepath.Join(f.dir, filepath.Base(dir))
	}
	p := a.newProgress()
	t, err := trialsOf(j, p)
	if err != nil {
		return nil, err
	}
	defer t.close()
	o := a.runOptions(f, j)
	o.Trials, o.Slots, o.Store, o.Dir, o.Progress, o.Log = t.bench, t.slots, s, dir, p.tuning, p.log
	r, err := tune.Run(ctx, o)
	p.done()
	if err != nil {
		return nil, err
	}
	if len(r.Best) == 0 {
		return nil, errors.New("every configuration that was checked is wrong")
	}
	return r.Best, nil
}

// fitRule predicts every candidate on every shape and fits the rule.
func (a *app) fitRule(ctx context.Context, r *shapesReport, jobs []*job, configs []space.Config, from [][]int, f *tuneFlags) error {
	var texts []string
	for _, c := range configs {
		texts = append(texts, c.String())
	}
	var shapes []dispatch.Shape
	for _, j := range jobs {
		b, err := j.problem.Space(j.gpu)
		if err != nil {
			return err
		}
		sizes, _ := table.Split(j.family, j.problem.Settings())
		s := dispatch.Shape{Sizes: knownSizes(j.family, sizes)}
		for _, c := range configs {
			us := math.Inf(1)
			if b.Check(c) == nil {
				best, err := tune.Explain(ctx, a.familyOptions(j, f.seed), c)
				switch {
				case err == nil:
					us = best.TimeUS
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case !errors.Is(err, tune.ErrDropped) && !errors.Is(err, codegen.ErrArguments):
					return err
				}
			}
			s.US = append(s.US, us)
		}
		shapes = append(shapes, s)
	}
	var err error
	if r.Rule, r.WorstRegret, err = dispatch.Fit(shapes, texts); err != nil {
		return err
	}
	r.holdOut(dispatch.HeldOut(shapes, texts, from))
	for i, s := range shapes {
		at := 0
		for c, us := range s.US {
			if us < s.US[at] {
				at = c
			}
		}
		chosen := r.Rule.Choose(s.Sizes)
		r.Shapes[i].Best, r.Shapes[i].BestUS, r.Shapes[i].Chosen = configs[at], s.US[at], chosen
		r.Shapes[i].Regret = s.US[slices.Index(texts, chosen)]/s.US[at] - 1
	}
	return nil
}

// holdOut notes what shapes lose by rules that were fitted without them.
func (r *shapesReport) holdOut(regrets []float64) {
	for i, regret := range regrets {
		switch {
		case math.IsNaN(regret):
		case math.IsInf(regret, 0):
			r.HeldOutRefused++
		default:
			r.Shapes[i].HeldOut = &regret
			if r.WorstHeldOut == nil || regret > *r.WorstHeldOut {
				r.WorstHeldOut = &regret
			}
		}
	}
}

func (a *app) printShapes(r *shapesReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s on %s, %d shapes\n\n", r.Kernel, r.GPU, len(r.Shapes))
	for _, s := range r.Shapes {
		fmt.Fprintf(a.out, "%s\n    best    %.4g us %s: %s\n", s.Problem, s.BestUS, r.Provenance, s.Best)
		if s.Regret > 0 {
			fmt.Fprintf(a.out, "    chosen  %.1f %% slower: %s\n", 100*s.Regret, s.Chosen)
		}
	}
	fmt.Fprintf(a.out, "\nrule, at worst %.1f %% slower than the best of each shape (%s):\n%s", 100*r.WorstRegret, r.Provenance, r.Rule)
	if r.WorstHeldOut != nil {
		fmt.Fprintf(a.out, "\nheld out, at worst %.1f %% slower: each shape by a rule fitted without it\n", 100**r.WorstHeldOut)
	}
	if r.HeldOutRefused > 0 {
		fmt.Fprintf(a.out, "held out, %d shapes get a configuration that they cannot run\n", r.HeldOutRefused)
	}
	fmt.Fprintf(a.out, "\nwritten to %s: kgen generate %s --rule takes it\n", r.File, r.Kernel)
	return nil
}
