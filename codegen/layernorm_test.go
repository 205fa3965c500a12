package codegen_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/num"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// dropout is the program of a mask alone: 1 where an element is kept.
const dropout = `kernel @mask(%%o: view<f32>[R, N], %%seed: i64, %%offset: i32, %%threshold: i32) {
  assume stride(%%o, 1) = 1
  over %%i: ceildiv(R, %[1]d), %%j: ceildiv(N, %[2]d)
  hints warps=%[3]d
  %%plane = const 0 : i32
  %%bm = const %[1]d : i32
  %%bn = const %[2]d : i32
  %%row = mul %%i, %%bm
  %%col = mul %%j, %%bn
  %%r = iota axis=0 : <%[1]dx%[2]dxi32>
  %%rb = splat %%row : <%[1]dx%[2]dxi32>
  %%rows = add %%r, %%rb
  %%c = iota axis=1 : <%[1]dx%[2]dxi32>
  %%cb = splat %%col : <%[1]dx%[2]dxi32>
  %%cols = add %%c, %%cb
  %%draw = random16 %%seed, %%offset, %%plane, %%rows, %%cols : <%[1]dx%[2]dxi32>
  %%t = splat %%threshold : <%[1]dx%[2]dxi32>
  %%keep = cmp ge %%draw, %%t
  %%one = const 1 : <%[1]dx%[2]dxf32>
  %%zero = const 0 : <%[1]dx%[2]dxf32>
  %%m = select %%keep, %%one, %%zero
  store %%o[%%row, %%col] = %%m
}
`

// TestDropoutMaskIsOne draws the mask of a matrix on the processor, by layernorm in every
// configuration of its space, and by a kernel of its own in tiles of many shapes: it is
// the same, for it depends on seed and place alone.
func TestDropoutMaskIsOne(t *testing.T) {
	const rows, cols, seed, p = 5, 777, 0x123456789abcdef, 0.3
	threshold := num.DropoutThreshold(p)
	var want [rows][cols]bool
	for i := range rows {
		for j := range cols {
			want[i][j] = uint32(num.Random16(seed, 0, 0, uint32(i), uint32(j))) >= threshold
		}
	}
	masked := func(t *testing.T, o *eval.Tensor) {
		for i := range rows {
			for j := range cols {
				if kept := o.Float(i*cols+j) != 0; kept != want[i][j] {
					t.Fatalf("row %d, column %d: kept is %t, want %t", i, j, kept, want[i][j])
				}
			}
		}
	}
	for _, name := range []string{"t4", "h100"} {
		gpu, err := target.Lookup(name)
		require.NoError(t, err)
		t.Run("layernorm/"+name, func(t *testing.T) {
			t.Parallel()
			f, err := kernels.Family("layernorm")
			require.NoError(t, err)
			problem, err := f.Problem(map[string]string{
				"rows": fmt.Sprint(rows), "cols": fmt.Sprint(cols), "dtype": "f32", "residual": "none", "weight": "none", "bias": "none",
				"stats": "false", "dropout": fmt.Sprint(p), "dropout-seed": fmt.Sprint(seed),
			}, gpu)
			require.NoError(t, err)
			bound, err := problem.Space(gpu)
			require.NoError(t, err)
			configs := slices.Collect(bound.All())
			require.Greater(t, len(configs), 20)
			for bn, tiles := range map[int]int{128: 7, 256: 4, 512: 2} { // of rows that are kept
				configs = append(configs, space.Of("BM", 512/bn, "BN", bn, "warps", 2, "passes", 2, "keep", tiles, "cluster", 1))
			}
			for cluster := 2; cluster <= 8 && gpu.CC.Major >= 9; cluster *= 2 { // and divided
				configs = append(configs, space.Of("BM", 2, "BN", 128, "warps", 2, "passes", 2, "keep", 8/cluster, "cluster", cluster))
			}
			for _, c := range configs {
				s := sampleOf(t, f, problem, c, gpu)
				for i := range rows * cols {
					s.data["x"].Set(1, i/cols, i%cols)
				}
				outs := s.runPTX(t)
				masked(t, outs["sum"])
			}
		})
		for _, tile := range [][3]int{{1, 128, 4}, {1, 1024, 1}, {2, 64, 2}, {4, 32, 1}, {8, 8, 1}, {16, 16, 4}, {32, 8, 8}, {5, 48, 1}} {
			t.Run(fmt.Sprintf("alone/%s/%dx%d", name, tile[0], tile[1]), func(t *testing.T) {
				t.Parallel()
				prog, err := ir.Parse("mask.tile", fmt.Appendf(nil, dropout, tile[0], tile[1], tile[2]))
				require.NoError(t, err)
				c, err := codegen.Compile(prog, gpu, codegen.Options{Verify: true})
				require.NoError(t, err)
				text, err := c.PTX()
				require.NoError(t, err)
				o := eval.NewTensor(ir.F32, rows, cols)
				for i := range rows * cols {
					o.SetFloat(i, math.NaN())
				}
				args := []eval.Arg{eval.View(o), eval.Int(seed), eval.Int(0), eval.Int(int64(threshold))}
				requireNoFaults(t, runOn(t, vm.Options{GPU: gpu}, c, text, args, 0))
				masked(t, o)
			})
		}
	}
}

// sampleOf is a problem with a configuration.
func sampleOf(t *testing.T, f *family.Family, p family.Problem, c space.Config, gpu *target.GPU) *sample {
	t.Helper()
	s := &sample{f: f, p: p, c: c, gpu: gpu}
	var err error
	s.prog, err = p.Program(c)
	require.NoError(t, err)
	s.data, err = family.NewData(p.Args(), 1)
	require.NoError(t, err)
	return s
}

// runPTX runs our PTX of the sample and returns the outputs.
func (s *sample) runPTX(t *testing.T) map[string]*eval.Tensor {
	t.Helper()
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err, s.String())
	text, err := c.PTX()
	require.NoError(t, err)
	args, outs := s.args()
	requireNoFaults(t, runOn(t, vm.Options{GPU: s.gpu}, c, text, args, 0))
	return outs
}

// TestRowLengths holds layernorm to its reference for rows from one element to the longest,
// such as nothing divides among them: in registers, in shared memory, by the blocks of a
// cluster, and in two passes over memory.
func TestRowLengths(t *testing.T) {
	f, err := kernels.Family("layernorm")
	require.NoError(t, err)
	type row struct {
		gpu                   string
		rows, cols            string
		passes, keep, cluster int // of the default; keep is 1 where rows are kept
	}
	lengths := []row{
		{"t4", "3", "1", 1, 0, 1},
		{"a100", "3", "3", 1, 0, 1},
		{"rtx5090", "2", "4099", 1, 0, 1},
		{"a100", "1", "33333", 2, 1, 1},
		{"h100", "1", "100003", 2, 1, 2},
		{"a100", "1", "262147", 2, 0, 1},
	}
	if os.Getenv("KGEN_FULL") != "" {
		lengths = append(lengths, row{"t4", "1", "1000003", 2, 0, 1}, row{"a100", "1", "1048576", 2, 0, 1}, row{"h100", "1", "1048573", 2, 0, 1})
	}
	for _, tt := range lengths {
		gpu, err := target.Lookup(tt.gpu)
		require.NoError(t, err)
		p, err := f.Problem(map[string]string{"rows": tt.rows, "cols": tt.cols}, gpu)
		require.NoError(t, err)
		config, err := p.Default(gpu)
		require.NoError(t, err)
		s := sampleOf(t, f, p, config, gpu)
		for name, want := range map[string]int{"passes": tt.passes, "keep": tt.keep, "cluster": tt.cluster} {
			n, _ := config.Get(name)
			if name == "keep" {
				n = min(n, 1)
			}
			require.Equal(t, want, n, "%s of %s", name, s)
		}
		s.right(t, "PTX", s.run(t))
	}
}

// run runs our PTX of the sample on the virtual machine.
func (s *sample) run(t *testing.T) family.Data {
	t.Helper()
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err, s.String())
	text, err := c.PTX()
	require.NoError(t, err)
	return s.onDevice(t, c, text, vm.Options{})
}

// TestVarianceFarFromZero normalises rows whose mean is a thousand times their deviation: a
// difference of squares, in f32, would leave nothing of the variance.
func TestVarianceFarFromZero(t *testing.T) {
	const cols, mean = 9000, 1000
	f, err := kernels.Family("layernorm")
	require.NoError(t, err)
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	p, err := f.Problem(map[string]string{"rows": "2", "cols": fmt.Sprint(cols), "dtype": "f32", "residual": "none", "dropout": "0"}, gpu)
	require.NoError(t, err)
	for _, config := range []space.Config{
		space.Of("BM", 1, "BN", 10240, "warps", 8, "passes", 1, "keep", 0, "cluster", 1),
		space.Of("BM", 1, "BN", 1024, "warps", 4, "passes", 2, "keep", 0, "cluster", 1),
		space.Of("BM", 1, "BN", 1024, "warps", 4, "passes", 2, "keep", 9, "cluster", 1),
		space.Of("BM", 1, "BN", 1024, "warps", 4, "passes", 2, "keep", 5, "cluster", 2),
	} {
		s := sampleOf(t, f, p, config, gpu)
		x := s.data["x"]
		for i := range 2 {
			for j := range cols {
				x.Set(x.At(i, j)+mean, i, j)
			}
		}
		s.right(t, "PTX", s.run(t))
	}
}

// TestLayerNormMovesTheLeast holds what layernorm moves to the formula: what it touches of
// memory is every argument once, and what a model of the L2 lets through to memory is no
// more than 2 % beside that, for rows kept in registers or in shared memory.
func TestLayerNormMovesTheLeast(t *testing.T) {
	f, err := kernels.Family("layernorm")
	require.NoError(t, err)
	kept := func(bn, warps, tiles, cluster int) space.Config {
		return space.Of("BM", 1, "BN", bn, "warps", warps, "passes", 2, "keep", tiles, "cluster", cluster)
	}
	type shape struct {
		gpu    string
		flags  map[string]string
		config space.Config // none: the default
	}
	shapes := []shape{
		{"a100", map[string]string{"rows": "48"}, space.Config{}},
		{"a100", map[string]string{"rows": "32", "norm": "rms", "residual": "f32", "weight": "f32", "bias": "none", "stats": "false", "dropout": "0"}, space.Config{}},
		{"a100", map[string]string{"rows": "32", "residual": "none", "write-residual": "false", "cols": "8192", "dtype": "f16"}, space.Config{}},
		{"a100", map[string]string{"rows": "24", "dtype": "f32", "cols": "1023"}, space.Config{}},
		{"a100", map[string]string{"rows": "4", "cols": "32768"}, space.Config{}},
		{"a100", map[string]string{"rows": "6", "cols": "40960"}, space.Config{}},
		{"h100", map[string]string{"rows": "6", "cols": "57336", "dtype": "f32", "norm": "rms"}, space.Config{}},
		{"rtx4090", map[string]string{"rows": "6", "cols": "49152", "residual": "none"}, space.Config{}},
		{"a100", map[string]string{"rows": "24", "cols": "8192"}, kept(2048, 4, 4, 1)},
		{"rtx4090", map[string]string{"rows": "12", "cols": "16001", "residual": "f32"}, kept(2048, 8, 8, 1)},
		{"t4", map[string]string{"rows": "12", "cols": "12288", "dtype": "f32"}, kept(1024, 8, 12, 1)},
		{"a100", map[string]string{"rows": "6", "cols": "32768", "dtype": "f32"}, kept(4096, 16, 8, 1)},
		{"h100", map[string]string{"rows": "4", "cols": "262144"}, space.Config{}}, // a cluster's shared memory holds a row
		{"h100", map[string]string{"rows": "2", "cols": "131072", "norm": "rms", "residual": "none", "dtype": "f32"}, space.Config{}},
		{"h100", map[string]string{"rows": "4", "cols": "65536"}, kept(4096, 8, 2, 8)},
		// Rows that begin within sectors and end within tiles.
		{"a100", map[string]string{"rows": "400", "cols": "127"}, space.Config{}},
		{"rtx5090", map[string]string{"rows": "33", "cols": "2049", "residual": "f32"}, space.Config{}},
		{"h100", map[string]string{"rows": "3", "cols": "65537"}, space.Config{}},
		{"rtx5090", map[string]string{"rows": "5", "cols": "24577", "dtype": "f32"}, kept(1024, 8, 7, 4)},
	}
	if os.Getenv("KGEN_FULL") != "" {
		shapes = append(shapes, []shape{
			{"t4", map[string]string{"rows": "100", "cols": "777"}, space.Config{}},
			{"h100", map[string]string{"rows": "17", "cols": "4099", "norm": "rms", "dtype": "f16"}, space.Config{}},
			{"a100", map[string]string{"rows": "13", "cols": "5001", "weight": "f32", "bias": "none"}, space.Config{}},
			{"rtx4090", map[string]string{"rows": "7", "cols": "10007", "dropout": "0.5"}, space.Config{}},
			{"a100", map[string]string{"rows": "3", "cols": "33333"}, space.Config{}},
			{"h100", map[string]string{"rows": "3", "cols": "54321", "write-residual": "false"}, space.Config{}},
			{"h100", map[string]string{"rows": "2", "cols": "100003", "residual": "none"}, space.Config{}},
			{"h100", map[string]string{"rows": "2", "cols": "200001", "dtype": "f16", "stats": "false"}, space.Config{}},
			{"b200", map[string]string{"rows": "3", "cols": "77777", "norm": "rms"}, space.Config{}},
		}...)
	}
	for _, tt := range shapes {
		gpu, err := target.Lookup(tt.gpu)
		require.NoError(t, err)
		p, err := f.Problem(tt.flags, gpu)
		require.NoError(t, err)
		if tt.config.Len() == 0 {
			tt.config, err = p.Default(gpu)
			require.NoError(t, err)
		}
		s := sampleOf(t, f, p, tt.config, gpu)
		n := s.counters(t)
		require.EqualValues(t, p.Work().Bytes, n.Global.UniqueRead+n.Global.UniqueWritten, s)
		require.InEpsilon(t, p.Work().Bytes, float64(n.L2.MemoryBytes()), 0.02, s)
	}
}

// counters runs our PTX of the sample and returns what the virtual machine counted.
func (s *sample) counters(t *testing.T) *bench.Counters {
	t.Helper()
	ctx := context.Background()
	compiled, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err)
	text, err := compiled.PTX()
	require.NoError(t, err)
	dev, err := vm.New(vm.Options{GPU: s.gpu})
	require.NoError(t, err)
	defer dev.Close()
	m, err := dev.Load(ctx, "kernel.ptx", []byte(text))
	require.NoError(t, err)
	args, _ := s.args()
	plan, err := compiled.Plan(planArguments(s.prog, args))
	require.NoError(t, err)
	var memory []bench.Buffer
	for _, a := range args {
		var b bench.Buffer
		if a.Tensor != nil {
			b, err = dev.Alloc(int64(len(a.Tensor.Data)), 0)
			require.NoError(t, err)
			require.NoError(t, dev.Write(b, 0, a.Tensor.Data))
		}
		memory = append(memory, b)
	}
	for _, n := range plan.Workspace {
		b, err := dev.Alloc(n, 0)
		require.NoError(t, err)
		memory = append(memory, b)
	}
	reports, err := bench.RunPlan(ctx, dev, m, plan, memory, nil)
	require.NoError(t, err)
	var all bench.Counters
	for _, r := range reports {
		requireNoFaults(t, r.Faults)
		all.Add(&r.Counters)
	}
	return &all
}
