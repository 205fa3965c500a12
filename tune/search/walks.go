package search

import (
	"math"
	"math/rand/v2"
	"slices"
)

// cost is a result as a number to compare: failures come after everything.
func cost(r Result) float64 {
	if !r.OK {
		return math.Inf(1)
	}
	return r.Time
}

// neighbour draws a valid neighbour that differs in one dimension, half of the time by
// one step. ok is false if it has none.
func neighbour(d Domain, r *rand.Rand, p Point) (Point, bool) {
	var found Point
	n := 0
	for _, adjacent := range []bool{r.IntN(2) == 0, false} {
		neighbours(d, p, adjacent, func(q Point) bool {
			if n++; r.IntN(n) == 0 {
				found = slices.Clone(q)
			}
			return true
		})
		if found != nil {
			return found, true
		}
	}
	return nil, false
}

// annealing walks from neighbour to neighbour. It accepts a loss with a chance that falls
// with the loss, relative to the time, and with the share of the budget that is spent.
type annealing struct {
	domain Domain
	rand   *rand.Rand
	budget int
	done   int
	at     Point // nil: a new start
	time   float64
}

// The temperature, as a relative loss, falls from hot to cold.
const hot, cold = 0.5, 0.005

func newAnnealing(d Domain, o Options) Strategy {
	return &annealing{domain: d, rand: rand.New(rand.NewPCG(o.Seed, 3)), budget: o.Budget}
}

func (a *annealing) Propose() (Point, bool) {
	if a.at != nil {
		if p, ok := neighbour(a.domain, a.rand, a.at); ok {
			return p, true
		}
	}
	return a.domain.Sample(a.rand)
}

func (a *annealing) Observe(p Point, r Result) {
	a.done++
	spent := min(1, float64(a.done)/float64(a.budget))
	temperature := hot * math.Pow(cold/hot, spent)
	if c := cost(r); a.at == nil || c <= a.time || a.rand.Float64() < math.Exp((1-c/a.time)/temperature) {
		if r.OK {
			a.at, a.time = slices.Clone(p), c
		}
	}
}

// local descends: it looks at the neighbours of a point in random order, goes to the
// first better one, and starts anew at a random point once none is.
type local struct {
	domain Domain
	rand   *rand.Rand
	at     Point
	time   float64
	queue  []Point // neighbours of at that were not looked at
}

func newLocal(d Domain, o Options) Strategy {
	return &local{domain: d, rand: rand.New(rand.NewPCG(o.Seed, 4))}
}

func (l *local) Propose() (Point, bool) {
	if len(l.queue) > 0 {
		p := l.queue[0]
		l.queue = l.queue[1:]
		return p, true
	}
	l.at = nil
	return l.domain.Sample(l.rand)
}

func (l *local) Observe(p Point, r Result) {
	c := cost(r)
	if l.at != nil && c >= l.time || !r.OK {
		return
	}
	l.at, l.time, l.queue = slices.Clone(p), c, nil
	neighbours(l.domain, p, false, func(q Point) bool {
		l.queue = append(l.queue, slices.Clone(q))
		return true
	})
	l.rand.Shuffle(len(l.queue), func(i, j int) { l.queue[i], l.queue[j] = l.queue[j], l.queue[i] })
}
