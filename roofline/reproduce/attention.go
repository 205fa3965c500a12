package reproduce

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/target"
)

// attentionFLOPs are the operations of a forward pass: 4 for each pair of query
// and key and each column of a head; half of the pairs are causal.
func attentionFLOPs(batch, heads, seq, dim float64, causal bool) float64 {
	f := 4 * batch * heads * seq * seq * dim
	if causal {
		f /= 2
	}
	return f
}

// attentionPoints draws a table of rates over sequence lengths, a series for
// each method, mask and head dimension, and sets the published operations per
// byte beside those by formula. passes is the work in forward passes, tensors
// how many tensors of the operands' size are moved, two bytes an element.
func attentionPoints(r *Result, t *table, passes, tensors float64) error {
	d := &drawing{result: r}
	var marks []mark
	name := ""
	flush := func() {
		if len(marks) > 0 {
			d.series(name, true, marks)
		}
		marks = nil
	}
	for i := range t.rows {
		causal := t.text(i, "causal") == "true"
		batch, heads, seq, dim := t.number(i, "batch"), t.number(i, "heads"), t.number(i, "seq"), t.number(i, "head_dim")
		mask := map[bool]string{true: "causal", false: "full"}[causal]
		if s := fmt.Sprintf("%s %s %s, head dimension %g", t.text(i, "gpu"), t.text(i, "method"), mask, dim); s != name {
			flush()
			name = s
		}
		title := fmt.Sprintf("%s, sequence %g", name, seq)
		intensity := attentionFLOPs(batch, heads, seq, dim, causal) * passes / (tensors * 2 * batch * seq * heads * dim)
		r.add(title+": operations per byte", t.printed(i, "ai"), exact(intensity))
		marks = append(marks, mark{title: title, rate: t.printed(i, "tflops"), at: atHBM(exact(intensity))})
	}
	flush()
	if t.err != nil {
		return t.err
	}
	return d.readBack("TFLOP/s", 1, false)
}

// flashAttention2: forward and backward together, hidden size 2048, 16384
// tokens. The backward pass counts 2.5 forward passes and moves q, k, v, o, do,
// dq, dk and dv beside the forward pass' q, k, v and o.
func flashAttention2(r *Result, t *table) error {
	h100, err := r.deviceFigure("h100", target.F16Acc32)
	if err != nil {
		return err
	}
	a100, err := r.alsoRoofs("a100", target.F16Acc32)
	if err != nil {
		return err
	}
	r.Figure.Subtitle = a100.Name + " and " + h100.Name
	if err := attentionPoints(r, t, 3.5, 12); err != nil {
		return err
	}
	// arXiv 2307.08691: 50 to 73 % of an A100's peak, and GPT training at 225
	// TFLOP/s a GPU is 72 %.
	for i := range t.rows {
		if t.text(i, "gpu") == "a100" && t.text(i, "seq") == "16384" && t.text(i, "causal") == "false" {
			label := "A100, 16384 tokens, head dimension " + t.text(i, "head_dim") + ": % of peak (50 to 73 claimed)"
			if err := r.shareOfPeak(a100, label, quantity{61.5, 11.5}, t.printed(i, "tflops")); err != nil {
				return err
			}
		}
	}
	return r.shareOfPeak(a100, "A100 training at 225 TFLOP/s, % of peak", quantity{72, 0.5}, quantity{225, 0.5})
}

// flashAttention3: forward.
func flashAttention3(r *Result, t *table) error {
	h100, err := r.deviceFigure("h100", target.F16Acc32)
	if err != nil {
		return err
	}
	if err := attentionPoints(r, t, 1, 4); err != nil {
		return err
	}
	r.speedups(t)
	// arXiv 2407.08608: up to 740 TFLOP/s, 75 % of an H100.
	return r.shareOfPeak(h100, "740 TFLOP/s, % of peak", quantity{75, 0.5}, quantity{740, 5})
}

// speedups sets FlashAttention-3 beside FlashAttention-2 at 16384 tokens. The
// paper claims 1.5 to 2 times; at head dimension 256, left out here, the figure
// shows more.
func (r *Result) speedups(t *table) {
	older := map[string]quantity{}
	for i := range t.rows {
		if t.text(i, "seq") != "16384" || t.text(i, "head_dim") == "256" {
			continue
		}
		key := t.label(i, "head_dim", "causal")
		switch t.text(i, "method") {
		case "FA2":
			older[key] = t.printed(i, "tflops")
		case "FA3":
			if q, ok := older[key]; ok {
				r.add("FA3 over FA2, "+key+" (1.5 to 2 claimed)", quantity{1.75, 0.25}, t.printed(i, "tflops").over(q))
			}
		}
	}
}

func (r *Result) shareOfPeak(g *target.GPU, label string, published, tflops quantity) error {
	p, ok := g.Peak(target.F16Acc32)
	if !ok {
		return fmt.Errorf("%s: no fp16 peak", g.ID)
	}
	r.add(label, published, tflops.over(exact(p.TFLOPS)).scaled(100))
	return nil
}

// pagedDecode: 64 sequences, 64 query and 8 key heads; every cached key and
// value, each query and each result once.
func pagedDecode(r *Result, t *table) error {
	h100, err := r.deviceFigure("h100", target.F16Acc32)
	if err != nil {
		return err
	}
	d := &drawing{result: r}
	var marks []mark
	for i := range t.rows {
		batch, heads, kv, dim, past := t.number(i, "batch"), t.number(i, "heads"), t.number(i, "kv_heads"), t.number(i, "head_dim"), t.number(i, "past")
		bytes := 2 * batch * dim * (2*kv*past + 2*heads)
		flops := 4 * batch * heads * past * dim
		us := t.printed(i, "time_us")
		rate := exact(bytes / 1e3).over(us)
		label := fmt.Sprintf("%g cached", past)
		r.add(label+": GB/s", t.printed(i, "gbs"), rate)
		r.add(label+": % of memory's bandwidth", t.printed(i, "percent"), rate.over(exact(h100.HBM().Value)).scaled(100))
		marks = append(marks, mark{label: label, title: label, rate: exact(flops / 1e6).over(us), at: atHBM(exact(flops / bytes))})
	}
	d.series("paged decode, page 256", true, marks)
	return t.err
}
