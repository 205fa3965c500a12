package ir

// Access holds what an access may have beside view, indices and value.
type Access struct {
	Dims  []int  // the view's dimension each tile axis (after the row axis) spans; nil: the last ones
	Mask  *Value // i1, the tile's shape: elements to touch
	Fill  *Value // scalar: what a load gives for elements not touched; nil: 0
	Limit *Value // i32: rows from this one on are not touched (with row numbers)
	Pred  *Value // copy only, i1: whether to copy at all
}

// apply adds the access's optional operands, which must be appended in the order
// of the slots.
func (a Access) apply(o *Op, tileRank int) {
	for i, s := range o.Code.Info().Slots {
		if v := a.operand(s.Name); s.Optional && v != nil {
			o.Args = append(o.Args, v)
			o.Given |= 1 << i
		}
	}
	o.Dims = a.Dims
	if o.Dims == nil && o.Args[0] != nil {
		o.Dims = DefaultDims(o, tileRank)
	}
}

func (a Access) operand(slot string) *Value {
	switch slot {
	case "limit":
		return a.Limit
	case "mask":
		return a.Mask
	case "fill":
		return a.Fill
	case "pred":
		return a.Pred
	}
	return nil
}

// access starts an operation on a view; a wrong number of indices is a mistake.
func (b *Builder) access(code Opcode, view *Value, indices []*Value) *Op {
	o := &Op{Code: code, Pos: callerPos()}
	o.Args = append(append(o.Args, view), indices...)
	for _, v := range o.Args {
		if v == nil {
			b.fail(o.Pos, "%s: an operand is nil", code)
			return nil
		}
	}
	if n := len(view.Type.Dims); n != len(indices) {
		b.fail(o.Pos, "%s of %s: %d indices: want %d", code, view.Type, len(indices), n)
		return nil
	}
	return o
}

func firstAccess(as []Access) Access {
	if len(as) == 0 {
		return Access{}
	}
	return as[0]
}

// Load reads a tile of type t. An index that is a tile of row numbers makes it a
// gather: row r of the tile is where the row numbers' element r says.
func (b *Builder) Load(view *Value, indices []*Value, t Type, opts ...Access) *Value {
	o := b.access(OpLoad, view, indices)
	if o == nil {
		return b.Zero(t)
	}
	firstAccess(opts).apply(o, len(t.Shape))
	return b.one(o, t)
}

// Store writes a tile; an index that is a tile of row numbers makes it a scatter.
func (b *Builder) Store(view *Value, indices []*Value, v *Value, opts ...Access) {
	if o := b.access(OpStore, view, indices); o != nil {
		o.Args = append(o.Args, v)
		firstAccess(opts).apply(o, typeOf(v).Rank())
		b.Append(o)
	}
}

// Atomic combines a tile's elements into the view's and returns what was there.
func (b *Builder) Atomic(c Combine, view *Value, indices []*Value, v *Value, opts ...Access) *Value {
	o := b.access(OpAtomic, view, indices)
	if o == nil {
		return v
	}
	o.Combine = c
	o.Args = append(o.Args, v)
	firstAccess(opts).apply(o, typeOf(v).Rank())
	return b.one(o)
}

// Subview returns the part of a view from the indices on, extents long in the
// dimensions kept (dims; nil: all), cut to what the view holds.
func (b *Builder) Subview(view *Value, indices, extents []*Value, dims []int) *Value {
	o := b.access(OpSubview, view, indices)
	if o == nil {
		return view
	}
	if dims == nil {
		for i := range indices {
			dims = append(dims, i)
		}
	}
	if len(dims) != len(extents) {
		b.fail(o.Pos, "subview: %d extents for %d dimensions", len(extents), len(dims))
		return view
	}
	o.Dims = dims
	o.Args = append(o.Args, extents...)
	return b.one(o)
}

// Await waits until an element of a view of i32 equals v.
func (b *Builder) Await(view *Value, indices []*Value, v *Value) { b.flag(OpAwait, view, indices, v) }

// Signal sets an element of a view of i32 to v after all that was written before.
func (b *Builder) Signal(view *Value, indices []*Value, v *Value) { b.flag(OpSignal, view, indices, v) }

func (b *Builder) flag(code Opcode, view *Value, indices []*Value, v *Value) {
	if o := b.access(code, view, indices); o != nil {
		o.Args = append(o.Args, v)
		b.Append(o)
	}
}

// Loop holds a loop's schedule.
type Loop struct {
	Stages, Unroll int
	Specialise     bool
}

// For builds a loop from lo by step below hi. body gets the index and the
// carried values and returns their next ones; the results are the last ones.
func (b *Builder) For(lo, hi, step *Value, init []*Value, loop Loop, body func(i *Value, carried []*Value) []*Value) []*Value {
	r := &Region{Params: []*Value{b.kernel.NewValue("", ScalarOf(I32))}}
	for _, v := range init {
		r.Params = append(r.Params, b.kernel.NewValue("", typeOf(v)))
	}
	o := &Op{Code: OpFor, Args: append([]*Value{lo, hi, step}, init...), Regions: []*Region{r}, Pos: callerPos()}
	o.Stages, o.Unroll, o.Specialise = loop.Stages, loop.Unroll, loop.Specialise
	b.in(r, o.Pos, func() []*Value {
		if body == nil {
			return nil
		}
		return body(r.Params[0], r.Params[1:])
	})
	b.checkYield(o, r, init)
	return b.Append(o)
}

// If builds a conditional; both branches return values of the same types.
func (b *Builder) If(cond *Value, then, otherwise func() []*Value) []*Value {
	o := &Op{Code: OpIf, Args: []*Value{cond}, Regions: []*Region{{}, {}}, Pos: callerPos()}
	b.in(o.Regions[0], o.Pos, then)
	b.in(o.Regions[1], o.Pos, otherwise)
	values := o.Regions[0].Yield().Args
	b.checkYield(o, o.Regions[1], values)
	var types []Type
	for _, v := range values {
		types = append(types, typeOf(v))
	}
	return b.Append(o, types...)
}

// checkYield fails if a region does not yield values of the types of want.
func (b *Builder) checkYield(o *Op, r *Region, want []*Value) {
	got := r.Yield().Args
	if len(got) != len(want) {
		b.fail(o.Pos, "%s: a body returns %d values: want %d", o.Code, len(got), len(want))
		return
	}
	for i, v := range got {
		if v == nil || want[i] == nil {
			b.fail(o.Pos, "%s: value %d is nil", o.Code, i)
		} else if !v.Type.Equal(want[i].Type) {
			b.fail(o.Pos, "%s: a body returns value %d of type %s: want %s", o.Code, i, v.Type, want[i].Type)
		}
	}
}

// Roles builds regions that different warps run at the same time.
func (b *Builder) Roles(roles []Role, bodies ...func()) {
	o := &Op{Code: OpRoles, Attrs: Attrs{Roles: roles}, Pos: callerPos()}
	for _, body := range bodies {
		r := &Region{}
		o.Regions = append(o.Regions, r)
		b.in(r, o.Pos, func() []*Value {
			body()
			return nil
		})
	}
	b.Append(o)
}

// in builds a region that ends in a yield of body's values.
func (b *Builder) in(r *Region, pos Pos, body func() []*Value) {
	outer := b.region
	b.region = r
	var values []*Value
	if body != nil {
		values = body()
	}
	b.Append(&Op{Code: OpYield, Args: values, Pos: pos})
	b.region = outer
}

// Ring returns a ring of depth shared buffers.
func (b *Builder) Ring(depth int, e Elem, shape ...int) *Value {
	return b.one(&Op{Code: OpRing}, RingOf(depth, e, shape...))
}

// Acquire waits until the buffers of index k are free.
func (b *Builder) Acquire(k *Value, rings ...*Value) { b.rings(OpAcquire, k, rings, 0) }

// Commit closes a group of copies, index k of the rings.
func (b *Builder) Commit(k *Value, rings ...*Value) { b.rings(OpCommit, k, rings, 0) }

// Wait waits until all groups but the last pending have landed.
func (b *Builder) Wait(k *Value, pending int, rings ...*Value) { b.rings(OpWait, k, rings, pending) }

// Release gives the buffers of index k back.
func (b *Builder) Release(k *Value, rings ...*Value) { b.rings(OpRelease, k, rings, 0) }

func (b *Builder) rings(code Opcode, k *Value, rings []*Value, pending int) {
	b.Append(&Op{Code: code, Args: append(append([]*Value{}, rings...), k), Attrs: Attrs{Pending: pending}})
}

// Copy starts an asynchronous copy from a view into buffer k of a ring.
func (b *Builder) Copy(view *Value, indices []*Value, ring, k *Value, opts ...Access) {
	if o := b.access(OpCopy, view, indices); o != nil {
		o.Args = append(o.Args, ring, k)
		firstAccess(opts).apply(o, typeOf(ring).Rank())
		b.Append(o)
	}
}

// Read returns buffer k of a ring.
func (b *Builder) Read(ring, k *Value) *Value { return b.Emit(OpRead, ring, k) }

// Write sets buffer k of a ring.
func (b *Builder) Write(ring, k, v *Value) { b.Append(&Op{Code: OpWrite, Args: []*Value{ring, k, v}}) }

// Barrier makes all warps of the block meet.
func (b *Builder) Barrier() { b.Append(&Op{Code: OpBarrier}) }
