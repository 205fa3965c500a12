package eval

import "github.com/kgen-dev/kgen/ir"

// combiners maps a combination to the elementwise operation it repeats.
var combiners = [...]ir.Opcode{
	ir.Add: ir.OpAdd, ir.Mul: ir.OpMul, ir.Max: ir.OpMax, ir.Min: ir.OpMin,
	ir.And: ir.OpAnd, ir.Or: ir.OpOr, ir.Xor: ir.OpXor,
}

// reduce combines along an axis in index order, each step rounded to the type.
func (m *machine) reduce(o *ir.Op, dst, src *store) error {
	t := o.Args[0].Type
	outer, n, inner := around(t.Shape, o.Axis)
	if m.options.Wide && o.Combine == ir.Add && src.class == inF32 {
		sumWide(t.Elem, dst.f, src.f, n, inner)
		return nil
	}
	if inner == 1 && dst.class == inF32 {
		return reduceRows(o.Combine, t.Elem, dst.f, src.f, n)
	}
	code := combiners[o.Combine]
	for i := range outer {
		row := dst.sub(i*inner, inner)
		row.copyRun(0, src, i*n*inner, inner)
		for k := 1; k < n; k++ {
			next := src.sub((i*n+k)*inner, inner)
			if err := pairwise(code, t.Elem, &row, &row, &next); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceRows reduces contiguous runs of n floats.
func reduceRows(c ir.Combine, e ir.Elem, dst, src []float32, n int) error {
	for i := range dst {
		row := src[i*n : i*n+n]
		acc := row[0]
		switch {
		case c == ir.Add && e == ir.F32:
			for _, x := range row[1:] {
				acc += x
			}
		case c == ir.Max:
			for _, x := range row[1:] {
				acc = maxNumber(acc, x)
			}
		default:
			one := []float32{acc}
			for k := range row[1:] {
				if err := floats(combiners[c], one, one, row[k+1:k+2]); err != nil {
					return err
				}
				round(e, one)
			}
			acc = one[0]
		}
		dst[i] = acc
	}
	return nil
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
