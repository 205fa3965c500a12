package eval

import "github.com/kgen-dev/kgen/ir"

// combiners maps a combination to the elementwise operation it repeats.
var combiners = [...]ir.Opcode{
	ir.Add: ir.OpAdd, ir.Mul: ir.OpMul, ir.Max: ir.OpMax, ir.Min: ir.OpMin,
	ir.And: ir.OpAnd, ir.Or: ir.OpOr, ir.Xor: ir.OpXor,
}

// reduce combines neighbours along an axis, then the neighbours among the results, until
// one is left, each step rounded to the type. An odd one out waits for the next round.
func (m *machine) reduce(o *ir.Op, dst, src *store) error {
	t := o.Args[0].Type
	outer, n, inner := around(t.Shape, o.Axis)
	if m.options.Wide && o.Combine == ir.Add && src.class == inF32 {
		sumWide(t.Elem, dst.f, src.f, n, inner)
		return nil
	}
	if inner == 1 && t.Elem == ir.F32 && o.Combine == ir.Add {
		sumRows(dst.f, src.f, n)
		return nil
	}
	code := combiners[o.Combine]
	rest := newStore(src.class, n*inner)
	for i := range outer {
		rest.copyRun(0, src, i*n*inner, n*inner)
		for left := n; left > 1; left = (left + 1) / 2 {
			for k := range left / 2 {
				to, x, y := rest.sub(k*inner, inner), rest.sub(2*k*inner, inner), rest.sub((2*k+1)*inner, inner)
				if err := pairwise(code, t.Elem, &to, &x, &y); err != nil {
					return err
				}
			}
			if left%2 == 1 {
				rest.copyRun(left/2*inner, rest, (left-1)*inner, inner)
			}
		}
		dst.copyRun(i*inner, rest, 0, inner)
	}
	return nil
}

// sumRows is reduce for sums of contiguous runs of n floats, the common case.
func sumRows(dst, src []float32, n int) {
	rest := make([]float32, n)
	for i := range dst {
		copy(rest, src[i*n:])
		for left := n; left > 1; left = (left + 1) / 2 {
			for k := range left / 2 {
				rest[k] = rest[2*k] + rest[2*k+1]
			}
			if left%2 == 1 {
				rest[left/2] = rest[left-1]
			}
		}
		dst[i] = rest[0]
	}
}

func sumWide(e ir.Elem, dst, src []float32, n, inner int) {
	for i := range dst {
		sum := 0.0
		for k := range n {
			sum += float64(src[(i/inner*n+k)*inner+i%inner])
		}
		dst[i] = roundOne(e, sum)
	}
}

// scan gives the running combinations along an axis.
func scan(o *ir.Op, dst, src *store) error {
	t := o.Args[0].Type
	outer, n, inner := around(t.Shape, o.Axis)
	code := combiners[o.Combine]
	for i := range outer {
		at := func(k int) int {
			if o.Reverse {
				k = n - 1 - k
			}
			return (i*n + k) * inner
		}
		dst.copyRun(at(0), src, at(0), inner)
		for k := 1; k < n; k++ {
			to, last, x := dst.sub(at(k), inner), dst.sub(at(k-1), inner), src.sub(at(k), inner)
			if err := pairwise(code, t.Elem, &to, &last, &x); err != nil {
				return err
			}
		}
	}
	return nil
}
