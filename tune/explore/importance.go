package explore

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/kgen-dev/kgen/kernels/space"
)

// Importance is how much of the differences between times a parameter explains: shares of
// the variance of the times' logarithms, 0 to 1, corrected for what as many values explain
// by chance. What is tried is no even sample, so parameters that changed together explain
// the same differences: the shares of each alone may add up to more than 1.
type Importance struct {
	Parameter string   `json:"parameter"`
	Share     float64  `json:"share"`  // by itself
	Unique    *float64 `json:"unique"` // by how much less all explain without it; null for too few times
}

// Explained is what the parameters explain of the differences between times.
type Explained struct {
	Parameters []Importance // by Share, the largest first; nil for fewer than FewestTimes
	// Together is the share that a sum of one effect for each parameter explains; what is
	// left are parameters that only matter together. Nil for too few times.
	Together *float64
	Samples  int // times that it follows from
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

// Importances ranks parameters by what they explain.
func Importances(times []Timed) Explained {
	out := Explained{Samples: len(times)}
	if len(times) < FewestTimes {
		return out
	}
	logs := make([]float64, len(times))
	for i, t := range times {
		logs[i] = math.Log(t.US)
	}
	all := map[string][][]float64{} // by parameter, a column for each value
	for d := range times[0].Config.Len() {
		name, _ := times[0].Config.At(d)
		groups := map[int][]float64{}
		for i, t := range times {
			_, v := t.Config.At(d)
			if groups[v] == nil {
				groups[v] = make([]float64, len(times))
			}
			groups[v][i] = 1
		}
		if len(groups) < 2 {
			continue
		}
		for _, v := range slices.Sorted(maps.Keys(groups)) {
			all[name] = append(all[name], groups[v])
		}
		share, _ := explained(logs, all[name])
		out.Parameters = append(out.Parameters, Importance{Parameter: name, Share: share})
	}
	slices.SortStableFunc(out.Parameters, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	together, ok := explained(logs, columns(all, ""))
	if !ok {
		return out
	}
	out.Together = &together
	for i := range out.Parameters {
		p := &out.Parameters[i]
		without, _ := explained(logs, columns(all, p.Parameter))
		unique := max(0, together-without)
		p.Unique = &unique
	}
	return out
}

// columns are those of all parameters but one.
func columns(all map[string][][]float64, but string) (out [][]float64) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != but {
			out = append(out, all[name]...)
		}
	}
	return out
}

// explained is the adjusted share of the variance that a sum of columns explains; false if
// there are too few values for as many columns.
func explained(values []float64, columns [][]float64) (share float64, ok bool) {
	n := float64(len(values))
	constant := make([]float64, len(values))
	for i := range constant {
		constant[i] = 1
	}
	basis := orthogonal(nil, constant)
	rest := remainder(basis, values)
	total := dot(rest, rest)
	for _, c := range columns {
		basis = orthogonal(basis, c)
	}
	rest = remainder(basis, rest)
	free := n - float64(len(basis))
	const rounding = 1e-24 // of a logarithm, squared
	switch {
	case total <= n*rounding:
		return 0, true
	case free <= 0:
		return 0, false
	}
	return max(0, 1-dot(rest, rest)/free/(total/(n-1))), true
}

// orthogonal adds to an orthonormal basis what a vector has beside it, if anything.
func orthogonal(basis [][]float64, v []float64) [][]float64 {
	const dependent = 1e-9
	rest := remainder(basis, v)
	length := math.Sqrt(dot(rest, rest))
	if length <= dependent*math.Sqrt(dot(v, v)) {
		return basis
	}
	for i := range rest {
		rest[i] /= length
	}
	return append(basis, rest)
}

// remainder is what a vector has beside an orthonormal basis: taken twice, as rounding
// leaves something the first time.
func remainder(basis [][]float64, v []float64) []float64 {
	rest := slices.Clone(v)
	for range 2 {
		for _, b := range basis {
			along := dot(b, rest)
			for i := range rest {
				rest[i] -= along * b[i]
			}
		}
	}
	return rest
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
