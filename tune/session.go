package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
)

// session is a run under way.
type session struct {
	Options
	builder  *builder
	space    *space.Bound
	fallback space.Config // what is used untuned; none: empty
	run      *store.Run
	args     []codegen.Argument
	inputs   model.Inputs
	roofs    roofline.Roofs
	leastUS  float64 // of the problem, by formula
	result   Result
	restored bool // the ranking is an earlier run's

	mu       sync.Mutex // of the progress
	progress Progress
	leader   *store.Evaluation // behind the best so far
	started  time.Time         // of the phase
	failed   map[store.Outcome]int
}

func newSession(ctx context.Context, o Options) (*session, error) {
	s, run, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if s.run, err = s.Store.Begin(*run); err != nil {
		return nil, err
	}
	s.Log.Info("tuning", "family", run.Family, "problem", s.result.Problem.String(), "gpu", run.GPU, "space", s.result.Removed.String(), "compiler", s.result.Toolchain)
	return s, nil
}

// prepare makes a session that records nothing yet, and the run under which it would.
func prepare(ctx context.Context, o Options) (*session, *store.Run, error) {
	o.fill()
	s := &session{Options: o, failed: map[store.Outcome]int{}, roofs: roofline.DeviceRoofs(o.GPU), args: Arguments(o.Problem.Args()), inputs: family.Integers(o.Problem.Args())}
	formula, err := roofline.Assess(s.roofs, FormulaWork(o.Problem.Work()))
	if err != nil {
		return nil, nil, fmt.Errorf("%s on %s (%s): %w: %w", o.Family.Name, o.GPU.Name, o.GPU.ID, ErrNoRate, err)
	}
	s.leastUS = formula.LeastUS()
	if s.space, err = o.Problem.Space(o.GPU); err != nil {
		return nil, nil, err
	}
	counts := s.space.Count()
	settings := o.Problem.Settings()
	s.result = Result{
		Kernel: o.Family.Name, GPU: o.GPU.ID, Problem: settings,
		Space: Space{Total: counts.Total, Valid: counts.Valid}, Removed: counts,
	}
	if counts.Valid == 0 {
		return nil, nil, fmt.Errorf("%s on %s: %w: %s", o.Family.Name, o.GPU.Name, ErrNothing, counts)
	}
	if c, err := o.Problem.Default(o.GPU); err == nil {
		s.fallback = c
	}
	if s.builder, err = o.Toolchain.builderFor(ctx, o.GPU, o.Cache, o.Log); err != nil {
		return nil, nil, err
	}
	s.result.Toolchain = s.builder.describe()
	s.result.Notes = append(s.result.Notes, s.builder.notes...)
	problem, err := json.Marshal(settings)
	if err != nil {
		return nil, nil, err
	}
	types := ""
	for _, x := range settings {
		if x.Name == "dtype" {
			types = x.Value
		}
	}
	return s, &store.Run{
		Command: o.Command, Family: o.Family.Name, Problem: problem, GPU: o.GPU.ID, Types: types,
		Policy: "predicted", Kgen: o.Version, Compiler: s.builder.identity(), CostModel: model.Version,
		Budget: o.Configs, Seed: o.Seed,
	}, nil
}

// program is a configuration lowered, and planned for the problem's sizes.
type program struct {
	compiled *codegen.Compiled
	plan     *codegen.Plan
}

func (s *session) lower(c space.Config) (*program, error) {
	prog, err := s.Problem.Program(c)
	if err != nil {
		return nil, err
	}
	compiled, err := codegen.Compile(prog, s.GPU, codegen.Options{})
	if err != nil {
		return nil, err
	}
	plan, err := compiled.Plan(s.args)
	if err != nil {
		return nil, err
	}
	return &program{compiled, plan}, nil
}

// FormulaWork is the least that any kernel does for a problem, in one launch.
func FormulaWork(w family.Work) roofline.Work {
	return roofline.Work{
		Operations: []roofline.Operations{{Math: w.Math, Count: roofline.Formula(w.FLOPs)}},
		HBMBytes:   roofline.Formula(w.Bytes), MUFU: roofline.Formula(w.Exp2), Launches: roofline.Formula(1),
	}
}

// recordOnce records an evaluation unless the store has its key.
func (s *session) recordOnce(e store.Evaluation) error {
	if _, found, err := s.Store.Lookup(e.Key); err != nil || found {
		return err
	}
	e.Run = s.run.ID
	return s.Store.Record(e)
}

// phase begins a part of the run.
func (s *session) phase(p Phase, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Phase, s.progress.Done, s.progress.Total, s.progress.Left = p, 0, total, 0
	s.started = time.Now()
	s.report()
}

// step counts one configuration of the phase, after f has changed the progress.
func (s *session) step(f func(*Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f != nil {
		f(&s.progress)
	}
	s.progress.Done++
	if left := s.progress.Total - s.progress.Done; left >= 0 {
		s.progress.Left = time.Since(s.started) / time.Duration(s.progress.Done) * time.Duration(left)
	}
	s.report()
}

func (s *session) fail(o store.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[o]++
	s.progress.Failures = s.counted()
}

// report calls the caller back; the lock is held.
func (s *session) report() {
	if s.Progress != nil {
		s.Progress(s.progress)
	}
}

func (s *session) failures() []Failures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted()
}

// counted lists the failures in a fixed order.
func (s *session) counted() []Failures {
	var out []Failures
	for _, o := range []store.Outcome{store.Compile, store.Resources, store.Timeout, store.Runtime, store.Correctness, store.Constraints} {
		if n := s.failed[o]; n > 0 {
			out = append(out, Failures{o, n})
		}
	}
	return out
}
