package vm_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

func floats(n int, f func(i int) float32) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f(i)))
	}
	return b
}

// matmul launches testdata/tiled_matmul.ptx.
func matmul(tb testing.TB, opt vm.Options, n int) (run func() *bench.Report, out func() []byte) {
	src, err := os.ReadFile("testdata/tiled_matmul.ptx")
	require.NoError(tb, err)
	dev, err := vm.New(opt)
	require.NoError(tb, err)
	ctx := context.Background()
	m, err := dev.Load(ctx, "tiled_matmul.ptx", src)
	require.NoError(tb, err)
	var bufs [3]bench.Buffer
	for i := range bufs {
		bufs[i], err = dev.Alloc(int64(4*n*n), 256)
		require.NoError(tb, err)
		if i < 2 {
			require.NoError(tb, dev.Write(bufs[i], 0, floats(n*n, func(j int) float32 { return float32((j*7+i)%13) - 6 })))
		}
	}
	l := bench.Launch{
		Grid: [3]uint32{uint32(n / 32), uint32(n / 32)}, Block: [3]uint32{16, 16},
		Args: []bench.Arg{bench.Pointer(bufs[0]), bench.Pointer(bufs[1]), bench.Pointer(bufs[2]), bench.I32(int32(n)), bench.I32(int32(n)), bench.I32(int32(n))},
	}
	run = func() *bench.Report {
		r, err := dev.Launch(ctx, m, "tiled_matmul", l)
		require.NoError(tb, err)
		require.Empty(tb, r.Faults)
		return r
	}
	out = func() []byte {
		data := make([]byte, 4*n*n)
		require.NoError(tb, dev.Read(bufs[2], 0, data))
		return data
	}
	return run, out
}

func TestTiledMatmul(t *testing.T) {
	const n = 64
	run, out := matmul(t, vm.Options{}, n)
	run()
	got := out()
	at := func(i, which int) float64 { return float64((i*7+which)%13) - 6 }
	for row := range n {
		for col := range n {
			want := 0.0
			for k := range n {
				want += at(row*n+k, 0) * at(k*n+col, 1)
			}
			require.Equal(t, float32(want), float(binary.LittleEndian.Uint32(got[4*(row*n+col):])), "%d, %d", row, col)
		}
	}
}

// benchmarkMatmul reports thread instructions a second on one core.
func benchmarkMatmul(b *testing.B, checks string) {
	c, err := vm.ParseChecks(checks)
	require.NoError(b, err)
	run, _ := matmul(b, vm.Options{Workers: 1, Checks: c}, 128)
	var threads int64
	for b.Loop() {
		r := run()
		threads += r.Counters.Instructions.Total().Thread
	}
	b.ReportMetric(float64(threads)/b.Elapsed().Seconds()/1e6, "M-thread-instr/s")
}

func BenchmarkScalar(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkMatmul(b, "none") })
	b.Run("undefined", func(b *testing.B) {
		benchmarkMatmul(b, "uninitialised-global-read,uninitialised-shared-read,uninitialised-register-read")
	})
	b.Run("all", func(b *testing.B) { benchmarkMatmul(b, "all") })
}

// BenchmarkMma runs a tensor-core matrix product of another compiler.
func BenchmarkMma(b *testing.B) {
	for _, checks := range []string{"none", "all"} {
		b.Run(checks, func(b *testing.B) {
			c, err := vm.ParseChecks(checks)
			require.NoError(b, err)
			var ops int64
			for b.Loop() {
				r := runCase(b, foreign+"/matmul_f16_sm80/case.json", vm.Options{Workers: 1, Checks: c})
				for _, t := range r.Counters.Tensor {
					ops += t.Operations
				}
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
