package target

import (
	"fmt"
	"slices"
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
	if g, ok := t.find(name); ok {
		return g, nil
	}
	return nil, &UnknownGPUError{Name: name, Near: t.near(name)}
}

// find is Lookup without a word on what was not found.
func (t *table) find(name string) (*GPU, bool) {
	key := normalise(name)
	if g, ok := t.byKey[key]; ok {
		return g, true
	}
	for _, g := range t.gpus {
		if normalise(g.Name) == key {
			return g, true
		}
	}
	return nil, false
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

// Keys returns what Lookup compares of the names by which a driver may report the GPU,
// sorted: those of its id, its name and its aliases, but for those of architectures, as
// "sm_90". A record of a user's own has those of the known GPU of its name too. A name's
// key is its letters and digits in lower case, less the words nvidia, geforce and tesla.
func (g *GPU) Keys() []string {
	keys := []string{normalise(g.ID), normalise(g.Name)}
	if known, ok := load().find(g.Name); ok {
		keys = append(keys, normalise(known.ID))
		for _, a := range known.Aliases() {
			if !strings.HasPrefix(a, "sm_") {
				keys = append(keys, normalise(a))
			}
		}
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return k == "" }) // of an own record's "---"
	slices.Sort(keys)
	return slices.Compact(keys)
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
