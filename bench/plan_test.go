package bench_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
)

// single is a device that notes what it is to launch.
type single struct {
	bench.Device
	calls []string
}

func (d *single) Launch(_ context.Context, _ *bench.Module, kernel string, l bench.Launch) (*bench.Report, error) {
	d.calls = append(d.calls, fmt.Sprintf("%s early=%t", kernel, l.Early))
	return &bench.Report{Time: time.Second}, nil
}

// overlapper is one that launches several at once.
type overlapper struct{ single }

func (d *overlapper) LaunchAll(_ context.Context, _ *bench.Module, kernels []string, launches []bench.Launch) (*bench.Report, error) {
	var call []string
	for i, k := range kernels {
		call = append(call, fmt.Sprintf("%s early=%t", k, launches[i].Early))
	}
	d.calls = append(d.calls, strings.Join(call, ", "))
	return &bench.Report{Time: time.Minute}, nil
}

// Early steps are launched together with the one before them by a device that can, unless
// one of the two has no blocks.
func TestRunPlanLaunchesEarlySteps(t *testing.T) {
	plan := func(grids ...int64) *codegen.Plan {
		p := &codegen.Plan{}
		for i, grid := range grids {
			p.Steps = append(p.Steps, codegen.PlanStep{Kernel: string(rune('a' + i)), Grid: max(grid, -grid), Threads: 32, Early: grid < 0})
		}
		return p
	}
	for _, test := range []struct {
		plan  *codegen.Plan
		calls []string
		times []time.Duration
	}{
		{plan(1, -2, -3, 4), []string{"a early=false, b early=true, c early=true", "d early=false"}, []time.Duration{time.Minute, 0, 0, time.Second}},
		{plan(1, 2, -3), []string{"a early=false", "b early=false, c early=true"}, []time.Duration{time.Second, time.Minute, 0}},
		{plan(0, -3), []string{"b early=true"}, []time.Duration{0, time.Second}},
		{plan(1, 0, -3), []string{"a early=false", "c early=true"}, []time.Duration{time.Second, 0, time.Second}},
	} {
		d := &overlapper{}
		reports, err := bench.RunPlan(t.Context(), d, nil, test.plan, nil, nil)
		require.NoError(t, err)
		require.Equal(t, test.calls, d.calls)
		var times []time.Duration
		for _, r := range reports {
			times = append(times, r.Time)
		}
		require.Equal(t, test.times, times)

		one := &single{}
		reports, err = bench.RunPlan(t.Context(), one, nil, test.plan, nil, nil)
		require.NoError(t, err)
		require.Len(t, reports, len(test.plan.Steps))
		require.Equal(t, strings.Join(test.calls, ", "), strings.Join(one.calls, ", "))
	}
}
