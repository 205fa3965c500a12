// Package llm holds a decoder-only language model to a GPU's roofs: operations,
// bytes and least time of each operator, memory and collectives. All of it is by
// formula.
package llm

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
)

//go:embed models/*.json
var models embed.FS

// Config is a model's sizes: a decoder with grouped-query attention and a gated MLP
// of three matrices, as Llama's.
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
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return parse(name, b)
}

// file is the part of a config.json that matters here.
type file struct {
	Hidden   *int64 `json:"hidden_size"`
	FFN      *int64 `json:"intermediate_size"`
	Layers   *int64 `json:"num_hidden_layers"`
	Heads    *int64 `json:"num_attention_heads"`
	KVHeads  *int64 `json:"num_key_value_heads"`
	HeadDim  *int64 `json:"head_dim"`
	Vocab    *int64 `json:"vocab_size"`
	Tied     bool   `json:"tie_word_embeddings"`
	Type     string `json:"torch_dtype"`
	NewType  string `json:"dtype"` // the name since 2025
	Experts  *int64 `json:"num_local_experts"`
	Experts2 *int64 `json:"num_experts"`
}

// most is the largest size that is taken for one, so that products stay exact.
const most = 1 << 24

// parse reads a config.json.
func parse(name string, b []byte) (*Config, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, located(b, err))
	}
	c := &Config{Name: name, Tied: f.Tied, Type: BF16}
	for _, k := range []struct {
		key  string
		from *int64
		to   *int64
	}{
		{"hidden_size", f.Hidden, &c.Hidden}, {"intermediate_size", f.FFN, &c.FFN}, {"num_hidden_layers", f.Layers, &c.Layers},
		{"num_attention_heads", f.Heads, &c.Heads}, {"vocab_size", f.Vocab, &c.Vocab},
	} {
		if k.from == nil {
			return nil, fmt.Errorf("%s: %s is missing: want a number, as in the config.json of a decoder model", name, k.key)
		}
		*k.to = *k.from
	}
	c.KVHeads = c.Heads
	if f.KVHeads != nil {
		c.KVHeads = *f.KVHeads
	}
	if f.HeadDim != nil {
		c.HeadDim = *f.HeadDim
	} else if c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if f.Experts != nil || f.Experts2 != nil {
		return nil, fmt.Errorf("%s: a mixture of experts: want a dense model", name)
	}
	if t := f.Type + f.NewType; t != "" {
		var ok bool
		if c.Type, ok = typeNamed(t); !ok {
			return nil, fmt.Errorf("%s: torch_dtype %q: want float16, bfloat16 or float32", name, t)
		}
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// located adds the line to a syntax error.
func located(b []byte, err error) error {
	var at int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		return err
	}
	line := 1 + strings.Count(string(b[:min(at, int64(len(b)))]), "\n")
	return fmt.Errorf("line %d: %w", line, err)
}

func (c *Config) check() error {
	for _, k := range []struct {
		key  string
		size int64
	}{
		{"hidden_size", c.Hidden}, {"intermediate_size", c.FFN}, {"num_hidden_layers", c.Layers}, {"num_attention_heads", c.Heads},
		{"num_key_value_heads", c.KVHeads}, {"head_dim", c.HeadDim}, {"vocab_size", c.Vocab},
	} {
		if k.size < 1 || k.size > most {
			return fmt.Errorf("%s %d: want 1 to %d", k.key, k.size, most)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("num_key_value_heads %d: want a divisor of the %d heads", c.KVHeads, c.Heads)
	}
	return nil
}

// Parameters counts the weights: embedding and head, of each layer the projections of
// queries, keys, values and outputs, three matrices of the MLP and two norms, and a
// last norm.
func (c *Config) Parameters() int64 {
	n := c.Vocab * c.Hidden
	if !c.Tied {
		n *= 2
	}
	return n + c.Layers*c.layer() + c.Hidden
}

func (c *Config) layer() int64 {
	return c.Hidden*c.HeadDim*(2*c.Heads+2*c.KVHeads) + 3*c.Hidden*c.FFN + 2*c.Hidden
}

// Type is the format of numbers in memory.
type Type struct {
	Name  string
	Bytes int64
	Math  target.Math // of products of it, with f32 sums
}

// The types that models come in.
var (
	F16  = Type{"f16", 2, target.F16Acc32}
	BF16 = Type{"bf16", 2, target.BF16}
	F32  = Type{"f32", 4, target.TF32}
	F8   = Type{"e4m3", 1, target.F8Acc32}
)

func typeNamed(name string) (Type, bool) {
	switch name {
	case "float16":
		return F16, true
	case "bfloat16":
		return BF16, true
	case "float32":
		return F32, true
	}
	return Type{}, false
}
