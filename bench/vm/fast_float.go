package vm

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

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

// canonicalF32 copies numbers, and makes every NaN the one of arithmetic.
func canonicalF32(d, a *[warpSize]float32) {
	if vectorLanes {
		canonicalF32Vector(d, a)
		return
	}
	for i, x := range a {
		if x != x {
			x = canonicalNaN
		}
		d[i] = x
	}
}

func addF32(w *warp, in *inst) {
	d, a, b := w.r[in.d].f32(), w.r[in.a].f32(), w.r[in.b].f32()
	if vectorLanes {
		addF32Vector(d, a, b)
		return
	}
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
	if vectorLanes {
		subF32Vector(d, a, b)
		return
	}
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
	if vectorLanes {
		mulF32Vector(d, a, b)
		return
	}
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
	if vectorLanes {
		fmaF32Vector(d, a, b, c)
		return
	}
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
