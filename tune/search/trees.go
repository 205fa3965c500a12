package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// trees is a random forest over points: regression trees, each grown on a bootstrap draw
// and choosing each split among a third of the dimensions.
type trees struct {
	dims []Dim
	rand *rand.Rand
	all  []*branch
}

// branch is a node: a leaf has no sides.
type branch struct {
	dim, at   int // less has the points whose index is below at; for names, equal to it
	named     bool
	less, not *branch
	value     float64
}

// Settings of the forest.
const (
	treeCount = 16
	leafSize  = 2
)

// grow fits the forest to values of points.
func grow(dims []Dim, r *rand.Rand, points []Point, values []float64) *trees {
	t := &trees{dims: dims, rand: r}
	for range treeCount {
		draw := make([]int, len(points))
		for i := range draw {
			draw[i] = r.IntN(len(points))
		}
		t.all = append(t.all, t.split(points, values, draw))
	}
	return t
}

// split grows the node of the points in draw.
func (t *trees) split(points []Point, values []float64, draw []int) *branch {
	sum := 0.0
	for _, i := range draw {
		sum += values[i]
	}
	b := &branch{value: sum / float64(len(draw))}
	if len(draw) < 2*leafSize {
		return b
	}
	gain := 1e-12
	for _, d := range t.rand.Perm(len(t.dims))[:(len(t.dims)+2)/3] {
		named := t.dims[d].Values == nil
		at := points[draw[t.rand.IntN(len(draw))]][d]
		if g := explained(points, values, draw, d, at, named); g > gain {
			gain, b.dim, b.at, b.named = g, d, at, named
		}
	}
	if gain == 1e-12 {
		return b
	}
	n := 0 // of those that go left, moved to the front
	for i, x := range draw {
		if goesLeft(points[x][b.dim], b.at, b.named) {
			draw[i], draw[n] = draw[n], draw[i]
			n++
		}
	}
	b.less, b.not = t.split(points, values, draw[:n]), t.split(points, values, draw[n:])
	return b
}

// explained is the sum of squares that a split takes away; 0 if a side is too small.
func explained(points []Point, values []float64, draw []int, dim, at int, named bool) float64 {
	var sum, count [2]float64
	for _, i := range draw {
		side := 0
		if goesLeft(points[i][dim], at, named) {
			side = 1
		}
		sum[side] += values[i]
		count[side]++
	}
	if min(count[0], count[1]) < leafSize {
		return 0
	}
	d := sum[0]/count[0] - sum[1]/count[1]
	return count[0] * count[1] / (count[0] + count[1]) * d * d
}

func goesLeft(index, at int, named bool) bool {
	if named {
		return index == at
	}
	return index < at
}

// predict returns the mean of the trees and their standard deviation.
func (t *trees) predict(p Point) (mean, deviation float64) {
	sum, squares := 0.0, 0.0
	for _, b := range t.all {
		for b.less != nil {
			if goesLeft(p[b.dim], b.at, b.named) {
				b = b.less
			} else {
				b = b.not
			}
		}
		sum += b.value
		squares += b.value * b.value
	}
	n := float64(len(t.all))
	mean = sum / n
	return mean, math.Sqrt(max(squares/n-mean*mean, 0))
}

// forest proposes, of sampled candidates and neighbours of the best, the one that a
// random forest expects the greatest improvement of. With a cost model (model-first) it
// learns how far the model is off instead of the time, and ranks by the two together, a
// few proposals for each fit.
type forest struct {
	domain Domain
	rand   *rand.Rand
	keys   keys
	spare  *random
	model  func(Point) float64 // nil: none
	first  int                 // points before the first fit
	batch  int                 // proposals of a fit

	taken  map[string]bool
	points []Point
	times  []float64 // logarithms
	failed []Point
	queue  []Point
}

func newForest(d Domain, o Options) Strategy { return makeForest(d, o, nil, 16, 2) }

func newModelFirst(d Domain, o Options) Strategy {
	first := 16
	if o.Model != nil {
		first = 0
	}
	return makeForest(d, o, o.Model, first, 4)
}

func makeForest(d Domain, o Options, model func(Point) float64, first, batch int) *forest {
	return &forest{
		domain: d, rand: rand.New(rand.NewPCG(o.Seed, 6)), keys: newKeys(d.Dims()), spare: newDraws(d, o.Seed),
		model: model, first: first, batch: batch, taken: map[string]bool{},
	}
}

// forestCandidates is how many sampled points a fit ranks, forestElite how many of the
// best points give their neighbours.
const forestCandidates, forestElite = 300, 4

func (f *forest) Propose() (Point, bool) {
	if len(f.queue) == 0 && len(f.taken) >= f.first {
		f.queue = f.rank()
	}
	for len(f.queue) > 0 {
		p := f.queue[0]
		f.queue = f.queue[1:]
		if f.keys.take(f.taken, p) {
			return p, true
		}
	}
	for {
		p, ok := f.spare.Propose()
		if !ok || f.keys.take(f.taken, p) {
			return p, ok
		}
	}
}

func (f *forest) Observe(p Point, r Result) {
	f.taken[f.keys.of(p)] = true
	if !r.OK {
		f.failed = append(f.failed, slices.Clone(p))
		return
	}
	f.points = append(f.points, slices.Clone(p))
	f.times = append(f.times, math.Log(r.Time))
}

// expected is the model's logarithm of the time, or 0 without one.
func (f *forest) expected(p Point) float64 {
	if f.model == nil {
		return 0
	}
	return math.Log(f.model(p))
}

// rank returns the most promising candidates, best first.
func (f *forest) rank() []Point {
	var fit, fails *trees
	best := math.Inf(1)
	if len(f.points) >= 2*leafSize {
		off := make([]float64, len(f.times))
		for i, p := range f.points {
			off[i] = f.times[i] - f.expected(p)
			best = min(best, f.times[i])
		}
		fit = grow(f.domain.Dims(), f.rand, f.points, off)
	}
	if len(f.failed) > 0 && len(f.points) > 0 {
		fails = grow(f.domain.Dims(), f.rand, slices.Concat(f.points, f.failed),
			slices.Concat(make([]float64, len(f.points)), slices.Repeat([]float64{1}, len(f.failed))))
	}
	type scored struct {
		point Point
		score float64
	}
	var all []scored
	for _, p := range f.candidates() {
		s := scored{p, -f.expected(p)}
		if fit != nil {
			m, d := fit.predict(p)
			m, d = m+f.expected(p), max(d, 1e-6)
			s.score = math.Log(d) + logImprovement((best-m)/d)
		}
		if fails != nil {
			m, _ := fails.predict(p)
			s.score += math.Log(1.01 - min(m, 1))
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []Point
	for _, s := range all[:min(f.batch, len(all))] {
		out = append(out, s.point)
	}
	return out
}

// candidates are sampled points and neighbours of the best, none of them taken.
func (f *forest) candidates() []Point {
	in := map[string]bool{}
	var out []Point
	offer := func(p Point) bool {
		if key := f.keys.of(p); !in[key] && !f.taken[key] {
			in[key] = true
			out = append(out, slices.Clone(p))
		}
		return true
	}
	for range forestCandidates {
		if p, ok := f.domain.Sample(f.rand); ok {
			offer(p)
		}
	}
	order := make([]int, len(f.times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.times[a], f.times[b]) })
	for _, i := range order[:min(forestElite, len(order))] {
		neighbours(f.domain, f.points[i], false, offer)
	}
	return out
}
