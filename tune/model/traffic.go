package model

import (
	"math/bits"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/simt"
)

// count adds what an instruction is, for the lanes that execute it.
func (w *walk) count(in *simt.Instr) {
	switch in.Op {
	case simt.OpMma:
		w.counts.Mma[in.Mma] += w.warpsHere()
	case simt.OpWgmma:
		s := in.Wgmma()
		w.counts.Wgmma[s.Form][s.N/simt.WgmmaN] += w.warpsHere()
	case simt.OpTensorLoad:
		w.tensorLoad(in)
	case simt.OpTensorStore:
		w.tensorStore(in)
	case simt.OpBar:
		w.counts.Barriers += w.warpsHere()
	case simt.OpLd, simt.OpAtom:
		w.access(in, in.Space, w.get(in.Args[0]), int64(in.Offset), accessBytes(in), false)
	case simt.OpSt, simt.OpRed:
		w.access(in, in.Space, w.get(in.Args[0]), int64(in.Offset), accessBytes(in), true)
	case simt.OpLdMatrix, simt.OpStMatrix:
		w.matrix(in)
	case simt.OpCpAsync:
		w.copyAsync(in)
	default:
		if in.Pipe() == simt.PipeMUFU || in.Op == simt.OpDiv && in.Type.IsFloat() {
			w.counts.MUFU += w.lanesHere()
		}
	}
}

func accessBytes(in *simt.Instr) int64 { return int64(in.Vec) * int64(in.Mem.Bytes()) }

func (w *walk) warpsHere() int64 {
	n := int64(0)
	for _, m := range w.active {
		if m != 0 {
			n++
		}
	}
	return n
}

func (w *walk) lanesHere() int64 {
	n := int64(0)
	for _, m := range w.active {
		n += popcount(m)
	}
	return n
}

// guarded returns the lanes of a warp that execute an instruction.
func (w *walk) guarded(in *simt.Instr, warp int, g lanes) uint32 {
	m := w.active[warp]
	if in.Guard == nil || !g.known {
		return m
	}
	if g.v == nil {
		if (g.n&1 != 0) == in.GuardNot {
			return 0
		}
		return m
	}
	for l := range warpSize {
		if m>>l&1 != 0 && (g.v[warp*warpSize+l]&1 != 0) == in.GuardNot {
			m &^= 1 << l
		}
	}
	return m
}

func (w *walk) guard(in *simt.Instr) lanes {
	if in.Guard == nil {
		return lanes{known: true, n: 1}
	}
	g := w.get(in.Guard)
	if !g.known {
		w.counts.Unknown++
	}
	return g
}

// access counts a load or store of size bytes a lane.
func (w *walk) access(in *simt.Instr, space simt.Space, addr lanes, offset, size int64, store bool) {
	g := w.guard(in)
	for warp := range w.active {
		m := w.guarded(in, warp, g)
		if m == 0 {
			continue
		}
		if space == simt.Shared {
			n := w.banks(in, warp, m, addr, offset, size)
			w.counts.SharedIdeal += min(n, idealWavefronts(m, size))
			if store {
				w.counts.SharedStores += n
			} else {
				w.counts.SharedLoads += n
			}
			continue
		}
		kind := &w.counts.Loads
		if store {
			kind = &w.counts.Stores
		}
		w.global(kind, warp, m, addr, offset, lanes{known: true, n: size}, store)
	}
}

// banks returns the wavefronts of a warp's access to shared memory: as the layouts say
// where all lanes take part, else by the addresses.
func (w *walk) banks(in *simt.Instr, warp int, m uint32, addr lanes, offset, size int64) int64 {
	if in.Waves > 0 && (m == ^uint32(0) || !addr.known) {
		return int64(in.Waves)
	}
	if !addr.known {
		return idealWavefronts(m, size)
	}
	var r request
	for l := range warpSize {
		if m>>l&1 != 0 {
			r.lane(l, addr.at(warp*warpSize+l)+offset, size)
		}
	}
	return r.wavefronts(int(size))
}

// idealWavefronts are those of lanes with size bytes each, no two in a bank's way.
func idealWavefronts(m uint32, size int64) int64 {
	return max(1, (popcount(m)*size+banks*bankBytes-1)/(banks*bankBytes))
}

// global counts a warp's access to global memory.
func (w *walk) global(kind *Access, warp int, m uint32, addr lanes, offset int64, size lanes, store bool) {
	if !addr.known { // gathered by data: each lane in a sector of its own
		n := popcount(m)
		kind.Requests++
		kind.Bytes += n * size.n
		kind.Sectors += n
		w.counts.Unknown++
		return
	}
	var r request
	for l := range warpSize {
		if i := warp*warpSize + l; m>>l&1 != 0 && size.at(i) > 0 {
			r.lane(l, addr.at(i)+offset, size.at(i))
			kind.Bytes += size.at(i)
		}
	}
	if r.n == 0 {
		return
	}
	kind.Requests++
	p := int(min(max(r.addr[0]>>pointerShift-1, 0), maxPointers-1))
	if !store && w.first[p] == 0 {
		w.first[p] = r.addr[0]
	}
	n := int64(0)
	r.sectors(func(s int64) {
		n++
		if store {
			w.writes.touch(s)
		} else {
			w.reads[p].touch(s)
		}
	})
	kind.Sectors += n
	if !store {
		w.seen[p] += n
		w.counts.Read[p] += n * bench.SectorBytes
	}
}

// matrix counts an ldmatrix or stmatrix: a wavefront each 8x8 matrix if its rows do not
// conflict.
func (w *walk) matrix(in *simt.Instr) {
	n := int64(in.Waves)
	if n == 0 {
		n = int64(in.Vec)
	}
	w.counts.SharedMatrix += n * w.warpsHere()
	w.counts.SharedIdeal += int64(in.Vec) * w.warpsHere()
}

// copyAsync counts a copy from global to shared memory: what lies past the size given
// is not read, but written as zeros.
func (w *walk) copyAsync(in *simt.Instr) {
	bytes := int64(in.CpAsyncBytes())
	size := lanes{known: true, n: bytes}
	if len(in.Args) > 2 {
		if s := w.get(in.Args[2]); s.known {
			size = s
		} else {
			w.counts.Unknown++
		}
	}
	g := w.guard(in)
	to, from := w.get(in.Args[0]), w.get(in.Args[1])
	for warp := range w.active {
		if m := w.guarded(in, warp, g); m != 0 {
			n := w.banks(in, warp, m, to, int64(in.Offset), bytes)
			w.counts.SharedCopies += n
			w.counts.SharedIdeal += min(n, idealWavefronts(m, bytes))
			w.global(&w.counts.Copies, warp, m, from, int64(in.CpAsyncGlobalOffset()), size, false)
		}
	}
}

// tensorLoad counts a copy by a tensor map: of its box, the rows that lie in the tensor.
func (w *walk) tensorLoad(in *simt.Instr) {
	blocks := int64(max(1, bits.OnesCount64(uint64(in.Imm)))) // that get the copy: each of them copies as much for the others
	p := w.pointer(in)
	at, _ := in.Box()
	w.boxes(in, at, &w.counts.Copies, func(from, to int64) {
		if w.first[p] == 0 {
			w.first[p] = from
		}
		for s := from / bench.SectorBytes; s <= (to-1)/bench.SectorBytes; s++ {
			w.counts.Copies.Sectors++
			w.reads[p].touch(s)
			w.seen[p]++
			w.counts.Read[p] += bench.SectorBytes * blocks
		}
	})
}

// tensorStore counts a copy to global memory by a tensor map: of its box, the rows that
// lie in the tensor.
func (w *walk) tensorStore(in *simt.Instr) {
	at, _ := in.Box()
	w.boxes(in, at, &w.counts.Writes, func(from, to int64) {
		for s := from / bench.SectorBytes; s <= (to-1)/bench.SectorBytes; s++ {
			w.counts.Writes.Sectors++
			w.writes.touch(s)
		}
	})
}

// pointer is the number of the pointer that a copy by a tensor map counts at.
func (w *walk) pointer(in *simt.Instr) int {
	base := w.params[in.Args[1].Def.Imm]
	return int(min(max(base>>pointerShift-1, 0), maxPointers-1))
}

// boxes calls f with the bytes, first and past the last, of every row of the boxes that
// the threads copy, where it lies in the tensor.
func (w *walk) boxes(in *simt.Instr, coordinates []*simt.Value, kind *Access, f func(from, to int64)) {
	param := in.Args[1].Def.Imm
	m, base := w.maps[param], w.params[param]
	g := w.guard(in)
	at := make([]lanes, len(m.Dims))
	for i, v := range coordinates {
		if at[i] = w.get(v); !at[i].known {
			w.counts.Unknown++
			at[i] = lanes{known: true}
		}
	}
	for warp := range w.active {
		here := w.guarded(in, warp, g)
		for l := range warpSize {
			if here>>l&1 != 0 {
				box(m, base, at, warp*warpSize+l, func(from, to int64) {
					kind.Requests++
					kind.Bytes += to - from
					f(from, to)
				})
			}
		}
	}
}

// box calls f with the bytes of the rows of one thread's box.
func box(m *codegen.TensorMap, base int64, at []lanes, thread int, f func(from, to int64)) {
	inner := at[0].at(thread)
	lo, hi := max(inner, 0), min(inner+int64(m.Box[0]), m.Dims[0])
	size := int64(m.Elem.MemoryBits() / 8)
	rows := 1
	for _, n := range m.Box[1:] {
		rows *= n
	}
	for row := range rows {
		addr, inside := base, lo < hi
		for d := 1; d < len(m.Dims); d++ {
			c := at[d].at(thread) + int64(row%m.Box[d])
			row /= m.Box[d]
			inside = inside && c >= 0 && c < m.Dims[d]
			addr += c * m.Strides[d-1]
		}
		if inside {
			f(addr+lo*size, addr+hi*size)
		}
	}
}
