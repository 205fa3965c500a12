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
	form, tensor := l.m.tensorForm(o)
	step := form.k
	if !tensor {
		step = outerStep
	}
	acc := l.tile(o.Args[2])
	x, y := l.dotOperand(o, 0, 1, step), l.dotOperand(o, 1, 0, step)
	regs := slices.Clone(acc.regs)
	multiply := func(k int) { l.outer(o, acc, regs, x, y, k, min(step, o.Args[0].Type.Shape[1]-k)) }
	if tensor {
		tiles := accumulatorTiles(acc.l)
		multiply = func(k int) { l.mma(o, form, tiles, regs, x, y, k) }
	}
	depth := o.Args[0].Type.Shape[1]
	x.fetch(0)
	y.fetch(0)
	for k := 0; k < depth; k += step {
		if k+step < depth {
			x.fetch(k + step)
			y.fetch(k + step)
		}
		multiply(k)
	}
	f := &fragment{l: acc.l, elem: acc.elem, pack: acc.pack, regs: regs}
	l.set(o.Result(), f)
}

// outerStep is how much of K plain arithmetic takes at a time.
const outerStep = 4

// dotOperand is an operand of a dot, fetched by slices of K.
type dotOperand struct {
	l      *lowering
	lay    *layout.Layout
	kAxis  int
	elem   ir.Elem
	pack   int
	tf32   bool
	regs   []*simt.Value
	at     map[layout.Coord]int // coordinate of a register of the thread -> register
	pieces map[int][]piece      // still to load, by slice of K
	table  []int                // register of the operand -> register of the pieces
}

func (l *lowering) dotOperand(o *ir.Op, i, kAxis, step int) *dotOperand {
	v := o.Args[i]
	d := &dotOperand{l: l, lay: v.Type.Layout, kAxis: kAxis, elem: v.Type.Elem, tf32: o.Precision == ir.TF32}
	d.at = make(map[layout.Coord]int, d.lay.Registers())
	for r := d.lay.Registers() - 1; r >= 0; r-- {
		d.at[d.lay.Register(r)] = r
	}
	r, lazy := l.reads[v]
	if !lazy || l.tiles[v] != nil || !d.aligned(r) {
		f := l.tile(v)
		d.regs, d.pack = slices.Clone(f.regs), f.pack
		if d.tf32 {
			for i, x := range d.regs {
				d.regs[i] = l.b.CvtTF32(x, simt.I32)
			}
		}
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
	for _, p := range d.pieces[k] {
		for i, v := range p.load() {
			if d.tf32 {
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
	r := d.at[layout.Pack(at)]
	v := d.regs[r/d.pack]
	if d.pack == 2 {
		lo, hi := d.l.b.Unpack(v, elementType(d.elem))
		v = lo
		if r%2 == 1 {
			v = hi
		}
	}
	return d.l.widen(v, d.elem)
}

// accumulatorTile is an m16n8 tile of an accumulator: where its registers start and
// where it lies.
type accumulatorTile struct{ reg, row, col int }

func accumulatorTiles(l *layout.Layout) []accumulatorTile {
	out := make([]accumulatorTile, 0, l.Registers()/4)
	for r := 0; r < l.Registers(); r += 4 {
		c := l.Register(r)
		out = append(out, accumulatorTile{r, c.At(0), c.At(1)})
	}
	return out
}

// mma issues the tensor-core instructions of one slice of K.
func (l *lowering) mma(o *ir.Op, form tensorForm, tiles []accumulatorTile, regs []*simt.Value, x, y *dotOperand, k int) {
	info := form.mma.Info()
	for _, t := range tiles {
		a := x.part(t.row, k, info.A)
		b := y.part(t.col, k, info.B)
		copy(regs[t.reg:], l.b.Mma(form.mma, a, b, regs[t.reg:t.reg+info.C]))
	}
}

// outer multiplies by plain arithmetic.
func (l *lowering) outer(o *ir.Op, acc *fragment, regs []*simt.Value, x, y *dotOperand, k, n int) {
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
