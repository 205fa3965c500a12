// Package paged is the family of attention over a paged cache of keys and values:
// decoding, speculative decoding and chunked prefill.
//
// A sequence of the batch has a length in the cache, its last Query tokens included, and
// a row of the block table that says which page holds its tokens 0 to PAGE-1, PAGE to
// 2 PAGE-1, and so on. Query t of T sees the keys up to its own, length-T+t, with a
// window the last Window of them. What is not a page of the sequence is never read: the
// table's entries past the length may hold anything. A length below 0 counts as 0, one
// beyond what the table lists as that.
package paged

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Problem is one pass over a batch.
type Problem struct {
	pool
	Heads  int // of queries
	Window int // keys that a query sees at most; 0: all
	Chunk  int // tokens of a piece of the context; 0: the configuration's choice
}

// Family describes paged attention.
func Family() *family.Family {
	return &family.Family{
		Name:   "paged",
		Doc:    "attention over a paged cache of keys and values",
		Prefix: "Paged",
		With:   []string{appendName},
		Ratios: [][2]string{{"heads", "kv-heads"}},
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
			pageFlag,
			family.Size("heads", 32, "heads of queries"),
			family.Size("kv-heads", 8, "heads of keys and values; heads is a multiple"),
			headDimFlag,
			{Name: "window", Default: "0", Min: 0, Max: family.MaxSize, Doc: "keys that a query sees at most, its own included; 0: all"},
			layoutFlag,
			family.OneOf("chunk", "tokens of a piece of the context that a block takes, the same whatever the batch; 0: the configuration's choice", chunkOptions()...),
			raggedFlag,
			typeFlag,
		},
		New:     parse,
		Awkward: func(r *rand.Rand) family.Problem { return awkward(r) },
	}
}

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
	c, err := parsePool(v)
	if err != nil {
		return nil, err
	}
	p := &Problem{pool: *c, Heads: v.Int("heads"), Window: v.Int("window"), Chunk: chunk}
	if p.Heads%p.KVHeads != 0 {
		return nil, fmt.Errorf("--heads %d, --kv-heads %d: want heads to be a multiple of kv-heads", p.Heads, p.KVHeads)
	}
	return p, nil
}

func awkward(r *rand.Rand) *Problem {
	p := &Problem{pool: awkwardPool(r)}
	p.Heads = p.KVHeads * (1 + r.IntN(5))
	if r.IntN(4) == 0 {
		p.Window = 1 + r.IntN(100)
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
	return append(s, p.padding()...)
}

// Work counts 4 D FLOPs and one exponential for each query and key that see each other; q, o
// and lse, the keys and values that are seen, and their table entries once each.
func (p *Problem) Work() family.Work {
	w := family.Work{Math: p.math()}
	var seen, keys, entries float64
	for n, sequences := range p.lengths() {
		if n == 0 {
			continue
		}
		first, _ := p.sees(n, max(0, p.Query-n)) // by the first query that sees any
		seen += float64(sequences) * float64(p.seenUpTo(n)-p.seenUpTo(max(0, n-p.Query)))
		keys += float64(sequences) * float64(n-first)
		entries += float64(sequences) * float64(family.CeilDiv(n, p.Page)-first/p.Page)
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

// seenUpTo is how many keys the first n tokens of a sequence see together, were all of
// them queries.
func (p *Problem) seenUpTo(n int) int {
	if w := p.Window; w > 0 && n > w {
		return w*(w+1)/2 + (n-w)*w
	}
	return n * (n + 1) / 2
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
	return []family.Arg{
		p.tensor("q", p.Batch, p.Query, p.KVHeads, g),
		p.filled("k"),
		p.filled("v"),
		p.tableArg(),
		p.lengthArg(),
		{Name: "scale", Elem: ir.F32, Float: p.scale(), From0: true, Doc: "factor of the scores, 1/sqrt(head dimension)"},
		{Name: "window", Elem: ir.I32, Int: int64(p.Window), From0: true, Unread: p.Window == 0, Doc: "keys that a query sees at most, its own included"},
		o,
		{Name: "lse", Elem: ir.F32, Out: true, Dims: []int{p.Batch, p.Query, p.KVHeads, g}, Strides: []int{p.Query * p.Heads, p.Heads, g, 1}},
	}
}
