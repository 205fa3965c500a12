package codegen

import (
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/layout"
)

// sharedPlan says where in shared memory every ring, and the scratch space of every
// conversion and reduction, lies. Buffers that are never needed at the same time
// share space.
type sharedPlan struct {
	buffers map[any]*buffer // *ir.Value of a ring, or *ir.Op
	size    int
	align   int
}

// buffer is a piece of shared memory that lives from one operation to another.
type buffer struct {
	shared      *layout.Shared // nil for a reduction's scratch
	size        int            // bytes of one buffer
	depth       int
	align       int
	first, last int // numbers of operations
	offset      int
	reuses      bool // lies where an earlier buffer lay
}

func (b *buffer) bytes() int { return b.size * b.depth }

// planShared chooses layouts and offsets.
func planShared(k *ir.Kernel, f *facts, warps int) (*sharedPlan, error) {
	p := &planner{f: f, warps: warps, plan: &sharedPlan{buffers: map[any]*buffer{}, align: 16}, rings: map[*ir.Value]*ringUse{}}
	p.walk(k.Body)
	if p.err != nil {
		return nil, p.err
	}
	for _, ring := range p.order {
		if err := p.place(ring); err != nil {
			return nil, err
		}
	}
	p.allocate()
	return p.plan, nil
}

// ringUse is how a ring is written and read.
type ringUse struct {
	value *ir.Value
	buf   *buffer
	uses  []layout.Use
	order []int
}

type planner struct {
	f     *facts
	warps int
	n     int // operations seen
	plan  *sharedPlan
	list  []*buffer
	rings map[*ir.Value]*ringUse
	order []*ringUse
	err   error
}

// walk numbers operations and notes how long buffers live. A ring used in a loop
// lives to the loop's end.
func (p *planner) walk(r *ir.Region) {
	for _, o := range r.Ops {
		p.n++
		at := p.n
		switch o.Code {
		case ir.OpRing:
			p.ring(o)
		case ir.OpConvert:
			p.convert(o)
		case ir.OpReduce:
			p.reduce(o)
		}
		p.touch(o, at)
		for _, in := range o.Regions {
			p.walk(in)
		}
		if len(o.Regions) > 0 {
			p.n++
			for _, in := range o.Regions {
				p.extend(in, p.n)
			}
		}
	}
}

func (p *planner) touch(o *ir.Op, at int) {
	for _, a := range o.Args {
		if u := p.rings[a]; u != nil {
			u.buf.last = max(u.buf.last, at)
			p.use(u, o)
		}
	}
}

// extend makes rings that a region uses live to `at`.
func (p *planner) extend(r *ir.Region, at int) {
	for _, o := range r.Ops {
		for _, a := range o.Args {
			if u := p.rings[a]; u != nil {
				u.buf.last = max(u.buf.last, at)
			}
		}
		for _, in := range o.Regions {
			p.extend(in, at)
		}
	}
}

func (p *planner) ring(o *ir.Op) {
	v := o.Result()
	b := &buffer{depth: v.Type.Depth, first: p.n, last: p.n}
	u := &ringUse{value: v, buf: b}
	p.rings[v] = u
	p.order = append(p.order, u)
	p.list = append(p.list, b)
	p.plan.buffers[v] = b
}

// use notes an access of a ring with its layout.
func (p *planner) use(u *ringUse, o *ir.Op) {
	switch o.Code {
	case ir.OpCopy:
		l, bytes := p.f.copyLayout(o, u.value.Type, p.warps)
		if u.order == nil {
			u.order = orderOf(p.f, accessOf(o, u.value.Type.Shape))
		}
		u.add(layout.Use{Layout: l, Bytes: bytes})
	case ir.OpRead:
		u.add(layout.Use{Layout: o.Result().Type.Layout, Matrix: true})
	case ir.OpWrite:
		u.add(layout.Use{Layout: o.Operand("value").Type.Layout})
	}
}

func (u *ringUse) add(n layout.Use) {
	if n.Layout == nil || slices.ContainsFunc(u.uses, func(m layout.Use) bool { return m.Layout.Equal(n.Layout) }) {
		return
	}
	u.uses = append(u.uses, n)
}

func orderOf(f *facts, a access) []int {
	order := rowMajor(len(a.shape))
	if axis := f.contiguous(a); axis >= 0 {
		order = slices.DeleteFunc(order, func(d int) bool { return d == axis })
		order = slices.Insert(order, 0, axis)
	}
	return order
}

// copyLayout is how threads share the work of copying a tile into shared memory,
// and how many bytes each moves at once.
func (f *facts) copyLayout(o *ir.Op, t ir.Type, warps int) (*layout.Layout, int) {
	a := accessOf(o, t.Shape)
	order := orderOf(f, a)
	n := f.vector(a, 16)
	l, err := layout.Blocked(t.Shape, order, n, warps)
	if err != nil {
		return nil, 0
	}
	return l, min(n, l.Contiguous(order[0])) * t.Elem.Bits() / 8
}

// place chooses a ring's shared layout.
func (p *planner) place(u *ringUse) error {
	t := u.value.Type
	if u.order == nil {
		u.order = rowMajor(len(t.Shape))
	}
	s, err := layout.Choose(t.Shape, u.order, t.Elem.Bits()/8, u.uses...)
	if err != nil {
		return fmt.Errorf("ring %%%s: %w", u.value.Name, err)
	}
	u.buf.shared, u.buf.size, u.buf.align = s, s.Size(), s.Align()
	return nil
}

// convert gives a conversion through shared memory its scratch space.
func (p *planner) convert(o *ir.Op) {
	from, to := o.Args[0].Type, o.Result().Type
	if !throughMemory(layout.Convert(from.Layout, to.Layout), to) {
		return
	}
	order := rowMajor(len(to.Shape))
	if c := contiguousAxis(to.Layout); c >= 0 {
		order = slices.DeleteFunc(order, func(d int) bool { return d == c })
		order = slices.Insert(order, 0, c)
	}
	s, err := layout.Choose(to.Shape, order, max(to.Elem.Bits()/8, 1), layout.Use{Layout: from.Layout}, layout.Use{Layout: to.Layout})
	if err != nil {
		p.err = fmt.Errorf("%s: convert: %w", o.Pos, err)
		return
	}
	p.scratch(o, &buffer{shared: s, size: s.Size(), depth: 1, align: s.Align()})
}

// throughMemory tells whether a conversion goes through shared memory: when it must,
// and when shuffles would be more than the stores, loads and two barriers it takes.
func throughMemory(p layout.Plan, t ir.Type) bool {
	if p.Kind != layout.Shuffles {
		return p.Kind == layout.Memory
	}
	if t.Elem.Bits() != 32 {
		return true
	}
	return p.Exchange.Shuffles(32)+p.Exchange.Selects() > 2*t.Layout.Registers()+8
}

// contiguousAxis is the axis along which a thread's registers run.
func contiguousAxis(l *layout.Layout) int {
	best, axis := 1, -1
	for d := range l.Rank() {
		if n := l.Contiguous(d); n > best {
			best, axis = n, d
		}
	}
	return axis
}

// reduce gives a reduction over several warps one slot a warp and result.
func (p *planner) reduce(o *ir.Op) {
	l := o.Args[0].Type.Layout
	if st, ok := l.Reduce(o.Axis); ok && len(st.Warps) > 0 {
		n := 1
		for d, s := range l.Shape() {
			if d != o.Axis {
				n *= s
			}
		}
		bytes := max(4, o.Args[0].Type.Elem.Bits()/8)
		p.scratch(o, &buffer{size: n * bytes << len(st.Warps), depth: 1, align: 16})
	}
}

func (p *planner) scratch(o *ir.Op, b *buffer) {
	b.first, b.last = p.n, p.n
	p.list = append(p.list, b)
	p.plan.buffers[o] = b
}

// allocate places buffers one after another, large alignments first, each at the
// lowest offset free during its life.
func (p *planner) allocate() {
	list := slices.Clone(p.list)
	slices.SortStableFunc(list, func(x, y *buffer) int { return y.align - x.align })
	var placed []*buffer
	for _, b := range list {
		b.offset = 0
		for again := true; again; {
			again = false
			for _, o := range placed {
				if o.first <= b.last && b.first <= o.last && o.offset < b.offset+b.bytes() && b.offset < o.offset+o.bytes() {
					b.offset = (o.offset + o.bytes() + b.align - 1) / b.align * b.align
					again = true
				}
			}
		}
		placed = append(placed, b)
		p.plan.size = max(p.plan.size, b.offset+b.bytes())
		p.plan.align = max(p.plan.align, b.align)
	}
	for _, b := range placed {
		for _, o := range placed {
			b.reuses = b.reuses || o.last < b.first && o.offset < b.offset+b.bytes() && b.offset < o.offset+o.bytes()
		}
	}
}
