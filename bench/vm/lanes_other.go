//go:build !amd64

package vm

var vectorLanes = false

const noVectors = "no vector code"

func fmaF32Vector(d, a, b, c *[warpSize]float32)      { panic(noVectors) }
func addF32Vector(d, a, b *[warpSize]float32)         { panic(noVectors) }
func subF32Vector(d, a, b *[warpSize]float32)         { panic(noVectors) }
func mulF32Vector(d, a, b *[warpSize]float32)         { panic(noVectors) }
func canonicalF32Vector(d, a *[warpSize]float32)      { panic(noVectors) }
func add32Vector(d, a, b *lanes32)                    { panic(noVectors) }
func sub32Vector(d, a, b *lanes32)                    { panic(noVectors) }
func mul32Vector(d, a, b *lanes32)                    { panic(noVectors) }
func and32Vector(d, a, b *lanes32)                    { panic(noVectors) }
func or32Vector(d, a, b *lanes32)                     { panic(noVectors) }
func xor32Vector(d, a, b *lanes32)                    { panic(noVectors) }
func shl32Vector(d, a, b *lanes32)                    { panic(noVectors) }
func shrU32Vector(d, a, b *lanes32)                   { panic(noVectors) }
func shrS32Vector(d, a, b *lanes32)                   { panic(noVectors) }
func mad32Vector(d, a, b, c *lanes32)                 { panic(noVectors) }
func add64Vector(d, a, b *lanes64)                    { panic(noVectors) }
func mulWideS32Vector(d *lanes64, a, b *lanes32)      { panic(noVectors) }
func mulWideU32Vector(d *lanes64, a, b *lanes32)      { panic(noVectors) }
func sameSteps32Vector(a, rel *lanes32) bool          { panic(noVectors) }
func sameSteps64Vector(a *lanes64, rel *lanes32) bool { panic(noVectors) }
