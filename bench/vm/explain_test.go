package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// TestExplainDescriptor: the canonical layouts of PTX ISA 9.7.15.5.1, by hand.
func TestExplainDescriptor(t *testing.T) {
	const start, swizzle128 = 0x400, 1 << 62
	field := func(bytes uint64, at int) uint64 { return bytes >> 4 << at }

	// K is contiguous, rows of 128 bytes swizzled, 8 rows in 1024 bytes.
	m, err := vm.ExplainDescriptor(swizzle128|field(start, 0)|field(16, 16)|field(1024, 32), vm.Operand{Rows: 64, Type: ptx.F16})
	require.NoError(t, err)
	require.Len(t, m.Rows, 64)
	require.Equal(t, 64*16*2, m.Bytes)
	require.EqualValues(t, start, m.First)
	for row, r := range m.Rows {
		x := uint64(row % 8)
		want := start + uint64(row)*128
		var list []vm.Span
		for c := range uint64(2) {
			at := want + (c^x)*16
			if n := len(list); n > 0 && list[n-1].End == at {
				list[n-1].End += 16
				continue
			}
			list = append(list, vm.Span{First: at, End: at + 16})
		}
		require.Equal(t, list, r.Bytes, "row %d", row)
	}

	// Not swizzled: core matrices of 8 rows of 16 bytes, 128 apart along the rows and 256 along k.
	m, err = vm.ExplainDescriptor(field(start, 0)|field(256, 16)|field(128, 32), vm.Operand{Rows: 16, Type: ptx.S8})
	require.NoError(t, err)
	require.Equal(t, 0, m.Swizzle)
	require.Equal(t, []vm.Span{{First: start + 128 + 16, End: start + 128 + 32}, {First: start + 384 + 16, End: start + 384 + 32}}, m.Rows[9].Bytes)

	// Transposed: 64 rows are contiguous, a line for each k.
	m, err = vm.ExplainDescriptor(swizzle128|field(start, 0)|field(1024, 16)|field(1024, 32), vm.Operand{Rows: 64, Type: ptx.BF16, Transposed: true})
	require.NoError(t, err)
	require.Len(t, m.Rows, 16)
	require.Equal(t, []vm.Span{{First: start, End: start + 128}}, m.Rows[0].Bytes)

	for _, o := range []vm.Operand{{Rows: 12, Type: ptx.F16}, {Rows: 264, Type: ptx.F16}, {Rows: 64, Type: ptx.F32}, {Rows: 64, Type: ptx.S8, Transposed: true}} {
		_, err := vm.ExplainDescriptor(0, o)
		require.Error(t, err)
	}
}

// TestExplainTensorMap: a box that reaches past the right and the lower edge.
func TestExplainTensorMap(t *testing.T) {
	m := &bench.TensorMap{Type: ptx.F16, Dims: []uint64{40, 3}, Strides: []uint64{80}, Box: []uint32{32, 2}, Swizzle: 64}
	rows, err := vm.ExplainTensorMap(m, []int32{16, 2})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, vm.BoxRow{Global: vm.Span{First: 2*80 + 32, End: 2*80 + 80}, Outside: 16, Shared: []vm.Span{{First: 0, End: 64}}}, rows[0])
	require.Equal(t, vm.BoxRow{Outside: 64, Shared: []vm.Span{{First: 64, End: 128}}}, rows[1])
	_, err = vm.ExplainTensorMap(m, []int32{0})
	require.ErrorContains(t, err, "want")
}

// TestExplainBadTensorMap: what cannot be encoded is refused as a launch refuses it.
func TestExplainBadTensorMap(t *testing.T) {
	m := bench.TensorMap{Type: ptx.U32, Dims: []uint64{4}, Box: []uint32{4}, ElementStrides: []uint32{0}}
	_, err := vm.ExplainTensorMap(&m, []int32{0})
	require.EqualError(t, err, "tensor map: element stride 0 in dimension 0: want 1 to 8")
	m.ElementStrides, m.Swizzle = nil, 5
	_, err = vm.ExplainTensorMap(&m, []int32{0})
	require.ErrorContains(t, err, "swizzle of 5 bytes: want 0, 32, 64 or 128")
}
