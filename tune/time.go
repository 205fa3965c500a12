package tune

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// mostLoaded is how many programs a device keeps loaded: all that are timed in turns.
const mostLoaded = 16

// timer is a problem's data in the memory of a device that measures, and the programs
// that were loaded last.
type timer struct {
	*stage
	loaded map[string]*loadedProgram // by configuration
	recent []string                  // their keys, the oldest first
}

// loadedProgram is a program on a device.
type loadedProgram struct {
	program *program
	module  *bench.Module
	memory  []bench.Buffer
	parts   []family.Part // that are compared
	checked bool
	free    func()
}

// time runs a configuration on the device; the lock is held.
func (k *Kernel) time(ctx context.Context, c space.Config, samples int) (r trial.Ran, err error) {
	if k.timer == nil {
		s, err := newStage(k.device, k.Problem, k.Seed)
		if err != nil {
			return r, fmt.Errorf("%s: %w", k.device.Name(), err)
		}
		k.timer = &timer{stage: s, loaded: map[string]*loadedProgram{}}
	}
	p, err := k.load(ctx, c)
	if err == nil && (!p.checked || samples <= 0) {
		if err = k.timer.compareRun(ctx, p); err == nil {
			p.checked = true
		}
	}
	if err == nil && samples > 0 {
		r.Samples, err = k.timer.times(ctx, p, samples)
	}
	var wrong wrongError
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.As(err, &wrong):
		return trial.Ran{Outcome: wrong.outcome, Error: err.Error()}, nil
	case err != nil:
		return r, fmt.Errorf("configuration %q on %s: %w", c, k.device.Name(), err)
	}
	r.Outcome, r.Provenance, r.Verified = store.Correct, bench.Measured, true
	return r, nil
}

// load builds and loads a configuration's program, unless it is there.
func (k *Kernel) load(ctx context.Context, c space.Config) (*loadedProgram, error) {
	t, key := k.timer, c.String()
	if p := t.loaded[key]; p != nil {
		return p, nil
	}
	p, src, err := k.print(c)
	if err != nil {
		return nil, err
	}
	compiled, err := k.text(ctx, c, p, src)
	if err != nil {
		return nil, err
	}
	text := string(compiled)
	if text == "" { // there is no compiler
		if text, err = p.compiled.PTX(); err != nil {
			return nil, err
		}
	}
	parts, err := k.Problem.Parts(c, rand.New(rand.NewPCG(k.Seed, 3)), sampled)
	if err != nil {
		return nil, err
	}
	l := &loadedProgram{program: p, parts: parts}
	if l.module, err = t.device.Load(ctx, "kernel.ptx", []byte(text)); err != nil {
		return nil, err
	}
	if l.memory, l.free, err = t.workspace(p.plan); err != nil {
		t.device.Unload(l.module)
		return nil, err
	}
	if len(t.recent) == mostLoaded {
		old := t.loaded[t.recent[0]]
		old.free()
		t.device.Unload(old.module)
		delete(t.loaded, t.recent[0])
		t.recent = t.recent[1:]
	}
	t.loaded[key], t.recent = l, append(t.recent, key)
	return l, nil
}

// compareRun runs a program over poisoned outputs and compares parts of them. A wrongError
// says that it faults or computes something else.
func (t *timer) compareRun(ctx context.Context, p *loadedProgram) error {
	for _, part := range p.parts {
		if err := t.poison(part); err != nil {
			return err
		}
	}
	if _, err := t.run(ctx, p); err != nil {
		return err
	}
	for _, part := range p.parts {
		if err := t.compare(part); err != nil {
			return err
		}
	}
	return nil
}

// times are those of n runs of a program, microseconds, after one that is not counted.
func (t *timer) times(ctx context.Context, p *loadedProgram, n int) ([]float64, error) {
	var out []float64
	for i := range n + 1 {
		took, err := t.run(ctx, p)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, float64(took)/float64(time.Microsecond))
		}
	}
	return out, nil
}

// run runs a whole program: its time is the sum of its launches' own.
func (t *timer) run(ctx context.Context, p *loadedProgram) (took time.Duration, err error) {
	plan := p.program.plan
	for _, n := range plan.Clear {
		if err := t.device.Write(p.memory[len(t.buffers)+n], 0, make([]byte, plan.Workspace[n])); err != nil {
			return 0, err
		}
	}
	reports, err := bench.RunPlan(ctx, t.device, p.module, plan, p.memory, nil)
	var failed *bench.KernelError
	if errors.As(err, &failed) {
		return 0, wrongError{err, store.Runtime}
	}
	if err != nil {
		return 0, err
	}
	for _, r := range reports {
		took += r.Time
	}
	return took, nil
}
