package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// bulkFill is st.bulk: zeros for a range of the block's shared memory.
func (d *decoder) bulkFill() {
	d.has("weak")
	space := d.space()
	ops := d.operands(3, 3)
	in := d.new(kindMasked)
	in.mem = d.newMem(space)
	in.mem.size = 8
	d.memory(in, in.mem, &ops[0])
	d.source(in, &in.a, &ops[1], ptx.U64, exact)
	if d.integer(&ops[2]) != 0 {
		d.refuse("value %d: want 0", d.integer(&ops[2]))
	}
	d.access(in.mem)
	in.rule = ruleAsyncCopy
	in.fn[modeFull] = bulkFill
	d.emit(in)
}

func bulkFill(w *warp, in *inst) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		a, n := addr[lane], w.q[in.a][lane]
		if in.mem.space == ptx.SpaceGeneric {
			a -= sharedWindow
		}
		if n > uint64(len(w.b.shared)) {
			n = uint64(len(w.b.shared)) + 8 // out of bounds, whatever it is
		}
		if a%8 != 0 || n%8 != 0 {
			w.faultAt(bench.MisalignedAddress, in, lane, &a, "shared", "%d bytes at shared address %#x: want multiples of 8", n, a)
			continue
		}
		off, ok := w.locate(in, lane, a, int(n), false)
		if !ok || n == 0 {
			continue
		}
		if r := w.b.race; r != nil && !r.off {
			at := side{w: w, in: in, lane: lane, space: ptx.SpaceShared, write: true, id: r.eventFor(w, in, in.mem, 0)}
			r.sharedLane(&at, off, int(n))
		}
		if u := w.b.undef; u != nil {
			u.define(off, int(n))
		}
		clear(w.b.shared[off : off+n])
	}
}
