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
		return b.Lg2(x)
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
		return b.Sin(x)
	case ir.OpCos:
		return b.Cos(x)
	case ir.OpFloor:
		return b.Round(x, simt.RM)
	case ir.OpCeil:
		return b.Round(x, simt.RP)
	case ir.OpRound:
		return b.Round(x, simt.RN)
	}
	panic(unsupported(o, "no lowering"))
}

// function64 builds a function of an f64.
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
	}
	panic(unsupported(o, "no lowering for f64: want f32 or narrower"))
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
	near := c(-1.0 / 42)
	for _, k := range []float64{1.0 / 10, -1.0 / 3, 1} {
		near = b.Fma(near, s, c(k))
	}
	near = b.Mul(b.Mul(near, a), c(2/math.Sqrt(math.Pi)))
	return l.withSign(b.Select(b.Cmp(simt.LT, a, c(0.2)), near, far), x)
}
