package codegen_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
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
