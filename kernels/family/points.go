package family

import (
	"math/rand/v2"
	"slices"
)

// Points draws up to n different points of a box with the given counts, its corners
// first: they hold a space's edges.
func Points(r *rand.Rand, n int, counts ...int) [][]int {
	var points [][]int
	add := func(p []int) {
		if len(points) < n && !slices.ContainsFunc(points, func(q []int) bool { return slices.Equal(p, q) }) {
			points = append(points, p)
		}
	}
	total := 1
	for _, c := range counts {
		total = min(total*min(c, n), n) // saturates: only whether there are n matters
	}
	for corner := range 1 << len(counts) {
		p := make([]int, len(counts))
		for d, c := range counts {
			if corner>>d&1 == 0 {
				p[d] = c - 1
			}
		}
		add(p)
	}
	for len(points) < total {
		p := make([]int, len(counts))
		for d, c := range counts {
			p[d] = r.IntN(c)
		}
		add(p)
	}
	return points
}

// CeilDiv is a / b rounded up, for a >= 0 and b > 0: how many tiles of b cover a.
func CeilDiv(a, b int) int { return (a + b - 1) / b }
