package target

import (
	"fmt"
	"sort"
	"strings"
)

// UnknownGPUError is the error of Lookup: no GPU or alias has this name.
type UnknownGPUError struct {
	Name string
	Near []string // ids and aliases that resemble it, nearest first; never empty
}

func (e *UnknownGPUError) Error() string {
	return fmt.Sprintf("unknown GPU %q: did you mean %s? (`kgen gpus` lists all)", e.Name, strings.Join(e.Near, ", "))
}

// All returns every known GPU, oldest architecture first.
// The records are shared: treat them as read-only.
func All() []*GPU {
	t := load()
	return append([]*GPU(nil), t.gpus...)
}

// Lookup finds a GPU by its id ("h100-sxm5-80"), an alias ("h100", "rtx4090",
// "sm_86") or the name its driver reports. Case, spaces, dashes and the words
// NVIDIA, GeForce and Tesla do not matter. The error is an *UnknownGPUError.
func Lookup(name string) (*GPU, error) {
	t := load()
	if g, ok := t.byKey[normalise(name)]; ok {
		return g, nil
	}
	for _, g := range t.gpus {
		if normalise(g.Name) == normalise(name) {
			return g, nil
		}
	}
	return nil, &UnknownGPUError{Name: name, Near: t.near(name)}
}

// Aliases returns the other names under which Lookup knows the GPU, sorted.
func (g *GPU) Aliases() []string {
	t := load()
	var out []string
	for _, a := range t.aliases {
		if t.byKey[normalise(a)] == g {
			out = append(out, a)
		}
	}
	return out
}

// maxName bounds the work of a lookup: no GPU's name is longer.
const maxName = 64

func normalise(name string) string {
	if len(name) > maxName {
		name = name[:maxName]
	}
	name = strings.ToLower(name)
	for _, word := range []string{"nvidia", "geforce", "tesla"} {
		name = strings.ReplaceAll(name, word, "")
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// near returns the five names most like the one asked for.
func (t *table) near(name string) []string {
	want := normalise(name)
	type candidate struct {
		name string
		cost int
	}
	var all []candidate
	add := func(n string) {
		key := normalise(n)
		cost := 4 * distance(want, key)
		// A shared beginning tells more than the length of what follows.
		cost -= 6 * commonPrefix(want, key)
		if want != "" && (strings.Contains(key, want) || strings.Contains(want, key)) {
			cost -= 8
		}
		all = append(all, candidate{n, cost})
	}
	for _, g := range t.gpus {
		add(g.ID)
	}
	for _, a := range t.aliases {
		add(a)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].cost < all[j].cost })
	var out []string
	seen := map[string]bool{}
	for _, c := range all {
		if key := normalise(c.name); !seen[key] && len(out) < 5 {
			seen[key] = true
			out = append(out, c.name)
		}
	}
	return out
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// distance is the Levenshtein distance of two ASCII strings.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
