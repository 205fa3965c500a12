package codegen

import "slices"

// Tiles returns the extent of the step's tile space along each axis; their product is
// Grid.
func (s *PlanStep) Tiles() []int64 { return slices.Clone(s.counts) }

// Point returns the point of the tile space that a block of the grid computes: the
// inverse of Block. The block must be in the grid.
func (s *PlanStep) Point(block int64) []int {
	at := make([]int, len(s.counts))
	first := 0
	grouped := s.order.Group > 1 && len(at) > 1
	if grouped {
		first = 2
	}
	for i := len(at) - 1; i >= first; i-- {
		at[i] = int(block % s.counts[i])
		block /= s.counts[i]
	}
	if grouped {
		g := int64(s.order.Group)
		row := block / (g * s.counts[1]) * g
		size := min(s.counts[0]-row, g)
		block -= row * s.counts[1]
		at[0], at[1] = int(row+block%size), int(block/size)
	}
	for _, r := range s.order.Reversed {
		at[r] = int(s.counts[r]) - 1 - at[r]
	}
	return at
}
