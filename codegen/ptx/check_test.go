package ptx

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckCorpus(t *testing.T) {
	for name, src := range corpus(t) {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			m, err := Parse(name, src)
			require.NoError(t, err)
			require.NoError(t, Resolve(m))
			require.NoError(t, Check(m))
			for _, d := range m.Decls {
				if f, ok := d.(*Function); ok {
					for _, in := range f.Code {
						require.NotNil(t, in.Spec)
					}
				}
			}
		})
	}
}
