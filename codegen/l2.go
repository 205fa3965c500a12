package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// Hints for L2 (ir.Hints.L2). The rule is how often other blocks touch the same: where a
// place depends on all axes of the tile space, as that of attention's Q and of a product's
// result, no other block does, and the lines leave first; where not, as of K, V and both
// operands of a product, and of a result that blocks add to, the blocks along the other axes
// do, and the lines stay. So do those that a later launch reads.

// policyOf is the policy for what a copy reads; nil where none is asked for.
func (l *lowering) policyOf(o *ir.Op) *simt.Value {
	if l.k.Hints.L2 == 0 {
		return nil
	}
	return l.b.Policy(l.policyAt(o))
}

// storePolicy is the policy for what a tensor map stores; nil where none is asked for.
func (l *lowering) storePolicy(o *ir.Op) *simt.Value {
	if l.k.Hints.L2 == 0 {
		return nil
	}
	return l.b.Policy(l.storedPolicy(o))
}

// storeCache is the same for stores of threads, which have a hint for lines that leave first
// alone.
func (l *lowering) storeCache(o *ir.Op) simt.Cache {
	if l.k.Hints.L2 == 0 || l.storedPolicy(o) != simt.EvictFirst {
		return 0
	}
	return simt.CacheCS
}

func (l *lowering) storedPolicy(o *ir.Op) simt.L2Policy {
	if p, _ := root(o.View()); slices.Contains(l.m.reread, slices.Index(l.k.Params, p)) {
		return simt.EvictLast
	}
	return l.policyAt(o)
}

// policyAt is the policy for an access by its place.
func (l *lowering) policyAt(o *ir.Op) simt.L2Policy {
	for _, axis := range l.k.Space {
		places := placesAlong(l.k, axis)
		if !slices.ContainsFunc(o.Indices(), func(i *ir.Value) bool { return places[i] }) {
			return simt.EvictLast
		}
	}
	return simt.EvictFirst
}

// placesAlong are the values that differ from block to block along an axis. Where a loop ends
// differs, its index still goes through the same places.
func placesAlong(k *ir.Kernel, axis ir.Axis) map[*ir.Value]bool {
	differs := map[*ir.Value]bool{axis.Var: true}
	any := func(vs ...*ir.Value) bool {
		return slices.ContainsFunc(vs, func(v *ir.Value) bool { return differs[v] })
	}
	var walk func(r *ir.Region)
	walk = func(r *ir.Region) {
		for _, o := range r.Ops {
			if o.Code == ir.OpFor {
				params := o.Regions[0].Params
				differs[params[0]] = any(o.Args[0], o.Args[2])
				for i, p := range params[1:] {
					differs[p] = any(o.Args[3+i])
				}
			}
			for _, in := range o.Regions {
				walk(in)
			}
			for _, x := range o.Results {
				differs[x] = any(o.Args...)
			}
		}
	}
	walk(k.Body)
	return differs
}
