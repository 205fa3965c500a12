// Package dispatch fits a small rule that chooses a configuration by a problem's sizes,
// and says how much is lost by it at worst.
package dispatch

import (
	"errors"
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
		best := math.Inf(1)
		for _, us := range s.US {
			best = min(best, us)
		}
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
			bound := max(1, math.Floor(math.Sqrt(values[k]*values[k+1])))
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

// Check says what is wrong with a rule that was read from a file, and where, as in
// below.most: branches have a size, a bound and both halves, leaves a configuration alone,
// and it is no deeper than Fit makes them.
func (r *Rule) Check() (path string, err error) {
	if r == nil {
		return "", errors.New("missing: want a rule")
	}
	return r.check("", mostLeaves)
}

func (r *Rule) check(path string, depth int) (string, error) {
	branch := r.Size != "" || r.Most != 0 || r.Below != nil || r.Above != nil
	switch {
	case depth == 0:
		return path, fmt.Errorf("more than %d comparisons, one in the other", mostLeaves-1)
	case !branch && r.Config == "":
		return join(path, "config"), errors.New("missing: want a configuration, or size, most, below and above")
	case !branch:
		return "", nil
	case r.Config != "":
		return join(path, "config"), errors.New("a configuration beside a comparison: want one of both")
	case r.Size == "":
		return join(path, "size"), errors.New("missing: want the name of a size")
	case !(r.Most >= 1 && r.Most < 1<<53):
		return join(path, "most"), fmt.Errorf("%g, or missing: want a size of 1 or more", r.Most)
	}
	for _, half := range []struct {
		name string
		rule *Rule
	}{{"below", r.Below}, {"above", r.Above}} {
		at := join(path, half.name)
		if half.rule == nil {
			return at, errors.New("missing: want the rule for that half")
		}
		if at, err := half.rule.check(at, depth-1); err != nil {
			return at, err
		}
	}
	return "", nil
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// Sizes are the names of the sizes that a rule compares, each once.
func (r *Rule) Sizes() []string {
	if r.Below == nil {
		return nil
	}
	all := slices.Concat([]string{r.Size}, r.Below.Sizes(), r.Above.Sizes())
	slices.Sort(all)
	return slices.Compact(all)
}

// Configs are the configurations that a rule chooses among, each once, in its order.
func (r *Rule) Configs() (out []string) {
	for _, leaf := range r.Leaves() {
		if !slices.Contains(out, leaf.Config) {
			out = append(out, leaf.Config)
		}
	}
	return out
}

// Choose is the configuration that a rule takes for sizes.
func (r *Rule) Choose(sizes map[string]float64) string { return r.Leaf(sizes).Config }

// Leaf is the leaf that a rule takes for sizes.
func (r *Rule) Leaf(sizes map[string]float64) *Rule {
	for r.Below != nil {
		if sizes[r.Size] <= r.Most {
			r = r.Below
		} else {
			r = r.Above
		}
	}
	return r
}

// Leaves are a rule's leaves, in its order.
func (r *Rule) Leaves() []*Rule {
	if r.Below == nil {
		return []*Rule{r}
	}
	return slices.Concat(r.Below.Leaves(), r.Above.Leaves())
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
