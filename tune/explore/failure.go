package explore

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
)

// Failure is a configuration that came to nothing, and why.
type Failure struct {
	Config  space.Config
	Outcome store.Outcome
	Error   string
}

// Failures are the trials that failed, those of the finals among them.
func (r *Result) Failures() []Failure {
	var out []Failure
	for _, t := range slices.Concat(r.Tried, r.Lost) {
		if e := &t.Evaluation; !e.Outcome.Timed() {
			out = append(out, Failure{t.Config, e.Outcome, e.Error})
		}
	}
	return out
}

// Cause is why configurations failed, an example standing for those whose errors differ
// in numbers alone.
type Cause struct {
	Outcome store.Outcome `json:"outcome"`
	Count   int           `json:"count"`
	Config  space.Config  `json:"config"` // of the example
	Error   string        `json:"error"`
}

var digits = regexp.MustCompile(`[0-9]+`)

// Causes sorts failures by outcome, the most frequent cause of each first. Of alike ones
// the configuration whose text comes first is the example, so that the order in which they
// ended does not matter.
func Causes(failed []Failure) []Cause {
	type kind struct {
		outcome store.Outcome
		text    string
	}
	at := map[kind]int{}
	out := []Cause{}
	for _, f := range failed {
		k := kind{f.Outcome, digits.ReplaceAllString(f.Error, "0")}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, Cause{f.Outcome, 0, f.Config, f.Error})
		}
		c := &out[i]
		c.Count++
		if f.Config.String() < c.Config.String() {
			c.Config, c.Error = f.Config, f.Error
		}
	}
	order := store.Outcomes()
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Outcome), slices.Index(order, b.Outcome)),
			cmp.Compare(b.Count, a.Count), cmp.Compare(a.Config.String(), b.Config.String()), cmp.Compare(a.Error, b.Error))
	})
	return out
}

// CountFailures counts failures by outcome.
func CountFailures(failed []Failure) map[store.Outcome]int {
	n := map[store.Outcome]int{}
	for _, f := range failed {
		n[f.Outcome]++
	}
	return n
}
