package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// figureFlags say what to draw of judged kernels, and where.
type figureFlags struct {
	file     string
	view     choice
	basis    choice
	ceilings string
}

func (f *figureFlags) declare(c *cobra.Command) {
	f.basis = choice{value: string(target.Device), words: []string{string(target.Device), string(target.Published)}}
	f.view = choice{value: string(plot.RateView), words: plot.Views()}
	c.Flags().StringVarP(&f.file, "output", "o", "", "draw to `FILE`, which ends in "+plot.Formats)
	choiceFlag(c, &f.basis, "roofs", "memory's roof: by the driver's clock and bus width, or as the vendor prints it")
	c.Flags().StringVar(&f.ceilings, "ceilings", "", "`FILE` of kgen bench ceilings --json: memory's and the L2's measured roofs")
	choiceFlag(c, &f.view, "view", "what -o draws: rates, least times as a plane or as bars, or warp instructions")
}

// roofs are the GPU's, with those that --ceilings measured.
func (f *figureFlags) roofs(g *target.GPU) (roofline.Roofs, error) {
	r := roofline.DeviceRoofs(g)
	if f.basis.value == string(target.Published) {
		r.HBM = g.MarketedHBM()
	}
	if f.ceilings == "" {
		return r, nil
	}
	return measuredRoofs(r, f.ceilings)
}

// check refuses what cannot be drawn, before the work.
func (f *figureFlags) check() error {
	if f.file == "" && f.view.value != string(plot.RateView) {
		return usagef("--view %s: it is drawn with -o FILE", f.view.value)
	}
	return checkFigure(f.file)
}

// draw writes the drawing and returns its absolute path, "" where none is wanted.
func (f *figureFlags) draw(s *plot.Subject) (string, error) {
	if f.file == "" {
		return "", nil
	}
	scene, err := s.Draw(plot.View(f.view.value))
	if err != nil {
		return "", usage(err)
	}
	data, err := scene.Encode(f.file)
	if err != nil {
		return "", err
	}
	if err := writeFile("-o", f.file, data); err != nil {
		return "", err
	}
	return filepath.Abs(f.file)
}

// verdictInfo is a judged kernel as --json prints it.
type verdictInfo struct {
	Name        string               `json:"name"`
	Launches    int                  `json:"launches,omitempty"`
	TimeUS      float64              `json:"time_us,omitempty"`    // absent where nobody timed it
	Provenance  bench.Provenance     `json:"provenance,omitempty"` // of the time
	ClockMHz    float64              `json:"clock_mhz,omitempty"`
	TFLOPS      float64              `json:"tflops"`             // at least_us without a time
	Score       float64              `json:"score,omitempty"`    // by the work that the kernel does
	OfLeast     float64              `json:"of_least,omitempty"` // by the least that a family's problem takes
	Limit       roofline.Unit        `json:"limit"`
	LeastUS     float64              `json:"least_us"`
	Floors      []roofline.Floor     `json:"floors"`
	Intensities []roofline.Intensity `json:"intensities"`
	Traffic     *roofline.Traffic    `json:"traffic,omitempty"`
	Profiler    []busyInfo           `json:"profiler,omitempty"`     // shares of parts' peaks
	Overruled   roofline.Part        `json:"overruled_by,omitempty"` // the part that the profiler saw busier than limit
	Cause       roofline.Cause       `json:"cause,omitempty"`        // of a score above 1
	Doubt       string               `json:"doubt,omitempty"`
	Advice      string               `json:"advice"`
}

// busyInfo is what a profiler saw of a part of the GPU.
type busyInfo struct {
	roofline.Busy
	Provenance bench.Provenance `json:"provenance"`
}

func verdictOf(j *roofline.Judged) *verdictInfo {
	v := &verdictInfo{
		Name: j.Kernel.Name, Launches: j.Kernel.Launches, ClockMHz: j.Kernel.ClockMHz, TFLOPS: j.AttainableTFLOPS(), Limit: j.Binding.Unit, LeastUS: j.LeastUS(),
		Floors: j.Floors, Intensities: append([]roofline.Intensity{}, j.Intensities...), Traffic: j.Traffic(), Advice: j.Advice,
	}
	for _, b := range j.Kernel.Seen.Busy {
		v.Profiler = append(v.Profiler, busyInfo{b, bench.Counted})
	}
	if b, ok := j.Overruled(); ok {
		v.Overruled = b.Part
	}
	if j.Verdict != nil {
		v.TimeUS, v.Provenance, v.TFLOPS, v.Score, v.Cause, v.Doubt = j.Kernel.TimeUS, j.Kernel.From, j.Verdict.TFLOPS, j.Verdict.Score, j.Verdict.Cause, j.Verdict.Doubt
	}
	return v
}

// printVerdict says of a kernel how near its limits it is, why, and what to do next.
func (a *app) printVerdict(j *roofline.Judged) {
	k := j.Kernel
	name := inLine(k.Name)
	if k.Launches > 1 {
		name += fmt.Sprintf(" (mean of %d launches)", k.Launches)
	}
	if j.Verdict == nil {
		fmt.Fprintf(a.out, "%s: at least %.4g us, bound by %s\n", name, j.LeastUS(), j.Roofs.Name(j.Binding.Unit))
	} else {
		share := fmt.Sprintf("%.1f", 100*j.Verdict.Score)
		if j.Verdict.Score < 0.01 || j.Verdict.Score > 1e3 {
			share = fmt.Sprintf("%.2g", 100*j.Verdict.Score)
		}
		bound := fmt.Sprintf("attainable, bound by %s", j.Roofs.Name(j.Binding.Unit))
		if b, ok := j.Overruled(); ok {
			bound = fmt.Sprintf("what the units counted allow (%s); the %s is the busier", j.Roofs.Name(j.Binding.Unit), b.Part)
		}
		fmt.Fprintf(a.out, "%s: %.4g us (%s), %s %% of %s\n", name, k.TimeUS, k.From, share, bound)
	}
	var floors []string
	for _, f := range j.Floors {
		floors = append(floors, fmt.Sprintf("%s %.4g us (%s)", j.Roofs.Name(f.Unit), f.US, f.From))
	}
	fmt.Fprintf(a.out, "  least    %s\n", strings.Join(floors, ", "))
	if busy := busyText(k.Seen.Busy); busy != "" {
		fmt.Fprintf(a.out, "  profiler %s of the peak (%s)\n", busy, bench.Counted)
	}
	if t := j.Traffic(); t != nil {
		fmt.Fprintf(a.out, "  traffic  %s\n", trafficText(t))
	}
	if j.Verdict != nil && j.Verdict.Doubt != "" {
		fmt.Fprintf(a.out, "  %s: %s\n", j.Verdict.Cause, j.Verdict.Doubt)
	}
	fmt.Fprintf(a.out, "  next     %s\n", j.Advice)
}

func trafficText(t *roofline.Traffic) string {
	text := fmt.Sprintf("%sB needed (%s), %sB moved (%s): %.3g times", prefixed(t.Least.Value), t.Least.From, prefixed(t.Counted.Value), t.Counted.From, t.Ratio)
	if t.Doubt != "" {
		text += ": " + t.Doubt
	}
	return text
}
