package codegen

import (
	"math"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// function builds a float function: of f32, or what f64 has instructions for.
func (l *lowering) function(o *ir.Op, x *simt.Value) *simt.Value {
	b := l.b
	switch {
	case x.Type != simt.F32 && x.Type != simt.F64:
		panic(unsupported(o, "no lowering for %s", o.Args[0].Type))
	case x.Type == simt.F64:
		return l.function64(o, x)
	}
	switch o.Code {
	case ir.OpExp2:
		return b.Ex2(x)
	case ir.OpLog2:
		if o.Fast {
			return b.Lg2(x)
		}
		return l.log2(x)
	case ir.OpRsqrt:
		return b.Rsqrt(x)
	case ir.OpSqrt:
		if o.Fast {
			return b.SqrtApprox(x)
		}
		return b.Sqrt(x)
	case ir.OpRcp:
		if o.Fast {
			return b.RcpApprox(x)
		}
		return b.Rcp(x)
	case ir.OpTanh:
		if o.Fast {
			return b.Tanh(x)
		}
		return l.tanh(x)
	case ir.OpErf:
		return l.erf(x)
	case ir.OpSin:
		if o.Fast {
			return b.Sin(x)
		}
		return l.circular(x, 0)
	case ir.OpCos:
		if o.Fast {
			return b.Cos(x)
		}
		return l.circular(x, 1)
	case ir.OpFloor:
		return b.Round(x, simt.RM)
	case ir.OpCeil:
		return b.Round(x, simt.RP)
	case ir.OpRound:
		return b.Round(x, simt.RN)
	}
	panic(unsupported(o, "no lowering"))
}

// log2 takes subnormal numbers, which the instruction flushes, times 2^32.
func (l *lowering) log2(x *simt.Value) *simt.Value {
	b := l.b
	tiny := b.Cmp(simt.LT, x, b.ConstF32(0x1p-126))
	y := b.Lg2(b.Select(tiny, b.Mul(x, b.ConstF32(0x1p32)), x))
	return b.Select(tiny, b.Sub(y, b.ConstF32(32)), y)
}

// circular is the sine of x plus some quarters of a turn. The nearest multiple of a
// quarter turn is taken off in f64, with its length in two parts, which keeps the rest
// right to f32's precision up to |x| of 2^31. Then come the series of sine or cosine.
func (l *lowering) circular(x *simt.Value, quarters int) *simt.Value {
	b := l.b
	wide := b.FloatCvt(x, simt.F64)
	turns := b.Round(b.Mul(wide, b.ConstF64(2/math.Pi)), simt.RN)
	const quarterLow = 6.123233995736766e-17 // pi/2 - float64(pi/2)
	rest := b.Fma(b.Neg(turns), b.ConstF64(math.Pi/2), wide)
	rest = b.Fma(b.Neg(turns), b.ConstF64(quarterLow), rest)
	r := b.FloatCvt(rest, simt.F32)
	q := b.Add(b.FloatToInt(turns, simt.I32, simt.RN), b.Const32(quarters))
	s := b.Mul(r, r)
	sine := b.Mul(r, l.series(s, 1, -1.0/6, 1.0/120, -1.0/5040, 1.0/362880))
	cosine := l.series(s, 1, -1.0/2, 1.0/24, -1.0/720, 1.0/40320, -1.0/3628800)
	odd := b.Cmp(simt.NE, b.And(q, b.Const32(1)), b.Const32(0))
	y := b.Bitcast(b.Select(odd, cosine, sine), simt.I32)
	return b.Bitcast(b.Xor(y, b.Shl(b.And(q, b.Const32(2)), b.Const32(30))), simt.F32)
}

// series is the sum of c[i] s^i in f32.
func (l *lowering) series(s *simt.Value, c ...float64) *simt.Value {
	sum := l.b.ConstF32(float32(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		sum = l.b.Fma(sum, s, l.b.ConstF32(float32(c[i])))
	}
	return sum
}

// tanh is 1 - 2/(exp(2|x|) + 1) with the sign of x; near 0, where that cancels,
// x - x^3/3 + 2x^5/15.
func (l *lowering) tanh(x *simt.Value) *simt.Value {
	b := l.b
	c := func(v float64) *simt.Value { return b.ConstF32(float32(v)) }
	a := b.Abs(x)
	e := b.Ex2(b.Mul(a, c(2*math.Log2E)))
	far := b.Sub(c(1), b.Mul(c(2), b.RcpApprox(b.Add(e, c(1)))))
	s := b.Mul(a, a)
	near := b.Fma(b.Mul(a, s), b.Fma(s, b.Fma(s, c(-17.0/315), c(2.0/15)), c(-1.0/3)), a)
	y := b.Select(b.Cmp(simt.LT, a, c(0.25)), near, far)
	return l.withSign(y, x)
}

// withSign is |y| with the sign of x.
func (l *lowering) withSign(y, x *simt.Value) *simt.Value {
	b := l.b
	bits := b.And(b.Bitcast(x, simt.I32), b.Const32(math.MinInt32))
	return b.Bitcast(b.Or(bits, b.Bitcast(y, simt.I32)), simt.F32)
}

// erf is Abramowitz and Stegun, formula 7.1.26: |error| <= 1.5e-7. Near 0, where
// its relative error would show, the series 2/sqrt(pi) (x - x^3/3 + x^5/10 - ...).
func (l *lowering) erf(x *simt.Value) *simt.Value {
	b := l.b
	c := func(v float64) *simt.Value { return b.ConstF32(float32(v)) }
	a := b.Abs(x)
	t := b.Rcp(b.Fma(a, c(0.3275911), c(1)))
	p := c(1.061405429)
	for _, k := range []float64{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		p = b.Fma(p, t, c(k))
	}
	s := b.Mul(a, a)
	e := b.Ex2(b.Mul(s, c(-math.Log2E)))
	far := b.Fma(b.Neg(b.Mul(p, t)), e, c(1))
	near := l.series(s, 1, -1.0/3, 1.0/10, -1.0/42, 1.0/216, -1.0/1320)
	near = b.Mul(b.Mul(near, a), c(2/math.Sqrt(math.Pi)))
	return l.withSign(b.Select(b.Cmp(simt.LT, a, c(0.5)), near, far), x)
}
