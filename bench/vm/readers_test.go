package vm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// TestReadersOfWrittenCells: what is kept of a cell's readers goes when the cell is
// written, in a block that never comes to a barrier too.
func TestReadersOfWrittenCells(t *testing.T) {
	r := &raceState{shared: make([]cell, 4), events: []event{{}, {warp: 0, lanes: 1}, {warp: 1, lanes: 1}, {warp: 2, lanes: 1}}, floor: 1 << eventShift}
	r.forgetReaders()
	warps := []*warp{{index: 0}, {index: 1}, {index: 2}}
	for range 100 {
		for i := range r.shared {
			c := &r.shared[i]
			c.r = 1 << eventShift
			for _, w := range warps[1:] {
				r.addReader(c, stamp(w.index+1)<<eventShift, &side{w: w, id: uint32(w.index + 1), space: ptx.SpaceShared})
			}
			var readers []uint32
			for n := r.current(&r.readers, c); n != 0; n = r.readers.all[n].next {
				readers = append(readers, r.readers.all[n].s.event())
			}
			require.ElementsMatch(t, []uint32{1, 2, 3}, readers)
		}
		for i := range r.shared {
			r.shared[i] = cell{}
		}
	}
	require.LessOrEqual(t, len(r.readers.all), r.mostReaders+2)
	require.LessOrEqual(t, r.mostReaders, 8*len(r.shared))
}
