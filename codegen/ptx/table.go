package ptx

import "strings"

// splitName finds the table's longest name that an instruction's words begin
// with. It returns the name and how many of the dotted words belong to it.
func splitName(first string, words []string) (name string, used int) {
	for _, n := range longNames[first] {
		if rest, ok := cutName(n, words); ok {
			return n, rest
		}
	}
	return first, 0
}

func cutName(name string, words []string) (used int, ok bool) {
	_, rest, _ := strings.Cut(name, ".")
	for rest != "" {
		var w string
		w, rest, _ = strings.Cut(rest, ".")
		if used == len(words) || words[used] != w {
			return 0, false
		}
		used++
	}
	return used, true
}

// longNames lists the table's names of more than one word by their first word,
// longest first.
var longNames = map[string][]string{}
