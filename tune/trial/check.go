package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
)

// inReference is an error about the reference: where it is refused, or gets arguments that
// it does not take, the description is at fault.
func (k *Kernel) inReference(err error) error {
	err = fmt.Errorf("reference %s: %w", k.Spec.Reference.Kernel, err)
	if errors.As(err, new(*nvrtc.CompileError)) || errors.As(err, new(*bench.ArgumentsError)) {
		return mistake{err}
	}
	return err
}

// Check compiles a point and the reference, as far as the compiler takes the point, and
// compares their parameters with the arguments. Errors that are ErrMistake say what no
// configuration could be run with; what only the point is refused for is in Built. The
// device need not run anything.
func (k *Kernel) Check(ctx context.Context, point []int) (Built, error) {
	args, err := k.Spec.Buffers(k.Seed)
	if err != nil {
		return Built{}, mistake{err}
	}
	if k.Spec.Reference != nil {
		c, _, err := k.referenceCase(ctx, args, nil)
		if err != nil {
			return Built{}, err
		}
		if err := bench.CheckArguments(ctx, k.Device, c); err != nil {
			return Built{}, k.inReference(err)
		}
	}
	b, p, err := k.compile(ctx, point)
	if err != nil || p == nil { // which other points need not share
		return b, err
	}
	c, err := k.caseOf(point, p, args, nil)
	if err != nil {
		return b, mistake{err}
	}
	return b, k.ofArguments(point, bench.CheckArguments(ctx, k.Device, c))
}

// ofArguments makes a mistake of arguments that are not the kernel's; other errors stay.
func (k *Kernel) ofArguments(point []int, err error) error {
	if errors.As(err, new(*bench.ArgumentsError)) {
		return mistake{fmt.Errorf("configuration %s: %w", k.Spec.Space.At(point), err)}
	}
	return err
}
