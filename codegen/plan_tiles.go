package codegen

import "slices"

// Tiles returns the extent of the step's tile space along each axis; their product is
// Grid.
func (s *PlanStep) Tiles() []int64 { return slices.Clone(s.counts) }
