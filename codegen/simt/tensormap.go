package simt

import "fmt"

// Tensor maps that a kernel makes: objects of 128 bytes, whose fields are set one by one in
// shared memory, beginning with zeros, and which copies use from global memory.

// MapBytes is the size of a tensor map, and its alignment in memory.
const MapBytes = 128

// MapField is a field of a tensor map.
type MapField struct {
	Of  MapFieldKind
	Dim int // of those that each dimension has, innermost first; of strides the first is that of the second dimension
}

// MapFieldKind is what a field of a tensor map says.
type MapFieldKind uint8

// The fields. All values are I32, but for the address, a Ptr, and strides, I64.
const (
	MapAddress       MapFieldKind = iota // of the tensor
	MapRank                              // dimensions, less one
	MapElem                              // type: its number in tensormap.replace
	MapInterleave                        // 0: none
	MapSwizzle                           // 0: none; 1, 2, 3: rows of 32, 64, 128 bytes
	MapFill                              // what lies outside reads as: 0: zeros
	MapBox                               // elements that a copy moves
	MapDim                               // elements
	MapStride                            // bytes
	MapElementStride                     // 1: all elements are copied
	numMapFields
)

var mapFieldNames = [numMapFields]string{
	"global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "box_dim", "global_dim", "global_stride", "element_stride",
}

func (f MapField) String() string {
	if f.Numbered() {
		return fmt.Sprintf("%s_%d", mapFieldNames[f.Of], f.Dim)
	}
	return mapFieldNames[f.Of]
}

// Numbered tells whether each dimension has such a field.
func (f MapField) Numbered() bool { return f.Of >= MapBox }

// Fixed tells whether the field's value must be a constant: PTX ISA, tensormap.replace.
func (f MapField) Fixed() bool { return f.Of >= MapElem && f.Of <= MapFill }

func (f MapField) opcode() string {
	t := ".b32"
	if f.Of == MapAddress || f.Of == MapStride {
		t = ".b64"
	}
	return "tensormap.replace.tile." + mapFieldNames[f.Of] + ".shared::cta.b1024" + t
}

// MapSet sets a field of the tensor map at a shared address. Strides are bytes, as ptxas
// takes them from CUDA 12.5 on; before they were sixteenths.
func (b *Builder) MapSet(at *Value, f MapField, v *Value) {
	if f.Fixed() && !v.IsConst() {
		panic(fmt.Sprintf("simt: %s of a tensor map: want a constant", f))
	}
	in := b.access(OpMapSet, v.Type, Shared, at, Access{}, v)
	in.Imm = int64(f.Of) | int64(f.Dim)<<8
	b.check(in.Op, in.Type, in.Args)
}

// MapField is the field that an OpMapSet sets.
func (in *Instr) MapField() MapField { return MapField{MapFieldKind(in.Imm & 0xff), int(in.Imm >> 8)} }

// MapPublish copies the tensor map at a shared address to global memory, for all threads of
// the warp together, which have met since it was made. Copies see it after MapAcquire.
func (b *Builder) MapPublish(to, from *Value) {
	in := b.access(OpMapPublish, Void, Global, to, Access{}, from)
	b.check(in.Op, in.Type, in.Args)
}

// MapAcquire makes what MapPublish released at an address, with an offset, visible to the
// thread's copies.
func (b *Builder) MapAcquire(at *Value, offset int) {
	b.access(OpMapAcquire, Void, Global, at, Access{Offset: offset})
}

// Mark is a place in a block, at which a builder may put instructions later.
type Mark struct {
	block *Block
	at    int
}

// Mark is where the builder is. Nothing but the builder may change the block until the mark
// is used no more.
func (b *Builder) Mark() Mark { return Mark{b.block, len(b.block.Instrs)} }

// Insert builds instructions at a mark, which then stands behind them. They must be without
// results, and of values that were there.
func (b *Builder) Insert(m *Mark, f func()) {
	old, note, guard := b.block, b.note, b.guard
	b.block, b.note, b.guard = &Block{}, 0, nil
	f()
	added := b.block.Instrs
	b.block, b.note, b.guard = old, note, guard
	m.block.Instrs = append(m.block.Instrs[:m.at:m.at], append(added, m.block.Instrs[m.at:]...)...)
	m.at += len(added)
}
