package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// metadata says where the elements of a sparse A stand, of which half are kept:
// PTX ISA 9.7.14.6 and 9.7.15.6.
type metadata struct {
	slot     int32
	selector int32 // slot of which threads of a quad have them
}

// metadata binds the two operands from a place on and gives the rest.
func (d *decoder) metadata(in *inst, op *mmaOp, ops []ptx.Operand, at int) []ptx.Operand {
	if len(ops) < at+2 {
		d.refuse("%d operands: want metadata and a selector", len(ops))
	}
	op.sparse = &metadata{}
	d.source(in, &op.sparse.slot, &ops[at], ptx.B32, exact)
	d.source(in, &op.sparse.selector, &ops[at+1], ptx.U32, exact)
	return append(append([]ptx.Operand(nil), ops[:at]...), ops[at+2:]...)
}

// keptK is how many elements of a row of A an instruction is passed.
func (op *mmaOp) keptK() int {
	if op.sparse != nil {
		return op.k / 2
	}
	return op.k
}

// sparseShape says whether there is a sparse product of the shape and types.
func (op *mmaOp) sparseShape() bool {
	floats := (op.ct == ptx.F32 || op.ct == ptx.F16) && op.dt == op.ct
	integers := op.ct == ptx.S32 && op.dt == ptx.S32
	switch op.at {
	case ptx.F16:
		return floats && (op.k == 16 || op.k == 32)
	case ptx.BF16:
		return op.ct == ptx.F32 && op.dt == ptx.F32 && (op.k == 16 || op.k == 32)
	case ptx.TF32:
		return op.ct == ptx.F32 && op.dt == ptx.F32 && (op.k == 8 || op.k == 16)
	case ptx.S8, ptx.U8:
		return integers && (op.bt == ptx.S8 || op.bt == ptx.U8) && (op.k == 32 || op.k == 64)
	case ptx.S4, ptx.U4:
		return integers && (op.bt == ptx.S4 || op.bt == ptx.U4) && (op.k == 64 || op.k == 128)
	case packedE2M1:
		return op.scale != nil && op.k == 128
	}
	return floats && narrowFloats(op.at) && narrowFloats(op.bt) && op.k == 64
}

// unit is how many elements of a row the metadata of one thread, or of two, are
// of, and whether they are two's: one of each of the rows g and g+8. Otherwise a
// thread has the metadata of both, those of g in the lower half.
func (op *mmaOp) unit() (k int, two bool) {
	switch heldBits(op.at) {
	case 32:
		return 8, false
	case 16:
		return 16, false
	case 8:
		return 32, true
	}
	return 64, true
}

// rowMetadata is the metadata of one of 16 rows, of all of K. bad says that the
// selector names threads that there are not.
func (op *mmaOp) rowMetadata(meta *lanes32, selector uint32, row int) (v uint64, bad bool) {
	unit, two := op.unit()
	threads := op.k / unit
	if two {
		threads *= 2
	}
	first := int(selector) * threads
	if selector > 3 || first+threads > 4 {
		return 0, true
	}
	for i := range op.k / unit {
		at, shift, bits := first+i, 16*(row>>3), 16
		if two {
			at, shift, bits = first+2*i+row>>3, 0, 32
		}
		word := uint64(meta[4*(row&7)+at]) >> shift & (1<<bits - 1)
		v |= word << (bits * i)
	}
	return v, false
}

// expandRow puts the elements that are kept of a row where the metadata say.
func expandRow(out, kept []float32, meta uint64, t ptx.Type) {
	switch {
	case t == ptx.TF32: // one of two
		for i, v := range kept {
			out[2*i+int(meta>>(4*i)>>1&1)] = v
		}
	case heldBits(t) == 4: // two pairs of four
		for i := 0; i < len(kept); i += 2 {
			at := int(meta >> i & 3)
			out[i/4*8+2*at], out[i/4*8+2*at+1] = kept[i], kept[i+1]
		}
	default: // two of four
		for i, v := range kept {
			out[i/2*4+int(meta>>(2*i)&3)] = v
		}
	}
}

// leftOperand is A, row by row, k numbers each.
func (w *warp) leftOperand(in *inst, op *mmaOp) []float32 {
	if op.sparse == nil {
		return w.operandTile(op.a, op.at, op, false).v[:]
	}
	half := *op
	half.k = op.k / 2
	kept := &w.operandTile(op.a, op.at, &half, false).v
	out := &w.scratch().expanded
	if w.undefs > 0 {
		w.checkLanes(in, w.fr.prog.unified(class32, op.sparse.slot), w.mask, "as the metadata of a matrix")
	}
	selector := w.r[op.sparse.selector][0]
	for row := range tileM {
		meta, bad := op.rowMetadata(&w.r[op.sparse.slot], selector, row)
		if bad {
			w.fault(bench.BadDescriptor, in, 0, "%s: a selector of %d names threads that have no metadata", opcode(w.source(in)), selector)
			selector = 0
			meta, _ = op.rowMetadata(&w.r[op.sparse.slot], 0, row)
		}
		line := out[row*op.k : (row+1)*op.k]
		clear(line)
		expandRow(line, kept[row*half.k:(row+1)*half.k], meta, op.at)
	}
	return out[:]
}

// sparseFlight is the metadata of an instruction in flight.
type sparseFlight struct {
	meta     lanes32
	selector uint32
}

// expandWgmma makes a warp's rows of a sparse A dense.
func (w *warp) expandWgmma(f *wgmmaFlight, t *wideTiles) {
	op := f.in.wg
	var kept [maxTileK / 2]float32
	half := op.keptK()
	for row := tileM - 1; row >= 0; row-- { // in place: from the end
		meta, bad := op.rowMetadata(&f.sparse.meta, f.sparse.selector, row)
		if bad {
			w.fault(bench.BadDescriptor, f.in, 0, "%s: a selector of %d names threads that have no metadata", opcode(w.source(f.in)), f.sparse.selector)
			meta, _ = op.rowMetadata(&f.sparse.meta, 0, row)
		}
		copy(kept[:half], t.a[row*half:])
		line := t.a[row*op.k : (row+1)*op.k]
		clear(line)
		expandRow(line, kept[:half], meta, op.at)
	}
}
