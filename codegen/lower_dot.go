package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// dot multiplies fragments, one slice of K after another. Operands that are read
// from shared memory are loaded a slice ahead of the instructions that use them.
func (l *lowering) dot(o *ir.Op) {
	if staysShared(o.Args[1]) {
		l.warpgroupDot(o)
		return
	}
	form, tensor := l.m.tensorForm(o)
	depth, groups := o.Args[0].Type.Shape[1], scaleGroups(o)
	step := form.k
	if !tensor {
		step = outerStep(depth / groups)
	}
	acc := l.tile(o.Args[2])
	x, y := l.dotOperand(o, 0, 1, step), l.dotOperand(o, 1, 0, step)
	into := func(regs []*simt.Value, k int) { l.outer(acc, regs, x, y, k, step) }
	regs := slices.Clone(l.elements(acc))
	if tensor {
		x.instruction, y.instruction = true, true
		x.prepare()
		y.prepare()
		regs = slices.Clone(acc.regs)
		tiles := accumulatorTiles(acc)
		into = func(regs []*simt.Value, k int) { l.mma(form, tiles, regs, x, y, k) }
	}
	multiply := into
	if len(o.Args) > 3 {
		multiply = l.scaled(o, acc, depth/groups, step, into)
	}
	x.fetch(0)
	y.fetch(0)
	for k := 0; k < depth; k += step {
		if k+step < depth {
			x.fetch(k + step)
			y.fetch(k + step)
		}
		multiply(regs, k)
	}
	if tensor {
		l.set(o.Result(), &fragment{l: acc.l, elem: acc.elem, pack: acc.pack, regs: regs})
		return
	}
	l.set(o.Result(), l.packed(o.Result().Type, regs))
}

// outerStep is how much of a depth plain arithmetic takes at a time: a divisor of it.
func outerStep(depth int) int {
	for _, n := range []int{4, 2} {
		if depth%n == 0 {
			return n
		}
	}
	return 1
}

// scaled multiplies groups of K into accumulators of their own, which are scaled and
// added when a group is complete.
func (l *lowering) scaled(o *ir.Op, acc *fragment, group, step int, into func([]*simt.Value, int)) func([]*simt.Value, int) {
	b := l.b
	if acc.elem != ir.F32 {
		panic(unsupported(o, "scales into %s: want f32", acc.elem))
	}
	var sx, sy *dotOperand
	if v := o.Operand("scale_x"); v != nil {
		sx = l.scaleOperand(v, 1)
	}
	if v := o.Operand("scale_y"); v != nil {
		sy = l.scaleOperand(v, 0)
	}
	part := make([]*simt.Value, len(acc.regs))
	return func(regs []*simt.Value, k int) {
		if k%group == 0 {
			for r := range part {
				part[r] = b.ConstF32(0)
			}
		}
		into(part, k)
		if k%group != group-step {
			return
		}
		for r := range regs {
			c := acc.l.Register(r)
			var scale *simt.Value
			switch {
			case sx == nil:
				scale = sy.element(c.At(1), k/group)
			case sy == nil:
				scale = sx.element(c.At(0), k/group)
			default:
				scale = b.Mul(sx.element(c.At(0), k/group), sy.element(c.At(1), k/group))
			}
			regs[r] = b.Add(regs[r], b.Mul(part[r], scale))
		}
	}
}

func (l *lowering) scaleOperand(v *ir.Value, kAxis int) *dotOperand {
	f := l.tile(v)
	return &dotOperand{l: l, lay: f.l, kAxis: kAxis, elem: ir.F32, pack: 1, regs: f.regs, at: registersAt(f.l)}
}

// dotOperand is an operand of a dot, fetched by slices of K.
type dotOperand struct {
	l      *lowering
	lay    *layout.Layout
	kAxis  int
	elem   ir.Elem
	acc    ir.Elem
	pack   int
	tf32   bool
	regs   []*simt.Value
	at     map[layout.Coord]int // coordinate of a register of the thread -> register
	pieces map[int][]piece      // still to load, by slice of K

	instruction bool // a tensor-core instruction multiplies
}

func (l *lowering) dotOperand(o *ir.Op, i, kAxis, step int) *dotOperand {
	v := o.Args[i]
	d := &dotOperand{l: l, lay: v.Type.Layout, kAxis: kAxis, elem: v.Type.Elem, acc: o.Result().Type.Elem, tf32: o.Precision == ir.TF32}
	d.at = registersAt(d.lay)
	r, lazy := l.reads[v]
	if !lazy || l.tiles[v] != nil || !d.aligned(r) {
		f := l.tile(v)
		d.regs, d.pack = slices.Clone(f.regs), f.pack
		return d
	}
	d.pack = newFragment(v.Type).pack
	d.regs = make([]*simt.Value, d.lay.Registers()/d.pack)
	d.pieces = map[int][]piece{}
	for _, p := range l.pieces(r) {
		k := d.lay.Register(p.registers[0]).At(kAxis) / step * step
		d.pieces[k] = append(d.pieces[k], p)
	}
	return d
}

// prepare rounds what is in registers already as the instruction wants it.
func (d *dotOperand) prepare() {
	if d.pieces == nil && d.tf32 {
		for i, x := range d.regs {
			d.regs[i] = d.l.b.CvtTF32(x, simt.I32)
		}
	}
}

// aligned tells whether a transposed read keeps its register numbers.
func (d *dotOperand) aligned(r *ringRead) bool {
	if r.perm == nil {
		return true
	}
	for i, s := range transposed(r.l, d.lay, r.perm) {
		if i != s {
			return false
		}
	}
	return true
}

// fetch loads the slice of K at k.
func (d *dotOperand) fetch(k int) {
	d.l.pending.shared = d.l.pending.shared || len(d.pieces[k]) > 0
	for _, p := range d.pieces[k] {
		for i, v := range p.load() {
			if d.tf32 && d.instruction {
				v = d.l.b.CvtTF32(v, simt.I32)
			}
			d.regs[p.registers[i]/d.pack] = v
		}
	}
	delete(d.pieces, k)
}

// part returns n registers from the one that holds coordinate (row, k) or (k, col)
// of the thread's part.
func (d *dotOperand) part(other, k, n int) []*simt.Value {
	at := []int{other, k}
	if d.kAxis == 0 {
		at = []int{k, other}
	}
	r, ok := d.at[layout.Pack(at)]
	if !ok {
		panic("dot operand lacks a fragment")
	}
	return d.regs[r/d.pack:][:n]
}

// element returns one element for arithmetic.
func (d *dotOperand) element(other, k int) *simt.Value {
	at := []int{other, k}
	if d.kAxis == 0 {
		at = []int{k, other}
	}
	r, ok := d.at[layout.Pack(at)]
	if !ok {
		panic("dot operand lacks an element")
	}
	l := d.l
	v := l.unpack(d.regs[r/d.pack], d.elem, d.pack)[r%d.pack]
	switch {
	case d.tf32:
		return l.roundTF32(v)
	case d.acc == ir.F16:
		return v
	}
	return l.widen(v, d.elem)
}

// roundTF32 rounds an f32 to tf32.
func (l *lowering) roundTF32(v *simt.Value) *simt.Value {
	b := l.b
	if l.m.sm >= 80 {
		return b.CvtTF32(v, simt.F32)
	}
	x := b.Bitcast(v, simt.I32)
	rounded := b.And(b.Add(x, b.Const32(0x1000)), b.Const32(^0x1fff))
	finite := b.Cmp(simt.LT, b.And(x, b.Const32(0x7fffffff)), b.Const32(0x7f800000))
	return b.Select(finite, b.Bitcast(rounded, simt.F32), v)
}

// accumulatorTile is an m16n8 tile of an accumulator: where its registers start and
// where it lies.
type accumulatorTile struct{ reg, row, col int }

func accumulatorTiles(f *fragment) []accumulatorTile {
	out := make([]accumulatorTile, 0, f.l.Registers()/4)
	for r := 0; r < f.l.Registers(); r += 4 {
		c := f.l.Register(r)
		out = append(out, accumulatorTile{r / f.pack, c.At(0), c.At(1)})
	}
	return out
}

// mma issues the tensor-core instructions of one slice of K.
func (l *lowering) mma(form tensorForm, tiles []accumulatorTile, regs []*simt.Value, x, y *dotOperand, k int) {
	info := form.mma.Info()
	for _, t := range tiles {
		a := x.part(t.row, k, info.A)
		b := y.part(t.col, k, info.B)
		copy(regs[t.reg:], l.b.Mma(form.mma, a, b, regs[t.reg:t.reg+info.C]))
	}
}

// outer multiplies by plain arithmetic.
func (l *lowering) outer(acc *fragment, regs []*simt.Value, x, y *dotOperand, k, n int) {
	for i := range n {
		for r := range regs {
			c := acc.l.Register(r)
			p, q := x.element(c.At(0), k+i), y.element(c.At(1), k+i)
			if p.Type.IsFloat() {
				regs[r] = l.b.Fma(p, q, regs[r])
			} else {
				regs[r] = l.b.Add(regs[r], l.b.Mul(p, q))
			}
		}
	}
}
