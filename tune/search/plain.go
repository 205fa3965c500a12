package search

import "math/rand/v2"

// exhaustive proposes every point in the domain's order.
type exhaustive struct {
	domain Domain
	last   Point
}

func newExhaustive(d Domain, _ Options) Strategy { return &exhaustive{domain: d} }

func (e *exhaustive) Propose() (Point, bool) {
	p, ok := e.domain.Next(e.last)
	if ok {
		e.last = p
	}
	return p, ok
}

func (e *exhaustive) Observe(Point, Result) {}

// random draws points without replacement. When draws repeat too often it walks what is
// left in the domain's order.
type random struct {
	domain Domain
	rand   *rand.Rand
	keys   keys
	drawn  map[string]bool
	rest   *exhaustive
}

func newRandom(d Domain, o Options) Strategy { return newDraws(d, o.Seed) }

func newDraws(d Domain, seed uint64) *random {
	return &random{domain: d, rand: rand.New(rand.NewPCG(seed, 1)), keys: newKeys(d.Dims()), drawn: map[string]bool{}}
}

func (r *random) Propose() (Point, bool) {
	for range stale {
		if r.rest != nil {
			break
		}
		if p, ok := r.domain.Sample(r.rand); ok && r.keys.take(r.drawn, p) {
			return p, true
		}
	}
	if r.rest == nil {
		r.rest = &exhaustive{domain: r.domain}
	}
	for {
		p, ok := r.rest.Propose()
		if !ok || r.keys.take(r.drawn, p) {
			return p, ok
		}
	}
}

func (r *random) Observe(p Point, _ Result) { r.drawn[r.keys.of(p)] = true }
