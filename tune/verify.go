package tune

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/store"
)

const (
	// checkDeadline bounds the check of one configuration.
	checkDeadline = 5 * time.Minute

	// mostData bounds the bytes of the problem whose blocks are sampled, of which the
	// virtual machine keeps a copy, and mostBlock the operations of a block. A larger
	// problem is halved until it fits.
	mostData  = 1 << 29
	mostBlock = 1e9

	// sampled is how many blocks of the full size are checked.
	sampled = 2
)

// verifier checks programs on the virtual machine: all of an awkward small problem, and
// a few blocks of the full size.
type verifier struct {
	*session
	ready bool
	err   error  // why nothing can be checked
	small *stage // nil where no small problem runs the same program
	full  *stage
}

// verify checks the best configurations, all but those the store knows as verified, and
// notes and records what it finds. It returns as many as are reported: the next ones
// stand in for those that are wrong, until as many are wrong as were to be reported.
func (s *session) verify(ctx context.Context, found []finding) ([]finding, error) {
	s.phase(Verify, min(s.Top, len(found)))
	v := &verifier{session: s}
	var top []finding
	for i := range found {
		f := &found[i]
		if len(top) == s.Top || len(s.result.Wrong) == s.Top {
			break
		}
		if !f.eval.Verified && f.fault == "" {
			if err := v.one(ctx, f); err != nil {
				return nil, err
			}
		}
		if f.outcome == "" {
			top = append(top, *f)
			s.step(nil)
			continue
		}
		s.Log.Error("a kernel is wrong", "config", f.eval.Config, "error", f.fault)
		s.result.Wrong = append(s.result.Wrong, Wrong{f.config, f.outcome, f.fault})
		s.fail(f.outcome)
	}
	return top, nil
}

// one checks a configuration. An error is that of a run that cannot go on.
func (v *verifier) one(ctx context.Context, f *finding) error {
	if !v.ready {
		v.ready, v.err = true, v.prepare(f)
	}
	err := v.err
	if err == nil {
		err = v.check(ctx, f)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := f.eval
	e.At, e.Run = time.Time{}, v.run.ID
	var wrong wrongError
	switch {
	case err == nil:
		e.Outcome, e.Verified = store.Correct, true
		f.eval.Outcome, f.eval.Verified = e.Outcome, true
	case errors.As(err, &wrong):
		f.fault, f.outcome = err.Error(), wrong.outcome
		e.Outcome, e.Error, e.TimeUS, e.Provenance = f.outcome, f.fault, 0, 0
		e.Terms = nil
	default:
		f.fault = "not checked: " + err.Error()
		v.Log.Warn("a kernel could not be checked", "config", e.Config, "error", err)
		return nil
	}
	return v.Store.Record(e)
}

// prepare makes the virtual machine and the data.
func (v *verifier) prepare(f *finding) error {
	device, err := vm.New(vm.Options{GPU: v.GPU, Seed: v.Seed})
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(v.Seed, 2))
	small, err := shrink(v.Family, v.Problem, f.config, r)
	switch {
	case err == nil:
		if v.small, err = newStage(device, small, v.Seed); err != nil {
			return err
		}
		v.Log.Info("small problem", "problem", small.Settings().String())
	case bytesOf(v.Problem) > mostData:
		return fmt.Errorf("no small problem to check on: %w", err)
	}
	p, err := v.lower(f.config)
	if err != nil {
		return err
	}
	full, err := halve(v.Family, v.Problem, f.config, func(q family.Problem) bool {
		plan, err := p.compiled.Plan(Arguments(q.Args()))
		return err == nil && bytesOf(q) <= mostData && q.Work().FLOPs <= mostBlock*float64(plan.Steps[0].Grid)
	})
	if err != nil {
		return fmt.Errorf("%d bytes of tensors: %w", bytesOf(v.Problem), err)
	}
	v.full, err = newStage(device, full, v.Seed+1)
	return err
}

// check runs both texts of a configuration's program, the compiler's PTX and our own.
func (v *verifier) check(ctx context.Context, f *finding) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkDeadline, errors.New("not done within "+checkDeadline.String()))
	defer cancel()
	p, src, err := v.print(f.config)
	if err != nil {
		return err
	}
	b, err := v.build(ctx, p, src)
	if err != nil {
		return err
	}
	direct, err := p.compiled.PTX()
	if err != nil {
		return err
	}
	texts := []struct{ name, ptx string }{{"our PTX", direct}}
	if v.builder.nvrtc != nil {
		texts = append(texts, struct{ name, ptx string }{"NVRTC's PTX", string(b.PTX)})
	}
	r := rand.New(rand.NewPCG(v.Seed, 3))
	parts, err := v.full.problem.Parts(f.config, r, sampled)
	if err != nil {
		return err
	}
	for _, t := range texts {
		if v.small != nil {
			all := []family.Part{whole(v.small.problem)}
			if err := v.small.check(ctx, []byte(t.ptx), p.compiled, all); err != nil {
				return fmt.Errorf("%s on %s: %w", t.name, v.small.problem.Settings(), err)
			}
		}
		if err := v.full.check(ctx, []byte(t.ptx), p.compiled, parts); err != nil {
			return fmt.Errorf("%s on %s: %w", t.name, v.full.problem.Settings(), err)
		}
	}
	return nil
}
