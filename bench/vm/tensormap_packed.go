package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Tensors of 4- and 6-bit elements lie packed in global memory. In shared memory each
// 16 of them may begin a piece of 16 bytes, whose rest stays as it is; stores take 6-bit
// elements, then called .b6p2x16, from a byte each: PTX ISA 5.5.1.1. An mbarrier counts
// the bytes without that rest, as CUTLASS expects them (TmaTransactionBytes of its sm100
// collectives).

// packedBox is how many elements wide a box of padded ones is.
const packedBox = 128

// packedPiece is the bytes of shared memory that 16 padded elements begin.
const packedPiece = 16

// paddingUndefined marks n bytes between the elements that a copy brings.
func (b *block) paddingUndefined(c *bulkCopy, at uint64, n int) {
	from := b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: c.from, space: ptx.SpaceShared, addr: b.address(at), size: n, warp: c.w.index, lane: c.lane})
	b.undef.undefine(at, n, ^uint64(0), from)
}

// validPacked checks what is asked of elements of less than a byte besides: PTX ISA
// 9.7.9.27.1.1.
func (t *TensorMap) validPacked(unit bench.TensorUnit) error {
	if unit.Elements == 1 {
		return nil
	}
	least := uint64(2)
	if unit.Padded() {
		least = packedBox
	}
	switch {
	case t.Dims[0]%least != 0:
		return fmt.Errorf("tensor map of %d elements of .%s in dimension 0: want a multiple of %d", t.Dims[0], t.Type, least)
	case unit.Padded() && t.inner() != packedBox:
		return fmt.Errorf("tensor map with a box of %d elements of .%s in dimension 0: want %d", t.inner(), t.Type, packedBox)
	case t.ElementStrides[0] != 1:
		return fmt.Errorf("tensor map of .%s with element stride %d in dimension 0: want 1", t.Type, t.ElementStrides[0])
	case unit.Padded() && t.Swizzle != 0 && (t.Swizzle != 128 || t.Flip || t.Atom == 64 && t.Type != ptx.B6x16P32):
		return fmt.Errorf("tensor map of .%s with a swizzle of %d bytes in atoms of %d, flipped: %t: want none, or 128 bytes in atoms of 16 or 32", t.Type, t.Swizzle, t.Atom, t.Flip)
	}
	return nil
}

// squeezedBits are those of a byte that a store of .b6p2x16 takes.
const squeezedBits = 0x3f

// squeeze packs the elements in the lower bits of bytes, four in three bytes, at their
// beginning.
func squeeze(piece []byte) {
	for i := 0; i < len(piece); i += 4 {
		a, b, c, d := piece[i]&squeezedBits, piece[i+1]&squeezedBits, piece[i+2]&squeezedBits, piece[i+3]&squeezedBits
		out := piece[i/4*3:]
		out[0], out[1], out[2] = a|b<<6, b>>2|c<<4, c>>4|d<<2
	}
}

// packed checks a copy of elements of less than a byte, whose first coordinate is at.
func (c *bulkCopy) packed(t *TensorMap, at int32) error {
	unit := bench.UnitOf(t.Type)
	if c.op.plain && (unit.Elements > 1 || t.Swizzle > 0 && t.Atom > 16) {
		return fmt.Errorf("a load to .shared::cluster by a tensor map of .%s with a swizzle in atoms of %d bytes: sm_120 has those of whole bytes and 16 alone, want .shared::cta", t.Type, t.Atom)
	}
	if unit.Elements == 1 {
		return nil
	}
	least := int32(unit.Elements)
	if unit.Padded() {
		least = packedBox
	}
	switch {
	case c.op.reduce != nil:
		return fmt.Errorf("a reduction by a tensor map of .%s: want elements of 4 or 8 bytes, or floats", t.Type)
	case !c.op.told && t.Type == ptx.B4x16P64: // the second of PTX ISA 9.7.9.27.1.1's restrictions
		return fmt.Errorf("a store by a tensor map of .%s: want a load", t.Type)
	case c.op.told && t.Type == ptx.B6x16P32 && t.Atom == 64: // the driver's cuTensorMapEncodeTiled
		return fmt.Errorf("a load by a tensor map of .%s with a swizzle in atoms of 64 bytes: want a store", t.Type)
	case at%least != 0:
		return fmt.Errorf("coordinate %d of dimension 0 of a tensor map of .%s: want a multiple of %d", at, t.Type, least)
	}
	return nil
}
