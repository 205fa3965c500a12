package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/roofline/plot"
	"github.com/kgen-dev/kgen/tune"
)

// rooflineReport is what kgen roofline --json prints.
type rooflineReport struct {
	Kernel      string               `json:"kernel"`
	GPU         string               `json:"gpu"`
	Problem     family.Settings      `json:"problem"`
	Work        workInfo             `json:"work"`
	Floors      []roofline.Floor     `json:"floors"`
	Limit       roofline.Unit        `json:"limit"`
	LeastUS     float64              `json:"least_us"`
	TFLOPS      float64              `json:"attainable_tflops"`
	Intensities []roofline.Intensity `json:"intensities"`
	Provenance  bench.Provenance     `json:"provenance"` // of the four above
	Library     *tune.Library        `json:"library"`    // null where the tables lack the problem
	Drawing     string               `json:"drawing,omitempty"`
}

// workInfo is a problem's work; all of it is by formula.
type workInfo struct {
	Math       target.Math      `json:"math"`
	FLOPs      float64          `json:"flops"`
	Bytes      float64          `json:"bytes"`
	Exp2       float64          `json:"exp2"`
	Provenance bench.Provenance `json:"provenance"`
}

func (a *app) rooflineCommand() *cobra.Command {
	var file string
	model := newModelFlags()
	c := a.familyCommand(familyVerb{
		name:  "roofline",
		short: "Say how fast a problem can be on a GPU, and what limits it",
		long: `Say how fast a problem can be on a GPU at best: the least time of each unit for
the operations and bytes that the problem needs by formula, the unit that binds,
and what a library reached where the measured tables have the problem.

With --model and no family: the least time of every operator of a language model,
tokens a second, memory and collectives, all by formula.`,
		example: `  kgen roofline gemm --gpu a100 --m 8192
  kgen roofline flashattn --gpu h100 --seq 16384 -o attention.svg
  kgen roofline --model llama3.1-8b --phase decode --batch 64 --gpu h100`,
		flags: func(c *cobra.Command) {
			c.Flags().StringVarP(&file, "output", "o", "", "draw the roofline to `FILE`, which ends in "+plot.Formats)
			a.jsonFlag(c)
		},
		run: func(_ context.Context, j *job) error {
			if err := checkFigure(file); err != nil {
				return err
			}
			return a.roofline(j, file)
		},
		fileFlags: model.declare,
		alone:     model.alone(a),
	})
	c.AddCommand(a.importCommand(), a.libraryCommand(), a.reproduceCommand())
	return c
}

func (a *app) roofline(j *job, file string) error {
	if err := j.launchable(); err != nil {
		return err
	}
	work := j.problem.Work()
	assessment, err := roofline.Assess(roofline.DeviceRoofs(j.gpu), tune.FormulaWork(work))
	if err != nil {
		return usage(err)
	}
	library, err := tune.LibraryTime(j.problem, j.gpu)
	if err != nil {
		return err
	}
	r := &rooflineReport{
		Kernel: j.family.Name, GPU: j.gpu.ID, Problem: j.problem.Settings(),
		Work: workInfo{work.Math, work.FLOPs, work.Bytes, work.Exp2, bench.Formula}, Floors: assessment.Floors, Limit: assessment.Binding.Unit, LeastUS: assessment.LeastUS(),
		TFLOPS: assessment.AttainableTFLOPS(), Intensities: assessment.Intensities, Provenance: bench.Formula,
	}
	r.Library = library
	if file != "" {
		figure, err := drawing(r, assessment)
		if err != nil {
			return err
		}
		if err := drawTo(file, figure); err != nil {
			return err
		}
		if r.Drawing, err = filepath.Abs(file); err != nil {
			return err
		}
	}
	return a.printRoofline(j, r)
}

// drawing is the roofline with the problem at its limit.
func drawing(r *rooflineReport, assessment *roofline.Assessment) (*plot.Figure, error) {
	gpu := assessment.Roofs.GPU
	f, err := plot.Device(r.Kernel+" on "+gpu.Name, assessment)
	if err != nil {
		return nil, err
	}
	f.Subtitle = r.Problem.String()
	f.Series = append(f.Series, plot.Series{Name: "attainable", From: bench.Formula, Dots: []plot.Dot{{
		Label: fmt.Sprintf("%.0f TFLOP/s, bound by %s", r.TFLOPS, r.Limit), TFLOPS: r.TFLOPS, At: r.Intensities,
	}}})
	if t := r.Library; t != nil {
		if err := f.Measured(fmt.Sprintf("%s %s, %s", t.Framework, t.Version, t.Type), t.US, assessment); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (a *app) printRoofline(j *job, r *rooflineReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s (%s) on %s\n", r.Kernel, r.Problem, j.gpu.Name)
	fmt.Fprintf(a.out, "at best %.4g us, %.4g TFLOP/s, bound by %s (formula)\n\n", r.LeastUS, r.TFLOPS, r.Limit)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "UNIT\tLEAST TIME\tWORK IS BY\tCEILING")
	for _, f := range r.Floors {
		fmt.Fprintf(w, "%s\t%.4g us\t%s\t%s\n", f.Unit, f.US, f.From, f.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	a.printLibrary(r.Library)
	if r.Drawing != "" {
		fmt.Fprintf(a.out, "drawing   %s\n", r.Drawing)
	}
	return nil
}

// printLibrary says what a library reached, if the tables have the problem.
func (a *app) printLibrary(t *tune.Library) {
	if t == nil {
		fmt.Fprintln(a.out, "library   no measurement of this problem on this GPU is in the tables")
		return
	}
	for _, time := range append([]measured.Time{t.Time}, t.Others...) {
		fmt.Fprintf(a.out, "library   %s, %s\n", time, t.Provenance)
	}
}
