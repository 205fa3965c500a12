package dispatch

import (
	"math"
	"slices"
)

// mostFolds bounds how many rules HeldOut fits.
const mostFolds = 32

// HeldOut is each shape's regret under a rule that was fitted without it, among the
// configurations that other shapes proposed: what a shape must expect that was not tuned.
// It is +Inf where the rule's configuration cannot run, and NaN where the other shapes make
// no rule. from are the shapes that proposed each configuration. Of more than 32 shapes
// several are held out at a time.
func HeldOut(shapes []Shape, configs []string, from [][]int) []float64 {
	out := make([]float64, len(shapes))
	folds := min(len(shapes), mostFolds)
	for fold := range folds {
		held := func(i int) bool { return i%folds == fold }
		rule := fitWithout(shapes, configs, from, held)
		for i := fold; i < len(shapes); i += folds {
			out[i] = math.NaN()
			if rule != nil {
				chosen := shapes[i].US[slices.Index(configs, rule.Choose(shapes[i].Sizes))]
				out[i] = chosen/slices.Min(shapes[i].US) - 1
			}
		}
	}
	return out
}

// fitWithout fits a rule to the shapes that are not held out and the configurations that
// those proposed; nil if there is none.
func fitWithout(shapes []Shape, configs []string, from [][]int, held func(int) bool) *Rule {
	var kept []int
	for c := range configs {
		if slices.ContainsFunc(from[c], func(i int) bool { return !held(i) }) {
			kept = append(kept, c)
		}
	}
	var names []string
	for _, c := range kept {
		names = append(names, configs[c])
	}
	var rest []Shape
	for i, s := range shapes {
		if held(i) {
			continue
		}
		one := Shape{Sizes: s.Sizes}
		for _, c := range kept {
			one.US = append(one.US, s.US[c])
		}
		rest = append(rest, one)
	}
	rule, _, err := Fit(rest, names)
	if err != nil {
		return nil // no shapes, or one on which none of these runs
	}
	return rule
}
