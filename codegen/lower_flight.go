package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
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

// turns is a loop in which two warpgroups take turns at multiplying: each issues the
// products of an iteration, or of a tile, between a wait at its own barrier and an arrival
// at the other's.
type turns struct {
	first, last *ir.Op // products of an iteration; nil: all of a tile
	group       *simt.Value
	own, other  *simt.Value
	threads     int // of both
}

const (
	warpgroup   = 4 // warps
	turnBarrier = 2 // of the first warpgroup; that of the second follows
)

// takeTurns lowers such a loop. The second warpgroup lets the first one begin, which in
// the end takes the turn that the second one gives away last.
func (l *lowering) takeTurns(o *ir.Op, loop func()) {
	dots := dotsIn(o.Regions[0], nil)
	if l.s.Persistent { // they go on from tile to tile
		l.turns.first, l.turns.last = dots[0], dots[len(dots)-1]
		loop()
		l.turns.first, l.turns.last = nil, nil
		return
	}
	t := l.newTurns()
	t.first, t.last = dots[0], dots[len(dots)-1]
	l.inTurns(t, loop)
}

// newTurns are turns of the main role's two warpgroups.
func (l *lowering) newTurns() *turns {
	b := l.b
	group := b.ShrU(b.Special(simt.TidX), b.Const32(layout.LaneBits+log2(warpgroup)))
	return &turns{
		group: group, own: b.Add(group, b.Const32(turnBarrier)), other: b.Sub(b.Const32(turnBarrier+1), group), threads: 32 * l.mainWarps(),
	}
}

func (l *lowering) inTurns(t *turns, loop func()) {
	b := l.b
	b.If(b.Cmp(simt.EQ, t.group, b.Const32(1)), func() []*simt.Value { b.BarArrive(t.other, t.threads); return nil }, nil)
	l.turns = t
	loop()
	l.turns = nil
	b.If(b.Cmp(simt.EQ, t.group, b.Const32(0)), func() []*simt.Value { b.Bar(t.own, t.threads); return nil }, nil)
}

// beforeProduct and afterProduct take and give the turn around an iteration's products.
func (l *lowering) beforeProduct(o *ir.Op) {
	if l.turns != nil && o == l.turns.first {
		l.b.Bar(l.turns.own, l.turns.threads)
	}
}

func (l *lowering) afterProduct(o *ir.Op) {
	if l.turns != nil && o == l.turns.last {
		l.b.BarArrive(l.turns.other, l.turns.threads)
	}
}
