package llm

import (
	"fmt"

	"github.com/kgen-dev/kgen/roofline"
)

// Viewer returns the operators of one layer, and the head, as LLM-Viewer counts them
// (github.com/hahnyuan/LLM-Viewer, MIT; "LLM Inference Unveiled", arXiv 2402.16363,
// its table of Llama-2-7B on an A6000), with what it leaves out: causal masks, fused
// attention, grouped heads in the cache, the second operand of residual sums, the
// MLP's width in its activation, and the 2 of the head's products.
func Viewer(r *Run) ([]Operator, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	c := r.Config
	if c.Plain || c.Windowed != nil || c.Experts != nil || c.Latent != nil || c.Quantised != nil {
		return nil, fmt.Errorf("%s: LLM-Viewer counts a gated MLP, attention to all tokens and weights of one type: want a model such as %s", c.Name, Names()[0])
	}
	b, w := float64(r.Batch), float64(c.Type.Bytes)
	s, t := r.newTokens(), float64(r.Seq)
	d, f, n := float64(c.Hidden), float64(c.FFN), float64(c.Heads)
	kv := float64(c.KVHeads * c.HeadDim)
	linear := func(name string, in, out float64) part {
		return part{name: name, flops: 2 * in * out * b * s, bytes: w * (in*out + b*s*(in+out))}
	}
	each := func(name string, flops, elements float64) part {
		return part{name: name, flops: flops * elements, bytes: 2 * w * elements}
	}
	scores := b * n * s * t
	product := part{flops: 2 * b * s * t * d, bytes: w * (b*s*d + b*t*d + scores)}
	qk, sv := product, product
	qk.name, sv.name = "qk_matmul", "sv_matmul"
	head := part{name: "lm_head", flops: b * d * float64(c.Vocab), bytes: w * (d*float64(c.Vocab) + d + float64(c.Vocab))}
	var out []Operator
	for _, p := range []part{
		linear("q_proj", d, d), linear("k_proj", d, kv), linear("v_proj", d, kv), linear("out_proj", d, d),
		linear("gate_proj", d, f), linear("up_proj", d, f), linear("down_proj", f, d),
		qk, sv, each("softmax", 5, scores), each("norm", 7, b*s*d), each("add", 1, b*s*d), each("act", 2, b*s*d), head,
	} {
		out = append(out, viewed(r, &p))
	}
	return out, nil
}

// viewed holds a part to the peak of products and to memory alone.
func viewed(r *Run, p *part) Operator {
	peak := r.peak()
	o := Operator{Name: p.name, Count: 1, FLOPs: p.flops, Bytes: p.bytes, AI: p.flops / p.bytes, Limit: roofline.HBM}
	o.US = p.bytes / (r.ceilings().HBM.Value * 1e3)
	if us := p.flops / (peak.TFLOPS * 1e6); us > o.US {
		o.US, o.Limit = us, roofline.Tensor
	}
	return o
}
