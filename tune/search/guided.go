package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// The default strategy's settings. They were chosen for being plain, on spaces of one
// kernel each that differ in size, smoothness and failures, and none is tied to a space.
const (
	mostPoints   = 512  // that the model is asked about: its work grows with their square
	firstPoints  = 12   // spread over the space before the first model
	mostPool     = 600  // candidates that are scored for each proposal
	keptPool     = 200  // of these, the most promising that outlive a new fit
	eliteSize    = 3    // the best points, whose neighbours are always candidates
	climbs       = 3    // steps uphill from the best candidate to its neighbours
	fitSteps     = 20   // parameters tried in a fit
	fitPoints    = 90   // points a fit looks at
	opinionEvery = 4    // proposals of which the last comes from the forest
	fitGrowth    = 0.15 // more points, relatively, before the next fit
)

// prior is what is believed of a process' parameters before any result: normal
// distributions, the lengths' standard deviation being 1.
var prior = struct{ length, noise, noiseSD, sum float64 }{length: 1.5, noise: -8, noiseSD: 1.5, sum: 0.3}

// guided is the default strategy. It spreads a few points, then models the logarithm of
// the time by a Gaussian process and proposes the candidate that promises the greatest
// improvement. Candidates are random points, the neighbours of the best points, and
// what a climb from the best candidate meets. Failures are no times: they lower what
// candidates like them promise by how likely these fail too.
type guided struct {
	domain Domain
	budget int
	rand   *rand.Rand
	keys   keys
	spare  *random // once no candidate is left

	taken  map[string]bool // proposed or observed
	known  map[string]bool // observed
	points []Point         // of those that have a time
	at     []place
	times  []float64 // logarithms
	failed []place

	trees *forest // a second opinion
	turns int     // proposals since the first points
	model *process
	fitAt int // how many times there must be for the next fit
	pool  []*candidate
	in    map[string]bool // keys of the pool
}

// candidate is a point with what the model says about it.
type candidate struct {
	point Point
	key   string
	at    place

	solved []float64 // the model's solution for its covariances
	square float64   // of solved: the share of the variance that is explained
	good   float64   // covariances with points that have a time
	bad    float64   // and with the first few failed ones
	failed int       // how many those are
	score  float64
}

func newGuided(d Domain, o Options) Strategy {
	g := &guided{
		domain: d, budget: o.Budget, rand: rand.New(rand.NewPCG(o.Seed, 2)), keys: newKeys(d.Dims()), spare: newDraws(d, o.Seed),
		taken: map[string]bool{}, known: map[string]bool{}, in: map[string]bool{}, model: newProcess(d.Dims()), fitAt: firstPoints,
	}
	t := theta{noise: prior.noise, sum: prior.sum}
	for range g.model.axes {
		t.length = append(t.length, prior.length)
	}
	g.model.set(t)
	g.fill()
	g.trees = makeForest(d, o, nil, 0, 1)
	return g
}

func (g *guided) Observe(p Point, r Result) {
	key := g.keys.of(p)
	if g.known[key] {
		return
	}
	g.known[key], g.taken[key] = true, true
	g.trees.Observe(p, r)
	if !r.OK {
		g.failed = append(g.failed, g.model.place(p))
		return
	}
	g.points = append(g.points, slices.Clone(p))
	g.at = append(g.at, g.model.place(p))
	g.times = append(g.times, math.Log(r.Time))
}

func (g *guided) Propose() (Point, bool) {
	if len(g.times) >= mostPoints {
		return g.leftover()
	}
	g.dropTaken()
	var c *candidate
	if len(g.taken) < firstPoints || len(g.times) < 3 {
		c = g.farthest()
	} else {
		if g.turns++; g.turns%opinionEvery == 0 {
			return g.opinion()
		}
		c = g.promising()
	}
	if c == nil {
		return g.leftover()
	}
	g.taken[c.key] = true
	g.trees.taken[c.key] = true
	return slices.Clone(c.point), true
}

// opinion is what the forest proposes.
func (g *guided) opinion() (Point, bool) {
	p, ok := g.trees.Propose()
	if ok {
		g.taken[g.keys.of(p)] = true
	}
	return p, ok
}

// leftover is any point that was not taken.
func (g *guided) leftover() (Point, bool) {
	for {
		p, ok := g.spare.Propose()
		if !ok {
			return nil, false
		}
		if key := g.keys.of(p); !g.taken[key] {
			g.taken[key], g.trees.taken[key] = true, true
			return p, true
		}
	}
}

// fill tops the pool up with random points.
func (g *guided) fill() {
	for n := 0; n < 2*mostPool && len(g.pool) < mostPool; n++ {
		if p, ok := g.domain.Sample(g.rand); ok {
			g.offer(p)
		}
	}
}

// offer puts a point into the pool, or returns nil if it is there or taken.
func (g *guided) offer(p Point) *candidate {
	key := g.keys.of(p)
	if g.taken[key] || g.in[key] {
		return nil
	}
	g.in[key] = true
	c := &candidate{point: slices.Clone(p), key: key, at: g.model.place(p)}
	g.pool = append(g.pool, c)
	return c
}

func (g *guided) dropTaken() {
	g.pool = slices.DeleteFunc(g.pool, func(c *candidate) bool {
		if g.taken[c.key] {
			delete(g.in, c.key)
			return true
		}
		return false
	})
}

// farthest is of a few candidates the one whose nearest point is farthest away.
func (g *guided) farthest() *candidate {
	var best *candidate
	far := -1.0
	for range min(16, len(g.pool)) {
		c := g.pool[g.rand.IntN(len(g.pool))]
		near := math.Inf(1)
		for _, p := range g.at {
			near = min(near, g.distance(c.at, p))
		}
		for _, p := range g.failed {
			near = min(near, g.distance(c.at, p))
		}
		if near > far {
			best, far = c, near
		}
	}
	return best
}

// distance counts the axes in which two places differ, near values half.
func (g *guided) distance(a, b place) float64 {
	sum := 0.0
	for k, x := range g.model.axes {
		if i, j := int(a.index[k]), int(b.index[k]); i != j {
			sum += 0.5 + 0.5*x.apart(i-j)
		}
	}
	return sum
}

// promising is the candidate with the highest score.
func (g *guided) promising() *candidate {
	refit := len(g.times) >= g.fitAt
	if refit {
		g.refit()
	}
	for n := len(g.model.points); n < len(g.at); n++ {
		g.model.add(g.at[n])
	}
	for _, i := range g.elite() {
		neighbours(g.domain, g.points[i], false, func(p Point) bool { g.offer(p); return true })
	}
	score := g.scorer()
	var top *candidate
	for _, c := range g.pool {
		score(c)
		if top == nil || c.score > top.score {
			top = c
		}
	}
	if top != nil {
		top = g.climb(top, score)
	}
	if refit {
		g.renew()
	}
	return top
}

// climb goes from a candidate to its best neighbour while that scores higher.
func (g *guided) climb(top *candidate, score func(*candidate)) *candidate {
	for range climbs {
		next := top
		neighbours(g.domain, top.point, true, func(p Point) bool {
			if c := g.offer(p); c != nil {
				score(c)
				if c.score > next.score {
					next = c
				}
			}
			return true
		})
		if next == top {
			break
		}
		top = next
	}
	return top
}

// renew keeps the most promising candidates and draws others anew, so that in time all
// of the space is looked at.
func (g *guided) renew() {
	slices.SortStableFunc(g.pool, func(a, b *candidate) int { return cmp.Compare(b.score, a.score) })
	n := min(keptPool, len(g.pool))
	for _, c := range g.pool[n:] {
		delete(g.in, c.key)
	}
	clear(g.pool[n:])
	g.pool = g.pool[:n]
	g.fill()
}

// elite are the indices of the best points.
func (g *guided) elite() []int {
	return g.ranked()[:min(eliteSize, len(g.times))]
}

// ranked are the indices of the points, best first.
func (g *guided) ranked() []int {
	order := make([]int, len(g.times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.times[a], g.times[b]) })
	return order
}

// scorer returns what sets a candidate's score: the logarithm of the improvement that the
// model expects of it, times the odds that it does not fail.
func (g *guided) scorer() func(*candidate) {
	best := slices.Min(g.times)
	mean, variance, z := g.model.trend(g.times)
	deviation := math.Sqrt(variance)
	return func(c *candidate) {
		g.extend(c)
		m := mean + floats.Dot(c.solved, z)
		s := deviation * math.Sqrt(max(1-c.square, 1e-9))
		c.score = math.Log(s) + logImprovement((best-m)/s)
		if len(g.failed) > 0 {
			c.score += math.Log(c.good / (c.good + c.bad))
		}
	}
}

// extend brings what a candidate knows of the model up to its points.
func (g *guided) extend(c *candidate) {
	if c.solved == nil {
		c.solved = make([]float64, 0, g.budget)
	}
	m := g.model
	n := len(c.solved)
	if n == 0 {
		c.square, c.good, c.bad, c.failed = 0, 0.5, 0.02, 0
	}
	for ; n < len(m.points); n++ {
		row := m.rows[n]
		k := m.covariance(m.points[n], c.at)
		x := (k - floats.Dot(c.solved, row[:n])) / row[n]
		c.solved = append(c.solved, x)
		c.square += x * x
		c.good += k
	}
	for ; c.failed < len(g.failed); c.failed++ {
		c.bad += m.covariance(g.failed[c.failed], c.at)
	}
}

// logImprovement is the logarithm of the expected improvement, in standard deviations,
// over a value that lies u of them above the mean.
func logImprovement(u float64) float64 {
	if u < -5 { // the first term of its asymptotic series
		return -u*u/2 - 2*math.Log(-u) - 0.5*math.Log(2*math.Pi)
	}
	return math.Log(u*0.5*math.Erfc(-u/math.Sqrt2) + math.Exp(-u*u/2)/math.Sqrt(2*math.Pi))
}

// refit looks for likelier parameters and starts the model again with them.
func (g *guided) refit() {
	points, times := g.evidence()
	work := newProcess(g.domain.Dims())
	posterior := func(t theta) float64 {
		work.set(t)
		for _, p := range points {
			work.add(p)
		}
		l := work.likelihood(times)
		for _, v := range t.length {
			l -= 0.5 * (v - prior.length) * (v - prior.length)
		}
		off := (t.noise - prior.noise) / prior.noiseSD
		return l - 0.5*off*off
	}
	best := g.model.theta.clone()
	most := posterior(best)
	for range fitSteps {
		t := g.step(best)
		if l := posterior(t); l > most {
			best, most = t, l
		}
	}
	g.model.set(best)
	for _, c := range g.pool {
		c.solved = c.solved[:0]
	}
	g.fitAt = len(g.times) + 1 + int(fitGrowth*float64(len(g.times)))
}

// step changes one parameter at random.
func (g *guided) step(t theta) theta {
	t = t.clone()
	switch k := g.rand.IntN(len(t.length) + 2); {
	case k < len(t.length):
		t.length[k] += g.rand.NormFloat64()
	case k == len(t.length):
		t.noise += g.rand.NormFloat64()
	default:
		t.sum = min(max(t.sum+0.25*g.rand.NormFloat64(), 0), 0.95)
	}
	return t
}

// evidence is what a fit looks at: all points, or of many the best and a draw of the rest.
func (g *guided) evidence() (points []place, times []float64) {
	order := g.ranked()
	if len(order) > fitPoints {
		rest := order[fitPoints/2:]
		g.rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		order = order[:fitPoints]
		slices.Sort(order)
	}
	for _, i := range order {
		points = append(points, g.at[i])
		times = append(times, g.times[i])
	}
	return points, times
}
