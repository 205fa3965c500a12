package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
)

// The configuration that a package gives for portable code makes that code where nothing
// else asks for portable code, and names nothing that it goes without.
func TestPortableConfig(t *testing.T) {
	for _, tt := range []struct{ family, gpu, asked, want string }{
		{"gemm", "h100", "BM=128 BN=256 BK=64 warps=8 stages=4 group=8 cluster=4 persistent=1 hilbert=8", "cluster=1 persistent=0 hilbert=8 portable=1 copy=0"},
		{"gemm", "h100", "BM=128 BN=128 BK=64 warps=8 stages=4 group=8 cluster=1 persistent=0 copy=1", "cluster=1 persistent=0 hilbert=0 portable=1 copy=0"},
		{"flashattn", "h100", "overlap=2 persistent=1", "portable=1 overlap=0 persistent=0 copy=0"},
		{"gemm", "b200", "", "portable=1 copy=0"},
		{"gemm", "a100", "", "portable=0 copy=0"},
		{"softmax", "h100", "", ""},
	} {
		f, err := kernelFamily(tt.family)
		require.NoError(t, err)
		gpu, err := target.Lookup(tt.gpu)
		require.NoError(t, err)
		p, err := f.AnySize(nil, gpu)
		require.NoError(t, err)
		c, err := p.Default(gpu)
		require.NoError(t, err)
		bound, err := p.Space(gpu)
		require.NoError(t, err)
		c, err = bound.Space().Override(c, strings.Fields(tt.asked))
		require.NoError(t, err)
		v, err := portableVariant(f, p, gpu, c, "default")
		require.NoError(t, err)
		require.Contains(t, v.Config, tt.want, tt)
		c, err = bound.Space().Override(c, strings.Fields(v.Config))
		require.NoError(t, err)
		made, err := compileFor(p, c, gpu, codegen.Options{})
		require.NoError(t, err)
		text, err := made.PTX()
		require.NoError(t, err)
		require.Equal(t, v.PTX, text, tt)
	}
}
