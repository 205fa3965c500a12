package vm

import "golang.org/x/sys/cpu"

// vectorLanes says whether the functions below run here. A test changes it, to
// compare them with the loops that they stand for.
var vectorLanes = cpu.X86.HasAVX2 && cpu.X86.HasFMA

//go:noescape
func fmaF32Vector(d, a, b, c *[warpSize]float32)

//go:noescape
func addF32Vector(d, a, b *[warpSize]float32)

//go:noescape
func subF32Vector(d, a, b *[warpSize]float32)

//go:noescape
func mulF32Vector(d, a, b *[warpSize]float32)

//go:noescape
func canonicalF32Vector(d, a *[warpSize]float32)

//go:noescape
func add32Vector(d, a, b *lanes32)

//go:noescape
func sub32Vector(d, a, b *lanes32)

//go:noescape
func mul32Vector(d, a, b *lanes32)

//go:noescape
func and32Vector(d, a, b *lanes32)

//go:noescape
func or32Vector(d, a, b *lanes32)

//go:noescape
func xor32Vector(d, a, b *lanes32)

//go:noescape
func shl32Vector(d, a, b *lanes32)

//go:noescape
func shrU32Vector(d, a, b *lanes32)

//go:noescape
func shrS32Vector(d, a, b *lanes32)

//go:noescape
func mad32Vector(d, a, b, c *lanes32)

//go:noescape
func add64Vector(d, a, b *lanes64)

//go:noescape
func mulWideS32Vector(d *lanes64, a, b *lanes32)

//go:noescape
func mulWideU32Vector(d *lanes64, a, b *lanes32)

//go:noescape
func sameSteps32Vector(a, rel *lanes32) bool

//go:noescape
func sameSteps64Vector(a *lanes64, rel *lanes32) bool
