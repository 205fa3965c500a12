package ncu

import (
	"regexp"
	"strings"
)

var (
	capability = regexp.MustCompile(`^[0-9]{1,2}[.,][0-9]$`)
	between    = regexp.MustCompile(`[,;x]\s+|[;x]|\s+`)
	extent     = regexp.MustCompile(`^[0-9][0-9.,'\x{2019}\x{a0}\x{202f}]*$`) // with separators of thousands
)

// describes refuses what no launch is described by: columns and metrics that nothing is
// computed from, but which tell that a file is not what it says.
func describes(column string, v value) error {
	switch column {
	case "CC":
		if text := strings.TrimSpace(v.text); !absent(text) && !capability.MatchString(text) {
			return v.errorf("CC %q: want a compute capability such as 9.0", text)
		}
	case "Block Size", "Grid Size", "launch__block_size", "launch__grid_size":
		if text := strings.TrimSpace(v.text); !absent(text) && !isExtents(text) {
			return v.errorf("%s %q: want up to three whole numbers above 0, such as (128, 1, 1)", column, text)
		}
	}
	return nil
}

// isExtents says whether a text is one to three sizes, in brackets or without.
func isExtents(text string) bool {
	if isPlainExtents(text) {
		return true
	}
	sizes := between.Split(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")), -1)
	for _, s := range sizes {
		if !extent.MatchString(s) || !strings.ContainsAny(s, "123456789") {
			return false
		}
	}
	return len(sizes) <= 3
}

// isPlainExtents says whether a text is sizes as Nsight Compute writes them, (128, 1, 1),
// without separators of thousands.
func isPlainExtents(text string) bool {
	inner, ok := strings.CutPrefix(text, "(")
	for n := 1; ok && n <= 3; n++ {
		var size string
		if size, inner, ok = strings.Cut(inner, ", "); !ok {
			size, closed := strings.CutSuffix(size, ")")
			return closed && isDigits(size) && size[0] != '0'
		}
		ok = isDigits(size) && size[0] != '0'
	}
	return false
}
