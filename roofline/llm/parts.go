package llm

import "slices"

// part is an operator before it is held to the roofs: of one layer, forward.
type part struct {
	name      string
	count     int64
	flops     float64
	bytes     float64
	matrix    bool // its products run on tensor cores
	quantised bool // with quantised weights
}

// layered is what parts of one micro-batch on one GPU are counted by.
type layered struct {
	*Run
	b         float64 // bytes of an activation
	sequences float64
	m         float64 // new tokens
	layers    int64   // of the widest stage: the last one, which has the head
	in        float64 // matrices of an MLP that widen
	up        string
}

func (r *Run) layered() *layered {
	c := r.Config
	l := &layered{Run: r, b: float64(c.Type.Bytes), sequences: float64(r.Batch / r.DP), layers: (c.Layers + r.PP - 1) / r.PP, in: 2, up: "gate and up"}
	l.m = l.sequences * r.newTokens()
	if c.Plain {
		l.in, l.up = 1, "up"
	}
	return l
}

// linear reads its weights and inputs and writes its outputs.
func (l *layered) linear(name string, count int64, in, out float64, quantised bool) part {
	return part{name, count, 2 * l.m * in * out, l.Config.weight(quantised)*in*out + l.b*l.m*(in+out), true, quantised}
}

// pass reads and writes elements without a matrix.
func (l *layered) pass(name string, count int64, flops, elements float64) part {
	return part{name, count, flops, l.b * elements, false, false}
}

// parts lists the forward operators of one micro-batch on one GPU of the widest stage.
// Attention reads and writes queries, keys, values and outputs once, as fused kernels do;
// norms and residuals are one pass.
func (r *Run) parts() []part {
	l, c := r.layered(), r.Config
	m, d := l.m, float64(c.Hidden)
	embedding := int64(1)
	if r.PP > 1 {
		embedding = 0
	}
	all := []part{
		l.pass("embedding", embedding, 0, 2*m*d),
		l.pass("norms and residuals", 2*l.layers, 8*m*d, 4*m*d),
	}
	if c.Latent != nil {
		all = append(all, l.latent()...)
	} else {
		all = append(all, l.grouped()...)
	}
	all = append(all, l.mlp("", l.layers-c.sparse(l.layers), float64(c.FFN))...)
	if c.Experts != nil {
		all = append(all, l.experts()...)
	}
	all = append(all, l.pass("last norm", 1, 7*m*d, 2*m*d), l.linear("head", 1, d, float64(c.Vocab)/float64(r.TP), false))
	return slices.DeleteFunc(all, func(p part) bool { return p.count == 0 })
}

// grouped is attention whose queries share heads of keys.
func (l *layered) grouped() []part {
	c := l.Config
	d, h, tp := float64(c.Hidden), float64(c.HeadDim), float64(l.TP)
	n := float64(c.Heads) / tp
	k := max(float64(c.KVHeads)/tp, 1) // fewer than GPUs: each holds a copy
	local := c.windowed(l.layers)
	attention := func(name string, count, window int64) part {
		keys := l.sequences * float64(l.keys(window)) * k * h * 2
		return part{name, count, 4 * l.sequences * l.pairs(window) * n * h, l.b*2*l.m*n*h + float64(l.KV.Bytes)*keys, true, false}
	}
	return []part{
		l.linear("q, k, v projections", l.layers, d, (n+2*k)*h, c.attentionQuantised()),
		attention("attention", l.layers-local, 0),
		attention("attention in windows", local, c.Window),
		l.linear("output projection", l.layers, n*h, d, c.attentionQuantised()),
	}
}

// latent is attention over one vector a token. Decoding works on the vectors themselves:
// the matrices that make keys and values of them are applied to queries and outputs
// instead (absorbed). The vector serves all heads, so each GPU that shares a layer reads
// it whole.
func (l *layered) latent() []part {
	c, a := l.Config, l.Config.Latent
	d, n, m, q := float64(c.Hidden), float64(c.Heads)/float64(l.TP), l.m, c.attentionQuantised()
	rank, kept, key, value := float64(a.Rank), float64(a.Kept()), float64(a.key()), float64(a.Value)
	keys := l.sequences * float64(l.keys(0))
	var all []part
	if a.Query > 0 {
		all = append(all, l.linear("q to its rank", l.layers, d, float64(a.Query), q), l.linear("q projection", l.layers, float64(a.Query), n*key, q))
	} else {
		all = append(all, l.linear("q projection", l.layers, d, n*key, q))
	}
	all = append(all, l.linear("latent projection", l.layers, d, kept, q))
	made := n * (float64(a.Nope) + value) // elements that a latent vector makes
	flops := 2 * l.sequences * l.pairs(0) * n
	if l.Phase == Decode {
		weights := c.weight(q) * rank * made
		all = append(all,
			part{"absorbed projections", l.layers, 2 * m * rank * made, weights + l.b*m*(made+2*n*rank), true, q},
			part{"attention, absorbed", l.layers, flops * (kept + rank), l.b*m*n*(kept+rank) + float64(l.KV.Bytes)*keys*kept, true, false})
	} else {
		all = append(all,
			l.linear("k, v projections", l.layers, rank, made, q),
			part{"attention", l.layers, flops * (key + value), l.b*m*n*(key+value) + l.b*keys*n*(key+value), true, false})
	}
	return append(all, l.linear("output projection", l.layers, n*value, d, q))
}

// mlp is an MLP of some width that every token goes through.
func (l *layered) mlp(of string, count int64, width float64) []part {
	if count == 0 || width == 0 {
		return nil
	}
	d, f, q := float64(l.Config.Hidden), width/float64(l.TP), l.Config.mlpQuantised()
	return []part{
		l.linear(of+l.up, count, d, l.in*f, q),
		l.pass(of+"activation", count, 5*l.m*f, (l.in+1)*l.m*f),
		l.linear(of+"down", count, f, d, q),
	}
}

// experts are a router, the experts that tokens go to and those that all share. A GPU has
// its part of the experts, and of the tokens of all copies that share them.
func (l *layered) experts() []part {
	c, e := l.Config, l.Config.Experts
	count := c.sparse(l.layers)
	d, f, k := float64(c.Hidden), float64(e.Width)/float64(l.TP), float64(e.Active)
	linear := func(name string, in, out float64) part {
		weights := c.weight(c.expertsQuantised()) * l.touched() * in * out
		return part{name, count, 2 * l.m * k * in * out, weights + l.b*l.m*k*(in+out), true, c.expertsQuantised()}
	}
	all := []part{
		l.linear("router", count, d, float64(e.Count), false),
		linear("experts, "+l.up, d, l.in*f),
		l.pass("experts, activation", count, 5*l.m*k*f, (l.in+1)*l.m*k*f),
		linear("experts, down", f, d),
		l.pass("sum of experts", count, 2*l.m*k*d, (k+1)*l.m*d),
	}
	return append(all, l.mlp("shared, ", count, float64(e.Shared))...)
}

// touched is how many experts of a layer a GPU reads the weights of.
func (l *layered) touched() float64 {
	n := float64(l.Run.experts())
	return l.Config.Experts.Touched(n*l.m) / n
}

// keys of a sequence that attention reads: in a prefill the window moves over all.
func (r *Run) keys(window int64) int64 {
	if window > 0 && r.Phase == Decode {
		return r.Config.visible(r.Seq, window)
	}
	return r.Seq
}

// visible is how many keys the last of some tokens sees in a window.
func (c *Config) visible(tokens, window int64) int64 {
	if c.Chunked {
		return (tokens-1)%window + 1
	}
	return min(tokens, window)
}
