package vm

import (
	"math/bits"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// four is a format of which PTX converts four values at a time, by .rs.
type four struct {
	format num.Format
	width  int // bits from one value to the next
}

// fourOf is the format of a type of four values; nil for others.
func fourOf(t ptx.Type) *four {
	switch t {
	case ptx.E4M3x4:
		return &four{num.E4M3, 8}
	case ptx.E5M2x4:
		return &four{num.E5M2, 8}
	case ptx.E2M3x4:
		return &four{num.E2M3, 8}
	case ptx.E3M2x4:
		return &four{num.E3M2, 8}
	case ptx.E2M1x4:
		return &four{num.E2M1, 4}
	}
	return nil
}

// random is the 16 random bits of each of four values, the first source's
// first. Two neighbours share a half of them, of which the former takes the bits
// in reverse. The halves are those of the operand; where the result has 16 bits,
// the odd bytes and the even ones.
//
// PTX ISA 9.7.9.21 shows which bits in figures; the reversal is what a B200 does.
func (f *four) random(bits32 uint32) [4]uint16 {
	upper, lower := uint16(bits32>>16), uint16(bits32)
	if f.width == 4 {
		upper, lower = upper&0xff00|lower>>8, upper<<8|lower&0xff
	}
	return [4]uint16{bits.Reverse16(upper), upper, bits.Reverse16(lower), lower}
}

// encode rounds a value with its 16 random bits.
func (f *four) encode(m cvtMode, x float64, random uint16) uint64 {
	if m.relu && x <= 0 {
		x = 0
	}
	return encodeRandomly(f.format, x, float64(random)/(1<<16), true)
}

// cvtFour is cvt.rs to four values: `d, {a, b, e, f}, rbits`, a to the top.
func (d *decoder) cvtFour(m cvtMode, dt ptx.Type) {
	f := fourOf(dt)
	ops := d.operands(3, 3)
	from := elements(&ops[1])
	if len(from) != 4 {
		d.refuse("%d values: want 4", len(from))
	}
	in := d.new(kindMasked)
	in.kd = d.destination(in, &in.d, &ops[0], dt, exact).k
	d.source(in, &in.a, &ops[2], ptx.B32, exact)
	in.list = make([]operand, len(from))
	for i := range from {
		d.source(in, &in.list[i].slot, &from[i], ptx.F32, exact)
	}
	in.fn[modeFull] = func(w *warp, in *inst) {
		for l := w.mask; l != 0; l &= l - 1 {
			i := firstLane(l)
			var v uint64
			for j, random := range f.random(w.r[in.a][i]) {
				v = v<<f.width | f.encode(m, float64(f32(uint64(w.r[in.list[j].slot][i]))), random)
			}
			if in.d >= 0 {
				w.r[in.d][i] = uint32(v)
			}
		}
	}
	d.emit(in)
}
