package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// session is a run under way.
type session struct {
	*Kernel
	fallback space.Config // what is used untuned; none: empty
	run      *store.Run
	leastUS  float64 // of the problem, by formula
	result   Result
	restored bool      // the ranking is an earlier run's
	tried    []float64 // predicted times in order, microseconds; 0 for what came to nothing
	second   *secondCheck
	local    chan struct{} // a place for each of what this process itself works on

	mu       sync.Mutex // of what follows
	progress Progress
	leader   *store.Evaluation // behind the best so far
	started  time.Time         // of the phase
	failed   []explore.Failure
	took     map[string]time.Duration // by phase
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
	formula, err := roofline.Assess(roofline.DeviceRoofs(o.GPU), FormulaWork(o.Problem.Work()))
	if err != nil {
		return nil, nil, fmt.Errorf("%s on %s (%s): %w: %w", o.Family.Name, o.GPU.Name, o.GPU.ID, ErrNoRate, err)
	}
	k, err := NewKernel(ctx, o, nil)
	if err != nil {
		return nil, nil, err
	}
	s := &session{Kernel: k, leastUS: formula.LeastUS(), took: map[string]time.Duration{}, local: make(chan struct{}, k.Workers)}
	if s.Trials == nil {
		s.Trials = k
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

// record records what came of a configuration, which need not be kept elsewhere then.
func (s *session) record(c space.Config, e store.Evaluation) error {
	if err := s.Store.Record(e); err != nil {
		return err
	}
	s.recorded(c)
	return nil
}

// recorded says that what is known of a configuration is recorded.
func (s *session) recorded(c space.Config) {
	if k, ok := s.Trials.(trial.Keeper); ok {
		k.Recorded(pointOf(c))
	}
}

// phase begins a part of the run.
func (s *session) phase(p Phase, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Phase, s.progress.Done, s.progress.Total, s.progress.Left = p, 0, total, 0
	s.started = time.Now()
	s.report()
}

// at notes how much of the phase is done.
func (s *session) at(done, total int) {
	if done == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Done, s.progress.Total = done-1, total
	s.advance()
}

// step counts one configuration of the phase, after f has changed the progress.
func (s *session) step(f func(*Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f != nil {
		f(&s.progress)
	}
	s.advance()
}

// advance counts one of the phase; the lock is held.
func (s *session) advance() {
	s.progress.Done++
	if left := s.progress.Total - s.progress.Done; left >= 0 {
		s.progress.Left = time.Since(s.started) / time.Duration(s.progress.Done) * time.Duration(left)
	}
	s.report()
}

// fail notes what became of a configuration.
func (s *session) fail(c space.Config, o store.Outcome, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, explore.Failure{Config: c, Outcome: o, Error: why})
	s.progress.Failed = len(s.failed)
}

// report calls the caller back; the lock is held.
func (s *session) report() {
	if s.Progress != nil {
		s.Progress(s.progress)
	}
}
