package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// pure emits an instruction that computes one destination of type dt from
// sources of the types at, lane by lane. fast is its loop over the lanes; where
// it is nil a general one calls lane.
func (d *decoder) pure(lane laneFn, fast execFn, dt ptx.Type, at ...ptx.Type) *inst {
	ops := d.operands(1+len(at), 1+len(at))
	in := d.new(kindPure)
	in.lane = lane
	in.kd = d.destination(in, &in.d, &ops[0], dt, exact).k
	if in.d == -1 && ops[0].Kind == ptx.OpSink {
		d.refuse("want a register to write")
	}
	fields := []*int32{&in.a, &in.b, &in.c}
	kinds := []*class{&in.ka, &in.kb, &in.kc}
	same := true
	for i, t := range at {
		*kinds[i] = d.source(in, fields[i], &ops[1+i], t, exact).k
		same = same && *kinds[i] == in.kd
	}
	in.fn[modeFull] = fast
	if fast == nil {
		in.fn[modeFull] = lanewise(in.kd, same, len(at))
	}
	d.emit(in)
	return in
}

// lanewise is the general loop for a destination's class.
func lanewise(k class, same bool, n int) execFn {
	switch {
	case k == class32 && same && n == 1:
		return each32x1
	case k == class32 && same:
		return each32
	case k == class64 && same && n == 3:
		return each64
	}
	return eachMixed
}

func each32x1(w *warp, in *inst) {
	f := in.lane
	d, a := &w.r[in.d], &w.r[in.a]
	for i := range d {
		d[i] = uint32(f(uint64(a[i]), 0, 0))
	}
}

func each32(w *warp, in *inst) {
	f := in.lane
	d, a, b, c := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.c]
	for i := range d {
		d[i] = uint32(f(uint64(a[i]), uint64(b[i]), uint64(c[i])))
	}
}

func each64(w *warp, in *inst) {
	f := in.lane
	d, a, b, c := &w.q[in.d], &w.q[in.a], &w.q[in.b], &w.q[in.c]
	for i := range d {
		d[i] = f(a[i], b[i], c[i])
	}
}

func eachMixed(w *warp, in *inst) {
	var a, b, c lanes64
	w.widen(&a, in.ka, in.a)
	w.widen(&b, in.kb, in.b)
	w.widen(&c, in.kc, in.c)
	f := in.lane
	if in.kd == class64 {
		d := &w.q[in.d]
		for i := range d {
			d[i] = f(a[i], b[i], c[i])
		}
		return
	}
	d := &w.r[in.d]
	for i := range d {
		d[i] = uint32(f(a[i], b[i], c[i]))
	}
}

// widen reads a register of any class into 64-bit lanes.
func (w *warp) widen(out *lanes64, k class, slot int32) {
	switch k {
	case class64:
		*out = w.q[slot]
	case class32:
		a := &w.r[slot]
		for i := range a {
			out[i] = uint64(a[i])
		}
	default:
		p := w.p[slot]
		for i := range out {
			out[i] = uint64(p >> i & 1)
		}
	}
}

// testing emits an instruction that computes a predicate lane by lane.
func (d *decoder) testing(lane laneFn, dst *ptx.Operand, src []ptx.Operand, at ...ptx.Type) *inst {
	in := d.new(kindMasked)
	in.lane = lane
	d.predicateDestination(in, &in.d, dst)
	fields := []*int32{&in.a, &in.b, &in.c}
	kinds := []*class{&in.ka, &in.kb, &in.kc}
	for i, t := range at {
		*kinds[i] = d.source(in, fields[i], &src[i], t, exact).k
	}
	in.fn[modeFull] = eachPredicate
	return in
}

func eachPredicate(w *warp, in *inst) {
	var a, b, c lanes64
	w.widen(&a, in.ka, in.a)
	w.widen(&b, in.kb, in.b)
	w.widen(&c, in.kc, in.c)
	var p uint32
	for i := range a {
		p |= uint32(in.lane(a[i], b[i], c[i])&1) << i
	}
	w.setPredicate(in, p)
}

// setPredicate writes an instruction's destination predicate in the active
// lanes.
func (w *warp) setPredicate(in *inst, p uint32) {
	if in.d >= 0 {
		w.p[in.d] = w.p[in.d]&^w.mask | p&w.mask
	}
}
