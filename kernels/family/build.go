package family

import "github.com/kgen-dev/kgen/ir"

// Named gives a value the name it is printed under, and returns it.
func Named(name string, v *ir.Value) *ir.Value {
	v.Name = name
	return v
}

// AssumeRows states of a matrix that its rows are contiguous, and where the sizes and
// the strides of its argument allow 16-byte accesses everywhere, that the rows' ends
// and starts are on 16 bytes.
func AssumeRows(b *ir.Builder, v *ir.Value, a Arg) {
	b.AssumeStride(v, 1, 1)
	if granule := 128 / a.Elem.Bits(); a.Dims[1]%granule == 0 && a.Strides[0]%granule == 0 {
		b.AssumePointer(v, 16)
		b.AssumeStrideMultiple(v, 0, int64(granule))
		b.AssumeDimMultiple(v, 1, int64(granule))
	}
}
