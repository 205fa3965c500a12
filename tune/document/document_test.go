package document_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/tune/document"
)

// TestWriteTable: the words before the mark stay, the old table goes, and a file without a
// mark is left as it is.
func TestWriteTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "score.md")
	require.NoError(t, os.WriteFile(file, []byte("# Words\n<!-- written by make score -->\n| old |\n| rows |\n"), 0o644))
	require.NoError(t, document.WriteTable(file, "score", []byte("| new |\n")))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "# Words\n<!-- written by make score -->\n| new |\n", string(text))
	require.ErrorContains(t, document.WriteTable(file, "other", []byte("x")), `want a line "<!-- written by make other -->" before the table`)
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, again)
}
