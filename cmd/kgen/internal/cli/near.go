package cli

import (
	"cmp"
	"slices"
	"strings"
)

// didYouMean ends a message about an unknown name with the names near it, or
// with all of them when they are few.
func didYouMean(name string, names []string) string {
	if found := near(name, names); len(found) > 0 {
		return " (did you mean " + strings.Join(found, " or ") + "?)"
	}
	if len(names) > 0 && len(names) <= 24 {
		return ": want one of " + strings.Join(names, ", ")
	}
	return ""
}

// near lists at most three names that differ from name by few letters or
// begin with it, the nearest first.
func near(name string, names []string) []string {
	type match struct {
		name     string
		distance int
	}
	var found []match
	lower := strings.ToLower(name)
	for _, n := range names {
		d := distance(lower, strings.ToLower(n))
		if strings.HasPrefix(strings.ToLower(n), lower) && strings.Trim(name, "-") != "" {
			d = min(d, 1)
		}
		if d <= max(1, len(strings.Trim(name, "-"))/3) {
			found = append(found, match{n, d})
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, m := range found[:min(3, len(found))] {
		out = append(out, m.name)
	}
	return out
}

// distance is how many bytes must be inserted, deleted, replaced or swapped
// with their neighbour to turn a into b (optimal string alignment). Long words
// are far from everything.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
