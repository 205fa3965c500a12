package vm

import (
	"unsafe"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// The four warps of a warpgroup multiply by the same B, and those of a loop come to
// the same places again. So what an operand's descriptor means, and what its bytes
// decode to, is kept with a copy of the bytes, and used for as long as memory holds
// the same.

// tileKey is an operand of an instruction: its descriptor, and whose memory.
type tileKey struct {
	op   *wgmmaOp
	desc uint64
	cta  *cta
}

// wideTile is a decoded B.
type wideTile struct {
	chunks []uint32   // offsets in shared memory, of 16 bytes each
	bytes  [][16]byte // what was decoded
	known  bool       // something was
	panels []float32  // of eight columns each: column after column, or side by side
	sided  bool
}

// maxWideTiles is how many operands a block keeps: those of a pipeline's stages.
const maxWideTiles = 128

// wideTile finds B's chunks; nil where some lies outside the block's memory.
func (w *warp) wideTile(f *wgmmaFlight) *wideTile {
	key := tileKey{f.in.wg, f.b, w.cta}
	t, ok := w.b.wideTiles[key]
	if ok {
		return t
	}
	t = &wideTile{sided: key.op.fused == nil}
	d := decodeDescriptor(f.b)
	key.op.chunks(&d, 0, key.op.n, key.op.k, key.op.transB, func(addr uint64, _, _ int) {
		off, ok := w.matrixChunk(addr)
		if !ok {
			t = nil
		}
		if t != nil {
			t.chunks = append(t.chunks, uint32(off))
		}
	})
	if t != nil {
		t.bytes = make([][16]byte, len(t.chunks))
		t.panels = make([]float32, key.op.n*key.op.k)
	}
	if len(w.b.wideTiles) >= maxWideTiles {
		clear(w.b.wideTiles)
	}
	if w.b.wideTiles == nil {
		w.b.wideTiles = map[tileKey]*wideTile{}
	}
	w.b.wideTiles[key] = t
	return t
}

// fresh says whether memory holds what was decoded, and takes what it holds.
func (t *wideTile) fresh(shared []byte) bool {
	same := t.known
	for i, off := range t.chunks {
		now := (*[2]uint64)(unsafe.Pointer(&shared[off]))
		was := (*[2]uint64)(unsafe.Pointer(&t.bytes[i]))
		if *now != *was {
			*was, same = *now, false
		}
	}
	t.known = true
	return same
}

// undefined says whether some byte of the tile was never written.
func (t *wideTile) undefined(u *sharedUndefined) bool {
	for _, off := range t.chunks {
		if u.any(uint64(off), 16) {
			return true
		}
	}
	return false
}

// wgmmaB decodes B, panel by panel: eight columns of k numbers, side by side where
// they are summed in order.
func (w *warp) wgmmaB(f *wgmmaFlight, room *wideTiles) []float32 {
	op := f.in.wg
	t := w.wideTile(f)
	if t == nil {
		t = &wideTile{panels: room.b[:op.n*op.k], sided: op.fused == nil}
		w.decodeWide(f, t)
		w.undefinedColumns(f, room)
		return t.panels
	}
	if !t.fresh(w.b.shared) {
		w.decodeWide(f, t)
	}
	if u := w.b.undef; u != nil && t.undefined(u) {
		w.undefinedColumns(f, room)
	}
	return t.panels
}

// decodeWide decodes all of B.
func (w *warp) decodeWide(f *wgmmaFlight, t *wideTile) {
	op := f.in.wg
	if t.known {
		t.decode(op)
	} else {
		w.decodeChunks(f, t)
	}
	if !t.sided {
		return
	}
	var sided [tileN * maxTileK]float32
	for p := 0; p < len(t.panels); p += tileN * op.k {
		panel := t.panels[p : p+tileN*op.k]
		sideBySide(sided[:], panel, op.k, &evenFirst)
		copy(panel, sided[:])
	}
}

// decode decodes the bytes that memory holds, in the order of wgmmaOp.chunks.
func (t *wideTile) decode(op *wgmmaOp) {
	if op.bt == ptx.F16 && !op.transB {
		words := unsafe.Slice((*uint32)(unsafe.Pointer(&t.bytes[0])), 4*len(t.bytes))
		decodeHalves(t.panels, words, 8)
		return
	}
	var e [32]float32
	for i := range t.bytes {
		n := decodeWords(&e, &t.bytes[i], op.bt)
		if op.transB {
			acrossColumns(t.panels[i/op.k*n*op.k+i%op.k:], e[:n], op.k)
		} else {
			copy(t.panels[i*n:], e[:n])
		}
	}
}

// acrossColumns puts the elements of a chunk into columns of k numbers each.
func acrossColumns(out, e []float32, k int) {
	for i, v := range e {
		out[i*k] = v
	}
}

// decodeChunks decodes a B some of which lies outside the block's memory.
func (w *warp) decodeChunks(f *wgmmaFlight, t *wideTile) {
	op := f.in.wg
	d := decodeDescriptor(f.b)
	var e [32]float32
	op.chunks(&d, 0, op.n, op.k, op.transB, func(addr uint64, col, k int) {
		n := w.chunkAt(f, addr, &e, op.bt)
		if op.transB {
			acrossColumns(t.panels[col*op.k+k:], e[:n], op.k)
		} else {
			copy(t.panels[col*op.k+k:], e[:n])
		}
	})
}

// undefinedColumns notes columns of B that were read from bytes never written.
func (w *warp) undefinedColumns(f *wgmmaFlight, t *wideTiles) {
	op := f.in.wg
	d := decodeDescriptor(f.b)
	per := 128 / heldBits(op.bt)
	op.chunks(&d, 0, op.n, op.k, op.transB, func(addr uint64, col, _ int) {
		w.chunkUndefined(f, t, addr, col, per, op.transB, t.bad.cols[:])
	})
}
