package ptx

import (
	"math/rand"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var anyToken = regexp.MustCompile(`(?s)\s+|//[^\n]*|/\*.*?\*/|"[^"\n]*"|[.%$]?[A-Za-z0-9_$]+|.`)

// disturb takes tokens out of a text, writes them twice, swaps them, and puts
// others of the same text in their place.
func disturb(rng *rand.Rand, tokens []string) string {
	tokens = slices.Clone(tokens)
	for range 1 + rng.Intn(4) {
		i, j := rng.Intn(len(tokens)), rng.Intn(len(tokens))
		switch rng.Intn(5) {
		case 0:
			tokens[i] = ""
		case 1:
			tokens[i] += tokens[i]
		case 2:
			tokens[i], tokens[j] = tokens[j], tokens[i]
		case 3:
			tokens[i] = tokens[j]
		case 4:
			tokens[i] = []string{"0", "-1", "18446744073709551615", "[", "{", "}", "!", "_", "%r0", "0f7FC00000", ".b128", "<", "@", "WARP_SZ"}[rng.Intn(14)]
		}
	}
	return strings.Join(tokens, "")
}

// Texts that were disturbed are refused with a place, or taken: then what is
// printed of them says the same again.
func TestDisturbedText(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	all := corpus(t)
	var names []string
	for name, src := range all {
		if len(src) < 12_000 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	times := 40
	if os.Getenv("KGEN_FULL") != "" {
		times = 4000
	}
	taken := 0
	for _, name := range names {
		tokens := anyToken.FindAllString(string(all[name]), -1)
		for range times {
			text := disturb(rng, tokens)
			m, err := Parse("d", []byte(text))
			if err != nil {
				require.True(t, strings.HasPrefix(err.Error(), "d:"), err)
				continue
			}
			again, err := Parse("d", []byte(m.String()))
			require.NoError(t, err, text)
			if Resolve(m) != nil || Check(m) != nil {
				continue
			}
			taken++
			require.NoError(t, Resolve(again), text)
			require.NoError(t, Check(again), text)
		}
	}
	require.Greater(t, taken, 2*len(names), "too few texts are still PTX")
	t.Logf("%d of %d are still PTX", taken, times*len(names))
}
