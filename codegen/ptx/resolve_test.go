package ptx

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResolveCorpus(t *testing.T) {
	for name, src := range corpus(t) {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			m, err := Parse(name, src)
			require.NoError(t, err)
			before := m.String()
			require.NoError(t, Resolve(m))
			require.Equal(t, before, m.String())
		})
	}
}
