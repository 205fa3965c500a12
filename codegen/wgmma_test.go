package codegen_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

// warpgroupSamples are problems whose products the warpgroup's instruction computes.
var warpgroupSamples = []struct {
	family   string
	flags    map[string]string
	settings []string
}{
	{"gemm", map[string]string{"m": "130", "n": "136", "k": "96", "dtype": "bf16"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3"}},
	{"gemm", map[string]string{"m": "120", "n": "200", "k": "72", "dtype": "f16", "layout": "nt", "bias": "true", "act": "gelu"}, []string{"BM=128", "BN=128", "BK=32", "warps=8", "stages=2"}},
	{"gemm", map[string]string{"m": "128", "n": "96", "k": "200", "dtype": "bf16", "layout": "tn", "out": "f32", "residual": "true"}, []string{"BM=128", "BN=48", "BK=16", "warps=4", "stages=4"}},
	{"gemm", map[string]string{"m": "72", "n": "184", "k": "264", "dtype": "f16", "layout": "tt"}, []string{"BM=64", "BN=176", "BK=128", "warps=4", "stages=1"}},
	{"gemm", map[string]string{"m": "200", "n": "264", "k": "160", "dtype": "bf16"}, []string{"BM=128", "BN=256", "BK=64", "warps=8", "stages=3"}},
	{"gemm", map[string]string{"m": "64", "n": "64", "k": "512", "dtype": "bf16"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3", "split=2"}},
	{"gemm", map[string]string{"m": "190", "n": "136", "k": "328", "dtype": "bf16"}, []string{"BM=64", "BN=128", "BK=64", "warps=4", "stages=3", "cluster=2", "group=8"}},
	{"gemm", map[string]string{"m": "300", "n": "200", "k": "160", "dtype": "f16", "layout": "tt"}, []string{"BM=128", "BN=64", "BK=32", "warps=8", "stages=2", "cluster=4", "group=4"}},
	{"gemm", map[string]string{"m": "320", "n": "72", "k": "512", "dtype": "bf16", "layout": "nt"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2", "split=2", "cluster=2", "group=4"}},
	{"gemm", map[string]string{"m": "136", "n": "120", "k": "200", "dtype": "tf32", "layout": "nt"}, []string{"BM=64", "BN=64", "BK=32", "warps=4", "stages=3"}},
	{"gemm", map[string]string{"m": "136", "n": "120", "k": "72", "dtype": "tf32", "layout": "tt", "bias": "true"}, []string{"BM=128", "BN=96", "BK=16", "warps=8", "stages=2"}},
	{"gemm", map[string]string{"m": "130", "n": "200", "k": "336", "dtype": "e4m3", "layout": "nt", "alpha": "0.37"}, []string{"BM=128", "BN=192", "BK=128", "warps=8", "stages=2"}},
	{"gemm", map[string]string{"m": "190", "n": "136", "k": "208", "dtype": "e5m2", "layout": "nt", "out": "f32"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3", "cluster=2", "group=8"}},
	{"gemm", map[string]string{"m": "200", "n": "136", "k": "160", "dtype": "bf16", "bias": "true", "act": "silu", "residual": "true"}, []string{"BM=192", "BN=128", "BK=64", "warps=12", "stages=3"}},
	{"gemm", map[string]string{"m": "200", "n": "200", "k": "160", "dtype": "bf16", "bias": "true", "out": "f32"}, []string{"BM=192", "BN=192", "BK=64", "warps=12", "stages=3"}},
	{"gemm", map[string]string{"m": "130", "n": "130", "k": "160", "dtype": "bf16", "bias": "true", "act": "silu", "residual": "true", "out": "f32"}, []string{"BM=128", "BN=128", "BK=64", "warps=4", "stages=3"}},
	{"gemm", map[string]string{"m": "392", "n": "264", "k": "160", "dtype": "f16", "layout": "tn", "out": "f32"}, []string{"BM=192", "BN=256", "BK=64", "warps=12", "stages=2", "cluster=2", "group=8"}},
	{"gemm", map[string]string{"m": "190", "n": "70", "k": "130", "dtype": "bf16", "layout": "tt"}, []string{"BM=192", "BN=64", "BK=64", "warps=12", "stages=1"}},
	{"gemm", map[string]string{"m": "193", "n": "136", "k": "208", "dtype": "e4m3", "layout": "nt", "out": "f16"}, []string{"BM=192", "BN=96", "BK=128", "warps=12", "stages=2", "copy=1"}},
	{"gemm", map[string]string{"m": "130", "n": "132", "k": "500", "dtype": "bf16", "out": "f32", "bias": "true", "residual": "true", "alpha": "0.37"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2", "split=4", "atomic=1"}},
	{"gemm", map[string]string{"m": "70", "n": "144", "k": "512", "dtype": "e4m3", "layout": "nt", "out": "f32"}, []string{"BM=64", "BN=128", "BK=128", "warps=4", "stages=2", "split=2", "atomic=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "200", "head-dim": "64", "causal": "true"}, []string{"BM=128", "BN=64", "warps=8", "stages=2"}},
	{"flashattn", map[string]string{"batch": "2", "heads": "1", "kv-heads": "1", "seq": "70", "seq-kv": "150", "head-dim": "128", "causal": "false", "dtype": "f16"}, []string{"BM=64", "BN=80", "warps=4", "stages=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "2", "seq": "129", "seq-kv": "129", "head-dim": "128", "causal": "true"}, []string{"BM=128", "BN=128", "warps=8", "stages=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "131", "seq-kv": "173", "head-dim": "256", "causal": "true"}, []string{"BM=128", "BN=80", "warps=8", "stages=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "67", "seq-kv": "90", "head-dim": "192", "causal": "true", "dtype": "f16"}, []string{"BM=64", "BN=80", "warps=4", "stages=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "290", "head-dim": "64", "causal": "true"}, []string{"BM=128", "BN=64", "warps=8", "stages=3", "overlap=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "100", "seq-kv": "350", "head-dim": "128", "causal": "true", "dtype": "f16"}, []string{"BM=128", "BN=96", "warps=8", "stages=2", "overlap=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "190", "seq-kv": "70", "head-dim": "128", "causal": "true", "dtype": "f16"}, []string{"BM=64", "BN=48", "warps=4", "stages=2", "overlap=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "140", "seq-kv": "260", "head-dim": "192", "head-dim-v": "128", "causal": "true"}, []string{"BM=128", "BN=112", "warps=8", "stages=2", "overlap=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "130", "seq-kv": "380", "head-dim": "128", "causal": "false"}, []string{"BM=128", "BN=176", "warps=8", "stages=2", "overlap=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "65", "seq-kv": "400", "head-dim": "256", "causal": "false"}, []string{"BM=64", "BN=80", "warps=4", "stages=2", "overlap=1"}},
	{"flashattn", map[string]string{"batch": "2", "heads": "4", "kv-heads": "2", "seq": "150", "seq-kv": "200", "head-dim": "64", "causal": "true", "dtype": "e4m3"}, []string{"BM=128", "BN=64", "warps=8", "stages=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "129", "seq-kv": "300", "head-dim": "128", "causal": "true", "dtype": "e4m3", "out": "f16"}, []string{"BM=128", "BN=128", "warps=8", "stages=2", "overlap=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "70", "seq-kv": "333", "head-dim": "256", "causal": "false", "dtype": "e5m2"}, []string{"BM=64", "BN=64", "warps=4", "stages=3", "overlap=1"}},
	{"flashattn", map[string]string{"batch": "2", "heads": "2", "kv-heads": "1", "seq": "140", "seq-kv": "150", "head-dim": "64", "causal": "true"}, []string{"BM=64", "BN=64", "warps=4", "stages=2", "order=2"}},
	{"gemm", map[string]string{"m": "130", "n": "132", "k": "100", "dtype": "bf16"}, []string{"BM=128", "BN=64", "BK=32", "warps=8", "stages=3"}},
	{"gemm", map[string]string{"m": "130", "n": "136", "k": "208", "dtype": "e4m3", "layout": "nt"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2", "copy=1"}},
	{"gemm", map[string]string{"m": "72", "n": "184", "k": "264", "dtype": "f16", "layout": "tt"}, []string{"BM=64", "BN=176", "BK=64", "warps=4", "stages=1", "copy=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "200", "head-dim": "64", "causal": "true"}, []string{"BM=128", "BN=64", "warps=8", "stages=2", "overlap=2", "copy=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "70", "seq-kv": "100", "head-dim": "128", "causal": "false", "dtype": "e4m3"}, []string{"BM=64", "BN=64", "warps=4", "stages=3", "overlap=1", "copy=1"}},
	{"gemm", map[string]string{"m": "130", "n": "208", "k": "336", "dtype": "e4m3", "alpha": "0.37"}, []string{"BM=128", "BN=192", "BK=128", "warps=8", "stages=2"}},
	{"gemm", map[string]string{"m": "144", "n": "112", "k": "200", "dtype": "e5m2", "layout": "tn", "out": "f32"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3"}},
	{"gemm", map[string]string{"m": "208", "n": "104", "k": "208", "dtype": "e4m3", "layout": "tt", "bias": "true", "act": "relu"}, []string{"BM=128", "BN=96", "BK=32", "warps=8", "stages=2"}},
	{"gemm", map[string]string{"m": "190", "n": "144", "k": "208", "dtype": "e4m3"}, []string{"BM=64", "BN=128", "BK=128", "warps=4", "stages=3", "cluster=2", "group=8"}},
	{"gemm", map[string]string{"m": "190", "n": "144", "k": "320", "dtype": "e5m2"}, []string{"BM=64", "BN=96", "BK=64", "warps=4", "stages=2", "split=2"}},
	{"gemm", map[string]string{"m": "130", "n": "144", "k": "112", "dtype": "e4m3"}, []string{"BM=128", "BN=64", "BK=64", "warps=8", "stages=3", "copy=1"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "66", "seq-kv": "230", "head-dim": "96", "head-dim-v": "160", "causal": "true", "dtype": "e4m3", "out": "f32"}, []string{"BM=64", "BN=96", "warps=4", "stages=2"}},
}

// warpgroupSample makes one of them.
func warpgroupSample(t *testing.T, i int) *sample {
	t.Helper()
	w := warpgroupSamples[i]
	return hopperSample(t, w.family, w.flags, w.settings, uint64(i))
}

// hopperSample makes a sample for Hopper of a problem and what its configuration has other
// than the default.
func hopperSample(t *testing.T, name string, flags map[string]string, settings []string, seed uint64) *sample {
	t.Helper()
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	f, err := kernels.Family(name)
	require.NoError(t, err)
	s := &sample{f: f, gpu: gpu}
	s.p, err = f.Problem(flags, gpu)
	require.NoError(t, err)
	b, err := s.p.Space(gpu)
	require.NoError(t, err)
	s.c, err = s.p.Default(gpu)
	require.NoError(t, err)
	s.c, err = b.Space().Override(s.c, settings)
	require.NoError(t, err)
	s.prog, err = s.p.Program(s.c)
	require.NoError(t, err)
	s.data, err = family.NewData(s.p.Args(), seed)
	require.NoError(t, err)
	return s
}

// TestWarpgroups holds products of warpgroups to their float64 reference four ways, with
// copies landing late and early.
func TestWarpgroups(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for i := range warpgroupSamples {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := warpgroupSample(t, i)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err, s.String())
			require.Equal(t, "sm_90a", c.Module.Arch, s.String())
			direct, err := c.PTX()
			require.NoError(t, err)
			require.Contains(t, direct, "wgmma.mma_async", s.String())
			require.NotContains(t, direct, "mma.sync", s.String())
			if byThreads := slices.Contains(warpgroupSamples[i].settings, "copy=1"); byThreads {
				require.NotContains(t, direct, ".bulk", s.String())
				require.Contains(t, direct, "cp.async.cg", s.String())
			} else if len(c.Kernels[0].Notes) == 0 {
				require.Contains(t, direct, ".bulk_group", s.String())
			}
			s.fourWays(t, cc, c, uint64(i))
		})
	}
}

// TestRandomWarpgroups does the same with random problems and configurations that lower
// to products of warpgroups.
func TestRandomWarpgroups(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	for _, name := range []string{"gemm", "flashattn"} {
		f, err := kernels.Family(name)
		require.NoError(t, err)
		for seed := range 3 * samples(2) / 2 {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 90))
				for range 500 {
					s := drawFor(t, f, gpu, r, seed)
					c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
					require.NoError(t, err, s.String())
					if c.Module.Arch == "sm_90a" {
						s.fourWays(t, cc, c, seed)
						return
					}
				}
				t.Fatal("no configuration lowers to products of warpgroups")
			})
		}
	}
}

// TestRandomClusters does the same with products whose blocks copy for each other.
func TestRandomClusters(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for seed := range samples(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 91))
			pick := func(words ...string) string { return words[r.IntN(len(words))] }
			size := func(most int) string { return fmt.Sprint(8 * (1 + r.IntN(most/8))) }
			blocks := 2 << r.IntN(2)
			dtype, layout := pick("bf16", "f16", "tf32", "e4m3", "e5m2"), pick("nn", "nt", "tn", "tt")
			if dtype != "bf16" && dtype != "f16" {
				layout = pick("nt", "tt") // B along K
			}
			if dtype == "e5m2" {
				layout = pick("nn", "tn") // transposed
			}
			flags := map[string]string{
				"m": size(640), "n": size(400), "k": fmt.Sprint(16 * (1 + r.IntN(19))), "dtype": dtype, "layout": layout,
				"act": pick("none", "relu", "gelu"), "bias": pick("true", "false"), "out": pick("same", "f32"), "residual": pick("true", "false"),
			}
			warps := pick("4", "8", "12")
			settings := []string{
				"BM=" + map[string]string{"4": "64", "8": "128", "12": "192"}[warps], "warps=" + warps, "BN=" + pick("64", "96", "128"), "BK=" + pick("32", "64"),
				"stages=" + pick("1", "2", "3"), "group=" + pick("1", "4", "8"), "split=" + pick("1", "2"), fmt.Sprintf("cluster=%d", blocks),
			}
			s := hopperSample(t, "gemm", flags, settings, seed)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err, s.String())
			if len(c.Kernels[0].Notes) == 0 { // else nothing can be divided
				require.Equal(t, blocks, c.Kernels[0].Cluster, s.String())
			}
			s.fourWays(t, cc, c, seed)
		})
	}
}

// TestRandomSmallAttention does the same with attention of 8-bit floats, whose values a role
// transposes where warpgroups multiply, and which threads copy now and then.
func TestRandomSmallAttention(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for seed := range samples(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 92))
			pick := func(words ...string) string { return words[r.IntN(len(words))] }
			flags := map[string]string{
				"batch": pick("1", "2"), "heads": pick("2", "4"), "kv-heads": pick("1", "2"), "seq": fmt.Sprint(1 + r.IntN(200)), "seq-kv": fmt.Sprint(1 + r.IntN(400)),
				"head-dim": pick("32", "64", "96", "128", "192", "256"), "head-dim-v": pick("32", "64", "128", "160"),
				"causal": pick("true", "false"), "dtype": pick("e4m3", "e5m2"), "out": pick("same", "f16", "f32"),
			}
			warps := pick("4", "8")
			settings := []string{
				"BM=" + map[string]string{"4": "64", "8": "128"}[warps], "warps=" + warps, "BN=" + pick("32", "64", "96"), "stages=" + pick("2", "3"),
				"overlap=" + pick("0", "1"), "portable=0", "copy=" + pick("0", "0", "1"),
			}
			s := hopperSample(t, "flashattn", flags, settings, seed)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err, s.String())
			require.Empty(t, c.Kernels[0].Notes)
			s.fourWays(t, cc, c, seed)
		})
	}
}

// TestSmallAttentionOfWarps is attention of 8-bit floats by mma.sync.
func TestSmallAttentionOfWarps(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	flags := map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "70", "seq-kv": "90", "head-dim": "48", "dtype": "e4m3"}
	s := hopperSample(t, "flashattn", flags, []string{"BM=64", "BN=32", "warps=4", "stages=2", "overlap=0", "portable=1"}, 1)
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
	require.NoError(t, err)
	require.Equal(t, "sm_90", c.Module.Arch)
	s.fourWays(t, cc, c, 1)
}

// fourWays holds the sample to its reference by the interpreter, as written and staged, by
// our PTX and by NVRTC's. Nothing may be suspicious either, fences between the proxies that
// hardware does without among it.
func (s *sample) fourWays(t *testing.T, cc *nvrtc.Compiler, c *codegen.Compiled, seed uint64) {
	t.Helper()
	staged := *s.prog
	staged.Kernels = c.Staged
	want, got := s.interpret(t, s.prog), s.interpret(t, &staged)
	interpreted := family.Data{}
	for name, x := range want {
		require.Equal(t, x.Data, got[name].Data, "%s: output %s", s, name)
		interpreted[name] = &family.Tensor{Arg: s.data[name].Arg, Bytes: x.Data}
	}
	s.right(t, "interpreter", interpreted)
	direct, err := c.PTX()
	require.NoError(t, err)
	list := "all"
	if s.gpu.Arch() != "sm_90a" {
		list = "all,-strict-proxy" // fragments are read of boxes, and an mbarrier alone gives these back
	}
	checks, err := vm.ParseChecks(list)
	require.NoError(t, err)
	for _, async := range []vm.Async{vm.Late, vm.Early, vm.Random} {
		s.right(t, "direct PTX", s.onDevice(t, c, direct, vm.Options{Async: async, Seed: seed, Checks: checks}))
	}
	cuda, err := c.CUDA()
	require.NoError(t, err)
	res, err := cc.Compile(context.Background(), nvrtc.Source{Name: "warpgroups.cu", Text: cuda}, nvrtc.Options{Arch: c.Module.Virtual(), Flags: []string{"--fmad=false"}})
	require.NoError(t, err, s.String())
	s.right(t, "NVRTC's PTX", s.onDevice(t, c, string(res.PTX), vm.Options{}))
}

// TestWarpgroupsAssemble holds that ptxas takes products of warpgroups, and keeps them
// asynchronous.
func TestWarpgroupsAssemble(t *testing.T) {
	tool := nvrtctest.Ptxas(t)
	for i := range warpgroupSamples {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := warpgroupSample(t, i)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
			require.NoError(t, err, s.String())
			text, err := c.PTX()
			require.NoError(t, err)
			r, err := tool.Assemble(context.Background(), []byte(text), c.Module.Arch)
			require.NoError(t, err)
			require.Empty(t, nvrtc.Serialised(r.Log))
		})
	}
}

// TestTensorMapsOfPlans holds what a plan says of tensor maps to the arguments: the
// contiguous dimension first, strides in bytes, and a stride that tensor maps allow where
// a dimension has one element and any stride would do.
func TestTensorMapsOfPlans(t *testing.T) {
	s := warpgroupSample(t, 0)
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err)
	maps := func(rows, stride int64) []*codegen.TensorMap {
		plan, err := c.Plan([]codegen.Argument{
			{Dims: []int64{rows, 96}, Strides: []int64{stride, 1}},
			{Dims: []int64{96, 136}, Strides: []int64{136, 1}},
			{Dims: []int64{rows, 136}, Strides: []int64{136, 1}},
		})
		require.NoError(t, err)
		var found []*codegen.TensorMap
		for _, a := range plan.Steps[0].Args {
			if a.Map != nil {
				require.Equal(t, 128, a.Bytes)
				found = append(found, a.Map)
			}
		}
		return found
	}
	got := maps(130, 104)
	require.Len(t, got, 3) // those of the store come first
	require.Equal(t, codegen.TensorMap{Elem: ir.BF16, Dims: []int64{96, 130}, Strides: []int64{208}, Box: []int{64, 64}, Swizzle: 128}, *got[1])
	require.Equal(t, codegen.TensorMap{Elem: ir.BF16, Dims: []int64{136, 96}, Strides: []int64{272}, Box: []int{64, 64}, Swizzle: 128}, *got[2])
	require.Equal(t, codegen.TensorMap{Elem: ir.BF16, Dims: []int64{136, 130}, Strides: []int64{272}, Box: []int{64, 16}, Swizzle: 128}, *got[0])
	require.Equal(t, []int64{16}, maps(1, 0)[1].Strides)
}

// TestNotesOnGeneralCopies: where rows start anywhere the general way serves, and the
// kernel says so; a portable kernel has nothing to say.
func TestNotesOnGeneralCopies(t *testing.T) {
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	f, err := kernels.Family("gemm")
	require.NoError(t, err)
	for _, test := range []struct {
		n, dtype string
		portable bool
		arch     string
		notes    []string
	}{
		{"4096", "bf16", false, "sm_90a", nil},
		{"4099", "bf16", false, "sm_90", []string{"mma.sync multiplies b, which no tensor map copies: a pointer to a multiple of 2 bytes: want one of 16"}},
		{"3900", "bf16", false, "sm_90a", []string{
			"cp.async copies b, which no tensor map copies: a pointer to a multiple of 8 bytes: want one of 16",
			"blocks have one tile each: threads copy",
			"clusters of 4 blocks are left out: blocks that differ in i copy nothing that is the same, or nothing that 4 blocks can divide",
		}},
		{"4096", "bf16", true, "sm_90", nil},
		{"4096", "tf32", false, "sm_90", []string{"mma.sync multiplies b, which no tensor map copies: lies along N: wgmma of f32 wants it along K"}},
		{"4096", "e4m3", false, "sm_90a", nil},
	} {
		p, err := f.Problem(map[string]string{"n": test.n, "dtype": test.dtype}, gpu)
		require.NoError(t, err)
		config, err := p.Default(gpu)
		require.NoError(t, err)
		prog, err := p.Program(config)
		require.NoError(t, err)
		c, err := codegen.Compile(prog, gpu, codegen.Options{Portable: test.portable})
		require.NoError(t, err)
		require.Equal(t, test.arch, c.Module.Arch)
		require.Equal(t, test.notes, c.Kernels[0].Notes)
	}
}

// TestNotesOnShapes: products that the warpgroup's instruction has no shape for are named,
// once each.
func TestNotesOnShapes(t *testing.T) {
	s := hopperSample(t, "flashattn", nil, []string{"BM=64", "BN=64", "warps=2", "overlap=0"}, 0)
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"mma.sync multiplies 64x64x128 by 2 warps: wgmma wants M a multiple of 64 for each four warps, N of 8 and K of 16",
		"mma.sync multiplies 64x128x64 by 2 warps: wgmma wants M a multiple of 64 for each four warps, N of 8 and K of 16",
	}, c.Kernels[0].Notes)
}
