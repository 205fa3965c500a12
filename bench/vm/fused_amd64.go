package vm

import "golang.org/x/sys/cpu"

// vectorFused says whether fusedAdd runs here.
var vectorFused = cpu.X86.HasAVX2

// fusedAdd is sumsPortable in AVX2, for n products of at least 1; where all sums are
// normal numbers of f32, or zero, it goes on to replace c by them: those of their bits
// that kept has set. It returns how far it came.
//
//go:noescape
func fusedAdd(c *[eightColumns]float32, sums *[eightColumns]float64, a, b *int32, x, y *float64, n, fraction int, kept uint64) (done int)
