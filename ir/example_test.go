package ir_test

import (
	"fmt"

	"github.com/kgen-dev/kgen/ir"
)

// A kernel that doubles the rows of a matrix, sixteen at a time.
func ExampleBuilder() {
	b := ir.NewKernel("double")
	x := b.View("x", ir.BF16, "M", 64)
	i := b.Over("i", ir.Sym("M").CeilDiv(ir.Lit(16)))
	b.AssumeStride(x, 1, 1)
	at := []*ir.Value{b.Mul(i, b.Int(16)), b.Int(0)}
	v := b.Load(x, at, ir.TileOf(ir.BF16, 16, 64)) // rows past M read as 0
	b.Store(x, at, b.Add(v, v))                    // and are not written
	k, err := b.Finish()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(k)
	// Output:
	// kernel @double(%x: view<bf16>[M, 64]) {
	//   assume stride(%x, 1) = 1
	//   over %i: ceildiv(M, 16)
	//
	//   %0 = const 16 : i32
	//   %1 = mul %i, %0 : i32
	//   %2 = const 0 : i32
	//   %3 = load %x[%1, %2] : <16x64xbf16>
	//   %4 = add %3, %3 : <16x64xbf16>
	//   store %x[%1, %2] = %4
	// }
}

// Errors of the parser name the place.
func ExampleParse() {
	_, err := ir.Parse("flash.tile", []byte(`
kernel @k(%x: view<f32>[N]) {
  %v = load %x[0] : <16xbf16>
}`))
	fmt.Println(err)
	// Output:
	// flash.tile:3:8: load: access of view<f32>[N] as <16xbf16>: want a tile of f32
}
