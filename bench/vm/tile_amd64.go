package vm

import "golang.org/x/sys/cpu"

// vectorTiles says whether addRowsVector runs here.
var vectorTiles = cpu.X86.HasAVX

// addRowsVector is addRowsPortable in AVX.
//
//go:noescape
func addRowsVector(lo, hi *float32, step int, a, b *float32, k int)

// decodeHalvesVector is decodeHalvesPortable in AVX2.
//
//go:noescape
func decodeHalvesVector(out *float32, raw *uint32, rows, step int)
