// Package dispatch fits a small rule that chooses a configuration by a problem's sizes,
// and says how much is lost by it at worst.
package dispatch

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rule is a decision tree: a leaf, or a size compared with a bound.
type Rule struct {
	Config string  `json:"config,omitempty"` // of a leaf
	Size   string  `json:"size,omitempty"`   // of a branch: a size's name
	Most   float64 `json:"most,omitempty"`   // sizes up to it take Below, others Above
	Below  *Rule   `json:"below,omitempty"`
	Above  *Rule   `json:"above,omitempty"`
}

// Shape is a problem's sizes by name and the time of each configuration on it, +Inf where
// it cannot run.
type Shape struct {
	Sizes map[string]float64
	US    []float64 // by configuration, above 0
}

// Limits of a rule: a leaf is split while it loses more than this on some shape, and
// there may be more leaves.
const (
	enough     = 0.02
	mostLeaves = 8
)

// leaf is a part of the shapes and the configuration that is chosen for it.
type leaf struct {
	rule   *Rule
	shapes []int
	config int
	regret float64
}

// Fit fits a rule, and returns it with its worst regret over the shapes: its time over
// the best one's, less 1. Every shape has a time for some configuration, all the same
// names of sizes, and configs are the configurations' texts.
func Fit(shapes []Shape, configs []string) (*Rule, float64, error) {
	if len(shapes) == 0 || len(configs) == 0 {
		return nil, 0, fmt.Errorf("%d shapes and %d configurations: want one or more of both", len(shapes), len(configs))
	}
	f := fitter{shapes: shapes}
	for i, s := range shapes {
		best := slices.Min(s.US)
		if len(s.US) != len(configs) || !(best > 0) || math.IsInf(best, 0) {
			return nil, 0, fmt.Errorf("shape %d has no time for any configuration", i+1)
		}
		f.best = append(f.best, best)
		f.all = append(f.all, i)
	}
	root := &Rule{}
	leaves := []leaf{f.leaf(root, f.all)}
	for len(leaves) < mostLeaves {
		worst := 0
		for i := range leaves {
			if leaves[i].regret > leaves[worst].regret {
				worst = i
			}
		}
		if leaves[worst].regret <= enough {
			break
		}
		below, above, ok := f.split(&leaves[worst])
		if !ok {
			break
		}
		leaves[worst] = below
		leaves = append(leaves, above)
	}
	regret := 0.0
	for _, l := range leaves {
		l.rule.Config = configs[l.config]
		regret = max(regret, l.regret)
	}
	return root, regret, nil
}

type fitter struct {
	shapes []Shape
	best   []float64
	all    []int
}

// leaf chooses the configuration that loses least at worst, of equal ones the one that
// loses least altogether.
func (f *fitter) leaf(r *Rule, shapes []int) leaf {
	l := leaf{rule: r, shapes: shapes, regret: math.Inf(1)}
	least := math.Inf(1)
	for c := range f.shapes[0].US {
		worst, sum := 0.0, 0.0
		for _, i := range shapes {
			lost := f.shapes[i].US[c]/f.best[i] - 1
			worst, sum = max(worst, lost), sum+lost
		}
		if worst < l.regret || worst == l.regret && sum < least {
			l.config, l.regret, least = c, worst, sum
		}
	}
	return l
}

// split finds the comparison under which the two halves lose least at worst.
func (f *fitter) split(l *leaf) (below, above leaf, ok bool) {
	var names []string
	for name := range f.shapes[0].Sizes {
		names = append(names, name)
	}
	slices.Sort(names)
	least := l.regret
	var size string
	var most float64
	for _, name := range names {
		var values []float64
		for _, i := range l.shapes {
			values = append(values, f.shapes[i].Sizes[name])
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for k := range len(values) - 1 {
			// Between two sizes that were tuned, in the middle of their ratio.
			bound := math.Floor(math.Sqrt(values[k] * values[k+1]))
			b, a := f.halves(l, name, bound)
			if worst := max(b.regret, a.regret); worst < least {
				least, size, most = worst, name, bound
				below, above, ok = b, a, true
			}
		}
	}
	if ok {
		below.rule, above.rule = &Rule{}, &Rule{}
		*l.rule = Rule{Size: size, Most: most, Below: below.rule, Above: above.rule}
	}
	return below, above, ok
}

func (f *fitter) halves(l *leaf, name string, bound float64) (below, above leaf) {
	var lo, hi []int
	for _, i := range l.shapes {
		if f.shapes[i].Sizes[name] <= bound {
			lo = append(lo, i)
		} else {
			hi = append(hi, i)
		}
	}
	return f.leaf(nil, lo), f.leaf(nil, hi)
}

// Whole tells whether a rule, read from a file, is one: branches with both halves, leaves
// with a configuration, no deeper than Fit makes them.
func (r *Rule) Whole() bool { return r.whole(mostLeaves) }

func (r *Rule) whole(depth int) bool {
	switch {
	case r == nil || depth == 0:
		return false
	case r.Below == nil && r.Above == nil:
		return r.Config != ""
	}
	return r.Size != "" && !math.IsNaN(r.Most) && math.Abs(r.Most) < 1<<53 && r.Below.whole(depth-1) && r.Above.whole(depth-1)
}

// Configs are the configurations that a rule chooses among, each once, in its order.
func (r *Rule) Configs() []string {
	if r.Below == nil {
		return []string{r.Config}
	}
	out := r.Below.Configs()
	for _, c := range r.Above.Configs() {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// Choose is the configuration that a rule takes for sizes.
func (r *Rule) Choose(sizes map[string]float64) string {
	for r.Below != nil {
		if sizes[r.Size] <= r.Most {
			r = r.Below
		} else {
			r = r.Above
		}
	}
	return r.Config
}

// String writes a rule as an indented text.
func (r *Rule) String() string {
	var b strings.Builder
	r.write(&b, "")
	return b.String()
}

func (r *Rule) write(b *strings.Builder, indent string) {
	if r.Below == nil {
		fmt.Fprintf(b, "%s%s\n", indent, r.Config)
		return
	}
	fmt.Fprintf(b, "%sif %s <= %.0f\n", indent, r.Size, r.Most)
	r.Below.write(b, indent+"    ")
	fmt.Fprintf(b, "%selse\n", indent)
	r.Above.write(b, indent+"    ")
}
