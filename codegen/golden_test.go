package codegen_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden are small configurations whose whole way to text is kept, so that a change of
// any pass or printer shows as a difference to read.
var golden = []struct {
	family, as string
	gpu        string
	flags      map[string]string
	settings   []string
}{
	{"gemm", "a100", "a100", map[string]string{"bias": "true", "act": "gelu"}, []string{"BM=64", "BN=32", "BK=32", "warps=4", "stages=3", "group=4", "split=1"}},
	{"flashattn", "a100", "a100", map[string]string{"head-dim": "32"}, []string{"BM=64", "BN=32", "warps=4", "stages=2"}},
	{"softmax", "h100", "h100", nil, nil},
	{"gemm", "h100", "h100", nil, []string{"BM=64", "BN=32", "BK=64", "warps=4", "stages=3", "group=8", "split=1", "cluster=2", "persistent=0"}},
	{"gemm", "h100-persistent", "h100", nil, []string{"BM=128", "BN=64", "BK=64", "warps=8", "stages=2", "group=8", "cluster=2", "persistent=1"}},
	{"gemm", "h100-pingpong", "h100", nil, []string{"BM=64", "BN=64", "BK=64", "warps=4", "stages=3", "group=8", "cluster=1", "persistent=2", "hilbert=8"}},
	{"flashattn", "h100", "h100", map[string]string{"head-dim": "64"}, []string{"BM=64", "BN=16", "warps=4", "stages=2", "overlap=1"}},
	{"flashattn", "h100-persistent", "h100", map[string]string{"head-dim": "64"}, []string{"BM=64", "BN=16", "warps=4", "stages=2", "order=1", "overlap=1", "persistent=1"}},
	{"flashattn", "h100-e4m3", "h100", map[string]string{"head-dim": "64", "dtype": "e4m3"}, []string{"BM=64", "BN=32", "warps=4", "stages=2", "overlap=0"}},
	{"gemm", "h100-split", "h100", nil, []string{"BM=64", "BN=32", "BK=64", "warps=4", "stages=3", "group=8", "split=2", "cluster=2", "persistent=0"}},
	{"gemm", "h100-e4m3", "h100", map[string]string{"dtype": "e4m3"}, []string{"BM=64", "BN=32", "BK=64", "warps=4", "stages=2", "group=8", "cluster=1", "persistent=0"}},
	{"gemm", "h100-threads", "h100", map[string]string{"n": "4100"}, []string{"BM=64", "BN=32", "BK=64", "warps=4", "stages=3", "group=8", "split=1", "cluster=1", "persistent=0"}},
}

// TestGolden compares staged programs, CUDA C and PTX with testdata/golden.
func TestGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.family+"/"+g.as, func(t *testing.T) {
			gpu, err := target.Lookup(g.gpu)
			require.NoError(t, err)
			f, err := kernels.Family(g.family)
			require.NoError(t, err)
			p, err := f.Problem(g.flags, gpu)
			require.NoError(t, err)
			cfg, err := p.Default(gpu)
			require.NoError(t, err)
			b, err := p.Space(gpu)
			require.NoError(t, err)
			cfg, err = b.Space().Override(cfg, g.settings)
			require.NoError(t, err)
			prog, err := p.Program(cfg)
			require.NoError(t, err)
			c, err := codegen.Compile(prog, gpu, codegen.Options{Verify: true})
			require.NoError(t, err)
			staged := *prog
			staged.Kernels = c.Staged
			cuda, err := c.CUDA()
			require.NoError(t, err)
			text, err := c.PTX()
			require.NoError(t, err)
			base := filepath.Join("..", "testdata", "golden", g.family, g.as)
			same(t, base+".staged.tile", staged.String())
			same(t, base+".cu", cuda)
			same(t, base+".ptx", text)

			back, err := ir.Parse("staged.tile", []byte(staged.String()))
			require.NoError(t, err)
			require.Equal(t, staged.String(), back.String())
		})
	}
}

// same compares text with a golden file, or writes it.
func same(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run go test -update to write it")
	require.Equal(t, string(want), text, "%s: run go test -update and read the difference", file)
}
