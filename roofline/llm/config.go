// Package llm holds a decoder-only language model to a GPU's roofs: operations,
// bytes and least time of each operator, memory and collectives. All of it is by
// formula.
package llm

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
)

//go:embed models/*.json
var models embed.FS

// Config is a model's sizes: a decoder with attention and an MLP, or experts, in every
// layer.
type Config struct {
	Name    string
	Hidden  int64 // D
	FFN     int64 // F
	Layers  int64 // L
	Heads   int64 // N
	KVHeads int64 // K
	HeadDim int64 // H
	Vocab   int64 // V
	Tied    bool  // the head shares the embedding's matrix
	Type    Type  // of weights and activations

	Plain     bool       // the MLP has two matrices; else it is gated and has three
	Experts   *Experts   // nil: every layer has the MLP
	Latent    *Latent    // nil: keys and values of KVHeads are kept
	Quantised *Quantised // nil: all weights are of Type

	Window    int64    // tokens that a query of a layer in Windowed sees, itself among them
	Chunked   bool     // windows do not slide: a query sees its own of consecutive ones, up to itself
	Windowed  []bool   // of each layer; nil: all see all
	Positions int64    // that have a learned vector
	Longest   int64    // tokens of the longest sequence that the model is made for; 0: not told
	Untyped   bool     // the file names no type, and BF16 is supposed
	Notes     []string // what the file leaves open, a sentence each

	perLayer, once       int64 // parameters of norms and biases
	splitLayer, splitOne int64 // of them: what GPUs that share a layer split, such as biases of heads
	biased               bool  // keys and values
}

// Names are the models whose sizes are built in.
func Names() []string {
	files, err := models.ReadDir("models")
	if err != nil {
		panic(err) // it is embedded
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Lookup returns a built-in model, or reads the config.json that name is the path
// of. The errors name the key and what it must be.
func Lookup(name string) (*Config, error) {
	if b, err := models.ReadFile("models/" + name + ".json"); err == nil {
		return parse(name, b)
	}
	if !strings.HasSuffix(name, ".json") {
		return nil, fmt.Errorf("model %q: want %s or the path of a config.json", name, strings.Join(Names(), ", "))
	}
	b, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return parse(name, b)
}

// matrix is the weights of one kind of a model's matrices.
type matrix struct {
	weights   int64
	whole     int64 // of weights: what each of the GPUs that share a layer has all of
	quantised bool
	experts   bool // routed ones, which copies may share
}

// matrices are all of a model: attention's, those of the MLP, of experts and of shared
// ones, routers, embedding and positions, head.
func (c *Config) matrices() []matrix {
	sparse, width := c.sparse(c.Layers), c.mlpMatrices()*c.Hidden
	down := int64(0) // the projections to latent vectors
	if c.Latent != nil {
		down = c.Layers * c.Hidden * (c.Latent.Kept() + c.Latent.Query)
	}
	all := []matrix{
		{weights: c.Layers * c.attentionWeights(), whole: down, quantised: c.attentionQuantised()},
		{weights: (c.Layers - sparse) * width * c.FFN, quantised: c.mlpQuantised()},
		{weights: (c.Vocab + c.Positions) * c.Hidden, whole: c.Positions * c.Hidden},
	}
	if !c.Tied {
		all = append(all, matrix{weights: c.Vocab * c.Hidden})
	}
	if e := c.Experts; e != nil {
		router := sparse * c.Hidden * e.Count
		all = append(all, matrix{weights: sparse * c.expertWeights(), quantised: c.expertsQuantised(), experts: true},
			matrix{weights: sparse * width * e.Shared, quantised: c.mlpQuantised()}, matrix{weights: router, whole: router})
	}
	return all
}

// attentionWeights are those of a layer's projections.
func (c *Config) attentionWeights() int64 {
	if c.Latent != nil {
		return c.Latent.weights(c.Hidden, c.Heads)
	}
	return c.Hidden * c.HeadDim * (2*c.Heads + 2*c.KVHeads)
}

// Parameters counts all matrices, norms, biases and what else the architecture has.
func (c *Config) Parameters() int64 {
	n := c.Layers*c.perLayer + c.once
	if c.Experts != nil {
		n += c.sparse(c.Layers) * (c.Experts.vectors + c.Experts.Count*c.Experts.biases)
	}
	for _, m := range c.matrices() {
		n += m.weights
	}
	return n
}

// Active are the parameters without the routed experts that a token does not go to.
func (c *Config) Active() int64 { return c.Parameters() - c.idle() }

func (c *Config) mlpMatrices() int64 {
	if c.Plain {
		return 2
	}
	return 3
}

// vectors counts what an architecture has beside its matrices.
func (c *Config) vectors(a *architecture) {
	c.perLayer = a.norms*c.Hidden + a.heads*c.HeadDim
	if a.sinks {
		c.splitLayer += c.Heads
	}
	if c.Latent != nil {
		c.perLayer += c.Latent.Rank + c.Latent.Query
	}
	if c.biased = a.biases.qkv; c.biased {
		c.splitLayer += (c.Heads + 2*c.KVHeads) * c.HeadDim
	}
	if a.biases.out {
		c.perLayer += c.Hidden
	}
	if a.biases.mlp && c.Experts == nil {
		c.perLayer += c.Hidden
		c.splitLayer += (c.mlpMatrices() - 1) * c.FFN
	}
	c.once = a.last * c.Hidden
	if a.biases.head {
		c.splitOne = c.Vocab
	}
	c.perLayer += c.splitLayer
	c.once += c.splitOne
}

// windowed is how many of the first layers see a window alone.
func (c *Config) windowed(layers int64) int64 {
	var n int64
	for _, w := range c.Windowed[:min(layers, int64(len(c.Windowed)))] {
		if w {
			n++
		}
	}
	return n
}

// Type is the format of numbers in memory.
type Type struct {
	Name  string
	Bytes int64
	Maths []target.Math // of products of it with f32 sums: the first that a GPU has
}

// The types that models come in.
var (
	F16  = Type{"f16", 2, []target.Math{target.F16Acc32}}
	BF16 = Type{"bf16", 2, []target.Math{target.BF16}}
	F32  = Type{"f32", 4, []target.Math{target.TF32, target.F32}}
	F8   = Type{"e4m3", 1, []target.Math{target.F8Acc32}}
)

// math is the arithmetic of the type's products on a GPU.
func (t *Type) math(g *target.GPU) (target.Math, bool) {
	for _, m := range t.Maths {
		if _, ok := g.Peak(m); ok {
			return m, true
		}
	}
	return t.Maths[0], false
}

// named are the types that a config.json names.
var named = map[string]Type{"float16": F16, "bfloat16": BF16, "float32": F32}

// Types are those that a model can be run in.
func Types() []Type { return []Type{BF16, F16, F32} }
