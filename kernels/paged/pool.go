package paged

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

// pool is a batch of sequences whose keys and values lie in the pages of a cache.
type pool struct {
	Batch   int // sequences
	Query   int // last tokens of each, whose queries are asked or whose keys are new
	Context int // longest length a sequence may have
	Page    int // tokens of a page, a power of two
	KVHeads int
	HeadDim int
	Layout  string // of the cache: nhd [page, token, head, dim] or hnd [page, head, token, dim]
	Ragged  bool   // lengths differ, from 0 to Context; else all are Context
	Type    string // of the tensors: bf16 or f16

	Pad int // elements between the rows of the tensors, those of the table left out
}

// maxPage is the largest page, in tokens.
const maxPage = 256

// maxRagged is the largest batch of sequences whose lengths differ, since whatever is said
// of all of them looks at each.
const maxRagged = 1 << 20

// Flags that both families have.
var (
	pageFlag    = family.Flag{Name: "page", Default: "16", Min: 1, Max: maxPage, Doc: "tokens of a page, a power of two"}
	headDimFlag = family.Flag{Name: "head-dim", Default: "128", Min: 16, Max: 256, Multiple: 16, Doc: "elements of a head"}
	layoutFlag  = family.OneOf("layout", "cache layout: nhd [page, token, head, dim] or hnd [page, head, token, dim]", family.Option{Name: "nhd"}, family.Option{Name: "hnd"})
	raggedFlag  = family.Switch("ragged", false, "lengths differ, from 0 to the context")
	typeFlag    = family.OneOf("dtype", "type of the tensors", family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"})
)

func parsePool(v family.Values) (*pool, error) {
	p := &pool{
		Batch: v.Int("batch"), Query: v.Int("query"), Context: v.Int("context"), Page: v.Int("page"),
		KVHeads: v.Int("kv-heads"), HeadDim: v.Int("head-dim"), Layout: v.Choice("layout"), Ragged: v.Bool("ragged"), Type: v.Choice("dtype"),
	}
	if bits.OnesCount(uint(p.Page)) != 1 {
		return nil, fmt.Errorf("--page %d: want a power of two from 1 to %d", p.Page, maxPage)
	}
	if p.Ragged && p.Batch > maxRagged {
		return nil, fmt.Errorf("--batch %d: want 1 to %d where lengths differ", p.Batch, maxRagged)
	}
	return p, nil
}

func awkwardPool(r *rand.Rand) pool {
	p := pool{
		Batch: 1 + r.IntN(3), Query: 1, Context: 1 + r.IntN(300), Page: 1 << r.IntN(9), KVHeads: 1 + r.IntN(2), HeadDim: 16 * (1 + r.IntN(6)),
		Layout: []string{"nhd", "hnd"}[r.IntN(2)], Ragged: r.IntN(4) > 0, Type: []string{"bf16", "f16"}[r.IntN(2)],
		Pad: []int{0, 0, 0, 8, 3}[r.IntN(5)],
	}
	if r.IntN(3) == 0 {
		p.Query = 1 + r.IntN(20)
	}
	if r.IntN(6) == 0 {
		p.HeadDim = 128 + 16*r.IntN(9)
	}
	return p
}

// padding is the setting that no flag sets.
func (p *pool) padding() family.Settings {
	if p.Pad == 0 {
		return nil
	}
	return family.Settings{{Name: "pad", Value: strconv.Itoa(p.Pad)}}
}

func (p *pool) elem() ir.Elem {
	if p.Type == "f16" {
		return ir.F16
	}
	return ir.BF16
}

func (p *pool) math() target.Math {
	if p.Type == "f16" {
		return target.F16Acc32
	}
	return target.BF16
}

// length is how long a sequence is. Ragged lengths come from a hash of its number, the
// second sequence's is 0.
func (p *pool) length(b int) int {
	switch {
	case !p.Ragged:
		return p.Context
	case b == 1:
		return 0
	}
	return int(hash(uint64(b)) % uint64(p.Context+1))
}

// lengths are those of all sequences, each with how many sequences in a row have it.
func (p *pool) lengths() iter.Seq2[int, int] {
	return func(yield func(n, sequences int) bool) {
		if !p.Ragged {
			yield(p.Context, p.Batch)
			return
		}
		for b := range p.Batch {
			if !yield(p.length(b), 1) {
				return
			}
		}
	}
}

// hash is the finaliser of MurmurHash3.
func hash(x uint64) uint64 {
	x++
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// entries is the length of a row of the block table.
func (p *pool) entries() int { return family.CeilDiv(p.Context, p.Page) }

// pages is how many pages the cache has: those in use, and one that is not.
func (p *pool) pages() int {
	total := 1
	for n, sequences := range p.lengths() {
		total += sequences * family.CeilDiv(n, p.Page)
	}
	return total
}

// cache describes the keys or the values.
func (p *pool) cache(name string) family.Arg {
	if p.Layout == "hnd" {
		return p.tensor(name, p.pages(), p.KVHeads, p.Page)
	}
	return p.tensor(name, p.pages(), p.Page, p.KVHeads)
}

// filled is the keys or values of all sequences. Tokens past the end of a sequence's
// last page and pages of no sequence hold NaN.
func (p *pool) filled(name string) family.Arg {
	a := p.cache(name)
	a.Fill = func(t *family.Tensor) {
		table := p.table()
		for page := range p.pages() {
			n := 0 // tokens of the page
			if b, i, ok := table.owner(page); ok {
				n = min(p.length(b)-i*p.Page, p.Page)
			}
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
func (p *pool) at(page, slot, head, j int) []int {
	if p.Layout == "hnd" {
		return []int{page, head, slot, j}
	}
	return []int{page, slot, head, j}
}

// tensor describes [dims..., head dimension].
func (p *pool) tensor(name string, dims ...int) family.Arg {
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
