package codegen_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTransposesWithoutConflicts: the role that transposes bytes reads and writes swizzled
// rows of 64 and 128 bytes without bank conflicts, whether the depth is interleaved, as that
// of values of attention is, or not.
func TestTransposesWithoutConflicts(t *testing.T) {
	for _, test := range []struct {
		family   string
		flags    map[string]string
		settings []string
	}{
		{"gemm", map[string]string{"m": "64", "n": "64", "k": "128", "dtype": "e4m3", "out": "f32"}, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=2"}},
		{"gemm", map[string]string{"m": "64", "n": "128", "k": "128", "dtype": "e4m3", "out": "f32"}, []string{"BM=64", "BN=128", "BK=64", "warps=4", "stages=2"}},
		{"gemm", map[string]string{"m": "128", "n": "128", "k": "128", "dtype": "e5m2", "layout": "tn", "out": "f32"}, []string{"BM=128", "BN=128", "BK=128", "warps=8", "stages=2"}},
		{"flashattn", map[string]string{"batch": "1", "heads": "1", "kv-heads": "1", "seq": "64", "seq-kv": "128", "head-dim": "128", "causal": "false", "dtype": "e4m3", "out": "f32"}, []string{"BM=64", "BN=64", "warps=4", "stages=2"}},
	} {
		s := hopperSample(t, test.family, test.flags, test.settings, 1)
		n := s.counters(t)
		require.NotZero(t, n.Shared.Matrix.Requests, s)
		require.Equal(t, n.Shared.Matrix.Ideal, n.Shared.Matrix.Wavefronts, s)
	}
}
