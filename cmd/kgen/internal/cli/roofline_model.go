package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/llm"
	"github.com/kgen-dev/kgen/roofline/plot"
)

// modelFlags are those of kgen roofline --model.
type modelFlags struct {
	name                       string
	phase                      choice
	typ                        choice
	kv                         choice
	as                         choice
	links, reached, operations amount
	setting                    llm.Run
	figure                     *figureFlags
}

// modelReport is what kgen roofline --model --json prints.
type modelReport struct {
	Model  string    `json:"model"`
	GPU    string    `json:"gpu"`
	Phase  llm.Phase `json:"phase"`
	Batch  int64     `json:"batch"`
	Seq    int64     `json:"seq"`
	TP     int64     `json:"tp"`
	PP     int64     `json:"pp"`
	DP     int64     `json:"dp"`
	EP     int64     `json:"ep,omitempty"`
	Type   string    `json:"type"`
	KVType string    `json:"kv_type"`
	*llm.Report
	Notes   []string `json:"notes,omitempty"` // what the model's file leaves open
	Drawing string   `json:"drawing,omitempty"`
}

func newModelFlags(figure *figureFlags) *modelFlags {
	return &modelFlags{
		figure:     figure,
		phase:      choice{value: string(llm.Decode), words: []string{string(llm.Prefill), string(llm.Decode), string(llm.Train)}},
		typ:        choice{value: "model", words: []string{"model", llm.BF16.Name, llm.F16.Name, llm.F32.Name}},
		kv:         choice{value: "model", words: []string{"model", llm.BF16.Name, llm.F16.Name, llm.F8.Name}},
		as:         choice{value: "kgen", words: []string{"kgen", "llm-viewer"}},
		links:      amount{least: 1e-6, most: 1e9, unit: "GB/s"},
		reached:    amount{least: 1e-6, most: 1e9, unit: "TFLOP/s"},
		operations: amount{least: 1, most: 1e40, unit: "operations"},
	}
}

func (m *modelFlags) declare(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&m.name, "model", "", "instead of a family: a language model, `NAME` or config.json: "+strings.Join(llm.Names(), ", "))
	choiceFlag(c, &m.phase, "phase", "what the model does: new tokens at once, one after --seq, or training")
	f.Int64Var(&m.setting.Batch, "batch", 1, "sequences, on all GPUs together")
	f.Int64Var(&m.setting.Seq, "seq", 2048, "tokens of each")
	f.Int64Var(&m.setting.TP, "tp", 1, "GPUs that share each layer")
	f.Int64Var(&m.setting.PP, "pp", 1, "stages of layers, each on GPUs of its own; the batch passes them in the micro-batches that take least time")
	f.Int64Var(&m.setting.DP, "dp", 1, "copies of the model, each with its part of the batch")
	f.Int64Var(&m.setting.EP, "ep", 0, "copies of --dp that share the routed experts, each with its part (default none share)")
	f.IntVar(&m.setting.Zero, "zero", 0, "training: the stage of ZeRO, 0 to 3")
	f.BoolVar(&m.setting.Checkpoint, "checkpoint", false, "training: keep each layer's input alone, compute the rest again")
	choiceFlag(c, &m.typ, "type", "type of weights and activations")
	choiceFlag(c, &m.kv, "kv-type", "type of cached keys and values")
	f.Int64Var(&m.setting.Page, "page", defaultPage, "tokens of a page of the cache")
	f.Var(&m.links, "links", "GB/s of a GPU's links each way (default its NVLink's)")
	f.Var(&m.reached, "reached", "TFLOP/s that a GPU was seen to reach: as MFU")
	f.Var(&m.operations, "operations", "operations to do in all at that rate: as GPU-seconds")
	choiceFlag(c, &m.as, "as", "whose way of counting operators; llm-viewer's is of one layer on one GPU")
	mustComplete(c, "model", cobra.FixedCompletions(llm.Names(), cobra.ShellCompDirectiveDefault))
}

// run says what a model's limits are on a GPU.
func (m *modelFlags) run(a *app, gpu string) error {
	g, err := lookupGPU(gpu)
	if err != nil {
		return err
	}
	if err := m.figure.check(); err != nil {
		return err
	}
	if m.setting.Page < 1 {
		return usagef("--page %d: want 1 or more tokens of a page", m.setting.Page)
	}
	r := m.setting
	r.Links, r.Reached, r.Operations = m.links.value, m.reached.value, m.operations.value
	if r.Roofs, err = m.figure.roofs(g); err != nil {
		return err
	}
	if r.Config, err = llm.Lookup(m.name); err != nil {
		return usage(err)
	}
	for _, t := range llm.Types() {
		if t.Name == m.typ.value {
			r.Config.Type, r.Config.Untyped = t, false
		}
	}
	r.GPU, r.Phase, r.KV = g, llm.Phase(m.phase.value), r.Config.Type
	for _, t := range []llm.Type{llm.BF16, llm.F16, llm.F8} {
		if t.Name == m.kv.value {
			r.KV = t
		}
	}
	if m.as.value == "llm-viewer" {
		if m.figure.file != "" {
			return usagef("-o %s: it draws --as kgen alone", m.figure.file)
		}
		if err := m.viewerFlags(); err != nil {
			return err
		}
		return a.viewer(&r)
	}
	rep, err := llm.Analyse(&r)
	if err != nil {
		return usage(err)
	}
	drawing, err := m.figure.draw(subjectOf(&r, rep))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(&modelReport{r.Config.Name, g.ID, r.Phase, r.Batch, r.Seq, r.TP, r.PP, r.DP, r.EP, r.Config.Type.Name, r.KV.Name, rep, r.Notes(), drawing})
	}
	a.printModel(&r, rep)
	if drawing != "" {
		fmt.Fprintf(a.out, "%-20s %s\n", "drawing", drawing)
	}
	return nil
}

// viewerFlags refuses what LLM-Viewer's way of counting does not have.
func (m *modelFlags) viewerFlags() error {
	if m.phase.value == string(llm.Train) {
		return usagef("--phase train: LLM-Viewer counts prefill and decode: want one of them, or --as kgen")
	}
	s := &m.setting
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"tp", s.TP != 1}, {"pp", s.PP != 1}, {"dp", s.DP != 1}, {"ep", s.EP != 0}, {"zero", s.Zero != 0}, {"checkpoint", s.Checkpoint}, {"page", s.Page != defaultPage},
		{"kv-type", m.kv.value != "model"}, {"links", m.links.value != 0}, {"reached", m.reached.value != 0}, {"operations", m.operations.value != 0},
	} {
		if f.set {
			return usagef("--%s: LLM-Viewer counts one layer on one GPU, without it: want --as kgen", f.flag)
		}
	}
	return nil
}

// defaultPage is how many tokens a page of the cache has where nothing is said.
const defaultPage = 16

// sizesOf are a run's sizes in a line.
func sizesOf(r *llm.Run) string {
	text := fmt.Sprintf("batch=%d seq=%d tp=%d pp=%d dp=%d", r.Batch, r.Seq, r.TP, r.PP, r.DP)
	if r.EP > 1 {
		text += fmt.Sprintf(" ep=%d", r.EP)
	}
	return text
}

// typeOf is the type that a model is run in, and that of its weights where it is another.
func typeOf(c *llm.Config) string {
	if c.Quantised == nil {
		return c.Type.Name
	}
	return c.Type.Name + ", weights " + c.Quantised.Method
}

// subjectOf is a step's operators and collectives as kernels to draw.
func subjectOf(r *llm.Run, rep *llm.Report) *plot.Subject {
	s := &plot.Subject{
		Title:    fmt.Sprintf("%s %s on %d x %s", r.Config.Name, r.Phase, rep.GPUs, r.GPU.Name),
		Subtitle: fmt.Sprintf("%s, %s: floors of one GPU by formula; at most %s tokens/s", sizesOf(r), typeOf(r.Config), digits(rep.TokensPerSec)),
	}
	for i := range rep.Operators {
		o := &rep.Operators[i]
		s.Kernels = append(s.Kernels, &roofline.Judged{Kernel: &roofline.Kernel{Name: o.Name, Launches: 1, Work: o.Assessment.Work}, Assessment: o.Assessment})
	}
	for _, c := range rep.Collectives {
		f := roofline.Floor{Unit: "links", US: c.US, From: c.From, Detail: fmt.Sprintf("%.0f GB/s each way", c.GBs)}
		s.Kernels = append(s.Kernels, &roofline.Judged{
			Kernel: &roofline.Kernel{Name: c.Name}, Assessment: &roofline.Assessment{Roofs: r.Roofs, Floors: []roofline.Floor{f}, Binding: f},
		})
	}
	return s
}

// viewer prints one layer as LLM-Viewer counts it.
func (a *app) viewer(r *llm.Run) error {
	ops, err := llm.Viewer(r)
	if err != nil {
		return usage(err)
	}
	if a.json {
		return a.printJSON(struct {
			Model      string           `json:"model"`
			GPU        string           `json:"gpu"`
			As         string           `json:"as"`
			Operators  []llm.Operator   `json:"operators"`
			Notes      []string         `json:"notes,omitempty"`
			Provenance bench.Provenance `json:"provenance"`
		}{r.Config.Name, r.GPU.ID, "llm-viewer", ops, r.Notes(), bench.Formula})
	}
	fmt.Fprintf(a.out, "%s %s on %s: one layer and the head as LLM-Viewer counts them (formula)\n\n", r.Config.Name, r.Phase, r.GPU.Name)
	a.operators(r.GPU, ops)
	fmt.Fprintln(a.out, "\nNot counted so: causal masks, fused attention, grouped heads in the cache, the second operand of\n"+
		"residual sums, the width of the MLP's activation, and half of the head's operations.")
	a.printNotes(r)
	return nil
}

func (a *app) operators(gpu *target.GPU, ops []llm.Operator) {
	w := a.table()
	fmt.Fprintln(w, "OPERATOR\tTIMES\tFLOPS\tBYTES\tFLOPS/BYTE\tLIMIT\tFLOOR")
	for _, o := range ops {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%.4g\t%s\t%s us\n", o.Name, o.Count, prefixed(o.FLOPs), prefixed(o.Bytes), o.AI, o.Limit.Name(gpu), digits(o.US))
	}
	w.Flush()
}

// prefixed writes a number with three digits and a decimal prefix.
func prefixed(x float64) string {
	for _, p := range []struct {
		unit float64
		name string
	}{{1e18, " E"}, {1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if x >= p.unit*0.9995 {
			return fmt.Sprintf("%.3g%s", x/p.unit, p.name)
		}
	}
	return fmt.Sprintf("%.3g", x)
}

// digits writes a number with four digits, or all before the point.
func digits(x float64) string {
	if x >= 1e3 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

func (a *app) printModel(r *llm.Run, rep *llm.Report) {
	c := r.Config
	typ := typeOf(c)
	fmt.Fprintf(a.out, "%s %s on %d x %s (%s, %s)\n", c.Name, r.Phase, rep.GPUs, r.GPU.Name, sizesOf(r), typ)
	parameters := fmt.Sprintf("%d parameters", rep.Parameters)
	if rep.Active > 0 {
		parameters += fmt.Sprintf(", of which %d serve a token", rep.Active)
	}
	fmt.Fprintf(a.out, "%s: all below is by formula; times are floors, one GPU's\n\n", parameters)
	a.operators(r.GPU, rep.Operators)
	fmt.Fprintln(a.out)
	p, hbm := rep.Peak, r.Roofs.HBM
	fmt.Fprintf(a.out, "%-20s %s %s TFLOP/s dense at %.0f MHz; memory %s GB/s, %s (%s)\n", "roofs", rep.Math, digits(p.TFLOPS), p.ClockMHz, digits(hbm.Value), hbm.Basis, hbm.Note)
	for _, l := range rep.Collectives {
		fmt.Fprintf(a.out, "%-20s %d GPUs, %sB at %.0f GB/s each way: at least %s us\n", l.Name, l.GPUs, prefixed(l.Bytes), l.GBs, digits(l.US))
	}
	if rep.GPUs > 1 && len(rep.Collectives) == 0 {
		fmt.Fprintf(a.out, "%-20s not counted: the links of %s are not known: want --links\n", "collectives", r.GPU.Name)
	}
	if r.PP > 1 {
		fmt.Fprintf(a.out, "%-20s %d; micro-batches of the batch: %d; a GPU waits for other stages %s us of a step\n", "stages", r.PP, rep.Micro, digits(rep.BubbleUS))
	}
	fmt.Fprintf(a.out, "%-20s %s us a step, nothing overlapped: at most %s tokens/s, MFU %.1f %%\n", "at best", digits(rep.StepUS), digits(rep.TokensPerSec), 100*rep.MFU)
	fmt.Fprintf(a.out, "%-20s %s; matrices are bound by arithmetic from %.0f new tokens a step on\n", "bound by", roofline.Unit(rep.Limit).Name(r.GPU), rep.Crossover)
	each := 2
	if r.Phase == llm.Train {
		each = 6
	}
	parameter := "parameter"
	if e := c.Experts; e != nil {
		parameter = "active parameter"
		sharing := ""
		if r.EP > 1 {
			sharing = fmt.Sprintf(" of %d copies", r.EP)
		}
		fmt.Fprintf(a.out, "%-20s a step reads %.4g of the %d of a layer on each GPU, by even choice; theirs are bound by arithmetic from %.0f tokens%s on\n", "experts", rep.Touched, e.Count, rep.ExpertsFrom, sharing)
	}
	fmt.Fprintf(a.out, "%-20s %sFLOP a step of all GPUs; %d for each %s and token are %sFLOP\n", "operations", prefixed(rep.FLOPs), each, parameter, prefixed(rep.RuleFLOPs))
	if r.Reached > 0 {
		fmt.Fprintf(a.out, "%-20s %s TFLOP/s a GPU: %.1f %% MFU\n", "reached", digits(r.Reached), 100*rep.ReachedMFU)
		if rep.ReachedCause != "" {
			fmt.Fprintf(a.out, "%-20s %s\n", "above the peak", rep.ReachedDoubt)
		}
	}
	if r.Operations > 0 {
		fmt.Fprintf(a.out, "%-20s %.3g operations at that rate: %.3g GPU-seconds\n", "takes", r.Operations, rep.GPUSeconds)
	}
	a.printModelMemory(r, &rep.Memory)
	a.printNotes(r)
}

func (a *app) printNotes(r *llm.Run) {
	for _, n := range r.Notes() {
		fmt.Fprintf(a.out, "%-20s %s\n", "note", inLine(n))
	}
}

func (a *app) printModelMemory(r *llm.Run, m *llm.Memory) {
	gb := func(b float64) string { return fmt.Sprintf("%.4g GB", b/1e9) }
	line := func(name, text string) { fmt.Fprintf(a.out, "%-20s %s\n", name, text) }
	line("weights", gb(m.Weights))
	if r.Phase == llm.Train {
		line("gradients", gb(m.Gradients))
		line("optimiser", gb(m.Optimiser)+": f32 weights and two moments")
		line("model states", fmt.Sprintf("%s, %.4g bytes a parameter of this GPU", gb(m.Weights+m.Gradients+m.Optimiser),
			(m.Weights+m.Gradients+m.Optimiser)/float64(r.Config.Parameters())*float64(r.TP*r.PP)))
		line("activations", fmt.Sprintf("%s for this architecture; %s by the rule of 34 s b h bytes a layer", gb(m.Activations), gb(m.Rule)))
		line("a layer", fmt.Sprintf("%s by the rule; checkpointing keeps %s of all layers' inputs and one layer", gb(m.RuleLayer), gb(m.Inputs)))
	} else {
		if r.Config.Windowed != nil {
			line("windows", fmt.Sprintf("the layers with attention in windows see, and keep, %d tokens at most", r.Config.Window))
		}
		if l := r.Config.Latent; l != nil {
			line("latent cache", fmt.Sprintf("%d elements of a token and layer for all heads, whole on each GPU that shares a layer", l.Kept()))
		}
		line("keys and values", fmt.Sprintf("%s, of which last pages leave %s empty", gb(m.KV), gb(m.Waste)))
	}
	fits := "fits"
	if !m.Fits {
		fits = "does not fit"
	}
	line("memory", fmt.Sprintf("%s of %s a GPU: %s", gb(m.Total), gb(m.Has), fits))
}

// alone is what kgen roofline does when --model is given in a family's place.
func (m *modelFlags) alone(a *app) func(gpu string) func(context.Context) error {
	return func(gpu string) func(context.Context) error {
		if m.name == "" {
			return nil
		}
		return func(context.Context) error { return m.run(a, gpu) }
	}
}
