package family

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/target"
)

// TestChoiceThatTheGPUHasNothingOf: what is wrong is said even where no option is right.
func TestChoiceThatTheGPUHasNothingOf(t *testing.T) {
	gpu, err := target.Lookup("a100")
	require.NoError(t, err)
	f := Flag{Name: "type", Kind: Choice, Options: []Option{{Name: "fp8", Since: target.CC{Major: 9}}, {Name: "fp4", Since: target.CC{Major: 10}}}}
	_, err = f.check("fp8", gpu)
	require.EqualError(t, err, "--type fp8: needs compute capability 9.0 and "+gpu.Name+" has 8.0, want another GPU: it has none of fp8 or fp4")
}
