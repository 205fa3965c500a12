package vm

import (
	"math"
	"math/big"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// What the floating-point instructions compute in one lane. A float format's
// values are widened to float64, which holds f16, bf16 and f32 exactly, and the
// result is rounded once.

const (
	nan32 = 0x7fffffff // what f32 arithmetic gives for NaN
	nan16 = 0x7fff
	nan64 = 0x7fffffffffffffff
)

func f32(v uint64) float32    { return math.Float32frombits(uint32(v)) }
func bits32(x float32) uint64 { return uint64(math.Float32bits(x)) }
func f64(v uint64) float64    { return math.Float64frombits(v) }
func bits64(x float64) uint64 { return math.Float64bits(x) }
func flush32(v uint64) uint64 { // a subnormal as a zero of its sign
	if v&0x7f800000 == 0 {
		return v & 0x80000000
	}
	return v
}

// floatType is a floating-point type of one or two values.
type floatType struct {
	f      num.Format // where wide is not set
	wide   bool       // f64
	packed bool
}

func floatOf(t ptx.Type) (floatType, bool) {
	switch t {
	case ptx.F16:
		return floatType{f: num.F16}, true
	case ptx.F16x2:
		return floatType{f: num.F16, packed: true}, true
	case ptx.BF16:
		return floatType{f: num.BF16}, true
	case ptx.BF16x2:
		return floatType{f: num.BF16, packed: true}, true
	case ptx.F32:
		return floatType{f: num.F32}, true
	case ptx.F32x2:
		return floatType{f: num.F32, packed: true}, true
	case ptx.F64:
		return floatType{wide: true}, true
	}
	return floatType{}, false
}

func (t floatType) bits() int {
	if t.wide {
		return 64
	}
	return t.f.Bits()
}

// value widens an encoding.
func (t floatType) value(v uint64) float64 {
	switch {
	case t.wide:
		return f64(v)
	case t.f == num.F32:
		return float64(f32(v))
	case t.f == num.F16:
		return float64(num.F16ToF32(uint16(v)))
	}
	return float64(num.BF16ToF32(uint16(v)))
}

// encode rounds to the type.
func (t floatType) encode(x float64, mode num.Rounding) uint64 {
	if t.wide {
		if x != x {
			return nan64
		}
		return bits64(x)
	}
	return uint64(t.f.Encode(x, mode, false))
}

// flush turns a subnormal encoding into a zero of its sign.
func (t floatType) flush(v uint64) uint64 {
	n, m := t.bits(), 52
	if !t.wide {
		m = t.f.Mantissa()
	}
	exponent := (uint64(1)<<(n-1) - 1) &^ (1<<m - 1)
	if v&exponent == 0 {
		return v & (1 << (n - 1))
	}
	return v
}

func (t floatType) nan() uint64 {
	switch {
	case t.wide:
		return nan64
	case t.f == num.F32:
		return nan32
	}
	return nan16
}

// floatMode is the modifiers of a floating-point instruction.
type floatMode struct {
	round     num.Rounding
	ftz       bool
	sat, relu bool
	nan       bool // min, max: NaN wins
	xorsign   bool
	abs       bool
}

// finish applies .sat, .relu and .ftz to a result.
func (m floatMode) finish(t floatType, v uint64) uint64 {
	if m.ftz {
		v = t.flush(v)
	}
	if !m.sat && !m.relu {
		return v
	}
	x := t.value(v)
	switch {
	case m.sat && (x != x || x <= 0):
		return 0
	case m.sat && x > 1:
		return t.encode(1, num.Even)
	case m.relu && x != x:
		return t.nan()
	case m.relu && (x < 0 || x == 0 && math.Signbit(x)):
		return 0
	}
	return v
}

// wrap makes a lane function of one on single encodings: flushes operands,
// finishes the result, and splits packed values.
func (m floatMode) wrap(t floatType, f laneFn) laneFn {
	g := f
	if m.ftz || m.sat || m.relu {
		g = func(a, b, c uint64) uint64 {
			if m.ftz {
				a, b, c = t.flush(a), t.flush(b), t.flush(c)
			}
			return m.finish(t, f(a, b, c))
		}
	}
	return t.each(g)
}

// each applies a lane function on single encodings to both values of a packed
// type.
func (t floatType) each(f laneFn) laneFn {
	switch {
	case !t.packed:
		return f
	case t.f == num.F32:
		return func(a, b, c uint64) uint64 {
			return f(low(a, 32), low(b, 32), low(c, 32)) | f(a>>32, b>>32, c>>32)<<32
		}
	}
	return halves(f)
}

// arithmetic is add, sub, mul and fma.
func arithmetic(op string, t floatType, m floatMode) laneFn {
	var f laneFn
	switch {
	case t.wide && m.round == num.Even:
		f = arithmetic64(op)
	case t.wide:
		f = directed64(op, m.round)
	case t.f == num.F32 && m.round == num.Even:
		f = arithmetic32(op)
	default:
		f = func(a, b, c uint64) uint64 {
			x, y, z := float32(t.value(a)), float32(t.value(b)), float32(t.value(c))
			r := odd(op, x, y, z)
			if r == 0 && m.round == num.Down && cancels(op, x, y, z) {
				r = math.Copysign(0, -1)
			}
			return t.encode(r, m.round)
		}
	}
	return m.wrap(t, f)
}

// mixed is add, sub and fma of f32 where all operands but the last are of a
// narrower type; sub takes its first operand from the second, f32 one's place:
// a - c.
func mixed(op string, narrow floatType, m floatMode) laneFn {
	single := floatType{f: num.F32}
	whole := arithmetic(op, single, m)
	return func(a, b, c uint64) uint64 {
		a = bits32(float32(narrow.value(a)))
		if op == "fma" {
			b = bits32(float32(narrow.value(b)))
		}
		return whole(a, b, c)
	}
}

// outOfBounds is .oob: where a factor is what tensor copies fill elements
// outside with, the result is zero.
func outOfBounds(t floatType, m floatMode) laneFn {
	one := t
	one.packed = false
	f := arithmetic("fma", one, m)
	return t.each(func(a, b, c uint64) uint64 {
		if a == oobNaN || b == oobNaN {
			return 0
		}
		return f(a, b, c)
	})
}

// oobNaN is the NaN that tensor copies fill f16 and bf16 elements outside with:
// see nanOf. PTX does not say which one it is.
const oobNaN = 0x7fff

// odd computes on f32 values, rounding to odd: see num.FMAOdd.
func odd(op string, x, y, z float32) float64 {
	switch op {
	case "add":
		return num.FMAOdd(x, 1, y)
	case "sub":
		return num.FMAOdd(y, -1, x)
	case "mul":
		return float64(x) * float64(y) // exact
	}
	return num.FMAOdd(x, y, z)
}

// cancels says whether a zero result is the sum of values of unlike sign.
func cancels(op string, x, y, z float32) bool {
	p, q := float64(x), float64(y)
	switch op {
	case "sub":
		q = -q
	case "mul":
		return false
	case "fma":
		p, q = p*q, float64(z)
	}
	return math.Signbit(p) != math.Signbit(q)
}

func arithmetic32(op string) laneFn {
	canonical := func(x float32) uint64 {
		if x != x {
			return nan32
		}
		return bits32(x)
	}
	switch op {
	case "add":
		return func(a, b, _ uint64) uint64 { return canonical(f32(a) + f32(b)) }
	case "sub":
		return func(a, b, _ uint64) uint64 { return canonical(f32(a) - f32(b)) }
	case "mul":
		return func(a, b, _ uint64) uint64 { return canonical(float32(f32(a) * f32(b))) }
	}
	return func(a, b, c uint64) uint64 { return canonical(fma32(f32(a), f32(b), f32(c))) }
}

// fma32 is a*b + c rounded once. The product is exact in float64; the sum is
// not, and rounding it to float32 goes wrong only where it lies half-way
// between two of them, or among the subnormal ones.
func fma32(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	u := math.Float64bits(s)
	if u&0x1fffffff == 0x10000000 || u>>52&0x7ff-1 < 896 {
		return num.FMA32(a, b, c)
	}
	return float32(s)
}

func arithmetic64(op string) laneFn {
	canonical := func(x float64) uint64 {
		if x != x {
			return nan64
		}
		return bits64(x)
	}
	switch op {
	case "add":
		return func(a, b, _ uint64) uint64 { return canonical(f64(a) + f64(b)) }
	case "sub":
		return func(a, b, _ uint64) uint64 { return canonical(f64(a) - f64(b)) }
	case "mul":
		return func(a, b, _ uint64) uint64 { return canonical(f64(a) * f64(b)) }
	}
	return func(a, b, c uint64) uint64 { return canonical(math.FMA(f64(a), f64(b), f64(c))) }
}

// directed64 computes in f64 with a directed rounding.
func directed64(op string, mode num.Rounding) laneFn {
	near := arithmetic64(op)
	return func(a, b, c uint64) uint64 {
		n := f64(near(a, b, c))
		x, y, z := f64(a), f64(b), f64(c)
		if !finite(x) || !finite(y) || !finite(z) || n == 0 && (op == "add" || op == "sub") {
			if n == 0 && mode == num.Down && math.Signbit(x) != (math.Signbit(y) != (op == "sub")) {
				return 1 << 63 // an exact difference of zero is negative
			}
			return bits64(n)
		}
		exact := new(big.Float).SetPrec(4400)
		switch op {
		case "add":
			exact.Add(big.NewFloat(x), big.NewFloat(y))
		case "sub":
			exact.Sub(big.NewFloat(x), big.NewFloat(y))
		case "mul":
			exact.Mul(big.NewFloat(x), big.NewFloat(y))
		default:
			exact.Mul(big.NewFloat(x), big.NewFloat(y))
			exact.Add(exact, big.NewFloat(z))
		}
		return bits64(towards(n, exact, mode))
	}
}

// towards corrects the nearest double of an exact value for a directed
// rounding.
func towards(n float64, exact *big.Float, mode num.Rounding) float64 {
	above := false // n > exact
	below := false
	switch {
	case math.IsInf(n, 1):
		above = true
	case math.IsInf(n, -1):
		below = true
	default:
		cmp := new(big.Float).SetPrec(4400).SetFloat64(n).Cmp(exact)
		above, below = cmp > 0, cmp < 0
	}
	switch {
	case above && (mode == num.Down || mode == num.Zero && exact.Sign() > 0):
		return math.Nextafter(n, math.Inf(-1))
	case below && (mode == num.Up || mode == num.Zero && exact.Sign() < 0):
		return math.Nextafter(n, math.Inf(1))
	}
	return n
}

func finite(x float64) bool { return !math.IsInf(x, 0) && x == x }

// quotient is div with a rounding.
func quotient(t floatType, m floatMode) laneFn {
	var f laneFn
	switch {
	case t.wide && m.round == num.Even:
		f = func(a, b, _ uint64) uint64 { return t.encode(f64(a)/f64(b), num.Even) }
	case t.wide:
		f = func(a, b, _ uint64) uint64 {
			x, y := f64(a), f64(b)
			n := x / y
			if !finite(x) || !finite(y) || x == 0 || y == 0 {
				return t.encode(n, num.Even)
			}
			q := new(big.Float).SetPrec(200).Quo(big.NewFloat(x), big.NewFloat(y))
			return bits64(towards(n, q, m.round))
		}
	case m.round == num.Even:
		f = func(a, b, _ uint64) uint64 {
			q := f32(a) / f32(b)
			if q != q {
				return nan32
			}
			return bits32(q)
		}
	default:
		f = func(a, b, _ uint64) uint64 {
			x, y := float64(f32(a)), float64(f32(b))
			return t.encode(stickOdd(x/y, -math.FMA(x/y, y, -x), y), m.round)
		}
	}
	return m.wrap(t, f)
}

// stickOdd turns a rounded quotient or root into one rounded to odd, from the
// sign of what is left: rest = x - q*y.
func stickOdd(q, rest, y float64) float64 {
	if rest == 0 || rest != rest || math.IsInf(q, 0) || q == 0 {
		return q
	}
	u := math.Float64bits(q)
	if u&1 == 1 {
		return q
	}
	if (rest > 0) == (y > 0) == (q > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// root is sqrt with a rounding.
func root(t floatType, m floatMode) laneFn {
	f := func(a, _, _ uint64) uint64 {
		x := t.value(a)
		r := math.Sqrt(x)
		if m.round == num.Even {
			return t.encode(r, num.Even)
		}
		// Scaled, so that what is left of the smallest numbers is not lost.
		up := 1.0
		if x < 1 {
			up = 0x1p+100
		}
		rest := -math.FMA(r*up, r*up, -x*up*up)
		if t.wide {
			switch {
			case r == 0 || !finite(r) || rest == 0:
			case rest > 0 && m.round == num.Up:
				r = math.Nextafter(r, math.Inf(1))
			case rest < 0 && m.round != num.Up:
				r = math.Nextafter(r, math.Inf(-1))
			}
			return t.encode(r, num.Even)
		}
		return t.encode(stickOdd(r, rest, 1), m.round)
	}
	return m.wrap(t, f)
}

// extreme is min and max.
func extreme(greater bool, t floatType, m floatMode) laneFn {
	sign := uint64(1) << (t.bits() - 1)
	f := func(a, b, _ uint64) uint64 {
		flip := uint64(0)
		if m.xorsign {
			flip = (a ^ b) & sign
		}
		if m.abs {
			a, b = a&^sign, b&^sign
		}
		x, y := t.value(a), t.value(b)
		switch {
		case x != x && y != y, m.nan && (x != x || y != y):
			return t.nan()
		case x != x:
			return b | flip
		case y != y:
			return a | flip
		case x == y: // zeros: -0 is the lesser
			if (a&sign != 0) == greater {
				return b | flip
			}
			return a | flip
		case (x > y) == greater:
			return a | flip
		}
		return b | flip
	}
	return m.wrap(t, f)
}

// extreme3 is min and max of three values.
func extreme3(greater bool, t floatType, m floatMode) laneFn {
	f := extreme(greater, t, m)
	return func(a, b, c uint64) uint64 { return f(f(a, b, 0), c, 0) }
}
