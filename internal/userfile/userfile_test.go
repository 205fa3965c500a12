package userfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/internal/userfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(name, []byte("12345"), 0o666))
	text, err := userfile.Read(name, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(text))

	var path *fs.PathError
	_, err = userfile.Read(name, 4)
	require.ErrorAs(t, err, &path)
	require.ErrorContains(t, err, "f: more than 4 bytes")
	_, err = userfile.Read(dir, 4)
	require.ErrorAs(t, err, &path)
	require.ErrorContains(t, err, "a folder, pipe or device: want a file")
	_, err = userfile.Read(filepath.Join(dir, "none"), 4)
	require.ErrorIs(t, err, fs.ErrNotExist)
	if runtime.GOOS == "linux" {
		_, err = userfile.Read("/dev/zero", 4)
		require.ErrorContains(t, err, "/dev/zero: a folder, pipe or device: want a file")
	}
}
