package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/interp"
	"gonum.org/v1/gonum/stat"

	"github.com/kgen-dev/kgen/tune/median"
)

// Scale measures searches of one space by the published methodology for comparing
// optimizers of kernels (Willemsen et al., FGCS 2024, doi 10.1016/j.future.2024.05.021):
// how far a search is between what random search reaches after as many evaluations, 0,
// and the optimum, 1.
type Scale struct {
	worstFirst []float64 // valid times
	failing    int
	costMS     float64 // median cost of trying a configuration, failing ones included
}

// Scale returns the space's scale, or an error if it has no time.
func (s *Space) Scale() (*Scale, error) {
	sc := &Scale{}
	var costs []float64
	for i := range s.Entries {
		e := &s.Entries[i]
		costs = append(costs, e.CostMS)
		if e.Status == Correct {
			sc.worstFirst = append(sc.worstFirst, e.MS)
		} else {
			sc.failing++
		}
	}
	if len(sc.worstFirst) == 0 {
		return nil, fmt.Errorf("%w: no configuration has a time", ErrFormat)
	}
	slices.SortFunc(sc.worstFirst, func(a, b float64) int { return cmp.Compare(b, a) })
	sc.costMS = median.Of(costs)
	return sc, nil
}

// Optimum is the least time in milliseconds.
func (s *Scale) Optimum() float64 { return s.worstFirst[len(s.worstFirst)-1] }

// Evaluations is how many evaluations random search needs to come the share c, below 1,
// of the way from the median to the optimum.
func (s *Scale) Evaluations(c float64) int {
	best, n := s.Optimum(), len(s.worstFirst)
	target := best + (median.Of(s.worstFirst)-best)*(1-c)
	i := slices.IndexFunc(s.worstFirst, func(ms float64) bool { return ms <= target })
	return int(math.Ceil(float64(i) / float64(n+1-i)))
}

// Seconds is what these evaluations take.
func (s *Scale) Seconds(c float64) float64 {
	return float64(s.Evaluations(c)) * s.costMS / 1000
}

// Random is the time in milliseconds that random search is taken to reach after k
// evaluations of valid configurations: a quantile of the times.
func (s *Scale) Random(k int) float64 {
	n := len(s.worstFirst)
	i := math.RoundToEven(float64(k) * float64(n+1) / float64(k+1))
	return s.worstFirst[min(n-1, int(i))]
}

// ExpectedBest is the mean over all draws of the best of k valid configurations.
func (s *Scale) ExpectedBest(k int) float64 {
	return s.expect(k, 0, func(ms float64) float64 { return ms })
}

// ExpectedFraction is the mean over all draws of k configurations, failing ones among
// them, of the optimum over the best; 0 for a draw that has no time.
func (s *Scale) ExpectedFraction(k int) float64 {
	best := s.Optimum()
	return s.expect(k, s.failing, func(ms float64) float64 { return best / ms })
}

// expect sums over the rank of the best of k drawn from the valid and the failing.
func (s *Scale) expect(k, failing int, value func(ms float64) float64) float64 {
	n := len(s.worstFirst)
	k = min(k, n+failing)
	sum := 0.0
	none := 1.0 // chance that no draw is among the i best
	for i := range n {
		next := none * max(0, float64(n+failing-i-k)) / float64(n+failing-i)
		sum += (none - next) * value(s.worstFirst[n-1-i])
		none = next
	}
	return sum
}

// Curve is the median over searches of the rank that their best has after each
// evaluation, as a time in milliseconds. Each search is its best so far, NaN before
// there is one; all have the same length.
func (s *Scale) Curve(searches [][]float64) []float64 {
	curve := make([]float64, len(searches[0]))
	for k := range curve {
		var ranks []float64
		for _, best := range searches {
			rank := 0
			if !math.IsNaN(best[k]) {
				rank, _ = slices.BinarySearchFunc(s.worstFirst, best[k], func(ms, want float64) int { return cmp.Compare(want, ms) })
			}
			ranks = append(ranks, float64(rank))
		}
		curve[k] = s.worstFirst[int(math.RoundToEven(median.Of(ranks)))]
	}
	return curve
}

// Performance is how far a time reached after k evaluations lies between random search,
// 0, and the optimum, 1; worse than random is negative.
func (s *Scale) Performance(ms float64, k int) float64 {
	return relative(ms, s.Random(k), s.Optimum())
}

// relative takes the optimum for 1 even where random search is there too.
func relative(ms, random, best float64) float64 {
	switch {
	case ms == best:
		return 1
	case random == best:
		return 0
	}
	return (ms - random) / (best - random)
}

// Score is the mean of the performance over points spread evenly between the evaluations
// of the shares from and to, and its standard deviation. A curve that ends is held.
func (s *Scale) Score(curve []float64, from, to float64, points int) (mean, deviation float64) {
	lo, hi := s.Evaluations(from), s.Evaluations(to)
	if lo < 1 {
		lo = 1
	}
	if hi <= lo {
		return s.Performance(held(curve, lo), lo), 0
	}
	var ks, random []float64
	for k := lo; k <= hi; k++ {
		ks, random = append(ks, float64(k)), append(random, s.Random(k))
	}
	at := smooth(ks, random)
	var all []float64
	for i := range points {
		x := float64(lo) + float64(hi-lo)*float64(i)/float64(max(1, points-1))
		all = append(all, relative(held(curve, int(x)), at(x), s.Optimum()))
	}
	return stat.PopMeanStdDev(all, nil)
}

// smooth interpolates monotonously.
func smooth(xs, ys []float64) func(float64) float64 {
	if len(xs) < 3 {
		var line interp.PiecewiseLinear
		if err := line.Fit(xs, ys); err != nil {
			panic(err) // two points or more, in order
		}
		return line.Predict
	}
	var cubic interp.FritschButland
	if err := cubic.Fit(xs, ys); err != nil {
		panic(err) // they are in order
	}
	return cubic.Predict
}

// held is a curve's value after k evaluations, its last one's after its end.
func held(curve []float64, k int) float64 { return curve[min(k, len(curve))-1] }
