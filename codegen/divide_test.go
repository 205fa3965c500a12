package codegen_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/space"
)

// drawDivided makes a layernorm whose rows the blocks of clusters divide.
func drawDivided(t *testing.T, seed uint64) *sample {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	f, err := kernels.Family("layernorm")
	require.NoError(t, err)
	gpu, err := target.Lookup([]string{"h100", "b200", "rtx5090"}[r.IntN(3)])
	require.NoError(t, err)
	for {
		s := drawFor(t, f, gpu, r, seed)
		b, err := s.p.Space(gpu)
		require.NoError(t, err)
		divided := slices.DeleteFunc(slices.Collect(b.All()), func(c space.Config) bool { n, _ := c.Get("cluster"); return n == 1 })
		if len(divided) == 0 {
			continue
		}
		s.c = divided[r.IntN(len(divided))]
		s.prog, err = s.p.Program(s.c)
		require.NoError(t, err)
		return s
	}
}

// TestRowsDividedAmongBlocks holds layernorm in clusters to its reference four ways, and
// under another schedule to the same bits.
func TestRowsDividedAmongBlocks(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for seed := range samples(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := drawDivided(t, seed)
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err, s.String())
			s.fourWays(t, cc, c, seed)
			blocks, _ := s.c.Get("cluster")
			require.Equal(t, blocks, c.Kernels[0].PerTile)
			require.Equal(t, blocks, c.Kernels[0].Cluster)
			text, err := c.PTX()
			require.NoError(t, err)
			want := s.onDevice(t, c, text, vm.Options{})
			got := s.onDevice(t, c, text, vm.Options{Schedule: vm.Shuffle, Seed: seed})
			for name, w := range want {
				require.Equal(t, w.Bytes, got[name].Bytes, "%s: %s", s, name)
			}
		})
	}
}

// TestWhatBlocksDivide holds that loops are divided only where their iterations depend on
// each other by sums alone, and that a compiled kernel says why others are not.
func TestWhatBlocksDivide(t *testing.T) {
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	const bounded = "assume dim(%x, 1) in 1 .. 131072"
	text := fmt.Sprintf(twice, bounded, "%x")
	text = strings.Replace(text, "hints warps=4", "hints warps=4, cluster=4", 1)
	for _, tt := range []struct {
		old, new string
		why      string // "": divided
	}{
		{"", "", ""},
		{"%next = add %s, %u", "%next = fma %u, %u, %s", ""},
		{"%next = add %s, %u", "%next = max %s, %u", "carried"},
		{"%next = add %s, %u", "%next = sub %s, %u", "carried"},
		{"const 0 : <1x1024xf32>", "const 1 : <1x1024xf32>", "carried"},
		{"reduce add", "reduce max", "carried"},
		{"store %y[%i, %d]", "store %y[%i, %zero]", "store"},
		{"store %y[%i, %d] = %r", "%a = atomic add %y[%i, %d] = %r", "atomic"},
	} {
		src := strings.Replace(text, tt.old, tt.new, 1)
		require.True(t, tt.old == "" || src != text, tt.old)
		prog, err := ir.Parse("twice.tile", []byte(src))
		require.NoError(t, err, tt.new)
		c, err := codegen.Compile(prog, gpu, codegen.Options{Verify: true})
		require.NoError(t, err, tt.new)
		k := c.Kernels[0]
		if tt.why == "" {
			require.Equal(t, 4, k.PerTile, tt.new)
			require.Empty(t, k.Notes)
			require.Contains(t, c.Staged[0].String(), "ring blocks=4")
			continue
		}
		require.Equal(t, 1, k.PerTile, tt.new)
		require.Len(t, k.Notes, 1)
		require.Contains(t, k.Notes[0], tt.why, tt.new)
	}
}

// TestKeptRowsFit holds that shared memory has room for what layernorm's space says that it
// keeps, up to the longest rows: whatever else a kernel puts there.
func TestKeptRowsFit(t *testing.T) {
	f, err := kernels.Family("layernorm")
	require.NoError(t, err)
	for _, tt := range []struct {
		gpu   string
		cols  []string
		dtype string
	}{
		{"h100", []string{"57344", "57345", "65536", "425984", "458752", "458751"}, "bf16"},
		{"h100", []string{"57344", "458752"}, "f32"},
		{"rtx5090", []string{"24576", "40960", "49152", "98304", "196608"}, "f16"},
		{"a100", []string{"40960", "40959"}, "bf16"},
		{"t4", []string{"12288", "16383"}, "f16"},
	} {
		gpu, err := target.Lookup(tt.gpu)
		require.NoError(t, err)
		for _, cols := range tt.cols {
			p, err := f.Problem(map[string]string{"rows": "4", "cols": cols, "dtype": tt.dtype}, gpu)
			require.NoError(t, err)
			b, err := p.Space(gpu)
			require.NoError(t, err)
			kept := slices.DeleteFunc(slices.Collect(b.All()), func(c space.Config) bool { n, _ := c.Get("keep"); return n == 0 })
			for i := 0; i < len(kept); i += 4 {
				c := kept[i]
				prog, err := p.Program(c)
				require.NoError(t, err)
				_, err = codegen.Compile(prog, gpu, codegen.Options{})
				require.NoError(t, err, "%s, %s columns: %s", gpu.Name, cols, c)
			}
		}
	}
}
