package vm

import (
	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// tensorCopy is tcgen05.cp: rows of shared memory to lanes of tensor memory.
type tensorCopy struct {
	shape  *copyShape
	expand int // bits of the elements that become 8 bits; 0: none do
}

// copyShape is where cp's rows go: PTX ISA 9.7.16.9.2. to is the lanes of one
// row, from the address' lane on.
type copyShape struct {
	name  string
	rows  int
	bytes int // of a row
	to    func(row int) []int
}

var copyShapes = []copyShape{
	{"128x256b", 128, 32, func(r int) []int { return []int{r} }},
	{"4x256b", 4, 32, func(r int) []int { return []int{32 * r} }},
	{"128x128b", 128, 16, func(r int) []int { return []int{r} }},
	{"warpx2::02_13", 64, 16, func(r int) []int { return []int{r, r + 64} }},
	{"warpx2::01_23", 64, 16, func(r int) []int { return []int{r + r&32, r + r&32 + 32} }},
	{"warpx4", 32, 16, func(r int) []int { return []int{r, r + 32, r + 64, r + 96} }},
}

func (d *decoder) tensorCopy() {
	in, op := d.newTensor(kindMasked)
	c := &tensorCopy{}
	op.copy = c
	for i := range copyShapes {
		if d.has(copyShapes[i].name) {
			c.shape = &copyShapes[i]
		}
	}
	d.take("64x128b", "32x128b")
	if c.shape == nil {
		d.refuse("want a shape such as .128x256b")
	}
	d.has("b8x16")
	switch d.take("b6x16_p32", "b4x16_p64") {
	case "b6x16_p32":
		c.expand = 6
	case "b4x16_p64":
		c.expand = 4
	}
	ops := d.operands(2, 2)
	d.tensorAddress(in, &op.addr, &ops[0])
	d.source(in, &op.desc, &ops[1], ptx.B64, exact)
	in.fn[modeFull] = tensorCopyRows
	d.emit(in)
}

// pairOf is the blocks that an operation of a thread is done in.
func (w *warp) pairOf(in *inst, lane int) []*cta {
	if !in.tensor.pair {
		return []*cta{w.cta}
	}
	peer := w.peer(in, lane)
	switch {
	case peer == nil:
		return nil
	case peer.rank < w.cta.rank:
		return []*cta{peer, w.cta}
	}
	return []*cta{w.cta, peer}
}

// tensorCopyRows issues the copies of the active lanes.
func tensorCopyRows(w *warp, in *inst) {
	for l := w.mask; l != 0; l &= l - 1 {
		w.copyRows(in, firstLane(l))
	}
}

func (w *warp) copyRows(in *inst, lane int) {
	op := in.tensor
	s := op.copy.shape
	desc, err := decodeTensorDescriptor(w.q[op.desc][lane])
	if err != nil {
		w.fault(bench.BadDescriptor, in, lane, "%v", err)
		return
	}
	a := op.addr.of(w, lane)
	lanes := tensorLanes
	if s.rows == 4 {
		lanes = 97
	}
	if a.lane()+lanes > tensorLanes {
		w.badTensor(in, lane, uint64(a), "tensor memory at %v: .%s reaches lanes up to %d", a, s.name, a.lane()+lanes-1)
		return
	}
	x := w.newTensorWork(tensorCopying, in, lane)
	var sources []*matrix
	for _, c := range w.pairOf(in, lane) {
		area := lanesArea(c, a.lane(), lanes, a.column(), s.bytes/4)
		if !w.inside(in, lane, opcode(w.source(in)), &area) {
			return
		}
		sources = append(sources, &matrix{desc: desc, c: c, n: s.rows, k: s.bytes, bits: 8})
	}
	if len(sources) == 0 || !x.readMatrices(sources) {
		return
	}
	for _, m := range sources {
		w.use(x, lanesArea(m.c, a.lane(), lanes, a.column(), s.bytes/4), true, false)
	}
	x.land = func() {
		for _, m := range sources {
			x.copyTo(m, a)
		}
	}
	w.b.issueTensor(x)
}

// copyTo writes a copy's rows in one block.
func (x *tensorWork) copyTo(m *matrix, a tensorAddress) {
	op := x.in.tensor.copy
	t, b := m.c.tensor, x.w.b
	m.chunks(func(off uint64, row, k int) {
		p := (*[16]byte)(b.shared[off:])
		var undef [16]uint8
		used := 16
		if op.expand > 0 {
			used = 2 * op.expand
		}
		from := x.undefinedChunk(off, used)
		if from != 0 {
			copy(undef[:], b.undef.bytes[off:])
		}
		data := *p
		if op.expand > 0 {
			data, undef = expandPacked(p, &undef, op.expand)
		}
		for _, lane := range op.shape.to(row) {
			for i := range 4 {
				var bad uint8
				for j := range 4 {
					bad |= undef[4*i+j] & 1 << j
				}
				t.set(a.lane()+lane, a.column()+k/4+i, *at[uint32](data[4*i:]), 0xf, bad, from)
			}
		}
	})
}

// expandPacked turns 16 elements of 4 or 6 bits, packed at the beginning of 16
// bytes, into bytes: PTX ISA 9.7.16.9.1. An element of 4 bits lies in the middle
// of its byte, one of 6 in its lower bits.
func expandPacked(p *[16]byte, undef *[16]uint8, bits int) (out [16]byte, bad [16]uint8) {
	for i := range out {
		at := i * bits
		v := uint16(p[at/8])
		u := undef[at/8]
		if at/8+1 < 16 {
			v |= uint16(p[at/8+1]) << 8
			if at%8+bits > 8 {
				u |= undef[at/8+1]
			}
		}
		v = v >> (at % 8) & (1<<bits - 1)
		if bits == 4 {
			v <<= 2
		}
		out[i], bad[i] = byte(v), u
	}
	return out, bad
}

// tensorShift is tcgen05.shift: 31 lanes of a warp's 32 take what the next lane
// has in 8 columns.
func (d *decoder) tensorShift() {
	in, op := d.newTensor(kindMasked)
	d.has("down")
	ops := d.operands(1, 1)
	d.tensorAddress(in, &op.addr, &ops[0])
	in.fn[modeFull] = tensorShiftRows
	d.emit(in)
}

func tensorShiftRows(w *warp, in *inst) {
	for l := w.mask; l != 0; l &= l - 1 {
		w.shiftRows(in, firstLane(l))
	}
}

func (w *warp) shiftRows(in *inst, lane int) {
	const columns = 8
	a := in.tensor.addr.of(w, lane)
	if a.lane()%warpSize != 0 {
		at := uint64(a)
		w.faultAt(bench.MisalignedAddress, in, lane, &at, "tensor", "tensor memory at %v: want a lane that is a multiple of 32", a)
		return
	}
	x := w.newTensorWork(tensorShifting, in, lane)
	all := w.pairOf(in, lane)
	for _, c := range all {
		area := lanesArea(c, a.lane(), warpSize, a.column(), columns)
		if !w.inside(in, lane, opcode(w.source(in)), &area) {
			return
		}
		w.use(x, area, true, false)
	}
	if len(all) == 0 {
		return
	}
	x.land = func() {
		for _, c := range all {
			t := c.tensor
			for i := range warpSize - 1 {
				to, from := a.lane()+i, a.lane()+i+1
				for col := a.column(); col < a.column()+columns; col++ {
					t.set(to, col, t.words[from][col], 0xf, t.undef[from][col], t.origins[tensorAddress(from<<16|col)])
				}
			}
		}
	}
	w.b.issueTensor(x)
}
