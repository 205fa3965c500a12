package simt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// saxpy is y[i] = a*x[i] + y[i] over a grid-stride loop.
func saxpy() *Kernel {
	k := NewKernel("saxpy", 256)
	b := NewBuilder(k)
	pn := b.AddParam(Param{Name: "n", Type: I32})
	pa := b.AddParam(Param{Name: "a", Type: F32})
	px := b.AddParam(Param{Name: "x", Type: Ptr, Elem: F32, Const: true})
	py := b.AddParam(Param{Name: "y", Type: Ptr, Elem: F32})
	b.Note("this thread's element")
	i := b.Mad(b.Special(CtaX), b.Const32(256), b.Special(TidX)).Named("i")
	b.Guarded(b.Cmp(LT, i, b.Param(pn)), func() {
		x := b.LdGlobal(F32, 1, b.MadWide(i, b.Const32(4), b.Param(px)), Access{Cache: CacheNC})
		at := b.MadWide(i, b.Const32(4), b.Param(py))
		y := b.LdGlobal(F32, 1, at, Access{})
		b.StGlobal(at, []*Value{b.Fma(b.Param(pa), x[0], y[0])}, Access{})
	})
	return k
}

func TestBuildSaxpy(t *testing.T) {
	k := saxpy()
	require.NoError(t, Verify(k))
	t.Log(k)
}

func TestFold(t *testing.T) {
	k := NewKernel("f", 32)
	b := NewBuilder(k)
	x := b.Special(TidX)
	require.Same(t, x, b.Add(x, b.Const32(0)))
	require.Same(t, x, b.Mul(b.Const32(1), x))
	require.Same(t, b.Add(x, b.Const32(7)), b.Add(b.Add(x, b.Const32(3)), b.Const32(4)))
	require.Equal(t, int64(12), b.Mul(b.Const32(3), b.Const32(4)).Int())
	require.Equal(t, OpShl, b.Mul(x, b.Const32(8)).Def.Op)
	require.Same(t, b.And(x, b.Const32(31)), b.And(x, b.Const32(31)))
	require.NoError(t, Verify(k))
}
