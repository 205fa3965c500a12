package vm

import (
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Registers move between the warps of a block: setmaxnreg. A block
// has those that its warps have at the launch. That is known, to ptxas as well, where
// the kernel says it, or how many blocks of how many threads an SM is to hold; elsewhere
// ptxas leaves the instruction out.

func init() { decoders["setmaxnreg"] = (*decoder).setMaxRegisters }

const registersOfSM = 64 << 10 // of every GPU that has setmaxnreg

func (d *decoder) setMaxRegisters() {
	up := d.take("inc", "dec") == "inc"
	d.has("sync")
	d.has("aligned")
	d.typ()
	ops := d.operands(1, 1)
	n := d.integer(&ops[0])
	if n < 24 || n > 256 || n%8 != 0 {
		d.refuse("%d registers: want a multiple of 8 from 24 to 256", n)
	}
	in := d.new(kindControl)
	in.ctl, in.imm = fewerRegisters, uint64(n)
	if up {
		in.ctl = moreRegisters
	}
	d.emit(in)
}

// moreRegisters waits where the block has too few left.
func moreRegisters(w *warp, in *inst) {
	if !w.wholeWarp(in) {
		return
	}
	if int(in.imm)-w.registers > w.cta.freeRegisters && w.registers > 0 {
		w.retry(stopPath)
		w.park(wait{kind: waitRegisters, in: in})
		return
	}
	w.sameInGroup(in)
	w.cta.takeRegisters(w, max(w.registers, int(in.imm)))
	w.pc++
}

func fewerRegisters(w *warp, in *inst) {
	if w.wholeWarp(in) {
		w.sameInGroup(in)
		w.cta.takeRegisters(w, min(w.registers, int(in.imm)))
		w.pc++
	}
}

// takeRegisters gives a warp so many registers for each thread, from those that are free.
func (c *cta) takeRegisters(w *warp, n int) {
	if w.registers == 0 {
		return
	}
	c.freeRegisters += w.registers - n
	if w.registers = n; c.freeRegisters == 0 {
		return
	}
	for _, o := range c.warps {
		for i := range o.paths {
			if p := &o.paths[i]; p.wait.kind == waitRegisters {
				p.wait, c.b.idle = wait{}, 0
			}
		}
	}
}

// registersAtLaunch is how many each thread has; 0 is not known.
func (l *launch) registersAtLaunch() int {
	if d, ok := l.prog.fn.Directive("maxnreg"); ok {
		return min(int(d.Values[0]+7)&^7, 256)
	}
	d, ok := l.prog.fn.Directive("minnctapersm")
	if !ok || d.Values[0] < 1 || l.kern.maximum == ([3]uint32{}) && l.kern.required == ([3]uint32{}) {
		return 0
	}
	threads := int64(1)
	for i := range 3 {
		threads *= int64(max(l.kern.maximum[i], l.kern.required[i], 1))
	}
	threads = (threads + warpSize - 1) / warpSize * warpSize
	return int(min(registersOfSM/(threads*d.Values[0])&^7, 256))
}

// awaitedRegisters says what a warp that waits for registers lacks.
func (w *warp) awaitedRegisters(in *inst) string {
	return fmt.Sprintf("%d registers for each thread, where it has %d and the block has %d free for one warp", in.imm, w.registers, w.cta.freeRegisters)
}

// registerOrder is the setmaxnreg that warps of a warpgroup came to, from the first that
// not all have, and how many of them each has.
type registerOrder struct {
	list []registerMove
	done [4]int
}

type registerMove struct {
	w   *warp
	in  *inst
	src *ptx.Instruction
}

// sameInGroup compares a warp's setmaxnreg with that of the others of its warpgroup.
func (w *warp) sameInGroup(in *inst) {
	group := w.number / 4
	for len(w.cta.registerOrders) <= group {
		w.cta.registerOrders = append(w.cta.registerOrders, registerOrder{})
	}
	o := &w.cta.registerOrders[group]
	src := w.source(in)
	n := &o.done[w.number&3]
	if *n == len(o.list) {
		o.list = append(o.list, registerMove{w, in, src})
	} else if x := &o.list[*n]; x.in.imm != in.imm || x.src.Mods[0] != src.Mods[0] {
		w.reportOperands(bench.DivergentCollective, faultKey{class: bench.DivergentCollective, in: src, other: x.src}, 0, x.w,
			"the setmaxnreg of another warp differs: want the same in a warpgroup")
	}
	*n++
	if slices.Min(o.done[:]) > 0 {
		o.list = o.list[1:]
		for i := range o.done {
			o.done[i]--
		}
	}
}

// checkRegisters reports setmaxnreg that some warps of a warpgroup left out, once all of
// the block have met behind it.
func (c *cta) checkRegisters() {
	for _, w := range c.warps {
		group := w.number / 4
		if w.live == 0 || group >= len(c.registerOrders) {
			continue
		}
		o := &c.registerOrders[group]
		if n := o.done[w.number&3]; n < len(o.list) {
			x := &o.list[n]
			x.w.reportOperands(bench.DivergentCollective, faultKey{class: bench.DivergentCollective, in: x.src}, 0, nil,
				"not all warps of the warpgroup execute the setmaxnreg")
		}
	}
}
