//go:build !amd64

package vm

const vectorTiles = false

func addRowsVector(lo, hi *float32, step int, a, b *float32, k int) { panic("no vector code") }

func decodeHalvesVector(out *float32, raw *uint32, rows, step int) { panic("no vector code") }
