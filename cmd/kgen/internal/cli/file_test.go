package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	require.NoError(t, writeFile("-o", file, []byte("one")))
	require.NoError(t, writeFile("-o", file, []byte("two")))
	require.Equal(t, "two", string(must(os.ReadFile(file))))

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, writeFile("-o", link, []byte("three")))
	require.Equal(t, "three", string(must(os.ReadFile(file))), "a link is followed, not replaced")

	require.NoError(t, checkOutput("-o", file))
	require.NoError(t, checkOutput("-o", link))
	require.NoError(t, checkOutput("-o", filepath.Join(dir, "new")))
	require.NoError(t, checkOutput("-o", os.DevNull))
	for name, want := range map[string]string{
		dir:                            "a folder: want a file",
		filepath.Join(dir, "no", "b"):  "no folder " + filepath.Join(dir, "no"),
		filepath.Join(file, "b"):       file + " is a file: want a folder",
		filepath.Join(file, "no", "b"): file + " is a file: want a folder",
	} {
		require.EqualError(t, checkOutput("-o", name), "-o "+name+": "+want)
		require.Equal(t, exitUsage, exitCode(checkOutput("-o", name)))
		require.ErrorContains(t, writeFile("-o", name, nil), "-o "+name+": ")
	}

	entries := must(os.ReadDir(dir))
	require.Len(t, entries, 2, "nothing is left behind")
}

// Where the folder cannot be written to, the machine is at fault and nothing
// is left.
func TestWriteFileRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	require.Equal(t, exitFailed, exitCode(checkOutput("-o", filepath.Join(dir, "a"))))
	require.Equal(t, exitFailed, exitCode(writeFile("-o", filepath.Join(dir, "a"), nil)))
	require.Empty(t, must(os.ReadDir(dir)))
}

func TestParseBlocks(t *testing.T) {
	require.Equal(t, [][3]uint32{{0}, {17}, {3, 2}, {1, 2, 3}}, must(parseBlocks("0, 17,3:2,1:2:3")))
	require.Nil(t, must(parseBlocks("")))
	for _, bad := range []string{",", "0,", "a", "1:2:3:4", "-1", "4294967296", "1,1:0", "1:", strings.Repeat(":", 9)} {
		_, err := parseBlocks(bad)
		require.Error(t, err, bad)
	}
}

// A profile redirected by PowerShell is UTF-16; whoever reads it as CSV finds no table.
func TestImportNamesUTF16(t *testing.T) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		file := filepath.Join(t.TempDir(), "p.csv")
		require.NoError(t, os.WriteFile(file, []byte(mark+"\"\x00I\x00"), 0o600))
		_, err := (&importFlags{}).readImport(file)
		require.EqualError(t, err, file+":1: UTF-16, as PowerShell's > writes: want UTF-8")
	}
}
