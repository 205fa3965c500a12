package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// TestStoresOfF32WithoutConflicts: an accumulator of f32 goes to swizzled atoms of any width
// without bank conflicts, by selects in the threads that hold it alone.
func TestStoresOfF32WithoutConflicts(t *testing.T) {
	for _, columns := range []int{8, 16, 32} {
		slices := storeSlices(ir.TileOf(ir.F32, 64, columns))
		require.Len(t, slices, 1)
		s := slices[0].shared
		lay, err := layout.MMAAccumulator(s.Shape(), 1, 1)
		require.NoError(t, err)
		stored := quieter(s, lay)
		traffic, ok := s.VectorTraffic(stored, 16)
		require.True(t, ok)
		require.Equal(t, traffic.Ideal, traffic.Actual, "%d columns", columns)
		require.Equal(t, columns/4, traffic.Instructions, "stores of 8 bytes, %d columns", columns)
		if stored != lay {
			require.Zero(t, layout.Convert(lay, stored).Exchange.Shuffles(32))
		}
	}
}
