package paged

import (
	"math/bits"

	"github.com/kgen-dev/kgen/ir"
)

// view adds the keys or the values of the cache.
func (p *pool) view(b *ir.Builder, name string) *ir.Value {
	if p.Layout == "hnd" {
		return p.aligned(b, b.View(name, p.elem(), "P", "KVH", p.Page, p.HeadDim))
	}
	return p.aligned(b, b.View(name, p.elem(), "P", p.Page, "KVH", p.HeadDim))
}

// aligned states that rows are contiguous and, where the padding allows, that every one
// starts on 16 bytes.
func (p *pool) aligned(b *ir.Builder, v *ir.Value) *ir.Value {
	last := len(v.Type.Dims) - 1
	b.AssumeStride(v, last, 1)
	if p.Pad%8 == 0 {
		b.AssumePointer(v, 16)
		for d := range last {
			b.AssumeStrideMultiple(v, d, 8)
		}
	}
	return v
}

// tableAndLength adds the block table and the lengths.
func tableAndLength(b *ir.Builder) (table, length *ir.Value) {
	table = b.View("table", ir.I32, "B", "E")
	b.AssumeStride(table, 1, 1)
	length = b.View("len", ir.I32, "B")
	b.AssumeStride(length, 0, 1)
	return table, length
}

// place is where n tokens of a sequence's head are in the cache: page, slot and head in
// the cache's order, then dimension 0. Table entries that access leaves out are not read.
func (p *pool) place(b *ir.Builder, table, batch, token, head *ir.Value, n int, access ir.Access) []*ir.Value {
	shift := bits.TrailingZeros(uint(p.Page))
	page := b.Load(table, []*ir.Value{batch, b.Ushr(token, b.Int(shift))}, ir.TileOf(ir.I32, n), access)
	slot := b.And(token, b.Int(p.Page-1))
	return p.order(page, slot, head, b.Int(0))
}

// order puts the parts of a place in the cache's order.
func (p *pool) order(page, slot, head, j *ir.Value) []*ir.Value {
	if p.Layout == "hnd" {
		return []*ir.Value{page, head, slot, j}
	}
	return []*ir.Value{page, slot, head, j}
}

// slotDim is the cache's dimension of slots.
func (p *pool) slotDim() int {
	if p.Layout == "hnd" {
		return 2
	}
	return 1
}
