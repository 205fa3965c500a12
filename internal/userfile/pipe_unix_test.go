//go:build unix

package userfile_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/internal/userfile"
)

// A pipe that nobody writes to is refused, and not waited for.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o666))
	_, err := userfile.Open(name)
	require.ErrorContains(t, err, "pipe: a folder, pipe or device: want a file")
}
