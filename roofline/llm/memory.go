package llm

// Memory is what one GPU holds, in bytes.
type Memory struct {
	Weights     float64 `json:"weights"`
	Gradients   float64 `json:"gradients,omitempty"`
	Optimiser   float64 `json:"optimiser,omitempty"`   // f32 master weights and two moments
	Activations float64 `json:"activations,omitempty"` // kept for the backward pass, counted for this architecture
	Rule        float64 `json:"activations_rule,omitempty"`
	RuleLayer   float64 `json:"layer_rule,omitempty"`   // of Rule: a layer that keeps all
	Inputs      float64 `json:"layer_inputs,omitempty"` // all layers' inputs, which checkpointing keeps
	KV          float64 `json:"kv_cache,omitempty"`
	Waste       float64 `json:"kv_page_waste,omitempty"` // of KV: what last pages leave empty
	Total       float64 `json:"total"`
	Has         float64 `json:"gpu_has"`
	Fits        bool    `json:"fits"`
}

// Bytes of a parameter in mixed-precision training with Adam: weights and gradients
// of 16 bits, f32 master weights, mean and variance: 16 together (ZeRO, arXiv
// 1910.02054, section 3.1).
const (
	weightBytes    = 2
	gradientBytes  = 2
	optimiserBytes = 12
)

// States returns the bytes of a parameter that each of n copies holds for weights,
// gradients and optimiser in a stage of ZeRO.
func States(stage int, n int64) (weights, gradients, optimiser float64) {
	weights, gradients, optimiser = weightBytes, gradientBytes, optimiserBytes
	if stage >= 1 {
		optimiser /= float64(n)
	}
	if stage >= 2 {
		gradients /= float64(n)
	}
	if stage >= 3 {
		weights /= float64(n)
	}
	return weights, gradients, optimiser
}

// RuleActivations is the rule of 34 s b h bytes a layer for a transformer with 16-bit
// activations and attention that keeps no scores (Korthikanti et al., arXiv
// 2205.05198, equation 2 without its second term).
func RuleActivations(seq, batch, hidden int64) float64 {
	return 34 * float64(seq) * float64(batch) * float64(hidden)
}

// LayerInput is what checkpointing keeps of a layer: its input of 16 bits.
func LayerInput(seq, batch, hidden int64) float64 {
	return 2 * float64(seq) * float64(batch) * float64(hidden)
}

// activations counts what a token of a layer keeps for the backward pass, in bytes:
// the inputs of both norms and what they give, queries, keys, values, the output of
// attention with f32 sums of rows, the MLP's gate, up and product, and the f32 scales
// of the norms; an MLP that is not gated keeps two of the three. Of a mixture it is the
// mean of the layers: a token keeps its inputs of all its experts, and what they make.
func (c *Config) activations() float64 {
	b := float64(c.Type.Bytes)
	d, n, k, h, width := float64(c.Hidden), float64(c.Heads), float64(c.KVHeads), float64(c.HeadDim), float64(c.FFN)
	attention := 2*n*h + 2*k*h
	if l := c.Latent; l != nil { // the latent vectors, and all heads' queries, keys, values and outputs
		attention = float64(l.Query+l.Kept()) + 2*n*float64(l.key()+l.Value)
	}
	more := 0.0
	if e := c.Experts; e != nil {
		share := float64(c.sparse(c.Layers)) / float64(c.Layers)
		width = (1-share)*width + share*float64(e.Active*e.Width+e.Shared)
		more = share * float64(e.Active*c.Hidden+e.Count)
	}
	return b*(4*d+attention+float64(c.mlpMatrices())*width+more) + 4*n + 2*4
}

// memory of a GPU of the first stage.
func (r *Run) memory() Memory {
	c := r.Config
	params, bytes := c.shard(r.TP, r.experts())
	params, bytes = params/float64(r.PP), bytes/float64(r.PP)
	var m Memory
	if r.Phase == Train {
		w, g, o := States(r.Zero, r.DP)
		m.Weights, m.Gradients, m.Optimiser = w*params, g*params, o*params
		r.kept(&m)
	} else {
		m.Weights = bytes
		m.KV, m.Waste = r.cache()
	}
	m.Total = m.Weights + m.Gradients + m.Optimiser + m.Activations + m.KV
	m.Has = r.GPU.MemoryGiB * (1 << 30)
	if m.Has == 0 {
		m.Has = r.GPU.MemoryGB * 1e9
	}
	m.Fits = m.Has == 0 || m.Total <= m.Has
	return m
}

// shard is what one of tp GPUs that share the layers holds of them all: parameters, and
// their bytes. It has its part of matrices and of the biases of what they widen to; all of
// norms, other biases, routers, projections to latent vectors and learned positions, as
// Megatron-LM and vLLM share them; and a head of keys and values where there are fewer than
// GPUs. Of routed experts it has those of one of ep copies.
func (c *Config) shard(tp, ep int64) (parameters, bytes float64) {
	add := func(all, whole, copies int64, each float64) {
		n := (float64(whole) + float64(all-whole)/float64(tp)) / float64(copies)
		parameters += n
		bytes += each * n
	}
	typed := float64(c.Type.Bytes)
	for _, m := range c.matrices() {
		copies := int64(1)
		if m.experts {
			copies = ep
		}
		add(m.weights, m.whole, copies, c.weight(m.quantised))
	}
	vectors, split := c.Layers*c.perLayer+c.once, c.Layers*c.splitLayer+c.splitOne
	add(vectors, vectors-split, 1, typed)
	if e := c.Experts; e != nil {
		sparse := c.sparse(c.Layers)
		add(sparse*e.vectors, sparse*e.vectors, 1, typed)
		if e.biases > 0 {
			add(sparse*e.Count*e.biases, sparse*e.Count*c.Hidden, ep, typed)
		}
	}
	if c.Latent == nil && c.KVHeads < tp {
		more := float64(c.Layers*2*c.HeadDim) * (1 - float64(c.KVHeads)/float64(tp))
		parameters += more * float64(c.Hidden)
		bytes += more * float64(c.Hidden) * c.weight(c.attentionQuantised())
		if c.biased {
			parameters += more
			bytes += more * typed
		}
	}
	return parameters, bytes
}

// kept activations of a GPU, as counted and by the rule. Checkpointing keeps every
// layer's input and all of one layer at a time.
func (r *Run) kept(m *Memory) {
	c := r.Config
	batch := r.Batch / r.DP
	layers := float64((c.Layers + r.PP - 1) / r.PP)
	layer := float64(batch*r.Seq) * c.activations() / float64(r.TP)
	m.RuleLayer = RuleActivations(r.Seq, batch, c.Hidden) / float64(r.TP)
	m.Inputs = layers * LayerInput(r.Seq, batch, c.Hidden)
	m.Activations, m.Rule = layers*layer, layers*m.RuleLayer
	if r.Checkpoint {
		m.Activations, m.Rule = m.Inputs+layer, m.Inputs+m.RuleLayer
	}
}

// cache is the bytes of keys and values, in whole pages, and what of it is empty. Layers
// that see a window keep no more than it.
func (r *Run) cache() (bytes, waste float64) {
	c := r.Config
	width := 2 * max(float64(c.KVHeads)/float64(r.TP), 1) * float64(c.HeadDim)
	if c.Latent != nil { // of all heads: each GPU of a layer has it whole
		width = float64(c.Latent.Kept())
	}
	token := float64(r.KV.Bytes) * width * float64(r.Batch/r.DP) // of a layer
	layers := (c.Layers + r.PP - 1) / r.PP
	local := c.windowed(layers)
	add := func(layers, tokens int64) {
		page := max(r.Page, 1)
		whole := (tokens + page - 1) / page * page
		bytes += token * float64(layers*whole)
		waste += token * float64(layers*(whole-tokens))
	}
	add(layers-local, r.Seq)
	add(local, r.held())
	return bytes, waste
}

// held is how many tokens of a sequence a layer with windows keeps.
func (r *Run) held() int64 {
	if r.Config.Window > 0 && r.Phase == Decode {
		return min(r.Seq, r.Config.Window)
	}
	return r.Seq
}
