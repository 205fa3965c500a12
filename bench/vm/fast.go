package vm

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// Loops over the lanes for the instructions that programs are made of. Each
// computes what the lane function of the same instruction does; a test compares
// them.

// fastBinary is the loop of an integer or bitwise instruction, or nil.
func fastBinary(op string, t ptx.Type) execFn {
	switch t.Bits() {
	case 32:
		switch op {
		case "add":
			return add32
		case "sub":
			return sub32
		case "mul.lo":
			return mul32
		case "mad.lo":
			return mad32
		case "and":
			return and32
		case "or":
			return or32
		case "xor":
			return xor32
		}
		if t == ptx.S32 {
			switch op {
			case "mul.wide":
				return mulWideS32
			case "mad.wide":
				return madWideS32
			case "min":
				return minS32
			case "max":
				return maxS32
			}
		}
		if t == ptx.U32 {
			switch op {
			case "mul.wide":
				return mulWideU32
			case "mad.wide":
				return madWideU32
			case "min":
				return minU32
			case "max":
				return maxU32
			case "div":
				return divU32
			case "rem":
				return remU32
			}
		}
	case 64:
		switch op {
		case "add":
			return add64
		case "sub":
			return sub64
		case "mul.lo":
			return mul64
		case "mad.lo":
			return mad64
		case "and":
			return and64
		case "or":
			return or64
		case "xor":
			return xor64
		}
	}
	return nil
}

func add32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mad32(w *warp, in *inst) {
	d, a, b, c := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.c]
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func and32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func mulWideS32(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
	}
}

func madWideS32(w *warp, in *inst) {
	d, a, b, c := &w.q[in.d], &w.r[in.a], &w.r[in.b], &w.q[in.c]
	for i := range d {
		d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
	}
}

func mulWideU32(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint64(a[i]) * uint64(b[i])
	}
}

func madWideU32(w *warp, in *inst) {
	d, a, b, c := &w.q[in.d], &w.r[in.a], &w.r[in.b], &w.q[in.c]
	for i := range d {
		d[i] = uint64(a[i])*uint64(b[i]) + c[i]
	}
}

func minS32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint32(min(int32(a[i]), int32(b[i])))
	}
}

func maxS32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint32(max(int32(a[i]), int32(b[i])))
	}
}

func minU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func maxU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func divU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		if b[i] == 0 {
			d[i] = allLanes
			continue
		}
		d[i] = a[i] / b[i]
	}
}

func remU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		if b[i] == 0 {
			d[i] = a[i]
			continue
		}
		d[i] = a[i] % b[i]
	}
}

func add64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mad64(w *warp, in *inst) {
	d, a, b, c := &w.q[in.d], &w.q[in.a], &w.q[in.b], &w.q[in.c]
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func and64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func fastUnary(op string, t ptx.Type) execFn {
	if t.Bits() != 32 {
		return nil
	}
	switch op {
	case "neg":
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.r[in.a]
			for i := range d {
				d[i] = -a[i]
			}
		}
	case "not":
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.r[in.a]
			for i := range d {
				d[i] = ^a[i]
			}
		}
	}
	return nil
}

func fastShift(op string, t ptx.Type) execFn {
	switch {
	case op == "shl" && t.Bits() == 32:
		return shl32
	case op == "shl" && t.Bits() == 64:
		return shl64
	case t == ptx.S32:
		return shrS32
	case t.Bits() == 32:
		return shrU32
	case t == ptx.S64:
		return shrS64
	case t.Bits() == 64:
		return shrU64
	}
	return nil
}

func shl32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shrU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func shrS32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint32(int32(a[i]) >> b[i])
	}
}

func shl64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shrU64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func shrS64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint64(int64(a[i]) >> b[i])
	}
}

// fastLop3 has the common tables as expressions of their own.
func fastLop3(w *warp, in *inst) {
	d, a, b, c := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.c]
	switch in.imm {
	case 0x96: // a ^ b ^ c
		for i := range d {
			d[i] = a[i] ^ b[i] ^ c[i]
		}
	case 0xe8: // majority
		for i := range d {
			d[i] = a[i]&b[i] | a[i]&c[i] | b[i]&c[i]
		}
	case 0xca: // a ? b : c
		for i := range d {
			d[i] = a[i]&b[i] | ^a[i]&c[i]
		}
	case 0xea: // a & b | c
		for i := range d {
			d[i] = a[i]&b[i] | c[i]
		}
	case 0xf8: // a | b & c
		for i := range d {
			d[i] = a[i] | b[i]&c[i]
		}
	case 0x6a: // a & b ^ c
		for i := range d {
			d[i] = a[i]&b[i] ^ c[i]
		}
	case 0x78: // a ^ b & c
		for i := range d {
			d[i] = a[i] ^ b[i]&c[i]
		}
	default:
		for i := range d {
			d[i] = uint32(lop3Word(uint64(a[i]), uint64(b[i]), uint64(c[i]), in.imm))
		}
	}
}

// fastFloat is the loop of f32 and f64 arithmetic without .ftz or .sat, rounded
// to nearest, or nil.
func fastFloat(op string, t ptx.Type, m floatMode) execFn {
	if m != (floatMode{}) {
		return nil
	}
	switch {
	case t == ptx.F32 && op == "add":
		return addF32
	case t == ptx.F32 && op == "sub":
		return subF32
	case t == ptx.F32 && op == "mul":
		return mulF32
	case t == ptx.F32 && op == "fma":
		return fmaF32
	case t == ptx.F64 && op == "fma":
		return fmaF64
	case t == ptx.F64 && op == "add":
		return addF64
	case t == ptx.F64 && op == "mul":
		return mulF64
	}
	return nil
}

// canonicalNaN is the NaN of arithmetic.
var canonicalNaN = math.Float32frombits(nan32)

func addF32(w *warp, in *inst) {
	d, a, b := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32()
	for i := range d {
		x := a[i] + b[i]
		if x != x {
			x = canonicalNaN
		}
		d[i] = x
	}
}

func subF32(w *warp, in *inst) {
	d, a, b := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32()
	for i := range d {
		x := a[i] - b[i]
		if x != x {
			x = canonicalNaN
		}
		d[i] = x
	}
}

func mulF32(w *warp, in *inst) {
	d, a, b := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32()
	for i := range d {
		x := a[i] * b[i]
		if x != x {
			x = canonicalNaN
		}
		d[i] = x
	}
}

func fmaF32(w *warp, in *inst) {
	d, a, b, c := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32(), w.r[in.c].f32()
	for i := range d {
		s := float64(a[i])*float64(b[i]) + float64(c[i])
		u := math.Float64bits(s)
		if u&0x1fffffff == 0x10000000 || u>>52&0x7ff-1 < 896 {
			d[i] = fmaSlow(a[i], b[i], c[i]) // see fma32
			continue
		}
		x := float32(s)
		if x != x {
			x = canonicalNaN
		}
		d[i] = x
	}
}

func fmaSlow(a, b, c float32) float32 {
	x := num.FMA32(a, b, c)
	if x != x {
		return canonicalNaN
	}
	return x
}

func addF64(w *warp, in *inst) {
	d, a, b := w.q[in.d].f64(), w.q[in.a].f64(), w.q[in.b].f64()
	for i := range d {
		x := a[i] + b[i]
		if x != x {
			x = f64(nan64)
		}
		d[i] = x
	}
}

func mulF64(w *warp, in *inst) {
	d, a, b := w.q[in.d].f64(), w.q[in.a].f64(), w.q[in.b].f64()
	for i := range d {
		x := a[i] * b[i]
		if x != x {
			x = f64(nan64)
		}
		d[i] = x
	}
}

func fmaF64(w *warp, in *inst) {
	d, a, b, c := w.q[in.d].f64(), w.q[in.a].f64(), w.q[in.b].f64(), w.q[in.c].f64()
	for i := range d {
		x := math.FMA(a[i], b[i], c[i])
		if x != x {
			x = f64(nan64)
		}
		d[i] = x
	}
}

// fastExtreme is the loop of min.f32 and max.f32, or nil.
func fastExtreme(op string, t ptx.Type, m floatMode) execFn {
	if t != ptx.F32 || m != (floatMode{}) {
		return nil
	}
	if op == "max" {
		return maxF32
	}
	return minF32
}

func maxF32(w *warp, in *inst) {
	d, a, b := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32()
	for i := range d {
		x, y := a[i], b[i]
		switch {
		case x > y:
			d[i] = x
		case y > x:
			d[i] = y
		default:
			d[i] = extremeSlow(x, y, true)
		}
	}
}

func minF32(w *warp, in *inst) {
	d, a, b := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32()
	for i := range d {
		x, y := a[i], b[i]
		switch {
		case x < y:
			d[i] = x
		case y < x:
			d[i] = y
		default:
			d[i] = extremeSlow(x, y, false)
		}
	}
}

// extremeSlow is min and max of equal values, zeros and NaN.
func extremeSlow(x, y float32, greater bool) float32 {
	switch {
	case x != x && y != y:
		return canonicalNaN
	case x != x:
		return y
	case y != y:
		return x
	case math.Signbit(float64(x)) == greater:
		return y
	}
	return x
}

// fastCompare is the loop of a comparison without a second predicate, or nil.
func fastCompare(cmp string, t ptx.Type, ftz bool) execFn {
	if t == ptx.F32 && !ftz {
		switch cmp {
		case "lt":
			return ltF32
		case "gt":
			return gtF32
		}
	}
	switch {
	case t.Bits() == 32 && !t.Float():
		switch cmp {
		case "eq":
			return eq32
		case "ne":
			return ne32
		}
		if t.Signed() {
			switch cmp {
			case "lt":
				return ltS32
			case "le":
				return leS32
			case "gt":
				return gtS32
			case "ge":
				return geS32
			}
		} else {
			switch cmp {
			case "lt", "lo":
				return ltU32
			case "gt", "hi":
				return gtU32
			}
		}
	}
	return nil
}

func ltF32(w *warp, in *inst) {
	a, b := w.r[in.a].f32(), w.r[in.b].f32()
	var p uint32
	for i := range a {
		if a[i] < b[i] {
			p |= 1 << i
		}
	}
	w.setPredicate(in, p)
}

func gtF32(w *warp, in *inst) {
	a, b := w.r[in.a].f32(), w.r[in.b].f32()
	var p uint32
	for i := range a {
		if a[i] > b[i] {
			p |= 1 << i
		}
	}
	w.setPredicate(in, p)
}

func eq32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(a[i]^b[i])-1)>>63) << i
	}
	w.setPredicate(in, p)
}

func ne32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(a[i]^b[i])-1)>>63) << i
	}
	w.setPredicate(in, ^p)
}

func ltS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(a[i]))-int64(int32(b[i])))>>63) << i
	}
	w.setPredicate(in, p)
}

func geS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(a[i]))-int64(int32(b[i])))>>63) << i
	}
	w.setPredicate(in, ^p)
}

func gtS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(b[i]))-int64(int32(a[i])))>>63) << i
	}
	w.setPredicate(in, p)
}

func leS32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32(uint64(int64(int32(b[i]))-int64(int32(a[i])))>>63) << i
	}
	w.setPredicate(in, ^p)
}

func ltU32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(a[i])-uint64(b[i]))>>63) << i
	}
	w.setPredicate(in, p)
}

func gtU32(w *warp, in *inst) {
	a, b := &w.r[in.a], &w.r[in.b]
	var p uint32
	for i := range a {
		p |= uint32((uint64(b[i])-uint64(a[i]))>>63) << i
	}
	w.setPredicate(in, p)
}

// fastEx2 is ex2.approx.f32.
func fastEx2(ftz bool) execFn {
	if ftz {
		return func(w *warp, in *inst) {
			d, a := w.r[in.d].f32(), w.r[in.a].f32()
			for i := range d {
				x := exp2(a[i])
				if x < 0x1p-126 {
					x = 0
				}
				d[i] = x
			}
		}
	}
	return func(w *warp, in *inst) {
		d, a := w.r[in.d].f32(), w.r[in.a].f32()
		for i := range d {
			d[i] = exp2(a[i])
		}
	}
}

// exp2 is 2^x: the Taylor series of 2^f on [-1/2, 1/2], whose error in float64
// is below 2^-47, times a power of two.
func exp2(x float32) float32 {
	switch {
	case x != x:
		return canonicalNaN
	case x >= 128:
		return float32(math.Inf(1))
	case x < -152:
		return 0
	}
	const toInteger = 0x1.8p52 // adding it rounds to whole numbers
	t := float64(x)
	r := t + toInteger
	f := t - (r - toInteger)
	p := 1.0 / 39916800 * ln2To11
	p = p*f + 1.0/3628800*ln2To10
	p = p*f + 1.0/362880*ln2To9
	p = p*f + 1.0/40320*ln2To8
	p = p*f + 1.0/5040*ln2To7
	p = p*f + 1.0/720*ln2To6
	p = p*f + 1.0/120*ln2To5
	p = p*f + 1.0/24*ln2To4
	p = p*f + 1.0/6*ln2To3
	p = p*f + 1.0/2*ln2To2
	p = p*f + math.Ln2
	p = p*f + 1
	n := int64(math.Float64bits(r)<<13) >> 13 // the low bits of r
	return float32(p * math.Float64frombits(uint64(n+1023)<<52))
}

const (
	ln2To2  = math.Ln2 * math.Ln2
	ln2To3  = ln2To2 * math.Ln2
	ln2To4  = ln2To3 * math.Ln2
	ln2To5  = ln2To4 * math.Ln2
	ln2To6  = ln2To5 * math.Ln2
	ln2To7  = ln2To6 * math.Ln2
	ln2To8  = ln2To7 * math.Ln2
	ln2To9  = ln2To8 * math.Ln2
	ln2To10 = ln2To9 * math.Ln2
	ln2To11 = ln2To10 * math.Ln2
)
