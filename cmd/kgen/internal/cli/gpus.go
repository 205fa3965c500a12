package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
bandwidth_gbs are needed. --gpu takes such a file everywhere. Peaks are computed from
SMs, clocks and fma_per_sm_clk; those in peak_dense_tflops must agree with them.
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
		all := struct {
			GPUs    []json.RawMessage        `json:"gpus"`
			Sources map[string]target.Source `json:"sources"` // behind the names in each GPU's sources
		}{Sources: target.Sources()}
		for _, g := range target.All() {
			r, err := recordWithAliases(g)
			if err != nil {
				return err
			}
			all.GPUs = append(all.GPUs, r)
		}
		return a.printJSON(all)
	}
	w := a.table()
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
	w := a.table()
	t := gpuText{g: g, cited: map[string]bool{}}
	for _, r := range t.rows() {
		fmt.Fprintf(w, "  %s\t%s\n", r.name, r.text)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(t.cited) == 0 { // a GPU of the user's own
		return nil
	}
	fmt.Fprint(a.out, "\n[A: two sources that agree, one of them a device or NVIDIA; B: one, and what follows from it agrees (-: less well); C: disputed]\n")
	for _, name := range slices.Sorted(maps.Keys(t.cited)) {
		s := target.Sources()[name]
		fmt.Fprintf(a.out, "  %-8s %s: %s\n", name, s.Title, s.Where)
	}
	return nil
}

// gpuText puts a GPU's figures in words, each with its sources and their status.
type gpuText struct {
	g     *target.GPU
	cited map[string]bool
}

type gpuRow struct{ name, text string }

// cite names the sources of fields of the record, with the worst of their status.
func (t *gpuText) cite(fields ...string) string {
	status := ""
	var names []string
	for _, f := range fields {
		status = max(status, t.g.Status[f])
		for _, n := range t.g.FieldSources[f] {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return t.bracket(status, names)
}

func (t *gpuText) bracket(status string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	for _, n := range names {
		t.cited[n] = true
	}
	if status != "" {
		status += ": "
	}
	return fmt.Sprintf(" [%s%s]", status, strings.Join(names, " "))
}

func (t *gpuText) figure(f target.Figure, field string) string {
	if t.basis(f.Basis) == own {
		return fmt.Sprintf("%.0f GB/s, %s", f.Value, own)
	}
	return fmt.Sprintf("%.0f GB/s, %s: %s%s", f.Value, f.Basis, f.Note, t.bracket(t.g.Status[field], f.Sources))
}

// own is the basis of figures of a user's own file, which nobody has printed or seen.
const own target.Basis = "own"

// basis is what a figure rests on, in the words of reports.
func (t *gpuText) basis(b target.Basis) target.Basis {
	if len(t.g.FieldSources) == 0 && (b == target.Published || b == target.Device) {
		return own
	}
	return b
}

// known is a quantity that a record may lack.
func known(v float64, unit string) string {
	if v == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%g %s", v, unit)
}

func (t *gpuText) rows() []gpuRow {
	var out []gpuRow
	row := func(name, format string, args ...any) { out = append(out, gpuRow{name, fmt.Sprintf(format, args...)}) }
	g, l := t.g, t.g.Limits()
	if names := g.Aliases(); len(names) > 0 {
		row("aliases", "%s", strings.Join(names, " "))
	}
	row("architecture", "sm_%d, %d SMs%s", g.CC.SM(), g.SMs, t.cite("compute_capability", "sm_count"))
	row("clocks", "%s", t.clocks())
	row("memory", "%s%s", strings.TrimSpace(known(g.MemoryGB, "GB")+" "+g.MemoryType), t.cite("memory_gb", "memory_type"))
	row("memory bandwidth", "%s", t.figure(g.HBM(), bandwidthField(g.HBM())))
	if g.HBM().Basis != target.Published {
		row("", "%s", t.figure(g.MarketedHBM(), "bandwidth_gbs"))
	}
	row("L2", "%s%s", known(g.L2MiB, "MiB"), t.cite("l2_mib"))
	row("L2 bandwidth", "%s", t.figure(g.L2(), ""))
	row("shared memory", "%d bytes a block%s", l.SharedPerBlock, t.cite("smem_per_block_optin_kib"))
	row("registers", "%d an SM%s", l.RegistersPerSM, t.cite("registers_per_sm"))
	row("warps", "%d an SM%s", l.WarpsPerSM, t.cite("max_warps_per_sm"))
	if g.NVLinkGBs > 0 {
		row("NVLink", "%g GB/s, both ways together%s", g.NVLinkGBs, t.cite("nvlink_gbs"))
	}
	for _, m := range target.Maths() {
		if p, ok := g.Peak(m); ok {
			row(string(m), "%.4g T/s dense, %s: %d SMs x %g FMA x 2 x %.0f MHz%s", p.TFLOPS, t.basis(p.Basis), g.SMs, p.Rate, p.ClockMHz, t.printed(m))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Measured)) {
		row("measured", "%s %g%s", name, g.Measured[name].Value, t.bracket("", []string{g.Measured[name].Source}))
	}
	for _, c := range g.Conflicts {
		row("conflict", "%s", c)
	}
	return out
}

// clocks are those that peaks are computed at, and the device's highest.
func (t *gpuText) clocks() string {
	text := fmt.Sprintf("%.0f MHz%s", t.g.Clock(), t.cite("clock_mhz"))
	if c := t.g.TensorClockMHz; c > 0 {
		text += fmt.Sprintf("; tensor cores %.0f MHz%s", c, t.cite("tensor_clock_mhz"))
	}
	if c := t.g.MaxClockMHz; c > 0 {
		text += fmt.Sprintf("; the driver reports up to %.0f MHz", c)
	}
	return text
}

// bandwidthField is the field behind the memory's bandwidth.
func bandwidthField(f target.Figure) string {
	if f.Basis == target.Published {
		return "bandwidth_gbs"
	}
	return "memory_clock_mhz"
}

// printed sets the vendor's figure beside ours.
func (t *gpuText) printed(m target.Math) string {
	if p := t.g.PublishedTFLOPS[m]; p > 0 {
		return fmt.Sprintf("; the vendor prints %g%s", p, t.cite("peak_dense_tflops."+string(m)))
	}
	return ""
}
