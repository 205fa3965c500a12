package search_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/tune/search"
)

// drawDomain is a random domain: up to five dimensions, some of names, with holes.
func drawDomain(t *rapid.T) *search.Listed {
	var dims []search.Dim
	n := rapid.IntRange(1, 5).Draw(t, "dims")
	for range n {
		d := search.Dim{Name: "x", Len: rapid.IntRange(1, 6).Draw(t, "values")}
		if rapid.Bool().Draw(t, "numbers") {
			for v := range d.Len {
				d.Values = append(d.Values, float64(v))
			}
		}
		dims = append(dims, d)
	}
	var points []search.Point
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "holes"), 0))
	for p := make(search.Point, n); p != nil; p = following(dims, p) {
		if len(points) == 0 || r.IntN(3) > 0 {
			points = append(points, append(search.Point(nil), p...))
		}
	}
	l, err := search.NewListed(dims, points)
	require.NoError(t, err)
	return l
}

// following is the next point of the whole product, nil after the last.
func following(dims []search.Dim, p search.Point) search.Point {
	q := append(search.Point(nil), p...)
	for i := len(q) - 1; i >= 0; i-- {
		if q[i]++; q[i] < dims[i].Len {
			return q
		}
		q[i] = 0
	}
	return nil
}

// landscape gives every point a time, or lets it fail.
func landscape(seed uint64) func(search.Point) (search.Result, error) {
	return func(p search.Point) (search.Result, error) {
		h := seed
		sum := 1.0
		for _, i := range p {
			h = h*6364136223846793005 + uint64(i) + 1
			sum += float64(i)
		}
		h ^= h >> 29
		return search.Result{OK: h%5 != 0, Time: sum + float64(h%100)/50}, nil
	}
}

// Whatever the space and its failures, every strategy tries valid points, none twice,
// as many as the budget or the space has, and the same ones again for a seed.
func TestStrategiesOnRandomSpaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDomain(t)
		size := 0
		for p, ok := d.Next(nil); ok; p, ok = d.Next(p) {
			size++
		}
		name := rapid.SampledFrom(search.Names()).Draw(t, "strategy")
		o := search.Options{Seed: rapid.Uint64().Draw(t, "seed"), Budget: rapid.IntRange(1, 60).Draw(t, "budget")}
		evaluate := landscape(o.Seed)
		var runs [2][]search.Step
		for i := range runs {
			s, err := search.New(name, d, o)
			require.NoError(t, err)
			runs[i], err = search.Run(context.Background(), d, s, o, evaluate)
			require.NoError(t, err)
		}
		require.Equal(t, runs[0], runs[1])
		require.Len(t, runs[0], min(size, o.Budget))
		seen := map[int]bool{}
		for _, step := range runs[0] {
			i, ok := d.Index(step.Point)
			require.True(t, ok)
			require.False(t, seen[i])
			seen[i] = true
		}
	})
}

// Several proposals may be under way at once, and none is made twice then either.
func TestProposalsUnderWay(t *testing.T) {
	dims := []search.Dim{{Name: "a", Len: 20}, {Name: "b", Len: 20}}
	var points []search.Point
	for p := (search.Point{0, 0}); p != nil; p = following(dims, p) {
		points = append(points, p)
	}
	d, err := search.NewListed(dims, points)
	require.NoError(t, err)
	for _, name := range []string{"guided", "forest", "model-first", "random", "exhaustive"} {
		s, err := search.New(name, d, search.Options{Seed: 1, Budget: 100})
		require.NoError(t, err)
		seen := map[int]bool{}
		for range 20 {
			var batch []search.Point
			for range 8 {
				p, ok := s.Propose()
				require.True(t, ok, name)
				i, ok := d.Index(p)
				require.True(t, ok)
				require.False(t, seen[i], name)
				seen[i] = true
				batch = append(batch, p)
			}
			for _, p := range batch {
				r, _ := landscape(3)(p)
				s.Observe(p, r)
			}
		}
	}
}

// A cost model that is right in all but scale finds the optimum at once.
func TestModelFirstFollowsTheModel(t *testing.T) {
	dims := []search.Dim{{Name: "a", Len: 15}, {Name: "b", Len: 15}, {Name: "c", Len: 2}}
	var points []search.Point
	for p := (search.Point{0, 0, 0}); p != nil; p = following(dims, p) {
		points = append(points, p)
	}
	d, err := search.NewListed(dims, points)
	require.NoError(t, err)
	cost := func(p search.Point) float64 { return 1 + math.Hypot(float64(p[0]-11), float64(p[1]-4)) }
	o := search.Options{Budget: 20, Model: func(p search.Point) float64 { return 7 * cost(p) }}
	s, err := search.New("model-first", d, o)
	require.NoError(t, err)
	steps, err := search.Run(t.Context(), d, s, o, func(p search.Point) (search.Result, error) { return search.Result{OK: true, Time: cost(p)}, nil })
	require.NoError(t, err)
	best := math.Inf(1)
	for _, s := range steps {
		best = min(best, s.Result.Time)
	}
	require.InDelta(t, 1, best, 0)
}

func TestFirstPointsComeFirst(t *testing.T) {
	dims := []search.Dim{{Name: "a", Len: 3}}
	d, err := search.NewListed(dims, []search.Point{{0}, {1}, {2}})
	require.NoError(t, err)
	o := search.Options{Budget: 3, First: []search.Point{{2}}}
	s, err := search.New("", d, o)
	require.NoError(t, err)
	steps, err := search.Run(t.Context(), d, s, o, landscape(1))
	require.NoError(t, err)
	require.Len(t, steps, 3)
	require.Equal(t, search.Point{2}, steps[0].Point)
}

func TestErrors(t *testing.T) {
	_, err := search.NewListed([]search.Dim{{Name: "a", Len: 2}}, nil)
	require.ErrorContains(t, err, "no point is valid")
	_, err = search.NewListed([]search.Dim{{Name: "a", Len: 2}}, []search.Point{{2}})
	require.ErrorContains(t, err, "index 2 of a: want 0 to 1")
	d, err := search.NewListed([]search.Dim{{Name: "a", Len: 2}}, []search.Point{{0}, {1}})
	require.NoError(t, err)
	_, err = search.New("best", d, search.Options{Budget: 1})
	require.ErrorContains(t, err, `strategy "best": want one of guided,`)
	_, err = search.New("", d, search.Options{})
	require.ErrorContains(t, err, "budget 0: want 1 or more")
	s, err := search.New("", d, search.Options{Budget: 2})
	require.NoError(t, err)
	stop := errors.New("stop")
	_, err = search.Run(t.Context(), d, s, search.Options{Budget: 2}, func(search.Point) (search.Result, error) { return search.Result{}, stop })
	require.ErrorIs(t, err, stop)
}

// Batches are the same whatever a strategy is and however they are evaluated, none of
// their points is tried twice, and all of the budget is used.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDomain(t)
		name := rapid.SampledFrom(search.Names()).Draw(t, "strategy")
		o := search.Options{Seed: rapid.Uint64().Draw(t, "seed"), Budget: rapid.IntRange(1, 40).Draw(t, "budget")}
		batch := rapid.IntRange(1, 9).Draw(t, "batch")
		evaluate := landscape(o.Seed)
		var runs [2][]search.Step
		for i := range runs {
			s, err := search.New(name, d, o)
			require.NoError(t, err)
			runs[i], err = search.RunBatches(context.Background(), d, s, o, batch, func(points []search.Point) ([]search.Result, error) {
				require.LessOrEqual(t, len(points), batch)
				out := make([]search.Result, len(points))
				for k := range points { // in any order
					at := k
					if i == 1 {
						at = len(points) - 1 - k
					}
					out[at], _ = evaluate(points[at])
				}
				return out, nil
			})
			require.NoError(t, err)
		}
		require.Equal(t, runs[0], runs[1])
		seen := map[int]bool{}
		for _, step := range runs[0] {
			at, ok := d.Index(step.Point)
			require.True(t, ok)
			require.False(t, seen[at])
			seen[at] = true
		}
		size := 0
		for p, ok := d.Next(nil); ok; p, ok = d.Next(p) {
			size++
		}
		require.Len(t, seen, min(size, o.Budget))
	})
}

// endless proposes nothing for as long as it is let.
type endless struct{ let chan struct{} }

func (e endless) Propose() (search.Point, bool)     { <-e.let; return nil, false }
func (endless) Observe(search.Point, search.Result) {}

// A dimension of very many values takes no more memory or time than as many points do.
func TestLongDimension(t *testing.T) {
	const n = 100_000
	for _, named := range []bool{false, true} {
		dim := search.Dim{Name: "a", Len: n}
		points := make([]search.Point, n)
		for i := range points {
			points[i] = search.Point{i}
			if !named {
				dim.Values = append(dim.Values, float64(i))
			}
		}
		d, err := search.NewListed([]search.Dim{dim}, points)
		require.NoError(t, err)
		o := search.Options{Budget: 30}
		for _, name := range search.Names() {
			if name == "model-first" { // it wants a model
				continue
			}
			s, err := search.New(name, d, o)
			require.NoError(t, err, name)
			asked := 0
			steps, err := search.Run(t.Context(), d, s, o, func(p search.Point) (search.Result, error) {
				asked++
				return search.Result{OK: true, Time: 1 + float64(p[0]%1000)}, nil
			})
			require.NoError(t, err, name)
			require.Len(t, steps, 30, name)
			require.Equal(t, 30, asked, name)
		}
	}
}

func TestRunEndsWithinAProposal(t *testing.T) {
	d, err := search.NewListed([]search.Dim{{Name: "a", Len: 1}}, []search.Point{{0}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	time.AfterFunc(time.Millisecond, func() { cancel(stop) })
	s := endless{make(chan struct{})}
	defer close(s.let)
	_, err = search.Run(ctx, d, s, search.Options{Budget: 1}, landscape(1))
	require.ErrorIs(t, err, stop)
}

// What the default strategy takes to choose, in a space of 10^5 points.
func BenchmarkGuided(b *testing.B) {
	dims := []search.Dim{{Name: "a", Len: 20}, {Name: "b", Len: 20}, {Name: "c", Len: 16}, {Name: "d", Len: 16}}
	for i := range dims {
		for v := range dims[i].Len {
			dims[i].Values = append(dims[i].Values, float64(v))
		}
	}
	var points []search.Point
	for p := make(search.Point, len(dims)); p != nil; p = following(dims, p) {
		points = append(points, p)
	}
	d, err := search.NewListed(dims, points)
	require.NoError(b, err)
	for seed := 0; b.Loop(); seed++ {
		o := search.Options{Seed: uint64(seed), Budget: 200}
		s, err := search.New("", d, o)
		require.NoError(b, err)
		_, err = search.Run(b.Context(), d, s, o, landscape(1))
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/200, "ms/evaluation")
}
