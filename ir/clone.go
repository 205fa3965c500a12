package ir

import "slices"

// Cloner copies operations with their operands replaced: the tool of passes that
// unroll, peel or move code.
type Cloner struct {
	kernel *Kernel // gets the new values
	to     []*Value
	keep   bool // copies keep the IDs of their originals
}

// NewCloner returns a cloner of code of k into k.
func NewCloner(k *Kernel) *Cloner { return &Cloner{kernel: k, to: make([]*Value, k.values)} }

// Map makes copies use to instead of from.
func (c *Cloner) Map(from, to *Value) {
	if n := from.ID + 1 - len(c.to); n > 0 {
		c.to = append(c.to, make([]*Value, n)...)
	}
	c.to[from.ID] = to
}

// Value returns what copies use instead of v: v itself if nothing was mapped.
func (c *Cloner) Value(v *Value) *Value {
	if v != nil && v.ID < len(c.to) && c.to[v.ID] != nil {
		return c.to[v.ID]
	}
	return v
}

// fresh copies a definition.
func (c *Cloner) fresh(v *Value, def *Op) *Value {
	var w *Value
	if c.keep {
		w = &Value{ID: v.ID, Name: v.Name, Type: v.Type}
	} else {
		w = c.kernel.NewValue(v.Name, v.Type)
	}
	w.Def, w.Index = def, v.Index
	c.Map(v, w)
	return w
}

// Op copies an operation and its regions; later copies use its results.
func (c *Cloner) Op(o *Op) *Op {
	p := *o
	p.Perm, p.Dims, p.Roles = slices.Clone(o.Perm), slices.Clone(o.Dims), slices.Clone(o.Roles)
	p.Args, p.Results, p.Regions = make([]*Value, len(o.Args)), make([]*Value, len(o.Results)), nil
	for i, v := range o.Args {
		p.Args[i] = c.Value(v)
	}
	for _, r := range o.Regions {
		p.Regions = append(p.Regions, c.Region(r))
	}
	for i, v := range o.Results {
		p.Results[i] = c.fresh(v, &p)
	}
	return &p
}

// Region copies a region.
func (c *Cloner) Region(r *Region) *Region {
	out := &Region{}
	for _, v := range r.Params {
		out.Params = append(out.Params, c.fresh(v, nil))
	}
	for _, o := range r.Ops {
		out.Ops = append(out.Ops, c.Op(o))
	}
	return out
}

// Clone returns a copy that shares no value or operation with k.
func (k *Kernel) Clone() *Kernel {
	out := *k
	c := &Cloner{kernel: &out, to: make([]*Value, k.values), keep: true}
	out.Params, out.Space = nil, nil
	for _, v := range k.Params {
		out.Params = append(out.Params, c.fresh(v, nil))
	}
	for _, a := range k.Space {
		out.Space = append(out.Space, Axis{Var: c.fresh(a.Var, nil), Count: a.Count})
	}
	out.Assume = slices.Clone(k.Assume)
	for i := range out.Assume {
		out.Assume[i].Param = c.Value(out.Assume[i].Param)
	}
	out.Order.Reversed = slices.Clone(k.Order.Reversed)
	out.Body = c.Region(k.Body)
	return &out
}

// Clone returns a copy that shares no kernel with p.
func (p *Program) Clone() *Program {
	out := *p
	out.Params = nil
	for _, v := range p.Params {
		w := *v
		out.Params = append(out.Params, &w)
	}
	out.Workspace = slices.Clone(p.Workspace)
	out.Steps = slices.Clone(p.Steps)
	out.Kernels = nil
	for _, k := range p.Kernels {
		out.Kernels = append(out.Kernels, k.Clone())
	}
	return &out
}
