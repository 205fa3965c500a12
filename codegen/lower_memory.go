package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// loadRun loads n adjacent elements, aligned to all of them, as registers of pack
// elements each. Where a guard does not hold they are fill, or 0 if that is nil.
func (l *lowering) loadRun(space simt.Space, e ir.Elem, n int, addr *simt.Value, a simt.Access, fill *simt.Value) (vs []*simt.Value, pack int) {
	if e == ir.I1 {
		return l.loadFlags(space, n, addr, a, fill), 1
	}
	pack = packOf(e, n)
	t := packedType(e, pack)
	unit := bytesOf(e) * pack
	mem := simt.MemOf(t)
	if unit == 1 {
		mem = simt.U8
		if e.IsInt() {
			mem = simt.S8
		}
	}
	if fill != nil {
		fill = l.repeat(fill, e, pack)
	}
	for i := 0; i < n/pack; {
		k := min(perAccess(unit), n/pack-i)
		vs = append(vs, l.b.LdMem(space, t, mem, k, addr, at(a, i*unit, fill, k))...)
		i += k
	}
	return vs, pack
}

// at is an access some bytes on, of k registers.
func at(a simt.Access, off int, fill *simt.Value, k int) simt.Access {
	a.Offset += off
	if fill != nil {
		for range k {
			a.Default = append(a.Default, fill)
		}
	}
	return a
}

// perAccess is how many registers of unit bytes an instruction moves.
func perAccess(unit int) int { return min(16/unit, 4) }

// loadFlags loads predicates: bytes, of which bit 0 counts.
func (l *lowering) loadFlags(space simt.Space, n int, addr *simt.Value, a simt.Access, fill *simt.Value) []*simt.Value {
	b := l.b
	per, mem := 1, simt.U8
	if n%4 == 0 {
		per, mem = 4, simt.B32
	}
	if fill != nil {
		fill = b.Select(fill, b.Const32(0x01010101), b.Const32(0))
	}
	out := make([]*simt.Value, 0, n)
	for i := 0; i < n/per; {
		k := min(4, n/per-i)
		for _, v := range b.LdMem(space, simt.I32, mem, k, addr, at(a, i*per, fill, k)) {
			for j := range per {
				out = append(out, b.Cmp(simt.NE, b.And(v, b.Const32(1<<(8*j))), b.Const32(0)))
			}
		}
		i += k
	}
	return out
}

// storeRun stores adjacent elements, aligned to all of them, that come as registers of
// pack elements each.
func (l *lowering) storeRun(space simt.Space, e ir.Elem, addr *simt.Value, vs []*simt.Value, pack int, a simt.Access) {
	unit := bytesOf(e) * pack
	switch want := packOf(e, len(vs)*pack); {
	case e == ir.I1:
		vs, unit = l.flagBytes(vs)
	case want != pack:
		joined := make([]*simt.Value, 0, len(vs)/want)
		for i := 0; i < len(vs); i += want {
			joined = append(joined, l.pack(vs[i:i+want], e))
		}
		vs, unit = joined, bytesOf(e)*want
	}
	for i := 0; i < len(vs); {
		k := min(perAccess(unit), len(vs)-i)
		if unit == 1 {
			l.b.StMem(space, simt.U8, addr, vs[i:i+k], at(a, i, nil, 0))
		} else {
			l.b.St(space, addr, vs[i:i+k], at(a, i*unit, nil, 0))
		}
		i += k
	}
}

// flagBytes turns predicates into bytes of 0 and 1: four to a register where their
// number allows.
func (l *lowering) flagBytes(vs []*simt.Value) (out []*simt.Value, unit int) {
	b := l.b
	if len(vs)%4 != 0 {
		for _, v := range vs {
			out = append(out, b.Select(v, b.Const32(1), b.Const32(0)))
		}
		return out, 1
	}
	for i := 0; i < len(vs); i += 4 {
		w := b.Const32(0)
		for j, v := range vs[i : i+4] {
			w = b.Or(w, b.Select(v, b.Const32(1<<(8*j)), b.Const32(0)))
		}
		out = append(out, w)
	}
	return out, 4
}
