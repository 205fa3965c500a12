// Package wordlist writes what may be chosen from as a sentence names it.
package wordlist

import "strings"

// Or writes "a, b or c"; "" of no words.
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
