package search

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// genetic breeds a population: two parents, each the better of two drawn, give a child
// that has each index from either, changed here and there and repaired by a valid
// neighbour. A child takes the worst one's place if it is better.
type genetic struct {
	domain Domain
	rand   *rand.Rand
	size   int
	herd   []member // best first
}

type member struct {
	point Point
	cost  float64
}

// mutation is the chance for each dimension that a child has a random index.
const mutation = 0.1

func newGenetic(d Domain, o Options) Strategy {
	return &genetic{domain: d, rand: rand.New(rand.NewPCG(o.Seed, 5)), size: min(20, max(4, o.Budget/5))}
}

func (g *genetic) Propose() (Point, bool) {
	if len(g.herd) < g.size {
		return g.domain.Sample(g.rand)
	}
	dims := g.domain.Dims()
	for range 50 {
		a, b := g.parent(), g.parent()
		child := slices.Clone(a)
		for i := range child {
			if g.rand.IntN(2) == 0 {
				child[i] = b[i]
			}
			if g.rand.Float64() < mutation {
				child[i] = g.rand.IntN(dims[i].Len)
			}
		}
		if g.domain.Valid(child) && !slices.Equal(child, a) && !slices.Equal(child, b) {
			return child, true
		}
		if p, ok := neighbour(g.domain, g.rand, child); ok {
			return p, true
		}
	}
	return g.domain.Sample(g.rand)
}

func (g *genetic) parent() Point {
	return g.herd[min(g.rand.IntN(len(g.herd)), g.rand.IntN(len(g.herd)))].point
}

func (g *genetic) Observe(p Point, r Result) {
	if slices.ContainsFunc(g.herd, func(m member) bool { return slices.Equal(m.point, p) }) {
		return
	}
	g.herd = append(g.herd, member{slices.Clone(p), cost(r)})
	slices.SortStableFunc(g.herd, func(a, b member) int { return cmp.Compare(a.cost, b.cost) })
	g.herd = g.herd[:min(g.size, len(g.herd))]
}
