package bench

import (
	"context"
	"time"
)

// Timer runs a case again and again on a device that measures.
type Timer struct{ run *caseRun }

// NewTimer loads a case's PTX and reserves its buffers. Errors are those of RunCase.
func NewTimer(ctx context.Context, dev Device, c *Case) (*Timer, error) {
	r, err := prepare(ctx, dev, c, RunOptions{})
	if err != nil {
		return nil, err
	}
	return &Timer{r}, nil
}

// Time fills the buffers anew, runs the launches, and returns how long these took
// together. A *KernelError says that a kernel ended its launch itself.
func (t *Timer) Time(ctx context.Context) (time.Duration, error) {
	t.run.ctx = ctx
	t.run.result = Result{}
	if err := t.run.fill(); err != nil {
		return 0, err
	}
	if err := t.run.launch(); err != nil {
		return 0, err
	}
	if f := t.run.result.Failure; f != nil {
		return 0, f
	}
	return time.Duration(t.run.result.TimeUS * float64(time.Microsecond)), nil
}

// Close frees what the timer holds.
func (t *Timer) Close() { t.run.release() }
