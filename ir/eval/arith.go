package eval

import (
	"errors"
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

var errDivide = errors.New("integer division by zero")

// pairwise computes an elementwise operation of two operands of type e.
func pairwise(code ir.Opcode, e ir.Elem, dst, x, y *store) error {
	switch dst.class {
	case inF32:
		if err := floats(code, dst.f, x.f, y.f); err != nil {
			return err
		}
		round(e, dst.f)
	case inF64:
		return floats(code, dst.d, x.d, y.d)
	case inI32:
		if err := integers(code, e.Bits(), dst.i, x.i, y.i); err != nil {
			return err
		}
		wrap(e, dst.i)
	case inI64:
		return integers(code, 64, dst.l, x.l, y.l)
	}
	return nil
}

// floats computes in the width of the slices. For f16 and bf16 in float32 the
// second rounding changes nothing: 24 bits are at least twice 11 plus two.
func floats[T float32 | float64](code ir.Opcode, dst, x, y []T) error {
	x, y = x[:len(dst)], y[:len(dst)]
	switch code {
	case ir.OpAdd:
		for i := range dst {
			dst[i] = x[i] + y[i]
		}
	case ir.OpSub:
		for i := range dst {
			dst[i] = x[i] - y[i]
		}
	case ir.OpMul:
		for i := range dst {
			dst[i] = x[i] * y[i]
		}
	case ir.OpDiv:
		for i := range dst {
			dst[i] = x[i] / y[i]
		}
	case ir.OpMax:
		for i := range dst {
			dst[i] = maxNumber(x[i], y[i])
		}
	case ir.OpMin:
		for i := range dst {
			dst[i] = -maxNumber(-x[i], -y[i])
		}
	default:
		return fmt.Errorf("no meaning for floats")
	}
	return nil
}

// maxNumber returns the larger, the one that is not NaN, and +0 over -0.
func maxNumber[T float32 | float64](x, y T) T {
	switch {
	case x != x:
		return y
	case y != y || x > y:
		return x
	case x == y && math.Signbit(float64(y)): // -0, or the same number
		return x
	}
	return y
}

func integers[T int32 | int64](code ir.Opcode, width int, dst, x, y []T) error {
	for i := range dst {
		v, err := integer(code, width, x[i], y[i])
		if err != nil {
			return err
		}
		dst[i] = v
	}
	return nil
}

// integer computes one element; the result may have more bits than width.
func integer[T int32 | int64](code ir.Opcode, width int, x, y T) (T, error) {
	mask := ^uint64(0) >> (64 - width)
	shift := uint64(y) & mask
	switch code {
	case ir.OpAdd:
		return x + y, nil
	case ir.OpSub:
		return x - y, nil
	case ir.OpMul:
		return x * y, nil
	case ir.OpDiv, ir.OpRem:
		if y == 0 {
			return 0, errDivide
		}
		if code == ir.OpRem {
			return x % y, nil
		}
		return x / y, nil
	case ir.OpMax:
		return max(x, y), nil
	case ir.OpMin:
		return min(x, y), nil
	case ir.OpAnd:
		return x & y, nil
	case ir.OpOr:
		return x | y, nil
	case ir.OpXor:
		return x ^ y, nil
	case ir.OpShl:
		if shift >= uint64(width) {
			return 0, nil
		}
		return x << shift, nil
	case ir.OpShr:
		return x >> min(shift, uint64(width-1)), nil
	case ir.OpUshr:
		return T(uint64(x) & mask >> shift), nil
	}
	return 0, errors.New("no meaning for integers")
}

// wrap brings elements back into the range of their type.
func wrap(e ir.Elem, xs []int32) {
	switch e {
	case ir.I8:
		for i, x := range xs {
			xs[i] = int32(int8(x))
		}
	case ir.I4:
		for i, x := range xs {
			xs[i] = x << 28 >> 28
		}
	case ir.I1:
		for i, x := range xs {
			xs[i] = x & 1
		}
	}
}

// unary computes an elementwise function.
func unary(code ir.Opcode, e ir.Elem, dst, x *store) error {
	switch dst.class {
	case inF32:
		f, err := function(code)
		if err != nil {
			return err
		}
		for i, v := range x.f {
			dst.f[i] = float32(f(float64(v)))
		}
		round(e, dst.f)
	case inF64:
		f, err := function(code)
		if err != nil {
			return err
		}
		for i, v := range x.d {
			dst.d[i] = f(v)
		}
	case inI32:
		if err := unaryIntegers(code, dst.i, x.i); err != nil {
			return err
		}
		wrap(e, dst.i)
	case inI64:
		return unaryIntegers(code, dst.l, x.l)
	}
	return nil
}

func unaryIntegers[T int32 | int64](code ir.Opcode, dst, x []T) error {
	for i, v := range x {
		switch code {
		case ir.OpNeg:
			dst[i] = -v
		case ir.OpAbs:
			dst[i] = max(v, -v)
		case ir.OpNot:
			dst[i] = ^v
		default:
			return errors.New("no meaning for integers")
		}
	}
	return nil
}

// function returns an operation in float64, whose rounding to narrower types is
// the operation's.
func function(code ir.Opcode) (func(float64) float64, error) {
	switch code {
	case ir.OpNeg:
		return func(x float64) float64 { return -x }, nil
	case ir.OpAbs:
		return math.Abs, nil
	case ir.OpExp2:
		return math.Exp2, nil
	case ir.OpLog2:
		return math.Log2, nil
	case ir.OpRsqrt:
		return func(x float64) float64 { return 1 / math.Sqrt(x) }, nil
	case ir.OpSqrt:
		return math.Sqrt, nil
	case ir.OpRcp:
		return func(x float64) float64 { return 1 / x }, nil
	case ir.OpTanh:
		return math.Tanh, nil
	case ir.OpErf:
		return math.Erf, nil
	case ir.OpSin:
		return math.Sin, nil
	case ir.OpCos:
		return math.Cos, nil
	case ir.OpFloor:
		return math.Floor, nil
	case ir.OpCeil:
		return math.Ceil, nil
	case ir.OpRound:
		return math.RoundToEven, nil
	}
	return nil, errors.New("no meaning for floats")
}

// multiplyAdd computes x*y + z, rounded once to e.
func multiplyAdd(e ir.Elem, dst, x, y, z *store) {
	for i := range dst.f {
		dst.f[i] = roundOne(e, num.FMAOdd(x.f[i], y.f[i], z.f[i]))
	}
	for i := range dst.d {
		dst.d[i] = math.FMA(x.d[i], y.d[i], z.d[i])
	}
}

// compare sets dst to 1 where x pred y.
func compare(p ir.Pred, dst []int32, x, y *store) {
	switch x.class {
	case inF32:
		compareSlices(p, dst, x.f, y.f)
	case inF64:
		compareSlices(p, dst, x.d, y.d)
	case inI32:
		compareSlices(p, dst, x.i, y.i)
	case inI64:
		compareSlices(p, dst, x.l, y.l)
	}
}

func compareSlices[T float32 | float64 | int32 | int64](p ir.Pred, dst []int32, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		var v bool
		switch p {
		case ir.EQ:
			v = x[i] == y[i]
		case ir.NE:
			v = x[i] != y[i]
		case ir.LT:
			v = x[i] < y[i]
		case ir.LE:
			v = x[i] <= y[i]
		case ir.GT:
			v = x[i] > y[i]
		case ir.GE:
			v = x[i] >= y[i]
		}
		dst[i] = 0
		if v {
			dst[i] = 1
		}
	}
}

// choose sets dst to x where cond is 1, else y; a cond of one element holds for
// all.
func choose(dst *store, cond []int32, x, y *store) {
	if n := dst.len(); len(cond) != n {
		if cond[0] == 0 {
			x = y
		}
		dst.copyRun(0, x, 0, n)
		return
	}
	switch dst.class {
	case inF32:
		chooseSlices(dst.f, cond, x.f, y.f)
	case inF64:
		chooseSlices(dst.d, cond, x.d, y.d)
	case inI32:
		chooseSlices(dst.i, cond, x.i, y.i)
	case inI64:
		chooseSlices(dst.l, cond, x.l, y.l)
	}
}

func chooseSlices[T any](dst []T, cond []int32, x, y []T) {
	for i, c := range cond {
		if c != 0 {
			dst[i] = x[i]
		} else {
			dst[i] = y[i]
		}
	}
}
