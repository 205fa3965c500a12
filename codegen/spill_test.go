package codegen_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/simt"
)

// TestDefaultsDoNotSpill holds the default configurations on Hopper to their registers,
// and to products that stay asynchronous.
func TestDefaultsDoNotSpill(t *testing.T) {
	tool := nvrtctest.Ptxas(t)
	type problem struct {
		family string
		flags  map[string]string
	}
	all := []problem{
		{"gemm", nil}, {"gemm", map[string]string{"dtype": "e4m3", "layout": "nt"}}, {"gemm", map[string]string{"dtype": "tf32", "layout": "nt"}},
		{"flashattn", nil},
	}
	if os.Getenv("KGEN_FULL") != "" {
		all = append(all, problem{"gemm", map[string]string{"layout": "tt", "bias": "true", "act": "gelu", "residual": "true", "out": "f32"}})
		for dim := 16; dim <= 256; dim += 16 {
			for _, causal := range []string{"true", "false"} {
				all = append(all, problem{"flashattn", map[string]string{"head-dim": fmt.Sprint(dim), "causal": causal}})
			}
		}
	} else {
		all = append(all,
			problem{"flashattn", map[string]string{"head-dim": "64"}}, problem{"flashattn", map[string]string{"head-dim": "256"}},
			problem{"flashattn", map[string]string{"head-dim": "192", "head-dim-v": "128"}})
	}
	for _, w := range all {
		t.Run(fmt.Sprint(w.family, w.flags), func(t *testing.T) {
			t.Parallel()
			hopperSample(t, w.family, w.flags, nil, 0).keepsItsRegisters(t, tool)
		})
	}
}

// TestFullBlocksDoNotSpill does the same with blocks that registers just hold.
func TestFullBlocksDoNotSpill(t *testing.T) {
	tool := nvrtctest.Ptxas(t)
	for _, w := range []struct {
		family   string
		flags    map[string]string
		settings []string
	}{
		// Descriptors of rings of one buffer are the same in every round.
		{"flashattn", map[string]string{"head-dim": "256"}, []string{"BM=64", "BN=112", "warps=4", "stages=1", "overlap=0"}},
		{"flashattn", map[string]string{"head-dim": "256", "causal": "false"}, []string{"BM=128", "BN=112", "warps=8", "stages=1", "overlap=0"}},
		// 160 copies a thread of 2 bytes to each of three buffers before the loop.
		{"gemm", map[string]string{"layout": "nt", "m": "4095", "n": "4095", "k": "4095"}, []string{"BM=64", "BN=256", "BK=64", "warps=4", "stages=4"}},
		// 512 threads, each with 96 sums of its 128 registers.
		{"gemm", map[string]string{"layout": "nt", "bias": "true", "out": "f32"}, []string{"BM=192", "BN=192", "BK=64", "warps=12", "stages=3", "cluster=1", "persistent=0"}},
		// 128 sums a thread, and as many f32 to add to them.
		{"gemm", map[string]string{"layout": "tt", "bias": "true", "act": "gelu", "residual": "true", "out": "f32"}, []string{"persistent=0", "cluster=2"}},
		{"gemm", map[string]string{"act": "gelu", "alpha": "0.5", "residual": "true", "out": "f32"}, []string{"BM=128", "BN=128", "BK=32", "warps=4", "stages=5", "cluster=1", "persistent=0"}},
	} {
		t.Run(fmt.Sprint(w.family, w.flags, w.settings), func(t *testing.T) {
			t.Parallel()
			hopperSample(t, w.family, w.flags, w.settings, 0).keepsItsRegisters(t, tool)
		})
	}
}

// keepsItsRegisters holds a valid configuration to no spills and to products that stay
// asynchronous.
func (s *sample) keepsItsRegisters(t *testing.T, tool nvrtc.Ptxas) {
	t.Helper()
	b, err := s.p.Space(s.gpu)
	require.NoError(t, err)
	require.NoError(t, b.Check(s.c))
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	r, err := tool.Assemble(t.Context(), []byte(text), s.gpu.Arch())
	require.NoError(t, err)
	require.Empty(t, nvrtc.Serialised(r.Log))
	for _, u := range r.Usage {
		require.Zero(t, u.SpillStoreBytes+u.SpillLoadBytes, "%s: %s", u.Kernel, s)
	}
}

// TestManyCopiesThroughRegisters holds copies behind a branch to their reference four ways.
func TestManyCopiesThroughRegisters(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for i, layout := range []string{"nn", "nt"} {
		flags := map[string]string{"layout": layout, "m": "71", "n": "135", "k": "197"}
		s := hopperSample(t, "gemm", flags, []string{"BM=64", "BN=128", "BK=64", "warps=4", "stages=3"}, uint64(i))
		c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		branches := slices.ContainsFunc(c.Module.Kernels[0].Body.Instrs, func(in *simt.Instr) bool {
			return in.Op == simt.OpIf && slices.ContainsFunc(in.Body.Instrs, func(in *simt.Instr) bool { return in.Op == simt.OpLd })
		})
		require.True(t, branches, "%s", s)
		s.fourWays(t, cc, c, uint64(i))
	}
}
