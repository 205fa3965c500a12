package vm

import "golang.org/x/sys/cpu"

// vectorFused says whether fusedTops and fusedTerms run here.
var vectorFused = cpu.X86.HasAVX2

// fusedTops is topsPortable in AVX2, for n of at least 1.
//
//go:noescape
func fusedTops(tops *[eightColumns]int32, a, b *int32, n int)

// fusedTerms is termsPortable in AVX2, for n of at least 1.
//
//go:noescape
func fusedTerms(sums, units *[eightColumns]float64, x, y *float64, n int)
