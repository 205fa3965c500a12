package atomicfile_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/atomicfile"
)

// What a killed process left goes with the next file written beside it; what another
// process is writing stays.
func TestLeftoversGo(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".new-0123abcd", ".new-99", ".new-notes", "new-0123abcd"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".new-0123abce"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".new-0000beef"), nil, 0o600)) // begun this moment
	within := atomicfile.File{Path: filepath.Join(dir, "a"), Write: func(w io.Writer) error {
		for _, name := range names(t, dir) { // as if writing took long
			require.NoError(t, os.Chtimes(filepath.Join(dir, name), old, old))
		}
		return atomicfile.Write(atomicfile.Bytes(filepath.Join(dir, "b"), []byte("b")))
	}}
	require.NoError(t, atomicfile.Write(within))
	require.Equal(t, []string{".new-0123abce", ".new-notes", "a", "b", "new-0123abcd"}, names(t, dir))
}
