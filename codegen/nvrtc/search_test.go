package nvrtc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree makes empty files, executable ones where the folder is bin.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		mode := os.FileMode(0o644)
		if filepath.Base(filepath.Dir(path)) == "bin" {
			mode = 0o755
		}
		require.NoError(t, os.WriteFile(path, nil, mode))
	}
	return root
}

func TestSearchOrder(t *testing.T) {
	t.Setenv(ToolchainEnv, "/a")
	t.Setenv("CUDA_HOME", "/b")
	t.Setenv("CUDA_PATH", "/c")
	require.Equal(t, []string{"/a", "/b", "/c", "/usr/local/cuda"}, SearchDirs())

	t.Setenv(ToolchainEnv, "")
	t.Setenv("CUDA_PATH", "")
	exe, err := os.Executable()
	require.NoError(t, err)
	exe, err = filepath.EvalSymlinks(exe)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(filepath.Dir(exe), "..", ".toolchain"), "/b", "/usr/local/cuda"}, SearchDirs())
}

func TestLibraryPathsAreNewestFirst(t *testing.T) {
	root := tree(t,
		"lib64/libnvrtc.so", "lib64/libnvrtc.so.12", "lib64/libnvrtc.so.12.9.86", "lib64/libnvrtc.so.12.10.1",
		"lib64/libnvrtc-builtins.so.12.9", "lib64/libnvrtc.alt.so.12",
		"nvidia/cu13/lib/libnvrtc.so.13")
	var got []string
	for _, path := range libraryPaths([]string{"/nonexistent", root}) {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsAbs(path) {
			got = append(got, rel)
		}
	}
	require.Equal(t, []string{
		"lib64/libnvrtc.so.12.10.1", "lib64/libnvrtc.so.12.9.86", "lib64/libnvrtc.so.12", "lib64/libnvrtc.so",
		"nvidia/cu13/lib/libnvrtc.so.13",
	}, got)
}

func TestSearchDirWithGlobCharacters(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cu[da]*")
	require.NoError(t, os.MkdirAll(root, 0o755))
	path := filepath.Join(root, "libnvrtc.so.13")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	require.Contains(t, libraryPaths([]string{root}), path)
}

func TestToolPath(t *testing.T) {
	root := tree(t, "nvidia/cu13/bin/ptxas", "docs/nvdisasm")
	t.Setenv("PATH", "")
	require.Equal(t, filepath.Join(root, "nvidia/cu13/bin/ptxas"), toolPath([]string{root}, "ptxas"))
	require.Empty(t, toolPath([]string{filepath.Join(root, "docs")}, "nvdisasm"), "not executable")
	require.Empty(t, toolPath([]string{root}, "bin"), "a folder")
	t.Setenv("PATH", "relative:"+filepath.Join(root, "nvidia/cu13/bin"))
	require.Equal(t, filepath.Join(root, "nvidia/cu13/bin/ptxas"), toolPath(nil, "ptxas"))
}

func TestMissingToolSaysWhereItLooked(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv(ToolchainEnv, "/nonexistent")
	t.Setenv("CUDA_HOME", "/nonexistent/too")
	t.Setenv("CUDA_PATH", "")
	_, err := FindNvdisasm("")
	if err == nil {
		t.Skip("nvdisasm is in /usr/local/cuda")
	}
	require.ErrorIs(t, err, ErrUnavailable)
	require.EqualError(t, err, "nvdisasm unavailable: not in /nonexistent, /nonexistent/too, /usr/local/cuda or on PATH")
}

// What to do without a toolchain names what is set and missing.
func TestRemedy(t *testing.T) {
	dir := t.TempDir()
	absent := filepath.Join(dir, "absent")
	for set, want := range map[string]string{
		absent: "KGEN_TOOLCHAIN is " + absent + ", which is no folder",
		dir:    "KGEN_TOOLCHAIN is " + dir + ", which lacks it",
		"":     "make toolchain",
	} {
		t.Setenv(ToolchainEnv, set)
		require.Contains(t, Remedy(ErrUnavailable), want)
		require.Equal(t, "build kgen with cgo: CGO_ENABLED=1 and a C compiler", Remedy(fmt.Errorf("NVRTC %w: %w", ErrUnavailable, ErrNoCgo)))
	}
}
