package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm/mutate"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// sample judges a few of a program's mutants: none may give answers that depend on the
// timing with nothing reported.
func sample(t *testing.T, o own, by *nvrtc.Compiler, name string) {
	t.Helper()
	c, err := o.build(t.Context(), by)
	require.NoError(t, err)
	s, err := mutate.NewSubject(t.Context(), name, c, mutate.Timings(2))
	require.NoError(t, err)
	list, err := mutate.Mutants(name, c.PTX)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, uint64(len(list))))
	left := 4
	for _, i := range r.Perm(len(list)) {
		if m := &list[i]; m.Orders() && left > 0 {
			left--
			j, err := s.Judge(t.Context(), m)
			require.NoError(t, err)
			require.NotEqual(t, mutate.Survived, j.Verdict, m)
		}
	}
}

// TestOwn: our kernels are right and silent in several timings, and slips in them are
// found.
func TestOwn(t *testing.T) {
	for i, o := range ours {
		t.Run(fmt.Sprintf("%s/%d", o.name("PTX"), i), func(t *testing.T) { sample(t, o, nil, "own.ptx") })
	}
}

func TestOwnByNVRTC(t *testing.T) {
	by := nvrtctest.Compiler(t)
	for i, o := range ours {
		if i%3 == 2 {
			t.Run(fmt.Sprintf("%s/%d", o.name("NVRTC"), i), func(t *testing.T) { sample(t, o, by, "own.ptx") })
		}
	}
}

func TestReport(t *testing.T) {
	s := suite{timings: 1, orders: 3, others: 2, seed: 1, budget: 1 << 40, record: &record{}}
	require.NoError(t, programs(t.Context(), "../../testdata/ptx/foreign", regexp.MustCompile("^reverse_clean$"), s.take(t.Context())))
	var out bytes.Buffer
	s.report(&out)
	require.Regexp(t, `\| reverse_clean \(5 of \d+ mutants\) \| 5 \|`, out.String())
	require.Contains(t, out.String(), "## Survivors\n\nNone.\n")
	require.Equal(t, 1, strings.Count(out.String(), "| **all** | 5 |"))
}

// TestRecord: what was judged is not judged again, half a line is dropped, and a budget
// that is spent leaves out only what is not on record.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	kept, out := filepath.Join(dir, "kept"), filepath.Join(dir, "out.md")
	run := func(s suite) string {
		s.timings, s.seed = 1, 1
		require.NoError(t, s.run(t.Context(), "../../testdata/ptx/foreign", "^reverse_clean$", kept, out))
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, run(suite{orders: 2, others: 1, budget: 1 << 40}), "| **all** | 3 |")
	half, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(half, []byte("\n")))
	require.NoError(t, os.WriteFile(kept, append(half, `{"mutant": "re`...), 0o644))
	require.Contains(t, run(suite{budget: -1}), "| **all** | 3 |")
	require.Contains(t, run(suite{budget: 1 << 40}), "| **all** | 7 |")
	all, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, 7, bytes.Count(all, []byte("\n")))
	require.NoError(t, os.WriteFile(kept, []byte("{}x\n"), 0o644))
	_, err = openRecord(kept)
	require.ErrorContains(t, err, kept+":1: want a recorded judgement")
}
