package vm

import "unsafe"

const (
	warpSize = 32
	allLanes = ^uint32(0)
)

// lanes32 is a register of up to 32 bits in all lanes of a warp. Narrower
// values are kept zero-extended.
type lanes32 [warpSize]uint32

// lanes64 is a 64-bit register in all lanes of a warp.
type lanes64 [warpSize]uint64

// f32 is the same memory seen as floats.
func (l *lanes32) f32() *[warpSize]float32 { return (*[warpSize]float32)(unsafe.Pointer(l)) }

// f64 is the same memory seen as doubles.
func (l *lanes64) f64() *[warpSize]float64 { return (*[warpSize]float64)(unsafe.Pointer(l)) }

// class is the kind of a register: where its lanes are kept.
type class uint8

const (
	class32   class = iota // lanes32
	class64                // lanes64
	classPred              // a bit for each lane in one uint32
	numClasses
)

// classOf is the class of a register or value of so many bits.
func classOf(bits int) class {
	if bits > 32 {
		return class64
	}
	return class32
}
