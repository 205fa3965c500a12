package tune

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/store"
)

// clocked is a virtual machine that says how long launches took: the later a module was
// loaded, the less, but for its first launch. It runs a module when it is compared, not
// when it is timed, and those that it spoils not at all.
type clocked struct {
	bench.Device
	ran   map[int]int
	spoil func(n int) bool
}

// turns are the launches of a module that is timed: each time follows one that is not
// counted.
const turns = 2 * explore.DefaultSamples

func (d *clocked) Name() string                 { return "clocked" }
func (d *clocked) Provenance() bench.Provenance { return bench.Measured }

func (d *clocked) Launch(ctx context.Context, m *bench.Module, kernel string, l bench.Launch) (*bench.Report, error) {
	d.ran[m.ID]++
	r := &bench.Report{Time: time.Duration(1000-100*m.ID) * time.Microsecond}
	if d.ran[m.ID] == 1 {
		r.Time = time.Second
	}
	if timed := d.ran[m.ID] > 1 && d.ran[m.ID] <= 1+turns; timed || d.spoil(m.ID) {
		return r, nil
	}
	_, err := d.Device.Launch(ctx, m, kernel, l)
	return r, err
}

func TestMeasure(t *testing.T) {
	o, err := options(t.TempDir())
	require.NoError(t, err)
	defer o.Store.Close()
	o.Problem = unsplit{o.Problem.(few)}
	machine, err := vm.New(vm.Options{GPU: o.GPU})
	require.NoError(t, err)
	defer machine.Close()
	d := &clocked{Device: machine, ran: map[int]int{}, spoil: func(n int) bool { return n == 2 }}
	timer, err := NewKernel(t.Context(), o, d)
	require.NoError(t, err)
	o.Timer, o.Driver = timer, d.Name()
	r, err := Run(t.Context(), o)
	require.NoError(t, err)

	// Of three the second computed nothing, and the third was faster than the first.
	require.Len(t, r.Best, 2)
	require.Len(t, r.Wrong, 1)
	require.Equal(t, store.Correctness, r.Wrong[0].Outcome)
	for i, us := range []float64{700, 900} {
		require.Equal(t, us, r.Best[i].TimeUS)
		require.Equal(t, bench.Measured, r.Best[i].Provenance)
		require.True(t, r.Best[i].Verified)
	}
	for _, b := range r.Best {
		require.NotNil(t, b.LowUS)
	}
	require.Equal(t, map[int]int{1: 1 + turns, 2: 1, 3: 1 + turns + 1}, d.ran, "the winner is compared once more")

	runs, err := o.Store.Runs()
	require.NoError(t, err)
	at := slices.IndexFunc(runs, func(r store.Run) bool { return r.Driver == "clocked" })
	require.GreaterOrEqual(t, at, 0)
	require.Contains(t, runs[at].Policy, timingPolicy)
	best, err := o.Store.Best(&runs[at], math.MaxInt)
	require.NoError(t, err)
	require.Len(t, best, 2, "single samples are none of the best")
	require.Equal(t, r.Best[0].Config.String(), best[0].Config)
	all, err := o.Store.Evaluations(runs[at].ID)
	require.NoError(t, err)
	require.Len(t, all, 2*(explore.DefaultSamples+1)+1+1) // the winner checked again

	// What is recorded is neither timed nor compared again.
	clear(d.ran)
	again, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, r.Best[0].TimeUS, again.Best[0].TimeUS)
	require.Empty(t, d.ran)
}

// unsplit is a product in one launch.
type unsplit struct{ few }

func (unsplit) Space(gpu *target.GPU) (*space.Bound, error) {
	s := space.Space{
		Params: []space.Param{
			{Name: "BM", Values: []int{32, 64}}, {Name: "BN", Values: []int{64}}, {Name: "BK", Values: []int{32}},
			{Name: "warps", Values: []int{4}}, {Name: "stages", Values: []int{2, 3}}, {Name: "group", Values: []int{1}}, {Name: "split", Values: []int{1}}, {Name: "cluster", Values: []int{1}}, {Name: "persistent", Values: []int{0}}, {Name: "hilbert", Values: []int{0}}, {Name: "portable", Values: []int{0}}, {Name: "copy", Values: []int{0}}, {Name: "atomic", Values: []int{0}},
		},
	}
	return s.Bind(family.Env(gpu))
}
