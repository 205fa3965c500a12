package codegen_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/irtest"
)

// TestTensorAdd: blocks add parts of a product to one result by tensor maps, elements of
// each type, of parameters and made on the GPU, in orders that differ. Sums of the small
// integers are exact in any.
func TestTensorAdd(t *testing.T) {
	cc, tool := nvrtctest.Compiler(t), nvrtctest.Ptxas(t)
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	src, err := os.ReadFile("testdata/agree/split_added.tile")
	require.NoError(t, err)
	for _, elem := range []string{"f32", "bf16", "f16"} {
		for _, prologue := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", elem, prologue), func(t *testing.T) {
				t.Parallel()
				p := splitAdded(t, string(src), elem)
				for _, k := range p.Kernels { // blocks add to the same places, which are to stay in L2
					k.Hints.L2 = map[bool]int{true: 1}[prologue]
				}
				c, err := codegen.Compile(p, gpu, codegen.Options{Verify: true, Prologue: prologue})
				require.NoError(t, err)
				args := smallArgs(p, map[string]int{"M": 130, "N": 72, "K": 200})
				want := copyArgs(args)
				require.NoError(t, eval.Run(t.Context(), p, want, eval.Options{}))
				direct, err := c.PTX()
				require.NoError(t, err)
				require.Contains(t, direct, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group")
				require.Equal(t, prologue, strings.Contains(direct, "bulk_group.L2::cache_hint"))
				require.NotContains(t, direct, "evict_first")
				cuda, err := c.CUDA()
				require.NoError(t, err)
				require.Contains(t, cuda, "tensor_add_2d")
				res, err := cc.Compile(t.Context(), nvrtc.Source{Name: "add.cu", Text: cuda}, nvrtc.Options{Arch: c.Module.Virtual()})
				require.NoError(t, err)
				for i, text := range []string{direct, string(res.PTX)} {
					_, err := tool.Assemble(t.Context(), []byte(text), c.Module.Arch)
					require.NoError(t, err)
					o := vm.Options{GPU: gpu, Seed: uint64(i), Schedule: vm.Shuffle, Async: []vm.Async{vm.Late, vm.Random}[i], Checks: strictly(t)}
					got := copyArgs(args)
					requireNoFaults(t, runOn(t, o, c, text, got, 0))
					compareMemory(t, "c", irtest.Tolerance{}, want[2].Tensor, got[2].Tensor)
				}
			})
		}
	}
}

// TestAtomicParts: parts of a product that tensor maps cannot store are added to its result by
// threads, four ways.
func TestAtomicParts(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	flags := map[string]string{"m": "70", "n": "75", "k": "300", "dtype": "f16", "out": "f32", "residual": "true"}
	s := hopperSample(t, "gemm", flags, []string{"BM=64", "BN=32", "BK=32", "warps=4", "stages=2", "split=4", "atomic=1"}, 1)
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
	require.NoError(t, err)
	text, err := c.PTX()
	require.NoError(t, err)
	require.Contains(t, text, "red.global")
	s.fourWays(t, cc, c, 1)
}

// splitAdded is the program with a result of another type.
func splitAdded(t *testing.T, src, elem string) *ir.Program {
	t.Helper()
	if elem != "f32" {
		src = strings.NewReplacer("%c: view<f32>", "%c: view<"+elem+">", "<16x64xf32>", "<16x64x"+elem+">", "stride(%c, 0) % 4", "stride(%c, 0) % 8",
			"  atomic add %c[%row, %col] = %sum", "  %narrow = cast %sum : <64x64x"+elem+">\n  atomic add %c[%row, %col] = %narrow").Replace(src)
	}
	p, err := ir.Parse("split_added.tile", []byte(src))
	require.NoError(t, err)
	return p
}
