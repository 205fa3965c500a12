package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Blocks of one class in whole waves take so many times one wave; a block alone on its
// SM at the end takes less.
func TestScheduleOfOneClass(t *testing.T) {
	perBlock := func(_ int32, n int) float64 { return 10 + 5*float64(n) } // 15 alone, 20 in pairs
	for _, c := range []struct {
		blocks int
		want   float64
	}{{1, 15}, {4, 15}, {5, 20}, {8, 20}, {9, 35}, {12, 35}, {16, 40}, {17, 55}} {
		require.InEpsilon(t, c.want, schedule(4, 2, make([]int32, c.blocks), perBlock), 1e-9, "%d blocks", c.blocks)
	}
}

// The event by event schedule agrees with the closed form where both apply: a class of
// its own that takes as long changes nothing.
func TestScheduleAgreesWithClosedForm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		sms, most, n := 1+r.IntN(9), 1+r.IntN(4), 1+r.IntN(60)
		shared := func(_ int32, k int) float64 { return 3 + float64(k) }
		one := schedule(sms, most, make([]int32, n), shared)
		two := make([]int32, n)
		for i := range two {
			two[i] = int32(i % 2)
		}
		require.InEpsilon(t, one, schedule(sms, most, two, shared), 1e-6, "%d blocks, %d on each of %d SMs", n, most, sms)
	}
}

// Work is conserved where sharing costs nothing: n blocks on an SM take n times as long.
// Then the end is at least the mean load, at most that and the longest block.
func TestScheduleBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 100 {
		sms, most := 1+r.IntN(8), 1+r.IntN(3)
		blocks := make([]int32, 1+r.IntN(80))
		load, longest := 0.0, 0.0
		for i := range blocks {
			blocks[i] = int32(1 + r.IntN(9))
			load += float64(blocks[i])
			longest = max(longest, float64(blocks[i]))
		}
		end := schedule(sms, most, blocks, func(c int32, n int) float64 { return float64(c) * float64(n) })
		least := max(load/float64(sms), longest)
		require.GreaterOrEqual(t, end, least*(1-1e-6))
		require.LessOrEqual(t, end, load/float64(sms)+longest*float64(most)+1e-6)
	}
	// Long blocks first finish sooner than last.
	up, down := make([]int32, 64), make([]int32, 64)
	for i := range up {
		up[i], down[i] = int32(i), int32(63-i)
	}
	f := func(c int32, n int) float64 { return math.Pow(float64(c+1), 1.5) * float64(n) }
	require.Less(t, schedule(8, 1, down, f), schedule(8, 1, up, f))
}
