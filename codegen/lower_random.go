package codegen

import (
	"math/bits"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
)

// random16 draws as num.Random16 does. Elements in the same eight columns of a row share
// a call of Philox where it is known that they are.
func (l *lowering) random16(o *ir.Op) {
	b := l.b
	r := o.Result()
	seedLo, seedHi := b.Unpack(l.scalar(o.Args[0]), simt.I32)
	p := &philox{lowering: l, key: [2]*simt.Value{seedLo, seedHi}, offset: l.scalar(o.Args[1]), plane: l.scalar(o.Args[2]), calls: map[[2]*simt.Value][4]*simt.Value{}}
	if r.Type.IsScalar() {
		l.uniform(r, p.draw(l.scalar(o.Args[3]), l.scalar(o.Args[4]), 0, 0))
		return
	}
	rows, cols := l.elements(l.tile(o.Args[3])), l.elements(l.tile(o.Args[4]))
	known := l.lowBits(o.Args[4])
	out := make([]*simt.Value, len(cols))
	for i := range out {
		low := known.of(l.tile(o.Args[4]), i)
		out[i] = p.draw(rows[i], cols[i], low, known.bits)
	}
	l.set(r, l.packed(r.Type, out))
}

// lowBits describes what is known of the low three bits of a tile's elements: as many
// as bits are those of base + the sum of factors times the register's coordinates.
type lowBits struct {
	bits    int
	base    int64
	factors []int64
}

func (k lowBits) of(f *fragment, r int) int {
	v := k.base
	c := f.l.Register(r)
	for d, factor := range k.factors {
		v += factor * int64(c.At(d))
	}
	return int(v & (1<<k.bits - 1))
}

func (l *lowering) lowBits(v *ir.Value) lowBits {
	a, ok := affineOf(v)
	if !ok {
		return lowBits{}
	}
	k := lowBits{bits: 3, base: a.c, factors: a.axis}
	divides := func(n int64) { k.bits = min(k.bits, bits.TrailingZeros64(uint64(n))) }
	for _, t := range a.terms {
		divides(t.k * l.f.divisor(t.v))
	}
	lay := l.tile(v).l
	for d, factor := range a.axis {
		if factor == 0 {
			continue
		}
		for _, b := range lay.ThreadBases(d) {
			if b != 0 {
				divides(factor * int64(b))
			}
		}
	}
	return k
}

// philox calls the generator with counters (column >> 3, row, plane, offset).
type philox struct {
	*lowering
	key           [2]*simt.Value
	offset, plane *simt.Value
	calls         map[[2]*simt.Value][4]*simt.Value // by row and group of columns
}

// draw is the draw of a column, whose low bits are known to be low.
func (p *philox) draw(row, col *simt.Value, low, known int) *simt.Value {
	b := p.b
	first := b.Sub(col, b.Const32(low)) // the same for all that differ in what is known
	words := p.call(row, b.ShrU(first, b.Const32(3)))
	half := words[:]
	bit := func(i int) (set *simt.Value) {
		if i < known {
			return b.ConstPred(low>>i&1 != 0)
		}
		return b.Cmp(simt.NE, b.And(first, b.Const32(1<<i)), b.Const32(0))
	}
	half = []*simt.Value{b.Select(bit(2), half[2], half[0]), b.Select(bit(2), half[3], half[1])}
	word := b.Select(bit(1), half[1], half[0])
	return b.And(b.ShrU(word, b.Select(bit(0), b.Const32(16), b.Const32(0))), b.Const32(0xffff))
}

// The constants of Philox4x32: multipliers, and what the keys grow by.
const (
	philoxM0, philoxM1 = 0xd2511f53, 0xcd9e8d57
	philoxW0, philoxW1 = 0x9e3779b9, 0xbb67ae85
)

// call is Philox4x32.
func (p *philox) call(row, group *simt.Value) [4]*simt.Value {
	if words, ok := p.calls[[2]*simt.Value{row, group}]; ok {
		return words
	}
	b := p.b
	wide := func(x *simt.Value, m int64) (lo, hi *simt.Value) {
		return b.Unpack(b.MulWideU(x, b.Const(simt.I32, m)), simt.I32)
	}
	c := [4]*simt.Value{group, row, p.plane, p.offset}
	for i := range num.DropoutRounds {
		n := int64(i)
		k0, k1 := b.Add(p.key[0], b.Const(simt.I32, n*philoxW0)), b.Add(p.key[1], b.Const(simt.I32, n*philoxW1))
		lo0, hi0 := wide(c[0], philoxM0)
		lo1, hi1 := wide(c[2], philoxM1)
		const xor3 = 0x96
		c = [4]*simt.Value{b.Lop3(hi1, c[1], k0, xor3), lo1, b.Lop3(hi0, c[3], k1, xor3), lo0}
	}
	p.calls[[2]*simt.Value{row, group}] = c
	return c
}
