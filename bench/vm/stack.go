package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// alloca and its kin: PTX ISA 9.7.17. What a lane takes lies above its frame's
// variables, until the function returns.

func init() {
	decoders["alloca"] = (*decoder).alloca
	decoders["stacksave"] = (*decoder).stacksave
	decoders["stackrestore"] = (*decoder).stackrestore
}

// top is where a frame ends that belongs to some lanes.
func (f *frame) top(lanes uint32) int64 {
	top := f.local + f.prog.localBytes
	if f.stack == nil {
		return top
	}
	most := int64(0)
	for l := lanes; l != 0; l &= l - 1 {
		most = max(most, f.stack[firstLane(l)])
	}
	return top + (most+15)&^15
}

// stackTop is where one lane's part of the current frame ends.
func (w *warp) stackTop(lane int) int64 {
	top := w.fr.local + w.fr.prog.localBytes
	if w.fr.stack != nil {
		top += w.fr.stack[lane]
	}
	return top
}

func (d *decoder) alloca() {
	t := d.typ()
	ops := d.operands(2, 3)
	in := d.new(kindMasked)
	in.imm = 8 // the least alignment
	if len(ops) == 3 {
		a := d.integer(&ops[2])
		if a < 1 || a > 1<<23 || a&(a-1) != 0 {
			d.refuse("alignment %d: want a power of two up to %d", a, 1<<23)
		}
		in.imm = uint64(max(a, 8))
	}
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	in.ka = d.source(in, &in.a, &ops[1], t, exact).k
	in.fn[modeFull] = alloca
	d.emit(in)
}

func alloca(w *warp, in *inst) {
	if w.fr.stack == nil {
		w.fr.stack = new([warpSize]int64)
	}
	base := w.fr.local + w.fr.prog.localBytes
	for l := w.mask; l != 0; l &= l - 1 {
		i := firstLane(l)
		size := w.valueOf(in.ka, in.a, i)
		at := (w.stackTop(i) + int64(in.imm) - 1) &^ (int64(in.imm) - 1)
		if size > maxStack || at+int64(size) > maxStack {
			w.fault(bench.LocalOutOfBounds, in, i, "the stack is full: %d bytes more than the %d in use: a thread has %d", size, at, maxStack)
			size = 0
		}
		end := at + int64(size)
		w.growLocal(end)
		w.fr.stack[i] = end - base
		w.setLane(in.kd, in.d, i, uint64(at))
		if w.localUndef != nil {
			p := w.localUndef.bytes[int64(i)*w.localSize:]
			for k := at; k < end; k++ {
				p[k] = 1
			}
		}
	}
}

// setLane writes one lane of a register.
func (w *warp) setLane(k class, slot int32, lane int, v uint64) {
	if k == class64 {
		w.q[slot][lane] = v
	} else {
		w.r[slot][lane] = uint32(v)
	}
}

func (d *decoder) stacksave() {
	t := d.typ()
	ops := d.operands(1, 1)
	in := d.new(kindMasked)
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	in.fn[modeFull] = func(w *warp, in *inst) {
		for l := w.mask; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.setLane(in.kd, in.d, i, uint64(w.stackTop(i)))
		}
	}
	d.emit(in)
}

func (d *decoder) stackrestore() {
	t := d.typ()
	if t != ptx.U32 && t != ptx.U64 {
		d.refuse("type .%s: want .u32 or .u64", t)
	}
	ops := d.operands(1, 1)
	in := d.new(kindMasked)
	in.ka = d.source(in, &in.a, &ops[0], t, exact).k
	in.fn[modeFull] = func(w *warp, in *inst) {
		base := w.fr.local + w.fr.prog.localBytes
		for l := w.mask; l != 0; l &= l - 1 {
			i := firstLane(l)
			v := w.valueOf(in.ka, in.a, i)
			if top := w.stackTop(i); v < uint64(base) || v > uint64(top) {
				w.fault(bench.LocalOutOfBounds, in, i, "stackrestore of %#x: want what stacksave gave, %#x to %#x", v, base, top)
				continue
			}
			if w.fr.stack != nil {
				w.fr.stack[i] = int64(v) - base
			}
		}
	}
	d.emit(in)
}
