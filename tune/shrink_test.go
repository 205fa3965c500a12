package tune

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Every family's default problem has small ones that run its very program, with lengths
// that are no multiple of a tile.
func TestShrink(t *testing.T) {
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	for _, f := range kernels.Families() {
		p, err := f.Problem(nil, gpu)
		require.NoError(t, err)
		c, err := p.Default(gpu)
		require.NoError(t, err)
		prog, err := p.Program(c)
		require.NoError(t, err)
		for seed := range uint64(5) {
			small, err := shrink(f, p, c, rand.New(rand.NewPCG(seed, 0)))
			require.NoError(t, err)
			again, err := small.Program(c)
			require.NoError(t, err)
			require.Equal(t, prog.Hash(), again.Hash())
			require.Less(t, bytesOf(small), int64(4<<20), "%s: %s", f.Name, small.Settings())
			require.Less(t, small.Work().FLOPs, 1e9, "%s: %s", f.Name, small.Settings())
			odd := false
			for _, x := range small.Settings() {
				last := x.Value[len(x.Value)-1]
				odd = odd || last >= '0' && last <= '9' && (last-'0')%2 == 1 && len(x.Value) == 3
			}
			require.True(t, odd || f.Name == "softmax", "%s: %s", f.Name, small.Settings())
		}
	}
}

func TestHalve(t *testing.T) {
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	f, err := kernels.Family("gemm")
	require.NoError(t, err)
	p, err := f.Problem(map[string]string{"m": "32768", "n": "32768", "k": "32768"}, gpu)
	require.NoError(t, err)
	c, err := p.Default(gpu)
	require.NoError(t, err)
	fits := func(q family.Problem) bool { return bytesOf(q) <= 1<<30 }
	q, err := halve(f, p, c, fits)
	require.NoError(t, err)
	require.LessOrEqual(t, bytesOf(q), int64(1<<30))
	require.Greater(t, bytesOf(q), int64(1<<28))
	same, err := halve(f, q, c, fits)
	require.NoError(t, err)
	require.Equal(t, q, same)
	_, err = halve(f, p, c, func(family.Problem) bool { return false })
	require.ErrorContains(t, err, "no smaller problem")
}
