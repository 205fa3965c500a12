package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// undefinedSums are the undefined lanes of accumulators, by unified slot.
type undefinedSums map[int32]*undefinedLanes

type undefinedLanes struct {
	lanes uint32
	from  lanes32 // origins
}

func (u *undefinedLanes) add(lane int, from uint32) {
	u.lanes |= 1 << lane
	u.from[lane] = from
}

// addAll adds another's lanes.
func (u *undefinedLanes) addAll(o *undefinedLanes) {
	for l := o.lanes; l != 0; l &= l - 1 {
		u.add(firstLane(l), o.from[firstLane(l)])
	}
}

// undefinedNow adds the lanes of a register that are undefined now, but for those that
// are so because a product in flight writes it.
func (w *warp) undefinedNow(u *undefinedLanes, slot int32) {
	for l := w.u[slot]; l != 0; l &= l - 1 {
		lane := firstLane(l)
		if from := w.fr.undef.origin[slot][lane]; w.b.origins[from].class != bench.AsyncCopyRace {
			u.add(lane, from)
		}
	}
}

// flyAccumulators marks the accumulators of an instruction as not to be touched, and
// keeps what was undefined of those that it adds to.
func (w *warp) flyAccumulators(f *wgmmaFlight) {
	from := w.b.addOrigin(origin{class: bench.AsyncCopyRace, src: w.source(f.in), space: ptx.SpaceReg, name: "an accumulator of wgmma that was not waited for"})
	for _, s := range f.in.wg.d {
		u := w.fr.prog.unified(class32, s)
		if f.keep && w.u[u] != 0 {
			var was undefinedLanes
			if w.undefinedNow(&was, u); was.lanes != 0 {
				f.inherit(u, &was)
			}
		}
		w.undefineWhole(u, from)
	}
}

// inherit adds to what is undefined of an accumulator that an instruction adds to.
func (f *wgmmaFlight) inherit(slot int32, what *undefinedLanes) {
	if f.was == nil {
		f.was = undefinedSums{}
	}
	if f.was[slot] == nil {
		f.was[slot] = new(undefinedLanes)
	}
	f.was[slot].addAll(what)
}

// wgmmaDefined says which accumulators are defined after an instruction: those that it
// adds to as they were, but for what its operands make undefined. Where another adds to
// them that is in flight, that has it from this one.
func (w *warp) wgmmaDefined(f *wgmmaFlight, bad *undefinedProduct, per int) {
	if w.u == nil {
		return
	}
	op := f.in.wg
	p := w.fr.prog
	x := w.fragmentsOf(f.fr)
	for i, s := range op.d {
		u := p.unified(class32, s)
		var now undefinedLanes
		if was := f.was[u]; was != nil {
			now.addAll(was)
		}
		if bad.any {
			bad.accumulator(&now, i, per)
		}
		if x != nil && x.sums[op.sums[i]] != nil && x.sums[op.sums[i]] != f {
			if next := x.sums[op.sums[i]]; next.keep && now.lanes != 0 {
				next.inherit(u, &now)
			}
			continue
		}
		if f.keep && w.u[u] != 0 {
			w.undefinedNow(&now, u)
		}
		w.define(u, allLanes)
		for l := now.lanes; l != 0; l &= l - 1 {
			w.undefine(u, firstLane(l), ^uint64(0), now.from[firstLane(l)])
		}
	}
}

// reachesOutside says whether some of an instruction's matrices, all four warps' rows
// of A, is not in shared memory: what else they reach is not what was meant.
func (w *warp) reachesOutside(f *wgmmaFlight) (outside bool) {
	op := f.in.wg
	look := func(addr uint64, _, _ int) {
		_, ok := w.matrixChunk(addr)
		outside = outside || !ok
	}
	if !op.aRegs {
		d := decodeDescriptor(f.a)
		op.chunks(&d, 0, warpgroup*tileM, op.keptK(), op.transA, look)
	}
	d := decodeDescriptor(f.b)
	op.chunks(&d, 0, op.n, op.k, op.transB, look)
	return outside
}

// accumulator adds the lanes of an accumulator, of so many a panel, that are undefined
// for the rows and columns that the operands lack.
func (bad *undefinedProduct) accumulator(now *undefinedLanes, i, per int) {
	for lane := range warpSize {
		panel, e := i/per, i%per
		row := lane>>2 + 8*(e>>1)
		col := panel*tileN + 2*(lane&3) + e&1
		if per == 2 {
			row, col = lane>>2+8*e, panel*tileN+2*(lane&3)
		}
		from := bad.rows[row]
		if from == 0 {
			from = bad.cols[col]
		}
		if from == 0 && per == 2 {
			from = bad.cols[col+1]
		}
		if from != 0 {
			now.add(lane, from)
		}
	}
}
