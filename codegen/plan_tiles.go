package codegen

import "slices"

// Tiles returns the extent of the step's tile space along each axis, and how many blocks
// have a tile together if several do; their product is Grid, unless blocks go on
// from tile to tile.
func (s *PlanStep) Tiles() []int64 {
	if s.perTile > 1 {
		return append(slices.Clone(s.counts), s.perTile)
	}
	return slices.Clone(s.counts)
}

// Persistent tells whether the step's blocks go on from tile to tile.
func (s *PlanStep) Persistent() bool { return s.persistent }

// Owner returns the block that computes the tile of a number in the order of the raster.
func (s *PlanStep) Owner(tile int64) int64 {
	if !s.persistent {
		return tile
	}
	if round := tile / s.Grid; s.snake && round%2 == 1 {
		cluster := (s.Grid - 1 - tile%s.Grid) / s.blocks
		return cluster*s.blocks + tile%s.blocks
	}
	return tile % s.Grid
}

// Rounds returns the step with a grid of which each block has at most so many tiles, if
// its blocks go on from tile to tile; else the step as it is.
func (s *PlanStep) Rounds(n int64) PlanStep {
	out := *s
	if !s.persistent || s.Grid == 0 {
		return out
	}
	clusters := int64(1)
	for _, c := range s.clusters() {
		clusters *= c
	}
	out.Grid = (clusters + n - 1) / n * s.blocks
	return out
}

// Rounds gives each step a grid of which a block has at most so many tiles, where blocks go
// on from tile to tile: what they then do is in small what they do over the whole grid.
func (p *Plan) Rounds(n int64) {
	for i := range p.Steps {
		p.Steps[i] = p.Steps[i].Rounds(n)
	}
}

// Point returns the point of the tile space that a block of the grid computes, the first
// of them where it goes on to others, and which it is of the blocks that have the tile
// together if several do: the inverse of Block. The block must be in the grid.
func (s *PlanStep) Point(block int64) []int {
	if n := s.perTile; n > 1 {
		return append(s.tileOf(block/n), int(block%n))
	}
	return s.tileOf(block)
}

// clusters is the tile space with clusters in place of tiles.
func (s *PlanStep) clusters() []int64 {
	counts := slices.Clone(s.counts)
	counts[0] /= s.blocks
	return counts
}
