package vm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
)

// TestTargetsAndGPUs holds which GPU runs what.
func TestTargetsAndGPUs(t *testing.T) {
	for _, c := range []struct {
		gpu, arch string
		runs      bool
	}{
		{"a100", "sm_80", true},
		{"a100", "sm_75", true},
		{"a100", "sm_86", false},
		{"t4", "sm_80", false},
		{"h100", "sm_90a", true},
		{"h100", "sm_90", true},
		{"a100", "sm_90a", false},
		{"b200", "sm_90a", false},
		{"b200", "sm_90", true},
		{"b200", "sm_100f", true},
		{"rtx5090", "sm_100f", false},
	} {
		g, err := target.Lookup(c.gpu)
		require.NoError(t, err)
		d, err := New(Options{GPU: g})
		require.NoError(t, err)
		got, err := d.gpuFor(&ptx.Module{File: "x.ptx", Targets: []string{c.arch}})
		if c.runs {
			require.NoError(t, err, "%s on %s", c.arch, c.gpu)
			require.Equal(t, g, got)
		} else {
			require.ErrorContains(t, err, "target "+c.arch+": ", "%s on %s", c.arch, c.gpu)
		}
	}
}
