package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/cuda"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// runFlags are what kgen run takes beside the case.
type runFlags struct {
	device choice
	gpu    string
	vm     machineFlags
	extent extentFlags
}

// extentFlags say how much of a launch to run, and what to keep.
type extentFlags struct {
	blocks, dump string
	lines        bool
}

func (f *extentFlags) declare(c *cobra.Command) {
	c.Flags().StringVar(&f.blocks, "blocks", "", "`LIST` of blocks of the grid to run, each x, x:y or x:y:z; without it all")
	c.Flags().StringVar(&f.dump, "dump", "", "`DIR` for the buffers after the last launch, as .npy files")
}

// linesFlag declares --lines.
func linesFlag(c *cobra.Command, on *bool) {
	c.Flags().BoolVar(on, "lines", false, "count by line of the source, or of the PTX where that does not say, too")
}

func (a *app) runCommand() *cobra.Command {
	f := runFlags{device: devices(), vm: newMachineFlags()}
	c := &cobra.Command{
		Use:   "run CASE.json",
		Short: "Run PTX on the virtual machine or a GPU and check what it computes",
		Long: `Run the PTX of a case, from whichever compiler, on the virtual machine: is the
answer right, is there a fault, what did it do. A case names a PTX file, a
kernel, its launch and its arguments with the values wanted; its form stands in
testdata/ptx/foreign/README.md. Counters are counted, exactly.

With --device cuda it runs on this machine's GPU, if kgen was built with it (make
build-cuda): then there is a time, measured, and no counters, and of the faults only
those are seen that end a kernel.

The exit code is 0 when every buffer is right and no fault was reported, 3 when
not, and 2 for a case that cannot be run as it is. A launch without an end is
stopped by counting, see --max-steps, and reported as a deadlock.`,
		Example: `  kgen run case.json
  kgen run case.json --schedule random --async random --seed 7 --json
  kgen run case.json --blocks 0,17,3:2:0 --checks +strict-proxy --dump out`,
		Args:              positional("CASE.json"),
		ValidArgsFunction: cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE:              func(c *cobra.Command, args []string) error { return a.runCase(c, args[0], &f) },
	}
	a.jsonFlag(c)
	c.Flags().SortFlags = false
	choiceFlag(c, &f.device, "device", "what to run on")
	c.Flags().StringVar(&f.gpu, "gpu", "", gpuUsage+"; without it one that fits the PTX's .target")
	mustComplete(c, "gpu", completeGPUFlag)
	f.vm.declare(c)
	f.extent.declare(c)
	linesFlag(c, &f.extent.lines)
	return c
}

func (a *app) runCase(cmd *cobra.Command, file string, f *runFlags) error {
	gpu, err := optionalGPU(f.gpu)
	if err != nil {
		return err
	}
	open := f.vm.opener(gpu)
	if f.device.value == "cuda" {
		open = func() (bench.Device, error) { return openGPU(cmd) }
	}
	if end := filepath.Ext(file); end == ".cu" || end == ".ptx" {
		return usagef("%s: a case is a JSON file: kgen check %[1]s runs a kernel from flags, and kgen case new %[1]s writes a case to fill in", visible(file))
	}
	return a.runOn(cmd.Context(), open, &f.extent, func(bench.Device) (*bench.Case, error) {
		c, err := bench.ReadCase(file)
		return c, usage(err)
	})
}

// runOn runs a case on a device and prints what came of it. The flags are checked
// before the case is made.
func (a *app) runOn(ctx context.Context, open func() (bench.Device, error), e *extentFlags, load func(bench.Device) (*bench.Case, error)) error {
	if e.dump != "" {
		if err := checkFolder("--dump", e.dump, e.dump); err != nil {
			return err
		}
	}
	dev, err := open()
	if err != nil {
		return err
	}
	defer dev.Close()
	blocks, err := parseBlocks(e.blocks)
	if err != nil {
		return usage(err)
	}
	c, err := load(dev)
	if err != nil {
		return err
	}
	res, err := bench.RunCase(ctx, dev, c, bench.RunOptions{Blocks: blocks, Dump: e.dump, Lines: e.lines})
	if err != nil {
		return runError(c.File, err)
	}
	if err := a.printRun(res); err != nil {
		return err
	}
	if !res.OK {
		return wrong(errors.New(c.File + ": " + whatIsWrong(res)))
	}
	return nil
}

// runError classes why a case could not be run: the virtual machine refuses
// launches for what they ask, so all but the file system's and the driver's errors
// are the case's.
func runError(file string, err error) error {
	var input *bench.InputError
	var bug *bench.InternalError
	var disk *fs.PathError
	var driver *cuda.Error
	switch {
	case errors.As(err, &input):
		return usage(err)
	case errors.As(err, &bug), errors.As(err, &disk), errors.As(err, &driver), errors.Is(err, context.Canceled):
		return err
	}
	return usage(fmt.Errorf("%s: %w", file, err))
}

// parseBlocks reads blocks of a grid: "0,17,3:2:0"; nil for "".
func parseBlocks(list string) ([][3]uint32, error) {
	if list == "" {
		return nil, nil
	}
	var blocks [][3]uint32
	for _, word := range strings.Split(list, ",") {
		parts := strings.Split(strings.TrimSpace(word), ":")
		if len(parts) > 3 {
			return nil, blockError(word)
		}
		var b [3]uint32
		for i, p := range parts {
			n, err := strconv.ParseUint(p, 10, 32)
			if err != nil {
				return nil, blockError(word)
			}
			b[i] = uint32(n)
		}
		if slices.Contains(blocks, b) {
			return nil, fmt.Errorf("--blocks: block %s is there twice", word)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func blockError(word string) error {
	return fmt.Errorf("--blocks: block %q: want x, x:y or x:y:z, such as 3:2:0", word)
}

// asExpected says whether nothing is wrong but the fault that the case names.
func asExpected(r *bench.Result) bool {
	wrong := func(b bench.BufferResult) bool { return b.Mismatches > 0 }
	other := func(f bench.Fault) bool { return !f.Expected }
	return len(r.Faults) > 0 && r.MissingFault == "" && !slices.ContainsFunc(r.Faults, other) && !slices.ContainsFunc(r.Buffers, wrong) && r.Failure == nil
}

// whatIsWrong is a failed run in a sentence: also one that reported the fault that its case
// names, which is no run to rely on either.
func whatIsWrong(r *bench.Result) string {
	if asExpected(r) {
		f := r.Faults[0]
		return fmt.Sprintf("the expected %s was reported%s, and no other fault", f.Class, place(f.Site))
	}
	var parts []string
	for _, b := range r.Buffers {
		if b.Mismatches > 0 {
			parts = append(parts, fmt.Sprintf("%s is wrong in %s", bufferName(b), numberOf(b.Mismatches, "element")))
		}
	}
	if r.Failure != nil {
		parts = append(parts, r.Failure.Error())
	}
	for _, f := range r.Faults {
		parts = append(parts, string(f.Class)+place(f.Site))
	}
	if len(parts) > 3 {
		parts = append(parts[:3], fmt.Sprintf("%d more", len(parts)-3))
	}
	if r.MissingFault != "" {
		parts = append(parts, fmt.Sprintf("no %s was reported", r.MissingFault))
	}
	return strings.Join(parts, ", ")
}

// place is where a fault is, in a few words: in the source if the PTX tells.
func place(s bench.Site) string {
	switch {
	case s.Line == 0:
		return ""
	case s.Source == "":
		return fmt.Sprintf(" at PTX line %d", s.Line)
	}
	return fmt.Sprintf(" at %s (PTX line %d)", visible(filepath.Base(s.Source)), s.Line)
}

func bufferName(b bench.BufferResult) string {
	if b.Name != "" {
		return b.Name
	}
	return fmt.Sprintf("arg%d", b.Arg)
}

func (a *app) printRun(r *bench.Result) error {
	if a.json {
		return a.printJSON(r)
	}
	mark := a.paint("32", "right")
	switch {
	case asExpected(r):
		mark = a.paint("33", "the fault that the case expects, and no other")
	case !r.OK:
		mark = a.paint("31", "wrong")
	}
	fmt.Fprintf(a.out, "%s: %s on %s\n", mark, plainNames(r.Kernel), r.Device)
	if len(r.Buffers) == 0 && r.Failure == nil {
		fmt.Fprintln(a.out, "no buffer says what it must hold: only faults were looked for")
	}
	w := a.table()
	if len(r.Buffers) > 0 {
		fmt.Fprintln(w, "\nBUFFER\tMISMATCHES\tMAX ABS ERROR\tMAX REL ERROR\tFIRST")
	}
	for _, b := range r.Buffers {
		first := "-"
		if b.First != nil {
			first = b.First.String()
		}
		relative := "-"
		if b.MaxRel != nil {
			relative = fmt.Sprintf("%.3g", *b.MaxRel)
		}
		fmt.Fprintf(w, "%s\t%d\t%.3g\t%s\t%s\n", bufferName(b), b.Mismatches, b.MaxAbs, relative, first)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, b := range r.Buffers {
		if b.NotCompared > 0 {
			fmt.Fprintf(a.out, "not compared: %d elements of %s, which these blocks left as they were\n", b.NotCompared, bufferName(b))
		}
	}
	if f := r.Failure; f != nil {
		fmt.Fprintf(a.out, "\n%s: %s\n  %s\n", a.paint("31", "the kernel failed"), plainNames(visible(f.Message)), siteText(f.Kernel, f.Site))
	}
	a.printFaults(r.Faults)
	if r.Printed != "" {
		fmt.Fprintf(a.out, "\nprinted by the kernel:\n%s\n", strings.TrimRight(visible(r.Printed), "\n"))
	}
	if r.Counters == nil {
		fmt.Fprintf(a.out, "\n%s\n  time  %.1f us of all launches\n", r.Provenance, r.TimeUS)
		return nil
	}
	if err := a.printCounters(r.Provenance, r.Counters); err != nil {
		return err
	}
	return a.printLines(r.Lines)
}

// printLines shows counts by line, if any were made.
func (a *app) printLines(lines []bench.LineCount) error {
	if len(lines) == 0 {
		return nil
	}
	w := a.table()
	fmt.Fprintln(w, "\nLINE\tINSTRUCTIONS\tACTIVE\tGLOBAL BYTES\tSECTORS EACH\tSHARED WAVEFRONTS\tCONFLICTS\tLOCAL BYTES")
	for i := range lines {
		l := &lines[i]
		name := fmt.Sprintf("PTX %d", l.Line)
		if l.Source != "" {
			name = visible(filepath.Base(l.Source))
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f %%\t%d\t%.4g\t%d\t%d\t%d\n", name, l.Instructions.Warp, 100*l.Efficiency(),
			l.Global.Bytes, l.Global.PerRequest(), l.Shared.Wavefronts, l.Shared.Conflicts(), l.Local.Bytes)
	}
	return w.Flush()
}

func (a *app) printFaults(faults []bench.Fault) {
	for _, f := range faults {
		note := ""
		if f.Expected {
			note = ", as the case expects"
		}
		fmt.Fprintf(a.out, "\n%s (%d times%s): %s\n", a.paint("31", string(f.Class)), f.Count, note, plainNames(visible(f.Message)))
		fmt.Fprintf(a.out, "  %s\n", siteText(f.Kernel, f.Site))
		if f.Other != nil {
			fmt.Fprintf(a.out, "  against %s\n", siteText(f.Kernel, *f.Other))
		}
	}
}

func siteText(kernel string, s bench.Site) string {
	text := fmt.Sprintf("kernel %s, block %v, thread %v", plainNames(kernel), s.Block, s.Thread)
	if s.Line > 0 {
		text += fmt.Sprintf(", PTX line %d", s.Line)
	}
	if s.Source != "" {
		text += ", " + visible(s.Source)
	}
	if s.PTX != "" {
		text += ": " + s.PTX
	}
	return text
}

// printCounters shows the counters that are not zero.
func (a *app) printCounters(from bench.Provenance, c *bench.Counters) error {
	w := a.table()
	fmt.Fprintf(w, "\n%s\n", from)
	fmt.Fprintf(w, "  launched\t%d blocks, %d warps, %d threads\n", c.Blocks, c.Warps, c.Threads)
	for i, n := range c.Instructions {
		if n.Warp > 0 {
			fmt.Fprintf(w, "  %s\t%d warp instructions, %d of threads\n", ptx.Pipe(i), n.Warp, n.Thread)
		}
	}
	for _, t := range c.Tensor {
		fmt.Fprintf(w, "  %s.%s\t%d of %s x %s into %s\n", t.Kind, t.Shape, t.Count, t.A, t.B, t.Accumulator)
	}
	for _, t := range []struct {
		name string
		n    bench.AccessCount
	}{
		{"global loads", c.Global.Loads},
		{"global stores", c.Global.Stores},
		{"global copies", c.Global.Copies},
		{"global bulk writes", c.Global.Writes},
		{"global atomics", c.Global.Atomics},
		{"local memory", c.Local},
	} {
		if t.n.Requests > 0 {
			fmt.Fprintf(w, "  %s\t%d requests, %d bytes, %d sectors (%.4g each)\n", t.name, t.n.Requests, t.n.Bytes, t.n.Sectors, t.n.PerRequest())
		}
	}
	if g := &c.Global; g.UniqueRead+g.UniqueWritten > 0 {
		fmt.Fprintf(w, "  unique bytes\t%d read, %d written\n", g.UniqueRead, g.UniqueWritten)
	}
	if l := &c.L2; l.Reads+l.Writes > 0 {
		fmt.Fprintf(w, "  L2\t%d sectors read, %d written, %.1f %% hits, %d bytes from and to memory\n", l.Reads, l.Writes, 100*l.HitRate(), l.MemoryBytes())
	}
	if k := &c.Bulk; *k != (bench.BulkTraffic{}) {
		fmt.Fprintf(w, "  bulk copies\t%d bytes loaded, %d stored, %d reduced\n", k.Loads, k.Stores, k.Reduces)
	}
	s := &c.Shared
	for _, t := range []struct {
		name string
		n    bench.SharedCount
	}{
		{"shared loads", s.Loads},
		{"shared stores", s.Stores},
		{"shared matrices", s.Matrix},
		{"shared copies", s.Copies},
		{"shared atomics", s.Atomics},
		{"shared operands", s.Operands},
	} {
		if t.n.Requests > 0 {
			fmt.Fprintf(w, "  %s\t%d requests, %d bytes, %d wavefronts (%d without conflicts)\n", t.name, t.n.Requests, t.n.Bytes, t.n.Wavefronts, t.n.Ideal)
		}
	}
	for _, t := range []struct {
		name string
		n    int64
	}{
		{"barriers", c.Barriers},
		{"mbarriers", c.Mbarriers},
		{"fences", c.Fences},
		{"atomics", c.Atomics},
		{"branches", c.Branches},
		{"divergent", c.Divergent},
	} {
		if t.n > 0 {
			fmt.Fprintf(w, "  %s\t%d\n", t.name, t.n)
		}
	}
	fmt.Fprintf(w, "  active lanes\t%.1f %%\n", 100*c.Efficiency())
	return w.Flush()
}
