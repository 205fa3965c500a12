package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/atomicfile"
)

// names lists what lies in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("old"), 0o600))
	require.NoError(t, atomicfile.Write(atomicfile.Bytes(a, []byte("new")), atomicfile.Bytes(b, nil)))
	require.Equal(t, "new", read(t, a))
	require.Empty(t, read(t, b))
	require.Equal(t, []string{"a", "b"}, names(t, dir))
}

// One that fails half way, as on a full disk, leaves every file as it was and
// nothing beside them.
func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("old"), 0o600))
	full := errors.New("no space left on device")
	half := func(w io.Writer) error {
		_, err := w.Write([]byte(strings.Repeat("x", 1<<20)))
		return errors.Join(err, &fs.PathError{Op: "write", Path: "/somewhere/else", Err: full})
	}
	err := atomicfile.Write(atomicfile.Bytes(a, []byte("new")), atomicfile.File{Path: b, Write: half})
	require.ErrorIs(t, err, full)
	require.EqualError(t, err, "write "+b+": no space left on device")
	require.Equal(t, "old", read(t, a))
	require.Equal(t, []string{"a"}, names(t, dir))
}

func TestErrorNamesTheCallersPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{filepath.Join(dir, "absent", "x"), filepath.Join(file, "x"), dir} {
		err := atomicfile.Write(atomicfile.Bytes(path, []byte("x")))
		var p *fs.PathError
		require.ErrorAs(t, err, &p)
		require.Equal(t, path, p.Path)
		require.NotContains(t, err.Error(), atomicfile.Unfinished)
	}
	require.Equal(t, []string{"file"}, names(t, dir))
}

func TestDeviceIsWrittenAsItIs(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	require.NoError(t, atomicfile.Write(atomicfile.Bytes(os.DevNull, []byte("x"))))
	require.ErrorContains(t, atomicfile.Write(atomicfile.Bytes("/dev/full", []byte("x"))), "write /dev/full: no space left")
}
