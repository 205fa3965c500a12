package ptx

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	wordLike   = regexp.MustCompile(`^[.%]?[A-Za-z_$][\w$]*$`)
	numberLike = regexp.MustCompile(`^[0-9]`)
)

// alike is the kind of a token: one is put in place of another of its kind.
func alike(token string) string {
	switch {
	case strings.TrimSpace(token) == "", strings.HasPrefix(token, "//"), strings.HasPrefix(token, "/*"):
		return ""
	case wordLike.MatchString(token) && token[0] == '.':
		return "."
	case wordLike.MatchString(token) && token[0] == '%':
		return "%"
	case wordLike.MatchString(token):
		return "word"
	case numberLike.MatchString(token):
		return "number"
	}
	return token
}

// change makes one change to a module's tokens.
func change(rng *rand.Rand, tokens []string) string {
	tokens = slices.Clone(tokens)
	for {
		i := rng.Intn(len(tokens))
		kind := alike(tokens[i])
		if kind == "" || i < 20 {
			continue
		}
		switch rng.Intn(6) {
		case 0:
			tokens[i] = ""
		case 1:
			tokens[i] += " " + tokens[i]
		default:
			for range 100 {
				if j := rng.Intn(len(tokens)); alike(tokens[j]) == kind && tokens[j] != tokens[i] {
					tokens[i] = tokens[j]
					return strings.Join(tokens, "")
				}
			}
		}
		return strings.Join(tokens, "")
	}
}

// Whole modules with one change each: ptxas takes those that Load takes, nearly.
// KGEN_SAMPLES says how many of each.
func TestChangedModulesAgainstPtxas(t *testing.T) {
	t.Parallel()
	tool := ptxas(t)
	rng := rand.New(rand.NewSource(7))
	times := 1
	if n, err := strconv.Atoi(os.Getenv("KGEN_SAMPLES")); err == nil {
		times = n
	}
	newest := knownTo(t, tool)
	all := corpus(t)
	total, differ := 0, []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m, err := Load(name, all[name])
		if err != nil || len(all[name]) > 12_000 || newest.Less(m.Version) || strings.HasPrefix(name, "testdata/") {
			continue
		}
		tokens := anyToken.FindAllString(string(all[name]), -1)
		for range times {
			text := change(rng, tokens)
			file := filepath.Join(t.TempDir(), "m.ptx")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			out, err := exec.CommandContext(ctx, tool, "-O0", "-arch", m.Targets[0], file, "-o", os.DevNull).CombinedOutput()
			cancel()
			_, ours := Load("m.ptx", []byte(text))
			if total++; (err == nil) != (ours == nil) {
				differ = append(differ, fmt.Sprintf("%s: ours: %.200v; ptxas: %.200s", name, ours, out))
			}
		}
	}
	t.Logf("%d of %d differ: %s", len(differ), total, strings.Join(differ, "\n"))
	require.Greater(t, total, 15)
	require.LessOrEqual(t, len(differ), 1+total/50, "one in fifty")
}
