package codegen_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// TestRandomPersistent holds products of which a block computes several tiles to their
// float64 reference four ways, one tile after the other and two warpgroups with tiles in
// turns: the GPU has so few SMs that blocks get two to five.
func TestRandomPersistent(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for seed := range samples(2) {
		schedule := fmt.Sprint(1 + seed%2)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 92))
			for range 100 {
				s := randomPersistent(t, r, schedule, seed)
				c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
				require.NoError(t, err, s.String())
				require.Positive(t, c.Kernels[0].Wave, "%s: %q", s, c.Kernels[0].Notes)
				plan, err := c.Plan(s.arguments())
				require.NoError(t, err)
				require.Equal(t, schedule == "2", c.Module.Kernels[0].Pingpong, "%s: %q", s, c.Kernels[0].Notes)
				tiles := int64(1)
				for _, n := range plan.Steps[0].Tiles() {
					tiles *= n
				}
				if tiles > plan.Steps[0].Grid {
					s.fourWays(t, cc, c, seed)
					return
				}
			}
			t.Fatal("no block has several tiles")
		})
	}
}

// randomPersistent draws a product on a Hopper of few SMs.
func randomPersistent(t *testing.T, r *rand.Rand, schedule string, seed uint64) *sample {
	t.Helper()
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	size := func(least, most int) string { return fmt.Sprint(16 * (least/16 + r.IntN((most-least)/16))) }
	dtype, layout := pick("bf16", "f16", "tf32", "e4m3"), pick("nn", "nt", "tn", "tt")
	columns := pick("64", "80", "96", "128", "176", "208")
	switch {
	case dtype == "tf32":
		layout = "nt" // both along K
	case dtype == "e4m3" && layout[1] == 'n':
		columns = pick("64", "96", "160") // a role transposes
	}
	flags := map[string]string{
		"m": size(200, 500), "n": size(136, 330), "k": fmt.Sprint(16 * (1 + r.IntN(16))), "dtype": dtype, "layout": layout,
		"act": pick("none", "relu", "gelu"), "bias": pick("true", "false"), "out": pick("same", "f32"), "residual": pick("true", "false"),
	}
	warps := "4"
	if schedule == "1" {
		warps = pick("4", "8", "12")
	}
	rows := map[string]string{"4": "64", "8": "128", "12": "192"}[warps]
	if warps == "12" && columns == "208" {
		columns = "192" // all that the space has beside 192 rows
	}
	if schedule == "2" {
		rows = pick("64", "128")
	}
	settings := []string{
		"BM=" + rows, "warps=" + warps, "BN=" + columns, "BK=" + map[bool]string{true: "32", false: pick("32", "64")}[dtype == "tf32"],
		"stages=" + pick("2", "3", "4"), "group=" + pick("1", "4", "8"), "cluster=" + pick("1", "1", "2", "4"), "persistent=" + schedule, "hilbert=" + []string{"4", "0", "0", "8"}[seed%4],
	}
	s := hopperSample(t, "gemm", flags, settings, seed)
	few := *s.gpu
	few.SMs = 1 + r.IntN(3)
	s.gpu = &few
	return s
}

// TestPersistentTransposes does the same with products of bytes across K, which a role of
// each block transposes for tile after tile.
func TestPersistentTransposes(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for i, test := range []struct {
		flags    map[string]string
		settings []string
	}{
		{map[string]string{"m": "250", "n": "208", "k": "336", "dtype": "e4m3"}, []string{"BM=64", "BN=96", "BK=64", "warps=4", "stages=3", "cluster=2", "group=8", "persistent=1"}},
		{map[string]string{"m": "320", "n": "112", "k": "176", "dtype": "e5m2", "layout": "tn"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2", "persistent=2"}},
		{map[string]string{"m": "272", "n": "200", "k": "208", "dtype": "e4m3", "layout": "tt", "bias": "true"}, []string{"BM=128", "BN=64", "BK=32", "warps=8", "stages=3", "persistent=1", "hilbert=4"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := hopperSample(t, "gemm", test.flags, test.settings, uint64(i))
			few := *s.gpu
			few.SMs = 2
			s.gpu = &few
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err)
			require.Positive(t, c.Kernels[0].Wave, "%q", c.Kernels[0].Notes)
			require.Empty(t, c.Kernels[0].Notes)
			s.fourWays(t, cc, c, uint64(i))
		})
	}
}

// TestWaveOfPersistentBlocks: as many blocks as the GPU runs at once, in whole clusters,
// and no more than there are tiles.
func TestWaveOfPersistentBlocks(t *testing.T) {
	for _, test := range []struct {
		size, cluster string
		want          int64
	}{{"8192", "1", 132}, {"8192", "4", 128}, {"1024", "2", 32}} {
		s := hopperSample(t, "gemm", map[string]string{"m": test.size, "n": test.size}, []string{"BM=128", "BN=256", "BK=64", "warps=8", "stages=4", "cluster=" + test.cluster, "persistent=1"}, 0)
		c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		plan, err := c.Plan(s.arguments())
		require.NoError(t, err)
		step := plan.Steps[0]
		require.Equal(t, test.want, step.Grid)
		seen := map[int64]int{}
		tiles := step.Tiles()
		for i := range int(tiles[0]) {
			for j := range int(tiles[1]) {
				block, err := step.Block([]int{i, j})
				require.NoError(t, err)
				seen[block]++
			}
		}
		require.Len(t, seen, int(test.want))
	}
}

// TestWideTilesInTurns: a warpgroup holds a tile of 128x208 sums without spills, and its
// products run one after the other. The threads that copy and store are alone, so that ptxas
// makes no loop over threads of what they ask for.
func TestWideTilesInTurns(t *testing.T) {
	ptxas, disasm := nvrtctest.Ptxas(t), nvrtctest.Nvdisasm(t)
	for _, flags := range []map[string]string{{}, {"layout": "nt"}, {"out": "f32"}} {
		s := hopperSample(t, "gemm", flags, []string{"BM=128", "BN=208", "BK=64", "warps=4", "stages=4", "group=8", "cluster=2", "persistent=2"}, 0)
		c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		require.True(t, c.Module.Kernels[0].Pingpong, "%v: %q", flags, c.Kernels[0].Notes)
		text, err := c.PTX()
		require.NoError(t, err)
		r, err := ptxas.Assemble(context.Background(), []byte(text), c.Module.Arch)
		require.NoError(t, err)
		require.Zero(t, r.Usage[0].SpillStoreBytes, "%v", flags)
		require.Empty(t, nvrtc.Serialised(r.Log))
		sass, err := disasm.Disassemble(context.Background(), r.Cubin)
		require.NoError(t, err)
		require.Equal(t, 8, strings.Count(sass, "HGMMA.64x208x16"), "%v", flags)
		_, copies, found := strings.Cut(sass, "USETMAXREG.DEALLOC")
		require.True(t, found)
		require.Contains(t, copies, "UTMALDG")
		require.NotContains(t, sass, "BRA.U.ANY", "%v", flags)
	}
}

// TestMbarriersOfGroups: buffers that are filled and waited for together have two mbarriers,
// one that says that they are full and one that they are free.
func TestMbarriersOfGroups(t *testing.T) {
	for persistent, stages := range []int{4, 3} {
		s := hopperSample(t, "gemm", nil, []string{"BM=128", "BN=128", "BK=64", fmt.Sprint("stages=", stages), fmt.Sprint("persistent=", persistent)}, 0)
		c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
		require.NoError(t, err)
		text, err := c.PTX()
		require.NoError(t, err)
		require.Equal(t, 2*stages, strings.Count(text, "mbarrier.init"))
	}
}

// TestThreeWarpgroups: a tile of 192 rows is three warpgroups', without spills and with
// products that run one after the other; without wgmma eight of their twelve warps work.
func TestThreeWarpgroups(t *testing.T) {
	tool := nvrtctest.Ptxas(t)
	for _, columns := range []string{"BN=128", "BN=256"} {
		for _, persistent := range []string{"persistent=0", "persistent=1"} {
			s := hopperSample(t, "gemm", nil, []string{"BM=192", columns, "BK=64", "warps=12", "stages=3", "cluster=2", persistent}, 0)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err)
			require.Equal(t, 512, c.Module.Kernels[0].Threads)
			text, err := c.PTX()
			require.NoError(t, err)
			r, err := tool.Assemble(context.Background(), []byte(text), c.Module.Arch)
			require.NoError(t, err)
			require.Zero(t, r.Usage[0].SpillStoreBytes, "%s", s)
			require.Empty(t, nvrtc.Serialised(r.Log))
			plain, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true, Portable: true})
			require.NoError(t, err)
			require.Equal(t, 256, plain.Module.Kernels[0].Threads)
		}
	}
}
