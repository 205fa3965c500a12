package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

// TestMemberRoundTrip checks that a member prints as it was read.
func TestMemberRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[xyzwrgba]|[bh][0-7]{1,4}").Draw(t, "text")
		m, ok := parseMember(text)
		require.True(t, ok)
		require.NotZero(t, m)
		require.Equal(t, text, m.String())
	})
}

func TestMember(t *testing.T) {
	for text, component := range map[string]int{"x": 0, "g": 1, "b": 2, "a": 3, "b0": -1, "h3": -1} {
		m, ok := parseMember(text)
		require.True(t, ok, text)
		require.Equal(t, component, m.Component(), text)
	}
	require.Equal(t, -1, Member(0).Component())
	require.Equal(t, -1, unified.Component())
	require.Equal(t, "unified", unified.String())
	for _, text := range []string{"", "q", "xy", "b8", "b01234", "x0", "unified"} {
		_, ok := parseMember(text)
		require.False(t, ok, text)
	}
}
