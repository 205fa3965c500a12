package simt_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/simt/simttest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCleanGolden compares the sample kernels, as built and cleaned up, with
// testdata, and verifies them after every pass.
func TestCleanGolden(t *testing.T) {
	for _, m := range simttest.Modules() {
		k := m.Kernels[0]
		require.NoError(t, simt.Verify(k))
		text := k.String()
		for _, p := range simt.Passes {
			p.Run(k)
			require.NoError(t, simt.Verify(k), p.Name)
		}
		text += "\n; cleaned up\n" + k.String()
		path := filepath.Join("testdata", k.Name+".simt")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), text, "%s: run with -update if the change is wanted", path)
	}
}

// TestOperationsVerify verifies every operation's sample before and after the
// clean-up.
func TestOperationsVerify(t *testing.T) {
	for _, m := range simttest.Operations() {
		for _, k := range m.Kernels {
			require.NoError(t, simt.Verify(k), k.Name)
			simt.Clean(k)
			require.NoError(t, simt.Verify(k), k.Name)
		}
	}
}

// TestReduceAddressesChains checks that the sixteen row pointers of the copy
// loop became two, one a matrix.
func TestReduceAddressesChains(t *testing.T) {
	k := simttest.DoubleBuffer()
	simt.Clean(k)
	var loop *simt.Instr
	simt.Walk(k.Body, func(in *simt.Instr) {
		if in.Op == simt.OpFor {
			loop = in
		}
	})
	pointers := 0
	for _, p := range loop.Body.Params {
		if p.Type == simt.Ptr {
			pointers++
		}
	}
	require.Equal(t, 2, pointers, "%s", k)
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		simttest.DoubleBuffer()
	}
}

func BenchmarkClean(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		k := simttest.DoubleBuffer()
		b.StartTimer()
		simt.Clean(k)
	}
}

func BenchmarkAssignRegisters(b *testing.B) {
	k := simttest.DoubleBuffer()
	simt.Clean(k)
	b.ReportAllocs()
	for b.Loop() {
		simt.AssignRegisters(k, simt.ForPTX)
	}
}

func BenchmarkCount(b *testing.B) {
	c := simt.NewCounter(simttest.DoubleBuffer())
	for b.Loop() {
		_, err := c.Count(simt.Env{Params: []int64{0, 0, 0, 4096}})
		require.NoError(b, err)
	}
}
