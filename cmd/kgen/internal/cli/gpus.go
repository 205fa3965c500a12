package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen/target"
)

func (a *app) gpusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "gpus [NAME]",
		Short: "List the GPUs kgen knows, or show one",
		Long: `List the GPUs kgen knows, or show one with the source of each figure.

A name is an id, an alias such as h100 or sm_86, or what the driver reports; a
name that ends in .json is a file with a GPU of your own: an object with the keys
that --json prints, of which id, compute_capability, sm_count, clock_mhz and
bandwidth_gbs are needed. --gpu takes such a file everywhere.
Bandwidth is the memory's: "device" is from the clock and bus width that a
driver reports, "published" is what the vendor prints. TFLOP/s are dense, of
16-bit tensor instructions with 32-bit accumulation, from SMs, rate and clock.`,
		Args:              positional("[NAME]"),
		ValidArgsFunction: completeGPUs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listGPUs()
			}
			g, err := anyGPU(args[0])
			if err != nil {
				return err
			}
			return a.showGPU(g)
		},
	}
	a.jsonFlag(c)
	return c
}

// completeGPUs completes a GPU's name in arguments and in --gpu.
func completeGPUs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, g := range target.All() {
			names = append(names, g.ID+"\t"+g.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) listGPUs() error {
	if a.json {
		var all struct {
			GPUs []json.RawMessage `json:"gpus"`
		}
		for _, g := range target.All() {
			r, err := recordWithAliases(g)
			if err != nil {
				return err
			}
			all.GPUs = append(all.GPUs, r)
		}
		return a.printJSON(all)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tARCH\tSMS\tMEMORY\tGB/S\tTFLOP/S\tALIASES")
	for _, g := range target.All() {
		hbm := g.HBM()
		fmt.Fprintf(w, "%s\tsm_%d\t%d\t%g GB %s\t%.0f %s\t%s\t%s\n", g.ID, g.CC.SM(), g.SMs, g.MemoryGB, g.MemoryType,
			hbm.Value, hbm.Basis, tensorPeak(g), strings.Join(g.Aliases(), " "))
	}
	return w.Flush()
}

// recordWithAliases is a GPU's record with its other names at the end.
func recordWithAliases(g *target.GPU) (json.RawMessage, error) {
	aliases, err := json.Marshal(g.Aliases())
	if err != nil {
		return nil, err
	}
	record := bytes.TrimSuffix(bytes.TrimSpace(g.JSON()), []byte("}"))
	return fmt.Appendf(nil, `%s, "aliases": %s}`, record, aliases), nil
}

// tensorPeak is the dense peak of the better 16-bit type with 32-bit accumulation.
func tensorPeak(g *target.GPU) string {
	for _, m := range []target.Math{target.BF16, target.F16Acc32} {
		if p, ok := g.Peak(m); ok {
			return fmt.Sprintf("%.0f %s", p.TFLOPS, p.Basis)
		}
	}
	return "-"
}

func (a *app) showGPU(g *target.GPU) error {
	if a.json {
		r, err := recordWithAliases(g)
		if err != nil {
			return err
		}
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s (%s)\n", g.Name, g.ID)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	figure := func(f target.Figure) string {
		return fmt.Sprintf("%.0f GB/s, %s: %s [%s]", f.Value, f.Basis, f.Note, strings.Join(f.Sources, " "))
	}
	l := g.Limits()
	row("aliases", "%s", strings.Join(g.Aliases(), " "))
	row("architecture", "sm_%d, %d SMs", g.CC.SM(), g.SMs)
	row("memory", "%g GB %s", g.MemoryGB, g.MemoryType)
	row("memory bandwidth", "%s", figure(g.HBM()))
	if g.HBM().Basis != target.Published {
		row("", "%s", figure(g.MarketedHBM()))
	}
	row("L2", "%g MiB", g.L2MiB)
	row("L2 bandwidth", "%s", figure(g.L2()))
	row("shared memory", "%d bytes a block", l.SharedPerBlock)
	row("registers", "%d an SM", l.RegistersPerSM)
	row("warps", "%d an SM", l.WarpsPerSM)
	for _, m := range target.Maths() {
		if p, ok := g.Peak(m); ok {
			row(string(m), "%.4g T/s dense, %s: %d SMs x %g FMA x 2 x %.0f MHz%s", p.TFLOPS, p.Basis, g.SMs, p.Rate, p.ClockMHz, printed(g, m))
		}
	}
	for _, c := range g.Conflicts {
		row("conflict", "%s", c)
	}
	return w.Flush()
}

// printed sets the vendor's figure beside ours.
func printed(g *target.GPU, m target.Math) string {
	if p := g.PublishedTFLOPS[m]; p > 0 {
		return fmt.Sprintf("; the vendor prints %g", p)
	}
	return ""
}
