package vm

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

// drawClock makes a clock of a few warps.
func drawClock(t *rapid.T, name string) vclock {
	n := rapid.IntRange(0, 3).Draw(t, name)
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, name+"-seed"), 0))
	var v vclock
	for range n {
		k := known{all: uint32(r.IntN(4))}
		if r.IntN(2) == 0 {
			k.lanes = new([warpSize]uint32)
			for i := range k.lanes {
				k.lanes[i] = uint32(r.IntN(5))
			}
		}
		v = append(v, k)
	}
	return v
}

// TestClockLattice: joining clocks is taking the later in everything.
func TestClockLattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawClock(t, "a"), drawClock(t, "b"), drawClock(t, "c")
		ab := a.join(b)
		for warp := range 4 {
			for lane := range warpSize {
				for tick := range uint32(6) {
					want := a.knows(warp, lane, tick) || b.knows(warp, lane, tick)
					require.Equal(t, want, ab.knows(warp, lane, tick), "warp %d lane %d tick %d", warp, lane, tick)
				}
			}
		}
		require.True(t, ab.covers(a))
		require.True(t, ab.covers(b))
		if a.covers(b) && b.covers(c) {
			require.True(t, a.covers(c))
		}
		x := clock{{block: 1, v: a}, {block: 4, v: b}}
		y := clock{{block: 2, v: c}, {block: 4, v: a}}
		xy := x.join(y)
		require.Equal(t, []int64{1, 2, 4}, []int64{xy[0].block, xy[1].block, xy[2].block})
		require.True(t, xy.covers(x) && xy.covers(y))
		require.True(t, xy.of(4).covers(ab) && ab.covers(xy.of(4)))
	})
}
