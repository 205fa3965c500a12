package codegen

import (
	"fmt"
	"math"
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

	signalled       []*ir.Value // those with mbarriers
	copiesByThreads bool        // there are others

	handed map[*ir.Value]handing // rings that one role fills for another
	stores []*buffer             // of a persistent kernel's stores by tensor maps
}

// signals tells whether mbarriers say when a ring's buffers are full: tensor maps fill them,
// or one role for another.
func (p *sharedPlan) signals(ring *ir.Value) bool { return p.handed[ring].full > 0 || mapped(ring) }

// signalledOf is the first of the rings whose mbarriers stand for all of those that are
// filled together; nil if none has any.
func (p *sharedPlan) signalledOf(rings []*ir.Value) *ir.Value {
	if i := slices.IndexFunc(rings, p.signals); i >= 0 {
		return rings[i]
	}
	return nil
}

// handing is how many arrivals tell that a buffer is full, and that it is free again.
type handing struct{ full, free int }

// buffer is a piece of shared memory that lives from one operation to another.
type buffer struct {
	shared      *layout.Shared // nil for a reduction's scratch
	size        int            // bytes of one buffer
	depth       int
	align       int
	first, last int // numbers of operations
	offset      int
}

func (b *buffer) bytes() int { return b.size * b.depth }

// room is what a persistent kernel's shared memory must hold; zero for other kernels.
type room struct {
	most  int // bytes that a block may have
	teams int // warpgroups that store tiles of their own
}

// planShared chooses layouts and offsets. In a persistent kernel the rings and what is
// being stored live on from tile to tile; stores get what is left.
func planShared(k *ir.Kernel, f *facts, warps int, kept room) (*sharedPlan, error) {
	p := &planner{kept: kept, f: f, warps: warps, users: usersOf(k.Body), plan: &sharedPlan{buffers: map[any]*buffer{}, align: 16, handed: handedOver(k)}, rings: map[*ir.Value]*ringUse{}, reads: map[*ir.Value]*ringUse{}, leads: map[*ir.Value]bool{}}
	p.lead(k.Body)
	if err := p.walk(k.Body); err != nil {
		return nil, err
	}
	for _, ring := range p.order {
		if err := p.place(ring); err != nil {
			return nil, err
		}
	}
	if kept.most > 0 {
		p.keep(k.Body)
	}
	for p.allocate(); p.plan.size > kept.most && p.shrinkStores(); {
		p.allocate()
	}
	return p.plan, nil
}

// keep makes rings and the space of stores by tensor maps live as long as the kernel.
func (p *planner) keep(r *ir.Region) {
	for _, u := range p.order {
		u.buf.last = math.MaxInt
	}
	for _, o := range r.Ops {
		if b := p.plan.buffers[o]; b != nil && o.Bulk {
			b.first, b.last, b.size = 0, math.MaxInt, b.size*p.kept.teams
			p.plan.stores = append(p.plan.stores, b)
		}
		for _, in := range o.Regions {
			p.keep(in)
		}
	}
}

// shrinkStores takes a slice of each warp from the space of stores; it tells whether it
// could.
func (p *planner) shrinkStores() bool {
	less := false
	for _, b := range p.plan.stores {
		if slice := b.shared.Size() * p.warps * p.kept.teams; b.size > slice {
			b.size -= slice
			less = true
		}
	}
	return less
}

// ringUse is how a ring is written and read.
type ringUse struct {
	value *ir.Value
	buf   *buffer
	uses  []layout.Use
	order []int
}

type planner struct {
	kept  room
	f     *facts
	warps int
	users users
	n     int // operations seen
	plan  *sharedPlan
	list  []*buffer
	rings map[*ir.Value]*ringUse
	reads map[*ir.Value]*ringUse // what dots load late, perhaps transposed
	leads map[*ir.Value]bool     // rings that stand for those filled and waited for together
	order []*ringUse
}

// walk numbers operations and notes how long buffers live. A ring used in a loop
// lives to the loop's end.
func (p *planner) walk(r *ir.Region) error {
	for _, o := range r.Ops {
		p.n++
		if o.Code == ir.OpRing {
			p.ring(o)
		}
		b, err := p.scratch(o)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", o.Pos, o.Code, err)
		}
		if b != nil {
			b.depth, b.first, b.last = 1, p.n, p.n
			p.list = append(p.list, b)
			p.plan.buffers[o] = b
		}
		if o.Code == ir.OpReduce && o.Blocks > 1 {
			p.exchange(o)
		}
		p.touch(o, r)
		for _, in := range mainLast(o) {
			if err := p.walk(in); err != nil {
				return err
			}
		}
		// What other roles fill the main one has waited for and read when its own operations
		// are over.
		if o.Code != ir.OpRoles && len(o.Regions) > 0 {
			p.n++
			for _, in := range o.Regions {
				p.extend(in, p.n)
			}
		}
	}
	return nil
}

// mainLast is an operation's regions, of roles the main one's last.
func mainLast(o *ir.Op) []*ir.Region {
	if o.Code != ir.OpRoles {
		return o.Regions
	}
	others := slices.Delete(slices.Clone(o.Regions), mainRole, mainRole+1)
	return append(others, o.Regions[mainRole])
}

// handedOver counts who fills and frees what roles of a kernel hand over: the thread that asks
// a tensor map for copies, all threads that copy themselves, or all warps of another role.
func handedOver(k *ir.Kernel) map[*ir.Value]handing {
	found := map[*ir.Value]handing{}
	for _, o := range k.Body.Ops {
		if o.Code != ir.OpRoles {
			continue
		}
		for i, in := range o.Regions {
			for _, r := range ringsOf(in, ir.OpAcquire) {
				h := handing{full: o.Roles[i].Warps}
				switch {
				case i == copyRole && mapped(r):
					h.full = 1
				case i == copyRole:
					h.full *= 32
				}
				for j, other := range o.Regions {
					if slices.Contains(ringsOf(other, ir.OpRelease), r) {
						h.free = o.Roles[j].Warps
					}
				}
				found[r] = h
			}
		}
	}
	return found
}

// lead finds the rings that stand for all that are filled together.
func (p *planner) lead(r *ir.Region) {
	for _, o := range r.Ops {
		switch o.Code {
		case ir.OpAcquire, ir.OpCommit, ir.OpWait, ir.OpRelease:
			p.leads[p.plan.signalledOf(o.Args)] = true
		}
		for _, in := range o.Regions {
			p.lead(in)
		}
	}
}

// exchange plans where the blocks of a cluster put their parts of a reduction: others
// write there at any time, so it is for nothing else.
func (p *planner) exchange(o *ir.Op) {
	b := &buffer{size: exchangeBytes(o, o.Blocks), depth: 1, align: 16, last: math.MaxInt}
	p.list = append(p.list, b)
	p.plan.buffers[exchangeOf{o}] = b
}

func (p *planner) touch(o *ir.Op, r *ir.Region) {
	for _, a := range o.Args {
		if u := p.rings[a]; u != nil {
			u.buf.last = max(u.buf.last, p.n)
			p.use(u, o)
			if o.Code == ir.OpRead && (a.Type.Shared != nil || p.users.readLate(o.Result(), r)) {
				p.reads[o.Result()] = u
			}
		}
		if u := p.reads[a]; u != nil {
			u.buf.last = max(u.buf.last, p.n)
			if o.Code == ir.OpTranspose {
				p.reads[o.Result()] = u
			}
		}
	}
}

// extend makes rings that a region uses live to `at`.
func (p *planner) extend(r *ir.Region, at int) {
	for _, o := range r.Ops {
		for _, a := range o.Args {
			for _, u := range []*ringUse{p.rings[a], p.reads[a]} {
				if u != nil {
					u.buf.last = max(u.buf.last, at)
				}
			}
		}
		for _, in := range o.Regions {
			p.extend(in, at)
		}
	}
}

func (p *planner) ring(o *ir.Op) {
	v := o.Result()
	b := &buffer{depth: ringDepth(v), first: p.n, last: p.n}
	u := &ringUse{value: v, buf: b}
	p.rings[v] = u
	switch {
	case !p.plan.signals(v):
		p.plan.copiesByThreads = true
	case p.leads[v]:
		m := &buffer{size: mbarBytes, depth: 2 * v.Type.Depth, align: mbarBytes, last: math.MaxInt}
		p.list = append(p.list, m)
		p.plan.buffers[mbarOf{v}] = m
		p.plan.signalled = append(p.plan.signalled, v)
	}
	p.order = append(p.order, u)
	p.list = append(p.list, b)
	p.plan.buffers[v] = b
}

// use notes an access of a ring with its layout.
func (p *planner) use(u *ringUse, o *ir.Op) {
	if u.value.Type.Shared != nil {
		return
	}
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
	return l, min(n, l.Contiguous(order[0])) * bytesOf(t.Elem)
}

// place chooses a ring's shared layout.
func (p *planner) place(u *ringUse) error {
	t := u.value.Type
	if s := t.Shared; s != nil {
		u.buf.shared, u.buf.size, u.buf.align = s, s.Size(), s.Align()
		return nil
	}
	if u.order == nil {
		u.order = rowMajor(len(t.Shape))
	}
	s, err := layout.Choose(t.Shape, u.order, bytesOf(t.Elem), u.uses...)
	if err != nil {
		return fmt.Errorf("ring %%%s: %w", u.value.Name, err)
	}
	u.buf.shared, u.buf.size, u.buf.align = s, s.Size(), s.Align()
	return nil
}

// scratch is the shared memory that an operation uses for itself, nil if it needs none.
func (p *planner) scratch(o *ir.Op) (*buffer, error) {
	switch o.Code {
	case ir.OpConvert:
		return convertScratch(o)
	case ir.OpStore:
		return storeScratch(o, p.warps), nil
	case ir.OpReshape:
		return reshapeScratch(o)
	case ir.OpReduce:
		return reduceScratch(o), nil
	case ir.OpScan:
		return scanScratch(o, p.warps), nil
	case ir.OpAtomic:
		if o.Bulk {
			return storeScratch(o, p.warps), nil
		}
		return atomicScratch(o, p.warps), nil
	}
	return nil, nil
}

// convertScratch holds the tile of a conversion that goes through shared memory.
func convertScratch(o *ir.Op) (*buffer, error) {
	from, to := o.Args[0].Type, o.Result().Type
	if !throughMemory(layout.Convert(from.Layout, to.Layout), to) {
		return nil, nil
	}
	order := rowMajor(len(to.Shape))
	if c := contiguousAxis(to.Layout); c >= 0 {
		order = slices.DeleteFunc(order, func(d int) bool { return d == c })
		order = slices.Insert(order, 0, c)
	}
	s, err := layout.Choose(to.Shape, order, bytesOf(to.Elem), layout.Use{Layout: from.Layout}, layout.Use{Layout: to.Layout})
	if err != nil {
		return nil, err
	}
	return &buffer{shared: s, size: s.Size(), align: s.Align()}, nil
}

// reshapeScratch holds the tile of a reshape that moves elements among threads, row by
// row without gaps: so its place is the same in both shapes.
func reshapeScratch(o *ir.Op) (*buffer, error) {
	from, to := o.Args[0].Type, o.Result().Type
	if !from.IsTile() || !to.IsTile() {
		return nil, nil
	}
	if _, ok := reshapeTable(from.Layout, to.Layout); ok {
		return nil, nil
	}
	s, err := dense(from)
	if err != nil {
		return nil, err
	}
	return &buffer{shared: s, size: s.Size(), align: s.Align()}, nil
}

// dense lays a tile out row by row without gaps.
func dense(t ir.Type) (*layout.Shared, error) {
	return layout.Padded(t.Shape, rowMajor(len(t.Shape)), bytesOf(t.Elem), 0)
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

// reduceScratch gives a reduction over several warps one slot a warp and result.
func reduceScratch(o *ir.Op) *buffer {
	l := o.Args[0].Type.Layout
	st, ok := l.Reduce(o.Axis)
	if !ok || len(st.Warps) == 0 {
		return nil
	}
	n := 1
	for d, s := range l.Shape() {
		if d != o.Axis {
			n *= s
		}
	}
	return &buffer{size: n * wordBytes(o.Args[0].Type.Elem) << len(st.Warps), align: 16}
}

// scanScratch gives a scan over several warps one slot a thread and block.
func scanScratch(o *ir.Op, warps int) *buffer {
	t := o.Args[0].Type
	steps, ok := scanSteps(t.Layout, o.Axis)
	if !ok {
		return nil
	}
	n := scanTotals(t.Layout, steps)
	if n == 0 {
		return nil
	}
	return &buffer{size: n * 32 * warps * wordBytes(t.Elem), align: 16}
}

// atomicScratch is for handing what was there to the threads that hold copies.
func atomicScratch(o *ir.Op, warps int) *buffer {
	t := o.Result().Type
	switch {
	case t.IsScalar():
		return &buffer{size: 16, align: 16}
	case t.Layout.FreeWarps() != 0:
		return &buffer{size: t.Layout.Registers() * 32 * warps * wordBytes(t.Elem), align: 16}
	}
	return nil
}

// wordBytes is what an element takes where each has words of its own.
func wordBytes(e ir.Elem) int { return max(4, bytesOf(e)) }

// allocate places buffers one after another, large alignments first, each at the
// lowest offset free during its life.
func (p *planner) allocate() {
	list := slices.Clone(p.list)
	slices.SortStableFunc(list, func(x, y *buffer) int { return y.align - x.align })
	var placed []*buffer
	p.plan.size = 0
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
}
