package ir

// Walk calls f with every operation of r and of the regions within, an operation
// before what its regions hold.
func (r *Region) Walk(f func(*Op)) {
	if r == nil {
		return
	}
	for _, o := range r.Ops {
		f(o)
		for _, inner := range o.Regions {
			inner.Walk(f)
		}
	}
}

// Walk calls f with every operation of the kernel.
func (k *Kernel) Walk(f func(*Op)) { k.Body.Walk(f) }

// Use is one use of a value: operand Arg of Op.
type Use struct {
	Op  *Op
	Arg int
}

// Uses returns the uses of every value, by ID, in the order of the text.
func (k *Kernel) Uses() [][]Use {
	uses := make([][]Use, k.values)
	k.Walk(func(o *Op) {
		for i, v := range o.Args {
			uses[v.ID] = append(uses[v.ID], Use{o, i})
		}
	})
	return uses
}

// ReplaceUses makes every operation that uses from use to.
func (k *Kernel) ReplaceUses(from, to *Value) {
	k.Walk(func(o *Op) {
		for i, v := range o.Args {
			if v == from {
				o.Args[i] = to
			}
		}
	})
}

// Renumber gives the values that are left dense IDs in the order of the text.
func (k *Kernel) Renumber() {
	k.values = 0
	k.eachValue(func(v *Value) {
		v.ID = k.values
		k.values++
	})
}

// eachValue calls f with every value in the order of its definition.
func (k *Kernel) eachValue(f func(*Value)) {
	for _, v := range k.Params {
		f(v)
	}
	for _, a := range k.Space {
		f(a.Var)
	}
	k.Body.eachValue(f)
}

func (r *Region) eachValue(f func(*Value)) {
	if r == nil {
		return
	}
	for _, v := range r.Params {
		f(v)
	}
	for _, o := range r.Ops {
		for _, inner := range o.Regions {
			inner.eachValue(f)
		}
		for _, v := range o.Results {
			f(v)
		}
	}
}
