package codegen

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// Functions of f64. The hardware has square roots, reciprocals and roundings; the rest
// are series, within some 2^-50 of the result (of 1 for sine and cosine).

func (l *lowering) function64(o *ir.Op, x *simt.Value) *simt.Value {
	b := l.b
	switch o.Code {
	case ir.OpSqrt:
		return b.Sqrt(x)
	case ir.OpRcp:
		return b.Rcp(x)
	case ir.OpRsqrt:
		return b.Rcp(b.Sqrt(x))
	case ir.OpFloor:
		return b.Round(x, simt.RM)
	case ir.OpCeil:
		return b.Round(x, simt.RP)
	case ir.OpRound:
		return b.Round(x, simt.RN)
	case ir.OpExp2:
		return l.exp2F64(x)
	case ir.OpLog2:
		return l.log2F64(x)
	case ir.OpTanh:
		return l.tanhF64(x)
	case ir.OpErf:
		return l.erfF64(x)
	case ir.OpSin:
		return l.circularF64(x, 0)
	case ir.OpCos:
		return l.circularF64(x, 1)
	}
	panic(unsupported(o, "no lowering for f64"))
}

// series64 is the sum of c(i) s^i for i below n.
func (l *lowering) series64(s *simt.Value, n int, c func(i int) float64) *simt.Value {
	sum := l.b.ConstF64(c(n - 1))
	for i := n - 2; i >= 0; i-- {
		sum = l.b.Fma(sum, s, l.b.ConstF64(c(i)))
	}
	return sum
}

func factorial(n int) float64 { return math.Gamma(float64(n) + 1) }

// exp2F64 is the series of 2^f for the rest f of x to the nearest integer, which goes
// into the exponent, in two halves for the sake of subnormal results.
func (l *lowering) exp2F64(x *simt.Value) *simt.Value {
	b := l.b
	near := b.Min(b.Max(x, b.ConstF64(-1100)), b.ConstF64(1100))
	k := b.Round(near, simt.RN)
	p := l.series64(b.Sub(near, k), 14, func(i int) float64 { return math.Pow(math.Ln2, float64(i)) / factorial(i) })
	n := b.FloatToInt(k, simt.I32, simt.RN)
	half := b.Shr(n, b.Const32(1))
	power := func(n *simt.Value) *simt.Value {
		return b.Bitcast(b.Shl(b.Sext(b.Add(n, b.Const32(1023)), simt.I64), b.Const32(52)), simt.F64)
	}
	y := b.Mul(b.Mul(p, power(half)), power(b.Sub(n, half)))
	return b.Select(b.Cmp(simt.EQ, x, x), y, x)
}

// log2F64 is the exponent plus the logarithm of the mantissa m, brought to the square
// root of 2 or less: 2/ln 2 (t + t^3/3 + ..) with t = (m-1)/(m+1).
func (l *lowering) log2F64(x *simt.Value) *simt.Value {
	b := l.b
	c := b.ConstF64
	tiny := b.Cmp(simt.LT, x, c(0x1p-1022))
	bits := b.Bitcast(b.Select(tiny, b.Mul(x, c(0x1p54)), x), simt.I64)
	m := b.Bitcast(b.Or(b.And(bits, b.Const64(1<<52-1)), b.Const64(1023<<52)), simt.F64)
	e := b.Sub(b.Trunc(b.ShrU(bits, b.Const32(52)), simt.I32), b.Select(tiny, b.Const32(1023+54), b.Const32(1023)))
	large := b.Cmp(simt.GT, m, c(math.Sqrt2))
	m = b.Select(large, b.Mul(m, c(0.5)), m)
	e = b.Add(e, b.Select(large, b.Const32(1), b.Const32(0)))
	t := b.Div(b.Sub(m, c(1)), b.Add(m, c(1)))
	s := l.series64(b.Mul(t, t), 12, func(i int) float64 { return 2 / math.Ln2 / float64(2*i+1) })
	y := b.Add(b.IntToFloat(e, simt.F64), b.Mul(t, s))
	y = b.Select(b.Cmp(simt.LT, x, c(math.Inf(1))), y, x) // infinity and NaN stay
	y = b.Select(b.Cmp(simt.LT, x, c(0)), c(math.NaN()), y)
	return b.Select(b.Cmp(simt.EQ, x, c(0)), c(math.Inf(-1)), y)
}

// tanhF64 is d / (d + 2) with d = exp(2|x|) - 1, whose series is taken where it would
// cancel.
func (l *lowering) tanhF64(x *simt.Value) *simt.Value {
	b := l.b
	c := b.ConstF64
	a := b.Abs(x)
	twice := b.Add(a, a)
	d := b.Mul(twice, l.series64(twice, 19, func(i int) float64 { return 1 / factorial(i+1) }))
	near := b.Div(d, b.Add(d, c(2)))
	e := l.exp2F64(b.Mul(twice, c(math.Log2E)))
	far := b.Sub(c(1), b.Div(c(2), b.Add(e, c(1))))
	return l.withSign64(b.Select(b.Cmp(simt.LT, a, c(0.35)), near, far), x)
}

// withSign64 is y, which is not negative, with the sign of x.
func (l *lowering) withSign64(y, x *simt.Value) *simt.Value {
	b := l.b
	sign := b.And(b.Bitcast(x, simt.I64), b.Const64(math.MinInt64))
	return b.Bitcast(b.Or(b.Bitcast(y, simt.I64), sign), simt.F64)
}

// erfF64 is 2/sqrt(pi) exp(-x^2) times the sum of 2^n |x|^(2n+1) / (1*3*..(2n+1)), which
// has positive terms only. From 6 on it is 1.
func (l *lowering) erfF64(x *simt.Value) *simt.Value {
	b := l.b
	c := b.ConstF64
	const terms = 140 // for 6, less are needed below
	a := b.Min(b.Abs(x), c(6))
	square := b.Mul(a, a)
	out := b.For(b.Const32(1), b.Const32(terms), b.Const32(1), []*simt.Value{a, a}, func(n *simt.Value, carried []*simt.Value) []*simt.Value {
		odd := b.IntToFloat(b.Add(b.Add(n, n), b.Const32(1)), simt.F64)
		term := b.Div(b.Mul(carried[0], b.Add(square, square)), odd)
		return []*simt.Value{term, b.Add(carried[1], term)}
	})
	e := l.exp2F64(b.Mul(square, c(-math.Log2E)))
	y := b.Min(b.Mul(b.Mul(c(2/math.Sqrt(math.Pi)), e), out[1]), c(1))
	return b.Select(b.Cmp(simt.EQ, x, x), l.withSign64(y, x), x)
}

// circularF64 is the sine of x plus some quarters of a turn, of which the nearest
// multiple is taken off with its length in three parts.
func (l *lowering) circularF64(x *simt.Value, quarters int) *simt.Value {
	b := l.b
	turns := b.Round(b.Mul(x, b.ConstF64(2/math.Pi)), simt.RN)
	r := x
	for _, part := range []float64{math.Pi / 2, 6.123233995736766e-17, -1.4973849048591833e-33} {
		r = b.Fma(b.Neg(turns), b.ConstF64(part), r)
	}
	q := b.Add(b.FloatToInt(turns, simt.I32, simt.RN), b.Const32(quarters))
	s := b.Mul(r, r)
	alternate := func(i, n int) float64 { return math.Pow(-1, float64(i)) / factorial(n) }
	sine := b.Mul(r, l.series64(s, 9, func(i int) float64 { return alternate(i, 2*i+1) }))
	cosine := l.series64(s, 10, func(i int) float64 { return alternate(i, 2*i) })
	odd := b.Cmp(simt.NE, b.And(q, b.Const32(1)), b.Const32(0))
	y := b.Bitcast(b.Select(odd, cosine, sine), simt.I64)
	sign := b.Shl(b.Zext(b.And(q, b.Const32(2)), simt.I64), b.Const32(62))
	return b.Bitcast(b.Xor(y, sign), simt.F64)
}
