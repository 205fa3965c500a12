package eval_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir/eval"
	"github.com/kgen-dev/kgen/ir/irtest"
)

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../testdata/tile/run/*.tile")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			e, err := irtest.ReadExample(file)
			require.NoError(t, err)
			args, err := e.Args()
			require.NoError(t, err)
			err = eval.Run(context.Background(), e.Prog, args, eval.Options{})
			if e.Fails != "" {
				require.ErrorContains(t, err, e.Fails)
				return
			}
			require.NoError(t, err)
			for i, p := range e.Prog.Params {
				want, err := e.Want(p)
				require.NoError(t, err)
				if want != nil {
					requireSame(t, p.Name, want, args[i].Tensor)
				}
			}
		})
	}
}

// requireSame compares elements: numbers by value and sign, any NaN with any.
func requireSame(t testing.TB, name string, want, got *eval.Tensor) {
	if bytes.Equal(want.Data, got.Data) {
		return
	}
	for i := range want.Len() {
		w, g := want.Float(i), got.Float(i)
		if math.Float64bits(w) != math.Float64bits(g) && !(w != w && g != g) {
			t.Errorf("%s, element %d: %v: want %v", name, i, g, w)
		}
	}
}

// readAll returns the contents of the files that match.
func readAll(t testing.TB, pattern string) []string {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []string
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		out = append(out, string(src))
	}
	return out
}
