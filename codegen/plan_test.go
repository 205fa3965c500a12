package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
	"github.com/kgen-dev/kgen/ir"
)

// TestBlockCountsEveryPointOnce holds that a raster is a permutation of the tile space.
func TestBlockCountsEveryPointOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(1, 4).Draw(t, "rank")
		s := PlanStep{Kernel: "k", Grid: 1, blocks: int64(1) << rapid.IntRange(0, 2).Draw(t, "cluster")}
		for range rank {
			n := rapid.Int64Range(1, 9).Draw(t, "count")
			if len(s.counts) == 0 {
				n *= s.blocks
			}
			s.counts = append(s.counts, n)
			s.Grid *= n
		}
		s.order = ir.Order{Group: rapid.IntRange(0, 5).Draw(t, "group")}
		if rapid.Bool().Draw(t, "curve") {
			s.order = ir.Order{Hilbert: 1 << rapid.IntRange(0, 3).Draw(t, "square")}
		}
		for d := range rank {
			if rapid.Bool().Draw(t, "reversed") {
				s.order.Reversed = append(s.order.Reversed, d)
			}
		}
		seen := make([]bool, s.Grid)
		point := make([]int, rank)
		for range s.Grid {
			id, err := s.Block(point)
			require.NoError(t, err)
			require.Less(t, id, s.Grid)
			require.False(t, seen[id], "block %d twice, at %v", id, point)
			seen[id] = true
			for d := rank - 1; d >= 0; d-- {
				if point[d]++; int64(point[d]) < s.counts[d] {
					break
				}
				point[d] = 0
			}
		}
	})
}

// TestPipelineKeepsItsOrder holds the list of passes to the reasons beside it.
func TestPipelineKeepsItsOrder(t *testing.T) {
	at := map[string]int{}
	for i, p := range pipeline {
		at[p.name] = i
	}
	for _, o := range order {
		require.Contains(t, at, o.before)
		require.Contains(t, at, o.after)
		require.Less(t, at[o.before], at[o.after], o.why)
	}
}
