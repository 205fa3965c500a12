package vm

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

func init() {
	decoders["fma"] = func(d *decoder) {
		round := d.rounding()
		m := floatMode{round: round.mode, ftz: d.has("ftz"), sat: d.has("sat"), relu: d.has("relu")}
		oob := d.has("oob")
		t := d.typ()
		if ft, ok := floatOf(t); ok && oob {
			d.pure(outOfBounds(ft, m), nil, t, t, t, t)
			return
		}
		d.floatArithmetic("fma", t, m, 3)
	}
	decoders["div"] = (*decoder).divide
	for _, op := range []string{"rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"} {
		decoders[op] = func(d *decoder) { d.special1(op) }
	}
	decoders["copysign"] = func(d *decoder) {
		t := d.typ()
		sign := uint64(1) << (t.Bits() - 1)
		d.pure(func(a, b, _ uint64) uint64 { return b&^sign | a&sign }, nil, t, t, t)
	}
	decoders["testp"] = (*decoder).testp
	decoders["setp"] = (*decoder).setp
	decoders["set"] = (*decoder).set
	decoders["slct"] = (*decoder).slct
}

// givenRounding is a rounding modifier and whether it was there.
type givenRounding struct {
	mode  num.Rounding
	given bool
}

func (d *decoder) rounding() givenRounding {
	switch d.take("rn", "rz", "rm", "rp", "rna") {
	case "rn":
		return givenRounding{num.Even, true}
	case "rz":
		return givenRounding{num.Zero, true}
	case "rm":
		return givenRounding{num.Down, true}
	case "rp":
		return givenRounding{num.Up, true}
	case "rna":
		return givenRounding{num.Away, true}
	}
	return givenRounding{}
}

func (d *decoder) floatArithmetic(op string, t ptx.Type, m floatMode, n int) {
	ft, ok := floatOf(t)
	if !ok {
		d.refuse("type .%s: want a floating-point type", t)
	}
	at := []ptx.Type{t, t, t}
	if narrow := d.optionalType(); narrow != ptx.NoType {
		nt, _ := floatOf(narrow)
		for i := range n - 1 {
			at[i] = narrow
		}
		d.pure(mixed(op, nt, m), nil, t, at[:n]...)
		return
	}
	d.pure(arithmetic(op, ft, m), fastFloat(op, t, m), t, at[:n]...)
}

func (d *decoder) divide() {
	approx := d.take("approx", "full")
	round := d.rounding()
	ftz := d.has("ftz")
	t := d.typ()
	ft, ok := floatOf(t)
	if !ok {
		d.pure(integer("div", t), fastBinary("div", t), t, t, t)
		return
	}
	if ft.f != num.F32 && !ft.wide || ft.packed {
		d.refuse("type .%s: want .f32 or .f64", t)
	}
	m := floatMode{round: round.mode, ftz: ftz}
	f := quotient(ft, m)
	if off := d.perturbation("div", t); off != nil && approx != "" {
		f = perturbedQuotient(off, m)
	}
	if approx == "approx" {
		exact := f
		// PTX: for a divisor above 2^126 the result is 0 (NaN of an infinity).
		f = func(a, b, c uint64) uint64 {
			if y := math.Abs(float64(f32(b))); y > 0x1p126 && !math.IsInf(y, 0) {
				if math.IsInf(float64(f32(a)), 0) || f32(a) != f32(a) {
					return nan32
				}
				return (a ^ b) & (1 << 31)
			}
			return exact(a, b, c)
		}
	}
	d.pure(f, nil, t, t, t)
}

// special1 is rcp, sqrt and the other functions of one argument.
func (d *decoder) special1(op string) {
	approx := d.has("approx")
	round := d.rounding()
	m := floatMode{round: round.mode, ftz: d.has("ftz")}
	t := d.typ()
	ft, ok := floatOf(t)
	if !ok {
		d.refuse("type .%s: want a floating-point type", t)
	}
	var f laneFn
	var off func(x, y float64) float64
	switch {
	case approx:
		off = d.perturbation(op, t)
		f = approximation(op, ft, m, off)
		if ft.wide && m.ftz { // rcp and rsqrt.approx.ftz.f64 look at the upper half alone
			whole := f
			f = func(a, _, _ uint64) uint64 { return whole(a>>32<<32, 0, 0) >> 32 << 32 }
		}
	case op == "rcp":
		q := quotient(ft, m)
		one := bits32(1)
		if ft.wide {
			one = bits64(1)
		}
		f = func(a, _, _ uint64) uint64 { return q(one, a, 0) }
	case op == "sqrt":
		f = root(ft, m)
	default:
		d.refuse("want .approx")
	}
	var fast execFn
	if op == "ex2" && t == ptx.F32 && off == nil {
		fast = fastEx2(m.ftz)
	}
	d.pure(f, fast, t, t)
}

func (d *decoder) testp() {
	name := d.take("finite", "infinite", "number", "notanumber", "normal", "subnormal")
	t := d.typ()
	ft, ok := floatOf(t)
	if !ok || name == "" {
		d.refuse("want a property such as .finite, and .f32 or .f64")
	}
	is := property(name, ft)
	ops := d.operands(2, 2)
	d.emit(d.testing(func(a, _, _ uint64) uint64 { return truth(is(a)) }, &ops[0], ops[1:], t))
}

var comparisons = []string{
	"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
	"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
}

// setp compares, and may combine the result with a predicate; a second
// destination gets the negation combined.
func (d *decoder) setp() {
	cmp := d.take(comparisons...)
	combine := d.take("and", "or", "xor")
	ftz := d.has("ftz")
	t := d.typ()
	n := 3
	if combine != "" {
		n = 4
	}
	ops := d.operands(n, n)
	dst := []ptx.Operand{ops[0]}
	if ops[0].Kind == ptx.OpPair {
		dst = ops[0].Elems()
	}
	if t == ptx.F16x2 || t == ptx.BF16x2 {
		d.setpPacked(cmp, combine, ftz, t, dst, ops)
		return
	}
	lane := comparison(cmp, t, ftz)
	if lane == nil {
		d.refuse("comparison .%s of .%s", cmp, t)
	}
	in := d.testing(lane, &dst[0], ops[1:3], t, t)
	if combine == "" && len(dst) == 1 {
		if f := fastCompare(cmp, t, ftz); f != nil {
			in.fn[modeFull] = f
		}
		d.emit(in)
		return
	}
	d.combinedWith(in, combine, dst, ops)
	in.fn[modeFull] = func(w *warp, in *inst) {
		var a, b lanes64
		w.widen(&a, in.ka, in.a)
		w.widen(&b, in.kb, in.b)
		var p uint32
		for i := range a {
			p |= uint32(lane(a[i], b[i], 0)) << i
		}
		w.combine(in, combine, p, ^p)
	}
	d.emit(in)
}

// combinedWith adds setp's second destination and its source predicate.
func (d *decoder) combinedWith(in *inst, combine string, dst, ops []ptx.Operand) {
	if len(dst) == 2 {
		d.predicateDestination(in, &in.d2, &dst[1])
	}
	if combine != "" {
		in.neg = d.predicate(in, &in.c, &ops[3])
	}
}

// combine writes both results of a setp.
func (w *warp) combine(in *inst, how string, p, q uint32) {
	switch how {
	case "and":
		c := w.p[in.c] ^ in.neg
		p, q = p&c, q&c
	case "or":
		c := w.p[in.c] ^ in.neg
		p, q = p|c, q|c
	case "xor":
		c := w.p[in.c] ^ in.neg
		p, q = p^c, q^c
	}
	w.setPredicate(in, p)
	if in.d2 >= 0 {
		w.p[in.d2] = w.p[in.d2]&^w.mask | q&w.mask
	}
}

// setpPacked compares halves: the first destination is of the lower.
func (d *decoder) setpPacked(cmp, combine string, ftz bool, t ptx.Type, dst, ops []ptx.Operand) {
	half := ptx.F16
	if t == ptx.BF16x2 {
		half = ptx.BF16
	}
	lane := comparison(cmp, half, ftz)
	if lane == nil {
		d.refuse("comparison .%s of .%s", cmp, t)
	}
	in := d.testing(lane, &dst[0], ops[1:3], t, t)
	d.combinedWith(in, combine, dst, ops)
	in.fn[modeFull] = func(w *warp, in *inst) {
		a, b := &w.r[in.a], &w.r[in.b]
		var p, q uint32
		for i := range a {
			p |= uint32(lane(uint64(a[i]&0xffff), uint64(b[i]&0xffff), 0)) << i
			q |= uint32(lane(uint64(a[i]>>16), uint64(b[i]>>16), 0)) << i
		}
		w.combine(in, combine, p, q)
	}
	d.emit(in)
}

// set compares into a register: all ones, or 1.0. It may combine the result
// with a predicate first.
func (d *decoder) set() {
	cmp := d.take(comparisons...)
	combine := d.take("and", "or", "xor")
	ftz := d.has("ftz")
	dt, t := d.typ(), d.typ()
	ft, isFloat := floatOf(dt)
	one := low(^uint64(0), dt.Bits())
	if isFloat {
		one = ft.encode(1, num.Even)
	}
	at := t
	switch t {
	case ptx.F16x2:
		at = ptx.F16
	case ptx.BF16x2:
		at = ptx.BF16
	}
	lane := comparison(cmp, at, ftz)
	if lane == nil {
		d.refuse("comparison .%s of .%s", cmp, t)
	}
	if combine == "" {
		f := func(a, b, _ uint64) uint64 { return -lane(a, b, 0) & one }
		if at != t {
			if !isFloat {
				one = 0xffff
			}
			f = halves(f)
		}
		d.pure(f, nil, dt, t, t)
		return
	}
	ops := d.operands(4, 4)
	in := d.new(kindPure)
	in.kd = d.destination(in, &in.d, &ops[0], dt, exact).k
	in.ka = d.source(in, &in.a, &ops[1], t, exact).k
	in.kb = d.source(in, &in.b, &ops[2], t, exact).k
	in.kc = classPred
	flip := uint64(d.predicate(in, &in.c, &ops[3]) & 1)
	f := func(a, b, c uint64) uint64 { return -combined(combine, lane(a, b, 0), c^flip) & one }
	in.lane = f
	if at != t {
		if !isFloat {
			one = 0xffff
		}
		in.lane = func(a, b, c uint64) uint64 {
			return f(a&0xffff, b&0xffff, c) | f(a>>16, b>>16, c)<<16
		}
	}
	in.fn[modeFull] = eachMixed
	d.emit(in)
}

// combined is a comparison's result and a predicate, each 0 or 1.
func combined(how string, p, c uint64) uint64 {
	switch how {
	case "and":
		return p & c
	case "or":
		return p | c
	}
	return p ^ c
}

// slct picks by the sign of c.
func (d *decoder) slct() {
	ftz := d.has("ftz")
	t, ct := d.typ(), d.typ()
	f := func(a, b, c uint64) uint64 {
		if extend(c, 32) >= 0 {
			return a
		}
		return b
	}
	if ct == ptx.F32 {
		f = func(a, b, c uint64) uint64 {
			if ftz {
				c = flush32(c)
			}
			if f32(c) >= 0 {
				return a
			}
			return b
		}
	}
	d.pure(f, nil, t, t, t, ct)
}
