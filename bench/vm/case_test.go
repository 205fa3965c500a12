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
func cases(t testing.TB) []string {
	t.Helper()
	dir := foreign
	if d := os.Getenv("KGEN_CASES"); d != "" {
		dir = d
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "case.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no cases in %s", dir)
	return files
}

// refused are the cases with instructions that the virtual machine does not
// have yet. It must say so when it loads them.
var refused = map[string]bool{}

func runCase(t testing.TB, file string, opt vm.Options) *bench.Result {
	t.Helper()
	c, err := bench.ReadCase(file)
	require.NoError(t, err)
	dev, err := vm.New(opt)
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	r, err := bench.RunCase(context.Background(), dev, c, bench.RunOptions{})
	require.NoError(t, err)
	return r
}

func TestForeignCases(t *testing.T) {
	for _, file := range cases(t) {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			c, err := bench.ReadCase(file)
			require.NoError(t, err)
			if refused[name] {
				dev, err := vm.New(vm.Options{})
				require.NoError(t, err)
				_, err = dev.Load(context.Background(), c.PTXFile, c.PTX)
				require.ErrorContains(t, err, "the virtual machine does not execute it")
				return
			}
			r := runCase(t, file, vm.Options{})
			for _, b := range r.Buffers {
				require.Zero(t, b.Mismatches, "argument %d: first %+v", b.Arg, b.First)
			}
			if c.Fault == "" {
				require.Empty(t, r.Faults)
				return
			}
			require.Empty(t, r.MissingFault)
			for _, f := range r.Faults {
				require.Equal(t, c.Fault, f.Class, f.Message)
			}
		})
	}
}
