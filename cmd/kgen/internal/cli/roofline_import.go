package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// importFlags are those of kgen roofline import.
type importFlags struct {
	gpu    string
	before string
	flops  amount
	bytes  amount
	math   choice
	figure figureFlags
	in     io.Reader // standard input
}

// mostWork is more operations or bytes than any launch has.
const mostWork = 1e21

// importReport is what kgen roofline import --json prints.
type importReport struct {
	GPU     string         `json:"gpu"`
	Kernels []*verdictInfo `json:"kernels"`
	Unused  []string       `json:"unused"`            // columns and metrics of the files that nothing here needs
	Skipped int            `json:"skipped,omitempty"` // rows of graphs, ranges and failed configurations
	Notes   []string       `json:"notes,omitempty"`   // what a reader must know
	Changes []change       `json:"changes,omitempty"` // of --before, of the kernels that are in both
	Drawing string         `json:"drawing,omitempty"`
}

// change is a kernel's time before and after; at least that where nobody timed it.
type change struct {
	Name   string           `json:"name"`
	Before float64          `json:"before_us"`
	After  float64          `json:"after_us"`
	Ratio  float64          `json:"ratio"`      // before / after: above 1 is faster
	From   bench.Provenance `json:"provenance"` // of the less exact of both
}

// changeOf compares a kernel with what it was.
func changeOf(then, now *roofline.Judged) change {
	c := change{Name: now.Kernel.Name, Before: then.LeastUS(), After: now.LeastUS(), From: bench.Formula}
	if then.Verdict != nil && now.Verdict != nil {
		c.Before, c.After, c.From = then.Kernel.TimeUS, now.Kernel.TimeUS, now.Kernel.From
		if then.Kernel.From == bench.Predicted {
			c.From = bench.Predicted
		}
	}
	c.Ratio = c.Before / c.After
	return c
}

func (a *app) importCommand() *cobra.Command {
	f := &importFlags{in: a.in, flops: amount{least: 1, most: mostWork, unit: "operations"}, bytes: amount{least: 1, most: mostWork, unit: "bytes"}, math: choice{value: string(target.F32)}}
	for _, m := range target.Maths() {
		f.math.words = append(f.math.words, string(m))
	}
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Judge kernels that others profiled, timed, counted or tuned",
		Long: `Judge kernels that others profiled, timed, counted or tuned. A FILE, or - for standard
input, is told by what it holds:

  CSV of Nsight Compute, long or wide (raw page); several of one program are joined
  what kgen run --json printed: counters, or a time
  what kgen tune --json printed: the best configurations, or of --replay those tried
  a tuning space: a Kernel Tuner cache, T4 or KTT results, or a compact CSV
  a table of library times, as those that kgen roofline library draws

Each kernel is held to the limits of the GPU that the file names (of the virtual machine,
the one that it ran as), or of --gpu; a note
says where they differ, and files of two GPUs are refused. What a
file does not know of a launch's useful work --flops and --bytes give: a tuning space
needs both. A launch takes what it takes at least, a floor of its own; Nsight Compute
times the kernel alone, without it. Where the profiler saw a part of the GPU busier than
the work it counted explains, the verdict says so. --before FILE has the same kernels before a change: both
times and their ratio are printed, and -o draws arrows.`,
		Example: `  kgen roofline import time.csv instructions.csv --gpu h100
  kgen roofline import now.csv --before then.csv -o change.svg
  kgen tune gemm --gpu a100 --json > best.json && kgen roofline import best.json --view floors -o best.html
  kgen roofline import cache.json.gz --gpu a100 --flops 1.4e11 --bytes 1e8 --math fp32`,
		Args: positional("FILE..."),
		RunE: func(c *cobra.Command, files []string) error { return a.importFiles(c.Context(), f, files) },
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&f.gpu, "gpu", "", gpuUsage+"; without it the one that the files name")
	mustComplete(c, "gpu", completeGPUFlag)
	f.figure.declare(c)
	c.Flags().StringVar(&f.before, "before", "", "`FILE` with the same kernels before a change")
	c.Flags().Var(&f.flops, "flops", "useful operations of a launch, by formula")
	c.Flags().Var(&f.bytes, "bytes", "least bytes of a launch to and from memory, by formula")
	choiceFlag(c, &f.math, "math", "the arithmetic of --flops")
	a.jsonFlag(c)
	return c
}

func (a *app) importFiles(ctx context.Context, f *importFlags, files []string) error {
	if err := f.figure.check(); err != nil {
		return err
	}
	now, err := f.judged(ctx, files)
	if err != nil {
		return err
	}
	r := &importReport{GPU: now.gpu.ID, Unused: append([]string{}, now.unused...), Skipped: now.skipped, Notes: now.notes}
	if a.json {
		for _, j := range now.kernels {
			r.Kernels = append(r.Kernels, verdictOf(j))
		}
	}
	subject := now.subject()
	if f.before != "" {
		before, err := f.judged(ctx, []string{f.before})
		if err != nil {
			return err
		}
		if before.gpu.ID != now.gpu.ID {
			return usagef("--before %s: of %s, not of %s as %s: want the same GPU", f.before, before.gpu.Name, now.gpu.Name, files[0])
		}
		r.Notes = append(r.Notes, before.notes...)
		if err := pair(subject, before.kernels); err != nil {
			return usagef("--before %s: %w", f.before, err)
		}
		for _, p := range subject.Paths {
			if p.Arrows {
				r.Changes = append(r.Changes, changeOf(p.Kernels[0], p.Kernels[1]))
			}
		}
	}
	if r.Drawing, err = f.figure.draw(subject); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	a.printImport(r, now)
	return nil
}

// pair makes a path from each kernel before a change to the one of its name after it.
func pair(s *plot.Subject, before []*roofline.Judged) error {
	var alone []*roofline.Judged
	first := map[string]*roofline.Judged{}
	for _, j := range slices.Backward(before) {
		first[j.Kernel.Name] = j
	}
	for _, j := range s.Kernels {
		then, ok := first[j.Kernel.Name]
		if !ok {
			alone = append(alone, j)
			continue
		}
		s.Paths = append(s.Paths, plot.Path{Name: j.Kernel.Name, Kernels: []*roofline.Judged{then, j}, Arrows: true})
	}
	if len(s.Paths) == 0 {
		return fmt.Errorf("no kernel of the same name, such as %s", inLine(s.Kernels[0].Kernel.Name))
	}
	s.Kernels = alone
	return nil
}

// few is how many kernels are printed each.
const few = 25

// printImport prints every kernel of a few, and of many the fastest and what is doubtful.
func (a *app) printImport(r *importReport, set *imported) {
	kernels := set.kernels
	if len(kernels) > few {
		kernels = a.printMany(set)
	}
	for _, j := range kernels {
		a.printVerdict(j)
	}
	for i, c := range r.Changes {
		if i == few {
			fmt.Fprintf(a.out, "change    of %d more is in --json\n", len(r.Changes)-few)
			break
		}
		fmt.Fprintf(a.out, "change    %s: %.4g us before, %.4g us after (%s): %.3g times as fast\n", inLine(c.Name), c.Before, c.After, c.From, c.Ratio)
	}
	if r.Skipped > 0 {
		fmt.Fprintf(a.out, "skipped   %d rows without a kernel or a time\n", r.Skipped)
	}
	if len(r.Unused) > 0 {
		fmt.Fprintf(a.out, "not used  %s\n", inLine(strings.Join(r.Unused, " ")))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(a.out, "note      %s\n", inLine(n))
	}
	if r.Drawing != "" {
		fmt.Fprintf(a.out, "drawing   %s\n", r.Drawing)
	}
}

// printMany sums up many kernels and returns the nearest to its limits.
func (a *app) printMany(set *imported) []*roofline.Judged {
	causes := map[roofline.Cause]int{}
	best := set.kernels[0]
	for _, j := range set.kernels {
		if j.Verdict == nil {
			continue
		}
		causes[j.Verdict.Cause]++
		if best.Verdict == nil || j.Verdict.Cause == "" && (best.Verdict.Cause != "" || j.Verdict.Score > best.Verdict.Score) {
			best = j
		}
	}
	fmt.Fprintf(a.out, "%d kernels on %s", len(set.kernels), set.gpu.Name)
	for _, c := range []roofline.Cause{roofline.CacheResident, roofline.OtherClock, roofline.WrongPeak, roofline.NotPossible} {
		if causes[c] > 0 {
			fmt.Fprintf(a.out, "; %d above their roof: %s", causes[c], c)
		}
	}
	fmt.Fprintln(a.out, "; --json lists all. The nearest to its limits:")
	return []*roofline.Judged{best}
}
