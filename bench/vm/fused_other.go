//go:build !amd64

package vm

var vectorFused = false

func fusedTops(tops *[eightColumns]int32, a, b *int32, n int) { panic("no vector code") }

func fusedTerms(sums, units *[eightColumns]float64, x, y *float64, n int) { panic("no vector code") }
