package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/ceilings"
	"github.com/kgen-dev/kgen/bench/cuda"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
)

// ceilingsReport is what kgen bench ceilings --json prints, and --ceilings reads.
type ceilingsReport struct {
	Device   string             `json:"device"` // as the driver names it
	GPU      string             `json:"gpu"`    // its id; "" where the table lacks it
	Ceilings []ceilings.Ceiling `json:"ceilings"`

	Libraries []libraryPeak `json:"libraries"` // what libraries reached on such a GPU
}

// libraryPeak is the best that libraries reached with an operation at any shape.
type libraryPeak struct {
	Op         measured.Op      `json:"op"`
	Type       string           `json:"type"`
	TFLOPS     float64          `json:"tflops"`
	Shape      string           `json:"shape"`
	Provenance bench.Provenance `json:"provenance"`
}

// libraryPeaks are those that the measured tables have of a GPU.
func libraryPeaks(g *target.GPU) []libraryPeak {
	all := []libraryPeak{}
	for _, op := range measured.Ops() {
		for _, typ := range measured.Types() {
			if p, err := measured.Best(op, g.ID, typ); err == nil { // else the tables lack it
				all = append(all, libraryPeak{op, typ, p.TFLOPS, p.TFLOPSShape, bench.Measured})
			}
		}
	}
	return all
}

func (a *app) ceilingsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ceilings",
		Short: "Measure what this GPU's memory, L2 and arithmetic reach",
		Long: `Measure what this machine's first GPU reaches: streams that write, read, scale and
add buffers far larger than its L2, reads that its L2 holds, f32 FMAs and mma.sync.
They are the measured roofs, beside the published ones and those by the driver's
clocks: --json prints what kgen roofline --ceilings FILE reads.

It needs an NVIDIA driver and a kgen that make build-cuda built.`,
		Example: "  kgen bench ceilings --json > h100.ceilings.json\n  kgen roofline gemm --gpu h100 --ceilings h100.ceilings.json",
		Args:    positional(),
		RunE:    func(c *cobra.Command, _ []string) error { return a.ceilings(c) },
	}
	a.jsonFlag(c)
	return c
}

func (a *app) ceilings(c *cobra.Command) error {
	info, err := cuda.Find()
	if err != nil {
		return fmt.Errorf("ceilings are measured: %w", err)
	}
	if len(info.Devices) == 0 {
		return fmt.Errorf("ceilings are measured: the driver finds no GPU")
	}
	dev, err := cuda.Open(0)
	if err != nil {
		return err
	}
	defer dev.Close()
	found := info.Devices[0]
	r := &ceilingsReport{Device: found.Name}
	l2 := int64(0)
	g, err := target.Lookup(found.Name)
	if err == nil {
		r.GPU, l2, r.Libraries = g.ID, g.L2Bytes(), libraryPeaks(g)
	}
	if r.Ceilings, err = ceilings.Measure(c.Context(), dev, ceilings.Sizes(10*found.Major+found.Minor, found.SMs, l2)); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s, measured\n\n", visible(r.Device))
	w := a.table()
	fmt.Fprintln(w, "UNIT\tPATTERN\tREACHED\t\tOF THE DEVICE'S")
	for _, x := range r.Ceilings {
		share := "-"
		if roof := deviceRate(g, &x); roof > 0 {
			share = fmt.Sprintf("%.1f %%", 100*x.Rate/roof)
		}
		fmt.Fprintf(w, "%s\t%s\t%.4g %s\t%.4g us\t%s\n", ceilingName(g, x.Unit), x.Pattern, x.Rate, x.In, x.US, share)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, l := range r.Libraries {
		fmt.Fprintf(a.out, "library   %s of %s: %.4g TFLOP/s at best (%s), %s\n", l.Op, l.Type, l.TFLOPS, l.Shape, l.Provenance)
	}
	return nil
}

// ceilingName names what a ceiling is of, the memory by its kind where the GPU is known.
func ceilingName(g *target.GPU, unit string) string {
	if g == nil {
		return unit
	}
	return roofline.Unit(unit).Name(g)
}

// deviceRate is the same by the driver's clocks and widths; 0 where it is not known.
func deviceRate(g *target.GPU, c *ceilings.Ceiling) float64 {
	if g == nil {
		return 0
	}
	roofs := roofline.DeviceRoofs(g)
	if v := roofs.Bandwidth(roofline.Unit(c.Unit)); v > 0 {
		return v
	}
	m := target.Math(c.Unit)
	if c.Unit == "fp16" {
		m = target.F16Acc32
	}
	p, _ := g.Peak(m)
	return p.TFLOPS
}

// meansGPU says whether a name is a GPU's, by any that --gpu takes.
func meansGPU(name string, g *target.GPU) bool {
	found, err := target.Lookup(name)
	return name == g.ID || name == g.Name || err == nil && found.ID == g.ID
}

// measuredRoofs puts the best that kgen bench ceilings measured in the place of memory's
// and the L2's roofs.
func measuredRoofs(r roofline.Roofs, file string) (roofline.Roofs, error) {
	text, err := userfile.Read(file, maxImport)
	if err != nil {
		return r, usagef("--ceilings: %w", err)
	}
	var report ceilingsReport
	if err := json.Unmarshal(text, &report); err != nil {
		return r, usagef("--ceilings %s:%w", file, jsontext.Locate(text, err))
	}
	if err := jsontext.Once(text); err != nil {
		return r, usagef("--ceilings %s:%w", file, err)
	}
	if report.GPU != "" && !meansGPU(report.GPU, r.GPU) {
		return r, usagef("--ceilings %s: measured on %s, not on %s", file, report.GPU, r.GPU.ID)
	}
	used := false
	for _, c := range report.Ceilings {
		var roof *target.Figure
		switch roofline.Unit(c.Unit) {
		case roofline.HBM:
			roof = &r.HBM
		case roofline.L2:
			roof = &r.L2
		default:
			continue
		}
		if !(c.Rate >= target.LeastFigure && c.Rate <= target.MostFigure) || c.Provenance != bench.Measured || c.In != "GB/s" {
			return r, usagef("--ceilings %s: %s %s: %g %s: want a measured rate from %g to %g GB/s", file, c.Unit, c.Pattern, c.Rate, c.In, target.LeastFigure, target.MostFigure)
		}
		if roof.Basis != target.Probed || roof.Value < c.Rate {
			*roof = target.Figure{Value: c.Rate, Basis: target.Probed, Note: c.Pattern + ", " + filepath.Base(file)}
		}
		used = true
	}
	if !used {
		return r, usagef("--ceilings %s: no rate of %s: want what kgen bench ceilings --json prints", file, strings.Join([]string{string(roofline.HBM), string(roofline.L2)}, " or "))
	}
	return r, nil
}
