package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/spec"
)

// dryRun says how large a family's space is.
func (a *app) dryRun(ctx context.Context, j *job) error {
	b, err := j.problem.Space(j.gpu)
	if err != nil {
		return err
	}
	return a.printDryRun(ctx, j.family.Name, j.gpu, b, "")
}

// dryReport is what --dry-run --json prints.
type dryReport struct {
	Kernel     string      `json:"kernel"`
	GPU        string      `json:"gpu"`
	Parameters []dryParam  `json:"parameters"`
	Space      spaceSize   `json:"space"`
	Rules      []dryRemove `json:"constraints"`
	Refused    string      `json:"refused,omitempty"` // why the compiler did not take the configuration that it was shown
}

type dryParam struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	Doc    string   `json:"doc,omitempty"`
}

type dryRemove struct {
	Name    string `json:"name"`
	Expr    string `json:"expr"`
	Removed int64  `json:"removed"`
}

// printDryRun prints a space, and what the configuration tried first is refused for, if
// it is.
func (a *app) printDryRun(ctx context.Context, name string, gpu *target.GPU, b *space.Bound, refused string) error {
	counts := b.Until(ctx).Count()
	if err := ctx.Err(); err != nil {
		return err
	}
	s := b.Space()
	r := dryReport{Kernel: name, GPU: gpu.ID, Space: sizeOf(counts), Refused: refused, Parameters: []dryParam{}, Rules: []dryRemove{}}
	for i, p := range s.Params {
		param := dryParam{Name: p.Name, Doc: p.Doc}
		at := make([]int, len(s.Params))
		for v := range p.Values {
			at[i] = v
			param.Values = append(param.Values, b.At(at).Text(i))
		}
		r.Parameters = append(r.Parameters, param)
	}
	for i, c := range s.Constraints {
		r.Rules = append(r.Rules, dryRemove{c.Name, c.Expr, counts.Removed[i].Count})
	}
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s on %s: %d of %d configurations are valid\n\n", visible(name), gpu.Name, counts.Valid, counts.Total)
	w := a.table()
	fmt.Fprintln(w, "PARAMETER\tVALUES\t\t")
	for _, p := range r.Parameters {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", p.Name, visible(someOf(p.Values)), visible(p.Doc))
	}
	fmt.Fprintln(w, "\t\t\t\nCONSTRAINT\tREMOVES\t\t")
	for _, c := range r.Rules {
		fmt.Fprintf(w, "%s\t%d\t%s\t\n", visible(c.Name), c.Removed, visible(c.Expr))
	}
	if err := w.Flush(); err != nil || refused == "" {
		return err
	}
	_, err := fmt.Fprintf(a.out, "\n%s\n", visible(refused))
	return err
}

// someOf lists values, the middle of many left out.
func someOf(values []string) string {
	const most = 10
	text := ""
	for i, v := range values {
		if len(values) > most && i >= most-2 && i < len(values)-1 {
			if i == most-2 {
				text += " ..."
			}
			continue
		}
		if i > 0 {
			text += " "
		}
		text += v
	}
	return text
}

// explained is where a configuration's time goes.
type explained struct {
	Config      space.Config       `json:"config"`
	Defaults    []string           `json:"defaults"` // the parameters that were not given
	TimeUS      float64            `json:"time_us"`
	Provenance  bench.Provenance   `json:"provenance"`
	Binding     string             `json:"binding"` // the largest term
	Terms       map[string]float64 `json:"terms"`   // microseconds, which add up to the time
	Limits      map[string]float64 `json:"limits"`  // the least time of each unit for the work
	Registers   int                `json:"registers"`
	SharedBytes int                `json:"shared_bytes"`
	SpillBytes  int                `json:"spill_bytes"`
	CTAsPerSM   int                `json:"ctas_per_sm"`
}

// explainConfig explains a family's configuration.
func (a *app) explainConfig(ctx context.Context, j *job, f *tuneFlags) error {
	b, err := j.problem.Space(j.gpu)
	if err != nil {
		return err
	}
	fallback, err := j.problem.Default(j.gpu)
	if err != nil {
		return usagef("--explain: the default configuration: %w", err)
	}
	c, defaults, err := completed(b, f.explain, fallback)
	if err != nil {
		return err
	}
	o := a.familyOptions(j, f.seed)
	o.Log = a.log
	best, err := tune.Explain(ctx, o, c)
	if err != nil {
		return err
	}
	e := explained{
		Config: c, Defaults: defaults, TimeUS: best.TimeUS, Provenance: best.Provenance, Terms: best.Terms, Limits: map[string]float64{},
		Registers: best.Registers, SharedBytes: best.SharedBytes, SpillBytes: best.SpillBytes, CTAsPerSM: best.CTAsPerSM,
	}
	for u, us := range best.Limits {
		e.Limits[string(u)] = us
	}
	return a.printExplained(j.gpu, &e)
}

// completed is the configuration that --explain gives, with the values of the default one,
// if there is one, for the parameters that it does not.
func completed(b *space.Bound, text string, fallback space.Config) (c space.Config, defaults []string, err error) {
	given := map[string]bool{}
	for _, field := range strings.Fields(text) {
		name, _, _ := strings.Cut(field, "=")
		given[name] = true
	}
	fields := strings.Fields(text)
	defaults = []string{}
	for i := range fallback.Len() {
		if name, _ := fallback.At(i); !given[name] {
			fields = append(fields, name+"="+fallback.Text(i))
			defaults = append(defaults, name)
		}
	}
	if c, err = b.Space().Parse(strings.Join(fields, " ")); err == nil {
		err = b.Check(c)
	}
	switch {
	case err == nil:
		return c, defaults, nil
	case len(defaults) > 0:
		return c, nil, usagef("--explain: %w (%s from the default configuration)", err, strings.Join(defaults, ", "))
	}
	return c, nil, usagef("--explain: %w", err)
}

// explainPoint explains a configuration of a described space.
func (a *app) explainPoint(ctx context.Context, f *tuneFlags, gpuName string, b *spec.Bound) error {
	fallback, err := b.First()
	if err != nil {
		return usagef("--space %s: %w", f.space, err)
	}
	var from space.Config
	if fallback != nil {
		from = b.Space.At(fallback)
	}
	c, defaults, err := completed(b.Space, f.explain, from)
	if err != nil {
		return err
	}
	point, _ := b.Space.Index(c) // Parse and Check took it
	if f.device.value != "vm" {
		return usagef("--explain: a time of the cost model: it takes no --device %s", f.device.value)
	}
	pool, err := a.spacePool(f, gpuName)
	if err != nil {
		return err
	}
	defer pool.Close()
	built, err := pool.Compile(ctx, point)
	if err != nil {
		return err
	}
	if built.Outcome != "" {
		return fmt.Errorf("configuration %q: %s: %s", c, built.Outcome, built.Error)
	}
	ran, err := pool.Run(ctx, point, 1)
	if err != nil {
		return err
	}
	if !ran.Outcome.Timed() {
		return wrong(fmt.Errorf("configuration %q: %s: %s", c, ran.Outcome, ran.Error))
	}
	return a.printExplained(b.GPU, &explained{
		Config: c, Defaults: defaults, TimeUS: ran.TimeUS, Provenance: ran.Provenance, Terms: ran.Terms, Limits: ran.Limits,
		Registers: built.Registers, SharedBytes: built.SharedBytes, SpillBytes: built.SpillBytes, CTAsPerSM: built.CTAsPerSM,
	})
}

// printExplained prints the terms, the largest first.
func (a *app) printExplained(gpu *target.GPU, e *explained) error {
	names := slices.SortedFunc(maps.Keys(e.Terms), func(x, y string) int {
		return cmp.Or(cmp.Compare(e.Terms[y], e.Terms[x]), cmp.Compare(x, y))
	})
	if len(names) > 0 {
		e.Binding = names[0]
	}
	if a.json {
		return a.printJSON(e)
	}
	fmt.Fprintf(a.out, "%s\n", e.Config)
	if len(e.Defaults) > 0 {
		fmt.Fprintf(a.out, "%s: of the default configuration\n", strings.Join(e.Defaults, ", "))
	}
	fmt.Fprintf(a.out, "%.4g us %s\n\n", e.TimeUS, e.Provenance)
	w := a.table()
	fmt.Fprintln(w, "TERM\tUS\tSHARE\t")
	for _, name := range names {
		mark := ""
		if name == e.Binding {
			mark = "binds"
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.1f %%\t%s\n", roofline.Unit(name).Name(gpu), e.Terms[name], 100*e.Terms[name]/e.TimeUS, mark)
	}
	fmt.Fprintln(w, "\t\t\t\nUNIT\tLEAST US\t\t")
	for _, u := range roofline.Units() {
		if us, ok := e.Limits[string(u)]; ok {
			fmt.Fprintf(w, "%s\t%.4g\t\t\n", u.Name(gpu), us)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\n%d registers a thread, %d bytes of shared memory, %d of spills; %d blocks an SM\n", e.Registers, e.SharedBytes, e.SpillBytes, e.CTAsPerSM)
	return nil
}
