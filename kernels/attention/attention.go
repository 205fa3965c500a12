// Package attention is the family of attention forward passes:
//
//	O = softmax(scale Q K^T + mask) V,  LSE = ln of the row's sum of exponentials
//
// for grouped heads, any lengths, masked causally (aligned at the bottom right: query i
// sees keys j <= i + Sk - Sq) or not at all. Q and O are [batch, query, head, dim], K
// and V [batch, key, kv head, dim], LSE [batch, head, query] in natural logarithms. Rows of
// V and O may be shorter than those of Q and K. A row that sees nothing has O = 0 and
// LSE = -inf.
//
// Of 8-bit types, Q, K and V have a factor each for every sequence and head of keys: tensors
// [batch, kv head] of f32, with strides of 0 where it is one of the whole tensor.
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
	Type                  string // of Q, K and V: f16, bf16, e4m3 or e5m2
	Out                   string // of O: f16, bf16 or f32

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
			family.OneOf("dtype", "type of Q, K and V; e4m3 and e5m2 come with factors for each sequence and head of keys",
				family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"},
				family.Option{Name: "e4m3", Since: fp8Since}, family.Option{Name: "e5m2", Since: fp8Since}),
			family.OneOf("out", "type of O; same: that of Q, K and V, bf16 for e4m3 and e5m2",
				family.Option{Name: "same"}, family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"}, family.Option{Name: "f32"}),
		},
		New:     fromFlags,
		Awkward: func(r *rand.Rand) family.Problem { return awkward(r) },
	}
}

func fromFlags(v family.Values) (family.Problem, error) {
	p := &Problem{
		Batch: v.Int("batch"), Heads: v.Int("heads"), KVHeads: v.Int("kv-heads"),
		Seq: v.Int("seq"), HeadDim: v.Int("head-dim"),
		Causal: v.Bool("causal"), Type: v.Choice("dtype"), Out: v.Choice("out"),
	}
	if p.Out == "same" {
		p.Out = p.same()
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

// fp8Since is the first compute capability whose tensor cores have 8-bit floats.
var fp8Since = target.CC{Major: 8, Minor: 9}

// small tells whether Q, K and V are 8-bit floats.
func (p *Problem) small() bool { return p.elem().Bits() == 8 }

// same is the type that O has where none is given.
func (p *Problem) same() string {
	if p.small() {
		return ir.BF16.String()
	}
	return p.Type
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
	p.Out = p.same()
	return p
}

// Settings lists the flags.
func (p *Problem) Settings() family.Settings {
	s := family.Settings{
		{Name: "batch", Value: strconv.Itoa(p.Batch)}, {Name: "heads", Value: strconv.Itoa(p.Heads)}, {Name: "kv-heads", Value: strconv.Itoa(p.KVHeads)},
		{Name: "seq", Value: strconv.Itoa(p.Seq)}, {Name: "seq-kv", Value: strconv.Itoa(p.SeqKV)}, {Name: "head-dim", Value: strconv.Itoa(p.HeadDim)},
		{Name: "causal", Value: strconv.FormatBool(p.Causal)}, {Name: "dtype", Value: p.Type},
	}
	if p.Out != p.Type {
		s = append(s, family.Setting{Name: "out", Value: p.Out})
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
	switch {
	case p.Type == "f16":
		w.Math = target.F16Acc32
	case p.small():
		w.Math = target.F8Acc32
	}
	size, out := bytesOf(p.elem()), bytesOf(p.out())
	w.Bytes = size*d*queries + size*(d+dv)*keys + (out*dv+4)*queries
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

// elem is the type of Q, K and V.
func (p *Problem) elem() ir.Elem { return elemOf(p.Type) }

// out is the type of O.
func (p *Problem) out() ir.Elem { return elemOf(p.Out) }

func elemOf(name string) ir.Elem {
	e, ok := ir.ElemByName(name)
	if !ok {
		panic(fmt.Sprintf("attention: type %q", name))
	}
	return e
}

func bytesOf(e ir.Elem) float64 { return float64(e.Bits()) / 8 }

// scale is the factor of the scores, 1/sqrt(head dimension), as the kernel gets it.
func (p *Problem) scale() float64 { return float64(float32(1 / math.Sqrt(float64(p.HeadDim)))) }

// Args lists Q, K, V, their factors if there are any, scale, O and LSE.
func (p *Problem) Args() []family.Arg {
	o := p.tensor("o", p.out(), p.Seq, p.Heads, p.HeadDimV)
	o.Out = true
	args := []family.Arg{
		p.tensor("q", p.elem(), p.Seq, p.Heads, p.HeadDim),
		p.tensor("k", p.elem(), p.SeqKV, p.KVHeads, p.HeadDim),
		p.tensor("v", p.elem(), p.SeqKV, p.KVHeads, p.HeadDimV),
	}
	if p.small() {
		for _, name := range factors {
			args = append(args, family.Arg{Name: name, Elem: ir.F32, Fill: toFactors, Dims: []int{p.Batch, p.KVHeads}, Strides: []int{p.KVHeads, 1}})
		}
	}
	return append(args,
		family.Arg{Name: "scale", Elem: ir.F32, Float: p.scale(), From0: true, Doc: "factor of the scores, 1/sqrt(head dimension)"},
		o,
		family.Arg{Name: "lse", Elem: ir.F32, Out: true, Dims: []int{p.Batch, p.Heads, p.Seq}, Strides: []int{p.Heads * p.Seq, p.Seq, 1}})
}

// factors are the names of the tensors of what Q, K and V are to be multiplied by.
var factors = []string{"q_scale", "k_scale", "v_scale"}

// toFactors makes a tensor's elements positive numbers around 1.
func toFactors(t *family.Tensor) {
	for b := range t.Dims[0] {
		for h := range t.Dims[1] {
			t.Set(math.Exp2(t.At(b, h)/4), b, h)
		}
	}
}

// tensor describes [batch, seq, heads, dim].
func (p *Problem) tensor(name string, e ir.Elem, seq, heads, dim int) family.Arg {
	row := dim + p.Pad
	return family.Arg{
		Name: name, Elem: e,
		Dims:    []int{p.Batch, seq, heads, dim},
		Strides: []int{seq * heads * row, heads * row, row, 1},
	}
}
