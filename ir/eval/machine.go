package eval

import (
	"context"
	"fmt"

	"github.com/kgen-dev/kgen/ir"
)

// machine runs one kernel. Every value has a cell of its own, reused whenever its
// operation runs again; no two cells share elements.
type machine struct {
	ctx     context.Context
	kernel  *ir.Kernel
	options Options
	cells   []cell // by value ID
	bytes   int64  // of cells so far
	role    *role  // that runs now
	team    *team  // nil outside roles
}

// cell holds a value: elements of a tile, a view, or a ring.
type cell struct {
	store
	view *view
	ring *ring
}

func newMachine(ctx context.Context, k *ir.Kernel, args []Arg, o Options) *machine {
	m := &machine{ctx: ctx, kernel: k, options: o, cells: make([]cell, k.NumValues())}
	for i, p := range k.Params {
		if a := args[i]; p.Type.Kind == ir.View {
			m.cells[p.ID].view = newView(a.Tensor)
		} else {
			c := m.own(p)
			setConstant(c, p.Type.Elem, a.Int, a.Float)
		}
	}
	return m
}

// own returns the elements of a tile value, making room the first time.
func (m *machine) own(v *ir.Value) *store {
	c := &m.cells[v.ID]
	if n := v.Type.Elements(); c.len() != n {
		m.bytes += int64(n) * 8
		c.store = *newStore(classOf(v.Type.Elem), n)
	}
	return &c.store
}

// get returns the elements of a tile operand.
func (m *machine) get(v *ir.Value) *store { return &m.cells[v.ID].store }

// index returns the value of an i32 scalar.
func (m *machine) index(v *ir.Value) int { return int(m.cells[v.ID].i[0]) }

// assign copies one value's cell to another's.
func (m *machine) assign(to, from *ir.Value) {
	src := &m.cells[from.ID]
	switch to.Type.Kind {
	case ir.Tile:
		m.own(to).copyRun(0, &src.store, 0, src.len())
	default:
		m.cells[to.ID] = *src
	}
}

// region runs the operations of a region but its yield.
func (m *machine) region(r *ir.Region) error {
	for _, o := range r.Ops {
		if o.Code == ir.OpYield {
			return nil
		}
		if err := m.op(o); err != nil {
			if o.Pos.IsZero() || len(o.Regions) > 0 {
				return err
			}
			return fmt.Errorf("%s: %s: %w", o.Pos, o.Code, err)
		}
		if m.bytes > m.options.maxBytes() {
			return fmt.Errorf("the tiles of the kernel take more than %d bytes", m.options.maxBytes())
		}
	}
	return nil
}

// op runs one operation.
func (m *machine) op(o *ir.Op) error {
	if m.role.ops++; m.role.ops == m.options.MaxOps {
		return fmt.Errorf("more than %d operations in a tile", m.options.MaxOps)
	}
	switch o.Code {
	case ir.OpFor:
		return m.loop(o)
	case ir.OpIf:
		return m.branch(o)
	case ir.OpRoles:
		return m.roles(o)
	case ir.OpStore:
		return m.store(o)
	case ir.OpAwait, ir.OpSignal:
		return m.flag(o)
	case ir.OpSubview:
		return m.subview(o)
	case ir.OpRing, ir.OpAcquire, ir.OpCopy, ir.OpWrite, ir.OpCommit, ir.OpWait, ir.OpRead, ir.OpRelease, ir.OpBarrier:
		return m.staged(o)
	case ir.OpSplit:
		m.split(o)
		return nil
	}
	return m.compute(o, m.own(o.Results[0]))
}

// compute runs an operation that gives one tile.
func (m *machine) compute(o *ir.Op, dst *store) error {
	arg := func(i int) *store { return m.get(o.Args[i]) }
	elem := o.Results[0].Type.Elem
	switch o.Code {
	case ir.OpConst:
		setConstant(dst, elem, o.Int, o.Float)
	case ir.OpDim:
		dst.i[0] = int32(m.cells[o.Args[0].ID].view.sizes[o.Axis])
	case ir.OpFma:
		multiplyAdd(elem, dst, arg(0), arg(1), arg(2))
	case ir.OpCmp:
		compare(o.Pred, dst.i, arg(0), arg(1))
	case ir.OpSelect:
		choose(dst, arg(0).i, arg(1), arg(2))
	case ir.OpCast:
		cast(dst, elem, arg(0), o.Args[0].Type.Elem, o.Saturate)
	case ir.OpBitcast:
		bitcast(dst, elem, arg(0), o.Args[0].Type.Elem)
	case ir.OpIota:
		indexAlong(dst, o.Results[0].Type.Shape, o.Axis)
	case ir.OpSplat:
		dst.fillRun(0, dst.len(), arg(0), 0)
	case ir.OpBroadcast:
		broadcast(dst, o.Results[0].Type.Shape, arg(0), o.Args[0].Type.Shape)
	case ir.OpExpand, ir.OpReshape, ir.OpConvert:
		dst.copyRun(0, arg(0), 0, dst.len())
	case ir.OpTranspose:
		transpose(dst, arg(0), o.Args[0].Type.Shape, o.Perm)
	case ir.OpJoin:
		for i := range dst.len() / 2 {
			dst.copyRun(2*i, arg(0), i, 1)
			dst.copyRun(2*i+1, arg(1), i, 1)
		}
	case ir.OpReduce:
		return m.reduce(o, dst, arg(0))
	case ir.OpScan:
		return scan(o, dst, arg(0))
	case ir.OpDot:
		return m.dot(o, dst)
	case ir.OpRandom16:
		random16(dst.i, arg(0).l[0], arg(1).i[0], arg(2).i[0], arg(3).i, arg(4).i)
	case ir.OpLoad:
		return m.load(o, dst)
	case ir.OpAtomic:
		return m.atomic(o, dst)
	default:
		if len(o.Args) == 1 {
			return unary(o.Code, elem, dst, arg(0))
		}
		return pairwise(o.Code, elem, dst, arg(0), arg(1))
	}
	return nil
}

func (m *machine) split(o *ir.Op) {
	src, lo, hi := m.get(o.Args[0]), m.own(o.Results[0]), m.own(o.Results[1])
	for i := range lo.len() {
		lo.copyRun(i, src, 2*i, 1)
		hi.copyRun(i, src, 2*i+1, 1)
	}
}

// loop runs a for. Carried values are copied when the body yields: all of them
// are read before any is set.
func (m *machine) loop(o *ir.Op) error {
	r := o.Regions[0]
	lo, hi, step := m.index(o.Args[0]), m.index(o.Args[1]), m.index(o.Args[2])
	if step <= 0 {
		return fmt.Errorf("%s: for: step %d: want 1 or more", o.Pos, step)
	}
	for i, v := range o.Args[3:] {
		m.assign(r.Params[1+i], v)
	}
	yield := r.Yield()
	swap := carriesParams(r, yield)
	for k := lo; k < hi; k += step {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		m.own(r.Params[0]).i[0] = int32(k)
		if err := m.region(r); err != nil {
			return err
		}
		m.carry(r.Params[1:], yield.Args, swap)
	}
	for i, v := range o.Results {
		m.assign(v, r.Params[1+i])
	}
	return nil
}

// carriesParams reports whether a region yields one of its own parameters: then
// setting one carried value could change the source of another.
func carriesParams(r *ir.Region, yield *ir.Op) bool {
	for _, v := range yield.Args {
		for _, p := range r.Params {
			if v == p {
				return true
			}
		}
	}
	return false
}

func (m *machine) carry(params, values []*ir.Value, swap bool) {
	if !swap {
		for i, v := range values {
			m.assign(params[i], v)
		}
		return
	}
	saved := make([]cell, len(values))
	for i, v := range values {
		saved[i] = m.cells[v.ID]
		if v.Type.Kind == ir.Tile {
			saved[i].store = *newStore(saved[i].class, saved[i].len())
			saved[i].copyRun(0, &m.cells[v.ID].store, 0, saved[i].len())
		}
	}
	for i, p := range params {
		m.cells[p.ID] = saved[i]
	}
}

func (m *machine) branch(o *ir.Op) error {
	r := o.Regions[1]
	if m.get(o.Args[0]).i[0] != 0 {
		r = o.Regions[0]
	}
	if err := m.region(r); err != nil {
		return err
	}
	for i, v := range r.Yield().Args {
		m.assign(o.Results[i], v)
	}
	return nil
}

func setConstant(dst *store, e ir.Elem, i int64, f float64) {
	fill(dst.f, roundOne(e, f))
	fill(dst.d, f)
	fill(dst.i, int32(i))
	fill(dst.l, i)
}
