// Package paged is the family of attention over a paged cache of keys and values:
// decoding, speculative decoding and chunked prefill.
//
// A sequence of the batch has a length in the cache, its last Query tokens included, and
// a row of the block table that says which page holds its tokens 0 to PAGE-1, PAGE to
// 2 PAGE-1, and so on. Query t of T sees the keys up to its own, length-T+t, with a
// window the last Window of them. What is not a page of the sequence is never read: the
// table's entries past the length may hold anything.
package paged

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Problem is one pass over a batch.
type Problem struct {
	Batch, Query   int // sequences, and query tokens of each
	Context        int // longest length a sequence may have
	Page           int // tokens of a page, a power of two
	Heads, KVHeads int
	HeadDim        int
	Window         int    // keys that a query sees at most; 0: all
	Layout         string // of the cache: nhd [page, token, head, dim] or hnd [page, head, token, dim]
	Chunk          int    // tokens of a piece of the context; 0: the configuration's choice
	Ragged         bool   // lengths differ, from 0 to Context; else all are Context
	Type           string // of the tensors: bf16 or f16

	Pad int // elements between the rows of q, o and the cache
}

// Family describes paged attention.
func Family() *family.Family {
	return &family.Family{
		Name:   "paged",
		Doc:    "attention over a paged cache of keys and values",
		Prefix: "Paged",
		Sizes: []family.Extent{
			{Symbol: "B", Field: "Batch", Doc: "sequences"},
			{Symbol: "T", Field: "Query", Doc: "query tokens of a sequence"},
			{Symbol: "KVH", Field: "KVHeads", Doc: "heads of keys and values"},
			{Symbol: "E", Field: "Entries", Doc: "pages that a row of the block table lists"},
			{Symbol: "P", Field: "Pages", Doc: "pages of the cache"},
		},
		Flags: []family.Flag{
			family.Size("batch", 64, "sequences"),
			family.Size("query", 1, "query tokens of a sequence, the last of its length"),
			family.Size("context", 4096, "longest length of a sequence"),
			{Name: "page", Default: "16", Min: 1, Max: maxPage, Doc: "tokens of a page, a power of two"},
			family.Size("heads", 32, "heads of queries"),
			family.Size("kv-heads", 8, "heads of keys and values; heads is a multiple"),
			{Name: "head-dim", Default: "128", Min: 16, Max: 256, Multiple: 16, Doc: "elements of a head"},
			{Name: "window", Default: "0", Min: 0, Max: family.MaxSize, Doc: "keys that a query sees at most, its own included; 0: all"},
			family.OneOf("layout", "cache layout: nhd [page, token, head, dim] or hnd [page, head, token, dim]", family.Option{Name: "nhd"}, family.Option{Name: "hnd"}),
			family.OneOf("chunk", "tokens of a piece of the context that a block takes, the same whatever the batch; 0: the configuration's choice", chunkOptions()...),
			family.Switch("ragged", false, "lengths differ, from 0 to the context"),
			family.OneOf("dtype", "type of queries, cache and output", family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"}),
		},
		New:     parse,
		Awkward: func(r *rand.Rand) family.Problem { return awkward(r) },
	}
}

// maxPage is the largest page, in tokens.
const maxPage = 256

// chunks are the pieces that a context may be cut into, in tokens; 0 leaves it whole.
var chunks = []int{0, 128, 256, 512, 1024, 2048, 4096}

func chunkOptions() []family.Option {
	var options []family.Option
	for _, c := range chunks {
		options = append(options, family.Option{Name: strconv.Itoa(c)})
	}
	return options
}

func parse(v family.Values) (family.Problem, error) {
	chunk, err := strconv.Atoi(v.Choice("chunk"))
	if err != nil {
		return nil, err
	}
	p := &Problem{
		Batch: v.Int("batch"), Query: v.Int("query"), Context: v.Int("context"), Page: v.Int("page"),
		Heads: v.Int("heads"), KVHeads: v.Int("kv-heads"), HeadDim: v.Int("head-dim"), Window: v.Int("window"),
		Layout: v.Choice("layout"), Chunk: chunk, Ragged: v.Bool("ragged"), Type: v.Choice("dtype"),
	}
	if bits.OnesCount(uint(p.Page)) != 1 {
		return nil, fmt.Errorf("--page %d: want a power of two from 1 to %d", p.Page, maxPage)
	}
	if p.Heads%p.KVHeads != 0 {
		return nil, fmt.Errorf("--heads %d, --kv-heads %d: want heads to be a multiple of kv-heads", p.Heads, p.KVHeads)
	}
	return p, nil
}

func awkward(r *rand.Rand) *Problem {
	kv := 1 + r.IntN(2)
	p := &Problem{
		Batch: 1 + r.IntN(3), Query: 1, Context: 1 + r.IntN(300), Page: 1 << r.IntN(9),
		Heads: kv * (1 + r.IntN(5)), KVHeads: kv, HeadDim: 16 * (1 + r.IntN(6)),
		Layout: []string{"nhd", "hnd"}[r.IntN(2)], Ragged: r.IntN(4) > 0, Type: []string{"bf16", "f16"}[r.IntN(2)],
		Pad: []int{0, 0, 0, 8, 3}[r.IntN(5)],
	}
	if r.IntN(3) == 0 {
		p.Query = 1 + r.IntN(20)
	}
	if r.IntN(4) == 0 {
		p.Window = 1 + r.IntN(100)
	}
	if r.IntN(6) == 0 {
		p.HeadDim = 128 + 16*r.IntN(9)
	}
	return p
}

// Settings lists the flags.
func (p *Problem) Settings() family.Settings {
	s := family.Settings{
		{Name: "batch", Value: strconv.Itoa(p.Batch)}, {Name: "query", Value: strconv.Itoa(p.Query)}, {Name: "context", Value: strconv.Itoa(p.Context)},
		{Name: "page", Value: strconv.Itoa(p.Page)}, {Name: "heads", Value: strconv.Itoa(p.Heads)}, {Name: "kv-heads", Value: strconv.Itoa(p.KVHeads)},
		{Name: "head-dim", Value: strconv.Itoa(p.HeadDim)}, {Name: "window", Value: strconv.Itoa(p.Window)}, {Name: "layout", Value: p.Layout},
		{Name: "chunk", Value: strconv.Itoa(p.Chunk)}, {Name: "ragged", Value: strconv.FormatBool(p.Ragged)}, {Name: "dtype", Value: p.Type},
	}
	if p.Pad > 0 {
		s = append(s, family.Setting{Name: "pad", Value: strconv.Itoa(p.Pad)})
	}
	return s
}

// Work: 4 D FLOPs and one exponential for each query and key that see each other; q, o
// and lse, the keys and values that are seen, and their table entries once each.
func (p *Problem) Work() family.Work {
	w := family.Work{Math: target.BF16}
	if p.Type == "f16" {
		w.Math = target.F16Acc32
	}
	var seen, keys, entries float64
	for b := range p.Batch {
		n := p.length(b)
		first := n // the first key that any query sees
		for t := range p.Query {
			lo, hi := p.sees(n, t)
			seen += float64(hi - lo)
			if hi > lo {
				first = min(first, lo)
			}
		}
		keys += float64(n - first)
		entries += float64(family.CeilDiv(n, p.Page) - first/p.Page)
	}
	queries := float64(p.Batch) * float64(p.Query) * float64(p.Heads)
	d := float64(p.HeadDim)
	w.FLOPs = 4 * d * seen * float64(p.Heads)
	w.Exp2 = seen * float64(p.Heads)
	w.Bytes = 2*d*(2*queries+2*keys*float64(p.KVHeads)) + 4*queries + 4*entries + 4*float64(p.Batch)
	return w
}

// sees returns the range of keys that query t of a sequence of length n sees.
func (p *Problem) sees(n, t int) (lo, hi int) {
	hi = max(0, n-p.Query+t+1)
	if p.Window > 0 {
		lo = max(0, hi-p.Window)
	}
	return lo, hi
}

// length is how long a sequence is. Ragged lengths come from a hash of its number, the
// second sequence's is 0.
func (p *Problem) length(b int) int {
	switch {
	case !p.Ragged:
		return p.Context
	case b == 1:
		return 0
	}
	return int(hash(uint64(b)) % uint64(p.Context+1))
}

// hash is the finaliser of MurmurHash3.
func hash(x uint64) uint64 {
	x++
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// entries is the length of a row of the block table.
func (p *Problem) entries() int { return family.CeilDiv(p.Context, p.Page) }

// pages is how many pages the cache has: those in use, and one that is not.
func (p *Problem) pages() int {
	n := 1
	for b := range p.Batch {
		n += family.CeilDiv(p.length(b), p.Page)
	}
	return n
}

// unused is what the table holds past a sequence's length: no page's number.
const unused = math.MaxInt32

// table draws which pages each sequence has, in row-major order: a permutation, so that
// neighbours in a sequence are not neighbours in memory.
func (p *Problem) table() []int32 {
	order := rand.New(rand.NewPCG(uint64(p.Batch), uint64(p.Context))).Perm(p.pages())
	table := make([]int32, 0, p.Batch*p.entries())
	for b := range p.Batch {
		used := family.CeilDiv(p.length(b), p.Page)
		for i := range p.entries() {
			if i < used {
				table = append(table, int32(order[i]))
			} else {
				table = append(table, unused)
			}
		}
		order = order[used:]
	}
	return table
}

func (p *Problem) elem() ir.Elem {
	if p.Type == "f16" {
		return ir.F16
	}
	return ir.BF16
}

// group is how many heads of queries share a head of keys.
func (p *Problem) group() int { return p.Heads / p.KVHeads }

// scale is the factor of the scores, 1/sqrt(head dimension), as the kernel gets it.
func (p *Problem) scale() float64 { return float64(float32(1 / math.Sqrt(float64(p.HeadDim)))) }

// Args lists q, k, v, table, len, scale, o and lse. Heads are [KVHeads, Heads/KVHeads].
func (p *Problem) Args() []family.Arg {
	g := p.group()
	o := p.tensor("o", p.Batch, p.Query, p.KVHeads, g)
	o.Out = true
	table := family.Arg{Name: "table", Elem: ir.I32, Dims: []int{p.Batch, p.entries()}, Strides: []int{p.entries(), 1}, Fill: func(t *family.Tensor) {
		for i, page := range p.table() {
			t.SetInt(int64(page), i/p.entries(), i%p.entries())
		}
	}}
	length := family.Arg{Name: "len", Elem: ir.I32, Dims: []int{p.Batch}, Strides: []int{1}, Fill: func(t *family.Tensor) {
		for b := range p.Batch {
			t.SetInt(int64(p.length(b)), b)
		}
	}}
	return []family.Arg{
		p.tensor("q", p.Batch, p.Query, p.KVHeads, g),
		p.cache("k"),
		p.cache("v"),
		table,
		length,
		{Name: "scale", Elem: ir.F32, Float: p.scale()},
		{Name: "window", Elem: ir.I32, Int: int64(p.Window)},
		o,
		{Name: "lse", Elem: ir.F32, Out: true, Dims: []int{p.Batch, p.Query, p.KVHeads, g}, Strides: []int{p.Query * p.Heads, p.Heads, g, 1}},
	}
}

// cache describes the keys or the values. Tokens past the end of a sequence's last page
// and pages of no sequence hold NaN.
func (p *Problem) cache(name string) family.Arg {
	dims := []int{p.pages(), p.Page, p.KVHeads}
	if p.Layout == "hnd" {
		dims = []int{p.pages(), p.KVHeads, p.Page}
	}
	a := p.tensor(name, dims...)
	a.Fill = func(t *family.Tensor) {
		used := make([]int, p.pages()) // tokens of each page
		table := p.table()
		for b := range p.Batch {
			for i, n := 0, p.length(b); n > 0; i, n = i+1, n-p.Page {
				used[table[b*p.entries()+i]] = min(n, p.Page)
			}
		}
		for page, n := range used {
			for slot := n; slot < p.Page; slot++ {
				for h := range p.KVHeads {
					for j := range p.HeadDim {
						t.Set(math.NaN(), p.at(page, slot, h, j)...)
					}
				}
			}
		}
	}
	return a
}

// at is where an element of the cache is.
func (p *Problem) at(page, slot, head, j int) []int {
	if p.Layout == "hnd" {
		return []int{page, head, slot, j}
	}
	return []int{page, slot, head, j}
}

// tensor describes [dims..., head dimension].
func (p *Problem) tensor(name string, dims ...int) family.Arg {
	dims = append(append([]int{}, dims...), p.HeadDim)
	strides := make([]int, len(dims))
	strides[len(dims)-1] = 1
	step := p.HeadDim + p.Pad
	for d := len(dims) - 2; d >= 0; d-- {
		strides[d] = step
		step *= dims[d]
	}
	return family.Arg{Name: name, Elem: p.elem(), Dims: dims, Strides: strides}
}
