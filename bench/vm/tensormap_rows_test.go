package vm_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// drawnRows is a random map of single rows, and four of its rows.
type drawnRows struct {
	drawnMap
	rows []int32
}

func drawRows(t *rapid.T, load bool) *drawnRows {
	m := &drawnRows{}
	m.Type = rapid.SampledFrom([]ptx.Type{ptx.U8, ptx.F16, ptx.F32, ptx.F64}).Draw(t, "type")
	m.Swizzle = rapid.SampledFrom([]int{0, 32, 64, 128}).Draw(t, "swizzle")
	m.FillNaN = m.Type.Float() && rapid.Bool().Draw(t, "nan")
	size, width := uint64(m.Type.Size()), uint64(m.Swizzle)
	if width == 0 {
		width = 16 * rapid.Uint64Range(1, 4).Draw(t, "chunks")
	}
	columns, dim, count := width/size, rapid.Uint64Range(1, 2*width/size+3).Draw(t, "columns"), rapid.IntRange(4, 9).Draw(t, "rows")
	step := (dim*size + 15) / 16 * 16
	m.Dims, m.Box, m.ElementStrides, m.Strides = []uint64{dim, uint64(count)}, []uint32{uint32(columns), 1}, []uint32{1, 1}, []uint64{step}
	least := 0
	if load {
		least = -2
	}
	m.at = []int32{int32(rapid.IntRange(least*int(columns), int(dim)).Draw(t, "column")), 0}
	m.rows = rapid.SliceOfNDistinct(rapid.Int32Range(int32(least), int32(count)+1), 4, 4, rapid.ID[int32]).Draw(t, "four")
	m.tensor = make([]byte, step*uint64(count))
	for i := range m.tensor {
		m.tensor[i] = byte(i*7 + i>>8)
	}
	return m
}

// each is that of drawnMap.
func (m *drawnRows) each(f func(n int, offset int64)) int {
	columns, size := int(m.Box[0]), m.Type.Size()
	for n := range 4 * columns {
		row, column := int64(m.rows[n/columns]), int64(m.at[0])+int64(n%columns)
		offset := int64(-1)
		if row >= 0 && row < int64(m.Dims[1]) && column >= 0 && column < int64(m.Dims[0]) {
			offset = row*int64(m.Strides[0]) + column*int64(size)
		}
		f(n, offset)
	}
	return 4 * columns * size
}

// fourRows is a tensor kernel's edit that copies the rows in a mode.
func (m *drawnRows) fourRows(mode string) func(text string) string {
	return func(text string) string {
		var moves strings.Builder
		for i, row := range m.rows {
			fmt.Fprintf(&moves, "mov.b32 %%y%d, %d; ", i, row)
		}
		text = replace(text, "{%c0, %c1}", "{%c0, %y0, %y1, %y2, %y3}")
		text = replace(text, ".reg .pred %p, %q;", ".reg .pred %p, %q; .reg .b32 %y<4>;")
		return replace(replace(text, "ld.param.u64 %box", moves.String()+"ld.param.u64 %box"), ".tile.", "."+mode+".")
	}
}

// TestTensorGather compares four rows that a load gathers with the tensor.
func TestTensorGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawRows(t, true)
		m.edit = m.fourRows("tile::gather4")
		m.checkLoad(t, m.each)
	})
}

// TestTensorScatter: a store writes four rows inside the tensor and nothing else.
func TestTensorScatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawRows(t, false)
		m.edit = m.fourRows("tile::scatter4")
		m.checkStore(t, m.each)
	})
}

// TestTensorRowFaults: maps of several rows, and rows before the first.
func TestTensorRowFaults(t *testing.T) {
	sample := func() *drawnRows {
		m := &drawnRows{rows: []int32{3, 0, 2, 9}}
		m.TensorMap = bench.TensorMap{Type: ptx.F16, Dims: []uint64{16, 8}, Strides: []uint64{32}, Box: []uint32{16, 1}}
		m.tensor, m.at = make([]byte, 256), []int32{0, 0}
		return m
	}
	m := sample()
	m.edit = m.fourRows("tile::gather4")
	require.Empty(t, m.faults(t, 128))
	m.Box[1] = 2
	faults := m.faults(t, 128)
	require.Equal(t, bench.BadDescriptor, faults[0].Class)
	require.Contains(t, faults[0].Message, "a box of 2 rows: gather4 and scatter4 want 1")

	m = sample()
	m.rows[2] = -1
	m.edit = m.fourRows("tile::scatter4")
	_, _, faults = m.launch(t, "cp", bytes.Repeat([]byte{1}, 128), timings[0])
	require.Equal(t, bench.BadDescriptor, faults[0].Class)
	require.Contains(t, faults[0].Message, "a store at coordinate -1")
}
