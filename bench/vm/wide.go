package vm

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// A register of 128 bits is two of 64 bits, the low half first, and an
// instruction with one is the instruction with both: all that PTX has of that
// width are copies, loads, stores, exchanges and comparisons for equality.

// halves are the parts of an operand of 128 bits.
func (d *decoder) halves(o *ptx.Operand) []ptx.Operand {
	switch o.Kind {
	case ptx.OpSink:
		return []ptx.Operand{*o, *o}
	case ptx.OpImm:
		high := *o
		high.Value = 0
		if o.Imm != ptx.ImmUint && int64(o.Value) < 0 {
			high.Value = ^uint64(0)
		}
		return []ptx.Operand{*o, high}
	case ptx.OpReg:
		if !d.is128(o) {
			d.refuse("operand %s has %d bits: want 128", o.Name(), d.registerInfo(o.Slot()).Type.Bits())
		}
		h, ok := d.wide[o.Slot()]
		if !ok {
			h = []ptx.Operand{d.temporary(o.Name(), ptx.B64), d.temporary(o.Name(), ptx.B64)}
			d.wide[o.Slot()] = h
		}
		return h
	}
	d.refuse("operand %s: want a register or a constant", describe(o))
	return nil
}

// is128 says whether an operand is a register of 128 bits.
func (d *decoder) is128(o *ptx.Operand) bool {
	return o.Kind == ptx.OpReg && d.registerInfo(o.Slot()).Type.Bits() == 128
}

// narrow turns the elements of an access into elements of at most 64 bits: an
// element of 128 bits into its halves, a register of 128 bits that holds less
// into its low half. It gives those registers back too.
func (d *decoder) narrow(e []ptx.Operand, t ptx.Type) (list []ptx.Operand, of ptx.Type, filled []ptx.Operand) {
	for i := range e {
		switch {
		case t == ptx.B128:
			list = append(list, d.halves(&e[i])...)
		case d.is128(&e[i]):
			list = append(list, d.halves(&e[i])[0])
			filled = append(filled, e[i])
		default:
			list = append(list, e[i])
		}
	}
	if t == ptx.B128 {
		t = ptx.B64
	}
	return list, t, filled
}

// fillHigh extends values that were loaded to registers of 128 bits.
func (d *decoder) fillHigh(regs []ptx.Operand, signed bool) {
	for i := range regs {
		h := d.halves(&regs[i])
		if signed {
			d.aside("shr", []string{"s64"}, h[1], h[0], ptx.Operand{Kind: ptx.OpImm, Value: 63})
		} else {
			d.aside("mov", []string{"b64"}, h[1], ptx.Operand{Kind: ptx.OpImm})
		}
	}
}

// mov128 copies, packs or unpacks 128 bits.
func (d *decoder) mov128(ops []ptx.Operand) {
	to, from := d.parts128(&ops[0]), d.parts128(&ops[1])
	move := d.within
	for i := range to {
		if to[i].Kind == ptx.OpSink || sinks(to[i].Elems()) {
			continue
		}
		move("mov", []string{"b64"}, to[i], from[i])
		move = d.aside // the instruction counts once
	}
	if to[0].Kind == ptx.OpSink && to[1].Kind == ptx.OpSink {
		d.refuse("want a register to write")
	}
}

// sinks says whether there are elements and nothing is wanted of any.
func sinks(e []ptx.Operand) bool {
	for i := range e {
		if e[i].Kind != ptx.OpSink {
			return false
		}
	}
	return len(e) > 0
}

// parts128 are the two operands of 64 bits that one of 128 bits is.
func (d *decoder) parts128(o *ptx.Operand) []ptx.Operand {
	if o.Kind != ptx.OpVector {
		return d.halves(o)
	}
	e := o.Elems()
	n := len(e) / 2
	if n == 1 {
		return e
	}
	if len(e) != 2*n || n == 0 {
		d.refuse("%d elements: want an even number", len(e))
	}
	low, high := e[:n], e[n:]
	return []ptx.Operand{{Kind: ptx.OpVector, Parts: &low}, {Kind: ptx.OpVector, Parts: &high}}
}

// wideCvt is cvt, whose operands may be registers of 128 bits: it reads their
// low halves, and extends what it writes.
func (d *decoder) wideCvt() {
	src := d.src
	ops := slices.Clone(src.Operands)
	var filled []ptx.Operand
	for i := range ops {
		if !d.is128(&ops[i]) {
			continue
		}
		if i == 0 {
			filled = append(filled, ops[0])
		}
		ops[i] = d.halves(&ops[i])[0]
	}
	narrowed := *src
	narrowed.Operands = ops
	d.src = &narrowed
	d.cvt()
	d.src = src
	d.fillHigh(filled, d.firstType().Signed())
}

// firstType is the first of the modifiers that is a type.
func (d *decoder) firstType() ptx.Type {
	for _, m := range d.src.Mods {
		if t, ok := ptx.ParseType(m); ok {
			return t
		}
	}
	return ptx.NoType
}
