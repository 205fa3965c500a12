package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// footprintKey is what a footprint depends on: the rows of A are a warp's own.
type footprintKey struct {
	op   *wgmmaOp
	a, b uint64
	cta  *cta
	part int
}

// footprint is the ranges of shared memory that a warp's part of an
// instruction reads, sorted and joined. It is kept, as loops come back to them.
func (w *warp) footprint(f *wgmmaFlight) []span {
	op := f.in.wg
	key := footprintKey{op, f.a, f.b, w.cta, w.number & 3}
	list, ok := w.b.footprints[key]
	if ok {
		return list
	}
	add := func(addr uint64, _, _ int) {
		if off, ok := w.matrixChunk(addr); ok {
			list = append(list, span{off, off + 16})
		}
	}
	if !op.aRegs {
		d := decodeDescriptor(f.a)
		op.chunks(&d, 16*(w.number&3), tileM, op.keptK(), op.transA, add)
	}
	d := decodeDescriptor(f.b)
	op.chunks(&d, 0, op.n, op.k, op.transB, add)
	list = joinSpans(list)
	if len(w.b.footprints) >= 4*maxWideTiles {
		clear(w.b.footprints)
	}
	if w.b.footprints == nil {
		w.b.footprints = map[footprintKey][]span{}
	}
	w.b.footprints[key] = list
	return list
}

// watchWgmma notes what an instruction reads until it has landed, and that its
// accumulators are not to be touched.
func (w *warp) watchWgmma(f *wgmmaFlight) {
	op := f.in.wg
	bytes := int64(op.n * op.k * heldBits(op.bt) / 8 / 4) // a warp's share of B
	if !op.aRegs {
		bytes += int64(tileM * op.keptK() * heldBits(op.at) / 8)
	}
	waves := (bytes + bankBytes - 1) / bankBytes
	w.b.requested(op.id, sharedOperands, bytes, waves, waves)
	if r := w.b.race; r != nil && !r.off {
		in := f.in
		at := side{w: w, in: in, space: ptx.SpaceShared, id: r.newEvent(w, w.source(in), eventAsync, 0, allLanes)}
		f.read = &flight{ranges: w.footprint(f), from: w.source(in), warp: w.index}
		r.asyncRead(&at, f.read.ranges)
		r.flights = append(r.flights, f.read)
	}
	if w.u == nil {
		return
	}
	w.flyAccumulators(f)
}

// wgmmaDone ends an instruction's reads: they are now the warp's own.
func (w *warp) wgmmaDone(f *wgmmaFlight) {
	w.doneFragments(f)
	if f.bad != nil {
		current := w.fr
		if current != f.fr {
			w.enter(f.fr)
			defer w.enter(current)
		}
		op := f.in.wg
		w.wgmmaDefined(f, f.bad, len(op.d)/(op.n/tileN))
		f.bad = nil
	}
	r := w.b.race
	if r == nil || r.off || f.read == nil {
		return
	}
	r.dropFlight(f.read)
	at := side{w: w, in: f.in, space: ptx.SpaceShared, id: r.newEvent(w, f.read.from, eventAsync, 0, allLanes), several: severalLanes}
	r.readSpans(f.read.ranges, &at)
}
