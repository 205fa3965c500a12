package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// underWay is a product of warpgroups under way. Until it has landed nobody may look at
// its result, change the registers it reads, or fill the buffers it reads.
type underWay struct {
	o    *ir.Op
	used []*simt.Value
}

// reads tells whether the product reads the buffer of a ring where it lies.
func (p underWay) reads(ring *ir.Value) bool {
	return slices.ContainsFunc(p.o.Args[:2], func(v *ir.Value) bool { return staysShared(v) && ringOf(v) == ring })
}

// land waits for the first n products under way.
func (l *lowering) land(n int) {
	if n <= 0 {
		return
	}
	var regs, used []*simt.Value
	for _, p := range l.flight[:n] {
		regs = append(regs, l.tiles[p.o.Result()].regs...)
		used = append(used, p.used...)
	}
	regs = l.b.WgmmaWait(len(l.flight)-n, regs, used)
	for _, p := range l.flight[:n] {
		f := *l.tiles[p.o.Result()]
		f.regs, regs = slices.Clip(regs[:len(f.regs)]), regs[len(f.regs):]
		l.tiles[p.o.Result()] = &f
	}
	l.flight = slices.Clone(l.flight[n:])
}

// landIf waits for the products up to the last that a condition holds for.
func (l *lowering) landIf(cond func(underWay) bool) {
	for i, p := range slices.Backward(l.flight) {
		if cond(p) {
			l.land(i + 1)
			return
		}
	}
}

// landAll waits for all products.
func (l *lowering) landAll() { l.land(len(l.flight)) }

// landBefore waits for what an operation with regions looks at, or for all products where
// it has products itself.
func (l *lowering) landBefore(o *ir.Op) {
	if len(l.flight) == 0 {
		return
	}
	if o.Code != ir.OpIf || slices.ContainsFunc(o.Regions, func(r *ir.Region) bool { return len(dotsIn(r, nil)) > 0 }) {
		l.landAll()
		return
	}
	l.landIf(func(p underWay) bool { return uses(o, map[*ir.Value]bool{p.o.Result(): true}) })
}
