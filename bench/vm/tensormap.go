package vm

import (
	"encoding/binary"
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// TensorMap describes a tensor in global memory to the bulk tensor copies.
type TensorMap bench.TensorMap

// TensorMap encodes a tensor map for a launch.
func (d *Device) TensorMap(t *bench.TensorMap) (bench.Arg, error) { return (*TensorMap)(t).Encode() }

// TensorMapSize is the size of a tensor map in bytes.
const TensorMapSize = 128

// Fields of the virtual machine's tensor maps. tensormap.replace writes them
// one by one, into bytes that were zero.
const (
	mapAddress       = 0  // uint64
	mapRank          = 8  // rank - 1
	mapType          = 9  // PTX's number of the type
	mapInterleave    = 10 // 0 none
	mapSwizzle       = 11 // 0, 1, 2, 3: none, 32, 64, 128 bytes
	mapFill          = 12 // 0 zeros, 1 NaN
	mapAtomicity     = 13 // 0, 1, 2, 3: 16 bytes, 32, 32 with halves flipped, 64
	mapElementStride = 16 // uint8 each, minus 1; 5 of them
	mapStride        = 24 // uint64 each, bytes; 4 of them
	mapDim           = 56 // uint32 each, minus 1; 5 of them
	mapBox           = 76 // uint16 each; 5 of them
	mapLast          = 86
)

// mapTypes are the element types by their number in PTX (ISA 9.7.9.26,
// tensormap.replace).
var mapTypes = []ptx.Type{
	ptx.U8, ptx.U16, ptx.U32, ptx.S32, ptx.U64, ptx.S64, ptx.F16, ptx.F32, ptx.F32, ptx.F64, ptx.BF16, ptx.TF32, ptx.TF32,
	ptx.B4x16, ptx.B4x16P64, ptx.B6x16P32,
}

// Encode is the tensor map as the virtual machine reads it: an argument for a
// parameter of 128 bytes.
func (t *TensorMap) Encode() ([]byte, error) {
	rank := len(t.Dims)
	if rank < 1 || rank > 5 || t.Im2col == nil && len(t.Box) != rank || len(t.Strides) != rank-1 {
		return nil, fmt.Errorf("tensor map of %d dimensions, %d box extents, %d strides: want 1 to 5 dimensions, as many extents, one stride fewer", rank, len(t.Box), len(t.Strides))
	}
	ones := *t
	if t = &ones; t.ElementStrides == nil {
		t.ElementStrides = []uint32{1, 1, 1, 1, 1}[:rank]
	}
	if len(t.ElementStrides) != rank {
		return nil, fmt.Errorf("tensor map of %d dimensions, %d element strides: want as many", rank, len(t.ElementStrides))
	}
	number := -1
	for i, mt := range mapTypes {
		if mt == t.Type {
			number = i
			break
		}
	}
	if number < 0 {
		return nil, fmt.Errorf("tensor map of .%s: want a type of tensor maps", t.Type)
	}
	swizzle, ok := map[int]byte{0: 0, 32: 1, 64: 2, 128: 3}[t.Swizzle]
	if !ok {
		return nil, fmt.Errorf("tensor map with a swizzle of %d bytes: want 0, 32, 64 or 128", t.Swizzle)
	}
	atom, ok := map[int]byte{0: 0, 16: 0, 32: 1, 64: 3}[t.Atom]
	if !ok || t.Flip && t.Atom != 32 {
		return nil, fmt.Errorf("tensor map with a swizzle of atoms of %d bytes, flipped: %t: want 16, 32 or 64, and only 32 flipped", t.Atom, t.Flip)
	}
	if t.Flip {
		atom = 2
	}
	if err := t.valid(); err != nil {
		return nil, err
	}
	b := make([]byte, TensorMapSize)
	binary.LittleEndian.PutUint64(b[mapAddress:], t.Address)
	b[mapRank], b[mapType], b[mapSwizzle] = byte(rank-1), byte(number), swizzle
	b[mapAtomicity] = atom
	if t.FillNaN {
		b[mapFill] = 1
	}
	for i := range rank {
		if t.Dims[i] < 1 || t.Dims[i] > 1<<32 {
			return nil, fmt.Errorf("tensor map: %d elements in dimension %d: want 1 to 2^32", t.Dims[i], i)
		}
		binary.LittleEndian.PutUint32(b[mapDim+4*i:], uint32(t.Dims[i]-1))
		if t.Im2col == nil {
			binary.LittleEndian.PutUint16(b[mapBox+2*i:], uint16(t.Box[i]))
		}
		b[mapElementStride+i] = byte(t.ElementStrides[i] - 1)
		if i > 0 {
			binary.LittleEndian.PutUint64(b[mapStride+8*(i-1):], t.Strides[i-1])
		}
	}
	t.encodeIm2col(b)
	if _, err := decodeTensorMap(b); err != nil {
		return nil, err
	}
	return b, nil
}

// decodeTensorMap reads a tensor map and checks what hardware would.
func decodeTensorMap(b []byte) (*TensorMap, error) {
	rank := int(b[mapRank]) + 1
	if rank > 5 {
		return nil, fmt.Errorf("tensor map of %d dimensions: want 1 to 5", rank)
	}
	if int(b[mapType]) >= len(mapTypes) {
		return nil, fmt.Errorf("tensor map with elements of type number %d: want 0 to %d", b[mapType], len(mapTypes)-1)
	}
	if b[mapInterleave] != 0 {
		return nil, fmt.Errorf("tensor map with interleave mode %d: the virtual machine has none (0)", b[mapInterleave])
	}
	if b[mapSwizzle] > 3 || b[mapAtomicity] > 3 {
		return nil, fmt.Errorf("tensor map with swizzle mode %d, atomicity %d: the virtual machine has modes 0 to 3 and atomicities 0 to 3", b[mapSwizzle], b[mapAtomicity])
	}
	t := &TensorMap{
		Type: mapTypes[b[mapType]], Address: binary.LittleEndian.Uint64(b[mapAddress:]),
		Swizzle: []int{0, 32, 64, 128}[b[mapSwizzle]], FillNaN: b[mapFill] == 1,
		Atom: []int{16, 32, 32, 64}[b[mapAtomicity]], Flip: b[mapAtomicity] == 2,
	}
	for i := range rank {
		t.Dims = append(t.Dims, uint64(binary.LittleEndian.Uint32(b[mapDim+4*i:]))+1)
		if b[mapKind] == 0 {
			t.Box = append(t.Box, uint32(binary.LittleEndian.Uint16(b[mapBox+2*i:])))
		}
		t.ElementStrides = append(t.ElementStrides, uint32(b[mapElementStride+i])+1)
		if i > 0 {
			t.Strides = append(t.Strides, binary.LittleEndian.Uint64(b[mapStride+8*(i-1):]))
		}
	}
	t.decodeIm2col(b)
	return t, t.valid()
}

// valid checks the rules of tensor maps: PTX ISA 5.5 and the driver's
// cuTensorMapEncodeTiled.
func (t *TensorMap) valid() error {
	align, unit := uint64(16), bench.UnitOf(t.Type)
	if unit.Padded() {
		align = 32
	}
	if t.Address%align != 0 {
		return fmt.Errorf("tensor map of address %#x: want a multiple of %d", t.Address, align)
	}
	for i, n := range t.Box {
		if n < 1 || n > 256 {
			return fmt.Errorf("tensor map: a box of %d elements in dimension %d: want 1 to 256", n, i)
		}
	}
	for i, s := range t.ElementStrides {
		if s < 1 || s > 8 {
			return fmt.Errorf("tensor map: element stride %d in dimension %d: want 1 to 8", s, i)
		}
	}
	if t.Im2col != nil {
		if err := t.validIm2col(); err != nil {
			return err
		}
	}
	if err := t.validPacked(unit); err != nil {
		return err
	}
	inner := t.inner() * uint64(unit.Shared) / uint64(unit.Elements)
	if inner%16 != 0 {
		return fmt.Errorf("tensor map: inner box of %d bytes: want a multiple of 16", inner)
	}
	if t.Swizzle > 0 && inner > uint64(t.Swizzle) {
		return fmt.Errorf("tensor map: inner box of %d bytes: want at most the %d of the swizzle", inner, t.Swizzle)
	}
	if t.Atom > 16 && t.Swizzle != 128 {
		return fmt.Errorf("tensor map with a swizzle of %d bytes in atoms of %d: want a swizzle of 128", t.Swizzle, t.Atom)
	}
	for i, s := range t.Strides {
		if s%align != 0 || s >= 1<<40 {
			return fmt.Errorf("tensor map: stride %d of dimension %d: want a multiple of %d below 2^40", s, i+1, align)
		}
	}
	if t.FillNaN && !t.Type.Float() {
		return fmt.Errorf("tensor map of .%s filled with NaN: want a floating-point type", t.Type)
	}
	return nil
}

// count is how many elements of a dimension a box holds.
func (t *TensorMap) count(dim int) int {
	s := t.ElementStrides[dim]
	return int((t.Box[dim] + s - 1) / s)
}

// bytes is the size of some rows, as long as each other, in shared memory, and how much
// of it is padding.
func (t *TensorMap) bytes(rows []rowCopy) (n, padding int64) {
	unit := bench.UnitOf(t.Type)
	if len(rows) == 0 {
		return 0, 0
	}
	global := int64(len(rows)) * int64(rows[0].size)
	n = global / int64(unit.Global) * int64(unit.Shared)
	return n, n - global
}

// rowCopy is a run of bytes that is contiguous on both sides of a copy.
type rowCopy struct {
	global uint64 // address of the first byte; meaningless where n is 0
	shared uint32 // offset in the box of the row's first byte
	skip   uint32 // bytes of the row before what lies inside the tensor
	n      uint32 // bytes inside the tensor
	size   uint32 // bytes of the row
}

// rows lists the rows of the box at some coordinates, innermost first.
func (t *TensorMap) rows(at []int32) []rowCopy {
	outer := 1
	for i := 1; i < len(t.Box); i++ {
		outer *= t.count(i)
	}
	rows := make([]rowCopy, 0, outer)
	for o := range outer {
		addr := t.Address
		inside := true
		rest := o
		for i := 1; i < len(t.Box); i++ {
			n := t.count(i)
			c := int64(at[i]) + int64(rest%n)*int64(t.ElementStrides[i])
			rest /= n
			if c < 0 || uint64(c) >= t.Dims[i] {
				inside = false
				continue
			}
			addr += uint64(c) * t.Strides[i-1]
		}
		rows = t.appendRuns(rows, addr, inside, at[0])
	}
	return rows
}

// appendRuns lists a row of a box, or a pixel, whose elements are those from at on of
// the ones at an address: in one run where they lie side by side on both sides.
func (t *TensorMap) appendRuns(rows []rowCopy, addr uint64, inside bool, at int32) []rowCopy {
	unit := bench.UnitOf(t.Type)
	size, stride := unit.Global, int64(1)
	inner := int(t.inner())
	if t.Im2col == nil {
		inner, stride = t.count(0), int64(t.ElementStrides[0])
	}
	inner /= int(unit.Elements)
	step := inner // units of a run
	if stride > 1 || unit.Padded() {
		step = 1
	}
	for e := 0; e < inner; e += step {
		r := rowCopy{shared: uint32(len(rows)*step) * unit.Shared, size: uint32(step) * size}
		first := int64(at)/int64(unit.Elements) + int64(e)*stride
		last := min(first+int64(step), int64(t.Dims[0])/int64(unit.Elements))
		if lo := max(first, 0); inside && lo < last {
			r.skip = uint32(lo-first) * size
			r.n = uint32(last-lo) * size
			r.global = addr + uint64(lo)*uint64(size)
		}
		rows = append(rows, r)
	}
	return rows
}

// swizzled is where a byte goes under a swizzle of so many bytes: its chunk of
// 16 bytes within the row is XORed with the row's number. PTX ISA 5.5.7.
func swizzled(addr uint64, swizzle int) uint64 {
	switch swizzle {
	case 32:
		return addr ^ addr>>3&0x10
	case 64:
		return addr ^ addr>>3&0x30
	case 128:
		return addr ^ addr>>3&0x70
	}
	return addr
}

// swizzle is how bytes move within shared memory: bits of the address that
// mask names are XORed with those shift above. PTX ISA 5.5.7. The zero value
// moves nothing.
type swizzle struct {
	mask  uint64
	shift uint
	piece int // bytes that stay together
	flip  bool
}

func (t *TensorMap) swizzle() swizzle {
	switch {
	case t.Swizzle == 32:
		return swizzle{0x10, 3, 16, false}
	case t.Swizzle == 64:
		return swizzle{0x30, 3, 16, false}
	case t.Swizzle == 128 && t.Atom == 64:
		return swizzle{0x40, 1, 64, false}
	case t.Swizzle == 128 && t.Atom == 32:
		s := swizzle{0x60, 2, 32, t.Flip}
		if t.Flip {
			s.piece = 8
		}
		return s
	case t.Swizzle == 128:
		return swizzle{0x70, 3, 16, false}
	}
	return swizzle{}
}

// of is where the byte at an address goes.
func (s swizzle) of(addr uint64) uint64 {
	out := addr ^ addr>>s.shift&s.mask
	if s.flip {
		out ^= addr >> 4 & 8
	}
	return out
}

// nanOf is a NaN of a type, as bytes.
func nanOf(t ptx.Type) []byte {
	switch t {
	case ptx.F16, ptx.BF16:
		return []byte{0xff, 0x7f}
	case ptx.F64:
		b := make([]byte, 8)
		writeElement(b, 8, nan64)
		return b
	}
	return []byte{0xff, 0xff, 0xff, 0x7f}
}

func init() { decoders["tensormap"] = (*decoder).tensormap }

// tensormap is tensormap.replace and tensormap.cp_fenceproxy.
func (d *decoder) tensormap() {
	if d.has("cp_fenceproxy") {
		for _, w := range []string{"global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"} {
			if !d.has(w) {
				d.refuse("want .%s", w)
			}
		}
		d.scopeOf(scopeGPU)
		ops := d.operands(3, 3)
		in := d.new(kindControl)
		in.mem = d.newMem(ptx.SpaceShared)
		in.mem.size = TensorMapSize
		d.memory(in, in.mem, &ops[1])
		in.bulk = &bulkOp{global: d.newMem(ptx.SpaceGlobal)}
		d.memory(in, in.bulk.global, &ops[0])
		if n := d.integer(&ops[2]); n != TensorMapSize {
			d.refuse("size %d: want 128", n)
		}
		in.ctl = publishMap
		d.emit(in)
		return
	}
	if !d.has("replace") {
		d.refuse("want .replace")
	}
	d.has("tile")
	field := d.take("global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
		"elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode")
	space := d.space()
	d.has("b1024")
	t := d.typ()
	ops := d.operands(2, 3)
	in := d.new(kindMasked)
	in.mem = d.newMem(space)
	in.mem.size = TensorMapSize
	d.memory(in, in.mem, &ops[0])
	f := mapField(field)
	if f.size == 0 {
		d.refuse("want a field such as .box_dim")
	}
	at := f.offset
	if f.count > 0 {
		if len(ops) != 3 {
			d.refuse("%d operands: want 3", len(ops))
		}
		n := d.integer(&ops[1])
		if n < 0 || int(n) >= f.count {
			d.refuse("dimension %d: want 0 to %d", n, f.count-1)
		}
		at += int(n) * f.size
	} else if len(ops) != 2 {
		d.refuse("%d operands: want 2", len(ops))
	}
	o := d.source(in, &in.a, &ops[len(ops)-1], t, exact)
	in.ka = o.k
	in.imm = uint64(at)
	in.fn[modeFull] = func(w *warp, in *inst) { w.replaceField(in, f) }
	in.rule = ruleAsyncCopy
	d.emit(in)
}

// field is a field of a tensor map.
type field struct {
	offset, size, count int
	minus               uint64 // what is taken off the value that is stored
}

func mapField(name string) field {
	switch name {
	case "global_address":
		return field{offset: mapAddress, size: 8}
	case "rank":
		return field{offset: mapRank, size: 1}
	case "box_dim":
		return field{offset: mapBox, size: 2, count: 5}
	case "global_dim":
		return field{offset: mapDim, size: 4, count: 5, minus: 1}
	case "global_stride":
		return field{offset: mapStride, size: 8, count: 4}
	case "element_stride":
		return field{offset: mapElementStride, size: 1, count: 5, minus: 1}
	case "elemtype":
		return field{offset: mapType, size: 1}
	case "interleave_layout":
		return field{offset: mapInterleave, size: 1}
	case "swizzle_mode":
		return field{offset: mapSwizzle, size: 1}
	case "swizzle_atomicity":
		return field{offset: mapAtomicity, size: 1}
	case "fill_mode":
		return field{offset: mapFill, size: 1}
	}
	return field{}
}

// replaceField writes one field of tensor maps.
func (w *warp) replaceField(in *inst, f field) {
	var addr lanes64
	w.addresses(in.mem, &addr)
	for l := w.mask; l != 0; l &= l - 1 {
		lane := firstLane(l)
		v := w.valueOf(in.ka, in.a, lane) - f.minus
		space, a := in.mem.space, addr[lane]
		if space == ptx.SpaceGeneric {
			if space = spaceOf(a); space == ptx.SpaceShared {
				a -= sharedWindow
			}
		}
		if space != ptx.SpaceShared {
			w.globalPieces(in, in.mem, lane, a+in.imm, f.size, true, 0, nil, func(b []byte, _ int) { writeElement(b, f.size, v) })
			continue
		}
		if b := w.sharedMap(in, lane, a, true); b != nil {
			writeElement(b[in.imm:], f.size, v)
		}
	}
}

// sharedMap is the bytes of a tensor map in shared memory, nil after a report.
func (w *warp) sharedMap(in *inst, lane int, addr uint64, write bool) []byte {
	off, ok := w.locate(in, lane, addr, TensorMapSize, false)
	if !ok {
		return nil
	}
	if r := w.b.race; r != nil && !r.off {
		at := side{w: w, in: in, lane: lane, space: ptx.SpaceShared, write: write, id: r.eventFor(w, in, in.mem, 0)}
		r.sharedLane(&at, off, TensorMapSize)
	}
	if u := w.b.undef; u != nil && write {
		u.define(off, TensorMapSize)
	}
	return w.b.shared[off:][:TensorMapSize]
}

// publishMap is tensormap.cp_fenceproxy: it copies a tensor map from shared to
// global memory, for all lanes together.
func publishMap(w *warp, in *inst) {
	m := w.condition(in)
	w.pc++
	if m == 0 {
		return
	}
	var from, to lanes64
	w.addresses(in.mem, &from)
	w.addresses(in.bulk.global, &to)
	saved := w.mask
	w.mask = m
	lane := firstLane(m)
	if src := w.sharedMap(in, lane, from[lane], false); src != nil {
		w.globalPieces(in, in.bulk.global, lane, to[lane], TensorMapSize, true, 0, nil, func(b []byte, at int) { copy(b, src[at:]) })
		w.b.l.dev.made.add(to[lane])
	}
	w.mask = saved
}
