package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// Hints for L2 (ir.Hints.L2). The rule is how often other blocks copy the same: where a
// place depends on all axes of the tile space, as that of attention's Q, no other block does,
// and the lines leave first; where not, as of K, V and both operands of a product, the blocks
// along the other axes do, and the lines stay.

// policyOf is the policy for what a copy reads; nil where none is asked for.
func (l *lowering) policyOf(o *ir.Op) *simt.Value {
	if l.k.Hints.L2 == 0 {
		return nil
	}
	for _, axis := range l.k.Space {
		places := placesAlong(l.k, axis)
		if !slices.ContainsFunc(o.Indices(), func(i *ir.Value) bool { return places[i] }) {
			return l.b.Policy(simt.EvictLast)
		}
	}
	return l.b.Policy(simt.EvictFirst)
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
