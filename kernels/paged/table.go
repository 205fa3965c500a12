package paged

import (
	"math"
	"math/bits"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

// unused is what the block table holds past a sequence's length: no page's number.
const unused = math.MaxInt32

// blockTable says which pages each sequence has: the pages that the sequences take one
// after the other, in an order in which neighbours are not neighbours in memory. Entries
// are computed when asked for, as there may be as many as sequences.
type blockTable struct {
	*pool
	first []int // by sequence, how many pages those before have; nil where all have as many
	order shuffle
}

func (p *pool) table() *blockTable {
	t := &blockTable{pool: p, order: shuffleOf(p.pages(), hash(uint64(p.Batch)<<32^uint64(p.Context)))}
	if p.Ragged {
		n := 0
		for b := range p.Batch {
			t.first = append(t.first, n)
			n += family.CeilDiv(p.length(b), p.Page)
		}
	}
	return t
}

// before is how many pages the sequences before one have.
func (t *blockTable) before(b int) int {
	if t.first == nil {
		return b * t.entries()
	}
	return t.first[b]
}

// page is an entry of a sequence's row.
func (t *blockTable) page(b, i int) int32 {
	if i >= family.CeilDiv(t.length(b), t.Page) {
		return unused
	}
	return int32(t.order.at(t.before(b) + i))
}

// owner is the entry that lists a page; ok is false of one that is of no sequence.
func (t *blockTable) owner(page int) (b, i int, ok bool) {
	n := t.order.inverse(page)
	if n >= t.order.n-1 { // there is one more page than are in use
		return 0, 0, false
	}
	if t.first == nil {
		return n / t.entries(), n % t.entries(), true
	}
	// The last that begins at or before it: sequences without pages begin where the next does.
	next, _ := slices.BinarySearch(t.first, n+1)
	return next - 1, n - t.first[next-1], true
}

// tableArg is the block table [sequence, entry].
func (p *pool) tableArg() family.Arg {
	t := p.table()
	return family.Arg{Name: "table", Elem: ir.I32, Dims: []int{p.Batch, p.entries()}, Strides: []int{p.entries(), 1}, Integer: func(i int) int64 {
		return int64(t.page(i/p.entries(), i%p.entries()))
	}}
}

// lengthArg is the lengths of the sequences.
func (p *pool) lengthArg() family.Arg {
	most := ir.Sym("E").Times(ir.Lit(int64(p.Page)))
	return family.Arg{Name: "len", Elem: ir.I32, Dims: []int{p.Batch}, Strides: []int{1}, Most: &most, Integer: func(i int) int64 { return int64(p.length(i)) }}
}

// shuffle is a permutation of the numbers below n that is computed number by number, as
// is its inverse: a Feistel network over the next even number of bits, applied again
// where it leads outside.
type shuffle struct {
	n    int
	half int // bits
	key  uint64
}

func shuffleOf(n int, key uint64) shuffle {
	return shuffle{n: n, half: (bits.Len(uint(n-1)) + 1) / 2, key: key}
}

const shuffleRounds = 4

// round is a round's function of half a number.
func (s shuffle) round(r, x int) int {
	return int(hash(s.key+uint64(r)<<32+uint64(x)) >> 32 & (1<<s.half - 1))
}

func (s shuffle) at(x int) int {
	for {
		l, r := x>>s.half, x&(1<<s.half-1)
		for i := range shuffleRounds {
			l, r = r, l^s.round(i, r)
		}
		if x = l<<s.half | r; x < s.n {
			return x
		}
	}
}

func (s shuffle) inverse(x int) int {
	for {
		l, r := x>>s.half, x&(1<<s.half-1)
		for i := shuffleRounds - 1; i >= 0; i-- {
			l, r = r^s.round(i, l), l
		}
		if x = l<<s.half | r; x < s.n {
			return x
		}
	}
}
