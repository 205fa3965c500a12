package codegen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
)

// strictly are all checks, with the fences that hardware does without.
func strictly(t *testing.T) vm.Checks {
	t.Helper()
	c, err := vm.ParseChecks("+strict-proxy")
	require.NoError(t, err)
	return c
}

// prologueSamples are problems with which a prologue is tried: both majors, elements of each
// width, stores to a workspace, clusters, dimensions of one element, warpgroups in turns.
var prologueSamples = []struct {
	family   string
	flags    map[string]string
	settings []string
}{
	{"gemm", map[string]string{"m": "64", "n": "64", "k": "512", "dtype": "bf16"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3", "split=2"}},
	{"gemm", map[string]string{"m": "300", "n": "200", "k": "160", "dtype": "f16", "layout": "tt"}, []string{"BM=128", "BN=64", "BK=32", "warps=8", "stages=2", "cluster=4", "group=4"}},
	{"gemm", map[string]string{"m": "1", "n": "136", "k": "328", "dtype": "tf32", "layout": "nt"}, []string{"BM=64", "BN=64", "BK=32", "warps=4", "stages=2"}},
	{"gemm", map[string]string{"m": "190", "n": "264", "k": "208", "dtype": "e4m3", "layout": "nt"}, []string{"BM=64", "BN=256", "BK=128", "warps=4", "stages=3", "persistent=1"}},
	{"gemm", map[string]string{"m": "190", "n": "264", "k": "136", "dtype": "bf16"}, []string{"BM=128", "BN=128", "BK=64", "warps=4", "stages=3", "persistent=2"}},
	{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "200", "head-dim": "64", "causal": "true"}, []string{"BM=128", "BN=64", "warps=8", "stages=2"}},
}

// TestPrologue: maps that a kernel makes on the GPU copy what maps of parameters do, four
// ways.
func TestPrologue(t *testing.T) {
	cc, tool := nvrtctest.Compiler(t), nvrtctest.Ptxas(t)
	for i, p := range prologueSamples {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := hopperSample(t, p.family, p.flags, p.settings, uint64(i))
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true, Prologue: true})
			require.NoError(t, err, s.String())
			require.False(t, c.TensorMaps())
			plan, err := c.Plan(s.arguments())
			require.NoError(t, err)
			require.Equal(t, 1, plan.Prologue)
			direct, err := c.PTX()
			require.NoError(t, err)
			require.NotContains(t, direct, ".b8 "+c.Kernels[0].Name+"_", s.String())
			cuda, err := c.CUDA()
			require.NoError(t, err)
			res, err := cc.Compile(t.Context(), nvrtc.Source{Name: "prologue.cu", Text: cuda}, nvrtc.Options{Arch: c.Module.Virtual(), Flags: []string{"--fmad=false"}})
			require.NoError(t, err, cuda)
			for name, text := range map[string]string{"direct PTX": direct, "NVRTC's PTX": string(res.PTX)} {
				_, err = tool.Assemble(t.Context(), []byte(text), c.Module.Arch)
				require.NoError(t, err)
				s.right(t, name, s.onDevice(t, c, text, vm.Options{Checks: strictly(t)}))
			}
		})
	}
}

// TestPrologueUnfenced: without the fence the maps are none yet to the copies, and the
// virtual machine says so.
func TestPrologueUnfenced(t *testing.T) {
	s := warpgroupSample(t, 0)
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Prologue: true})
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "fence.proxy.tensormap") {
			lines = append(lines, line)
		}
	}
	args, _ := s.args()
	faults := runOn(t, vm.Options{GPU: s.gpu}, c, strings.Join(lines, ""), args, 0)
	require.NotEmpty(t, faults)
	for _, f := range faults {
		require.Equal(t, bench.MissingProxyFence, f.Class, f.Message)
	}
}

// TestPrologueAssembles: later GPUs have the instructions too, each under its own name.
func TestPrologueAssembles(t *testing.T) {
	tool := nvrtctest.Ptxas(t)
	for name, arch := range map[string]string{"b200": "sm_100a", "rtx5090": "sm_120a"} {
		gpu, err := target.Lookup(name)
		require.NoError(t, err)
		s := hopperSample(t, "gemm", nil, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2", "cluster=1"}, 0)
		c, err := codegen.Compile(s.prog, gpu, codegen.Options{Verify: true, Prologue: true})
		require.NoError(t, err)
		require.Equal(t, arch, c.Module.Arch)
		text, err := c.PTX()
		require.NoError(t, err)
		_, err = tool.Assemble(t.Context(), []byte(text), arch)
		require.NoError(t, err)
	}
}

// TestPrologueOnlyWithMaps: what has no tensor maps is as it was.
func TestPrologueOnlyWithMaps(t *testing.T) {
	s := hopperSample(t, "gemm", nil, []string{"copy=1"}, 0)
	plain, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err)
	asked, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Prologue: true})
	require.NoError(t, err)
	want, err := plain.PTX()
	require.NoError(t, err)
	got, err := asked.PTX()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestPrologueKnowsMaps: staging tells of every kernel whether it takes tensor maps.
func TestPrologueKnowsMaps(t *testing.T) {
	with := map[bool]int{}
	for i, w := range warpgroupSamples {
		for _, name := range []string{"h100", "rtx5090", "a100"} {
			gpu, err := target.Lookup(name)
			require.NoError(t, err)
			s := hopperSample(t, w.family, w.flags, w.settings, uint64(i))
			plain, err := codegen.Compile(s.prog, gpu, codegen.Options{})
			if err != nil { // a tile that another GPU has no shared memory for
				continue
			}
			asked, err := codegen.Compile(s.prog, gpu, codegen.Options{Prologue: true})
			require.NoError(t, err)
			require.Equal(t, plain.TensorMaps(), asked.Launched != s.prog, "%s on %s", s, name)
			with[plain.TensorMaps()]++
		}
	}
	require.NotZero(t, with[true])
	require.NotZero(t, with[false])
}
