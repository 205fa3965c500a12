package cubin

import (
	"regexp"
	"strings"
)

// OpCount is how often an instruction occurs in the code of a kernel.
type OpCount struct {
	Op    string // the mnemonic before its first dot: HMMA, LDG, BAR
	Count int    // in the listing, not in a run
}

var (
	sassSection = regexp.MustCompile(`^\s*\.section\s+\.text\.([^\s,]+)`)
	sassInst    = regexp.MustCompile(`^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P[0-9T]+ )?([A-Z][A-Z0-9_]*)`)
)

// Mix counts the instructions of one kernel in the listing that nvdisasm -c
// prints of a cubin, the most frequent first.
func Mix(sass, kernel string) []OpCount {
	counts := map[string]int{}
	inside := false
	for line := range strings.Lines(sass) {
		if m := sassSection.FindStringSubmatch(line); m != nil {
			inside = m[1] == kernel
			continue
		}
		if m := sassInst.FindStringSubmatch(line); m != nil && inside {
			counts[m[1]]++
		}
	}
	return sorted(counts)
}
