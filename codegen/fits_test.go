package codegen_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/gemm"
	"github.com/kgen-dev/kgen/kernels/space"
)

// What gemm's space takes fits a block's shared memory once rows are padded, and what it
// refuses for that does not.
func TestGemmSpaceFits(t *testing.T) {
	for _, name := range []string{"t4", "a100", "rtx4090"} {
		gpu, err := target.Lookup(name)
		require.NoError(t, err)
		taken, refused := 0, 0
		for _, flags := range []map[string]string{
			{"dtype": "f16", "layout": "nn", "out": "f32", "m": "512", "n": "512"}, {"dtype": "f16", "layout": "tt"},
			{"dtype": "tf32", "layout": "nn"}, {"dtype": "tf32", "layout": "nt"}, {"dtype": "tf32", "layout": "tn"},
		} {
			if flags["dtype"] == "tf32" && !gpu.CC.AtLeast(8, 0) {
				continue
			}
			p, err := gemm.Family().Problem(flags, gpu)
			require.NoError(t, err)
			b, err := p.Space(gpu)
			require.NoError(t, err)
			for _, c := range nearLimit() {
				refusal := b.Check(c)
				if refusal != nil && !strings.Contains(refusal.Error(), "<= shared") {
					continue
				}
				prog, err := p.Program(c)
				require.NoError(t, err)
				_, err = codegen.Compile(prog, gpu, codegen.Options{})
				what := fmt.Sprintf("%s %v: %s", name, flags, c)
				if refusal == nil {
					taken++
					require.NoError(t, err, what)
				} else {
					refused++
					require.ErrorContains(t, err, "shared memory", what)
				}
			}
		}
		require.NotZero(t, taken, name)
		require.NotZero(t, refused, name)
	}
}

// Where gemm's space has clusters, and only there, warpgroups multiply.
func TestGemmSpaceKnowsWarpgroups(t *testing.T) {
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	multiply := map[bool]int{}
	for _, dtype := range []string{"bf16", "e4m3", "tf32"} {
		for _, layout := range []string{"nn", "nt", "tn", "tt"} {
			for _, size := range []map[string]string{{}, {"m": "4095"}, {"n": "4095"}, {"k": "4095"}, {"m": "4092", "n": "4092", "k": "4092"}} {
				flags := maps.Clone(size)
				flags["dtype"], flags["layout"] = dtype, layout
				p, err := gemm.Family().Problem(flags, gpu)
				require.NoError(t, err)
				b, err := p.Space(gpu)
				require.NoError(t, err)
				depth := map[string]int{"bf16": 64, "e4m3": 128, "tf32": 32}[dtype]
				c := space.Of("BM", 128, "BN", 128, "BK", depth, "warps", 8, "stages", 3,
					"group", 8, "split", 1, "cluster", 2, "persistent", 0, "hilbert", 0, "portable", 0, "copy", 0, "atomic", 0)
				prog, err := p.Program(c)
				require.NoError(t, err)
				out, err := codegen.Compile(prog, gpu, codegen.Options{})
				require.NoError(t, err)
				text, err := out.PTX()
				require.NoError(t, err)
				does := strings.Contains(text, "wgmma.mma_async")
				require.Equal(t, does, b.Check(c) == nil, "%v", flags)
				multiply[does]++
			}
		}
	}
	require.NotZero(t, multiply[true])
	require.NotZero(t, multiply[false])
}

// nearLimit lists configurations whose stages or sums take, at 4 bytes an element, from
// half of the least to more than the most shared memory that a block has.
func nearLimit() []space.Config {
	var list []space.Config
	for _, tile := range [][2]int{{32, 64}, {64, 32}, {64, 64}, {64, 128}, {128, 64}, {128, 128}, {64, 256}, {128, 192}, {128, 256}} {
		for _, depth := range []int{16, 64} {
			for _, stages := range []int{2, 4} {
				for _, split := range []int{1, 4} {
					list = append(list, space.Of("BM", tile[0], "BN", tile[1], "BK", depth, "warps", 8, "stages", stages,
						"group", 1, "split", split, "cluster", 1, "persistent", 0, "hilbert", 0, "portable", 0, "copy", 0, "atomic", 0))
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(c space.Config) bool {
		r := c.Read()
		m, n := r.Int("BM"), r.Int("BN")
		most := max(4*m*n, 4*r.Int("stages")*r.Int("BK")*(m+n))
		return most < 32<<10 || most > 256<<10
	})
}
