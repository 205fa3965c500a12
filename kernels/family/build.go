package family

import (
	"slices"

	"github.com/kgen-dev/kgen/ir"
)

// Named gives a value the name it is printed under, and returns it.
func Named(name string, v *ir.Value) *ir.Value {
	v.Name = name
	return v
}

// AssumeRows states of a matrix that its rows are contiguous, and where the sizes and
// the strides of its argument allow accesses of 16, 8 or 4 bytes everywhere, that the rows'
// ends and starts are on so many bytes.
func AssumeRows(b *ir.Builder, v *ir.Value, a Arg) {
	b.AssumeStride(v, 1, 1)
	if granule := Granule(a.Elem, a.Dims[1], a.Strides[0]); granule > 1 {
		b.AssumePointer(v, granule*int64(a.Elem.Bits())/8)
		b.AssumeStrideMultiple(v, 0, granule)
		b.AssumeDimMultiple(v, 1, granule)
	}
}

// Granule is the most elements, of 16, 8 or 4 bytes together, that all of the numbers are
// multiples of; 1 if there are none.
func Granule(e ir.Elem, numbers ...int) int64 {
	for bits := 128; bits >= 32; bits /= 2 {
		granule := bits / e.Bits()
		if !slices.ContainsFunc(numbers, func(n int) bool { return n%granule != 0 }) {
			return int64(granule)
		}
	}
	return 1
}
