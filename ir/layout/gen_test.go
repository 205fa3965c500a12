package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawShape draws a small shape of the given rank with odd factors now and then.
func drawShape(t *rapid.T, rank, bits int) []int {
	shape := make([]int, rank)
	left := bits
	for d := range shape {
		n := rapid.IntRange(0, left).Draw(t, "bits")
		left -= n
		shape[d] = 1 << n * rapid.SampledFrom([]int{1, 1, 1, 3, 5}).Draw(t, "odd")
	}
	return shape
}

// drawLayout draws any layout of shape: unit, mixed, dependent and zero bases, in
// any order.
func drawLayout(t *rapid.T, shape []int, warpBits int, label string) *Layout {
	var must, all []Coord
	for d, n := range shape {
		for step := 1; step < pow2Part(n); step *= 2 {
			must = append(must, axis(d, step))
		}
	}
	all = append(all, must...)
	if rapid.Bool().Draw(t, label+" mixed") {
		for i := range all { // an invertible change of basis keeps it onto
			for j := range all {
				if i != j && rapid.IntRange(0, 5).Draw(t, "mix") == 0 {
					all[i] ^= all[j]
				}
			}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, label+" extra") {
		var c Coord
		if len(must) > 0 && rapid.Bool().Draw(t, "dependent") {
			c = rapid.SampledFrom(must).Draw(t, "copy")
		}
		all = append(all, c)
	}
	for len(all) < LaneBits+warpBits {
		all = append(all, 0)
	}
	order := rapid.Permutation(all).Draw(t, label+" order")
	l := &Layout{shape: shape}
	copy(l.lane[:], order[:LaneBits])
	l.warp = append(l.warp, order[LaneBits:LaneBits+warpBits]...)
	l.reg = append(l.reg, order[LaneBits+warpBits:]...)
	var thirds []Coord // that parts of the warps may lie at
	for d, n := range shape {
		if n/pow2Part(n) == 3 {
			thirds = append(thirds, axis(d, pow2Part(n)))
		}
	}
	if len(thirds) > 0 && warpBits <= 2 { // always, so that the layouts of a shape have as many warps
		l.parts = 3
		l.part = rapid.SampledFrom(append(thirds, 0)).Draw(t, label+" part")
	}
	l, err := l.finish()
	require.NoError(t, err)
	return l
}

func mustLayout(t require.TestingT) func(*Layout, error) *Layout {
	return func(l *Layout, err error) *Layout {
		require.NoError(t, err)
		return l
	}
}

// fill is a tile in registers: data[warp][lane][register].
type fill [][][]int

// load gives every place the number of the element it holds.
func load(l *Layout) fill {
	data := make(fill, l.Warps())
	for w := range data {
		data[w] = make([][]int, 32)
		for lane := range data[w] {
			data[w][lane] = make([]int, l.Registers())
			for r := range data[w][lane] {
				data[w][lane][r] = number(l.shape, l.At(r, lane, w))
			}
		}
	}
	return data
}

func number(shape, at []int) int {
	n := 0
	for d, x := range at {
		n = n*shape[d] + x
	}
	return n
}

func TestCoordIsXorOfBases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(0, 4).Draw(t, "rank"), 9)
		l := drawLayout(t, shape, rapid.IntRange(0, 2).Draw(t, "warps"), "l")
		seen := map[int]int{}
		for w := range l.Warps() {
			for lane := range 32 {
				for r := range l.Registers() {
					want := make([]int, len(shape))
					add := func(bases [][]int, bits int) {
						for i, b := range bases {
							for d := range want {
								want[d] ^= b[d] * (bits >> i & 1)
							}
						}
					}
					add(l.RegBases(), r%(1<<l.RegisterBits()))
					add(l.LaneBases(), lane)
					add(l.WarpBases(), w)
					for d := range want {
						want[d] ^= l.part.At(d) * (w >> len(l.WarpBases()))
					}
					n := r >> l.RegisterBits()
					for d := len(shape) - 1; d >= 0; d-- {
						want[d] += n % l.Repeat()[d] * l.Sub(d)
						n /= l.Repeat()[d]
					}
					if got := l.Coord(r, lane, w); got != Pack(want) {
						t.Fatalf("%v: register %d lane %d warp %d at %v, want %v", l, r, lane, w, got.Unpack(len(shape)), want)
					}
					seen[number(shape, want)]++
				}
			}
		}
		elements := 1
		for _, n := range shape {
			elements *= n
		}
		require.Len(t, seen, elements)
		for e, n := range seen {
			if n != l.Replicas() {
				t.Fatalf("%v holds element %d in %d places, want %d", l, e, n, l.Replicas())
			}
		}
	})
}

func TestFindInvertsCoord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(0, 4).Draw(t, "rank"), 9)
		l := drawLayout(t, shape, 2, "l")
		at := make([]int, len(shape))
		for d, n := range shape {
			at[d] = rapid.IntRange(0, n-1).Draw(t, "at")
		}
		r, lane, w, ok := l.Find(Pack(at))
		require.True(t, ok)
		require.Equal(t, at, l.At(r, lane, w))
	})
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(0, 4).Draw(t, "rank"), 9)
		l := drawLayout(t, shape, rapid.IntRange(0, 3).Draw(t, "warps"), "l")
		m, err := Parse(l.String())
		require.NoError(t, err)
		require.True(t, l.Equal(m), "%v and %v", l, m)
		require.Equal(t, l.String(), m.String())
	})
}
