package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// lines is what a launch counted, by line.
func (c *counting) lines(k *kernel) []bench.LineCount {
	var all []bench.LineCount
	at := func(m *module, in *ptx.Instruction) *bench.LineCount {
		var s bench.Site
		m.locate(&s, in)
		all = append(all, bench.LineCount{Source: s.Source, Line: s.Line})
		return &all[len(all)-1]
	}
	for p, t := range c.tallies {
		t.counts(p, func(_ int32, in *ptx.Instruction, warps, threads int64) {
			at(p.mod, in).Instructions = bench.Issue{Warp: warps, Thread: threads}
		})
	}
	for i := range c.traffic {
		for medium := range c.traffic[i] {
			t := &c.traffic[i][medium]
			if t.requests == 0 || t.kind == constLoads {
				continue
			}
			l := at(k.memAt[i].mod, k.memAt[i].in)
			switch t.kind.medium() {
			case inGlobal:
				l.Global = *t.access()
			case inShared:
				l.Shared = *t.shared()
			case inLocal:
				l.Local = *t.access()
			}
		}
	}
	return bench.SumLines(all)
}

// byLine joins faults of one class at one line, against one line: the first of
// them stands for all.
func byLine(all []bench.Fault) []bench.Fault {
	at := map[string]int{}
	out := all[:0]
	for _, f := range all {
		key := string(f.Class) + "|" + f.Kernel + "|" + lineKey(&f.Site)
		if f.Other != nil {
			key += "|" + lineKey(f.Other)
		}
		if i, ok := at[key]; ok {
			out[i].Count += f.Count
			continue
		}
		at[key] = len(out)
		out = append(out, f)
	}
	return out
}

func lineKey(s *bench.Site) string {
	if s.Source != "" {
		return s.Source
	}
	return fmt.Sprint(s.Line)
}
