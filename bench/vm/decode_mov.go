package vm

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// decoders decode instructions, by the first word of their name.
var decoders = map[string]func(*decoder){}

func init() {
	decoders["mov"] = (*decoder).mov
	decoders["selp"] = (*decoder).selp
}

// mov copies a register, a constant, a special register or an address, or
// packs and unpacks a vector.
func (d *decoder) mov() {
	n := d.vector()
	t := d.typ()
	ops := d.operands(2, 2)
	switch {
	case n > 1:
		d.movVector(ops, t, n)
	case t == ptx.Pred:
		in := d.new(kindMasked)
		in.fn[modeFull] = movPred
		neg := d.predicate(in, &in.a, &ops[1])
		in.neg = neg
		d.predicateDestination(in, &in.d, &ops[0])
		d.emit(in)
	case t == ptx.B128:
		d.mov128(ops)
	case ops[0].Kind == ptx.OpVector:
		d.unpack(ops, t)
	case ops[1].Kind == ptx.OpVector:
		d.pack(ops, t)
	default:
		in := d.new(kindPure)
		in.rule = ruleCopy
		o := d.destination(in, &in.d, &ops[0], t, exact)
		if in.d == -1 && ops[0].Kind == ptx.OpSink {
			d.refuse("want a register to write")
		}
		in.kd = o.k
		if ops[1].Kind == ptx.OpSpecial {
			d.readSpecial(in, ptx.Special(ops[1].Slot()))
			in.rule = ruleAll
			d.emit(in)
			return
		}
		d.source(in, &in.a, &ops[1], t, exact)
		in.fn[modeFull] = mov32
		if in.kd == class64 {
			in.fn[modeFull] = mov64
		}
		d.emit(in)
	}
}

// movVector copies element by element. Registers that are written come from
// copies, as all are read first.
func (d *decoder) movVector(ops []ptx.Operand, t ptx.Type, n int) {
	to, from := elements(&ops[0]), slices.Clone(elements(&ops[1]))
	if len(to) != n || len(from) != n {
		d.refuse("%d elements from %d: want %d", len(to), len(from), n)
	}
	written := map[int32]bool{}
	for i := range to {
		if to[i].Kind == ptx.OpReg {
			written[to[i].Slot()] = true
		}
	}
	mods := []string{t.String()}
	for i := range from {
		if from[i].Kind == ptx.OpReg && written[from[i].Slot()] {
			aside := d.temporary(from[i].Name(), d.registerInfo(from[i].Slot()).Type)
			d.aside("mov", mods, aside, from[i])
			from[i] = aside
		}
	}
	move := d.within
	for i := range to {
		if to[i].Kind != ptx.OpSink {
			move("mov", mods, to[i], from[i])
			move = d.aside // the instruction counts once
		}
	}
}

func mov32(w *warp, in *inst) { w.r[in.d] = w.r[in.a] }
func mov64(w *warp, in *inst) { w.q[in.d] = w.q[in.a] }

func movPred(w *warp, in *inst) {
	w.p[in.d] = w.p[in.d]&^w.mask | (w.p[in.a]^in.neg)&w.mask
}

// part is the type of one of n equal parts of a value.
func (d *decoder) part(t ptx.Type, n int) ptx.Type {
	switch t.Bits() / n {
	case 8:
		return ptx.B8
	case 16:
		return ptx.B16
	case 32:
		return ptx.B32
	case 64:
		return ptx.B64
	}
	d.refuse("%d parts of .%s: want parts of 8, 16, 32 or 64 bits", n, t)
	return 0
}

// pack puts a vector's elements together, the first lowest.
func (d *decoder) pack(ops []ptx.Operand, t ptx.Type) {
	e := ops[1].Elems()
	part := d.part(t, len(e))
	in := d.new(kindPure)
	in.rule = rulePack
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	in.imm = uint64(part.Bits())
	in.list = make([]operand, len(e))
	for i := range e {
		o := d.source(in, &in.list[i].slot, &e[i], part, exact)
		in.list[i].k, in.list[i].bits = o.k, o.bits
	}
	switch {
	case in.kd == class64 && len(e) == 2:
		in.fn[modeFull] = pack2x32
	case in.kd == class32 && len(e) == 2 && part == ptx.B16:
		in.fn[modeFull] = pack2x16
	default:
		in.fn[modeFull] = packMany
	}
	d.emit(in)
}

func pack2x32(w *warp, in *inst) {
	d, lo, hi := &w.q[in.d], &w.r[in.list[0].slot], &w.r[in.list[1].slot]
	for i := range d {
		d[i] = uint64(lo[i]) | uint64(hi[i])<<32
	}
}

func pack2x16(w *warp, in *inst) {
	d, lo, hi := &w.r[in.d], &w.r[in.list[0].slot], &w.r[in.list[1].slot]
	for i := range d {
		d[i] = lo[i]&0xffff | hi[i]<<16
	}
}

func packMany(w *warp, in *inst) {
	for i := range warpSize {
		var v uint64
		for j, e := range in.list {
			v |= uint64(w.r[e.slot][i]) << (uint64(j) * in.imm)
		}
		if in.kd == class64 {
			w.q[in.d][i] = v
		} else {
			w.r[in.d][i] = uint32(v)
		}
	}
}

// unpack takes a value apart into a vector's elements.
func (d *decoder) unpack(ops []ptx.Operand, t ptx.Type) {
	e := ops[0].Elems()
	part := d.part(t, len(e))
	in := d.new(kindMasked)
	in.rule = ruleUnpack
	in.ka = d.source(in, &in.a, &ops[1], t, exact).k
	in.imm = uint64(part.Bits())
	in.list = make([]operand, len(e))
	for i := range e {
		o := d.destination(in, &in.list[i].slot, &e[i], part, exact)
		in.list[i].k, in.list[i].bits = o.k, o.bits
	}
	in.fn[modeFull] = unpack
	d.emit(in)
}

func unpack(w *warp, in *inst) {
	mask := uint32(1)<<in.imm - 1
	if in.imm >= 32 {
		mask = allLanes
	}
	for j, e := range in.list {
		if e.slot < 0 {
			continue
		}
		d := &w.r[e.slot]
		shift := uint64(j) * in.imm
		if in.ka == class64 {
			a := &w.q[in.a]
			if w.mask == allLanes {
				for i := range d {
					d[i] = uint32(a[i]>>shift) & mask
				}
				continue
			}
			for m := w.mask; m != 0; m &= m - 1 {
				i := firstLane(m)
				d[i] = uint32(a[i]>>shift) & mask
			}
			continue
		}
		a := &w.r[in.a]
		for m := w.mask; m != 0; m &= m - 1 {
			i := firstLane(m)
			d[i] = a[i] >> shift & mask
		}
	}
}

func (d *decoder) selp() {
	t := d.typ()
	ops := d.operands(4, 4)
	in := d.new(kindPure)
	in.rule = ruleSelect
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	d.source(in, &in.a, &ops[1], t, exact)
	d.source(in, &in.b, &ops[2], t, exact)
	in.neg = d.predicate(in, &in.c, &ops[3])
	in.fn[modeFull] = selp32
	if in.kd == class64 {
		in.fn[modeFull] = selp64
	}
	d.emit(in)
}

func selp32(w *warp, in *inst) {
	p := w.p[in.c] ^ in.neg
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	switch p {
	case 0:
		*d = *b
		return
	case allLanes:
		*d = *a
		return
	}
	for i := range d {
		t := -(p >> i & 1)
		d[i] = a[i]&t | b[i]&^t
	}
}

func selp64(w *warp, in *inst) {
	p := w.p[in.c] ^ in.neg
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		t := -uint64(p >> i & 1)
		d[i] = a[i]&t | b[i]&^t
	}
}
