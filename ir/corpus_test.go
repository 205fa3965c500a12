package ir_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
)

var update = flag.Bool("update", false, "rewrite the .want files beside the .tile files")

// corpus returns the .tile files of a folder of testdata/tile.
func corpus(t testing.TB, folder string) []string {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "tile", folder, "*.tile"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func read(t testing.TB, file string) []byte {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return b
}

// TestRoundtrip parses, prints, compares with the .want file and parses what was
// printed.
func TestRoundtrip(t *testing.T) {
	for _, file := range corpus(t, "roundtrip") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := ir.Parse(file, read(t, file))
			require.NoError(t, err)
			want := strings.TrimSuffix(file, ".tile") + ".want"
			if *update {
				require.NoError(t, os.WriteFile(want, []byte(p.String()), 0o666))
			}
			require.Equal(t, string(read(t, want)), p.String())
			requireRoundtrip(t, p)
		})
	}
}

// requireRoundtrip checks the law of the textual form.
func requireRoundtrip(t require.TestingT, p *ir.Program) {
	text := p.String()
	q, err := ir.Parse("printed", []byte(text))
	require.NoError(t, err, text)
	require.True(t, q.Equal(p), text)
	require.Equal(t, text, q.String())
}

var errorComment = regexp.MustCompile(`; error: (.*)`)

// TestParseErrors checks that each file of error/ is refused at the line that
// says "; error: text", with that text.
func TestParseErrors(t *testing.T) {
	for _, file := range corpus(t, "error") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, part := range strings.Split(string(read(t, file)), "\n----\n") {
				checkRefused(t, part)
			}
		})
	}
}

func checkRefused(t *testing.T, src string) {
	for i, line := range strings.Split(src, "\n") {
		m := errorComment.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		_, err := ir.Parse("x.tile", []byte(src))
		require.Error(t, err, src)
		at := regexp.MustCompile(`^x\.tile:(\d+):\d+: `).FindStringSubmatch(err.Error())
		require.NotNil(t, at, "no position in %q", err)
		require.Equal(t, i+1, atoi(at[1]), "line of %q", err)
		require.Contains(t, err.Error(), strings.TrimSpace(m[1]))
		return
	}
	t.Fatalf("no error expected in\n%s", src)
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}
