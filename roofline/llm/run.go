package llm

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// Phase is what a model is used for.
type Phase string

// The phases.
const (
	Prefill Phase = "prefill" // Seq new tokens of each sequence
	Decode  Phase = "decode"  // one new token after Seq of each sequence
	Train   Phase = "train"   // forward and backward over Seq tokens of each sequence
)

// Run is how a model is run on GPUs of one kind.
type Run struct {
	Config     *Config
	GPU        *target.GPU
	Roofs      roofline.Roofs // of the GPU; without one those of the device
	Phase      Phase
	Batch      int64 // sequences of all GPUs together
	Seq        int64 // tokens of each
	TP, PP, DP int64 // GPUs that share a layer, stages of layers, copies
	EP         int64 // copies that share the routed experts, each with its part; 0 is 1
	Zero       int   // 0 to 3: what the copies split of the states of training (ZeRO's stages)
	Checkpoint bool  // training keeps each layer's input alone and computes the rest again
	KV         Type  // of the cache
	Page       int64 // tokens of a page of the cache; 0 or 1: no waste

	Links      float64 // GB/s of a GPU's links each way; 0: its NVLink's
	Reached    float64 // TFLOP/s that a GPU was seen to reach; 0: unknown
	Operations float64 // that are to be done in all at that rate; 0: not asked
}

// most that sizes of a run are taken for.
const (
	mostSeq  = 1 << 26
	mostGPUs = 1 << 20
)

// Check refuses what no run has; the errors name the flag.
func (r *Run) Check() error {
	for _, f := range []struct {
		flag     string
		n, least int64
		most     int64
	}{
		{"--batch", r.Batch, 1, mostSeq}, {"--seq", r.Seq, 1, mostSeq}, {"--tp", r.TP, 1, mostGPUs}, {"--pp", r.PP, 1, mostGPUs},
		{"--dp", r.DP, 1, mostGPUs}, {"--ep", r.EP, 0, mostGPUs}, {"--zero", int64(r.Zero), 0, 3}, {"--page", r.Page, 0, mostSeq},
	} {
		if f.n < f.least || f.n > f.most {
			return fmt.Errorf("%s %d: want %d to %d", f.flag, f.n, f.least, f.most)
		}
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"--reached", r.Reached}, {"--operations", r.Operations}, {"--links", r.Links}} {
		if !(f.value >= 0) || f.value > 1e40 {
			return fmt.Errorf("%s %g: want 0 to 1e40", f.flag, f.value)
		}
	}
	c := r.Config
	switch {
	case r.Operations > 0 && r.Reached == 0:
		return fmt.Errorf("--operations %g: at what rate? want --reached too", r.Operations)
	case c.Heads%r.TP != 0 || c.FFN%r.TP != 0:
		return fmt.Errorf("--tp %d: want a divisor of the %d heads and of the MLP's width %d", r.TP, c.Heads, c.FFN)
	case c.Experts != nil && c.Experts.Width%r.TP != 0:
		return fmt.Errorf("--tp %d: want a divisor of the experts' width %d", r.TP, c.Experts.Width)
	case r.EP > 1 && c.Experts == nil:
		return fmt.Errorf("--ep %d: the model has no experts", r.EP)
	case r.EP > 1 && (r.DP%r.EP != 0 || c.Experts.Count%r.EP != 0):
		return fmt.Errorf("--ep %d: want a divisor of the %d copies of --dp, which share the experts, and of the %d experts", r.EP, r.DP, c.Experts.Count)
	case r.EP > 1 && r.Phase == Train:
		return fmt.Errorf("--ep %d: training is counted with all experts on each copy: want --phase prefill or decode", r.EP)
	case r.Phase == Train && c.Quantised != nil:
		return fmt.Errorf("--phase train: the weights are quantised (%s): want --phase prefill or decode, or the file before it was quantised", c.Quantised.Method)
	case c.Positions > 0 && r.Seq > c.Positions:
		return fmt.Errorf("--seq %d: want at most the %d positions that the model has vectors for", r.Seq, c.Positions)
	case c.Layers < r.PP:
		return fmt.Errorf("--pp %d: want at most one stage for each of the %d layers", r.PP, c.Layers)
	case r.Batch%r.DP != 0:
		return fmt.Errorf("--dp %d: want a divisor of the batch of %d", r.DP, r.Batch)
	case r.Zero > 0 && r.Phase != Train:
		return fmt.Errorf("--zero %d: it splits the states of training: want --phase train", r.Zero)
	case r.Checkpoint && r.Phase != Train:
		return fmt.Errorf("--checkpoint: it is of training: want --phase train")
	}
	if _, ok := c.Type.math(r.GPU); !ok {
		return fmt.Errorf("--gpu %s: no rate is known for %s: want --type %s, or a GPU that has it, such as %s", r.GPU.ID, c.Type.Name, r.typesOfGPU(), having(&c.Type))
	}
	return nil
}

// Notes are what a reader of the report must know, a sentence each.
func (r *Run) Notes() []string {
	c := r.Config
	notes := slices.Clone(c.Notes)
	if c.Untyped {
		notes = append(notes, fmt.Sprintf("no torch_dtype or dtype tells the type: counted as %s; --type takes another", c.Type.Name))
	}
	if c.Longest > 0 && r.Seq > c.Longest {
		notes = append(notes, fmt.Sprintf("%d tokens are more than the %d of max_position_embeddings", r.Seq, c.Longest))
	}
	if q := c.Quantised; q != nil {
		what := "with their scales"
		if q.Maths == nil {
			what += "; products run in the model's type"
		} else if r.GPU != nil && r.quantMath() == r.math() {
			what += fmt.Sprintf("; %s has no rate for them, and products run in the model's type", r.GPU.ID)
		}
		notes = append(notes, fmt.Sprintf("quantised matrices (%s) have %.6g bytes a weight %s", q.Method, q.Bytes, what))
	}
	if c.Experts != nil {
		notes = append(notes, "of a layer's E experts a step reads E (1 - (1 - k/E)^tokens), as if all were chosen alike: uneven choices read fewer, and wait for the fullest")
	}
	return notes
}

// experts is how many copies share the experts.
func (r *Run) experts() int64 { return max(r.EP, 1) }

// typesOfGPU are the types that the run's GPU has a rate for.
func (r *Run) typesOfGPU() string {
	var names []string
	for _, t := range Types() {
		if _, ok := t.math(r.GPU); ok {
			names = append(names, t.Name)
		}
	}
	return strings.Join(names, " or ")
}

// having are a few GPUs with a rate for a type, from the oldest kind to the newest.
func having(t *Type) string {
	var ids []string
	for _, g := range target.All() {
		if _, ok := t.math(g); ok {
			ids = append(ids, g.ID)
		}
	}
	return strings.Join([]string{ids[0], ids[len(ids)/2], ids[len(ids)-1]}, ", ")
}

// math is the arithmetic of the model's products.
func (r *Run) math() target.Math {
	m, _ := r.Config.Type.math(r.GPU)
	return m
}

// most is the arithmetic of most products: that of quantised matrices where there are some.
func (r *Run) most() target.Math {
	if r.Config.Quantised != nil {
		return r.quantMath()
	}
	return r.math()
}

// peak is the rate of the model's products, dense.
func (r *Run) peak() target.Peak {
	p, _ := r.GPU.Peak(r.most())
	return p
}

// ceilings are the roofs that the run is held to.
func (r *Run) ceilings() roofline.Roofs {
	if r.Roofs.GPU == nil {
		return roofline.DeviceRoofs(r.GPU)
	}
	return r.Roofs
}

// Operator is one kind of work, of one GPU in one step.
type Operator struct {
	Name  string        `json:"name"`
	Count int64         `json:"count"` // how often in a step: the layers of a stage, or once
	FLOPs float64       `json:"flops"` // of all of them
	Bytes float64       `json:"bytes"`
	AI    float64       `json:"intensity"` // FLOPs per byte
	Limit roofline.Unit `json:"limit"`
	US    float64       `json:"floor_us"` // least time of all of them

	Assessment *roofline.Assessment `json:"-"` // what Limit and US are from; nil of LLM-Viewer's
}

// Report is what formulas say of a run. Times are floors: the least that the GPU's
// limits allow, operator after operator.
type Report struct {
	Parameters   int64          `json:"parameters"`
	Active       int64          `json:"active_parameters,omitempty"` // of a mixture of experts: without those that a token does not go to
	GPUs         int64          `json:"gpus"`
	Tokens       int64          `json:"tokens"`      // new tokens of a step, of all GPUs
	Math         target.Math    `json:"math"`        // of the matrices' products
	PeakTFLOPS   float64        `json:"peak_tflops"` // of it, dense
	HBM          float64        `json:"hbm_gbs"`
	Operators    []Operator     `json:"operators"`
	Collectives  []Collective   `json:"collectives"`
	FLOPs        float64        `json:"model_flops"`   // of a step and all GPUs: what MFU counts
	ComputeUS    float64        `json:"compute_us"`    // the operators' floors
	StepUS       float64        `json:"step_us"`       // with the collectives and BubbleUS, nothing overlapped
	Micro        int64          `json:"micro_batches"` // that pass the stages one after another
	BubbleUS     float64        `json:"bubble_us"`     // that a GPU waits for other stages
	TokensPerSec float64        `json:"tokens_per_s"`
	MFU          float64        `json:"mfu"` // model FLOPs over peak, at the floor
	Limit        string         `json:"limit"`
	Crossover    float64        `json:"crossover_tokens"`                   // new tokens of a step from which matrices are bound by arithmetic
	ExpertsFrom  float64        `json:"experts_crossover_tokens,omitempty"` // from which routed experts' are
	Touched      float64        `json:"experts_touched,omitempty"`          // that a GPU reads of a layer in a step
	Memory       Memory         `json:"memory"`
	RuleFLOPs    float64        `json:"rule_flops"`              // 2 for each parameter and token, 6 in training
	ReachedMFU   float64        `json:"reached_mfu,omitempty"`   // of Run.Reached
	ReachedCause roofline.Cause `json:"reached_cause,omitempty"` // of more than the peak
	ReachedDoubt string         `json:"reached_doubt,omitempty"`
	GPUSeconds   float64        `json:"gpu_seconds,omitempty"` // for Run.Operations at Run.Reached

	Peak       target.Peak      `json:"-"`          // behind PeakTFLOPS
	Provenance bench.Provenance `json:"provenance"` // of everything
}

// Analyse computes a run's report.
func Analyse(r *Run) (*Report, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	rep := &Report{Parameters: r.Config.Parameters(), GPUs: r.TP * r.PP * r.DP, Math: r.most(), Peak: r.peak(), HBM: r.ceilings().HBM.Value, Provenance: bench.Formula}
	rep.PeakTFLOPS = rep.Peak.TFLOPS
	rep.Tokens = r.Batch
	if r.Phase != Decode {
		rep.Tokens *= r.Seq
	}
	if err := r.step(rep); err != nil {
		return nil, err
	}
	rep.FLOPs = r.modelFLOPs()
	rep.MFU = rep.FLOPs / float64(rep.GPUs) / (rep.StepUS * rep.PeakTFLOPS * 1e6)
	rep.RuleFLOPs = RuleFLOPs(r.Phase, r.Config.Active(), rep.Tokens)
	if err := r.reached(rep); err != nil {
		return nil, err
	}
	rep.TokensPerSec = float64(rep.Tokens) / rep.StepUS * 1e6
	rep.Memory = r.memory()
	r.crossovers(rep)
	return rep, nil
}

// crossovers fills in from where on matrices are bound by arithmetic. A token is at an
// expert with k/E.
func (r *Run) crossovers(rep *Report) {
	c := r.Config
	at := func(quantised bool) float64 {
		math := r.math()
		if quantised {
			math = r.quantMath()
		}
		p, _ := r.GPU.Peak(math)
		return Crossover(p.TFLOPS, c.weight(quantised), rep.HBM)
	}
	rep.Crossover = at(c.attentionQuantised())
	if e := c.Experts; e != nil {
		rep.Active, rep.Touched = c.Active(), r.layered().touched()
		rep.ExpertsFrom = at(c.expertsQuantised()) * float64(e.Count) / float64(e.Active)
	}
}

// step fills in what one GPU does in a step, and how long the step takes.
func (r *Run) step(rep *Report) error {
	p, err := r.pipeline()
	if err != nil {
		return err
	}
	rep.Operators, rep.ComputeUS, rep.Limit = p.operators, p.computeUS, limit(p.operators)
	rep.Micro, rep.StepUS, rep.BubbleUS = p.micro, p.stepUS, p.bubbleUS
	if r.Phase == Train {
		u, err := r.update(r.ceilings())
		if err != nil {
			return err
		}
		rep.Operators = append(rep.Operators, u)
		rep.ComputeUS += u.US
		rep.StepUS += u.US
	}
	rep.Collectives = r.collectives()
	for _, c := range rep.Collectives {
		if c.once {
			rep.StepUS += c.US
		}
	}
	return nil
}

// reached judges the rate that a GPU was seen to reach.
func (r *Run) reached(rep *Report) error {
	if r.Reached == 0 {
		return nil
	}
	rep.ReachedMFU, rep.GPUSeconds = r.Reached/rep.PeakTFLOPS, r.Operations/(r.Reached*1e12)
	second := roofline.Work{Operations: []roofline.Operations{{Math: r.most(), Count: roofline.Formula(r.Reached * 1e12)}}}
	a, err := roofline.Assess(r.ceilings(), second)
	if err != nil {
		return err
	}
	v, err := a.Judge(1e6, bench.Measured)
	if err != nil {
		return err
	}
	rep.ReachedCause, rep.ReachedDoubt = v.Cause, v.Doubt
	return nil
}

// RuleFLOPs is the rule of 2 operations for each parameter and token that is served, and
// 6 for each that is trained on; attention's pairs are beside it.
func RuleFLOPs(p Phase, parameters, tokens int64) float64 {
	each := 2.0
	if p == Train {
		each = 6
	}
	return each * float64(parameters) * float64(tokens)
}

// Crossover returns how many tokens a weight matrix must meet to be bound by
// arithmetic: peak w / (2 bandwidth) for weights of w bytes, the activations left out.
func Crossover(tflops, weightBytes, gbs float64) float64 {
	return tflops * 1e12 * weightBytes / (2 * gbs * 1e9)
}

// modelFLOPs counts a step's useful operations: 2 for each active parameter and token, 6 in
// training, with attention's for each pair of query and key that see each other, times 3 in
// training. The embedding's matrix does no arithmetic.
func (r *Run) modelFLOPs() float64 {
	c := r.Config
	matrices := float64(c.Active() - (c.Vocab+c.Positions)*c.Hidden)
	if c.Tied {
		matrices += float64(c.Vocab * c.Hidden)
	}
	local := c.windowed(c.Layers)
	pairs := float64(c.Layers-local)*r.pairs(0) + float64(local)*r.pairs(c.Window)
	perSequence := 2*matrices*r.newTokens() + r.pairFLOPs()*pairs
	if r.Phase == Train {
		perSequence *= 3
	}
	return perSequence * float64(r.Batch)
}

// pairFLOPs are the operations of a query and a key in all heads: 2 for each element of key
// and value, which in decoding are the latent vector itself where there is one.
func (r *Run) pairFLOPs() float64 {
	c := r.Config
	width := 2 * c.HeadDim
	if l := c.Latent; l != nil {
		width = l.key() + l.Value
		if r.Phase == Decode {
			width = l.Kept() + l.Rank
		}
	}
	return float64(2 * c.Heads * width)
}

// newTokens of a sequence in a step.
func (r *Run) newTokens() float64 {
	if r.Phase == Decode {
		return 1
	}
	return float64(r.Seq)
}

// pairs of a query and a key that see each other in a sequence: a causal triangle, or
// the one new token and all before it and itself; of a window, if it is not 0, the
// last of them.
func (r *Run) pairs(window int64) float64 {
	s, w := float64(r.Seq), float64(r.Seq)
	if window > 0 {
		w = min(s, float64(window))
	}
	if r.Phase == Decode {
		return float64(r.keys(window))
	}
	if window > 0 && r.Config.Chunked { // triangles one after another
		rest := math.Mod(s, w)
		return (s-rest)*(w+1)/2 + rest*(rest+1)/2
	}
	return w*(w+1)/2 + (s-w)*w
}
