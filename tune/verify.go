package tune

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// verify checks the best configurations, all but those the store knows as verified, and
// notes and records what it finds. It returns as many as are reported: the next ones
// stand in for those that fail, until as many fail as were to be reported. What compiles
// to the same code as another is not checked again.
func (s *session) verify(ctx context.Context, found []finding) ([]finding, error) {
	s.phase(Verify, min(s.Top, len(found)))
	var top []finding
	known := map[string]trial.Ran{} // by code and launch
	failed := 0
	for i := range found {
		f := &found[i]
		if len(top) == s.Top || failed == s.Top {
			break
		}
		if !f.eval.Verified && f.fault == "" {
			if err := s.verifyOne(ctx, f, known); err != nil {
				return nil, err
			}
		}
		if f.outcome == "" {
			top = append(top, *f)
			s.step(nil)
			continue
		}
		failed++
		s.lose(f)
	}
	return top, nil
}

// confirm checks the winner once more, over other data and blocks; one that is wrong goes,
// and the next is the winner. It is recorded, so that it is done once.
func (s *session) confirm(ctx context.Context, top []finding) ([]finding, error) {
	for i := 0; i < len(top); {
		f := &top[i]
		if !f.eval.Verified { // it could not be checked the first time
			i++
			continue
		}
		again := f.eval
		again.At, again.Run, again.Program = time.Time{}, s.run.ID, store.Again(f.eval.Program)
		again.Key = s.run.Key(again.Program, again.Config)
		if old, found, err := s.Store.Lookup(again.Key); err != nil || found {
			s.addSeconds("verify", old.Seconds["verify"])
			return top, err
		}
		r, err := s.Trials.Run(ctx, pointOf(f.config), trial.Again)
		if err != nil {
			return nil, err
		}
		s.addSeconds("verify", r.Seconds)
		again.Seconds = map[string]float64{"verify": r.Seconds}
		switch r.Outcome {
		case store.Correct:
			return top, s.Store.Record(again)
		case store.Predicted:
			s.Log.Warn("the winner could not be checked once more", "config", again.Config, "error", r.Error)
			return top, nil
		}
		e := f.eval
		e.At, e.Run = time.Time{}, s.run.ID
		f.condemn(&e, &r)
		if err := s.Store.Record(e); err != nil {
			return nil, err
		}
		s.lose(f)
		top = slices.Delete(top, i, i+1)
	}
	return top, nil
}

// condemn turns what a configuration came to into what a check found wrong with it.
func (f *finding) condemn(e *store.Evaluation, r *trial.Ran) {
	f.fault, f.outcome = r.Error, r.Outcome
	e.Outcome, e.Error, e.TimeUS, e.Provenance, e.Terms = r.Outcome, r.Error, 0, 0, nil
}

// lose notes a configuration that failed after it came to a time.
func (s *session) lose(f *finding) {
	s.Log.Error("a kernel fails", "config", f.eval.Config, "outcome", f.outcome, "error", f.fault)
	if f.outcome != store.Timeout {
		s.result.Wrong = append(s.result.Wrong, Wrong{f.config, f.outcome, f.fault})
	}
	s.fail(f.config, f.outcome, f.fault)
}

// verifyOne checks a configuration. An error is that of a run that cannot go on.
func (s *session) verifyOne(ctx context.Context, f *finding, known map[string]trial.Ran) error {
	r, ok := known[f.same]
	if !ok || f.same == "" {
		var err error
		if r, err = s.Trials.Run(ctx, pointOf(f.config), 0); err != nil {
			return err
		}
		known[f.same] = r
	}
	e := f.eval
	e.At, e.Run = time.Time{}, s.run.ID
	e.Seconds = maps.Clone(e.Seconds)
	if e.Seconds == nil {
		e.Seconds = map[string]float64{}
	}
	e.Seconds["verify"] = r.Seconds
	s.addSeconds("verify", r.Seconds)
	switch r.Outcome {
	case store.Correct:
		e.Outcome, e.Verified = r.Outcome, true
		f.eval = e
	case store.Predicted:
		f.fault = r.Error
		s.Log.Warn("a kernel could not be checked", "config", e.Config, "error", r.Error)
		return nil
	default:
		f.condemn(&e, &r)
	}
	return s.Store.Record(e)
}
