package codegen_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
)

// TestEarlyLaunches: the second of two launches may start while the first runs, where the
// GPU lets kernels say so: it waits before it reads anything, and reads nothing as if it
// never changed.
func TestEarlyLaunches(t *testing.T) {
	product := map[string]string{"m": "128", "n": "256", "k": "512"}
	tool, cc := nvrtctest.Ptxas(t), nvrtctest.Compiler(t)
	for _, test := range []struct {
		family  string
		flags   map[string]string
		gpu     string
		setting string
		early   bool
	}{
		{"gemm", product, "h100", "split=2", true}, {"gemm", product, "h100", "split=1", false}, {"gemm", product, "a100", "split=2", false},
		{"paged", nil, "h100", "chunk=256", true}, {"paged", nil, "b200", "chunk=256", true},
	} {
		gpu, err := target.Lookup(test.gpu)
		require.NoError(t, err)
		f, err := kernels.Family(test.family)
		require.NoError(t, err)
		p, err := f.Problem(test.flags, gpu)
		require.NoError(t, err)
		b, err := p.Space(gpu)
		require.NoError(t, err)
		config, err := p.Default(gpu)
		require.NoError(t, err)
		config, err = b.Space().Override(config, []string{test.setting})
		require.NoError(t, err)
		prog, err := p.Program(config)
		require.NoError(t, err)
		c, err := codegen.Compile(prog, gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		s := &sample{f: f, p: p, gpu: gpu, c: config, prog: prog}
		plan, err := c.Plan(s.arguments())
		require.NoError(t, err)
		require.False(t, plan.Steps[0].Early)
		require.Equal(t, test.early, plan.Steps[len(plan.Steps)-1].Early)
		direct, err := c.PTX()
		require.NoError(t, err)
		src, err := c.CUDA()
		require.NoError(t, err)
		res, err := cc.Compile(t.Context(), nvrtc.Source{Name: "early.cu", Text: src}, nvrtc.Options{Arch: c.Module.Virtual()})
		require.NoError(t, err)
		for _, text := range []string{direct, string(res.PTX)} {
			_, err = tool.Assemble(t.Context(), []byte(text), c.Module.Arch)
			require.NoError(t, err)
			requireWaits(t, text, len(plan.Steps), test.early)
		}
	}
}

func requireWaits(t *testing.T, text string, steps int, early bool) {
	t.Helper()
	entries := strings.Split(text, ".entry")[1:]
	require.Len(t, entries, steps)
	if !early {
		require.NotContains(t, text, "griddepcontrol")
		return
	}
	require.Contains(t, entries[0], "griddepcontrol.launch_dependents")
	require.NotContains(t, entries[0], "griddepcontrol.wait")
	before, after, found := strings.Cut(entries[1], "griddepcontrol.wait")
	require.True(t, found)
	require.NotContains(t, before, "ld.global")
	require.Contains(t, after, "ld.global")
	require.NotContains(t, after, "ld.global.nc")
}
