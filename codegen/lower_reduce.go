package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// reduce folds registers, then lanes by butterflies, then warps through shared
// memory, then the blocks of a cluster through theirs.
func (l *lowering) reduce(o *ir.Op) {
	src := l.tile(o.Args[0])
	st, ok := src.l.Reduce(o.Axis)
	if !ok {
		panic(unsupported(o, "layout %v does not reduce along axis %d", src.l, o.Axis))
	}
	in := l.operands(src)
	out := make([]*simt.Value, len(st.Groups))
	for i, g := range st.Groups {
		vs := make([]*simt.Value, len(g))
		for j, r := range g {
			vs[j] = in[r]
		}
		v := l.fold(o, vs)
		for _, mask := range st.Lanes {
			v = l.combine(o, v, l.shuffle(v, mask))
		}
		out[i] = v
	}
	if len(st.Warps) > 0 {
		out = l.acrossWarps(o, src.l, st, out)
	}
	if o.Blocks > 1 {
		out = l.acrossBlocks(o, src.l.Slice(o.Axis), out)
	}
	r := o.Result()
	for i, v := range out {
		out[i] = l.wrapped(v, r.Type.Elem)
	}
	if r.Type.IsScalar() {
		l.scalars[r] = l.narrow(out[0], r.Type.Elem)
		return
	}
	l.set(r, l.rounded(r.Type, out))
}

// wrapped brings the result of repeated arithmetic back into its type's range.
func (l *lowering) wrapped(v *simt.Value, e ir.Elem) *simt.Value {
	if e == ir.I8 {
		return l.extend8(v)
	}
	return v
}

// shuffle exchanges a value with the lane whose number differs by mask.
func (l *lowering) shuffle(v *simt.Value, mask int) *simt.Value {
	b := l.b
	if v.Type.Bits() == 64 {
		bits := b.Bitcast(v, simt.I64)
		lo, hi := b.Unpack(bits, simt.I32)
		lo = b.Shfl(simt.Bfly, lo, b.Const32(mask), 32)
		hi = b.Shfl(simt.Bfly, hi, b.Const32(mask), 32)
		return b.Bitcast(b.Pack(lo, hi, simt.I64), v.Type)
	}
	if v.Type == simt.Pred {
		x := b.Shfl(simt.Bfly, l.asWord(v), b.Const32(mask), 32)
		return b.Cmp(simt.NE, x, b.Const32(0))
	}
	return b.Shfl(simt.Bfly, v, b.Const32(mask), 32)
}

// fold combines values pairwise, so that chains of dependent operations are short.
func (l *lowering) fold(o *ir.Op, vs []*simt.Value) *simt.Value {
	for len(vs) > 1 {
		half := (len(vs) + 1) / 2
		next := make([]*simt.Value, half)
		for i := range next {
			next[i] = vs[i]
			if j := i + half; j < len(vs) {
				next[i] = l.combine(o, vs[i], vs[j])
			}
		}
		vs = next
	}
	return vs[0]
}

func (l *lowering) combine(o *ir.Op, x, y *simt.Value) *simt.Value {
	b := l.b
	switch o.Combine {
	case ir.Add:
		return b.Add(x, y)
	case ir.Mul:
		return b.Mul(x, y)
	case ir.Max:
		return b.Max(x, y)
	case ir.Min:
		return b.Min(x, y)
	case ir.And:
		return b.And(x, y)
	case ir.Or:
		return b.Or(x, y)
	}
	return b.Xor(x, y)
}

// acrossWarps combines what each warp along the axis has.
func (l *lowering) acrossWarps(o *ir.Op, lay *layout.Layout, st layout.Stages, vs []*simt.Value) []*simt.Value {
	b := l.b
	buf := l.plan.buffers[o]
	slice := lay.Slice(o.Axis)
	size := max(4, vs[0].Type.Bits()/8)
	count := 1
	for _, n := range slice.Shape() {
		count *= n
	}
	at := func(r int) *simt.Value { return l.sliceOffset(slice, r, vs[0].Type) }
	columns := make([]int, layout.LaneBits+len(lay.WarpBases()))
	for i, w := range st.Warps {
		columns[layout.LaneBits+log2(w)] = count * size << i
	}
	base := b.Add(b.SharedBase(), b.Const32(buf.offset))
	mine := b.Add(base, l.index(columns, false))
	lanes := slice.FreeLanes()
	l.meet()
	var first *simt.Value // of the lanes that hold the same
	if lanes != 0 {
		first = b.Cmp(simt.EQ, b.And(l.tid(), b.Const32(lanes)), b.Const32(0))
	}
	l.under(first, func() {
		for r, v := range vs {
			b.StShared(b.Add(mine, at(r)), []*simt.Value{l.asWord(v)}, simt.Access{})
		}
	})
	l.barrier()
	out := make([]*simt.Value, len(vs))
	for r, v := range vs {
		parts := make([]*simt.Value, 1<<len(st.Warps))
		for w := range parts {
			parts[w] = l.loadWord(b.Add(base, at(r)), w*count*size, v.Type)
		}
		out[r] = l.fold(o, parts)
	}
	l.pending.shared = true
	return out
}

// asWord is a value as shared scratch keeps it: a predicate as 0 or 1.
func (l *lowering) asWord(v *simt.Value) *simt.Value {
	if v.Type == simt.Pred {
		return l.b.Select(v, l.b.Const32(1), l.b.Const32(0))
	}
	return v
}

// loadWord loads a value of type t that asWord gave.
func (l *lowering) loadWord(addr *simt.Value, off int, t simt.Type) *simt.Value {
	if t == simt.Pred {
		return l.b.Cmp(simt.NE, l.loadWord(addr, off, simt.I32), l.b.Const32(0))
	}
	return l.b.LdShared(t, 1, addr, simt.Access{Offset: off})[0]
}
