package codegen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// TestL2Hints: with the hint what other blocks or a later launch touch too is to stay in L2,
// and what none does to leave it first, by tensor maps and threads; results are the same four
// ways.
func TestL2Hints(t *testing.T) {
	cc, tool := nvrtctest.Compiler(t), nvrtctest.Ptxas(t)
	for i, tt := range []struct {
		family      string
		flags       map[string]string
		settings    []string
		first, last int // policies made, of each kernel at most one
		streamed    bool
	}{
		{"gemm", map[string]string{"m": "190", "n": "136", "k": "328", "dtype": "bf16"}, []string{"BM=64", "BN=128", "BK=64", "warps=4", "stages=3", "cluster=2", "group=8"}, 1, 1, false},
		{"gemm", map[string]string{"m": "64", "n": "64", "k": "512", "dtype": "bf16"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3", "split=2"}, 0, 1, true},
		{"gemm", map[string]string{"m": "130", "n": "133", "k": "96", "dtype": "bf16", "layout": "nt"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3"}, 0, 1, true},
		{"flashattn", map[string]string{"batch": "1", "heads": "2", "kv-heads": "1", "seq": "130", "seq-kv": "200", "head-dim": "64", "causal": "true"}, []string{"BM=128", "BN=64", "warps=8", "stages=2"}, 1, 1, true},
	} {
		t.Run(fmt.Sprint(tt.family, i), func(t *testing.T) {
			t.Parallel()
			s := hopperSample(t, tt.family, tt.flags, tt.settings, uint64(i))
			for _, k := range s.prog.Kernels {
				k.Hints.L2 = 1
			}
			c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
			require.NoError(t, err)
			text, err := c.PTX()
			require.NoError(t, err)
			require.Equal(t, tt.first, min(1, strings.Count(text, "createpolicy.fractional.L2::evict_first.b64")), text)
			require.Equal(t, tt.last, min(1, strings.Count(text, "createpolicy.fractional.L2::evict_last.b64")))
			require.Equal(t, strings.Count(text, "complete_tx::bytes")+strings.Count(text, ".tile.bulk_group"), strings.Count(text, ".L2::cache_hint"), fmt.Sprint(s))
			require.Equal(t, tt.streamed, strings.Contains(text, "st.global.cs"), fmt.Sprint(s))
			_, err = tool.Assemble(t.Context(), []byte(text), c.Module.Arch)
			require.NoError(t, err)
			s.fourWays(t, cc, c, uint64(i))
		})
	}
}
