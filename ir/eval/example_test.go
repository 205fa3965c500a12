package eval_test

import (
	"context"
	"fmt"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// The sum of each row.
func ExampleRun() {
	p, err := ir.Parse("sums.tile", []byte(`
kernel @sums(%x: view<f32>[M, N], %y: view<f32>[M]) {
  over %i: M
  %v = load %x[%i, 0] : <8xf32>  ; past N it reads 0
  %s = reduce add %v axis=0
  store %y[%i] = %s
}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := eval.NewTensor(ir.F32, 2, 3), eval.NewTensor(ir.F32, 2)
	x.SetFloats([]float64{1, 2, 3, 10, 20, 30})
	if err := eval.Run(context.Background(), p, []eval.Arg{eval.View(x), eval.View(y)}, eval.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(y.Floats())
	// Output: [6 60]
}
