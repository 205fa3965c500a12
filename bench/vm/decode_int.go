package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

func init() {
	for _, op := range []string{"add", "sub"} {
		decoders[op] = func(d *decoder) { d.addSub(op) }
	}
	for _, op := range []string{"mul", "mad"} {
		decoders[op] = func(d *decoder) { d.multiply(op) }
	}
	for _, op := range []string{"min", "max"} {
		decoders[op] = func(d *decoder) { d.extreme(op) }
	}
	for _, op := range []string{"abs", "neg"} {
		decoders[op] = func(d *decoder) { d.sign(op) }
	}
	for _, op := range []string{"and", "or", "xor", "not"} {
		decoders[op] = func(d *decoder) { d.logic(op) }
	}
	for _, op := range []string{"shl", "shr"} {
		decoders[op] = func(d *decoder) {
			t := d.typ()
			in := d.pure(shift(op, t), fastShift(op, t), t, t, ptx.U32)
			in.rule = ruleShift
		}
	}
	for _, op := range []string{"popc", "clz", "brev"} {
		decoders[op] = func(d *decoder) {
			t := d.typ()
			result := ptx.U32
			if op == "brev" {
				result = t
			}
			d.pure(unary(op, t), nil, result, t)
		}
	}
	for _, op := range []string{"mul24", "mad24"} {
		decoders[op] = func(d *decoder) { d.multiply24(op) }
	}
	for _, op := range []string{"addc", "subc", "madc"} {
		decoders[op] = func(d *decoder) { d.carry(op, true) }
	}
	decoders["rem"] = func(d *decoder) { t := d.typ(); d.pure(integer("rem", t), nil, t, t, t) }
	decoders["cnot"] = func(d *decoder) { t := d.typ(); d.pure(unary("cnot", t), nil, t, t) }
	decoders["sad"] = func(d *decoder) { t := d.typ(); d.pure(sad(t), nil, t, t, t, t) }
	decoders["bfind"] = func(d *decoder) { amount := d.has("shiftamt"); t := d.typ(); d.pure(bfind(t, amount), nil, ptx.U32, t) }
	decoders["bfe"] = func(d *decoder) { t := d.typ(); d.pure(bfe(t), nil, t, t, ptx.U32, ptx.U32).rule = ruleField }
	decoders["bfi"] = (*decoder).bfi
	decoders["lop3"] = (*decoder).lop3
	decoders["prmt"] = func(d *decoder) {
		t := d.typ()
		in := d.pure(prmt(d.take("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")), nil, t, t, t, t)
		in.rule = rulePermute
	}
	decoders["shf"] = func(d *decoder) {
		left := d.take("l", "r") == "l"
		wrap := d.take("clamp", "wrap") == "wrap"
		t := d.typ()
		d.pure(funnel(left, wrap), nil, t, t, t, ptx.U32).rule = ruleFunnel
	}
	decoders["fns"] = func(d *decoder) { d.typ(); d.pure(fns, nil, ptx.B32, ptx.B32, ptx.B32, ptx.S32) }
	decoders["szext"] = func(d *decoder) {
		wrap := d.take("clamp", "wrap") == "wrap"
		t := d.typ()
		d.pure(szext(t.Signed(), wrap), nil, t, t, ptx.U32)
	}
	decoders["clmad"] = func(d *decoder) {
		high := d.take("lo", "hi") == "hi"
		d.typ()
		d.pure(func(a, b, c uint64) uint64 { return carryless(a, b, high) ^ c }, nil, ptx.U64, ptx.U64, ptx.U64, ptx.U64)
	}
	decoders["bmsk"] = func(d *decoder) {
		wrap := d.take("clamp", "wrap") == "wrap"
		t := d.typ()
		d.pure(bmsk(wrap), nil, t, t, ptx.U32)
	}
	decoders["dp4a"] = func(d *decoder) {
		a, b := d.typ(), d.typ()
		d.pure(dot(a, b, 4, 0), nil, ptx.B32, ptx.B32, ptx.B32, ptx.B32)
	}
	decoders["dp2a"] = func(d *decoder) {
		high := 0
		if d.take("lo", "hi") == "hi" {
			high = 2
		}
		a, b := d.typ(), d.typ()
		d.pure(dot(a, b, 2, high), nil, ptx.B32, ptx.B32, ptx.B32, ptx.B32)
	}
}

func (d *decoder) addSub(op string) {
	if d.has("cc") {
		d.carry(op, false)
		return
	}
	round, ftz, sat := d.rounding(), d.has("ftz"), d.has("sat")
	t := d.typ()
	if _, ok := floatOf(t); ok {
		d.floatArithmetic(op, t, floatMode{round: round.mode, ftz: ftz, sat: sat}, 2)
		return
	}
	if round.given || ftz {
		d.refuse("rounding of integers")
	}
	switch {
	case sat:
		d.pure(packed(saturating(op, part(t)), t), nil, t, t, t)
	case part(t) != t:
		d.pure(packed(integer(op, part(t)), t), nil, t, t, t)
	default:
		d.pure(integer(op, t), fastBinary(op, t), t, t, t).rule = ruleSum
	}
}

func (d *decoder) multiply(op string) {
	if d.has("cc") {
		d.carry(op, false)
		return
	}
	part := d.take("lo", "hi", "wide")
	round, ftz, sat := d.rounding(), d.has("ftz"), d.has("sat")
	t := d.typ()
	n := 2
	if op == "mad" {
		n = 3
	}
	if _, ok := floatOf(t); ok {
		if part != "" {
			d.refuse("want no .%s of floating-point numbers", part)
		}
		name := op
		if op == "mad" {
			name = "fma"
		}
		d.floatArithmetic(name, t, floatMode{round: round.mode, ftz: ftz, sat: sat}, n)
		return
	}
	if part == "" {
		d.refuse("want .lo, .hi or .wide")
	}
	wide := t
	if part == "wide" {
		wide = widened(t)
		if wide == ptx.NoType {
			d.refuse("want 16 or 32 bits")
		}
	}
	name := op + "." + part
	switch {
	case sat:
		if op != "mad" || part != "hi" || t != ptx.S32 {
			d.refuse("want .hi.sat.s32")
		}
		d.pure(madHiSat32, nil, t, t, t, t)
	case part == "hi" && n == 2:
		d.pure(integer(name, t), nil, t, t, t)
	case part == "hi":
		d.pure(integer(name, t), nil, t, t, t, t)
	case n == 2:
		d.pure(integer(name, t), fastBinary(name, t), wide, t, t).rule = ruleSum
	default:
		d.pure(integer(name, t), fastBinary(name, t), wide, t, t, wide).rule = ruleSum
	}
}

func widened(t ptx.Type) ptx.Type {
	switch t {
	case ptx.U16:
		return ptx.U32
	case ptx.S16:
		return ptx.S32
	case ptx.U32:
		return ptx.U64
	case ptx.S32:
		return ptx.S64
	}
	return ptx.NoType
}

func (d *decoder) multiply24(op string) {
	high := d.take("lo", "hi") == "hi"
	sat := d.has("sat")
	t := d.typ()
	f := mul24(t.Signed(), high)
	switch {
	case op == "mul24":
		d.pure(func(a, b, _ uint64) uint64 { return f(a, b) }, nil, t, t, t)
	case sat:
		d.pure(func(a, b, c uint64) uint64 { return clamp32(extend(f(a, b), 32) + extend(c, 32)) }, nil, t, t, t, t)
	default:
		d.pure(func(a, b, c uint64) uint64 { return low(f(a, b)+c, 32) }, nil, t, t, t, t)
	}
}

func (d *decoder) extreme(op string) {
	m := floatMode{ftz: d.has("ftz"), nan: d.has("NaN"), xorsign: d.has("xorsign"), abs: d.has("abs"), relu: d.has("relu")}
	t := d.typ()
	if ft, ok := floatOf(t); ok {
		if len(d.src.Operands) == 4 {
			d.pure(extreme3(op == "max", ft, m), nil, t, t, t, t)
			return
		}
		fast := fastExtreme(op, t, m)
		d.pure(extreme(op == "max", ft, m), fast, t, t, t)
		return
	}
	if m != (floatMode{relu: m.relu}) {
		d.refuse("floating-point modifiers of integers")
	}
	f := packed(reluInt(integer(op, part(t)), part(t), m.relu), t)
	fast := fastBinary(op, t)
	if m.relu || part(t) != t {
		fast = nil
	}
	d.pure(f, fast, t, t, t)
}

// reluInt clamps negative results to zero.
func reluInt(f laneFn, t ptx.Type, relu bool) laneFn {
	if !relu {
		return f
	}
	return func(a, b, c uint64) uint64 {
		v := f(a, b, c)
		if extend(v, t.Bits()) < 0 {
			return 0
		}
		return v
	}
}

func (d *decoder) sign(op string) {
	ftz := d.has("ftz")
	t := d.typ()
	ft, ok := floatOf(t)
	switch {
	case part(t) != t:
		d.pure(packed(unary(op, part(t)), t), nil, t, t)
		return
	case !ok:
		d.pure(unary(op, t), fastUnary(op, t), t, t).rule = ruleSum
		return
	}
	sign := uint64(1) << (ft.bits() - 1)
	f := func(a, _, _ uint64) uint64 { return a ^ sign }
	if op == "abs" {
		f = func(a, _, _ uint64) uint64 { return a &^ sign }
	}
	d.pure(floatMode{ftz: ftz}.wrap(ft, f), nil, t, t)
}

func (d *decoder) logic(op string) {
	t := d.typ()
	if t == ptx.Pred {
		d.predicateLogic(op)
		return
	}
	if op == "not" {
		d.pure(unary(op, t), fastUnary(op, t), t, t).rule = ruleBitwise
		return
	}
	var f laneFn
	switch op {
	case "and":
		f = func(a, b, _ uint64) uint64 { return a & b }
	case "or":
		f = func(a, b, _ uint64) uint64 { return a | b }
	case "xor":
		f = func(a, b, _ uint64) uint64 { return a ^ b }
	}
	in := d.pure(f, fastBinary(op, t), t, t, t)
	in.rule = map[string]undefinedRule{"and": ruleAnd, "or": ruleOr, "xor": ruleBitwise}[op]
}

func (d *decoder) predicateLogic(op string) {
	n := 3
	if op == "not" {
		n = 2
	}
	ops := d.operands(n, n)
	in := d.new(kindMasked)
	d.predicateDestination(in, &in.d, &ops[0])
	in.neg = d.predicate(in, &in.a, &ops[1])
	if n == 3 {
		in.imm = uint64(d.predicate(in, &in.b, &ops[2]))
	}
	switch op {
	case "and":
		in.fn[modeFull] = func(w *warp, in *inst) { w.setPredicate(in, (w.p[in.a]^in.neg)&(w.p[in.b]^uint32(in.imm))) }
		in.rule = ruleAndPred
	case "or":
		in.fn[modeFull] = func(w *warp, in *inst) { w.setPredicate(in, (w.p[in.a]^in.neg)|(w.p[in.b]^uint32(in.imm))) }
		in.rule = ruleOrPred
	case "xor":
		in.fn[modeFull] = func(w *warp, in *inst) { w.setPredicate(in, (w.p[in.a]^in.neg)^(w.p[in.b]^uint32(in.imm))) }
	default:
		in.fn[modeFull] = func(w *warp, in *inst) { w.setPredicate(in, ^(w.p[in.a] ^ in.neg)) }
	}
	d.emit(in)
}

func (d *decoder) bfi() {
	t := d.typ()
	ops := d.operands(5, 5)
	in := d.new(kindPure)
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	in.imm = uint64(t.Bits())
	in.list = make([]operand, 4)
	for i, at := range []ptx.Type{t, t, ptx.U32, ptx.U32} {
		o := d.source(in, &in.list[i].slot, &ops[1+i], at, exact)
		in.list[i].k = o.k
	}
	in.rule = ruleInsert
	in.fn[modeFull] = func(w *warp, in *inst) {
		pos, length := &w.r[in.list[2].slot], &w.r[in.list[3].slot]
		if in.kd == class64 {
			d, a, b := &w.q[in.d], &w.q[in.list[0].slot], &w.q[in.list[1].slot]
			for i := range d {
				d[i] = bfi(a[i], b[i], uint64(pos[i]), uint64(length[i]), 64)
			}
			return
		}
		d, a, b := &w.r[in.d], &w.r[in.list[0].slot], &w.r[in.list[1].slot]
		for i := range d {
			d[i] = uint32(bfi(uint64(a[i]), uint64(b[i]), uint64(pos[i]), uint64(length[i]), 32))
		}
	}
	d.emit(in)
}

func (d *decoder) lop3() {
	if combine := d.take("or", "and"); combine != "" {
		d.lop3Predicate(combine)
		return
	}
	t := d.typ()
	ops := d.operands(5, 5)
	in := d.new(kindPure)
	in.kd = d.destination(in, &in.d, &ops[0], t, exact).k
	for i, f := range []*int32{&in.a, &in.b, &in.c} {
		d.source(in, f, &ops[1+i], t, exact)
	}
	table := uint64(d.integer(&ops[4]))
	if table > 255 {
		d.refuse("table %#x: want at most 0xff", table)
	}
	in.imm = table
	in.rule = ruleBitwise
	in.fn[modeFull] = fastLop3
	d.emit(in)
}

// lop3Predicate is lop3.or and lop3.and: `d|p, a, b, c, table, q`, where p says
// whether the result is not zero, combined with q.
func (d *decoder) lop3Predicate(combine string) {
	t := d.typ()
	ops := d.operands(6, 6)
	in := d.new(kindMasked)
	dst := &ops[0]
	if dst.Kind == ptx.OpPair {
		d.predicateDestination(in, &in.d2, &dst.Elems()[1])
		dst = &dst.Elems()[0]
	}
	d.destination(in, &in.d, dst, t, exact)
	for i, f := range []*int32{&in.a, &in.b, &in.c} {
		d.source(in, f, &ops[1+i], t, exact)
	}
	table := uint64(d.integer(&ops[4]))
	in.list = make([]operand, 1)
	neg := d.predicate(in, &in.list[0].slot, &ops[5])
	in.fn[modeFull] = func(w *warp, in *inst) {
		a, b, c := &w.r[in.a], &w.r[in.b], &w.r[in.c]
		q := w.p[in.list[0].slot] ^ neg
		var p uint32
		for m := w.mask; m != 0; m &= m - 1 {
			i := firstLane(m)
			v := uint32(lop3Word(uint64(a[i]), uint64(b[i]), uint64(c[i]), table))
			if v != 0 {
				p |= 1 << i
			}
			if in.d >= 0 {
				w.r[in.d][i] = v
			}
		}
		if combine == "or" {
			p |= q
		} else {
			p &= q
		}
		if in.d2 >= 0 {
			w.p[in.d2] = w.p[in.d2]&^w.mask | p&w.mask
		}
	}
	d.emit(in)
}

// carry is the extended-precision forms: they pass a carry from one to the
// next in a register of its own.
func (d *decoder) carry(op string, reads bool) {
	writes := !reads || d.has("cc")
	part := d.take("lo", "hi")
	t := d.typ()
	n := 3
	if op == "mad" || op == "madc" {
		n = 4
	}
	ops := d.operands(n, n)
	in := d.new(kindMasked)
	k := d.destination(in, &in.d, &ops[0], t, exact).k
	fields := []*int32{&in.a, &in.b, &in.c}
	for i := 1; i < n; i++ {
		d.source(in, fields[i-1], &ops[i], t, exact)
	}
	in.kd, in.ka, in.kb, in.kc = k, k, k, class32
	if n == 4 {
		in.kc = k
	}
	if d.cc < 0 {
		d.cc = d.newValue(value{k: classPred, bits: 1, reg: -1})
	}
	in.list = make([]operand, 1)
	d.bind(&in.list[0].slot, d.cc)
	if reads {
		in.uses = append(in.uses, d.cc)
	}
	if writes {
		in.defs = append(in.defs, d.cc)
	}
	f := carrying(op, part, t)
	in.fn[modeFull] = func(w *warp, in *inst) {
		var a, b, c lanes64
		w.widen(&a, in.ka, in.a)
		w.widen(&b, in.kb, in.b)
		w.widen(&c, in.kc, in.c)
		cc := w.p[in.list[0].slot]
		out := cc
		for m := w.mask; m != 0; m &= m - 1 {
			i := firstLane(m)
			carry := uint64(0)
			if reads {
				carry = uint64(cc >> i & 1)
			}
			v, co := f(a[i], b[i], c[i], carry)
			out = out&^(1<<i) | uint32(co)<<i
			if in.kd == class64 {
				w.q[in.d][i] = v
			} else {
				w.r[in.d][i] = uint32(v)
			}
		}
		if writes {
			w.p[in.list[0].slot] = out
		}
	}
	d.emit(in)
}
