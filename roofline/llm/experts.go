package llm

import (
	"encoding/json"
	"math"
	"slices"
)

// Experts stand in the place of the MLP in some layers: each token goes to a few of them.
type Experts struct {
	Count  int64  // E: of a layer
	Active int64  // k: that a token goes to
	Width  int64  // of an expert's MLP
	Shared int64  // of the MLP of experts that every token goes to, all together
	Sparse []bool // of each layer: whether it has experts; others have the MLP

	vectors int64 // parameters of a layer beside matrices and experts' biases
	biases  int64 // of an expert
}

// Touched is how many of a layer's experts a number of tokens go to, if each token's k are
// any of the E alike: an expert is left out by one token with 1 - k/E, hence by all with
// the power of that. Uneven routing touches fewer.
func (e *Experts) Touched(tokens float64) float64 {
	return float64(e.Count) * -math.Expm1(tokens*math.Log1p(-float64(e.Active)/float64(e.Count)))
}

// sparse is how many of the last layers have experts: dense ones come first.
func (c *Config) sparse(layers int64) int64 {
	if c.Experts == nil {
		return 0
	}
	var n int64
	all := c.Experts.Sparse
	for _, s := range all[max(0, int64(len(all))-layers):] {
		if s {
			n++
		}
	}
	return n
}

// expertWeights are the matrices of a layer's routed experts.
func (c *Config) expertWeights() int64 {
	return c.Experts.Count * c.mlpMatrices() * c.Hidden * c.Experts.Width
}

// idle are the parameters of routed experts that a token does not go to.
func (c *Config) idle() int64 {
	if c.Experts == nil {
		return 0
	}
	each := c.expertWeights()/c.Experts.Count + c.Experts.biases
	return c.sparse(c.Layers) * (c.Experts.Count - c.Experts.Active) * each
}

// mixture is where an architecture's config.json has its experts.
type mixture struct {
	count, width string // keys
	sharedWidth  string // key of the width of shared experts; "": by n_shared_experts
	shared       int64  // shared experts without a key
	dense        string // key of the width of layers without experts; "": intermediate_size
	layers       layerRule
	correction   bool // a number for each expert corrects its score
	gate         bool // of the shared experts
	biased       bool // the router and the experts have biases
}

// layerRule says which layers have experts.
type layerRule uint8

const (
	everyLayer  layerRule = iota
	qwenLayers            // those that decoder_sparse_step divides, counted from 1, but for mlp_only_layers
	deepLayers            // from first_k_dense_replace on those that moe_layer_freq divides
	llamaLayers           // the last of each interleave_moe_layer_step
)

// mostExperts bounds the experts of a layer, mostWeights those of a kind of matrix, so that
// sums have 63 bits.
const (
	mostExperts = 1 << 13
	mostWeights = 1e18
)

// experts reads the mixture of an architecture.
func (f *file) experts(c *Config, m *mixture) error {
	e := &Experts{}
	width := m.width
	for _, s := range []struct {
		key  string
		most int64
		to   *int64
	}{{m.count, mostExperts, &e.Count}, {f.activeKey(), mostExperts, &e.Active}, {width, 1 << 22, &e.Width}} {
		n, err := f.whole(s.key, s.most)
		if err != nil {
			return err
		}
		if n == 0 {
			return f.errorf(s.key, " is missing: want a whole number from 1 to %d, as in the config.json of a mixture of experts", s.most)
		}
		*s.to = n
	}
	if e.Active > e.Count {
		return f.errorf(f.activeKey(), " %d: want at most the %d experts of %s", e.Active, e.Count, m.count)
	}
	if err := f.sharedExperts(c, e, m); err != nil {
		return err
	}
	if m.dense != "" {
		n, err := f.whole(m.dense, 1<<22)
		if err != nil {
			return err
		}
		if n > 0 {
			c.FFN = n
		}
	}
	var err error
	if e.Sparse, err = f.sparseLayers(c, m); err != nil {
		return err
	}
	if m.correction {
		e.vectors += e.Count
	}
	if m.gate {
		e.vectors += c.Hidden
	}
	if m.biased {
		e.vectors += e.Count
		e.biases = (c.mlpMatrices()-1)*e.Width + c.Hidden
	}
	c.Experts = e
	if float64(c.Layers)*float64(c.mlpMatrices()*c.Hidden)*float64(e.Count)*float64(max(e.Width, e.Shared)) > mostWeights {
		return f.errorf(m.count, " %d of %d x %d: more than %g weights in %d layers", e.Count, c.Hidden, max(e.Width, e.Shared), float64(mostWeights), c.Layers)
	}
	return nil
}

// activeKey is the key of how many experts a token goes to.
func (f *file) activeKey() string {
	if f.has("num_experts_per_tok") || !f.has("experts_per_token") {
		return "num_experts_per_tok"
	}
	return "experts_per_token"
}

func (f *file) sharedExperts(c *Config, e *Experts, m *mixture) (err error) {
	if m.sharedWidth != "" {
		e.Shared, err = f.whole(m.sharedWidth, 1<<22)
		return err
	}
	n := m.shared
	if m.layers == deepLayers && !f.has("n_shared_experts") && !f.nulls["n_shared_experts"] {
		c.Notes = append(c.Notes, "n_shared_experts is missing: no expert is counted that every token goes to")
	}
	if f.has("n_shared_experts") && string(f.members["n_shared_experts"].Value) != "0" {
		if n, err = f.whole("n_shared_experts", 64); err != nil {
			return err
		}
	}
	e.Shared = n * e.Width
	return nil
}

// sparseLayers are those with experts.
func (f *file) sparseLayers(c *Config, m *mixture) ([]bool, error) {
	from, step, dense, err := f.layerKeys(c, m)
	if err != nil {
		return nil, err
	}
	out := make([]bool, c.Layers)
	for i := range out {
		n := int64(i)
		switch m.layers {
		case qwenLayers:
			out[i] = (n+1)%step == 0 && !slices.Contains(dense, n)
		case deepLayers:
			out[i] = n >= from && n%step == 0
		case llamaLayers:
			out[i] = (n+1)%step == 0
		default:
			out[i] = true
		}
	}
	if !slices.Contains(out, true) {
		return nil, f.errorf(m.count, " %s: by the other keys no layer has experts", clip(f.members[m.count].Value))
	}
	return out, nil
}

// layerKeys are the first layer with experts, their step, and layers without.
func (f *file) layerKeys(c *Config, m *mixture) (from, step int64, dense []int64, err error) {
	step = 1
	word := map[layerRule]string{qwenLayers: "decoder_sparse_step", deepLayers: "moe_layer_freq", llamaLayers: "interleave_moe_layer_step"}[m.layers]
	if f.has(word) {
		if step, err = f.whole(word, 1<<14); err != nil {
			return 0, 0, nil, err
		}
	}
	if m.layers == deepLayers && f.has("first_k_dense_replace") && string(f.members["first_k_dense_replace"].Value) != "0" {
		if from, err = f.whole("first_k_dense_replace", 1<<14); err != nil {
			return 0, 0, nil, err
		}
	}
	if list, ok := f.members["mlp_only_layers"]; ok && m.layers == qwenLayers {
		if json.Unmarshal(list.Value, &dense) != nil {
			return 0, 0, nil, f.errorf(list.Key, " %s: want a list of layers", clip(list.Value))
		}
		for _, n := range dense {
			if n < 0 || n >= c.Layers {
				return 0, 0, nil, f.errorf(list.Key, " %s: layer %d: want 0 to %d, of %d layers", clip(list.Value), n, c.Layers-1, c.Layers)
			}
		}
	}
	return from, step, dense, nil
}
