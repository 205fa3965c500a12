package bench

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// LineCount is what the instructions of one line did: of the source where the
// PTX says which, otherwise of the PTX.
type LineCount struct {
	Source string `json:"source,omitempty"` // "kernel.cu:12"
	Line   int    `json:"line"`             // in the PTX, of the first instruction

	Instructions Issue       `json:"instructions"`
	Global       AccessCount `json:"global"`
	Shared       SharedCount `json:"shared"`
	Local        AccessCount `json:"local"`
}

// Efficiency is the share of lanes that were active.
func (l *LineCount) Efficiency() float64 {
	return share(l.Instructions.Thread, lanesPerWarp*l.Instructions.Warp)
}

// sameLine says whether two counts are of one line.
func (l *LineCount) sameLine(o *LineCount) bool {
	return l.Source == o.Source && (l.Source != "" || l.Line == o.Line)
}

// SumLines joins the counts of the same line, in the order of the source, or of the PTX where that does not say.
func SumLines(all []LineCount) []LineCount {
	slices.SortStableFunc(all, func(a, b LineCount) int {
		key := cmp.Compare(a.Source, b.Source)
		if a.Source == "" && b.Source == "" {
			key = cmp.Compare(a.Line, b.Line)
		}
		return key
	})
	var out []LineCount
	for i := range all {
		l := &all[i]
		if n := len(out); n == 0 || !out[n-1].sameLine(l) {
			out = append(out, LineCount{Source: l.Source, Line: l.Line})
		}
		o := &out[len(out)-1]
		o.Line = min(o.Line, l.Line)
		o.Instructions.Warp += l.Instructions.Warp
		o.Instructions.Thread += l.Instructions.Thread
		o.Global.Add(&l.Global)
		o.Shared.Add(&l.Shared)
		o.Local.Add(&l.Local)
	}
	slices.SortStableFunc(out, func(a, b LineCount) int {
		aFile, aLine := splitLine(a.Source)
		bFile, bLine := splitLine(b.Source)
		return cmp.Or(cmp.Compare(aFile, bFile), cmp.Compare(aLine, bLine), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// splitLine takes a source's line off its file, such as kernel.cu:12; 0 where none is named.
func splitLine(source string) (file string, line int) {
	i := strings.LastIndexByte(source, ':')
	if i < 0 {
		return source, 0
	}
	n, err := strconv.Atoi(source[i+1:])
	if err != nil {
		return source, 0
	}
	return source[:i], n
}
