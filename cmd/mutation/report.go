package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench/vm/mutate"
)

// count is how many mutants met with each verdict.
type count struct {
	of    map[mutate.Verdict]int
	first int // found by the default timing
	all   int
}

func (c *count) add(j *judged) {
	if c.of == nil {
		c.of = map[mutate.Verdict]int{}
	}
	c.of[j.Verdict]++
	c.all++
	if j.Verdict == mutate.Found && j.Timing == 0 {
		c.first++
	}
}

const columns = "mutants | found | of those in the default timing | same wrong answer | unchanged | survived | not run |"

func (c *count) cells() string {
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d | %d |", c.all, c.of[mutate.Found], c.first,
		c.of[mutate.Wrong], c.of[mutate.Unchanged], c.of[mutate.Survived], c.of[mutate.NotRun])
}

const intro = `# What the virtual machine finds of slips

Written by ` + "`make mutation`" + `. Kernels of ours (as direct PTX, and as CUDA C through NVRTC) and
other compilers' are changed in one place at a time. Each mutant runs with the default checks
under %d timings: in order with asynchronous work late and early, and %d random schedules of
warps, lanes and blocks with that work late, early or at random. The originals are silent and
give the same bytes in all of them.

- **found**: a fault is reported in some timing.
- **same wrong answer**: no fault, and the same wrong bytes in every timing: the program computes
  something else, which any test of its results finds.
- **unchanged**: no fault, and the right bytes in every timing.
- **survived**: no fault, and bytes that depend on the timing: what the checks should have found.
- **not run**: what was changed is not reached at these sizes: the rest of an unrolled loop, say.

Of the mutants whose behaviour depends on the timing, or is a fault, **%d of %d** are found.

`

func (s *suite) report(w io.Writer) {
	var total count
	var rows strings.Builder
	for _, r := range s.rows {
		var c count
		for i := range r.judged {
			c.add(&r.judged[i])
			total.add(&r.judged[i])
		}
		name := r.name
		if len(r.judged) < r.mutants {
			name += fmt.Sprintf(" (%d of %d mutants)", len(r.judged), r.mutants)
		}
		fmt.Fprintf(&rows, "| %s | %s\n", name, c.cells())
	}
	fmt.Fprintf(w, intro, s.timings+2, s.timings, total.of[mutate.Found], total.of[mutate.Found]+total.of[mutate.Survived])
	fmt.Fprintf(w, "## By program\n\n| program | %s\n|---|---|---|---|---|---|---|---|\n%s| **all** | %s\n\n", columns, rows.String(), total.cells())
	s.byKind(w)
	s.byClass(w)
	s.survivors(w)
	s.unchanged(w)
}

// byKind counts by what was changed, and how.
func (s *suite) byKind(w io.Writer) {
	counts := map[string]*count{}
	s.each(func(_ *row, j *judged) {
		k := fmt.Sprintf("%s %s", j.m.What, j.m.Kind)
		if counts[k] == nil {
			counts[k] = &count{}
		}
		counts[k].add(j)
	})
	fmt.Fprintf(w, "## By change\n\n| change | %s\n|---|---|---|---|---|---|---|---|\n", columns)
	for _, k := range sorted(counts) {
		fmt.Fprintf(w, "| %s | %s\n", k, counts[k].cells())
	}
	fmt.Fprintln(w)
}

func (s *suite) byClass(w io.Writer) {
	counts := map[string]int{}
	s.each(func(_ *row, j *judged) {
		if j.Verdict == mutate.Found {
			counts[string(j.Class)]++
		}
	})
	fmt.Fprintf(w, "## The first fault\n\n| class | mutants |\n|---|---|\n")
	for _, k := range sorted(counts) {
		fmt.Fprintf(w, "| %s | %d |\n", k, counts[k])
	}
	fmt.Fprintln(w)
}

func (s *suite) survivors(w io.Writer) {
	fmt.Fprintf(w, "## Survivors\n\n")
	none := true
	s.each(func(r *row, j *judged) {
		if j.Verdict == mutate.Survived {
			none = false
			fmt.Fprintf(w, "- %s: %s (%d answers)\n", r.name, j.m, j.Answers)
		}
	})
	if none {
		fmt.Fprintln(w, "None.")
	}
	fmt.Fprintln(w)
}

// benign says of a kind of change why it may leave a program right.
var benign = []struct{ what, why string }{
	{"barrier", "no two accesses that conflict are ordered by it alone: the last of a kernel, or one of two with nothing in between, or behind a loop that these sizes run once. The checks compare by happens-before, so that no timing could tell"},
	{"wait", "a wait that another one covers, or for groups that are empty at these sizes"},
	{"commit", "nothing was issued since the last one; later waits then wait for more"},
	{"fence", "the order that it makes is there without it: what wgmma's registers or the async proxy may see was fenced before"},
	{"arrive", "moved past accesses that have nothing to do with what it releases"},
	{"expect", "the transactions may be expected before or after they are issued"},
	{"init", "moved among other initialisations before the barrier that follows them all"},
	{"access", "guards that hold, or offsets of reads whose values are not used, at these sizes"},
	{"branch", "both ways do the same at these sizes: masks of whole tiles, loops run once"},
	{"swizzle", "the bits that are mixed in are zero at these sizes"},
}

func (s *suite) unchanged(w io.Writer) {
	counts := map[string]int{}
	s.each(func(_ *row, j *judged) {
		if j.Verdict == mutate.Unchanged {
			counts[j.m.What]++
		}
	})
	fmt.Fprintf(w, "## Unchanged, by what was changed\n\n| what | mutants | why it may be |\n|---|---|---|\n")
	for _, b := range benign {
		fmt.Fprintf(w, "| %s | %d | %s |\n", b.what, counts[b.what], b.why)
	}
}

func (s *suite) each(f func(*row, *judged)) {
	for _, r := range s.rows {
		for i := range r.judged {
			f(r, &r.judged[i])
		}
	}
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
