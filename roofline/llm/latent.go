package llm

// Latent is attention that keeps one vector of each token for all heads (DeepSeek-V2, arXiv
// 2405.04434, section 2.1): keys and values are made from its first part, and the rest is
// the rotated part of every key.
type Latent struct {
	Rank  int64 // of what keys and values are made from
	Rope  int64 // rotated elements of a key
	Nope  int64 // others of a head's key
	Value int64 // elements of a head's value
	Query int64 // rank of what queries are made from; 0: from the layer's input
}

// Kept is the elements that the cache keeps of a token.
func (l *Latent) Kept() int64 { return l.Rank + l.Rope }

// key is the elements of a head's key.
func (l *Latent) key() int64 { return l.Nope + l.Rope }

// weights are a layer's matrices.
func (l *Latent) weights(hidden, heads int64) int64 {
	n := hidden*l.Kept() + l.Rank*heads*(l.Nope+l.Value) + heads*l.Value*hidden
	if l.Query > 0 {
		return n + l.Query*(hidden+heads*l.key())
	}
	return n + hidden*heads*l.key()
}

// latent reads the sizes of an architecture with latent attention.
func (f *file) latent(c *Config) error {
	l := &Latent{}
	for _, s := range []struct {
		key  string
		to   *int64
		need bool
	}{
		{"kv_lora_rank", &l.Rank, true}, {"qk_rope_head_dim", &l.Rope, true}, {"qk_nope_head_dim", &l.Nope, true}, {"v_head_dim", &l.Value, true}, {"q_lora_rank", &l.Query, false},
	} {
		n, err := f.whole(s.key, 1<<16)
		if err != nil {
			return err
		}
		if n == 0 && s.need {
			return f.errorf(s.key, " is missing: want a whole number from 1 to %d, as in the config.json of a model with a latent cache", 1<<16)
		}
		*s.to = n
	}
	if l.Query == 0 && !f.nulls["q_lora_rank"] {
		c.Notes = append(c.Notes, "q_lora_rank is missing: queries are counted as made from the layer's input, as where it is null")
	}
	if c.KVHeads != 0 && c.KVHeads != c.Heads {
		return f.errorf("num_key_value_heads", " %d: want the %d heads: the cache holds no heads", c.KVHeads, c.Heads)
	}
	if biased, err := f.flag("attention_bias", false); err != nil || biased {
		if err == nil {
			err = f.errorf("attention_bias", " true beside kv_lora_rank: want false")
		}
		return err
	}
	if float64(c.Layers)*float64(c.Heads)*float64(l.Rank+l.Query+c.Hidden)*float64(l.key()+l.Value) > mostWeights {
		return f.errorf("kv_lora_rank", " %d with %d heads of %d: more than %g weights in %d layers", l.Rank, c.Heads, l.key(), float64(mostWeights), c.Layers)
	}
	c.KVHeads, c.HeadDim, c.Latent = c.Heads, l.key(), l
	return nil
}
