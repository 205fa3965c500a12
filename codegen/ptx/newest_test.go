package ptx

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const newestHead = `
.address_size 64
.global .align 128 .b8 g[1024];
.visible .entry k(.param .u64 p) {
.reg .pred p<10>; .reg .b8 c<10>; .reg .b16 h<10>; .reg .b32 r<300>; .reg .b64 d<40>; .reg .f32 f<10>; .reg .f64 fd<10>; .reg .b128 q<10>;
.shared .align 128 .b8 s[1024];
`

// Instructions of the newest versions are taken where ptxas takes them, and
// print back as they were.
func TestNewest(t *testing.T) {
	data, err := os.ReadFile("testdata/newest.txt")
	require.NoError(t, err)
	names := strings.Fields("75 80 89 90 90a 100 100a 100f 103 103a 103f 107 107a 107f 110 110a 110f 120 120a 120f 121a 121f")
	n := 0
	for line := range strings.Lines(string(data)) {
		if line[0] == '#' {
			continue
		}
		n++
		i := strings.Index(line, ": ")
		where, text := strings.Fields(line[:i]), strings.TrimSpace(line[i+2:])
		taken := where[1:]
		if len(taken) == 1 && strings.HasSuffix(taken[0], "+") {
			taken = names[slices.Index(names, strings.TrimSuffix(taken[0], "+")):]
		}
		for _, name := range names {
			m, err := loadNewest("9.4", name, text)
			if !slices.Contains(taken, name) {
				assert.Error(t, err, "sm_%s: %s", name, text)
				continue
			}
			require.NoError(t, err, "sm_%s: %s", name, text)
			var first, second bytes.Buffer
			require.NoError(t, Print(&first, m))
			again, err := Load("again.ptx", first.Bytes())
			require.NoError(t, err)
			require.NoError(t, Print(&second, again))
			require.Equal(t, first.String(), second.String())
			require.Contains(t, strings.ReplaceAll(first.String(), " ", ""), strings.ReplaceAll(text, " ", ""))
		}
		// The least version is that of the first target which is older than PTX 9.4.
		for _, name := range taken {
			if strings.HasPrefix(name, "107") {
				continue
			}
			_, err := loadNewest(where[0], name, text)
			require.NoError(t, err, "PTX %s: %s", where[0], text)
			v := Version{int(where[0][0] - '0'), int(where[0][2] - '0')}
			_, err = loadNewest(previous(v).String(), name, text)
			require.Error(t, err, "before PTX %s: %s", where[0], text)
			break
		}
	}
	require.Greater(t, n, 150)
}

func loadNewest(version, target, text string) (*Module, error) {
	return Load("newest.ptx", []byte(".version "+version+"\n.target sm_"+target+newestHead+text+"\nret;\n}\n"))
}
