package vm

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// tensorDescriptor is a matrix in shared memory as tcgen05 describes it: PTX ISA
// 9.7.16.4.1.
type tensorDescriptor struct {
	descriptor
	atoms32 bool // swizzled in 128 bytes, by pieces of 32
}

// decodeTensorDescriptor reads a descriptor. The error says what is wrong.
func decodeTensorDescriptor(v uint64) (d tensorDescriptor, err error) {
	d.start, d.leading, d.stride = v&0x3fff<<4, v>>16&0x3fff<<4, v>>32&0x3fff<<4
	d.base = v >> 49 & 7 << 7
	switch {
	case v>>46&7 != 1:
		return d, fmt.Errorf("matrix descriptor %#x: bits 46 to 48 are %d, want 1", v, v>>46&7)
	case v>>52&1 != 0:
		return d, fmt.Errorf("matrix descriptor %#x: the virtual machine has no absolute leading dimension", v)
	case v>>53&0xff != 0:
		return d, fmt.Errorf("matrix descriptor %#x: bits 53 to 60 are %#x, want 0", v, v>>53&0xff)
	}
	switch v >> 61 {
	case 0:
	case 1:
		d.swizzle, d.atoms32 = 128, true
	case 2:
		d.swizzle = 128
	case 4:
		d.swizzle = 64
	case 6:
		d.swizzle = 32
	default:
		return d, fmt.Errorf("matrix descriptor %#x: swizzle %d, want 0, 1, 2, 4 or 6", v, v>>61)
	}
	return d, nil
}

// chunk is descriptor.chunk.
func (d *tensorDescriptor) chunk(c, i int, transposed bool) uint64 {
	if !d.atoms32 {
		return d.descriptor.chunk(c, i, transposed)
	}
	a := d.start + uint64(i%4)*128 + uint64(i/4)*d.stride + uint64(c)%8*16 + uint64(c)/8*d.leading - d.base
	return a ^ a>>2&0x60 + d.base
}

// matrix is an operand in a block's shared memory: rows of A, or columns of B,
// [first, first+n), times k. bits is what an element takes there.
type matrix struct {
	desc       tensorDescriptor
	c          *cta
	n, k, bits int
	first      int
	transposed bool // the rows are contiguous
}

// chunks calls f for the matrix' pieces of 16 bytes: the offset in the cluster's
// shared memory, and the row (from 0 on) and k of the first element. Others
// follow along k, or along rows where transposed.
func (m *matrix) chunks(f func(off uint64, row, k int)) {
	per := 128 / m.bits
	base := uint64(m.c.b.sharedBase)
	at := func(addr uint64) uint64 { return addr - base + m.c.low }
	if !m.transposed {
		for row := range m.n {
			for k := 0; k < m.k; k += per {
				f(at(m.desc.chunk(k/per, m.first+row, false)), row, k)
			}
		}
		return
	}
	for row := 0; row < m.n; row += per {
		for k := range m.k {
			f(at(m.desc.chunk((m.first+row)/per, k, true)), row, k)
		}
	}
}

// inShared says whether 16 bytes at an offset are of the matrix' block.
func (m *matrix) inShared(off uint64) bool {
	n := uint64(m.c.b.l.sharedSize)
	return n >= 16 && off-m.c.low <= n-16
}

// footprints are the ranges of shared memory that matrices are in, sorted and
// joined; false after a report of one that reaches outside.
func (w *warp) footprints(x *tensorWork, all []*matrix) ([]span, bool) {
	var list []span
	ok, watched := true, w.b.race != nil
	for _, m := range all {
		m.chunks(func(off uint64, _, _ int) {
			if m.inShared(off) {
				if watched {
					list = append(list, span{off, off + 16})
				}
				return
			}
			if ok {
				addr := off - m.c.low + uint64(w.b.sharedBase)
				w.faultAt(bench.BadDescriptor, x.in, x.lane, &addr, "shared", "the matrix reaches shared address %#x: the block has %d bytes from %#x", addr, w.b.l.sharedSize, w.b.sharedBase)
			}
			ok = false
		})
	}
	return joinSpans(list), ok
}

// readMatrices notes that an operation reads matrices in shared memory; false
// after a report.
func (x *tensorWork) readMatrices(all []*matrix) bool {
	w := x.w
	ranges, ok := w.footprints(x, all)
	if !ok {
		return false
	}
	for _, m := range all {
		bytes := int64(m.n * m.k * m.bits / 8)
		waves := (bytes + bankBytes - 1) / bankBytes
		w.b.requested(x.in.tensor.id, sharedOperands, bytes, waves, waves)
	}
	x.readShared(ranges)
	return true
}

// undefinedChunk is where undefined bytes among n of shared memory came from, 0 if
// there are none.
func (x *tensorWork) undefinedChunk(off uint64, n int) uint32 {
	b := x.w.b
	u := b.undef
	if u == nil || !u.any(off, n) {
		return 0
	}
	for i := range uint64(n) {
		if from, ok := u.origins[off+i]; ok && u.bytes[off+i] != 0 {
			return from
		}
	}
	return b.addOrigin(origin{class: bench.UninitialisedSharedRead, src: x.from, space: ptx.SpaceShared, addr: b.address(off), size: n, warp: x.w.index, lane: x.lane})
}
