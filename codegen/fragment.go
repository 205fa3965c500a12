package codegen

import (
	"fmt"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// fragment is a thread's part of a tile: elements in the order of the layout's
// registers, packed as element.go says.
type fragment struct {
	l    *layout.Layout
	elem ir.Elem
	pack int // elements in a register
	regs []*simt.Value

	parts []*simt.Value // the elements one by one, where they are at hand
}

func newFragment(t ir.Type) *fragment {
	if t.Layout == nil {
		panic(fmt.Sprintf("tile of type %s has no layout", t))
	}
	return &fragment{l: t.Layout, elem: t.Elem, pack: packOf(t.Elem, t.Layout.Registers())}
}

// count is the number of registers.
func (f *fragment) count() int { return f.l.Registers() / f.pack }

// regType is the type of the fragment's registers.
func (f *fragment) regType() simt.Type { return packedType(f.elem, f.pack) }

// elements unpacks a fragment into registers of the elements' own type.
func (l *lowering) elements(f *fragment) []*simt.Value {
	switch {
	case f.pack == 1:
		return f.regs
	case f.parts != nil:
		return f.parts
	}
	out := make([]*simt.Value, 0, f.pack*len(f.regs))
	for _, r := range f.regs {
		out = append(out, l.unpack(r, f.elem, f.pack)...)
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
	f.parts = vs
	f.regs = make([]*simt.Value, len(vs)/f.pack)
	for i := range f.regs {
		f.regs[i] = l.pack(vs[i*f.pack:][:f.pack], t.Elem)
	}
	return f
}

// fromRuns makes a fragment of type t from registers of pack elements each.
func (l *lowering) fromRuns(t ir.Type, vs []*simt.Value, pack int) *fragment {
	if f := newFragment(t); f.pack == pack {
		f.regs = vs
		return f
	}
	out := make([]*simt.Value, 0, len(vs)*pack)
	for _, v := range vs {
		out = append(out, l.unpack(v, t.Elem, pack)...)
	}
	return l.packed(t, out)
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

// tid is the thread's number in its block, or in a role whose layouts begin anew.
func (l *lowering) tid() *simt.Value {
	if l.tidIn != nil {
		return l.tidIn
	}
	return l.b.Special(simt.TidX)
}

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
