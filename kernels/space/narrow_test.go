package space_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/space"
)

// The last parameter of a product is not tried value by value, and a traversal ends with its
// context.
func TestProductOfThree(t *testing.T) {
	const most, product = 1000, 30030
	s := &space.Space{Constraints: []space.Constraint{{Name: "product", Expr: "a*b*c == 30030"}}}
	for _, name := range []string{"a", "b", "c"} {
		p := space.Param{Name: name}
		for v := range most {
			p.Values = append(p.Values, v+1)
		}
		s.Params = append(s.Params, p)
	}
	want := int64(0)
	for a := 1; a <= most; a++ {
		for b := 1; b <= most; b++ {
			if product%(a*b) == 0 && product/(a*b) <= most {
				want++
			}
		}
	}
	b, err := s.Bind(nil)
	require.NoError(t, err)
	counts := b.Count()
	require.Equal(t, want, counts.Valid)
	require.Equal(t, counts.Total, counts.Valid+counts.Removed[0].Count)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := b.Until(ctx).Count()
	require.Less(t, ended.Valid+ended.Removed[0].Count, counts.Total/2)
}
