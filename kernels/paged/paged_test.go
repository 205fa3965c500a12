package paged

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/family"
)

// Every page in use belongs to one sequence, and what no sequence holds is NaN.
func TestTableAndCache(t *testing.T) {
	for _, layout := range []string{"nhd", "hnd"} {
		p := &Problem{Heads: 2, pool: pool{Batch: 5, Query: 1, Context: 100, Page: 8, KVHeads: 2, HeadDim: 16, Layout: layout, Ragged: true, Type: "bf16"}}
		d, err := family.NewData(p.Args(), 1)
		require.NoError(t, err)
		owner := map[int32]int{}
		table := p.table()
		numbers, tokens := 0, 0
		for b := range p.Batch {
			n := p.length(b)
			tokens += n
			require.Equal(t, float64(n), d["len"].At(b))
			for i := range p.entries() {
				page := table.page(b, i)
				require.Equal(t, float64(page), d["table"].At(b, i))
				if i >= family.CeilDiv(n, p.Page) {
					require.Equal(t, int32(unused), page)
					continue
				}
				require.Less(t, int(page), p.pages())
				require.NotContains(t, owner, page)
				owner[page] = b
			}
		}
		for _, x := range d["k"].Region(d["k"].Whole()) {
			if !math.IsNaN(x) {
				numbers++
			}
		}
		require.Equal(t, tokens*p.KVHeads*p.HeadDim, numbers)
	}
}

// The order of pages means nothing: with the table and the cache permuted alike, the
// expected values stay.
func TestExpectFollowsTheTable(t *testing.T) {
	p := &Problem{Heads: 2, pool: pool{Batch: 1, Query: 2, Context: 40, Page: 4, KVHeads: 1, HeadDim: 16, Layout: "nhd", Type: "f16"}}
	d, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	pages := func(i int) int32 { return p.table().page(0, i) }
	x := p.row(d, pages, 0, 1, 0, 1)
	i, j := pages(2), pages(7)
	moved := func(n int) int32 {
		switch n {
		case 2:
			return j
		case 7:
			return i
		}
		return pages(n)
	}
	for _, name := range []string{"k", "v"} {
		for slot := range p.Page {
			for c := range p.HeadDim {
				u, v := d[name].At(int(i), slot, 0, c), d[name].At(int(j), slot, 0, c)
				d[name].Set(v, int(i), slot, 0, c)
				d[name].Set(u, int(j), slot, 0, c)
			}
		}
	}
	require.Equal(t, x, p.row(d, moved, 0, 1, 0, 1))
}

// A key left out of 200 shows in both outputs.
func TestTolerancesNoticeADroppedKey(t *testing.T) {
	p := &Problem{Heads: 1, pool: pool{Batch: 1, Query: 1, Context: 200, Page: 16, KVHeads: 1, HeadDim: 64, Layout: "nhd", Type: "bf16"}}
	short := *p
	short.Window = 199
	d, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	for _, out := range []string{"o", "lse"} {
		all, err := p.Expect(d, d[out].Whole())
		require.NoError(t, err)
		some, err := short.Expect(d, d[out].Whole())
		require.NoError(t, err)
		worst := 0.0
		for i := range all.Want {
			worst = max(worst, math.Abs(all.Want[i]-some.Want[i])/all.Tol[i])
		}
		require.Greater(t, worst, 1.0, out)
	}
}

// Regions of rows are boxes over (token, member) that hold each row once.
func TestRegions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		p := &Problem{Heads: 1 + r.IntN(9), pool: pool{Query: 1 + r.IntN(9), KVHeads: 1, HeadDim: 16}}
		lo := r.IntN(p.rows())
		hi := lo + 1 + r.IntN(p.rows()-lo)
		var rows []int
		for _, region := range p.regions(0, 0, lo, hi) {
			if region.Out != "lse" {
				continue
			}
			for token := region.Lo[1]; token < region.Hi[1]; token++ {
				for member := region.Lo[3]; member < region.Hi[3]; member++ {
					rows = append(rows, token*p.group()+member)
				}
			}
		}
		slices.Sort(rows)
		require.Len(t, rows, hi-lo)
		require.Equal(t, lo, rows[0])
		require.Equal(t, hi-1, rows[len(rows)-1])
	}
}

// Of each sequence the last tokens are written, as many as it has; of new tokens the last.
func TestAppendExpectsTheLastTokens(t *testing.T) {
	p := &Append{pool{Batch: 4, Query: 30, Context: 60, Page: 4, KVHeads: 2, HeadDim: 16, Layout: "hnd", Ragged: true, Type: "f16"}}
	d, err := family.NewData(p.Args(), 1)
	require.NoError(t, err)
	e, err := p.Expect(d, d["v"].Whole())
	require.NoError(t, err)
	written, short := 0, 0
	for b := range p.Batch {
		n := p.length(b)
		written += min(n, p.Query) * p.KVHeads * p.HeadDim
		if n == 0 {
			require.Nil(t, p.written(p.table(), b, 29, 0))
			continue
		}
		if n < p.Query {
			short++
			require.Nil(t, p.written(p.table(), b, p.Query-n-1, 1))
		}
		last, err := p.Expect(d, p.written(p.table(), b, p.Query-1, 1)[1])
		require.NoError(t, err)
		require.Equal(t, d["new_v"].At(b, p.Query-1, 1, 7), last.Want[7])
	}
	require.Positive(t, short)
	require.Len(t, slices.DeleteFunc(e.Want, math.IsNaN), written)
}

// The work is that of every query of every sequence, one by one.
func TestWorkCountsEveryQuery(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	for range 500 {
		p := awkward(r)
		p.Query = 1 + r.IntN(400)
		var seen, keys, entries int
		for b := range p.Batch {
			n := p.length(b)
			first := n
			for q := range p.Query {
				lo, hi := p.sees(n, q)
				seen += hi - lo
				if hi > lo {
					first = min(first, lo)
				}
			}
			keys += n - first
			entries += family.CeilDiv(n, p.Page) - first/p.Page
		}
		w, queries := p.Work(), p.Batch*p.Query*p.Heads
		require.EqualValues(t, seen*p.Heads, w.Exp2)
		require.EqualValues(t, 2*p.HeadDim*(2*queries+2*keys*p.KVHeads)+4*queries+4*entries+4*p.Batch, w.Bytes)
	}
}

// Sizes too large for any machine are counted at once.
func TestWorkOfManySequences(t *testing.T) {
	many := pool{Batch: family.MaxSize, Query: family.MaxSize, Context: family.MaxSize, Page: 1, KVHeads: 1, HeadDim: 16, Layout: "nhd", Type: "f16"}
	p, a := &Problem{pool: many, Heads: 1}, &Append{many}
	n := float64(family.MaxSize)
	require.InEpsilon(t, n*n*(n+1)/2, p.Work().Exp2, 1e-12)
	require.InEpsilon(t, n*(4+n*(8*16+4)), a.Work().Bytes, 1e-12)
	require.Equal(t, 1+family.MaxSize*family.MaxSize, p.pages())
}

// The order of pages is a permutation, and its inverse finds whose a page is.
func TestPagesAreFoundByTheirNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := awkwardPool(r)
		table := p.table()
		seen := make([]bool, p.pages())
		for b := range p.Batch {
			for i := range family.CeilDiv(p.length(b), p.Page) {
				page := int(table.page(b, i))
				require.False(t, seen[page])
				seen[page] = true
				owner, entry, ok := table.owner(page)
				require.True(t, ok)
				require.Equal(t, []int{b, i}, []int{owner, entry})
			}
		}
		free := slices.Index(seen, false)
		_, _, ok := table.owner(free)
		require.False(t, ok)
		require.Equal(t, -1, slices.Index(seen[free+1:], false))
	}
}

// Whatever is asked of a cache of hundreds of millions of pages, none of them is listed.
func TestTablesAreNotListed(t *testing.T) {
	p := &Append{pool{Batch: 134_000_000, Query: 1, Context: 1, Page: 1, KVHeads: 1, HeadDim: 16, Layout: "nhd", Type: "bf16"}}
	require.Less(t, testing.AllocsPerRun(1, func() {
		table := family.Integers(p.Args())[2]
		page, ok := table(133_999_999)
		require.True(t, ok)
		b, _, _ := p.table().owner(int(page))
		require.Equal(t, 133_999_999, b)
		_, ok = table(134_000_000)
		require.False(t, ok)
	}), 1000.0)
}
