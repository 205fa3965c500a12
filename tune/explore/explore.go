// Package explore searches a space whose points are tried one by one: it proposes them by
// a strategy, has them tried, keeps everything in the store, and times the leaders again.
package explore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// Options say what to search and with what.
type Options struct {
	Domain search.Domain
	Config func(search.Point) space.Config
	// Program is the digest of what a point's result depends on, as far as Run does not
	// say it: with the configuration it is the evaluation's key.
	Program  func(search.Point) (string, error)
	Bench    trial.Bench
	Measures bool // the bench measures times; else it predicts them

	Store *store.Store
	Run   store.Run // what the evaluations are recorded under; Budget and Seed are filled in

	Strategy string // "" is the default
	Seed     uint64
	Budget   int           // distinct configurations, failed ones included; at least 1
	Time     time.Duration // after which none is begun; 0: as long as it takes
	Default  search.Point  // tried first; nil: none
	Batch    int           // configurations under way at a time, which the search follows from; 0: DefaultBatch

	Finalists int // timed again in the end; 0: DefaultFinalists
	Samples   int // how often; 0: DefaultSamples
	// Cool is how long a device that has become slower is left alone, up to three times.
	Cool time.Duration

	Progress func(Progress) // nil: nobody watches
	Log      *slog.Logger   // nil: nothing
}

// Defaults of Options.
const (
	DefaultBatch     = 4
	DefaultFinalists = 10
	DefaultSamples   = 16
)

// Phase is a part of a search.
type Phase string

// The phases, in order.
const (
	Search  Phase = "search"
	Finals  Phase = "finals"  // the leaders are timed again, in turns
	Confirm Phase = "confirm" // the winner is checked again, over other contents
)

// Progress is where a search stands.
type Progress struct {
	Phase       Phase
	Done, Total int
	Failures    map[store.Outcome]int
	Best        *Trial        // so far; nil before the first
	Left        time.Duration // estimated for the phase; 0: not known yet
}

// Trial is what came of a configuration.
type Trial struct {
	Point      search.Point
	Config     space.Config
	Evaluation store.Evaluation
	Known      bool // it was in the store
	// Low and High hold the true median with 95 %, microseconds; 0 without samples enough.
	Low, High float64
}

// Result is what a search found.
type Result struct {
	Tried []Trial // in order
	// Best are those that ended well, fastest first: the finalists, where times were
	// measured, before all others.
	Best      []Trial
	Finalists int     // how many of Best were timed again
	Lost      []Trial // leaders that failed when they were timed again
	Fresh     int     // how many of Tried were not in the store
	Runs      []int64
	Seconds   map[string]float64
}

// ErrNothing says that not one configuration came to a time.
var ErrNothing = errors.New("no configuration is left")

// Explore searches. When ctx ends it returns its error; what was done is recorded, and
// the same options go on from there.
func Explore(ctx context.Context, o Options) (*Result, error) {
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	if err := s.search(ctx); err != nil {
		return nil, err
	}
	best := s.ranking()
	if len(best) == 0 {
		return s.result(nil), fmt.Errorf("%w: %s", ErrNothing, s.why())
	}
	if o.Measures {
		best, err = s.finals(ctx, best)
	} else {
		best, err = s.confirm(ctx, best)
	}
	if err != nil {
		return nil, err
	}
	return s.result(best), nil
}

// session is a search under way.
type session struct {
	Options
	run      *store.Run
	final    *store.Run
	tried    []Trial
	failures map[store.Outcome]int
	lock     sync.Mutex
	same     map[string]*shared // by what is run; under the lock
	canary   canary
	begun    time.Time
	best     *Trial
	runs     []int64
	phases   map[string]float64
	finished int // finalists
	lost     []Trial
}

// newSession begins a search.
func newSession(o Options) (*session, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if s.run, err = s.Store.Begin(*s.run); err != nil {
		return nil, err
	}
	s.runs = append(s.runs, s.run.ID)
	return s, nil
}

// prepare makes a session that records nothing yet.
func prepare(o Options) (*session, error) {
	if o.Budget < 1 {
		return nil, fmt.Errorf("budget %d: want 1 or more", o.Budget)
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Finalists == 0 {
		o.Finalists = DefaultFinalists
	}
	if o.Samples == 0 {
		o.Samples = DefaultSamples
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Run.Budget, o.Run.Seed = o.Budget, o.Seed
	return &session{
		Options: o, run: &o.Run, failures: map[store.Outcome]int{}, same: map[string]*shared{}, begun: time.Now(), phases: map[string]float64{},
	}, nil
}

// errTime ends a search whose time is up.
var errTime = errors.New("the time is up")

func (s *session) search(ctx context.Context) error {
	o := search.Options{Seed: s.Seed, Budget: s.Budget}
	if s.Default != nil {
		o.First = []search.Point{s.Default}
	}
	strategy, err := search.New(s.Strategy, s.Domain, o)
	if err != nil {
		return err
	}
	_, err = search.RunBatches(ctx, s.Domain, strategy, o, s.Batch, func(batch []search.Point) ([]search.Result, error) {
		if s.Time > 0 && time.Since(s.begun) >= s.Time {
			return nil, errTime
		}
		trials, err := s.batch(ctx, batch)
		if err != nil {
			return nil, err
		}
		var out []search.Result
		for i := range trials {
			out = append(out, s.take(&trials[i]))
		}
		return out, nil
	})
	if errors.Is(err, errTime) {
		return nil
	}
	return err
}

// take notes a trial and tells what a strategy learns from it: a failure is no number.
func (s *session) take(t *Trial) search.Result {
	e := &t.Evaluation
	s.tried = append(s.tried, *t)
	for phase, seconds := range e.Seconds {
		s.phases[phase] += seconds
	}
	if !e.Outcome.Timed() {
		s.failures[e.Outcome]++
		s.Log.Debug("failed", "config", e.Config, "outcome", e.Outcome, "error", e.Error)
	} else if s.best == nil || e.TimeUS < s.best.Evaluation.TimeUS {
		best := *t
		s.best = &best
	}
	s.show(Search, len(s.tried), s.Budget, s.begun)
	return search.Result{OK: e.Outcome.Timed(), Time: e.TimeUS}
}

func (s *session) show(phase Phase, done, total int, begun time.Time) {
	if s.Progress == nil {
		return
	}
	p := Progress{Phase: phase, Done: done, Total: total, Failures: s.failures, Best: s.best}
	if done > 0 {
		p.Left = time.Duration(float64(time.Since(begun)) / float64(done) * float64(total-done))
	}
	if s.Time > 0 && phase == Search {
		p.Left = min(p.Left, max(0, s.Time-time.Since(begun)))
	}
	s.Progress(p)
}

// why says what became of the configurations.
func (s *session) why() string {
	text := fmt.Sprintf("%d tried", len(s.tried))
	for _, o := range store.Outcomes() {
		if n := s.failures[o]; n > 0 {
			text += fmt.Sprintf("; %s: %d", o, n)
		}
	}
	for i := range s.tried {
		if e := &s.tried[i].Evaluation; e.Error != "" {
			return text + fmt.Sprintf("; for example %s: %s", e.Config, e.Error)
		}
	}
	return text
}

func (s *session) result(best []Trial) *Result {
	r := &Result{Tried: s.tried, Best: best, Runs: s.runs, Seconds: s.phases, Finalists: s.finished, Lost: s.lost}
	for i := range s.tried {
		if !s.tried[i].Known {
			r.Fresh++
		}
	}
	return r
}
