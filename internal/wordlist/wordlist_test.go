package wordlist

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOr(t *testing.T) {
	for n, want := range []string{"", "a", "a or b", "a, b or c", "a, b, c or d"} {
		require.Equal(t, want, Or(strings.Fields("a b c d")[:n]))
	}
}
