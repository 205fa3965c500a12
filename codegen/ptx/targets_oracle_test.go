package ptx

import (
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tensorTargets are the targets with tensor instructions of their own.
var tensorTargets = []string{"sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f", "sm_120a", "sm_120f", "sm_121a"}

// A tensor instruction that one target has and another has not is so to Check
// and to ptxas alike: every form is tried for every target, each of its
// modifiers at least once, whether the target has it or not.
func TestTensorTargetsAgainstPtxas(t *testing.T) {
	t.Parallel()
	tool := ptxas(t)
	v := knownTo(t, tool)
	targets := tensorTargets
	if os.Getenv("KGEN_FULL") == "" {
		targets = []string{"sm_100f", "sm_120a"}
	}
	lines := tensorSamples(t, v)
	// A kernel's tensor memory is of one group throughout.
	var pairs []string
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], ".cta_group::2") {
			pairs = append(pairs, lines[i])
			lines = append(lines[:i], lines[i+1:]...)
		}
	}
	for _, name := range targets {
		target, err := ParseTarget(name)
		require.NoError(t, err)
		for _, some := range [][]string{lines, pairs} {
			for i, complaint := range judge(t, tool, v, target, some) {
				if err := ours(v, target, some[i]); (err == nil) != (complaint == "") && !known(some[i]) {
					t.Errorf("%s: %s\n\tours:  %v\n\tptxas: %s", target, some[i], err, complaint)
				}
			}
		}
	}
	t.Logf("%d instructions for each of %d targets", len(lines)+len(pairs), len(targets))
}

// tensorSamples are instructions of every form of the tensor instructions that
// one of tensorTargets has, with each of the form's modifiers at least once.
func tensorSamples(t *testing.T, v Version) []string {
	t.Helper()
	var targets []Target
	for _, name := range tensorTargets {
		target, err := ParseTarget(name)
		require.NoError(t, err)
		targets = append(targets, target)
	}
	s := sampler{rng: rand.New(rand.NewSource(4))}
	var lines []string
	for _, name := range Names() {
		if !isTensor(name) {
			continue
		}
		for _, f := range specs()[name] {
			groups := f.groupsOf(v, targets)
			most := 1
			for i := range groups {
				most = max(most, groups[i].choices())
			}
			for n := range most {
				if line := s.nth(f, groups, n, v, targets); line != "" {
					lines = append(lines, line)
				}
			}
		}
	}
	require.Greater(t, len(lines), 1000)
	return lines
}

// nth is an instruction with the nth modifier of each group of a form, counted
// round, for the first of some targets that has it; "" if none has.
func (s *sampler) nth(f *Spec, groups []group, n int, v Version, targets []Target) string {
	var words []word
	var mods []string
	for i := range groups {
		if groups[i].choices() == 0 {
			return ""
		}
		if k := n % groups[i].choices(); k < len(groups[i].words) {
			words, mods = append(words, groups[i].words[k]), append(mods, groups[i].words[k].text)
		}
	}
	for _, target := range targets {
		if unmet(f, words, v, target) == "" {
			return s.with(f, mods, v, target)
		}
	}
	return ""
}

// isTensor says whether instructions of a name work on tensors.
func isTensor(name string) bool {
	for _, prefix := range []string{"tcgen05.", "mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "cp.async.bulk.tensor", "cp.async.bulk.prefetch.tensor", "cp.reduce.async.bulk.tensor", "tensormap"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
