package ptx

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// declarationSample is a line of testdata/declarations.txt: a module without
// its head, after + where Load takes it or - where it does not, and ~ where
// ptxas -c is of another mind: with several results a function has no ABI, which
// it wants there alone, and sizes overflow there.
type declarationSample struct {
	text          string
	taken, agreed bool
}

func declarationSamples(t *testing.T) []declarationSample {
	t.Helper()
	src, err := os.ReadFile("testdata/declarations.txt")
	require.NoError(t, err)
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
	var all []declarationSample
	for line := range strings.Lines(string(src)) {
		sign, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		require.True(t, ok, line)
		text = ".version 9.0\n.target sm_90\n.address_size 64\n" + unescape.Replace(text) + "\n"
		all = append(all, declarationSample{text, sign[0] == '+', !strings.HasSuffix(sign, "~")})
	}
	require.Greater(t, len(all), 200)
	return all
}

func TestDeclarations(t *testing.T) {
	for _, s := range declarationSamples(t) {
		m, err := Load("d.ptx", []byte(s.text))
		if s.taken {
			require.NoError(t, err, s.text)
			requireRoundTrip(t, mustParse(t, s.text))
			require.NotEmpty(t, m.String())
			continue
		}
		require.ErrorContains(t, err, "d.ptx:", s.text)
	}
}

func mustParse(t *testing.T, text string) *Module {
	t.Helper()
	m, err := Parse("d.ptx", []byte(text))
	require.NoError(t, err)
	return m
}

// ptxas is of the same mind about each; a part of them is asked about by
// default, all with KGEN_FULL.
func TestDeclarationsAgainstPtxas(t *testing.T) {
	t.Parallel()
	tool := ptxas(t)
	every := 12
	if os.Getenv("KGEN_FULL") != "" {
		every = 1
	}
	for i, s := range declarationSamples(t) {
		if i%every != 0 {
			continue
		}
		file := filepath.Join(t.TempDir(), "d.ptx")
		require.NoError(t, os.WriteFile(file, []byte(s.text), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, tool, "-O0", "-c", "-arch", "sm_90", file, "-o", os.DevNull).CombinedOutput()
		cancel()
		require.Equal(t, s.taken == s.agreed, err == nil, "%s\n%s", s.text, out)
	}
}
