package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// sharedOperand is a matrix that wgmma reads from shared memory by descriptors (PTX ISA
// 9.7.15.5.1).
type sharedOperand struct {
	l     *lowering
	s     *layout.Shared
	trans bool // lies along M or N
	low   *simt.Value
	high  *simt.Value
}

// sharedAddressBits is how many bits of an address a descriptor takes.
const sharedAddressBits = 18

// swizzleMode is a descriptor's code for atoms of so many bytes.
var swizzleMode = map[int]int{128: 1, 64: 2, 32: 3}

// sharedOperand makes the descriptors of v, whose axis along K is kAxis. rows are what
// the warpgroup's number adds to the other coordinate, bit by bit; nil for B.
func (l *lowering) sharedOperand(v *ir.Value, kAxis int, rows []int) *sharedOperand {
	b := l.b
	r := l.reads[v]
	d := &sharedOperand{l: l, s: r.ring.shared}
	if r.perm != nil {
		t, err := d.s.Transpose(r.perm)
		if err != nil {
			panic(err)
		}
		d.s = t
	}
	d.trans = d.s.Order()[0] != kAxis
	const unit = 16 // bytes in which descriptors count
	leading := unit // ignored
	if d.trans {
		leading = d.s.AtomStride()
	}
	at := r.slot
	if rows != nil {
		step := d.s.RowPitch() // bytes a row
		if d.trans {
			step = d.s.AtomStride() / d.s.Atom()
		}
		for i := range rows {
			rows[i] *= step
		}
		at = b.Add(at, l.index(rows, false))
	}
	if l.cluster.blocks > 1 {
		at = b.And(at, b.Const32(1<<sharedAddressBits-1)) // above is the block's number
	}
	d.low = b.Add(b.ShrU(at, b.Const32(4)), b.Const32(leading/unit<<16))
	d.high = b.Const32(int(int32(uint32(8*d.s.Swizzle()/unit) | uint32(swizzleMode[d.s.Swizzle()])<<30)))
	return d
}

// at is the descriptor of the part that begins at a coordinate along M or N, and at k.
func (d *sharedOperand) at(other, k, kAxis int) *simt.Value {
	c := []int{other, k}
	if kAxis == 0 {
		c = []int{k, other}
	}
	b := d.l.b
	return b.Pack(b.Add(d.low, b.Const32(d.s.OffsetAt(c)/16)), d.high, simt.I64)
}

// accumulatorPart is a 64-row part of a dot's accumulators, as many columns as an instruction
// has: where it begins and which registers hold it.
type accumulatorPart struct {
	row, col int
	regs     []int
}

// accumulatorParts cuts an accumulator into what instructions compute.
func accumulatorParts(f *fragment, n int) []accumulatorPart {
	at := registersAt(f.l)
	var out []accumulatorPart
	for r := range f.l.Registers() {
		c := f.l.Register(r)
		if c.At(0)%simt.WgmmaM != 0 || c.At(1)%n != 0 {
			continue
		}
		p := accumulatorPart{row: c.At(0), col: c.At(1)}
		for i := 0; i < n/2; i += f.pack {
			// Element i of a thread: PTX ISA 9.7.15.5, the accumulator's layout.
			p.regs = append(p.regs, at[layout.Pack([]int{p.row + 8*(i>>1&1), p.col + 8*(i>>2) + i&1})]/f.pack)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y accumulatorPart) int { return (x.row-y.row)*layout.MaxExtent + x.col - y.col })
	return out
}

// warpgroupDot multiplies by wgmma: B, and A unless it is in registers, are read where
// they lie in shared memory.
func (l *lowering) warpgroupDot(o *ir.Op) {
	b := l.b
	t, _ := l.m.wgmmaTile(o, l.warps)
	depth, step := o.Args[0].Type.Shape[1], t.form.Info().K
	acc := newFragment(o.Args[2].Type)
	fresh := isZero(o.Args[2])
	if !fresh {
		acc = l.tile(o.Args[2])
	}
	tiles := accumulatorParts(acc, t.n)
	shape := simt.WgmmaShape{Form: t.form, N: t.n}
	y := l.sharedOperand(o.Args[1], 0, nil)
	shape.TransB = y.trans
	left, fragments := l.leftOperand(o, acc.l, step, &shape)

	l.beforeProduct(o)
	var regs []*simt.Value
	if !fresh && !l.late {
		regs = acc.regs
	}
	held := b.WgmmaFence(append(slices.Clip(regs), fragments...))
	regs, fragments = slices.Clone(held[:len(regs)]), held[len(regs):]
	switch {
	case fresh:
		regs = make([]*simt.Value, acc.count())
	case l.late: // they may be those of a product under way, which this one follows
		regs = slices.Clone(acc.regs)
	}
	for k := 0; k < depth; k += step {
		bs := map[int]*simt.Value{}
		for _, p := range tiles {
			if bs[p.col] == nil {
				bs[p.col] = y.at(p.col, k, 0)
			}
			var c []*simt.Value
			if !fresh || k > 0 {
				for _, r := range p.regs {
					c = append(c, regs[r])
				}
			}
			for i, v := range b.Wgmma(shape, left(p.row, k, fragments), bs[p.col], c) {
				regs[p.regs[i]] = v
			}
		}
	}
	b.WgmmaCommit()
	l.afterProduct(o)
	l.pending.shared = true
	l.set(o.Result(), &fragment{l: acc.l, elem: acc.elem, pack: acc.pack, regs: regs})
	if !l.late {
		l.flight = append(l.flight, underWay{o: o, used: fragments})
	}
}

// landLate waits for the product that a loop leaves under way; results are the registers
// that the loop carries.
func (l *lowering) landLate(loop *ir.Op, results []*simt.Value) []*simt.Value {
	acc := slices.Index(loop.Regions[0].Params, chained(loop).Args[2])
	first := 0
	for _, v := range loop.Args[3 : 2+acc] {
		first += len(l.registers(v))
	}
	n := len(l.registers(loop.Args[2+acc]))
	return slices.Concat(results[:first], l.b.WgmmaWait(0, results[first:first+n], nil), results[first+n:])
}

// isZero tells whether all of a tile is the constant 0.
func isZero(v *ir.Value) bool {
	o := v.Def
	return o != nil && o.Code == ir.OpConst && v.Type.Elem.IsFloat() && o.Float == 0
}

// leftOperand prepares A: what gives an instruction's operand at a row and k, and the
// registers that it is made of, none where it lies in shared memory.
func (l *lowering) leftOperand(o *ir.Op, acc *layout.Layout, step int, shape *simt.WgmmaShape) (at func(row, k int, fragments []*simt.Value) []*simt.Value, fragments []*simt.Value) {
	if staysShared(o.Args[0]) {
		rows := acc.ThreadBases(0)
		for i := range layout.LaneBits + 2 {
			rows[i] = 0 // within the warpgroup
		}
		x := l.sharedOperand(o.Args[0], 1, rows)
		shape.TransA = x.trans
		return func(row, k int, _ []*simt.Value) []*simt.Value { return []*simt.Value{x.at(row, k, 1)} }, nil
	}
	x := l.dotOperand(o, 0, 1, step)
	x.instruction = true
	x.prepare()
	for k := 0; k < o.Args[0].Type.Shape[1]; k += step {
		x.fetch(k)
	}
	return func(row, k int, fragments []*simt.Value) []*simt.Value {
		x.regs = fragments
		return x.part(row, k, 4)
	}, x.regs
}
