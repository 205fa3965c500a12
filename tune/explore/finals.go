package explore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/median"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// ranking is the trials that ended well, fastest first.
func (s *session) ranking() []Trial {
	var best []Trial
	for _, t := range s.tried {
		if t.Evaluation.Outcome.Timed() {
			best = append(best, t)
		}
	}
	slices.SortStableFunc(best, func(a, b Trial) int { return cmp.Compare(a.Evaluation.TimeUS, b.Evaluation.TimeUS) })
	return best
}

// leaders are the first of a ranking with different code, and the default configuration.
func (s *session) leaders(ranked []Trial) []Trial {
	var out []Trial
	seen := map[string]bool{}
	for _, t := range ranked {
		isDefault := s.Default != nil && slices.Equal(t.Point, s.Default)
		if len(out) >= s.Finalists && !isDefault {
			continue
		}
		if c := t.Evaluation.Cubin; c != "" && seen[c+launchOf(&t)] && !isDefault {
			continue
		}
		seen[t.Evaluation.Cubin+launchOf(&t)] = true
		out = append(out, t)
	}
	return out
}

// launchOf tells configurations apart that compile to the same code: equal times are no
// proof, but those with the same samples were one run.
func launchOf(t *Trial) string { return fmt.Sprint(t.Evaluation.Samples) }

// Turns times trials that were found elsewhere in turns, and confirms the fastest. Best
// and Lost of the result are all of them.
func Turns(ctx context.Context, o Options, ranked []Trial) (*Result, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	best, err := s.finals(ctx, ranked)
	if err != nil {
		return nil, err
	}
	return s.result(best[:s.finished]), nil
}

// finals times the leaders again, in turns, so that whatever the device does meanwhile
// happens to all of them, and checks the winner's results once more.
func (s *session) finals(ctx context.Context, ranked []Trial) ([]Trial, error) {
	policy := s.run.Policy
	final := *s.run
	final.Policy, final.Started, final.ID = fmt.Sprintf("median of %d in turns; %s", s.Samples, policy), time.Time{}, 0
	begun, err := s.Store.Begin(final)
	if err != nil {
		return nil, err
	}
	s.final = begun
	s.runs = append(s.runs, begun.ID)
	leaders := s.leaders(ranked)
	if p, ok := s.Bench.(trial.Pinner); ok {
		p.Pin()
	}
	start := time.Now()
	for round := range s.Samples {
		if err := s.round(ctx, leaders, round); err != nil {
			return nil, err
		}
		s.show(Finals, round+1, s.Samples, start)
	}
	done := make([]Trial, 0, len(ranked)) // apart from leaders, which also tell who is to be left out
	for _, t := range leaders {
		if err := s.settle(&t); err != nil {
			return nil, err
		}
		if t.Evaluation.Outcome.Timed() {
			done = append(done, t)
		}
	}
	slices.SortStableFunc(done, func(a, b Trial) int { return cmp.Compare(a.Evaluation.TimeUS, b.Evaluation.TimeUS) })
	if done, err = s.confirm(ctx, done); err != nil {
		return nil, err
	}
	s.finished = len(done)
	for _, t := range ranked {
		if !slices.ContainsFunc(leaders, func(l Trial) bool { return slices.Equal(l.Point, t.Point) }) {
			done = append(done, t)
		}
	}
	return done, nil
}

// round times every leader once, those apart whose time of this round is in the store.
func (s *session) round(ctx context.Context, leaders []Trial, round int) error {
	for i := range leaders {
		t := &leaders[i]
		if !t.Evaluation.Outcome.Timed() {
			continue
		}
		if round == 0 {
			t.Evaluation.Samples = nil
		}
		e := t.Evaluation
		program := store.Sample(e.Program, round)
		key := s.final.Key(program, e.Config)
		old, found, err := s.Store.Lookup(key)
		if err != nil {
			return err
		}
		if !found {
			r, err := s.Bench.Run(ctx, t.Point, 1)
			if err != nil {
				return err
			}
			old = t.Evaluation
			old.At, old.ID, old.Run, old.Key, old.Program = time.Time{}, 0, s.final.ID, key, program
			old.Seconds = map[string]float64{"run": r.Seconds}
			fill(&old, &r)
			s.phases["run"] += r.Seconds
			if err := s.record(t.Point, old); err != nil {
				return err
			}
		}
		if !old.Outcome.Timed() {
			t.Evaluation = old
			s.lose(*t)
			s.Log.Error("a leader failed when it was timed again", "config", e.Config, "outcome", old.Outcome, "error", old.Error)
			continue
		}
		t.Evaluation.Samples = append(t.Evaluation.Samples, old.TimeUS)
	}
	return nil
}

// lose notes a leader that failed after it had come to a time.
func (s *session) lose(t Trial) {
	s.lost = append(s.lost, t)
	s.failures[t.Evaluation.Outcome]++
}

// settle turns a leader's samples into its time and records it, unless that was done.
func (s *session) settle(t *Trial) error {
	e := &t.Evaluation
	if !e.Outcome.Timed() {
		return nil
	}
	key := s.final.Key(e.Program, e.Config)
	old, found, err := s.Store.Lookup(key)
	if err != nil {
		return err
	}
	if found {
		*e = old
	} else {
		e.At, e.ID, e.Run, e.Key = time.Time{}, 0, s.final.ID, key
		e.TimeUS, e.Provenance, e.Seconds, e.Throttled = median.Of(e.Samples), bench.Measured, nil, false
		if err := s.Store.Record(*e); err != nil {
			return err
		}
	}
	t.Low, t.High = interval(e.Samples)
	return nil
}

// confirm checks the winner's results once more, over other contents; one that is wrong
// goes, and the next is the winner. It is recorded, so that it is done once.
func (s *session) confirm(ctx context.Context, done []Trial) ([]Trial, error) {
	run := s.run
	if s.final != nil {
		run = s.final
	}
	for len(done) > 0 {
		e := &done[0].Evaluation
		again := *e
		again.Program = store.Again(e.Program)
		again.Key = run.Key(again.Program, e.Config)
		if old, found, err := s.Store.Lookup(again.Key); err != nil || found {
			s.phases["run"] += old.Seconds["run"]
			return done, err
		}
		s.show(Confirm, 0, 1, s.begun)
		r, err := s.Bench.Run(ctx, done[0].Point, trial.Again)
		if err != nil {
			return nil, err
		}
		s.phases["run"] += r.Seconds
		if r.Outcome.Timed() {
			again.Seconds = map[string]float64{"run": r.Seconds}
			again.At, again.ID, again.Run = time.Time{}, 0, run.ID
			return done, s.Store.Record(again)
		}
		s.Log.Error("the winner fails when it is checked again: it is left out", "config", e.Config, "outcome", r.Outcome, "error", r.Error)
		bad := *e
		bad.At, bad.ID = time.Time{}, 0
		fill(&bad, &r)
		if err := s.Store.Record(bad); err != nil {
			return nil, err
		}
		lost := done[0]
		lost.Evaluation = bad
		s.lose(lost)
		done = done[1:]
	}
	return done, nil
}

// usable tells whether a time can be one.
func usable(us float64) bool { return us > 0 && !math.IsInf(us, 0) }

// interval holds the median of what samples were drawn from with 95 %: the order
// statistics between which it lies by the binomial distribution, whatever theirs is.
// Zeros where there are too few.
func interval(samples []float64) (low, high float64) {
	n := len(samples)
	w := slices.Clone(samples)
	slices.Sort(w)
	below, tail := math.Pow(0.5, float64(n)), 0.0 // probability that k samples lie below the median
	for k := range n/2 + 1 {
		if tail+below > 0.025 {
			if k == 0 {
				return 0, 0
			}
			return w[k-1], w[n-k]
		}
		tail += below
		below *= float64(n-k) / float64(k+1)
	}
	return 0, 0
}
