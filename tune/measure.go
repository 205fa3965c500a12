package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/store"
)

const (
	warmUps = 3  // runs before any is timed
	timings = 20 // runs of which the median counts
)

// timingPolicy is that under which times of a device are recorded. A program's time is
// the sum of its launches' own, with whatever the runs before left in the caches.
var timingPolicy = fmt.Sprintf("median of %d, after %d", timings, warmUps)

// measure times the best configurations on the device that there may be, holds what it
// computed to the reference, and puts the fastest first. Those that go wrong there are
// left out, as wrong.
func (s *session) measure(ctx context.Context, found, top []finding) ([]finding, error) {
	if s.Device == nil {
		return top, nil
	}
	s.phase(Measure, len(top))
	run := *s.run
	run.Policy, run.Driver, run.Started = timingPolicy, s.Device.Name(), time.Time{}
	begun, err := s.Store.Begin(run)
	if err != nil {
		return nil, err
	}
	st, err := newStage(s.Device, s.Problem, s.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Device.Name(), err)
	}
	var right []finding
	for i := range top {
		f := top[i]
		us, err := s.timeOn(ctx, st, &f)
		var wrong wrongError
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &wrong):
			s.Log.Error("a kernel is wrong on the device", "config", f.eval.Config, "error", err)
			s.result.Wrong = append(s.result.Wrong, Wrong{f.config, wrong.outcome, err.Error()})
			s.fail(wrong.outcome)
			f.eval.Outcome, f.eval.Error, f.eval.Verified = wrong.outcome, err.Error(), false
		case err != nil:
			return nil, fmt.Errorf("configuration %q on %s: %w", f.config, s.Device.Name(), err)
		}
		f.eval.At, f.eval.Run, f.eval.Key = time.Time{}, begun.ID, begun.Key(f.eval.Program, f.eval.Config)
		f.eval.TimeUS, f.eval.Provenance, f.eval.Terms = us, bench.Measured, nil
		if err != nil {
			f.eval.Provenance = 0
		}
		if recorded := s.Store.Record(f.eval); recorded != nil {
			return nil, recorded
		}
		if err == nil {
			right = append(right, f)
			at := slices.IndexFunc(found, func(g finding) bool { return g.config.Equal(f.config) })
			found[at].eval = f.eval
		}
		s.step(nil)
	}
	slices.SortStableFunc(right, func(f, g finding) int { return cmp.Compare(f.eval.TimeUS, g.eval.TimeUS) })
	return right, nil
}

// TimeKernel times one configuration on the device of the options, holds what it computed
// there to the reference, and records nothing. IsWrong tells the error of a configuration
// that faults or computes something else.
func TimeKernel(ctx context.Context, o Options, c space.Config) (*roofline.Kernel, error) {
	s, _, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	k, err := PredictKernel(s.Problem, s.GPU, c)
	if err != nil {
		return nil, err
	}
	st, err := newStage(s.Device, s.Problem, s.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Device.Name(), err)
	}
	k.From = bench.Measured
	k.TimeUS, err = s.timeOn(ctx, st, &finding{config: c})
	if err != nil {
		return nil, fmt.Errorf("configuration %q on %s: %w", c, s.Device.Name(), err)
	}
	return k, nil
}

// IsWrong says whether an error is of a kernel that faults or computes something else.
func IsWrong(err error) bool {
	var w wrongError
	return errors.As(err, &w)
}

// timeOn is the median of a configuration's times on the device, in microseconds. A
// wrongError says that it faults there or computes something else.
func (s *session) timeOn(ctx context.Context, st *stage, f *finding) (us float64, err error) {
	p, src, err := s.print(f.config)
	if err != nil {
		return 0, err
	}
	b, err := s.build(ctx, p, src)
	if err != nil {
		return 0, err
	}
	parts, err := s.Problem.Parts(f.config, rand.New(rand.NewPCG(s.Seed, 3)), sampled)
	if err != nil {
		return 0, err
	}
	text := string(b.PTX)
	if text == "" { // there is no compiler
		if text, err = p.compiled.PTX(); err != nil {
			return 0, err
		}
	}
	times, err := st.time(ctx, []byte(text), p, parts)
	if err != nil {
		return 0, err
	}
	slices.Sort(times)
	return float64(times[len(times)/2]) / float64(time.Microsecond), nil
}

// time runs a whole program over and over and returns how long each run took after the
// first few; then it compares parts of the outputs.
func (s *stage) time(ctx context.Context, ptx []byte, p *program, parts []family.Part) ([]time.Duration, error) {
	m, err := s.device.Load(ctx, "kernel.ptx", ptx)
	if err != nil {
		return nil, err
	}
	defer s.device.Unload(m)
	memory, free, err := s.workspace(p.plan)
	if err != nil {
		return nil, err
	}
	defer free()
	for _, part := range parts {
		if err := s.poison(part); err != nil {
			return nil, err
		}
	}
	var times []time.Duration
	for i := range warmUps + timings {
		for _, n := range p.plan.Clear {
			if err := s.device.Write(memory[len(s.buffers)+n], 0, make([]byte, p.plan.Workspace[n])); err != nil {
				return nil, err
			}
		}
		reports, err := bench.RunPlan(ctx, s.device, m, p.plan, memory, nil)
		var failed *bench.KernelError
		if errors.As(err, &failed) {
			return nil, wrongError{err, store.Runtime}
		}
		if err != nil {
			return nil, err
		}
		var took time.Duration
		for _, r := range reports {
			took += r.Time
		}
		if i >= warmUps {
			times = append(times, took)
		}
	}
	for _, part := range parts {
		if err := s.compare(part); err != nil {
			return nil, err
		}
	}
	return times, nil
}
