package codegen

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// fragment is a thread's part of a tile. Elements are in the order of the layout's
// registers; two 16-bit floats share a 32-bit register when their number is even.
type fragment struct {
	l    *layout.Layout
	elem ir.Elem
	pack int // elements in a register
	regs []*simt.Value
}

func newFragment(t ir.Type) *fragment {
	f := &fragment{l: t.Layout, elem: t.Elem, pack: 1}
	if t.Layout == nil {
		panic(fmt.Sprintf("tile of type %s has no layout", t))
	}
	if is16(t.Elem) && f.l.Registers()%2 == 0 {
		f.pack = 2
	}
	return f
}

func is16(e ir.Elem) bool { return e == ir.F16 || e == ir.BF16 }

// count is the number of registers.
func (f *fragment) count() int { return f.l.Registers() / f.pack }

// regType is the type of the fragment's registers.
func (f *fragment) regType() simt.Type { return packedType(f.elem, f.pack) }

func packedType(e ir.Elem, pack int) simt.Type {
	if pack == 2 {
		if e == ir.F16 {
			return simt.F16x2
		}
		return simt.BF16x2
	}
	return elementType(e)
}

// elementType is the register type of one element.
func elementType(e ir.Elem) simt.Type {
	switch e {
	case ir.I1:
		return simt.Pred
	case ir.I64:
		return simt.I64
	case ir.F16:
		return simt.F16
	case ir.BF16:
		return simt.BF16
	case ir.F32:
		return simt.F32
	case ir.F64:
		return simt.F64
	}
	return simt.I32
}

// computeType is the type arithmetic on an element is done in: f32 for 16-bit
// floats, whose results are then rounded.
func computeType(e ir.Elem) simt.Type {
	if is16(e) {
		return simt.F32
	}
	return elementType(e)
}

// elements unpacks a fragment into registers of the elements' own type.
func (l *lowering) elements(f *fragment) []*simt.Value {
	if f.pack == 1 {
		return f.regs
	}
	out := make([]*simt.Value, 0, 2*len(f.regs))
	for _, r := range f.regs {
		lo, hi := l.b.Unpack(r, elementType(f.elem))
		out = append(out, lo, hi)
	}
	return out
}

// operands unpacks a fragment into registers that arithmetic works on.
func (l *lowering) operands(f *fragment) []*simt.Value {
	vs := l.elements(f)
	if !is16(f.elem) {
		return vs
	}
	out := make([]*simt.Value, len(vs))
	for i, v := range vs {
		out[i] = l.b.FloatCvt(v, simt.F32)
	}
	return out
}

// packed makes a fragment of type t from elements of its own type.
func (l *lowering) packed(t ir.Type, vs []*simt.Value) *fragment {
	f := newFragment(t)
	if f.pack == 1 {
		f.regs = vs
		return f
	}
	f.regs = make([]*simt.Value, len(vs)/2)
	for i := range f.regs {
		f.regs[i] = l.b.Pack(vs[2*i], vs[2*i+1], f.regType())
	}
	return f
}

// rounded makes a fragment of type t from results of arithmetic.
func (l *lowering) rounded(t ir.Type, vs []*simt.Value) *fragment {
	if !is16(t.Elem) || vs[0].Type != simt.F32 {
		return l.packed(t, vs)
	}
	f := newFragment(t)
	if f.pack == 2 && l.m.sm >= 80 {
		f.regs = make([]*simt.Value, len(vs)/2)
		for i := range f.regs {
			f.regs[i] = l.b.CvtPack(vs[2*i], vs[2*i+1], f.regType())
		}
		return f
	}
	out := make([]*simt.Value, len(vs))
	for i, v := range vs {
		out[i] = l.b.FloatCvt(v, elementType(t.Elem))
	}
	return l.packed(t, out)
}

// set defines a tile's value.
func (l *lowering) set(v *ir.Value, f *fragment) {
	if v.Name != "" {
		simt.NameGroup(v.Name, f.regs)
	}
	l.tiles[v] = f
}

// tid is the thread's number in its block.
func (l *lowering) tid() *simt.Value { return l.b.Special(simt.TidX) }

// index evaluates a map from the bits of the thread's number.
func (l *lowering) index(columns []int, xor bool) *simt.Value {
	b := l.b
	sum := b.Const32(0)
	for _, f := range layout.Fields(columns, xor) {
		v := l.tid()
		if f.Shift > 0 {
			v = b.ShrU(v, b.Const32(f.Shift))
		}
		if 1<<(f.Shift+f.Bits) < 32*l.warps {
			v = b.And(v, b.Const32(1<<f.Bits-1))
		}
		v = b.Mul(v, b.Const32(f.Scale))
		if xor {
			sum = b.Xor(sum, v)
		} else {
			sum = b.Add(sum, v)
		}
	}
	return sum
}

// coordinate is where register r of the thread lies along dimension d.
func (l *lowering) coordinate(lay *layout.Layout, r, d int) *simt.Value {
	c := l.b.Const32(lay.Register(r).At(d))
	thread := l.index(lay.ThreadBases(d), true)
	if lay.Additive(d) {
		return l.b.Add(thread, c)
	}
	return l.b.Xor(thread, c)
}
