package codegen_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
)

// TestBlocksComputeTheirPoints runs each block of a grid alone: it writes to the tile that
// the plan says, whatever the raster.
func TestBlocksComputeTheirPoints(t *testing.T) {
	ctx := context.Background()
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	for _, test := range []struct {
		order      string
		rows, cols int
	}{
		{"grouped 4", 9, 5}, {"hilbert 4", 9, 10}, {"hilbert 4", 8, 8}, {"hilbert 8", 8, 3},
		{"hilbert 4", 3, 9}, {"hilbert 2", 5, 7}, {"hilbert 4, reversed 0, reversed 1", 10, 9}, {"hilbert 1", 3, 4},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			t.Parallel()
			prog, err := ir.Parse("raster.tile", []byte(fmt.Sprintf(`
kernel @raster(%%c: view<i32>[R, C]) {
  over %%i: R, %%j: C
  order %s
  %%one = const 1 : <1x1xi32>
  store %%c[%%i, %%j] = %%one
}`, test.order)))
			require.NoError(t, err)
			c, err := codegen.Compile(prog, gpu, codegen.Options{Verify: true})
			require.NoError(t, err)
			text, err := c.PTX()
			require.NoError(t, err)
			rows, cols := int64(test.rows), int64(test.cols)
			plan, err := c.Plan([]codegen.Argument{{Dims: []int64{rows, cols}, Strides: []int64{cols, 1}}})
			require.NoError(t, err)
			dev, err := vm.New(vm.Options{GPU: gpu})
			require.NoError(t, err)
			defer dev.Close()
			m, err := dev.Load(ctx, "kernel.ptx", []byte(text))
			require.NoError(t, err)
			b, err := dev.Alloc(4*rows*cols, 0)
			require.NoError(t, err)
			for i := range test.rows {
				for j := range test.cols {
					got, want := make([]byte, 4*rows*cols), make([]byte, 4*rows*cols)
					require.NoError(t, dev.Write(b, 0, got))
					_, err := bench.RunPlan(ctx, dev, m, plan, []bench.Buffer{b}, [][][]int{{{i, j}}})
					require.NoError(t, err)
					require.NoError(t, dev.Read(b, 0, got))
					want[4*(i*test.cols+j)] = 1
					require.Equal(t, want, got, "%d %d", i, j)
				}
			}
		})
	}
}
