package tune

import (
	"context"
	"errors"
	"fmt"

	"github.com/kgen-dev/kgen/kernels/space"
)

// ErrDropped says that a configuration comes to no time.
var ErrDropped = errors.New("dropped")

// Explain compiles one configuration and predicts its time, and records nothing: the
// terms of the result's time say where it goes. A configuration that comes to nothing is
// an error, which says why.
func Explain(ctx context.Context, o Options, c space.Config) (*Best, error) {
	s, _, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	b, err := s.Trials.Compile(ctx, pointOf(c))
	if err != nil {
		return nil, err
	}
	e := evaluationOf(&b)
	if !e.Outcome.Timed() {
		return nil, fmt.Errorf("configuration %q: %w: %s: %s", c, ErrDropped, e.Outcome, e.Error)
	}
	best := s.best(&finding{config: c, eval: e})
	return &best, nil
}
