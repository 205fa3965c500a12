package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/llm"
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
	Provenance  bench.Provenance     `json:"provenance"`    // of the four above
	Default     *verdictInfo         `json:"configuration"` // the untuned one or that of --set, predicted; null where no code is generated for the GPU
	Library     *tune.Library        `json:"library"`       // null where the tables lack the problem
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
	var figure figureFlags
	var set []string
	var sweep []string
	model := newModelFlags(&figure)
	c := a.familyCommand(familyVerb{
		name:  "roofline",
		short: "Say how fast a problem can be on a GPU, and what limits it",
		long: `Say how fast a problem can be on a GPU at best: the least time of each unit for
the operations and bytes that the problem needs by formula, the unit that binds,
and what a library reached where the measured tables have the problem. Beside it
what a configuration of ours moves and takes as predicted: the default one, or
that of --set.

-o draws it in a --view: rates over operations per byte (roofline); the times of
arithmetic and memory as a plane with lines of equal time (time) or as bars
(floors); warp instructions over transactions (instructions).

With --model and no family: the least time of every operator of a language model,
tokens a second, memory and collectives, all by formula. A config.json is that of a
decoder as Hugging Face's Transformers write it, dense or a mixture of experts, with
weights as they are or quantised (fp8, gptq, awq, mxfp4), of one of the model_types
  ` + llm.ModelTypes() + `
One of another is counted as Llama's, with a note, if nothing in it says otherwise.
Keys that contradict each other are refused.`,
		example: `  kgen roofline gemm --gpu a100 --m 8192
  kgen roofline flashattn --gpu h100 --seq 16384 -o attention.svg
  kgen roofline softmax --gpu h100 --view instructions -o softmax.html
  kgen roofline --model llama3.1-8b --phase decode --batch 64 --gpu h100`,
		flags: func(c *cobra.Command) {
			figure.declare(c)
			if c.Name() != "roofline" {
				settingFlag(c, &set)
				c.Flags().StringArrayVar(&sweep, "sweep", nil, "instead of one problem several: `FLAG=V,V,...`, or FLAG=FROM:TO for doublings")
			}
			a.jsonFlag(c)
		},
		run: func(_ context.Context, j *job) error {
			if err := figure.check(); err != nil {
				return err
			}
			if len(sweep) > 1 {
				return usagef("--sweep %s and --sweep %s: want one", sweep[0], sweep[1])
			}
			if len(sweep) == 1 {
				return a.sweep(j, &figure, set, sweep[0])
			}
			return a.roofline(j, &figure, set)
		},
		fileFlags: model.declare,
		alone:     model.alone(a),
		otherwise: "; or --model NAME",
	})
	c.AddCommand(a.importCommand(), a.libraryCommand(), a.reproduceCommand())
	return c
}

func (a *app) roofline(j *job, figure *figureFlags, set []string) error {
	roofs, err := figure.roofs(j.gpu)
	if err != nil {
		return err
	}
	l, err := j.limits(roofs, set)
	if err != nil {
		return err
	}
	subject := &plot.Subject{Title: l.report.Kernel + " on " + j.gpu.Name, Subtitle: l.report.Problem.String(), Alternatives: true, Kernels: l.kernels()}
	if peaks := tune.LibraryPeaks(j.problem, j.gpu); peaks != nil && figure.file != "" {
		subject.Roofs = []plot.Roof{{Label: fmt.Sprintf("libraries reach %.4g TFLOP/s (measured)", peaks.TFLOPS), TFLOPS: peaks.TFLOPS, Second: true}}
	}
	if l.report.Drawing, err = figure.draw(subject); err != nil {
		return err
	}
	return a.printRoofline(j, l.report, l.configuration)
}

// limits are what is known of a problem on a GPU.
type limits struct {
	report        *rooflineReport
	best          *roofline.Judged // at the least time
	configuration *roofline.Judged // predicted, or nil
	library       *roofline.Judged // measured, or nil
}

func (l *limits) kernels() []*roofline.Judged {
	return slices.DeleteFunc([]*roofline.Judged{l.best, l.configuration, l.library}, func(j *roofline.Judged) bool { return j == nil })
}

func (j *job) limits(roofs roofline.Roofs, set []string) (*limits, error) {
	if err := j.launchable(); err != nil {
		return nil, err
	}
	best, err := j.best(roofs)
	if err != nil {
		return nil, err
	}
	work := j.problem.Work()
	l := &limits{best: best}
	library, err := tune.LibraryTime(j.problem, j.gpu)
	if err != nil {
		return nil, err
	}
	if l.configuration, err = j.configuration(roofs, set); err != nil {
		return nil, err
	}
	l.report = &rooflineReport{
		Kernel: j.family.Name, GPU: j.gpu.ID, Problem: j.problem.Settings(),
		Work: workInfo{work.Math, work.FLOPs, work.Bytes, work.Exp2, bench.Formula}, Floors: best.Floors, Limit: best.Binding.Unit, LeastUS: best.LeastUS(),
		TFLOPS: best.AttainableTFLOPS(), Intensities: best.Intensities, Provenance: bench.Formula, Library: library,
	}
	if l.configuration != nil {
		l.report.Default = verdictOf(l.configuration)
		l.report.Default.OfLeast = ofLeast(l.configuration, best)
	}
	if library != nil {
		k := roofline.Kernel{Name: fmt.Sprintf("%s %s, %s", library.Framework, library.Version, library.Type), Work: best.Work, TimeUS: library.US, From: library.Provenance}
		l.library, err = k.Judge(roofs)
	}
	return l, err
}

// best is the problem's work at its least, judged by the roofs.
func (j *job) best(roofs roofline.Roofs) (*roofline.Judged, error) {
	best, err := (&roofline.Kernel{Work: tune.FormulaWork(j.problem.Work())}).Judge(roofs)
	if err != nil {
		return nil, usage(err)
	}
	best.Kernel.Name = fmt.Sprintf("attainable, bound by %s", roofs.Name(best.Binding.Unit))
	return best, nil
}

// ofLeast is the problem's least time over that of a configuration: what tuning calls its
// score. A verdict's own score is by the work that the configuration does, needed or not.
func ofLeast(c, best *roofline.Judged) float64 { return best.LeastUS() / c.Kernel.TimeUS }

// configuration is what the default configuration, or that of the settings, does by the
// cost model; nil where no code is generated for the GPU, unless there are settings.
func (j *job) configuration(roofs roofline.Roofs, set []string) (*roofline.Judged, error) {
	c, err := j.config(set)
	if err == nil {
		var k *roofline.Kernel
		if k, err = tune.PredictKernel(j.problem, j.gpu, c); err == nil {
			return k.Judge(roofs)
		}
	}
	if len(set) == 0 {
		return nil, nil //nolint:nilerr // the problem's limits do not depend on it
	}
	return nil, compileError(err)
}

func (a *app) printRoofline(j *job, r *rooflineReport, configuration *roofline.Judged) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s (%s) on %s\n", r.Kernel, r.Problem, j.gpu.Name)
	fmt.Fprintf(a.out, "at best %.4g us, %.4g TFLOP/s, bound by %s (formula)\n\n", r.LeastUS, r.TFLOPS, roofline.DeviceRoofs(j.gpu).Name(r.Limit))
	w := a.table()
	fmt.Fprintln(w, "UNIT\tLEAST TIME\tWORK IS BY\tCEILING")
	for _, f := range r.Floors {
		fmt.Fprintf(w, "%s\t%.4g us\t%s\t%s\n", roofline.DeviceRoofs(j.gpu).Name(f.Unit), f.US, f.From, f.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	if configuration != nil {
		a.printVerdict(configuration)
		a.printOfLeast(r.Default, r.LeastUS)
	}
	a.printLibrary(r.Library)
	if r.Drawing != "" {
		fmt.Fprintf(a.out, "drawing   %s\n", r.Drawing)
	}
	return nil
}

// printOfLeast says how near a configuration is to what the problem takes at least.
func (a *app) printOfLeast(v *verdictInfo, leastUS float64) {
	fmt.Fprintf(a.out, "  problem  %.3g %% of the rate that its least work and traffic allow (%.4g us, formula)\n", 100*v.OfLeast, leastUS)
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
