package codegen_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// TestRandomPersistentAttention holds attention whose blocks go on from tile to tile to its
// float64 reference four ways: rows that begin anywhere and end early, more keys than queries
// and fewer, groups of heads, with and without a mask, of as many tiles as blocks, of more
// and of fewer.
func TestRandomPersistentAttention(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for seed := range samples(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := randomPersistentAttention(t, seed)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err, s.String())
			require.Positive(t, c.Kernels[0].Wave, "%s: %q", s, c.Kernels[0].Notes)
			require.Empty(t, c.Kernels[0].Notes)
			s.fourWays(t, cc, c, seed)
		})
	}
}

// randomPersistentAttention draws attention on a Hopper of few SMs.
func randomPersistentAttention(t *testing.T, seed uint64) *sample {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 93))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	warps := pick("4", "8")
	flags := map[string]string{
		"batch": pick("1", "2"), "heads": pick("2", "4"), "kv-heads": pick("1", "2"), "seq": fmt.Sprint(1 + r.IntN(300)), "seq-kv": fmt.Sprint(1 + r.IntN(400)),
		"head-dim": pick("32", "64", "128"), "head-dim-v": pick("32", "64", "128"), "causal": pick("true", "true", "false"), "dtype": pick("bf16", "f16"),
	}
	settings := []string{
		"BM=" + map[string]string{"4": "64", "8": "128"}[warps], "warps=" + warps, "BN=" + pick("16", "48", "64", "80", "128"), "stages=" + pick("2", "3"),
		"order=" + pick("0", "1", "2"), "overlap=" + pick("0", "1", "2"), "portable=0", "persistent=1",
	}
	s := hopperSample(t, "flashattn", flags, settings, seed)
	few := *s.gpu
	few.SMs = 1 + r.IntN(5)
	s.gpu = &few
	return s
}

// TestPersistentAttentionOnSchedules: nothing depends on which warps run first, nor on when
// copies land.
func TestPersistentAttentionOnSchedules(t *testing.T) {
	for _, overlap := range []string{"0", "1", "2"} {
		s := fewBlocks(t, map[string]string{"heads": "2", "kv-heads": "1", "seq": "200", "seq-kv": "170", "head-dim": "32"},
			[]string{"BM=128", "BN=48", "warps=8", "stages=2", "order=1", "overlap=" + overlap, "persistent=1"})
		c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		text, err := c.PTX()
		require.NoError(t, err)
		checks, err := vm.ParseChecks("all")
		require.NoError(t, err)
		for seed := range uint64(8) {
			o := vm.Options{Seed: seed, Schedule: vm.Shuffle, Async: []vm.Async{vm.Late, vm.Early, vm.Random}[seed%3], Checks: checks}
			s.right(t, fmt.Sprint("schedule ", seed), s.onDevice(t, c, text, o))
		}
	}
}

// TestTilesOfPersistentBlocks: the block that a plan names for a tile computes it, in the
// rounds that begin at the last block, too.
func TestTilesOfPersistentBlocks(t *testing.T) {
	s := fewBlocks(t, map[string]string{"heads": "2", "kv-heads": "2", "seq": "256", "head-dim": "32"},
		[]string{"BM=64", "BN=64", "warps=4", "stages=2", "order=1", "overlap=0", "persistent=1"})
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
	require.NoError(t, err)
	require.True(t, c.Kernels[0].Snake)
	text, err := c.PTX()
	require.NoError(t, err)
	for m := range 4 {
		for h := range 2 {
			out := s.atPoints(t, c, text, vm.Options{}, [][][]int{{{m, 0, h}}})["lse"]
			lse := &eval.Tensor{Elem: ir.F32, Shape: out.Dims, Strides: out.Strides, Data: out.Bytes}
			got := lse.Float(out.Offset(0, h, 64*m))
			require.False(t, got != got, "tile %d of head %d", m, h)
		}
	}
}

// fewBlocks is attention of one sequence on a Hopper of three SMs.
func fewBlocks(t *testing.T, flags map[string]string, settings []string) *sample {
	t.Helper()
	flags["batch"], flags["causal"] = "1", "true"
	s := hopperSample(t, "flashattn", flags, settings, 1)
	few := *s.gpu
	few.SMs = 3
	s.gpu = &few
	return s
}

// TestPersistentAttentionAssembles: the largest tiles have no spills and products that run
// one after the other, and the thread that copies is known to be alone.
func TestPersistentAttentionAssembles(t *testing.T) {
	ptxas, disasm := nvrtctest.Ptxas(t), nvrtctest.Nvdisasm(t)
	for _, overlap := range []string{"0", "1", "2"} {
		s := hopperSample(t, "flashattn", nil, []string{"BM=128", "BN=128", "warps=8", "stages=2", "order=1", "overlap=" + overlap, "persistent=1"}, 0)
		c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		require.Empty(t, c.Kernels[0].Notes)
		text, err := c.PTX()
		require.NoError(t, err)
		r, err := ptxas.Assemble(context.Background(), []byte(text), c.Module.Arch)
		require.NoError(t, err)
		require.Zero(t, r.Usage[0].SpillStoreBytes)
		require.Empty(t, nvrtc.Serialised(r.Log))
		sass, err := disasm.Disassemble(context.Background(), r.Cubin)
		require.NoError(t, err)
		_, copies, found := strings.Cut(sass, "USETMAXREG.DEALLOC")
		require.True(t, found)
		require.Contains(t, copies, "UTMALDG")
		require.NotContains(t, copies, "BRA.U.ANY")
	}
}

// TestPersistentSmallAttention does the same with values of 8 bits, which a role of each block
// transposes for tile after tile.
func TestPersistentSmallAttention(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for i, overlap := range []string{"0", "1", "2"} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			s := fewBlocks(t, map[string]string{"heads": "2", "kv-heads": "1", "seq": "330", "seq-kv": "290", "head-dim": "64", "dtype": "e4m3"},
				[]string{"BM=128", "BN=64", "warps=8", fmt.Sprint("stages=", 2+i%2), "order=1", "overlap=" + overlap, "persistent=1"})
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err)
			require.Positive(t, c.Kernels[0].Wave)
			require.Empty(t, c.Kernels[0].Notes)
			s.fourWays(t, cc, c, uint64(i))
		})
	}
}
