//go:build cgo && (linux || darwin)

package nvrtc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake builds testdata/fake.c as a library in a folder of its own.
func fake(t *testing.T, flags ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "libnvrtc.so.11.2")
	out, err := exec.CommandContext(t.Context(), "cc", append(flags, "-shared", "-fPIC", "-o", path, "testdata/fake.c")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func TestOldNVRTC(t *testing.T) {
	path := fake(t)
	c, err := Find(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, path, c.Path())
	require.Equal(t, []int{35, 70, 80}, c.Archs())

	r, err := c.Compile(t.Context(), Source{Name: "x.cu"}, Options{Arch: "sm_80"})
	require.NoError(t, err)
	require.Equal(t, &Result{PTX: []byte("fake")}, r)

	_, err = c.Compile(t.Context(), Source{Name: "x.cu"}, Options{Arch: "sm_90a"})
	require.EqualError(t, err, "architecture not supported: NVRTC 11.2 does not compile for sm_90a: it is too old, sm_80 is its newest: want a newer CUDA toolkit")
	_, err = c.Compile(t.Context(), Source{Name: "x.cu"}, Options{Arch: "compute_75"})
	require.ErrorContains(t, err, "does not compile for compute_75: it knows [35 70 80]")

	_, err = c.Compile(t.Context(), Source{Name: "x.cu", Text: "no program"}, Options{Arch: "sm_80"})
	require.EqualError(t, err, "nvrtcCreateProgram: NVRTC_ERROR (1)")
	_, err = c.Compile(t.Context(), Source{Name: "x.cu"}, Options{Arch: "sm_80", Flags: []string{"--crash"}})
	require.EqualError(t, err, "compiling x.cu for sm_80: nvrtcCompileProgram: NVRTC_ERROR_INTERNAL_ERROR (11)")
}

// What an NVRTC says of its sizes is no reason to take that much memory.
func TestSizesAreBounded(t *testing.T) {
	for flag, want := range map[string]string{
		"-DLOG_SIZE=1099511627776ull": "it states 1099511627776 bytes: want at most 67108864",
		"-DPTX_SIZE=1099511627776ull": "it states 1099511627776 bytes: want at most 1073741824",
		"-DLOG_SIZE=-1":               "it states 18446744073709551615 bytes",
	} {
		c, err := open(fake(t, flag))
		require.NoError(t, err)
		_, err = c.Compile(t.Context(), Source{Name: "x.cu"}, Options{Arch: "sm_80"})
		require.ErrorContains(t, err, want)
	}
	_, err := open(fake(t, "-DMANY_ARCHS"))
	require.ErrorContains(t, err, "1073741824 architectures: want at most 1024")
}

// One that hangs and cannot be cancelled is left behind.
func TestHangingNVRTC(t *testing.T) {
	c, err := open(fake(t))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Compile(ctx, Source{Name: "x.cu"}, Options{Arch: "sm_80", Flags: []string{"--hang"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestNVRTCThatCannotBeUsed(t *testing.T) {
	_, err := openLibrary(fake(t, "-DWITHOUT_CUBIN"))
	require.ErrorContains(t, err, "has no symbol nvrtcGetCUBINSize: want NVRTC 11.1 or newer")

	path := filepath.Join(t.TempDir(), "libnvrtc.so.13")
	require.NoError(t, os.WriteFile(path, []byte("no library"), 0o644))
	_, err = openLibrary(path)
	require.ErrorContains(t, err, "loading "+path)
}
