package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/explore"
)

// timingPolicy is that under which times of a device are recorded.
const timingPolicy = "one run, after one"

// measure times the best configurations, and the default one, on the device: in turns, each compared with the reference, the winner once more. The fastest come
// first. Those that go wrong there are left out.
func (s *session) measure(ctx context.Context, found, top []finding) ([]finding, error) {
	candidates := top
	if i := slices.IndexFunc(found, func(f finding) bool { return f.config.Equal(s.fallback) && f.outcome == "" }); i >= 0 {
		if !slices.ContainsFunc(top, func(f finding) bool { return f.config.Equal(s.fallback) }) {
			candidates = append(slices.Clip(top), found[i])
		}
	}
	s.phase(Measure, explore.DefaultSamples)
	run := *s.run
	run.Policy, run.Driver, run.CostModel, run.Started, run.ID = timingPolicy, s.Driver, "", time.Time{}, 0
	o := explore.Options{
		Bench: s.Timer, Measures: true, Store: s.Store, Run: run, Seed: s.Seed, Budget: s.Configs, Log: s.Log,
		Finalists: len(candidates), Progress: func(p explore.Progress) { s.at(p.Done, p.Total) },
	}
	trials := make([]explore.Trial, len(candidates))
	for i, f := range candidates {
		e := f.eval
		e.Terms, e.Seconds = nil, nil // of its prediction, and of what came before
		trials[i] = explore.Trial{Point: pointOf(f.config), Config: f.config, Evaluation: e}
	}
	r, err := explore.Turns(ctx, o, trials)
	if err != nil {
		return nil, err
	}
	s.addSeconds("measure", r.Seconds["run"])
	for _, t := range r.Lost {
		s.lose(&finding{config: t.Config, eval: t.Evaluation, outcome: t.Evaluation.Outcome, fault: t.Evaluation.Error})
	}
	var right []finding
	for _, t := range r.Best {
		i := slices.IndexFunc(found, func(f finding) bool { return f.config.Equal(t.Config) })
		found[i].eval, found[i].low, found[i].high = t.Evaluation, t.Low, t.High
		right = append(right, found[i])
	}
	return right[:min(s.Top, len(right))], nil
}

// TimeKernel times one configuration on a device, holds what it computed there to the
// reference, and records nothing. IsWrong tells the error of a configuration that faults
// or computes something else.
func TimeKernel(ctx context.Context, o Options, device bench.Device, c space.Config) (*roofline.Kernel, error) {
	of, err := PredictKernel(o.Problem, o.GPU, c)
	if err != nil {
		return nil, err
	}
	k, err := NewKernel(ctx, o, device)
	if err != nil {
		return nil, err
	}
	r, err := k.Run(ctx, pointOf(c), explore.DefaultSamples)
	if err != nil {
		return nil, err
	}
	if !r.Outcome.Timed() {
		return nil, fmt.Errorf("configuration %q on %s: %w", c, device.Name(), wrongError{errors.New(r.Error), r.Outcome})
	}
	slices.Sort(r.Samples)
	of.From, of.TimeUS = bench.Measured, r.Samples[len(r.Samples)/2]
	return of, nil
}

// IsWrong says whether an error is of a kernel that faults or computes something else.
func IsWrong(err error) bool {
	var w wrongError
	return errors.As(err, &w)
}
