package llm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/jsontext"
)

// Quantised is how the layers' matrices are kept in fewer bits; the router, the embedding,
// the head and all vectors keep the model's type.
type Quantised struct {
	Method    string
	Bytes     float64 // of a weight, with its part of scales and zeros
	Attention bool    // attention's matrices too
	MLP       bool    // those of the MLP and of shared experts too
	Maths     []target.Math
}

// quantMethods are the known quant_methods of a quantization_config.
var quantMethods = []struct {
	name string
	read func(q *quantFile) (*Quantised, error)
}{
	{"fp8", (*quantFile).fp8},
	{"gptq", (*quantFile).grouped},
	{"awq", (*quantFile).grouped},
	{"mxfp4", (*quantFile).mxfp4},
}

// quantFile is a quantization_config under way: its keys are those of a file.
type quantFile struct {
	file
	method string
}

// quantised reads quantization_config, if there is one.
func (f *file) quantised(c *Config) error {
	m, ok := f.members["quantization_config"]
	if !ok || string(m.Value) == "{}" || string(m.Value) == "false" {
		return nil
	}
	inner := &quantFile{file: file{name: f.name, members: map[string]jsontext.Member{}, nulls: map[string]bool{}}}
	if !strings.HasPrefix(string(m.Value), "{") {
		return f.errorf(m.Key, " %s: want an object, in braces", clip(m.Value))
	}
	if err := inner.add("", m.Value, m.Line); err != nil {
		return err
	}
	var err error
	if inner.method, err = inner.word("quant_method"); err != nil {
		return err
	}
	var names []string
	for _, known := range quantMethods {
		names = append(names, known.name)
		if known.name != inner.method {
			continue
		}
		if c.Quantised, err = known.read(inner); err != nil {
			return err
		}
		return inner.kept(c.Quantised)
	}
	key, got := "quant_method", fmt.Sprintf("%q", inner.method)
	if inner.method == "" {
		got = "is missing"
	}
	return inner.errorf(key, " %s: want one of %s, or the model's file before it was quantised", got, strings.Join(names, ", "))
}

// fp8 has a byte for each weight and an f32 scale for each block, or for a whole matrix.
// Activations are rounded to the same type, so products run at its rate.
func (q *quantFile) fp8() (*Quantised, error) {
	out := &Quantised{Bytes: 1, Attention: true, MLP: true, Maths: F8.Maths}
	if m, ok := q.members["weight_block_size"]; ok {
		var block []int64
		if json.Unmarshal(m.Value, &block) != nil || len(block) != 2 || min(block[0], block[1]) < 1 || max(block[0], block[1]) > 1<<20 {
			return nil, q.errorf(m.Key, " %s: want the rows and columns of a block, such as [128, 128]", clip(m.Value))
		}
		out.Bytes += 4 / float64(block[0]*block[1])
	}
	return out, nil
}

// grouped has whole numbers of a few bits, and for each group of them a scale of 16 bits and
// a zero of as many bits as they have.
func (q *quantFile) grouped() (*Quantised, error) {
	bits, err := q.either("bits", "w_bit", 8)
	if err != nil {
		return nil, err
	}
	if bits != 2 && bits != 3 && bits != 4 && bits != 8 {
		return nil, q.errorf("bits", " %d: want 2, 3, 4 or 8", bits)
	}
	out := &Quantised{Bytes: float64(bits) / 8, Attention: true, MLP: true}
	if m := q.members["group_size"]; string(m.Value) == "-1" { // a whole column
		return out, nil
	}
	group, err := q.either("group_size", "q_group_size", 1<<20)
	if err != nil {
		return nil, err
	}
	out.Bytes += (2 + float64(bits)/8) / float64(group)
	return out, nil
}

// either is a whole number by one of two keys.
func (q *quantFile) either(key, other string, most int64) (int64, error) {
	if !q.has(key) && q.has(other) {
		key = other
	}
	n, err := q.whole(key, most)
	if err == nil && n == 0 {
		err = q.errorf(key, " is missing: want a whole number from 1 to %d", most)
	}
	return n, err
}

// mxfp4 has 4 bits and an exponent of 8 for 32 of them (OCP Microscaling 1.0), of experts.
func (q *quantFile) mxfp4() (*Quantised, error) {
	return &Quantised{Bytes: 0.5 + 1.0/32}, nil
}

// notQuantised are the parts that no method quantises, as a model's modules are named.
var notQuantised = regexp.MustCompile(`(^|\.)(lm_head|embed_tokens|router|gate|shared_expert_gate|norm|[a-z_]*layernorm)$`)

// everyLayersPart matches a part of all layers: `model.layers.*.self_attn`, `self_attn`.
var everyLayersPart = regexp.MustCompile(`^(?:(?:model\.)?layers\.\*\.)?(self_attn|mlp)$`)

// kept reads which parts keep the model's type.
func (q *quantFile) kept(out *Quantised) error {
	out.Method = q.method
	if head, err := q.flag("lm_head", false); err != nil || head {
		if err == nil {
			err = q.errorf("lm_head", " true: want false, a head that is not quantised")
		}
		return err
	}
	for _, key := range []string{"modules_to_not_convert", "ignored_layers"} {
		m, ok := q.members[key]
		if !ok {
			continue
		}
		var names []string
		if json.Unmarshal(m.Value, &names) != nil {
			return q.errorf(key, " %s: want a list of names", clip(m.Value))
		}
		for _, name := range names {
			part := everyLayersPart.FindStringSubmatch(name)
			switch {
			case part != nil && part[1] == "self_attn":
				out.Attention = false
			case part != nil:
				out.MLP = false
			case !notQuantised.MatchString(name):
				return q.errorf(key, " %s: want names of parts of all layers, such as model.layers.*.self_attn, lm_head or router", clip([]byte(name)))
			}
		}
	}
	return nil
}

// weight is the bytes of a weight of a kind of matrix.
func (c *Config) weight(quantised bool) float64 {
	if quantised {
		return c.Quantised.Bytes
	}
	return float64(c.Type.Bytes)
}

func (c *Config) attentionQuantised() bool { return c.Quantised != nil && c.Quantised.Attention }
func (c *Config) mlpQuantised() bool       { return c.Quantised != nil && c.Quantised.MLP }
func (c *Config) expertsQuantised() bool   { return c.Quantised != nil }

// WeightBytes are those of all parameters: quantised matrices, and the rest in the model's
// type.
func (c *Config) WeightBytes() float64 {
	rest, bytes := c.Parameters(), 0.0
	for _, m := range c.matrices() {
		if m.quantised {
			rest -= m.weights
			bytes += c.Quantised.Bytes * float64(m.weights)
		}
	}
	return bytes + float64(c.Type.Bytes)*float64(rest)
}

// quantMath is the arithmetic of products with quantised matrices: that of the model's type
// where weights alone have fewer bits, or the GPU has no rate for fewer.
func (r *Run) quantMath() target.Math {
	q := r.Config.Quantised
	i := slices.IndexFunc(q.Maths, func(m target.Math) bool { _, ok := r.GPU.Peak(m); return ok })
	if i < 0 {
		return r.math()
	}
	return q.Maths[i]
}
