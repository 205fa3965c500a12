package explore

import (
	"cmp"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/kernels/space"
)

// Importance is how much of the differences between times one parameter explains alone.
type Importance struct {
	Parameter string  `json:"parameter"`
	Share     float64 `json:"share"` // of the variance of the times' logarithms, 0 to 1
}

// Timed is a configuration with its time, microseconds.
type Timed struct {
	Config space.Config
	US     float64
}

// Times are the trials that came to a time.
func Times(trials []Trial) []Timed {
	var out []Timed
	for _, t := range trials {
		if e := &t.Evaluation; e.Outcome.Timed() {
			out = append(out, Timed{t.Config, e.TimeUS})
		}
	}
	return out
}

// FewestTimes are those without which no parameter's importance is told: of 32 random
// times a parameter of four values seems to explain 8 % one time in ten (F distribution
// with 3 and 28 degrees of freedom), of eight 50 %.
const FewestTimes = 32

// Importances ranks parameters by the variance between the mean logarithms of the times
// under each of their values, over the whole variance, corrected for what as many values
// explain by chance. What is tried is no fair sample, so it says what mattered among
// those, and parameters that only matter together show less. Nil for fewer than
// FewestTimes.
func Importances(times []Timed) []Importance {
	var logs []float64
	for _, t := range times {
		logs = append(logs, math.Log(t.US))
	}
	if len(logs) < FewestTimes {
		return nil
	}
	var out []Importance
	for d := range times[0].Config.Len() {
		name, _ := times[0].Config.At(d)
		groups := map[int][]float64{}
		for i, t := range times {
			_, v := t.Config.At(d)
			groups[v] = append(groups[v], logs[i])
		}
		if len(groups) > 1 {
			out = append(out, Importance{name, explained(logs, groups)})
		}
	}
	slices.SortStableFunc(out, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// explained is the adjusted share of the variance that lies between groups.
func explained(all []float64, groups map[int][]float64) float64 {
	total := spread(all)
	within := 0.0
	for _, g := range groups {
		within += spread(g)
	}
	n, k := float64(len(all)), float64(len(groups))
	if total == 0 || n <= k {
		return 0
	}
	return max(0, 1-within/(n-k)/(total/(n-1)))
}

// spread is the sum of squares of the differences from the mean.
func spread(v []float64) float64 {
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	sum := 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return sum
}
