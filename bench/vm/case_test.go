package vm_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

const foreign = "../../testdata/ptx/foreign"

// cases lists the folders of cases that were made by other compilers.
func cases(tb testing.TB) []string {
	tb.Helper()
	dir := foreign
	if d := os.Getenv("KGEN_CASES"); d != "" {
		dir = d
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "case.json"))
	require.NoError(tb, err)
	require.NotEmpty(tb, files, "no cases in %s", dir)
	return files
}

func runCase(tb testing.TB, file string, opt vm.Options) *bench.Result {
	tb.Helper()
	c, err := bench.ReadCase(file)
	require.NoError(tb, err)
	dev, err := vm.New(opt)
	require.NoError(tb, err)
	defer func() { require.NoError(tb, dev.Close()) }()
	r, err := bench.RunCase(context.Background(), dev, c, bench.RunOptions{})
	require.NoError(tb, err)
	return r
}

func TestForeignCases(t *testing.T) {
	for _, file := range cases(t) {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			c, err := bench.ReadCase(file)
			require.NoError(t, err)
			for _, opt := range timings {
				r := runCase(t, file, opt)
				for _, b := range r.Buffers {
					require.Zero(t, b.Mismatches, "%+v: argument %d: first %+v", opt, b.Arg, b.First)
				}
				if c.Fault == "" {
					require.Empty(t, r.Faults, "%+v", opt)
					continue
				}
				require.Empty(t, r.MissingFault, "%+v", opt)
				for _, f := range r.Faults {
					require.Equal(t, c.Fault, f.Class, "%+v: %s", opt, f.Message)
				}
			}
		})
	}
}

// timings are schedules under which a right program does the same, and a wrong
// one is found out.
var timings = []vm.Options{
	{},
	{Async: vm.Early, Tensor: vm.Fused},
	{Schedule: vm.Shuffle, Async: vm.Random, Seed: 1},
	{Schedule: vm.Shuffle, Async: vm.Random, Seed: 2, Workers: 1},
}

// TestWorkers: the number of workers changes nothing, not even what is
// reported of a wrong program.
func TestWorkers(t *testing.T) {
	for _, name := range []string{"histogram_atomic_sm80", "cluster_sum_f32_sm90", "global_race_between_blocks", "softmax_f32_sm80", "uninit_global", "tma_copy_f32_sm90"} {
		file := filepath.Join(foreign, name, "case.json")
		one := runCase(t, file, vm.Options{Workers: 1})
		for _, n := range []int{2, 5} {
			many := runCase(t, file, vm.Options{Workers: n})
			require.Equal(t, one.Counters, many.Counters, name)
			require.Equal(t, one.Faults, many.Faults, name)
		}
	}
}
