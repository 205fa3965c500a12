package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
)

// mostRanked bounds how many configurations are lowered to estimate their times; a
// larger space is sampled evenly.
const mostRanked = 2048

// candidate is a configuration with its first estimate.
type candidate struct {
	config space.Config
	index  int     // in the order of enumeration
	us     float64 // with registers estimated; 0 if it cannot be
	err    error   // why

	source  string // digest of what is compiled, once it was printed
	program string // digest of the tile program of one with an err
}

// candidates enumerates the space, or an even sample of it with a seeded place in each
// stretch. The default configuration is among them.
func (s *session) candidates() []candidate {
	valid := s.result.Removed.Valid
	r := rand.New(rand.NewPCG(s.Seed, 1))
	var out []candidate
	hasDefault := s.fallback.Len() == 0
	add := func(c space.Config, index int) {
		out = append(out, candidate{config: c, index: index})
		hasDefault = hasDefault || c.Equal(s.fallback)
	}
	next, taken := int64(0), int64(0)
	if valid > mostRanked {
		next = r.Int64N(valid / mostRanked)
	}
	i := int64(0)
	for c := range s.space.All() {
		if i == next {
			add(c, int(i))
			taken++
			next++
			if valid > mostRanked {
				lo, hi := taken*valid/mostRanked, (taken+1)*valid/mostRanked
				next = lo + r.Int64N(max(1, hi-lo))
			}
		}
		i++
	}
	if !hasDefault {
		add(s.fallback, int(i))
	}
	return out
}

// rank estimates every candidate's time and sorts them, those without one last.
func (s *session) rank(ctx context.Context) ([]candidate, error) {
	all := s.candidates()
	s.phase(Rank, len(all))
	s.restored = s.restore(all)
	if !s.restored {
		start := time.Now()
		if err := s.estimate(ctx, all); err != nil {
			return nil, err
		}
		s.addSeconds("rank", time.Since(start).Seconds())
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if (a.err == nil) != (b.err == nil) {
			if a.err == nil {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.us, b.us), cmp.Compare(a.index, b.index))
	})
	for i := range all {
		if c := &all[i]; c.err != nil {
			s.Log.Debug("not estimated", "config", c.config.String(), "error", c.err)
			if err := s.recordFailed(c); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// estimate lowers every candidate and predicts its time without its registers.
func (s *session) estimate(ctx context.Context, all []candidate) error {
	return s.parallel(ctx, len(all), func(_ context.Context, i int) error {
		c := &all[i]
		p, err := s.lower(c.config)
		if err == nil {
			var pr *model.Prediction
			if pr, err = model.Predict(s.GPU, p.compiled, p.plan, s.inputs, nil); err == nil {
				c.us = pr.US
			}
		}
		c.err = err
		s.step(nil)
		return nil
	})
}

// recordFailed records a configuration that could not even be estimated, once.
func (s *session) recordFailed(c *candidate) error {
	outcome := outcomeOf(c.err)
	if c.program == "" {
		if prog, err := s.Problem.Program(c.config); err == nil {
			c.program = fmt.Sprintf("%x", prog.Hash())
		}
	}
	s.fail(c.config, outcome, c.err.Error())
	return s.recordOnce(store.Evaluation{
		Key: s.run.Key(c.program, c.config.String()), Program: c.program, Config: c.config.String(),
		Outcome: outcome, Error: c.err.Error(),
	})
}

// outcomeOf is how a configuration that cannot be lowered ends.
func outcomeOf(err error) store.Outcome {
	if errors.Is(err, codegen.ErrResources) {
		return store.Resources
	}
	return store.Compile
}

// choose puts n candidates first that are worth compiling: the default, three quarters
// by estimate, the rest spread over what is left, as the estimate knows no registers.
// The others follow by estimate, to stand in for those that fail.
func (s *session) choose(ranked []candidate, n int) []candidate {
	end := slices.IndexFunc(ranked, func(c candidate) bool { return c.err != nil })
	if end >= 0 {
		ranked = ranked[:end]
	}
	if n >= len(ranked) {
		return ranked
	}
	taken := make([]bool, len(ranked))
	var first []candidate
	take := func(i int) {
		if !taken[i] && len(first) < n {
			taken[i] = true
			first = append(first, ranked[i])
		}
	}
	best := n * 3 / 4
	for i := range best {
		take(i)
	}
	if i := slices.IndexFunc(ranked, func(c candidate) bool { return c.config.Equal(s.fallback) }); i >= 0 {
		take(i)
	}
	spread := n - len(first)
	for i := range spread {
		take(best + (len(ranked)-best)*(2*i+1)/(2*spread))
	}
	for i := range ranked {
		take(i)
	}
	for i, c := range ranked {
		if !taken[i] {
			first = append(first, c)
		}
	}
	return first
}

// parallel calls f for 0 to n-1 on the session's workers, in order of start. The first
// error ends it.
func (s *session) parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	_, err := inOrder(ctx, n, func() int { return s.Workers }, func() bool { return true }, f)
	return err
}

// beside is the same with as many at a time as Trials takes, as long as more says so, and
// tells how many were begun.
func (s *session) beside(ctx context.Context, n int, more func() bool, f func(ctx context.Context, i int) error) (begun int, err error) {
	slots := func() int { return s.Workers }
	if s.Slots != nil {
		slots = s.Slots
	}
	return inOrder(ctx, n, slots, more, f)
}

// slotsEvery is how often whoever waits looks whether there are more slots.
const slotsEvery = time.Second

// inOrder calls f for 0 to n-1 in this order, at most slots at a time and at least one, as
// long as more says so. The first error ends it.
func inOrder(ctx context.Context, n int, slots func() int, more func() bool, f func(ctx context.Context, i int) error) (begun int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{}, n)
	tick := time.NewTicker(slotsEvery)
	defer tick.Stop()
	for busy := 0; ; {
		if begun < n && ctx.Err() == nil && busy < max(1, slots()) && more() {
			i := begun
			begun++
			busy++
			go func() {
				defer func() { ended <- struct{}{} }()
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}()
			continue
		}
		if busy == 0 {
			return begun, context.Cause(ctx)
		}
		select {
		case <-ended:
			busy--
		case <-tick.C:
		}
	}
}
