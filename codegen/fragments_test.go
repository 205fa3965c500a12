package codegen_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
)

// TestTensorMapsFeedFragments holds products whose operands tensor maps copy and ldmatrix
// reads to their float64 reference four ways, with copies landing late and early.
func TestTensorMapsFeedFragments(t *testing.T) {
	cc := nvrtctest.Compiler(t)
	for _, name := range []string{"gemm", "flashattn"} {
		f, err := kernels.Family(name)
		require.NoError(t, err)
		for seed := range samples(3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 120))
				gpu, err := target.Lookup([]string{"rtx5090", "b200"}[seed%2])
				require.NoError(t, err)
				for range 500 {
					s := drawFor(t, f, gpu, r, seed)
					c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
					if errors.Is(err, codegen.ErrResources) {
						continue // what is copied by threads may want rows with gaps
					}
					require.NoError(t, err, s.String())
					if c.TensorMaps() {
						require.Empty(t, c.Kernels[0].Notes)
						s.fourWays(t, cc, c, seed)
						return
					}
				}
				t.Fatal("no configuration has tensor maps")
			})
		}
	}
}

// TestFragmentsOfSwizzledRows holds what ldmatrix reads where tensor maps wrote it to no
// bank conflicts, for operands that lie along K and across it.
func TestFragmentsOfSwizzledRows(t *testing.T) {
	gpu, err := target.Lookup("rtx5090")
	require.NoError(t, err)
	f, err := kernels.Family("gemm")
	require.NoError(t, err)
	for _, layout := range []string{"nn", "nt", "tn", "tt"} {
		p, err := f.Problem(map[string]string{"m": "256", "n": "256", "k": "256", "layout": layout}, gpu)
		require.NoError(t, err)
		b, err := p.Space(gpu)
		require.NoError(t, err)
		for _, bk := range []string{"BK=32", "BK=64"} {
			c, err := p.Default(gpu)
			require.NoError(t, err)
			c, err = b.Space().Override(c, []string{"BM=128", "BN=128", bk, "warps=8", "stages=2", "group=1"})
			require.NoError(t, err)
			require.NoError(t, b.Check(c))
			s := sampleOf(t, f, p, c, gpu)
			n := s.counters(t)
			require.NotZero(t, n.Shared.Matrix.Requests, s)
			require.Equal(t, n.Shared.Matrix.Ideal, n.Shared.Matrix.Wavefronts, s)
		}
	}
}
