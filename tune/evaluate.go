package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
)

// compileDeadline bounds the compilation of one configuration.
const compileDeadline = 2 * time.Minute

// MostSpill is how many bytes a thread may spill and reload before a configuration is
// dropped: a few registers kept aside cost little, a tile that does not fit costs more
// than any model of ours knows.
const MostSpill = 512

// finding is a configuration with its time.
type finding struct {
	config space.Config
	index  int // in the order of enumeration
	eval   store.Evaluation

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
	for enough := 0; enough < s.Configs && len(queue) > 0; {
		size := min(len(queue), s.Configs-enough)
		if s.Time > 0 {
			if time.Since(begun) >= s.Time && len(found) > 0 {
				break
			}
			size = min(size, s.Workers)
		}
		batch := queue[:size]
		queue = queue[len(batch):]
		got := make([]*finding, len(batch))
		counts := make([]bool, len(batch))
		err := s.parallel(ctx, len(batch), func(ctx context.Context, i int) (err error) {
			got[i], counts[i], err = s.one(ctx, &batch[i])
			return err
		})
		for _, c := range batch {
			printed[c.config.String()] = c.source
		}
		if err != nil {
			return nil, err
		}
		for i, f := range got {
			if f != nil {
				found = append(found, *f)
			}
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
	e, wrong, err := s.known(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if e.Outcome.Timed() {
		f = &finding{config: c.config, index: c.index, eval: e, fault: wrong.Error, outcome: wrong.Outcome}
	} else {
		s.fail(e.Outcome)
		s.Log.Debug("dropped", "config", e.Config, "outcome", e.Outcome, "error", e.Error)
	}
	s.step(func(p *Progress) {
		if e.Cubin != "" {
			p.Compiled++
			switch {
			case f != nil:
			case e.SpillBytes > MostSpill:
				s.result.Dropped.Spilled++
			default:
				s.result.Dropped.Unfit++
			}
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
func (s *session) known(ctx context.Context, c *candidate) (e, wrong store.Evaluation, err error) {
	if c.source != "" { // no need to lower it
		old, found, err := s.Store.Lookup(s.run.Key(c.source, c.config.String()))
		if err != nil || found && s.reusable(&old) {
			return old, wrong, err
		}
	}
	p, src, err := s.print(c.config)
	if err != nil {
		return e, wrong, err
	}
	c.source = src.hash
	key := s.run.Key(src.hash, c.config.String())
	old, found, err := s.Store.Lookup(key)
	if err != nil {
		return e, wrong, err
	}
	if found && s.reusable(&old) {
		return old, wrong, nil
	}
	e, err = s.fresh(ctx, c.config, p, src)
	if err != nil {
		return e, wrong, err
	}
	e.Key, e.Run = key, s.run.ID
	if found && e.Outcome.Timed() && !old.Outcome.Timed() {
		return e, old, nil
	}
	return e, wrong, s.Store.Record(e)
}

// reusable tells whether a stored evaluation says all that a run needs.
func (s *session) reusable(e *store.Evaluation) bool {
	return e.Outcome != store.Correctness && e.Outcome != store.Runtime && s.believable(e)
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

// print lowers a configuration that could be lowered before, and prints its source.
func (s *session) print(c space.Config) (*program, source, error) {
	p, err := s.lower(c)
	if err != nil {
		return nil, source{}, err
	}
	src, err := s.builder.source(p.compiled)
	if err != nil {
		return nil, source{}, fmt.Errorf("configuration %q: %w", c, err)
	}
	return p, src, nil
}

// fresh evaluates a configuration. The error is that of a run that cannot go on.
func (s *session) fresh(ctx context.Context, c space.Config, p *program, src source) (store.Evaluation, error) {
	e := store.Evaluation{Program: src.hash, Config: c.String()}
	b, err := s.build(ctx, p, src)
	switch {
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return dropped(e, store.Timeout, fmt.Errorf("not compiled within %s", compileDeadline)), nil
	case refused(err):
		return dropped(e, store.Compile, Locate(err, p.compiled)), nil
	case err != nil:
		return e, fmt.Errorf("configuration %q: %w", c, err)
	}
	if why := nvrtc.Serialised(b.Log); why != "" {
		return dropped(e, store.Compile, errors.New(why)), nil
	}
	kernels, err := s.resources(&e, p, b)
	if err != nil {
		return e, fmt.Errorf("configuration %q: %w", c, err)
	}
	prediction, err := model.Predict(s.GPU, p.compiled, p.plan, s.inputs, taken(kernels))
	if errors.Is(err, codegen.ErrResources) {
		return dropped(e, store.Resources, err), nil
	}
	if err != nil {
		return e, fmt.Errorf("configuration %q: %w", c, err)
	}
	s.describe(&e, prediction, kernels)
	if e.SpillBytes > MostSpill {
		return dropped(e, store.Resources, fmt.Errorf("%d bytes of spills a thread: want at most %d", e.SpillBytes, MostSpill)), nil
	}
	a, err := roofline.Assess(s.roofs, usefulWork(s.Problem, s.GPU, prediction.Work))
	if err != nil {
		return e, fmt.Errorf("configuration %q: %w", c, err)
	}
	e.Outcome, e.TimeUS, e.Provenance, e.Limits = store.Predicted, prediction.US, bench.Predicted, a.Limits()
	e.Terms = prediction.Parts()
	return e, nil
}

func dropped(e store.Evaluation, o store.Outcome, err error) store.Evaluation {
	e.Outcome, e.Error = o, err.Error()
	return e
}

// build compiles within the deadline.
func (s *session) build(ctx context.Context, p *program, src source) (*built, error) {
	ctx, cancel := context.WithTimeout(ctx, compileDeadline)
	defer cancel()
	return s.builder.build(ctx, src, p.compiled.Module.Arch)
}

// resources reads what the compiler gave each kernel; nil where there is none.
func (s *session) resources(e *store.Evaluation, p *program, b *built) (map[string]cubin.Kernel, error) {
	if len(b.Cubin) == 0 {
		return nil, nil
	}
	e.Cubin = digest(b.Cubin)
	kernels, err := b.resources()
	if err != nil {
		return nil, err
	}
	for _, k := range p.compiled.Kernels {
		if _, ok := kernels[k.Name]; !ok {
			return nil, fmt.Errorf("the cubin has no kernel %s", k.Name)
		}
	}
	return kernels, nil
}

// taken is what the model asks of compiled kernels.
func taken(kernels map[string]cubin.Kernel) map[string]model.Resources {
	out := map[string]model.Resources{}
	for name, k := range kernels {
		out[name] = model.Resources{Registers: k.Registers, Shared: k.SharedBytes, Spill: k.SpillStoreBytes + k.SpillLoadBytes}
	}
	return out
}

// describe notes the resources of the program's longest step.
func (s *session) describe(e *store.Evaluation, p *model.Prediction, kernels map[string]cubin.Kernel) {
	var longest model.Step
	for _, step := range p.Steps {
		if step.US > longest.US {
			longest = step
		}
		if step.Unknown > 0 {
			s.Log.Debug("decided by data", "config", e.Config, "kernel", step.Kernel, "decisions", step.Unknown)
		}
	}
	if !longest.Estimated {
		e.Registers = longest.Registers
	}
	k := kernels[longest.Kernel]
	e.SharedBytes, e.CTAsPerSM, e.SpillBytes = longest.Shared, longest.Occupancy.CTAs, k.SpillStoreBytes+k.SpillLoadBytes
	for _, u := range k.Units {
		if e.Instructions == nil {
			e.Instructions = map[string]int{}
		}
		e.Instructions[u.Op] = u.Count
	}
}

// best describes a finding as the result shows it.
func (s *session) best(f *finding) Best {
	e := &f.eval
	b := Best{
		Config: f.config, TimeUS: e.TimeUS, TFLOPS: s.Problem.Work().FLOPs / e.TimeUS / 1e6,
		Registers: e.Registers, SharedBytes: e.SharedBytes, SpillBytes: e.SpillBytes, CTAsPerSM: e.CTAsPerSM,
		Instructions: e.Instructions, Verified: e.Verified, Provenance: e.Provenance, Estimated: e.Registers == 0, Fault: f.fault, Limits: Limits{}, Terms: e.Terms,
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
