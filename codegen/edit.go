package codegen

import "github.com/kgen-dev/kgen/ir"

// editor appends operations to a region of a kernel under rewriting. A mistake
// in what it appends is a bug of the pass and panics; Compile reports it.
type editor struct {
	k   *ir.Kernel
	ops []*ir.Op
	pos ir.Pos
}

// add appends an operation whose result types, if it has results, are given.
func (e *editor) add(o *ir.Op, types ...ir.Type) []*ir.Value {
	if o.Pos.IsZero() {
		o.Pos = e.pos
	}
	for i, t := range types {
		v := e.k.NewValue("", t)
		v.Def, v.Index = o, i
		o.Results = append(o.Results, v)
	}
	e.ops = append(e.ops, o)
	return o.Results
}

func (e *editor) one(o *ir.Op, t ir.Type) *ir.Value { return e.add(o, t)[0] }

var scalarI32 = ir.ScalarOf(ir.I32)

// int returns an i32 constant; n wraps as the program's own arithmetic would.
func (e *editor) int(n int64) *ir.Value {
	o := &ir.Op{Code: ir.OpConst}
	o.Int = int64(int32(n))
	return e.one(o, scalarI32)
}

// binary appends an operation on two scalars of the type of x.
func (e *editor) binary(code ir.Opcode, x, y *ir.Value) *ir.Value {
	return e.one(&ir.Op{Code: code, Args: []*ir.Value{x, y}}, x.Type)
}

// plus returns x + n.
func (e *editor) plus(x *ir.Value, n int64) *ir.Value {
	if n == 0 {
		return x
	}
	if isConst(x) {
		return e.int(x.Def.Int + n)
	}
	return e.binary(ir.OpAdd, x, e.int(n))
}

// times returns x * n.
func (e *editor) times(x *ir.Value, n int64) *ir.Value {
	switch {
	case n == 1:
		return x
	case isConst(x):
		return e.int(x.Def.Int * n)
	}
	return e.binary(ir.OpMul, x, e.int(n))
}

func (e *editor) cmp(p ir.Pred, x, y *ir.Value) *ir.Value {
	o := &ir.Op{Code: ir.OpCmp, Args: []*ir.Value{x, y}}
	o.Pred = p
	return e.one(o, x.Type.WithElem(ir.I1))
}

// isConst tells whether v is a constant of an integer type.
func isConst(v *ir.Value) bool {
	return v.Def != nil && v.Def.Code == ir.OpConst && v.Type.Elem.IsInt()
}

// copyOp returns o with operands replaced and without results or regions.
func copyOp(o *ir.Op, subst map[*ir.Value]*ir.Value) *ir.Op {
	c := &ir.Op{Code: o.Code, Given: o.Given, Attrs: o.Attrs, Pos: o.Pos, Args: make([]*ir.Value, len(o.Args))}
	for i, a := range o.Args {
		if s, ok := subst[a]; ok {
			a = s
		}
		c.Args[i] = a
	}
	return c
}

// repeat appends what computes v once more with the values in subst replaced,
// and returns it. within holds the operations that depend on what is replaced.
func (e *editor) repeat(v *ir.Value, subst map[*ir.Value]*ir.Value, within map[*ir.Op]bool) *ir.Value {
	if s, ok := subst[v]; ok {
		return s
	}
	if v.Def == nil || !within[v.Def] {
		return v
	}
	for _, a := range v.Def.Args {
		e.repeat(a, subst, within)
	}
	c := copyOp(v.Def, subst)
	types := make([]ir.Type, len(v.Def.Results))
	for i, r := range v.Def.Results {
		types[i] = r.Type
	}
	for i, r := range e.add(c, types...) {
		r.Name = v.Def.Results[i].Name
		subst[v.Def.Results[i]] = r
	}
	return subst[v]
}

// users lists, for each value, the operations that use it, in order.
type users map[*ir.Value][]*ir.Op

func usersOf(r *ir.Region) users {
	c := collector{users: make(users, 4*len(r.Ops))}
	c.region(r)
	return c.users
}

// collector gives the first users of each value room in slabs: most values have few.
type collector struct {
	users
	slab []*ir.Op
}

const fewUsers = 2

func (c *collector) region(r *ir.Region) {
	for _, o := range r.Ops {
		for _, a := range o.Args {
			l := c.users[a]
			if len(l) > 0 && l[len(l)-1] == o {
				continue
			}
			if l == nil {
				if len(c.slab) < fewUsers {
					c.slab = make([]*ir.Op, 128*fewUsers)
				}
				l, c.slab = c.slab[:0:fewUsers], c.slab[fewUsers:]
			}
			c.users[a] = append(l, o)
		}
		for _, in := range o.Regions {
			c.region(in)
		}
	}
}

// uses tells whether o or an operation in its regions uses one of vs.
func uses(o *ir.Op, vs map[*ir.Value]bool) bool {
	for _, a := range o.Args {
		if vs[a] {
			return true
		}
	}
	for _, r := range o.Regions {
		for _, in := range r.Ops {
			if uses(in, vs) {
				return true
			}
		}
	}
	return false
}
