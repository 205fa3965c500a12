package tune

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

const (
	// mostData bounds the bytes of the problem whose blocks are sampled, of which the
	// virtual machine keeps a copy, in each process that checks, and mostSample the operations of what is run for a
	// tile: the blocks of its cluster, and both tiles of each if they go on to another.
	// A larger problem is halved until it fits.
	mostData   = 1 << 28
	mostSample = 1e9

	// sampled is how many blocks of the full size are checked.
	sampled = 2
)

// verifier is what programs are checked on: the virtual machine with all of an awkward
// small problem, and a few blocks of the full size.
type verifier struct {
	seed  uint64 // of the data and blocks
	err   error  // why nothing can be checked
	small *stage // nil where no small problem runs the same program
	full  *stage
}

// againSeed is how far the seed of second checks is from that of the first: each takes two.
const againSeed = 2

// check checks a configuration on the virtual machine, again over other data; the lock is
// held.
func (k *Kernel) check(ctx context.Context, c space.Config, again bool) (trial.Ran, error) {
	seed := k.Seed
	if again {
		seed += againSeed
	}
	if k.verifier == nil || k.verifier.seed != seed {
		k.verifier = &verifier{seed: seed}
		k.verifier.err = k.prepare(c)
	}
	err := k.verifier.err
	if err == nil {
		err = k.checkBoth(ctx, c)
	}
	var wrong wrongError
	switch {
	case ctx.Err() != nil:
		return trial.Ran{}, context.Cause(ctx)
	case err == nil:
		return trial.Ran{Outcome: store.Correct, Verified: true}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return trial.Ran{Outcome: store.Timeout, Error: "not checked within " + checkDeadline.String()}, nil
	case errors.As(err, &wrong):
		return trial.Ran{Outcome: wrong.outcome, Error: err.Error()}, nil
	}
	return trial.Ran{Outcome: store.Predicted, Error: "not checked: " + err.Error()}, nil
}

// prepare makes the virtual machine and the data, for configurations like one.
func (k *Kernel) prepare(c space.Config) error {
	v := k.verifier
	device, err := vm.New(vm.Options{GPU: k.GPU, Seed: v.seed})
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(v.seed, 2))
	small, err := shrink(k.Family, k.Problem, c, r)
	switch {
	case err == nil:
		if v.small, err = newStage(device, small, v.seed); err != nil {
			return err
		}
		k.Log.Info("small problem", "problem", small.Settings().String())
	case bytesOf(k.Problem) > mostData:
		return fmt.Errorf("no small problem to check on: %w", err)
	}
	p, err := k.lower(c)
	if err != nil {
		return err
	}
	full, err := halve(k.Family, k.Problem, c, func(q family.Problem) bool {
		plan, err := p.compiled.Plan(Arguments(q.Args()))
		return err == nil && bytesOf(q) <= mostData && q.Work().FLOPs*tilesOfSample(p.compiled, plan) <= mostSample*float64(plan.Steps[0].Rounds(1).Grid)
	})
	if err != nil {
		return fmt.Errorf("%d bytes of tensors: %w", bytesOf(k.Problem), err)
	}
	v.full, err = newStage(device, full, v.seed+1)
	return err
}

// tilesOfSample is how many tiles are computed where one is checked.
func tilesOfSample(c *codegen.Compiled, p *codegen.Plan) float64 {
	tiles := float64(max(1, c.Kernels[0].Cluster))
	if p.Steps[0].Persistent() {
		tiles *= RoundsOfCheck
	}
	return tiles
}

// checkBoth runs both texts of a configuration's program, the compiler's PTX and our own.
func (k *Kernel) checkBoth(ctx context.Context, c space.Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkDeadline)
	defer cancel()
	p, src, err := k.print(c)
	if err != nil {
		return err
	}
	compiled, err := k.text(ctx, c, p, src)
	if err != nil {
		return err
	}
	direct, err := p.compiled.PTX()
	if err != nil {
		return err
	}
	texts := []struct{ name, ptx string }{{"our PTX", direct}}
	if k.builder.nvrtc != nil {
		texts = append(texts, struct{ name, ptx string }{"NVRTC's PTX", string(compiled)})
	}
	v := k.verifier
	r := rand.New(rand.NewPCG(v.seed, 3))
	parts, err := v.full.problem.Parts(c, r, sampled)
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
