package eval

import (
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

// dot computes acc + x y. Products are exact; they are added in the order of k,
// every sum rounded to the accumulator's type. With scales, the products of a
// group of k are summed first and that sum times both scales is added.
func (m *machine) dot(o *ir.Op, dst *store) error {
	x, y, acc := m.get(o.Args[0]), m.get(o.Args[1]), m.get(o.Args[2])
	rows, cols := o.Results[0].Type.Shape[0], o.Results[0].Type.Shape[1]
	depth := o.Args[0].Type.Shape[1]
	dst.copyRun(0, acc, 0, rows*cols)
	switch dst.class {
	case inI32:
		multiply(dst.i, x.i, y.i, rows, cols, depth)
	case inF64:
		multiplyFma(dst.d, x.d, y.d, rows, cols, depth)
	default:
		m.dotF32(o, dst.f, x.f, y.f, rows, cols, depth)
	}
	return nil
}

func (m *machine) dotF32(o *ir.Op, dst, x, y []float32, rows, cols, depth int) {
	elem := o.Results[0].Type.Elem
	if o.Precision == ir.TF32 {
		x, y = toTF32(x), toTF32(y)
	}
	switch scaled := o.Operand("scale_x") != nil || o.Operand("scale_y") != nil; {
	case scaled:
		m.dotScaled(o, dst, x, y, rows, cols, depth)
	case m.options.Wide:
		dotWide(elem, dst, x, y, rows, cols, depth)
	case elem == ir.F16:
		dotRounded(elem, dst, x, y, rows, cols, depth)
	case o.Args[0].Type.Elem == ir.F32 && o.Precision != ir.TF32:
		dotRounded(elem, dst, x, y, rows, cols, depth)
	default:
		multiply(dst, x, y, rows, cols, depth) // products of at most 24 bits are exact in float32
	}
}

// multiply adds x y to dst, row by row so that the inner loop runs over
// contiguous elements; each element's sums are in the order of k all the same.
func multiply[T float32 | int32](dst, x, y []T, rows, cols, depth int) {
	for r := range rows {
		out := dst[r*cols : r*cols+cols]
		k := 0
		for ; k+4 <= depth; k += 4 {
			a0, a1, a2, a3 := x[r*depth+k], x[r*depth+k+1], x[r*depth+k+2], x[r*depth+k+3]
			b0 := y[k*cols : k*cols+cols][:len(out)]
			b1 := y[(k+1)*cols : (k+1)*cols+cols][:len(out)]
			b2 := y[(k+2)*cols : (k+2)*cols+cols][:len(out)]
			b3 := y[(k+3)*cols : (k+3)*cols+cols][:len(out)]
			for j, c := range out {
				c += T(a0 * b0[j])
				c += T(a1 * b1[j])
				c += T(a2 * b2[j])
				c += T(a3 * b3[j])
				out[j] = c
			}
		}
		for ; k < depth; k++ {
			a, b := x[r*depth+k], y[k*cols : k*cols+cols][:len(out)]
			for j := range out {
				out[j] += T(a * b[j])
			}
		}
	}
}

func multiplyFma(dst, x, y []float64, rows, cols, depth int) {
	one := newStore(inF64, cols)
	for r := range rows {
		out := dst[r*cols : r*cols+cols]
		for k := range depth {
			fill(one.d, x[r*depth+k])
			b := y[k*cols : k*cols+cols]
			multiplyAdd(ir.F64, &store{d: out}, one, &store{d: b}, &store{d: out})
		}
	}
}

// dotRounded rounds after each exact multiply-add.
func dotRounded(e ir.Elem, dst, x, y []float32, rows, cols, depth int) {
	for r := range rows {
		out := dst[r*cols : r*cols+cols]
		for k := range depth {
			a, b := x[r*depth+k], y[k*cols:k*cols+cols]
			for j := range out {
				out[j] = roundOne(e, num.FMAOdd(a, b[j], out[j]))
			}
		}
	}
}

// dotWide adds in float64 and rounds once.
func dotWide(e ir.Elem, dst, x, y []float32, rows, cols, depth int) {
	sum := make([]float64, cols)
	for r := range rows {
		out := dst[r*cols : r*cols+cols]
		for j, v := range out {
			sum[j] = float64(v)
		}
		for k := range depth {
			a, b := float64(x[r*depth+k]), y[k*cols : k*cols+cols][:len(sum)]
			for j := range sum {
				sum[j] += float64(a * float64(b[j]))
			}
		}
		for j, v := range sum {
			out[j] = roundOne(e, v)
		}
	}
}

func (m *machine) dotScaled(o *ir.Op, dst, x, y []float32, rows, cols, depth int) {
	sx, nx := m.scales(o.Operand("scale_x"), 1)
	sy, ny := m.scales(o.Operand("scale_y"), 0)
	groups := max(nx, ny)
	size := depth / groups
	part := make([]float32, cols)
	for r := range rows {
		for g := range groups {
			fill(part, 0)
			from := r*depth + g*size
			multiply(part, x[from:from+size], y[g*size*cols:(g+1)*size*cols], 1, cols, size)
			for j, v := range part {
				scale := float32(1)
				if sx != nil {
					scale = sx[r*groups+g]
				}
				if sy != nil {
					scale *= sy[g*cols+j]
				}
				dst[r*cols+j] += float32(v * scale)
			}
		}
	}
}

// scales returns a scale tile's elements and its number of groups.
func (m *machine) scales(v *ir.Value, axis int) ([]float32, int) {
	if v == nil {
		return nil, 0
	}
	return m.get(v).f, v.Type.Shape[axis]
}
