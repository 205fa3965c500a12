package tune

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels"
)

// Every call that the example of docs/launch.md makes of the driver is what the
// description of its kernel says.
func TestLaunchExample(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++")
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "launch.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```cpp\n")
	require.True(t, found)
	code, _, found := strings.Cut(rest, "```")
	require.True(t, found)

	f, err := kernels.Family("gemm")
	require.NoError(t, err)
	gpu, err := target.Lookup("h100")
	require.NoError(t, err)
	p, err := f.Problem(nil, gpu)
	require.NoError(t, err)
	dir := t.TempDir()
	d := described(t, dir, f, p, gpu, nil)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "gemm.cpp"), []byte(code), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gemm.cubin"), []byte("the cubin\x00"), 0o666))
	include, err := filepath.Abs(filepath.Join("..", "bench", "cuda", "include"))
	require.NoError(t, err)
	driver, err := filepath.Abs(filepath.Join("testdata", "launch", "driver.cpp"))
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", include, "gemm.cpp", driver, "-o", "gemm")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	run := exec.CommandContext(t.Context(), filepath.Join(dir, "gemm"))
	run.Dir = dir
	run.Env = append(os.Environ(), "PARAM_BYTES="+paramBytes(&d.Launches[0]))
	out, err = run.Output()
	require.NoError(t, err)
	require.Equal(t, strings.Join(calls(t, d), "\n")+"\n", string(out))
}

func paramBytes(l *launchfile.Launch) string {
	var all []string
	for _, p := range l.Params {
		all = append(all, strconv.Itoa(p.Bytes))
	}
	return strings.Join(all, " ")
}

// calls are the lines that the driver in testdata/launch writes for a description of one
// launch.
func calls(t *testing.T, d *launchfile.File) []string {
	t.Helper()
	require.Len(t, d.Launches, 1)
	require.Empty(t, d.Workspace)
	l := d.Launches[0]
	const maxDynamicShared = 8 // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	lines := []string{"load the cubin", "kernel " + l.Kernel, fmt.Sprintf("attribute %d %d", maxDynamicShared, l.MaxDynamicShared)}
	address := map[string]int{}
	for i, x := range d.Tensors {
		address[x.Name] = (i + 1) << 32
		lines = append(lines, fmt.Sprintf("memory %x %d", address[x.Name], x.Bytes))
	}
	var params []string
	maps := 0
	for _, p := range l.Params {
		if p.Kind == launchfile.Size {
			params = append(params, "param "+string(p.Value))
			continue
		}
		require.Equal(t, launchfile.TensorMap, p.Kind)
		maps++
		params = append(params, fmt.Sprintf("param %d", maps))
		m := p.Map
		// The numbers of cuda.h.
		kind, ok := map[string]int{"bf16": 9}[m.Type]
		require.True(t, ok, m.Type)
		swizzle := map[int]int{0: 0, 32: 1, 64: 2, 128: 3}[m.Swizzle]
		promotion := map[int]int{256: 3}[m.L2Promotion]
		fill := map[string]int{"zero": 0}[m.Fill]
		lines = append(lines, fmt.Sprintf("map %d at %x type %d %d %d %d %d interleave %d swizzle %d promotion %d fill %d",
			maps, address[p.Of], kind, m.Dims, m.Strides, m.Box, m.ElementStrides, m.Interleave, swizzle, promotion, fill))
	}
	attributes := 0
	if l.Early {
		attributes = 1
	}
	lines = append(lines, fmt.Sprintf("launch %d %d %d by %d %d %d shared %d attributes %d",
		l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2], l.DynamicShared, attributes))
	return append(lines, params...)
}
