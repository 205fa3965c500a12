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
	"github.com/kgen-dev/kgen/ir/num"
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
	tb.Helper()
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
			require.Equal(t, math.Float32bits(float32(want)), binary.LittleEndian.Uint32(got[4*(row*n+col):]), "%d, %d", row, col)
		}
	}
}

// benchmarkMatmul reports thread instructions a second on one core.
func benchmarkMatmul(b *testing.B, checks string) {
	b.Helper()
	c, err := vm.ParseChecks(checks)
	require.NoError(b, err)
	run, _ := matmul(b, vm.Options{Workers: 1, Checks: c}, 128)
	var threads int64
	before := cpuTime()
	for b.Loop() {
		r := run()
		threads += r.Counters.ActiveLanes
	}
	b.ReportMetric(float64(threads)/(cpuTime()-before).Seconds()/1e6, "M-thread-instr/cpu-s")
}

func BenchmarkScalar(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkMatmul(b, "none") })
	b.Run("undefined", func(b *testing.B) {
		benchmarkMatmul(b, "uninitialised-global-read,uninitialised-shared-read,uninitialised-register-read")
	})
	b.Run("all", func(b *testing.B) { benchmarkMatmul(b, "all") })
}

// launcher loads a case of a 128 x 256 matrix product once and gives what
// launches its kernel with a longer inner dimension.
func launcher(tb testing.TB, file string, opt vm.Options, k int) func() *bench.Report {
	tb.Helper()
	c, err := bench.ReadCase(file)
	require.NoError(tb, err)
	dev, err := vm.New(opt)
	require.NoError(tb, err)
	ctx := context.Background()
	m, err := dev.Load(ctx, c.PTXFile, c.PTX)
	require.NoError(tb, err)
	cl := c.Launches[0]
	l := bench.Launch{Grid: cl.Grid, Block: cl.Block, SharedBytes: cl.SharedBytes}
	buffer := func(elements int) bench.Arg {
		b, err := dev.Alloc(int64(2*elements), 256)
		require.NoError(tb, err)
		data := make([]byte, 2*elements)
		for i := range elements {
			binary.LittleEndian.PutUint16(data[2*i:], num.F16FromF32(float32(i*7%11)-5))
		}
		require.NoError(tb, dev.Write(b, 0, data))
		return bench.Pointer(b)
	}
	l.Args = []bench.Arg{buffer(128 * k), buffer(256 * k), buffer(128 * 256), bench.I32(128), bench.I32(256), bench.I32(int32(k)), bench.U64(0), bench.U64(0)}
	return func() *bench.Report {
		r, err := dev.Launch(ctx, m, cl.Kernel, l)
		require.NoError(tb, err)
		require.Empty(tb, r.Faults)
		return r
	}
}

// BenchmarkTensor runs tensor-core kernels of another compiler on one core: without
// checks, with the default ones, and without but as tensor cores add.
func BenchmarkTensor(b *testing.B) {
	for _, name := range []string{"matmul_f16_sm80", "matmul_f16_sm90", "matmul_f16_sm100"} {
		for _, checks := range []string{"none", "default", "exact"} {
			b.Run(name+"/"+checks, func(b *testing.B) {
				opt := vm.Options{Workers: 1}
				list := checks
				if checks == "exact" {
					list, opt.Tensor = "none", vm.Fused
				}
				var err error
				opt.Checks, err = vm.ParseChecks(list)
				require.NoError(b, err)
				run := launcher(b, foreign+"/"+name+"/case.json", opt, 2048)
				var ops int64
				before := cpuTime()
				for b.Loop() {
					for _, t := range run().Counters.Tensor {
						ops += t.Operations
					}
				}
				b.ReportMetric(float64(ops)/(cpuTime()-before).Seconds()/1e9, "GFLOP/cpu-s")
			})
		}
	}
}

// BenchmarkFaults runs loops in which every iteration does the same misdeed,
// beside those that do the like without: a place that was reported costs a
// counter.
func BenchmarkFaults(b *testing.B) {
	for _, c := range []struct{ name, clean, faulty string }{
		{"global", "ld.global.u32 %x, [%g];", "ld.global.u32 %x, [%in0+4096];"},
		{"misaligned", "st.shared.u32 [%s], %x;", "st.shared.u32 [%s+1], %x;"},
		{"shared", "ld.shared.u32 %x, [%s];", "ld.shared.u32 %x, [%s+65536];"},
		{"local", "st.local.u32 [%l], %x;", "st.local.u32 [%l+4096], %x;"},
		{"constant", "st.global.u32 [%g], %x;", "st.global.u32 [%c], %x;"},
		{"race", "st.shared.u32 [%s], %t;", "st.shared.u32 [%s0], %t;"},
		{"global race", "st.global.u32 [%g], %t;", "st.global.u32 [%in0], %t;"},
		{"shared undefined", "ld.shared.u32 %y, [%s]; add.u32 %x, %y, 1; setp.eq.u32 %q, %x, 7;", "ld.shared.u32 %y, [%s+1024]; add.u32 %x, %y, 1; setp.eq.u32 %q, %x, 7; @%q add.u32 %x, %x, 1;"},
		{"global undefined", "ld.global.u32 %y, [%g]; add.u32 %x, %y, 1; setp.eq.u32 %q, %x, 7;", "ld.global.u32 %y, [%u]; add.u32 %x, %y, 1; setp.eq.u32 %q, %x, 7; @%q add.u32 %x, %x, 1;"},
		{"barrier", "bar.sync 1, 32;", "bar.sync 1, 31;"},
		{"shuffle", "shfl.sync.idx.b32 %y, %x, 0, 31, -1;", "@%half shfl.sync.idx.b32 %y, %x, 0, 31, -1;"},
		{"atomic", "atom.shared.add.u32 %y, [%s], 1;", "atom.shared.add.u32 %y, [%s+1], 1;"},
	} {
		for _, body := range []string{c.clean, c.faulty} {
			name := c.name + "/clean"
			if body == c.faulty {
				name = c.name + "/faulty"
			}
			b.Run(name, func(b *testing.B) {
				const rounds = 3000
				p := small{
					decls: ".shared .align 16 .b8 sm[4096]; .const .align 4 .b8 cc[64];",
					regs:  ".reg .b32 %x, %y, %s, %s0, %i; .reg .b64 %g, %c, %l, %u; .reg .pred %p, %q, %half;",
					body: ".local .align 4 .b8 lo[64]; mov.u32 %x, 0; mov.u32 %i, 0; mov.u32 %s0, sm; mad.lo.u32 %s, %t, 4, %s0; mad.wide.u32 %g, %t, 4, %in0; mov.u64 %c, cc; mov.u64 %l, lo; " +
						"mov.u64 %u, %in1; st.shared.u32 [%s], %x; setp.lt.u32 %half, %t, 16; bar.sync 0;\nL: " + body +
						" add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3000; @%p bra L;",
					block: 32,
					opt:   vm.Options{Workers: 1},
				}
				dev, err := vm.New(p.opt)
				require.NoError(b, err)
				ctx := context.Background()
				m, err := dev.Load(ctx, "small.ptx", []byte(p.text(2)))
				require.NoError(b, err)
				written, err := dev.Alloc(256, 256)
				require.NoError(b, err)
				require.NoError(b, dev.Write(written, 0, make([]byte, 256)))
				unwritten, err := dev.Alloc(256, 256)
				require.NoError(b, err)
				l := bench.Launch{Block: [3]uint32{p.block}, Args: []bench.Arg{bench.Pointer(written), bench.Pointer(unwritten)}}
				before := cpuTime()
				for b.Loop() {
					r, err := dev.Launch(ctx, m, "k", l)
					require.NoError(b, err)
					require.Equal(b, body == c.faulty, len(r.Faults) > 0, name)
				}
				b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N*rounds), "cpu-ns/round")
			})
		}
	}
}
