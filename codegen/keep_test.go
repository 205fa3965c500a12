package codegen_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
)

// twice is a program that goes over the columns of x twice, N of them at most.
const twice = `kernel @twice(%%x: view<f32>[R, N], %%y: view<f32>[R, N]) {
  assume stride(%%x, 1) = 1
  assume stride(%%y, 1) = 1
  %s
  over %%i: R
  hints warps=4
  %%n = dim %%x axis=1
  %%zero = const 0 : i32
  %%bn = const 1024 : i32
  %%none = const 0 : <1x1024xf32>
  %%sums = for %%c = %%zero to %%n step %%bn carry (%%s = %%none) : <1x1024xf32> {
    %%t = load %%x[%%i, %%c] : <1x1024xf32>
    %%u = mul %%t, %%t : <1x1024xf32>
    %%next = add %%s, %%u : <1x1024xf32>
    yield %%next
  }
  %%sum = reduce add %%sums axis=1 : <1xf32>
  for %%d = %%zero to %%n step %%bn {
    %%v = load %s[%%i, %%d] : <1x1024xf32>
    %%w = mul %%v, %%v : <1x1024xf32>
    %%e = expand %%sum axis=1 : <1x1xf32>
    %%b = broadcast %%e : <1x1024xf32>
    %%r = sub %%w, %%b : <1x1024xf32>
    store %%y[%%i, %%d] = %%r
    yield
  }
}
`

// TestTilesLoadedTwiceAreKept holds that what two loops over the same columns compute alike
// is kept in shared memory, where it fits, is known to be bounded, and is not overwritten.
func TestTilesLoadedTwiceAreKept(t *testing.T) {
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	for _, tt := range []struct {
		assume, again, step string
		loads               int
	}{
		{"assume dim(%x, 1) in 1 .. 8192", "%x", "1024", 1},
		{"assume dim(%x, 1) in 1 .. 40960", "%x", "1024", 1},
		{"assume dim(%x, 1) in 1 .. 65536", "%x", "1024", 2}, // 256 KiB
		{"assume stride(%x, 0) % 4 = 0", "%x", "1024", 2},    // any number of columns
		{"assume dim(%x, 1) in 1 .. 8192", "%y", "1024", 2},  // another view, that the loop writes
		{"assume dim(%x, 1) in 1 .. 32768", "%x", "128", 1},
		{"assume dim(%x, 1) in 1 .. 32768", "%x", "64", 2}, // more buffers than a ring has
	} {
		text := strings.ReplaceAll(fmt.Sprintf(twice, tt.assume, tt.again), "1024", tt.step)
		prog, err := ir.Parse("twice.tile", []byte(text))
		require.NoError(t, err)
		var staged string
		_, err = codegen.Compile(prog, gpu, codegen.Options{Verify: true, Dump: func(_, pass, text string) {
			if pass == "layouts" {
				staged = text
			}
		}})
		require.NoError(t, err)
		require.Equal(t, tt.loads, strings.Count(staged, "load %"), "%s, %s", tt.assume, tt.again)
		require.Equal(t, tt.loads == 1, strings.Contains(staged, "write %"))
	}
}
