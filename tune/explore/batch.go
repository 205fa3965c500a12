package explore

import (
	"context"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/median"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// batch tries points beside each other and returns what came of them in their order. On a
// device that measures, those that were tried while it was slower than before are tried
// again.
func (s *session) batch(ctx context.Context, points []search.Point) ([]Trial, error) {
	trials := make([]Trial, len(points))
	errs := make([]error, len(points))
	var wg sync.WaitGroup
	for i, p := range points {
		wg.Go(func() { trials[i], errs[i] = s.try(ctx, p) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if !s.Measures {
		return trials, nil
	}
	return trials, s.steady(ctx, trials)
}

// try tries a point, or takes what the store knows of it, and records what is new.
func (s *session) try(ctx context.Context, p search.Point) (Trial, error) {
	t := Trial{Point: p, Config: s.Config(p)}
	program, err := s.Program(p)
	if err != nil {
		return t, err
	}
	key := s.run.Key(program, t.Config.String())
	old, found, err := s.Store.Lookup(key)
	if err != nil {
		return t, err
	}
	if found {
		t.Evaluation, t.Known = old, true
		s.recorded(p)
		return t, nil
	}
	e, err := s.fresh(ctx, p)
	if err != nil {
		return t, err
	}
	e.Key, e.Run, e.Config, e.Program = key, s.run.ID, t.Config.String(), program
	t.Evaluation = e
	return t, s.record(p, e)
}

// record records what came of a point.
func (s *session) record(p search.Point, e store.Evaluation) error {
	if err := s.Store.Record(e); err != nil {
		return err
	}
	s.recorded(p)
	return nil
}

// recorded tells the bench that it need not keep what came of a point.
func (s *session) recorded(p search.Point) {
	if k, ok := s.Bench.(trial.Keeper); ok {
		k.Recorded(p)
	}
}

// fresh compiles and runs a point.
func (s *session) fresh(ctx context.Context, p search.Point) (store.Evaluation, error) {
	b, err := s.Bench.Compile(ctx, p)
	if err != nil {
		return store.Evaluation{}, err
	}
	e := store.Evaluation{
		Registers: b.Registers, SharedBytes: b.SharedBytes, SpillBytes: b.SpillBytes, CTAsPerSM: b.CTAsPerSM,
		Cubin: b.Cubin, Instructions: b.Instructions, Seconds: map[string]float64{"compile": b.Seconds},
	}
	if b.Outcome != "" {
		e.Outcome, e.Error = b.Outcome, b.Error
		return e, nil
	}
	r, reused, err := s.runOnce(ctx, p, b.Same)
	if err != nil {
		return e, err
	}
	if !reused {
		e.Seconds["run"] = r.Seconds
	}
	fill(&e, &r)
	return e, nil
}

// fill puts what a run gave into an evaluation.
func fill(e *store.Evaluation, r *trial.Ran) {
	e.Outcome, e.Error = r.Outcome, r.Error
	if !r.Outcome.Timed() { // whatever it came to before
		e.TimeUS, e.Provenance, e.Samples, e.Limits, e.Terms, e.Verified = 0, 0, nil, nil, nil, false
		return
	}
	e.Provenance, e.Verified, e.Limits, e.Terms = r.Provenance, r.Verified, r.Limits, r.Terms
	e.Samples, e.TimeUS = r.Samples, r.TimeUS
	if r.Provenance == bench.Measured {
		e.TimeUS = median.Of(r.Samples)
	}
	if !usable(e.TimeUS) {
		*e = store.Evaluation{Outcome: store.Runtime, Error: "a time that is no positive number", Seconds: e.Seconds, Cubin: e.Cubin,
			Registers: e.Registers, SharedBytes: e.SharedBytes, SpillBytes: e.SpillBytes, CTAsPerSM: e.CTAsPerSM, Instructions: e.Instructions}
	}
}

// shared is the run of code that several configurations compile to.
type shared struct {
	done chan struct{}
	ran  trial.Ran
	err  error
}

// runOnce runs a point, unless another with the same code and launch was or is being run:
// reused says so. What was slow is run again, see steady.
func (s *session) runOnce(ctx context.Context, p search.Point, same string) (r trial.Ran, reused bool, err error) {
	if same == "" {
		r, err = s.Bench.Run(ctx, p, 1)
		return r, false, err
	}
	s.lock.Lock()
	other := s.same[same]
	if other == nil {
		mine := &shared{done: make(chan struct{})}
		s.same[same] = mine
		s.lock.Unlock()
		mine.ran, mine.err = s.Bench.Run(ctx, p, 1)
		close(mine.done)
		return mine.ran, false, mine.err
	}
	s.lock.Unlock()
	select {
	case <-other.done:
		return other.ran, true, other.err
	case <-ctx.Done():
		return r, true, context.Cause(ctx)
	}
}

// canary is a configuration that is timed after every batch: it tells whether the device
// runs as it did before.
type canary struct {
	point search.Point
	usual []float64 // its times while nothing was amiss
}

// slower is by how much a canary's time exceeds its median before it counts as slow:
// clocks that fall cost more, noise of single runs less.
const slower = 1.1

// canarySamples are taken of a new canary, and at each look the fastest of as many counts.
const (
	canarySamples = 5
	canaryLooks   = 2
)

// steady looks whether the device was slower while trials were made. If so it waits, and
// makes those that ended well again; if it still is, they are marked.
func (s *session) steady(ctx context.Context, trials []Trial) error {
	if s.canary.point == nil {
		return s.chooseCanary(ctx, trials)
	}
	slow, err := s.isSlow(ctx)
	if err != nil || !slow {
		return err
	}
	for range 3 {
		s.Log.Warn("the device runs slower than before: waiting", "for", s.Cool)
		select {
		case <-time.After(s.Cool):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if slow, err = s.isSlow(ctx); err != nil {
			return err
		}
		if !slow {
			break
		}
	}
	return s.again(ctx, trials, slow)
}

// again times trials once more, and marks them if the device is still slow.
func (s *session) again(ctx context.Context, trials []Trial, slow bool) error {
	for i := range trials {
		t := &trials[i]
		if t.Known || !t.Evaluation.Outcome.Timed() {
			continue
		}
		r, err := s.Bench.Run(ctx, t.Point, 1)
		if err != nil {
			return err
		}
		e := &t.Evaluation
		e.At, e.ID = time.Time{}, 0
		fill(e, &r)
		e.Throttled = slow
		if err := s.record(t.Point, *e); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) chooseCanary(ctx context.Context, trials []Trial) error {
	for i := range trials {
		if !trials[i].Evaluation.Outcome.Timed() {
			continue
		}
		r, err := s.Bench.Run(ctx, trials[i].Point, canarySamples)
		if err != nil {
			return err
		}
		if len(r.Samples) == 0 {
			continue
		}
		s.canary = canary{trials[i].Point, r.Samples}
		return nil
	}
	return nil
}

func (s *session) isSlow(ctx context.Context) (bool, error) {
	r, err := s.Bench.Run(ctx, s.canary.point, canaryLooks)
	if err != nil || len(r.Samples) == 0 {
		return false, err
	}
	now := r.Samples[0]
	for _, us := range r.Samples {
		now = min(now, us)
	}
	if now > slower*median.Of(s.canary.usual) {
		return true, nil
	}
	s.canary.usual = append(s.canary.usual, now)
	return false, nil
}
