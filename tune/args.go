package tune

import (
	"math"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Arguments are a problem's arguments as a plan wants them.
func Arguments(args []family.Arg) []codegen.Argument {
	var out []codegen.Argument
	for _, a := range args {
		var x codegen.Argument
		switch {
		case !a.IsScalar():
			x.Dims, x.Strides = widen(a.Dims), widen(a.Strides)
		case !a.Elem.IsFloat():
			x.Bits = uint64(a.Int)
		case a.Elem.Bits() == 64:
			x.Bits = math.Float64bits(a.Float)
		default:
			x.Bits = uint64(math.Float32bits(float32(a.Float)))
		}
		out = append(out, x)
	}
	return out
}

func widen(v []int) []int64 {
	out := make([]int64, len(v))
	for i, n := range v {
		out[i] = int64(n)
	}
	return out
}
