package llm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// backward is how much more of a part's operations and bytes training has: twice the
// products, for inputs and weights, and once more where they are computed again.
func (r *Run) backward() float64 {
	switch {
	case r.Phase != Train:
		return 1
	case r.Checkpoint:
		return 4
	}
	return 3
}

// operators are those of one GPU for a number of micro-batches, with their sum in
// microseconds.
func (r *Run) operators(micro int64) (all []Operator, us float64, err error) {
	roofs := r.ceilings()
	for _, p := range r.parts() {
		p.count *= micro
		o, err := r.operator(roofs, &p)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, o)
		us += o.US
	}
	return all, us, nil
}

// limit is the unit that binds most of the operators' time.
func limit(operators []Operator) string {
	longest, name := 0.0, ""
	times := map[roofline.Unit]float64{}
	for _, o := range operators {
		if times[o.Limit] += o.US; times[o.Limit] > longest {
			longest, name = times[o.Limit], string(o.Limit)
		}
	}
	return name
}

func (r *Run) operator(roofs roofline.Roofs, p *part) (Operator, error) {
	times := r.backward() * float64(p.count)
	all := *p
	all.flops, all.bytes = p.flops*times, p.bytes*times
	math := target.F32
	switch {
	case p.quantised:
		math = r.quantMath()
	case p.matrix:
		math = r.math()
	}
	return all.assess(roofs, math)
}

// assess holds a part to the roofs.
func (p *part) assess(roofs roofline.Roofs, math target.Math) (Operator, error) {
	work := roofline.Work{HBMBytes: roofline.Formula(p.bytes)}
	if p.flops > 0 {
		work.Operations = []roofline.Operations{{Math: math, Count: roofline.Formula(p.flops)}}
	}
	a, err := roofline.Assess(roofs, work)
	if err != nil {
		return Operator{}, err
	}
	return Operator{Name: p.name, Count: p.count, FLOPs: p.flops, Bytes: p.bytes, AI: p.flops / p.bytes, Limit: a.Binding.Unit, US: a.LeastUS(), Assessment: a}, nil
}

// update is Adam's step in mixed precision: gradients of 2 bytes and f32 master
// weights and moments are read, the latter written with the weights, for the
// parameters that this GPU has to update.
func (r *Run) update(roofs roofline.Roofs) (Operator, error) {
	n, _ := r.Config.shard(r.TP, 1)
	n /= float64(r.PP)
	if r.Zero > 0 {
		n /= float64(r.DP)
	}
	p := part{name: "optimiser", count: 1, flops: 12 * n, bytes: (2 + 12 + 12 + 2) * n}
	return p.assess(roofs, target.F32)
}

// Collective is what GPUs send each other in a step, by rings.
type Collective struct {
	Name  string           `json:"name"`
	GPUs  int64            `json:"gpus"`
	Bytes float64          `json:"bytes"` // that a GPU holds, all of a step
	GBs   float64          `json:"gbs"`   // of a GPU's links in one direction
	US    float64          `json:"floor_us"`
	From  bench.Provenance `json:"provenance"`

	once bool // in a step, not with every micro-batch
}

// handing is the collective from stage to stage.
const handing = "stage to stage"

// RingAllReduce returns the least seconds in which n GPUs add up a buffer by a ring,
// with links of so many bytes a second in each direction: 2 (n-1)/n of it pass each.
func RingAllReduce(bytes float64, n int64, perSecond float64) float64 {
	return 2 * float64(n-1) / float64(n) * bytes / perSecond
}

// collectives of a step: two sums of activations a layer and direction among GPUs
// that share layers, tokens to experts elsewhere and back, activations from stage to stage, gradients among copies (with
// the gathers of ZeRO's third stage: half as much again). None where the GPU's links
// are not known.
func (r *Run) collectives() []Collective {
	links := r.Links
	if links == 0 {
		links = r.GPU.NVLinkGBs / 2
	}
	if links == 0 {
		return nil
	}
	var out []Collective
	add := func(name string, n int64, bytes, rings float64, once bool) {
		if n > 1 && bytes > 0 {
			us := rings * RingAllReduce(bytes, n, links*1e9) * 1e6
			out = append(out, Collective{name, n, bytes, links, us, bench.Formula, once})
		}
	}
	c := r.Config
	act := float64(c.Type.Bytes) * float64(r.Batch/r.DP) * r.newTokens() * float64(c.Hidden)
	passes, layers := 1.0, float64((c.Layers+r.PP-1)/r.PP)
	if r.Phase == Train {
		passes = 2
		if r.Checkpoint {
			passes = 3
		}
	}
	add("sums of activations", r.TP, 2*passes*layers*act, 1, false)
	if r.experts() > 1 { // each token's activations to its experts, and theirs back
		n := float64(r.experts())
		all := 2 * float64(c.sparse(int64(layers))*c.Experts.Active) * act
		us := all * (n - 1) / n / (links * 1e3)
		out = append(out, Collective{"to experts and back", r.experts(), all, links, us, bench.Formula, false})
	}
	if r.PP > 1 {
		us := passes * act / (links * 1e3)
		out = append(out, Collective{handing, r.PP, passes * act, links, us, bench.Formula, false})
	}
	if r.Phase == Train {
		rings := 1.0
		if r.Zero == 3 {
			rings = 1.5
		}
		n, _ := c.shard(r.TP, 1)
		add("sums of gradients", r.DP, gradientBytes*n/float64(r.PP), rings, true)
	}
	return out
}
