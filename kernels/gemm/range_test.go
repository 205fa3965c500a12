package gemm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A product beyond the range of C's type is an infinity, as rounding has it.
func TestProductsThatOverflowTheirType(t *testing.T) {
	p := &Problem{M: 20, N: 20, K: 400, Type: "f16", Out: "f16", Layout: "nn", Act: "none", Alpha: 1500}
	d := data(t, p)
	e, err := p.Expect(d, whole(p))
	require.NoError(t, err)
	over := 0
	for i, want := range e.Want {
		if math.Abs(want) > 65520+e.Tol[i] {
			over++
		}
		d["c"].Set(want, i/p.N, i%p.N)
	}
	require.Greater(t, over, 3)
	require.Less(t, over, 100)
	require.NoError(t, d["c"].Check(whole(p), e))
}

// A product that is longer than what the reference holds at a time is all taken in, the
// odd end too.
func TestLongProducts(t *testing.T) {
	for _, layout := range []string{"nn", "tt"} {
		p := &Problem{M: 2, N: 3, K: 2*stretch + 77, Type: "f32", Out: "f32", Layout: layout, Act: "none", Alpha: 1}
		d := data(t, p)
		e, err := p.Expect(d, whole(p))
		require.NoError(t, err)
		for i, want := range e.Want {
			require.InDelta(t, want, byIndex(p, d, i/p.N, i%p.N), 1e-9)
		}
	}
}
