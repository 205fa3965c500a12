package codegen_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
)

// TestOldGPUsAreRefused holds that a GPU older than lowering knows is an error that
// names it.
func TestOldGPUsAreRefused(t *testing.T) {
	prog, _ := defaultProgram(t, "gemm", "a100")
	gpu, err := target.Lookup("v100")
	require.NoError(t, err)
	_, err = codegen.Compile(prog, gpu, codegen.Options{})
	require.ErrorIs(t, err, codegen.ErrUnsupported)
	require.ErrorContains(t, err, "7.0: not supported: want 7.5 or newer")
}
