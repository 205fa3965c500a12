package ncu

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// operations are the useful operations of every kind that was counted.
func operations(group []*launch, volta bool) ([]roofline.Operations, error) {
	var out []roofline.Operations
	add := func(o roofline.Operations) {
		if o.Count.Value == 0 {
			return
		}
		for i := range out {
			if out[i].Math == o.Math {
				out[i].Count.Value += o.Count.Value
				return
			}
		}
		out = append(out, o)
	}
	for i, f := range vectorFLOPs {
		if slices.ContainsFunc(vectorFLOPs[:i], func(g flops) bool { return g.math == f.math && has(out, f.math) }) {
			continue // the same by the other prefix
		}
		v := 0.0
		for _, t := range f.source.terms { // a kernel without multiplications is profiled without their counter
			n, err := meanMetric(group, t.metric)
			if err != nil {
				return nil, err
			}
			v += n * t.factor
		}
		add(roofline.Operations{Math: f.math, Count: roofline.Counted(v)})
	}
	for _, m := range tensorCounters(group) {
		math, ok := tensorMath(m)
		each := 1.0
		if m == hmmaCounter && volta {
			math, each, ok = target.F16Acc32, hmmaFLOPs, true
		}
		if !ok || slices.ContainsFunc(group, func(l *launch) bool { return l.hasTotal(m) }) {
			continue
		}
		v, err := meanMetric(group, m)
		if err != nil {
			return nil, err
		}
		add(roofline.Operations{Math: math, Count: roofline.Counted(v * each)})
	}
	return out, nil
}

// variant matches the end of a counter that counts a part of another.
var variant = regexp.MustCompile(`(_sparsity_(on|off)|_dst_fp(16|32)(_sparsity_(on|off))?)\.sum$`)

// hasTotal says whether the launch has a counter of which this one's is a part.
func (l *launch) hasTotal(metric string) bool {
	for part := metric; variant.MatchString(part); {
		i := strings.LastIndex(part, "_sparsity_")
		if i < 0 {
			i = strings.LastIndex(part, "_dst_")
		}
		part = part[:i] + ".sum"
		if v := l.metrics.get(part); v != nil && isNumeric(v.text) {
			return true
		}
	}
	return false
}

func has(ops []roofline.Operations, m target.Math) bool {
	return slices.ContainsFunc(ops, func(o roofline.Operations) bool { return o.Math == m })
}

// meanMetric is the launches' mean of a counter.
func meanMetric(group []*launch, metric string) (float64, error) {
	return mean(group, metric, func(l *launch) (float64, bool, error) { return l.number(metric, plain) })
}

// tensorCounters are the names of the counters of tensor operations that a launch of the
// group has, sorted.
func tensorCounters(group []*launch) []string {
	var all []string
	for _, l := range group {
		for _, e := range l.metrics {
			if (e.name == hmmaCounter || strings.HasPrefix(e.name, tensorPrefix)) && !slices.Contains(all, e.name) {
				all = append(all, e.name)
			}
		}
	}
	slices.Sort(all)
	return all
}
