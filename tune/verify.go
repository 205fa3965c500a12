package tune

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// verify checks the best configurations, all but those the store knows as verified, and
// notes and records what it finds. It returns as many as are reported: the next ones
// stand in for those that fail, until as many fail as were to be reported. What compiles
// to the same code as another is not checked again. As many are checked beside each other
// as will be for certain, whatever comes of them, so that what is checked does not depend
// on which ends first.
func (s *session) verify(ctx context.Context, found []finding) ([]finding, error) {
	s.phase(Verify, min(s.Top, len(found)))
	var top []finding
	known := map[string]trial.Ran{} // by code and launch
	for failed := 0; len(found) > 0 && len(top) < s.Top && failed < s.Top; {
		n := min(len(found), s.Top-len(top), s.Top-failed)
		if err := s.checkAll(ctx, found[:n], known, len(top) == 0); err != nil {
			return nil, err
		}
		for i := range found[:n] {
			if f := &found[i]; f.outcome != "" {
				failed++
				s.lose(f)
			} else {
				top = append(top, *f)
			}
		}
		found = found[n:]
	}
	return top, nil
}

// checkAll checks configurations beside each other, but each code once: known is what came
// of those before. If the first of them leads and ends well, its second check gets in line
// behind the others: it needs other data, which whoever makes them keeps.
func (s *session) checkAll(ctx context.Context, found []finding, known map[string]trial.Ran, leads bool) error {
	var now, later []int // later: those whose code another has
	begun := map[string]bool{}
	for i := range found {
		f := &found[i]
		_, done := known[f.same]
		if f.toCheck() && f.same != "" && (done || begun[f.same]) {
			later = append(later, i)
			continue
		}
		begun[f.same] = begun[f.same] || f.toCheck()
		now = append(now, i)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, i := range now {
		wg.Go(func() {
			err := s.verifyOne(ctx, &found[i], known)
			if i == 0 && leads && err == nil {
				err = s.ahead(ctx, &found[i])
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for _, i := range later {
		r := known[found[i].same]
		r.Seconds = 0 // they are the other's
		if err := s.learn(&found[i], r); err != nil {
			return err
		}
	}
	return nil
}

// toCheck tells whether it is not known yet whether a configuration is right.
func (f *finding) toCheck() bool { return !f.eval.Verified && f.fault == "" }

// checked counts a configuration whose check came to an end.
func (s *session) checked(f *finding) {
	if f.outcome == "" {
		s.step(nil)
	}
}

// secondCheck is what came of the second check of a configuration.
type secondCheck struct {
	of  space.Config
	ran trial.Ran
}

// ahead makes the second check of a configuration, if it looks like the winner and was not
// checked twice before.
func (s *session) ahead(ctx context.Context, f *finding) error {
	if s.Timer != nil || s.second != nil || !f.eval.Verified || f.outcome != "" {
		return nil
	}
	_, found, err := s.Store.Lookup(s.again(f).Key)
	if err == nil && !found {
		_, err = s.runAgain(ctx, f)
	}
	return err
}

// again is the evaluation of a configuration's second check.
func (s *session) again(f *finding) store.Evaluation {
	e := f.eval
	e.At, e.Run, e.Program = time.Time{}, s.run.ID, store.Again(f.eval.Program)
	e.Key = s.run.Key(e.Program, e.Config)
	return e
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
		again := s.again(f)
		if old, found, err := s.Store.Lookup(again.Key); err != nil || found {
			s.addSeconds("verify", old.Seconds["verify"])
			return top, err
		}
		r, err := s.runAgain(ctx, f)
		if err != nil {
			return nil, err
		}
		again.Seconds = map[string]float64{"verify": r.Seconds}
		switch r.Outcome {
		case store.Correct:
			return top, s.record(f.config, again)
		case store.Predicted:
			s.Log.Warn("the winner could not be checked once more", "config", again.Config, "error", r.Error)
			return top, nil
		}
		e := f.eval
		e.At, e.Run = time.Time{}, s.run.ID
		f.condemn(&e, &r)
		if err := s.record(f.config, e); err != nil {
			return nil, err
		}
		s.lose(f)
		top = slices.Delete(top, i, i+1)
	}
	return top, nil
}

// runAgain is a second check, which may have been made already.
func (s *session) runAgain(ctx context.Context, f *finding) (trial.Ran, error) {
	if s.second != nil && s.second.of.Equal(f.config) {
		return s.second.ran, nil
	}
	r, err := s.Trials.Run(ctx, pointOf(f.config), trial.Again)
	if err == nil {
		s.second = &secondCheck{f.config, r}
		s.addSeconds("verify", r.Seconds)
	}
	return r, err
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

// verifyOne checks a configuration, unless that was done before. An error is that of a run
// that cannot go on.
func (s *session) verifyOne(ctx context.Context, f *finding, known map[string]trial.Ran) error {
	if !f.toCheck() {
		s.checked(f)
		return nil
	}
	r, err := s.Trials.Run(ctx, pointOf(f.config), 0)
	if err != nil {
		return err
	}
	s.mu.Lock()
	known[f.same] = r
	s.mu.Unlock()
	s.addSeconds("verify", r.Seconds)
	return s.learn(f, r)
}

// learn notes and records what the check of a configuration's code found.
func (s *session) learn(f *finding, r trial.Ran) error {
	e := f.eval
	e.At, e.Run = time.Time{}, s.run.ID
	if e.Seconds = maps.Clone(e.Seconds); e.Seconds == nil {
		e.Seconds = map[string]float64{}
	}
	if delete(e.Seconds, "verify"); r.Seconds > 0 {
		e.Seconds["verify"] = r.Seconds
	}
	switch r.Outcome {
	case store.Correct:
		e.Outcome, e.Verified = r.Outcome, true
		f.eval = e
	case store.Predicted:
		f.fault = r.Error
		s.Log.Warn("a kernel could not be checked", "config", e.Config, "error", r.Error)
		s.checked(f)
		return nil
	default:
		f.condemn(&e, &r)
	}
	s.checked(f)
	return s.record(f.config, e)
}
