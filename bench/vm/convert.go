package vm

import (
	"math"
	"math/bits"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

func init() { decoders["cvt"] = (*decoder).wideCvt }

// cvtMode is the modifiers of a conversion.
type cvtMode struct {
	floatMode
	satfinite bool
	given     bool // a rounding
	integer   bool // round to a whole number: .rni and the like

	stochastic bool // .rs
}

func (d *decoder) cvtMode() cvtMode {
	var m cvtMode
	switch d.take("rni", "rzi", "rmi", "rpi") {
	case "rni":
		m.integer, m.round = true, num.Even
	case "rzi":
		m.integer, m.round = true, num.Zero
	case "rmi":
		m.integer, m.round = true, num.Down
	case "rpi":
		m.integer, m.round = true, num.Up
	default:
		r := d.rounding()
		m.round, m.given, m.stochastic = r.mode, r.given, d.has("rs")
	}
	m.ftz, m.sat, m.relu, m.satfinite = d.has("ftz"), d.has("sat"), d.has("relu"), d.has("satfinite")
	return m
}

func (d *decoder) cvt() {
	if d.has("pack") {
		d.cvtPack()
		return
	}
	m := d.cvtMode()
	dt, at := d.typ(), d.typ()
	switch {
	case fourOf(dt) != nil && at == ptx.F32:
		d.cvtFour(m, dt)
	case smallOf(dt).width+smallOf(at).width > 0 || dt == ptx.TF32 || dt == ptx.F16x2 || dt == ptx.BF16x2:
		d.cvtSmall(m, dt, at)
	default:
		f := conversion(m, dt, at)
		if f == nil {
			d.refuse("want number types")
		}
		d.convert(f, dt, at, fastConvert(m, dt, at))
	}
}

// convert emits a conversion. Registers may be wider than the types.
func (d *decoder) convert(f laneFn, dt, at ptx.Type, fast execFn) *inst {
	ops := d.operands(2, 2)
	in := d.new(kindPure)
	o := d.destination(in, &in.d, &ops[0], dt, wider)
	a := d.source(in, &in.a, &ops[1], at, wider)
	in.kd, in.ka = o.k, a.k
	in.rule = ruleConvert
	in.imm = uint64(at.Bits())
	exactWidths := int(o.bits) == dt.Bits() && int(a.bits) == at.Bits()
	if fast != nil && exactWidths {
		in.fn[modeFull] = fast
		in.lane = f
		d.emit(in)
		return in
	}
	in.rule = ruleAll
	n, width := at.Bits(), int(o.bits)
	switch {
	case dt.Signed() && width > dt.Bits():
		in.lane = func(a, _, _ uint64) uint64 { return low(uint64(extend(f(low(a, n), 0, 0), dt.Bits())), width) }
	default:
		in.lane = func(a, _, _ uint64) uint64 { return f(low(a, n), 0, 0) }
	}
	if !at.Float() && !dt.Float() && !d.satInteger(in) {
		in.rule = ruleConvert
	}
	in.fn[modeFull] = lanewise(in.kd, in.ka == in.kd, 1)
	if in.fn[modeFull] == nil {
		in.fn[modeFull] = eachMixed
	}
	d.emit(in)
	return in
}

// satInteger says whether the instruction being decoded saturates.
func (d *decoder) satInteger(*inst) bool {
	for _, w := range d.words {
		if w == "sat" {
			return true
		}
	}
	return false
}

// conversion is the lane function of cvt between integers, f16, bf16, f32 and
// f64; nil for other types.
func conversion(m cvtMode, dt, at ptx.Type) laneFn {
	df, dFloat := floatOf(dt)
	af, aFloat := floatOf(at)
	intType := func(t ptx.Type) bool {
		return t.Signed() || t.Unsigned() || t == ptx.B8 || t == ptx.B16 || t == ptx.B32 || t == ptx.B64
	}
	switch {
	case dFloat && aFloat:
		return func(a, _, _ uint64) uint64 { return floatToFloat(m, df, af, a) }
	case aFloat && intType(dt):
		return func(a, _, _ uint64) uint64 {
			if m.ftz {
				a = af.flush(a)
			}
			return floatToInt(af.value(a), m.round, dt, af.wide)
		}
	case dFloat && intType(at):
		n := at.Bits()
		return func(a, _, _ uint64) uint64 {
			neg := at.Signed() && extend(a, n) < 0
			if neg {
				a = uint64(-extend(a, n))
			}
			return m.finish(df, intToFloat(a, neg, m.round, df))
		}
	case intType(dt) && intType(at):
		return intToInt(m.sat, dt, at)
	}
	return nil
}

func intToInt(sat bool, dt, at ptx.Type) laneFn {
	n, dn := at.Bits(), dt.Bits()
	wide := func(a uint64) uint64 {
		if at.Signed() {
			return uint64(extend(a, n))
		}
		return a
	}
	if !sat {
		return func(a, _, _ uint64) uint64 { return low(wide(a), dn) }
	}
	least, most := int64(0), uint64(math.MaxUint64)>>(64-dn)
	if dt.Signed() {
		most >>= 1
		least = -1 - int64(most)
	}
	return func(a, _, _ uint64) uint64 {
		v := wide(a)
		if at.Signed() && int64(v) < 0 {
			return low(uint64(max(int64(v), least)), dn)
		}
		return min(v, most)
	}
}

// whole rounds to a whole number.
func whole(x float64, mode num.Rounding) float64 {
	switch mode {
	case num.Even:
		return math.RoundToEven(x)
	case num.Zero:
		return math.Trunc(x)
	case num.Down:
		return math.Floor(x)
	case num.Up:
		return math.Ceil(x)
	}
	return math.Round(x)
}

// floatToInt rounds and saturates. NaN gives 0, or the highest bit alone where
// either side has 64 bits.
func floatToInt(x float64, mode num.Rounding, dt ptx.Type, wide bool) uint64 {
	n := dt.Bits()
	if x != x {
		if wide || n == 64 {
			return 1 << (n - 1)
		}
		return 0
	}
	x = whole(x, mode)
	if dt.Signed() {
		limit := math.Ldexp(1, n-1)
		switch {
		case x >= limit:
			return 1<<(n-1) - 1
		case x < -limit:
			return 1 << (n - 1)
		}
		return low(uint64(int64(x)), n)
	}
	switch {
	case x <= 0:
		return 0
	case x >= math.Ldexp(1, n):
		return low(^uint64(0), n)
	case x >= 1<<63:
		return uint64(x-1<<63) + 1<<63
	}
	return uint64(x)
}

// intToFloat rounds an integer's magnitude once.
func intToFloat(v uint64, neg bool, mode num.Rounding, t floatType) uint64 {
	x := 0.0
	if extra := bits.Len64(v) - 53; extra > 0 {
		rest := v & (1<<extra - 1)
		m := v >> extra
		if t.wide {
			half := uint64(1) << (extra - 1)
			switch {
			case mode == num.Even && (rest > half || rest == half && m&1 == 1),
				mode == num.Up && !neg && rest != 0, mode == num.Down && neg && rest != 0:
				m++
			}
		} else if rest != 0 {
			m |= 1 // to odd: the rounding proper follows
		}
		x = math.Ldexp(float64(m), extra)
	} else {
		x = float64(v)
	}
	if neg {
		x = -x
	}
	return t.encode(x, mode)
}

// floatToFloat rounds to another format, or to a whole number. Of the two formats
// .ftz is for f32 alone (PTX ISA 9.7.9.21).
func floatToFloat(m cvtMode, dt, at floatType, a uint64) uint64 {
	if m.ftz && at.f == num.F32 && !at.wide {
		a = at.flush(a)
	}
	m.ftz = m.ftz && dt.f == num.F32 && !dt.wide
	if dt == at && !m.integer {
		if x := at.value(a); x != x && (m.sat || m.relu || m.given) {
			a = dt.nan()
		}
		return m.finish(dt, a)
	}
	x := at.value(a)
	if m.integer {
		x = whole(x, m.round)
	}
	if m.satfinite {
		return m.finish(dt, uint64(dt.f.Encode(x, m.round, true)))
	}
	return m.finish(dt, dt.encode(x, m.round))
}

// cvtPack saturates two values and puts them below a third.
func (d *decoder) cvtPack() {
	d.has("sat")
	ct := d.typ()
	at := d.typ()
	rest := d.optionalType()
	n := 3
	if rest != ptx.NoType {
		n = 4
	}
	d.operands(n, n)
	size := ct.Bits()
	least, most := int64(0), int64(1)<<size-1
	if ct.Signed() {
		least, most = -1<<(size-1), 1<<(size-1)-1
	}
	clamp := func(a uint64) uint64 { return low(uint64(max(min(extend(a, 32), most), least)), size) }
	f := func(a, b, c uint64) uint64 {
		return (c<<(2*size) | clamp(a)<<size | clamp(b)) & 0xffffffff
	}
	if n == 3 {
		d.pure(f, nil, ptx.B32, at, at)
		return
	}
	d.pure(f, nil, ptx.B32, at, at, ptx.B32)
}

// fastConvert is the loop of a common conversion, or nil.
func fastConvert(m cvtMode, dt, at ptx.Type) execFn {
	if m.sat || m.ftz || m.relu || m.satfinite {
		return nil
	}
	switch {
	case dt.Bits() == 64 && !dt.Float() && at == ptx.S32:
		return func(w *warp, in *inst) {
			d, a := &w.q[in.d], &w.r[in.a]
			for i := range d {
				d[i] = uint64(int64(int32(a[i])))
			}
		}
	case dt.Bits() == 64 && !dt.Float() && (at == ptx.U32 || at == ptx.B32):
		return func(w *warp, in *inst) {
			d, a := &w.q[in.d], &w.r[in.a]
			for i := range d {
				d[i] = uint64(a[i])
			}
		}
	case dt.Bits() == 32 && !dt.Float() && at.Bits() == 64 && !at.Float():
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.q[in.a]
			for i := range d {
				d[i] = uint32(a[i])
			}
		}
	case dt == ptx.F32 && at == ptx.F16:
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.r[in.a]
			for i := range d {
				x := math.Float32bits(num.F16ToF32(uint16(a[i])))
				if x&0x7fffffff > 0x7f800000 {
					x = nan32
				}
				d[i] = x
			}
		}
	case dt == ptx.F32 && at == ptx.BF16:
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.r[in.a]
			for i := range d {
				x := a[i] << 16
				if x&0x7fffffff > 0x7f800000 {
					x = nan32
				}
				d[i] = x
			}
		}
	case dt == ptx.F16 && at == ptx.F32 && m.round == num.Even && !m.integer:
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], w.r[in.a].f32()
			for i := range d {
				d[i] = uint32(num.F16FromF32(a[i]))
			}
		}
	case dt == ptx.BF16 && at == ptx.F32 && m.round == num.Even && !m.integer:
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], w.r[in.a].f32()
			for i := range d {
				d[i] = uint32(num.BF16FromF32(a[i]))
			}
		}
	case dt == ptx.F32 && at == ptx.S32 && m.round == num.Even:
		return func(w *warp, in *inst) {
			d, a := w.r[in.d].f32(), &w.r[in.a]
			for i := range d {
				d[i] = float32(int32(a[i]))
			}
		}
	}
	return nil
}

// fastPairs is the loop of cvt.rn.f16x2.f32 and cvt.rn.bf16x2.f32, or nil.
func fastPairs(m cvtMode, dt ptx.Type) execFn {
	if m.floatMode != (floatMode{}) || m.satfinite {
		return nil
	}
	if dt == ptx.F16x2 {
		return func(w *warp, in *inst) {
			d, a, b := &w.r[in.d], w.r[in.a].f32(), w.r[in.b].f32()
			for i := range d {
				d[i] = uint32(num.F16FromF32(b[i])) | uint32(num.F16FromF32(a[i]))<<16
			}
		}
	}
	return func(w *warp, in *inst) {
		d, a, b := &w.r[in.d], w.r[in.a].f32(), w.r[in.b].f32()
		for i := range d {
			d[i] = uint32(num.BF16FromF32(b[i])) | uint32(num.BF16FromF32(a[i]))<<16
		}
	}
}
