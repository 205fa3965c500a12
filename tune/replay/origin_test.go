package replay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/replay"
)

// What a file says of its times counts wherever it stands, and a word that times cannot
// have is refused.
func TestOrigin(t *testing.T) {
	const (
		cache = `"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 2}}`
		t4    = `"results": [{"configuration": {"a": 1}, "times": {"runtimes": [2]}}]`
		csv   = "a,status,mean_ms,provenance,gpu\n"
	)
	for name, tt := range map[string]struct {
		text, gpu string
		from      bench.Provenance
		err       string
	}{
		"before":            {`{"device_name": "G", "time_provenance": "predicted", ` + cache + `}`, "G", bench.Predicted, ""},
		"behind":            {`{` + cache + `, "device_name": "G", "time_provenance": "predicted"}`, "G", bench.Predicted, ""},
		"T4's behind":       {`{` + t4 + `, "metadata": {"gpu": "G", "provenance": "Predicted"}}`, "G", bench.Predicted, ""},
		"no word":           {`{` + cache + `, "time_provenance": 7}`, "", 0, ""},
		"cut":               {`{"metadata": {"provenance": "predicted"}, ` + strings.TrimSuffix(t4, "]") + `, {"conf`, "", bench.Predicted, ""},
		"counted":           {`{"metadata": {"provenance": "counted"}, ` + t4 + `}`, "", 0, `provenance "counted": want measured or predicted`},
		"unknown":           {`{"time_provenance": "guess", ` + cache + `}`, "", 0, `time_provenance "guess": want measured or predicted`},
		"a line's":          {csv + "1,ok,2,predicted,G\n", "G", bench.Predicted, ""},
		"a line's, empty":   {csv + "1,ok,2,,\n", "", 0, ""},
		"a line's, unknown": {csv + "1,ok,2,measured,G\n2,ok,2,guess,G\n", "", 0, `line 3: provenance "guess": want measured or predicted`},
		"two GPUs":          {csv + "1,ok,2,,G\n2,ok,2,,H\n", "", 0, `line 3: gpu "H", and "G" in a line before`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := replay.Read(t.Context(), strings.NewReader(tt.text))
			if tt.err != "" {
				require.ErrorIs(t, err, replay.ErrFormat)
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.gpu, s.Device)
			require.Equal(t, tt.from, s.Entries[0].From)
		})
	}
}
