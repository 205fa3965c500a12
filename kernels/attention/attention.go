// Package attention is the family of attention forward passes:
//
//	O = softmax(scale Q K^T + mask) V,  LSE = ln of the row's sum of exponentials
//
// for grouped heads, any lengths, masked causally (aligned at the bottom right: query i
// sees keys j <= i + Sk - Sq) or not at all. Q and O are [batch, query, head, dim], K
// and V [batch, key, kv head, dim], LSE [batch, head, query] in natural logarithms. Rows of
// V and O may be shorter than those of Q and K. A row that sees nothing has O = 0 and
// LSE = -inf.
package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Problem is one forward pass.
type Problem struct {
	Batch, Heads, KVHeads int
	Seq, SeqKV            int // queries, keys
	HeadDim               int // of queries and keys
	HeadDimV              int // of values and O
	Causal                bool
	Type                  string // of Q, K, V and O: f16 or bf16

	Pad int // elements between the rows of every tensor but LSE
}

// Family describes attention.
func Family() *family.Family {
	return &family.Family{
		Name:   "flashattn",
		Doc:    "attention forward: softmax(scale Q K^T) V with grouped heads, and its log-sum-exp",
		Prefix: "FlashAttn",
		Sizes: []family.Extent{
			{Symbol: "B", Field: "Batch", Doc: "sequences"},
			{Symbol: "Sq", Field: "Seq", Doc: "queries of a sequence"},
			{Symbol: "Sk", Field: "SeqKV", Doc: "keys of a sequence"},
			{Symbol: "KVH", Field: "KVHeads", Doc: "heads of keys and values"},
			{Symbol: "H", Field: "Heads", Doc: "heads of queries", MultipleOf: "KVHeads"},
		},
		Flags: []family.Flag{
			family.Size("batch", 4, "sequences"),
			family.Size("heads", 32, "query heads"),
			family.Size("kv-heads", 8, "key and value heads; divides heads"),
			family.Size("seq", 4096, "queries of a sequence"),
			family.Size("seq-kv", 0, "keys of a sequence; as many as queries if not given"),
			{Name: "head-dim", Doc: "elements of a head's row", Kind: family.Int, Default: "128", Min: 16, Max: 256, Multiple: 16},
			{Name: "head-dim-v", Doc: "elements of a value's row; as head-dim if not given", Kind: family.Int, Min: 16, Max: 256, Multiple: 16},
			family.Switch("causal", true, "query i sees keys up to i + seq-kv - seq"),
			family.OneOf("dtype", "type of Q, K, V and O",
				family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"}),
		},
		New:     fromFlags,
		Awkward: func(r *rand.Rand) family.Problem { return awkward(r) },
	}
}

func fromFlags(v family.Values) (family.Problem, error) {
	p := &Problem{
		Batch: v.Int("batch"), Heads: v.Int("heads"), KVHeads: v.Int("kv-heads"),
		Seq: v.Int("seq"), HeadDim: v.Int("head-dim"),
		Causal: v.Bool("causal"), Type: v.Choice("dtype"),
	}
	p.SeqKV = p.Seq
	p.HeadDimV = p.HeadDim
	if v.Given("head-dim-v") {
		p.HeadDimV = v.Int("head-dim-v")
	}
	if v.Given("seq-kv") {
		p.SeqKV = v.Int("seq-kv")
	}
	if p.Heads%p.KVHeads != 0 {
		return nil, fmt.Errorf("--heads %d, --kv-heads %d: want heads to be a multiple of kv-heads", p.Heads, p.KVHeads)
	}
	return p, nil
}

// awkward draws lengths around the smallest tiles, with fewer keys than queries (rows
// that see nothing) as often as more.
func awkward(r *rand.Rand) *Problem {
	kv := 1 + r.IntN(2)
	p := &Problem{
		Batch: 1 + r.IntN(2), Heads: kv * (1 + r.IntN(3)), KVHeads: kv,
		Seq: 1 + r.IntN(150), SeqKV: 1 + r.IntN(200), HeadDim: 16 * (1 + r.IntN(6)),
		Causal: r.IntN(3) > 0, Type: "bf16",
	}
	if r.IntN(8) == 0 {
		p.HeadDim = 128 + 16*r.IntN(9)
	}
	p.HeadDimV = p.HeadDim
	if r.IntN(4) == 0 {
		p.HeadDimV = 16 * (1 + r.IntN(8))
	}
	if r.IntN(2) == 0 {
		p.Type = "f16"
	}
	if r.IntN(4) == 0 {
		p.SeqKV = p.Seq
	}
	switch r.IntN(6) {
	case 0:
		p.Pad = 8
	case 1:
		p.Pad = 3
	}
	return p
}

// Settings lists the flags.
func (p *Problem) Settings() family.Settings {
	s := family.Settings{
		{Name: "batch", Value: strconv.Itoa(p.Batch)}, {Name: "heads", Value: strconv.Itoa(p.Heads)}, {Name: "kv-heads", Value: strconv.Itoa(p.KVHeads)},
		{Name: "seq", Value: strconv.Itoa(p.Seq)}, {Name: "seq-kv", Value: strconv.Itoa(p.SeqKV)}, {Name: "head-dim", Value: strconv.Itoa(p.HeadDim)},
		{Name: "causal", Value: strconv.FormatBool(p.Causal)}, {Name: "dtype", Value: p.Type},
	}
	if p.HeadDimV != p.HeadDim {
		i := slices.IndexFunc(s, func(x family.Setting) bool { return x.Name == "head-dim" })
		s = slices.Insert(s, i+1, family.Setting{Name: "head-dim-v", Value: strconv.Itoa(p.HeadDimV)})
	}
	if p.Pad > 0 {
		s = append(s, family.Setting{Name: "pad", Value: strconv.Itoa(p.Pad)})
	}
	return s
}

// Work counts two FLOPs an element of a row of Q and of V, and one exponential for each query and key that see each other; Q, K,
// V, O and LSE once each.
func (p *Problem) Work() family.Work {
	seen := p.visible() * float64(p.Batch) * float64(p.Heads)
	queries := float64(p.Batch) * float64(p.Seq) * float64(p.Heads)
	keys := float64(p.Batch) * float64(p.SeqKV) * float64(p.KVHeads)
	d, dv := float64(p.HeadDim), float64(p.HeadDimV)
	w := family.Work{Math: target.BF16, FLOPs: 2 * (d + dv) * seen, Exp2: seen}
	if p.Type == "f16" {
		w.Math = target.F16Acc32
	}
	w.Bytes = 2*(d+dv)*(queries+keys) + 4*queries
	return w
}

// visible counts the pairs of a query and a key it sees, of one head.
func (p *Problem) visible() float64 {
	sq, sk := float64(p.Seq), float64(p.SeqKV)
	if !p.Causal {
		return sq * sk
	}
	if sk >= sq { // query i sees i + 1 + sk - sq keys
		return sq*(sk-sq) + sq*(sq+1)/2
	}
	return sk * (sk + 1) / 2 // the first sq - sk queries see none
}

// sees returns how many keys query i sees: the first ones.
func (p *Problem) sees(i int) int {
	if !p.Causal {
		return p.SeqKV
	}
	return max(0, i+1+p.SeqKV-p.Seq)
}

func (p *Problem) elem() ir.Elem {
	if p.Type == "f16" {
		return ir.F16
	}
	return ir.BF16
}

// scale is the factor of the scores, 1/sqrt(head dimension), as the kernel gets it.
func (p *Problem) scale() float64 { return float64(float32(1 / math.Sqrt(float64(p.HeadDim)))) }

// Args lists Q, K, V, scale, O and LSE.
func (p *Problem) Args() []family.Arg {
	o := p.tensor("o", p.Seq, p.Heads, p.HeadDimV)
	o.Out = true
	return []family.Arg{
		p.tensor("q", p.Seq, p.Heads, p.HeadDim),
		p.tensor("k", p.SeqKV, p.KVHeads, p.HeadDim),
		p.tensor("v", p.SeqKV, p.KVHeads, p.HeadDimV),
		{Name: "scale", Elem: ir.F32, Float: p.scale(), Doc: "factor of the scores, 1/sqrt(head dimension)"},
		o,
		{Name: "lse", Elem: ir.F32, Out: true, Dims: []int{p.Batch, p.Heads, p.Seq}, Strides: []int{p.Heads * p.Seq, p.Seq, 1}},
	}
}

// tensor describes [batch, seq, heads, dim].
func (p *Problem) tensor(name string, seq, heads, dim int) family.Arg {
	row := dim + p.Pad
	return family.Arg{
		Name: name, Elem: p.elem(),
		Dims:    []int{p.Batch, seq, heads, dim},
		Strides: []int{seq * heads * row, heads * row, row, 1},
	}
}
