package codegen_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
)

// defaultProgram is a family's default problem and configuration on a GPU.
func defaultProgram(tb testing.TB, family, name string) (*ir.Program, *target.GPU) {
	tb.Helper()
	gpu, err := target.Lookup(name)
	require.NoError(tb, err)
	f, err := kernels.Family(family)
	require.NoError(tb, err)
	p, err := f.Problem(nil, gpu)
	require.NoError(tb, err)
	c, err := p.Default(gpu)
	require.NoError(tb, err)
	prog, err := p.Program(c)
	require.NoError(tb, err)
	return prog, gpu
}

// BenchmarkPTX lowers a tile program to PTX text, with the heap that kgen starts
// with (cmd/kgen/main.go) and with Go's own.
func BenchmarkPTX(b *testing.B) {
	heap := make([]byte, 64<<20)
	b.Run("kgen", benchmarkPTX)
	runtime.KeepAlive(heap)
	b.Run("library", benchmarkPTX)
}

func benchmarkPTX(b *testing.B) {
	for _, family := range []string{"gemm", "flashattn"} {
		b.Run(family, func(b *testing.B) {
			prog, gpu := defaultProgram(b, family, "a100")
			b.ReportAllocs()
			for b.Loop() {
				c, err := codegen.Compile(prog, gpu, codegen.Options{})
				require.NoError(b, err)
				_, err = c.PTX()
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkCUDA lowers a tile program to CUDA C text.
func BenchmarkCUDA(b *testing.B) {
	prog, gpu := defaultProgram(b, "flashattn", "a100")
	for b.Loop() {
		c, err := codegen.Compile(prog, gpu, codegen.Options{})
		require.NoError(b, err)
		_, err = c.CUDA()
		require.NoError(b, err)
	}
}
