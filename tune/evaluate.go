package tune

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// finding is a configuration with its time.
type finding struct {
	config space.Config
	index  int // in the order of enumeration
	eval   store.Evaluation
	same   string // digest of its code and launch; "" if it was not compiled in this run

	low, high float64 // hold the true median with 95 %, of a measured time; else 0

	fault   string        // why it is not verified, once it was checked
	outcome store.Outcome // of a check that found it wrong; else empty
}

// outrank compares timed evaluations, the better one first: the faster, but any before
// one that spills, as no model of ours knows what that costs.
func outrank(a, b *store.Evaluation) int {
	return cmp.Or(min(a.SpillBytes, 1)-min(b.SpillBytes, 1), cmp.Compare(a.TimeUS, b.TimeUS))
}

// evaluate compiles the chosen candidates, prunes, predicts and records; candidates
// that fail are replaced until enough have been compiled. It returns those with a time,
// fastest first.
func (s *session) evaluate(ctx context.Context, ranked []candidate) ([]finding, error) {
	queue := s.choose(ranked, s.Configs)
	printed := map[string]string{} // source by configuration
	s.phase(Compile, min(s.Configs, len(queue)))
	var found []finding
	begun := time.Now()
	var timed atomic.Int64
	more := func() bool { return s.Time == 0 || time.Since(begun) < s.Time || timed.Load() == 0 }
	for enough := 0; enough < s.Configs && len(queue) > 0 && more(); {
		batch := queue[:min(len(queue), s.Configs-enough)]
		got := make([]*finding, len(batch))
		counts := make([]bool, len(batch))
		n, err := s.beside(ctx, len(batch), more, func(ctx context.Context, i int) (err error) {
			if got[i], counts[i], err = s.one(ctx, &batch[i]); got[i] != nil {
				timed.Add(1)
			}
			return err
		})
		queue = queue[n:]
		for _, c := range batch[:n] {
			printed[c.config.String()] = c.source
		}
		if err != nil {
			return nil, err
		}
		for i, f := range got[:n] {
			us := 0.0
			if f != nil {
				found = append(found, *f)
				us = f.eval.TimeUS
			}
			s.tried = append(s.tried, us)
			if counts[i] {
				enough++
			}
		}
	}
	s.keepPrinted(ranked, printed)
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(outrank(&a.eval, &b.eval), cmp.Compare(a.index, b.index))
	})
	return found, nil
}

// one evaluates a candidate, or takes what the store knows; nil if it came to nothing.
// counts tells whether it is one of the configurations asked for: one that has a cubin,
// or without a compiler a time.
func (s *session) one(ctx context.Context, c *candidate) (f *finding, counts bool, err error) {
	e, wrong, same, err := s.known(ctx, c)
	if err != nil {
		return nil, false, err
	}
	for phase, seconds := range e.Seconds {
		s.addSeconds(phase, seconds)
	}
	if e.Outcome.Timed() {
		f = &finding{config: c.config, index: c.index, eval: e, same: same, fault: wrong.Error, outcome: wrong.Outcome}
	} else {
		s.fail(c.config, e.Outcome, e.Error)
		s.Log.Debug("failed", "config", e.Config, "outcome", e.Outcome, "error", e.Error)
	}
	s.step(func(p *Progress) {
		if e.Cubin != "" {
			p.Compiled++
		}
		if f != nil && f.outcome == "" && (s.leader == nil || outrank(&e, s.leader) < 0) {
			best := s.best(f)
			p.Best, s.leader = &best, &e
		}
	})
	return f, e.Cubin != "" || f != nil && !s.builder.compiles(), nil
}

// known looks a candidate up in the store, and evaluates and records it if it is not
// there. One that a check found wrong before comes with its time, which the store does
// not keep then, and beside it the store's evaluation that says what is wrong.
func (s *session) known(ctx context.Context, c *candidate) (e, wrong store.Evaluation, same string, err error) {
	if c.source == "" {
		s.local <- struct{}{}
		_, src, err := s.print(c.config)
		<-s.local
		if err != nil {
			return e, wrong, "", err
		}
		c.source = src.hash
	}
	key := s.run.Key(c.source, c.config.String())
	old, found, err := s.Store.Lookup(key)
	if err != nil {
		return e, wrong, "", err
	}
	if found && s.reusable(&old) {
		s.recorded(c.config)
		return old, wrong, "", nil
	}
	b, err := s.Trials.Compile(ctx, pointOf(c.config))
	if err != nil {
		return e, wrong, "", err
	}
	c.source = b.Program
	e = evaluationOf(&b)
	e.Key, e.Run, e.Program, e.Config = s.run.Key(c.source, c.config.String()), s.run.ID, c.source, c.config.String()
	if found && e.Outcome.Timed() && !old.Outcome.Timed() {
		return e, old, b.Same, nil
	}
	return e, wrong, b.Same, s.record(c.config, e)
}

// evaluationOf is what compiling a configuration says of it.
func evaluationOf(b *trial.Built) store.Evaluation {
	e := store.Evaluation{
		Outcome: b.Outcome, Error: b.Error, Registers: b.Registers, SharedBytes: b.SharedBytes, SpillBytes: b.SpillBytes, CTAsPerSM: b.CTAsPerSM,
		Cubin: b.Cubin, Instructions: b.Instructions, Seconds: map[string]float64{"compile": b.Seconds},
	}
	if p := b.Predicted; p != nil {
		e.Outcome, e.TimeUS, e.Provenance, e.Limits, e.Terms = p.Outcome, p.TimeUS, p.Provenance, p.Limits, p.Terms
	}
	return e
}

// addSeconds counts what a phase took, of all processes together: whole nanoseconds, whose
// sum does not depend on their order.
func (s *session) addSeconds(phase string, seconds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took[phase] += time.Duration(math.Round(seconds * float64(time.Second)))
}

// seconds is what the phases took.
func (s *session) seconds() map[string]float64 {
	out := make(map[string]float64, len(s.took))
	for phase, took := range s.took {
		out[phase] = took.Seconds()
	}
	return out
}

// reusable tells whether a stored evaluation says all that a run needs.
func (s *session) reusable(e *store.Evaluation) bool {
	return !e.Outcome.Wrong() && s.believable(e)
}

// keepPrinted keeps the ranking with the sources that were printed, if that is more
// than was kept before.
func (s *session) keepPrinted(ranked []candidate, printed map[string]string) {
	news := !s.restored
	for i := range ranked {
		c := &ranked[i]
		if source := printed[c.config.String()]; source != "" && source != c.source {
			c.source, news = source, true
		}
	}
	if news {
		s.keep(ranked)
	}
}

// believable tells whether a stored time can be: nothing takes less than the least by
// formula.
func (s *session) believable(e *store.Evaluation) bool {
	const rounding = 1e-9
	ok := !e.Outcome.Timed() || e.TimeUS >= s.leastUS*(1-rounding)
	if !ok {
		s.Log.Warn("a stored time is not believed: evaluated again", "config", e.Config, "us", e.TimeUS, "least", s.leastUS)
	}
	return ok
}

// best describes a finding as the result shows it.
func (s *session) best(f *finding) Best {
	e := &f.eval
	b := Best{
		Config: f.config, TimeUS: e.TimeUS, TFLOPS: s.Problem.Work().FLOPs / e.TimeUS / 1e6,
		Registers: e.Registers, SharedBytes: e.SharedBytes, SpillBytes: e.SpillBytes, CTAsPerSM: e.CTAsPerSM,
		Instructions: e.Instructions, Verified: e.Verified, Provenance: e.Provenance, Estimated: e.Registers == 0, Fault: f.fault, Limits: Limits{}, Terms: e.Terms,
	}
	if b.Instructions == nil && e.Cubin != "" {
		b.Instructions = map[string]int{} // the store leaves out none
	}
	if f.high > 0 {
		b.LowUS, b.HighUS = &f.low, &f.high
	}
	for _, u := range roofline.Units() {
		us, ok := e.Limits[string(u)]
		if !ok {
			continue
		}
		b.Limits[u] = us
		if us > b.Limits[b.Limit] {
			b.Limit = u
		}
	}
	b.Score = s.leastUS / e.TimeUS
	return b
}
