package codegen_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/irtest"
)

// notForThreads are examples that a GPU may do otherwise, and why.
var notForThreads = map[string]string{
	"late.tile": "a copy may read before or after a store that nothing orders with it",
}

// notSupported are examples that are refused.
var notSupported = map[string]bool{
	"roles.tile":  true,
	"packed.tile": true, // 4-bit elements in memory
}

// TestExamples compiles the programs of testdata/tile/run, runs them on the virtual
// machine, and holds the results to those in the files.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../testdata/tile/run/*.tile")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		e, err := irtest.ReadExample(file)
		require.NoError(t, err)
		if e.Fails != "" || notForThreads[filepath.Base(file)] != "" {
			continue
		}
		for _, name := range []string{"a100", "rtx5090"} {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				t.Parallel()
				gpu, err := target.Lookup(name)
				require.NoError(t, err)
				c, err := codegen.Compile(e.Prog, gpu, codegen.Options{Verify: true})
				if notSupported[filepath.Base(file)] {
					require.ErrorIs(t, err, codegen.ErrUnsupported)
					require.ErrorContains(t, err, filepath.Base(file)+":")
					return
				}
				require.NoError(t, err)
				text, err := c.PTX()
				require.NoError(t, err)
				args, err := e.Args()
				require.NoError(t, err)
				requireNoFaults(t, runOn(t, vm.Options{GPU: gpu}, c, text, args, 0))
				for i, p := range e.Prog.Params {
					want, err := e.Want(p)
					require.NoError(t, err)
					if want != nil {
						near(t, p, want, args[i].Tensor)
					}
				}
			})
		}
	}
}

// near compares an example's results, which are of functions within 4 ulps of f32 at
// most.
func near(tb testing.TB, p *ir.Value, want, got *eval.Tensor) {
	tb.Helper()
	for i := range want.Len() {
		w, g := want.Float(i), got.Float(i)
		tol := 0.0
		if want.Elem == ir.F32 {
			tol = 0x1p-21 * max(abs(w), 1)
		}
		if w != g && !(w != w && g != g) && !(abs(w-g) <= tol) {
			tb.Errorf("%s, element %d: %v: want %v", p.Name, i, g, w)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
