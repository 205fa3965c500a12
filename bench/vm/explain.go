package vm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// MatrixRead is a matrix in shared memory that wgmma reads: what its
// descriptor says, and which bytes that are.
type MatrixRead struct {
	Start   uint64 `json:"start"`
	Leading uint64 `json:"leading_bytes"`
	Stride  uint64 `json:"stride_bytes"`
	Swizzle int    `json:"swizzle_bytes"`
	Base    uint64 `json:"base_offset_bytes"`
	Bytes   int    `json:"bytes"` // distinct ones
	First   uint64 `json:"first"` // address
	End     uint64 `json:"end"`   // after the last

	Rows []RowBytes `json:"rows"` // of A, or columns of B; where transposed, along k
}

// RowBytes are the bytes of one row, in the order of its elements.
type RowBytes struct {
	Row   int    `json:"row"`
	Bytes []Span `json:"bytes"`
}

// Span is a range of addresses, [First, End).
type Span struct {
	First uint64 `json:"first"`
	End   uint64 `json:"end"`
}

// Operand is an operand of wgmma in shared memory: Rows rows of A, or columns
// of B, by the K of the type's instructions.
type Operand struct {
	Rows       int
	Type       ptx.Type
	Transposed bool // rows are contiguous, not k
}

// wgmmaDepth is the extent of k of an instruction, by the bits of an element.
var wgmmaDepth = map[int]int{16: 16, 32: 8, 8: 32}

// ExplainDescriptor lists the bytes that wgmma reads through a descriptor.
func ExplainDescriptor(v uint64, o Operand) (*MatrixRead, error) {
	if o.Rows < 8 || o.Rows > 256 || o.Rows%8 != 0 {
		return nil, fmt.Errorf("%d rows: want a multiple of 8 from 8 to 256", o.Rows)
	}
	switch o.Type {
	case ptx.F16, ptx.BF16:
	case ptx.TF32, ptx.E4M3, ptx.E5M2, ptx.S8, ptx.U8:
		if o.Transposed {
			return nil, fmt.Errorf("type %s: only f16 and bf16 are read transposed", o.Type)
		}
	default:
		return nil, fmt.Errorf("type %s: want one of f16 bf16 tf32 e4m3 e5m2 s8 u8", o.Type)
	}
	d := decodeDescriptor(v)
	m := &MatrixRead{Start: d.start, Leading: d.leading, Stride: d.stride, Swizzle: d.swizzle, Base: d.base}
	op := &wgmmaOp{}
	op.at, op.k = o.Type, wgmmaDepth[heldBits(o.Type)]
	var all []Span
	op.chunks(&d, 0, o.Rows, op.k, o.Transposed, func(addr uint64, row, k int) {
		if o.Transposed {
			row = k
		}
		for len(m.Rows) <= row {
			m.Rows = append(m.Rows, RowBytes{Row: len(m.Rows)})
		}
		s := Span{addr, addr + 16}
		m.Rows[row].Bytes = appendSpan(m.Rows[row].Bytes, s)
		all = append(all, s)
	})
	slices.SortFunc(all, func(a, b Span) int { return int(int64(a.First) - int64(b.First)) })
	m.First, m.End = all[0].First, all[len(all)-1].End
	for i, s := range all {
		if i == 0 || all[i-1] != s {
			m.Bytes += int(s.End - s.First)
		}
	}
	return m, nil
}

// appendSpan adds a range, joined with the last where it follows that.
func appendSpan(list []Span, s Span) []Span {
	if n := len(list); n > 0 && list[n-1].End == s.First {
		list[n-1].End = s.End
		return list
	}
	return append(list, s)
}

// BoxRow is a run of a box that a tensor copy moves: bytes of the tensor,
// counted from its address, and where they lie in shared memory, counted from a
// destination on 1024 bytes.
type BoxRow struct {
	Global  Span   `json:"global"`
	Outside int    `json:"outside_bytes"` // of the run, which are filled or not stored
	Shared  []Span `json:"shared"`        // of the whole run, in its order
}

// ExplainTensorMap lists what a copy of the box at some coordinates, innermost
// first, moves.
func ExplainTensorMap(m *bench.TensorMap, at []int32) ([]BoxRow, error) {
	if m.Im2col != nil {
		return nil, errors.New("an im2col map: want one of boxes")
	}
	if len(at) != len(m.Box) {
		return nil, fmt.Errorf("%d coordinates: want %d, one for each dimension of the tensor", len(at), len(m.Box))
	}
	t := TensorMap(*m)
	t.Address = 0
	if _, err := t.Encode(); err != nil {
		return nil, err
	}
	if t.ElementStrides == nil {
		t.ElementStrides = slices.Repeat([]uint32{1}, len(t.Box))
	}
	c := &bulkCopy{swizzle: t.swizzle()}
	var out []BoxRow
	for _, r := range t.rows(at) {
		row := BoxRow{Outside: int(r.size - r.n)}
		if r.n > 0 {
			row.Global = Span{r.global, r.global + uint64(r.n)}
		}
		new(block).spread(c, r, func(at uint64, _, n int) {
			row.Shared = appendSpan(row.Shared, Span{at, at + uint64(n)})
		})
		out = append(out, row)
	}
	return out, nil
}
