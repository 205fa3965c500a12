package tune

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// fault is what becomes of a process that tries a configuration.
type fault int

const (
	none fault = iota
	crashed
	hung
	killed
)

func faultOf(c space.Config) fault {
	is := func(name string, v int) bool { got, _ := c.Get(name); return got == v }
	switch {
	case is("warps", 4) && is("stages", 4):
		return crashed
	case is("BM", 64) && is("BN", 64) && is("warps", 8) && is("stages", 4):
		return hung
	case is("stages", 3):
		return killed
	}
	return none
}

// faulty tries configurations, some of which end or stop the process.
type faulty struct{ *Kernel }

func (f faulty) fault(point []int) fault {
	c, err := f.config(point)
	if err != nil {
		panic(err)
	}
	return faultOf(c)
}

func (f faulty) Compile(ctx context.Context, point []int) (trial.Built, error) {
	switch f.fault(point) {
	case crashed:
		os.Exit(139)
	case hung:
		time.Sleep(time.Hour)
	}
	return f.Kernel.Compile(ctx, point)
}

func (f faulty) Run(ctx context.Context, point []int, samples int) (trial.Ran, error) {
	if f.fault(point) == killed {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			panic(err)
		}
		_ = self.Kill()
		time.Sleep(time.Hour)
	}
	return f.Kernel.Run(ctx, point, samples)
}

func serveFaulty(dir string) error {
	o, err := options(dir)
	if err != nil {
		return err
	}
	defer o.Store.Close()
	k, err := NewKernel(context.Background(), o, nil)
	if err != nil {
		return err
	}
	return trial.Serve(context.Background(), faulty{k}, os.Stdin, os.Stdout)
}

// A process that crashes, hangs or is killed ends its own configuration, in its class, and
// the rest comes out as it does in one process.
func TestProcessesThatFailEndAlone(t *testing.T) {
	o := testOptions(t, t.TempDir())
	o.Configs, o.Top = 100, 8
	alone := run(t, o)
	require.Zero(t, alone.Failed)

	other := testOptions(t, t.TempDir())
	other.Configs, other.Top = o.Configs, o.Top
	dir := t.TempDir()
	pool := &trial.Pool{
		Workers: 2, Deadlines: trial.Deadlines{Compile: 5 * time.Second},
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), faultyEnv+"="+dir)
			cmd.Stderr = os.Stderr
			return cmd
		},
	}
	t.Cleanup(pool.Close)
	other.Trials = pool
	r := run(t, other)
	require.NotEmpty(t, r.Best)
	require.Len(t, r.Causes, 3)
	for _, c := range r.Causes {
		want := map[fault]store.Outcome{crashed: store.Compile, hung: store.Timeout, killed: store.Runtime}[faultOf(c.Config)]
		require.Equal(t, want, c.Outcome, "%s: %s", c.Config, c.Error)
	}
	require.Equal(t, r.Failures[store.Runtime], len(r.Wrong))
	failed := 0
	for _, n := range r.Failures {
		failed += n
	}
	require.Equal(t, r.Failed, failed)
	var right []Best
	for _, b := range alone.Best {
		if faultOf(b.Config) == none {
			right = append(right, b)
		}
	}
	for i, b := range r.Best {
		require.Equal(t, none, faultOf(b.Config))
		require.True(t, b.Verified)
		if i < len(right) {
			require.Equal(t, right[i], b)
		}
	}
}

// doubting finds what is checked again first to be wrong.
type doubting struct {
	*Kernel
	again []string // configurations that were checked again
}

func (d *doubting) Run(ctx context.Context, point []int, samples int) (trial.Ran, error) {
	if samples == trial.Again {
		c, err := d.config(point)
		if err != nil {
			return trial.Ran{}, err
		}
		if d.again = append(d.again, c.String()); len(d.again) == 1 {
			return trial.Ran{Outcome: store.Correctness, Error: "other data"}, nil
		}
	}
	return d.Kernel.Run(ctx, point, samples)
}

// The winner is checked again over other data, once: one that is wrong there is named and
// left out, and the next is checked.
func TestWinnerIsCheckedAgain(t *testing.T) {
	o := testOptions(t, t.TempDir())
	o.Configs, o.Top = 100, 8
	k, err := NewKernel(t.Context(), o, nil)
	require.NoError(t, err)
	d := &doubting{Kernel: k}
	o.Trials = d
	for range 2 {
		r := run(t, o)
		require.Len(t, d.again, 2)
		require.Equal(t, d.again[1], r.Best[0].Config.String())
		require.True(t, r.Best[0].Verified)
		require.Len(t, r.Wrong, 1)
		require.Equal(t, d.again[0], r.Wrong[0].Config.String())
		require.Equal(t, store.Correctness, r.Wrong[0].Outcome)
		for _, b := range r.Best {
			require.NotEqual(t, d.again[0], b.Config.String())
		}
	}
}

// failing has programs that cannot be made, for some configurations or all.
type failing struct {
	family.Problem
	all bool
}

func (f failing) Program(c space.Config) (*ir.Program, error) {
	if stages, _ := c.Get("stages"); f.all || stages == 2 {
		return nil, errors.New("no such program")
	}
	return f.Problem.Program(c)
}

func TestFailuresAreCountedAndRecorded(t *testing.T) {
	o := testOptions(t, t.TempDir())
	good := o.Problem
	o.Problem = failing{good, false}
	r := run(t, o)
	require.Positive(t, r.Failed)
	require.Equal(t, map[store.Outcome]int{store.Compile: r.Failed}, r.Failures)
	require.Len(t, r.Causes, 1)
	require.Equal(t, r.Failed, r.Causes[0].Count)
	require.Contains(t, r.Causes[0].Error, "no such program")
	for _, b := range r.Best {
		require.True(t, b.Verified)
	}
	recorded := 0
	for _, e := range evaluations(t, o.Store) {
		if e.Outcome == store.Compile {
			require.Contains(t, e.Error, "no such program")
			recorded++
		}
	}
	require.Equal(t, r.Failed, recorded)

	o.Problem = failing{good, true}
	_, err := Run(context.Background(), o)
	require.ErrorIs(t, err, ErrNothing)
	require.ErrorContains(t, err, "no such program")
}
