package codegen

import (
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// convert changes a tile's layout: another numbering of registers, or through
// shared memory.
func (l *lowering) convert(o *ir.Op) {
	src := l.tile(o.Args[0])
	t := o.Result().Type
	plan := layout.Convert(src.l, t.Layout)
	switch {
	case plan.Kind < layout.Shuffles:
		l.set(o.Result(), l.renumber(src, t, plan.Table))
		return
	case !throughMemory(plan, t):
		l.set(o.Result(), l.packed(t, l.exchange(plan.Exchange, l.elements(src), t.Layout)))
		return
	}
	buf := l.plan.buffers[o]
	l.set(o.Result(), l.throughShared(o, src, buf, buf.shared, buf.shared))
}

// throughShared writes a fragment to scratch memory and reads it back as the result's
// layout has it; out is where its elements are for the result's shape.
func (l *lowering) throughShared(o *ir.Op, src *fragment, buf *buffer, in, out *layout.Shared) *fragment {
	base := l.b.Add(l.b.SharedBase(), l.b.Const32(buf.offset))
	l.meet()
	if !l.spill(src, in, base) {
		panic(unsupported(o, "shared layout %s takes no such tile", in))
	}
	l.barrier()
	t := o.Result().Type
	f := l.loadAll(&ringRead{ring: &buffer{shared: out}, slot: base, l: t.Layout, value: o.Result()})
	l.pending.shared = true
	return f
}

// reshapeTable says from which of its own registers a thread fills the result of a
// reshape; ok is false if elements move among threads.
func reshapeTable(from, to *layout.Layout) (table []int, ok bool) {
	r, err := from.Reshape(to.Shape())
	if err != nil {
		return nil, false
	}
	return layout.Fetch(r, to)
}

// reshape renumbers a thread's own registers where that serves.
func (l *lowering) reshape(o *ir.Op) {
	r := o.Result()
	t := r.Type
	switch {
	case !o.Args[0].Type.IsTile():
		l.uniform(r, l.scalar(o.Args[0]))
		return
	case !t.IsTile():
		l.uniform(r, l.elements(l.tile(o.Args[0]))[0]) // every thread holds a tile of one element
		return
	}
	src := l.tile(o.Args[0])
	if o.Code == ir.OpReshape {
		if buf := l.plan.buffers[o]; buf != nil {
			out, err := dense(t)
			if err != nil {
				panic(unsupported(o, "%w", err))
			}
			l.set(r, l.throughShared(o, src, buf, buf.shared, out))
			return
		}
		table, _ := reshapeTable(src.l, t.Layout)
		l.set(r, l.renumber(src, t, table))
		return
	}
	from := src.l
	if o.Code == ir.OpExpand {
		from = from.Expand(o.Axis)
	}
	table, ok := layout.Fetch(from, t.Layout)
	if !ok {
		panic(unsupported(o, "layout %v is not within a thread of %v", t.Layout, from))
	}
	l.set(r, l.renumber(src, t, table))
}

// exchange moves elements among the lanes of each warp as the plan says: selects,
// shuffles, selects.
func (l *lowering) exchange(x *layout.Exchange, src []*simt.Value, to *layout.Layout) []*simt.Value {
	b := l.b
	source := func(lane int) (*simt.Value, int) {
		return b.Xor(l.index(append(slices.Clone(x.Lane[:]), x.Warp...), true), b.Const32(lane)), 32
	}
	if width, ok := x.Width(); ok { // the instruction adds a constant to the group's first lane
		source = func(lane int) (*simt.Value, int) { return b.Const32(lane), width }
	}
	out := make([]*simt.Value, 0, to.Registers())
	for _, c := range x.Copies {
		regs := l.selectStages(x.Pre, slices.Clone(src[c*x.SourceRegisters:][:x.SourceRegisters]))
		rounds := make([]*simt.Value, len(x.Rounds))
		for i, r := range x.Rounds {
			v := regs[r.From]
			if !x.Identity() || r.Lane != 0 {
				lane, width := source(r.Lane)
				v = b.Shfl(simt.Idx, v, lane, width)
			}
			rounds[i] = v
		}
		slots := make([]*simt.Value, len(x.Results))
		for k, i := range x.Results {
			slots[k] = rounds[i]
		}
		out = append(out, l.selectStages(x.Post, slots)[:x.Registers]...)
	}
	return out
}

// selectStages exchanges values between register numbers in some threads.
func (l *lowering) selectStages(stages []layout.Select, regs []*simt.Value) []*simt.Value {
	b := l.b
	for _, s := range stages {
		odd := b.And(l.tid(), b.Const32(s.Threads))
		if s.Threads&(s.Threads-1) != 0 {
			odd = b.And(b.Popc(odd), b.Const32(1))
		}
		p := b.Cmp(simt.NE, odd, b.Const32(0))
		next := make([]*simt.Value, len(regs))
		for j := range regs {
			next[j] = b.Select(p, regs[j^s.Xor], regs[j])
		}
		regs = next
	}
	return regs
}
