//go:build !amd64

package vm

var vectorFused = false

func fusedAdd(c *[eightColumns]float32, sums *[eightColumns]float64, a, b *int32, x, y *float64, n, fraction int, kept uint64) (done int) {
	panic("no vector code")
}
