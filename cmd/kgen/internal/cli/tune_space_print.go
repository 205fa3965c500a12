package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/plot"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/queue"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/spec"
	"github.com/kgen-dev/kgen/tune/store"
)

// coolDown is how long a GPU that has become slower is left alone.
const coolDown = 5 * time.Second

// mostShown is how many of the best are printed.
const mostShown = 10

// spaceReport is what kgen tune --space --json prints.
type spaceReport struct {
	Kernel      string                `json:"kernel"`
	GPU         string                `json:"gpu"`
	Space       spaceSize             `json:"space"`
	Strategy    string                `json:"strategy"`
	Seed        uint64                `json:"seed"`
	Evaluations int                   `json:"evaluations"`
	Fresh       int                   `json:"fresh"` // evaluations that were not in the store
	Failures    map[store.Outcome]int `json:"failures"`
	Wrong       []tune.Wrong          `json:"wrong,omitempty"` // what computes something else, or faults
	Best        []spaceBest           `json:"best"`
	Causes      []explore.Cause       `json:"causes"`
	Importance  []explore.Importance  `json:"importance"`
	Together    *float64              `json:"importance_together"`
	Samples     int                   `json:"importance_samples"` // times that Importance follows from
	Seconds     map[string]float64    `json:"seconds"`            // by phase, added up over all processes
	Trace       []spaceTry            `json:"trace"`
	Workers     []queue.Standing      `json:"workers,omitempty"` // instead of this process
	Artifacts   spaceArtifacts        `json:"artifacts"`
}

type spaceSize struct {
	Total   int64         `json:"total"`
	Valid   int64         `json:"valid"`
	Removed []removedText `json:"removed"`
}

type removedText struct {
	Constraint string `json:"constraint"`
	Count      int64  `json:"count"`
}

type spaceBest struct {
	Config      space.Config       `json:"config"`
	TimeUS      float64            `json:"time_us"`
	LowUS       *float64           `json:"low_us"` // 95 % interval of the median; null without samples
	HighUS      *float64           `json:"high_us"`
	Samples     int                `json:"samples"`
	Provenance  bench.Provenance   `json:"provenance"`
	Verified    bool               `json:"verified"`
	Throttled   bool               `json:"throttled"`
	Registers   int                `json:"registers"`
	SharedBytes int                `json:"shared_bytes"`
	SpillBytes  int                `json:"spill_bytes"`
	CTAsPerSM   int                `json:"ctas_per_sm"`
	Limits      map[string]float64 `json:"limits"`
	Terms       map[string]float64 `json:"terms"`
}

type spaceTry struct {
	Evaluation int           `json:"evaluation"` // from 1
	Config     space.Config  `json:"config"`
	Status     store.Outcome `json:"status"`
	Error      string        `json:"error,omitempty"`
	TimeUS     *float64      `json:"time_us"`
	BestUS     *float64      `json:"best_us"`
}

type spaceArtifacts struct {
	CUDA   string `json:"cuda"` // of the best configuration: the source with its macros
	PTX    string `json:"ptx"`
	Cubin  string `json:"cubin"`
	Launch string `json:"launch"` // how to launch it: docs/launch.md
	Plot   string `json:"plot"`
	Store  string `json:"store"`
}

func sizeOf(c space.Counts) spaceSize {
	s := spaceSize{Total: c.Total, Valid: c.Valid, Removed: []removedText{}}
	for _, r := range c.Removed {
		s.Removed = append(s.Removed, removedText{r.Constraint, r.Count})
	}
	return s
}

func (a *app) spaceReport(f *tuneFlags, b *spec.Bound, r *explore.Result) *spaceReport {
	out := &spaceReport{
		Kernel: b.Name, GPU: b.GPU.ID, Space: sizeOf(b.Space.Count()), Strategy: f.strategy, Seed: f.seed,
		Evaluations: len(r.Tried), Fresh: r.Fresh, Seconds: r.Seconds,
	}
	times := explore.Times(r.Tried)
	importance := explore.Importances(times)
	out.Importance, out.Together, out.Samples = importance.Parameters, importance.Together, importance.Samples
	failed := r.Failures()
	out.Failures, out.Causes = explore.CountFailures(failed), explore.Causes(failed)
	for _, f := range failed {
		if f.Outcome.Wrong() {
			out.Wrong = append(out.Wrong, tune.Wrong{Config: f.Config, Outcome: f.Outcome, Fault: f.Error})
		}
	}
	if out.Strategy == "" {
		out.Strategy = search.Default
	}
	for _, t := range r.Best[:min(mostShown, len(r.Best))] {
		out.Best = append(out.Best, bestOf(&t))
	}
	var best *float64
	for i, t := range r.Tried {
		e := &t.Evaluation
		try := spaceTry{Evaluation: i + 1, Config: t.Config, Status: e.Outcome, Error: e.Error}
		if e.Outcome.Timed() {
			us := e.TimeUS
			try.TimeUS = &us
			if best == nil || us < *best {
				best = &us
			}
		}
		try.BestUS = best
		out.Trace = append(out.Trace, try)
	}
	return out
}

func bestOf(t *explore.Trial) spaceBest {
	e := &t.Evaluation
	b := spaceBest{
		Config: t.Config, TimeUS: e.TimeUS, Samples: len(e.Samples), Provenance: e.Provenance, Verified: e.Verified, Throttled: e.Throttled,
		Registers: e.Registers, SharedBytes: e.SharedBytes, SpillBytes: e.SpillBytes, CTAsPerSM: e.CTAsPerSM, Limits: e.Limits, Terms: e.Terms,
	}
	if t.High > 0 {
		b.LowUS, b.HighUS = &t.Low, &t.High
	}
	return b
}

// printSpace prints a report; configurations that a check found wrong are its error.
func (a *app) printSpace(b *spec.Bound, r *spaceReport) error {
	if err := a.printSpaceReport(b, r); err != nil {
		return err
	}
	if n := len(r.Wrong); n > 0 {
		return wrong(fmt.Errorf("%s: %s found and left out; the first: %s", visible(r.Kernel), numberOf(n, "wrong configuration"), r.Wrong[0].Config))
	}
	return nil
}

func (a *app) printSpaceReport(b *spec.Bound, r *spaceReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s on %s\n", visible(r.Kernel), b.GPU.Name)
	fmt.Fprintf(a.out, "space     %s\n", b.Space.Count())
	fmt.Fprintf(a.out, "tried     %d with %s, seed %d%s%s\n", r.Evaluations, r.Strategy, r.Seed, knownText(r), failedText(r.Failures))
	fmt.Fprintf(a.out, "checked   %s\n\n", checkedText(b))
	if err := a.printSpaceBest(b.GPU, r.Best); err != nil {
		return err
	}
	a.printFailures(r.Wrong, r.Causes)
	a.printImportance(r.Importance, r.Together, r.Samples)
	a.printSeconds(r.Seconds)
	a.printWorkers(r.Workers)
	fmt.Fprintf(a.out, "cuda      %s\nptx       %s\ncubin     %s\n", r.Artifacts.CUDA, r.Artifacts.PTX, r.Artifacts.Cubin)
	fmt.Fprintf(a.out, "launch    %s\nplot      %s\nstore     %s\n", r.Artifacts.Launch, r.Artifacts.Plot, r.Artifacts.Store)
	return nil
}

func knownText(r *spaceReport) string {
	if n := r.Evaluations - r.Fresh; n > 0 {
		return fmt.Sprintf("; %d were in the store", n)
	}
	return ""
}

// checkedText says what results are held to.
func checkedText(b *spec.Bound) string {
	switch {
	case b.Reference != nil:
		return fmt.Sprintf("against kernel %s, within %g absolute and %g relative", visible(b.Reference.Kernel), b.Tolerance.Absolute, b.Tolerance.Relative)
	case slices.ContainsFunc(b.Arguments, func(t string) bool { return strings.Contains(t, ",want=") }):
		return fmt.Sprintf("against files, within %g absolute and %g relative", b.Tolerance.Absolute, b.Tolerance.Relative)
	}
	return "for faults alone: nothing says what is right"
}

// printSpaceBest prints the best as a table, the parameters first.
func (a *app) printSpaceBest(gpu *target.GPU, best []spaceBest) error {
	w := a.table()
	for i := range best[0].Config.Len() {
		name, _ := best[0].Config.At(i)
		fmt.Fprintf(w, "%s\t", strings.ToUpper(name))
	}
	fmt.Fprint(w, "REGISTERS\tSHARED B\tSPILLS B\tCTAS/SM\tTIME\t\tLIMIT\tVERIFIED\n")
	for _, b := range best {
		for i := range b.Config.Len() {
			fmt.Fprintf(w, "%s\t", b.Config.Text(i))
		}
		verified := "no"
		if b.Verified {
			verified = "yes"
		}
		throttled := ""
		if b.Throttled {
			throttled = " throttled"
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", b.Registers, b.SharedBytes, b.SpillBytes, b.CTAsPerSM,
			timeText(b.TimeUS, b.LowUS, b.HighUS, 2)+throttled, b.Provenance, limitOf(b.Limits).Name(gpu), verified)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return nil
}

// limitOf is the unit that work keeps busy longest; "-" where it was not counted.
func limitOf(limits map[string]float64) roofline.Unit {
	most := roofline.Unit("-")
	for _, u := range roofline.Units() {
		if us, ok := limits[string(u)]; ok && us > limits[string(most)] {
			most = u
		}
	}
	return most
}

// drawProgress is an SVG of the times in the order in which they were tried.
func drawProgress(b *spec.Bound, r *explore.Result) ([]byte, error) {
	p := plot.Progress{
		Title:    fmt.Sprintf("%s on %s", visible(b.Name), b.GPU.Name),
		Subtitle: fmt.Sprintf("%s tried, the best: %s", numberOf(len(r.Tried), "configuration"), r.Best[0].Config),
		From:     r.Best[0].Evaluation.Provenance,
	}
	for _, t := range r.Tried {
		p.US = append(p.US, t.Evaluation.TimeUS)
	}
	scene, err := p.Scene()
	if err != nil {
		return nil, err
	}
	return scene.SVG()
}
