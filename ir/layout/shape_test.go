package layout

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestReduce(t *testing.T) {
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 3).Draw(t, "rank")
		l := drawLayout(t, drawShape(t, rank, 8), 2, "l")
		dim := rapid.IntRange(0, rank-1).Draw(t, "dim")
		stages, ok := l.Reduce(dim)
		if !ok {
			return
		}
		planned++
		slice := l.Slice(dim)
		data := load(l)
		got := make(fill, l.Warps()) // sums of element numbers
		for w := range data {
			got[w] = make([][]int, 32)
			for lane := range data[w] {
				require.Len(t, stages.Groups, slice.Registers())
				for _, group := range stages.Groups {
					sum := 0
					for _, r := range group {
						sum += data[w][lane][r]
					}
					got[w][lane] = append(got[w][lane], sum)
				}
			}
			for _, mask := range stages.Lanes {
				old := got[w]
				got[w] = make([][]int, 32)
				for lane := range old {
					for r := range old[lane] {
						got[w][lane] = append(got[w][lane], old[lane][r]+old[lane^mask][r])
					}
				}
			}
		}
		for _, mask := range stages.Warps {
			old := got
			got = make(fill, len(old))
			for w := range old {
				got[w] = make([][]int, 32)
				for lane := range old[w] {
					for r := range old[w][lane] {
						got[w][lane] = append(got[w][lane], old[w][lane][r]+old[w^mask][lane][r])
					}
				}
			}
		}
		for w := range got {
			for lane := range got[w] {
				for r, sum := range got[w][lane] {
					at := slice.At(r, lane, w)
					want := 0
					for x := range l.shape[dim] {
						full := append(append(append([]int{}, at[:dim]...), x), at[dim:]...)
						want += number(l.shape, full)
					}
					if sum != want {
						t.Fatalf("%v along %d: %d, want %d by %+v", l, dim, sum, want, stages)
					}
				}
			}
		}
	})
	require.Greater(t, planned, 20)
}

// The row maximum of a softmax: registers, then the four lanes of a row, and no
// shared memory as long as a row stays in a warp.
func TestReduceAccumulatorRow(t *testing.T) {
	acc := mustLayout(t)(MMAAccumulator([]int{128, 176}, 4, 1))
	stages, ok := acc.Reduce(1)
	require.True(t, ok)
	require.Equal(t, []int{1, 2}, stages.Lanes)
	require.Empty(t, stages.Warps)
	require.Len(t, stages.Groups, 4)
	require.Len(t, stages.Groups[0], 44)

	acc = mustLayout(t)(MMAAccumulator([]int{64, 128}, 2, 2))
	stages, ok = acc.Reduce(1)
	require.True(t, ok)
	require.Equal(t, []int{2}, stages.Warps)
}

func TestSliceAndExpand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 4).Draw(t, "rank")
		l := drawLayout(t, drawShape(t, rank, 8), 1, "l")
		dim := rapid.IntRange(0, rank-1).Draw(t, "dim")
		slice := l.Slice(dim)
		table := l.SliceTable(dim)
		require.Len(t, table, l.Registers())
		for w := range l.Warps() {
			for lane := range 32 {
				for r := range l.Registers() {
					at := l.At(r, lane, w)
					want := append(append([]int{}, at[:dim]...), at[dim+1:]...)
					if slice.Coord(table[r], lane, w) != Pack(want) {
						t.Fatalf("%v sliced along %d: register %d at %v, want %v", l, dim, r, slice.At(table[r], lane, w), want)
					}
				}
			}
		}
		wide := slice.Expand(dim)
		require.Equal(t, 1, wide.Extent(dim))
		require.True(t, wide.Slice(dim).Equal(slice))

		shape := wide.Shape()
		shape[dim] = 12
		all, err := wide.Broadcast(shape)
		require.NoError(t, err)
		from, ok := Fetch(wide, all)
		require.True(t, ok)
		for r, s := range from {
			at := all.At(r, 9, 1)
			at[dim] = 0
			require.Equal(t, wide.At(s, 9, 1), at)
		}
	})
}

func TestTransposeAndReshape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 3).Draw(t, "rank")
		l := drawLayout(t, drawShape(t, rank, 8), 1, "l")
		dims := make([]int, rank)
		for d := range dims {
			dims[d] = d
		}
		perm := rapid.Permutation(dims).Draw(t, "perm")
		m, err := l.Transpose(perm)
		require.NoError(t, err)
		back := make([]int, rank)
		for d, p := range perm {
			back[p] = d
		}
		again, err := m.Transpose(back)
		require.NoError(t, err)
		require.True(t, again.Equal(l))
		places := map[[2]int][]int{} // (lane, warp) holds the same elements
		for w := range l.Warps() {
			for lane := range 32 {
				for r := range l.Registers() {
					places[[2]int{lane, w}] = append(places[[2]int{lane, w}], number(l.shape, l.At(r, lane, w)))
				}
			}
		}
		for key, want := range places {
			var got []int
			for r := range m.Registers() {
				at := m.At(r, key[0], key[1])
				old := make([]int, rank)
				for d, p := range perm {
					old[p] = at[d]
				}
				got = append(got, number(l.shape, old))
			}
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got)
		}
	})
	for _, c := range []struct {
		from, to []int
		ok       bool
	}{
		{[]int{128, 64}, []int{8192}, true},
		{[]int{128, 64}, []int{2, 64, 8, 8}, true},
		{[]int{128, 80}, []int{2, 64, 80}, true},
		{[]int{128, 80}, []int{128, 5, 16}, true},
		{[]int{128, 80}, []int{128, 5, 4, 4}, true},
		{[]int{128, 80}, []int{128, 16, 5}, false},
		{[]int{128, 80}, []int{10240}, false},
		{[]int{3, 5, 16}, []int{15, 16}, true},
		{[]int{128, 64}, []int{64}, false},
		{[]int{6, 16}, []int{96}, true},
		{[]int{2, 3}, []int{6}, false},
		{[]int{3, 32}, []int{96}, true},
	} {
		l := mustLayout(t)(Replicated(c.from, 1))
		b, err := Blocked(c.from, reversed(len(c.from)), 4, 2)
		require.NoError(t, err)
		for _, l := range []*Layout{l, b} {
			m, err := l.Reshape(c.to)
			require.Equal(t, c.ok, err == nil, "%v to %v: %v", c.from, c.to, err)
			if err != nil {
				continue
			}
			for w := range l.Warps() {
				for lane := range 32 {
					for r := range l.Registers() {
						if number(c.from, l.At(r, lane, w)) != number(c.to, m.At(r, lane, w)) {
							t.Fatalf("%v as %v: register %d moved", l, m, r)
						}
					}
				}
			}
		}
	}
}

func reversed(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	return order
}

func TestQueries(t *testing.T) {
	l := mustLayout(t)(Parse("layout<8x24, reg=(0,1)(0,2)(0,4), lane=(1,0)(2,0)(4,0)(0,0)(1,1), warp=(0,0)(4,0)>"))
	require.Equal(t, 1<<3, l.FreeLanes())
	require.Equal(t, 1<<0, l.FreeWarps())
	require.Equal(t, []int{1, 2, 4, 0, 1, 0, 4}, l.ThreadBases(0))
	require.False(t, l.Additive(0))
	require.False(t, l.Additive(1))
	require.Equal(t, 1, l.Contiguous(1)) // a lane breaks the runs
	require.Equal(t, 8, l.Sub(1))
	require.Equal(t, 24, l.Registers())
}
