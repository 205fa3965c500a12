package vm_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestDescriptorBelowSharedMemory runs a warp-specialised product whose descriptors
// lack the instruction that makes their address: the matrices then begin below the
// block's shared memory, which is a fault and no panic.
func TestDescriptorBelowSharedMemory(t *testing.T) {
	from := filepath.Join(foreign, "tma_matmul_f16_ws_sm90")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	file := filepath.Join(dir, "kernel.ptx")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(slices.Delete(lines, 647, 648), "\n")), 0o644))

	r := runCase(t, filepath.Join(dir, "case.json"), vm.Options{})
	require.False(t, r.OK)
	require.True(t, slices.ContainsFunc(r.Faults, func(f bench.Fault) bool { return f.Class == bench.BadDescriptor }), "%v", r.Faults)
}
