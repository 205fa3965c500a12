package ir

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/kgen-dev/kgen/ir/layout"
)

// Hash is a stable digest of a kernel's or program's structure.
type Hash [sha256.Size]byte

// Hash digests what a kernel does, its hints included: names of values and
// positions do not count, names of the kernel, its parameters and size symbols do.
func (k *Kernel) Hash() Hash {
	e := newEncoder()
	e.kernel(k)
	return sha256.Sum256(e.b)
}

// Hash digests what a program does, as Kernel.Hash does.
func (p *Program) Hash() Hash {
	e := newEncoder()
	e.text(p.Name)
	e.params(p.Params)
	e.int(len(p.Workspace))
	for _, b := range p.Workspace {
		e.text(b.Name)
		e.int(int(b.Elem))
		e.bool(b.Zero)
		e.int(len(b.Dims))
		for _, d := range b.Dims {
			e.text(d.String())
		}
	}
	e.int(len(p.Kernels))
	for _, k := range p.Kernels {
		e.kernel(k)
	}
	e.int(len(p.Steps))
	for _, s := range p.Steps {
		e.text(s.Kernel)
		e.int(len(s.Args))
		for _, a := range s.Args {
			e.text(a)
		}
	}
	return sha256.Sum256(e.b)
}

// Equal reports whether p and q are the same program but for names of values and
// positions.
func (p *Program) Equal(q *Program) bool { return p.Hash() == q.Hash() }

// Equal reports whether k and l are the same kernel but for names of values and
// positions.
func (k *Kernel) Equal(l *Kernel) bool { return k.Hash() == l.Hash() }

// encoder writes a structure as bytes, unambiguously: every list has its length.
type encoder struct {
	b       []byte
	ids     []int // by ID: 1 + the value's number in order of definition
	next    int
	layouts map[*layout.Layout]string
}

func newEncoder() *encoder { return &encoder{layouts: map[*layout.Layout]string{}} }

func (e *encoder) int(n int) { e.b = binary.AppendVarint(e.b, int64(n)) }

func (e *encoder) bool(v bool) {
	if v {
		e.int(1)
	} else {
		e.int(0)
	}
}

func (e *encoder) text(s string) {
	e.int(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) ints(xs []int) {
	e.int(len(xs))
	for _, x := range xs {
		e.int(x)
	}
}

func (e *encoder) params(vs []*Value) {
	e.int(len(vs))
	for _, v := range vs {
		e.text(v.Name)
		e.typ(v.Type)
	}
}

func (e *encoder) typ(t Type) {
	e.int(int(t.Kind))
	e.int(int(t.Elem))
	e.ints(t.Shape)
	e.int(t.Depth)
	e.int(len(t.Dims))
	for _, d := range t.Dims {
		e.text(d.Sym)
		e.int(d.Size)
	}
	e.layout(t.Layout)
	if t.Shared != nil {
		e.text(t.Shared.String())
	} else {
		e.int(0)
	}
}

// layout writes a layout's text, made once for each layout.
func (e *encoder) layout(l *layout.Layout) {
	if l == nil {
		e.int(0)
		return
	}
	s, ok := e.layouts[l]
	if !ok {
		s = l.String()
		e.layouts[l] = s
	}
	e.text(s)
}

func (e *encoder) kernel(k *Kernel) {
	e.ids, e.next = make([]int, k.values), 0
	e.text(k.Name)
	e.params(k.Params)
	for _, v := range k.Params {
		e.define(v)
	}
	e.int(len(k.Assume))
	for _, a := range k.Assume {
		e.int(int(a.Kind))
		e.use(a.Param)
		e.int(a.Dim)
		e.int(int(a.Lo))
		e.int(int(a.Hi))
	}
	e.int(len(k.Space))
	for _, a := range k.Space {
		e.define(a.Var)
		e.text(a.Count.String())
	}
	e.int(k.Order.Group)
	e.int(k.Order.Hilbert)
	e.ints(k.Order.Reversed)
	for _, name := range HintNames {
		e.int(*k.Hints.Hint(name))
	}
	e.region(k.Body)
}

func (e *encoder) define(v *Value) {
	e.next++
	e.ids[v.ID] = e.next
}

func (e *encoder) use(v *Value) {
	if v == nil || v.ID >= len(e.ids) {
		e.int(-1)
		return
	}
	e.int(e.ids[v.ID])
}

func (e *encoder) region(r *Region) {
	if r == nil {
		e.int(-1)
		return
	}
	e.int(len(r.Params))
	for _, v := range r.Params {
		e.define(v)
		e.typ(v.Type)
	}
	e.int(len(r.Ops))
	for _, o := range r.Ops {
		e.op(o)
	}
}

func (e *encoder) op(o *Op) {
	e.text(o.Code.String())
	e.int(int(o.Given))
	e.int(len(o.Args))
	for _, v := range o.Args {
		e.use(v)
	}
	e.attrs(o)
	e.int(len(o.Regions))
	for _, r := range o.Regions {
		e.region(r)
	}
	e.int(len(o.Results))
	for _, v := range o.Results {
		e.define(v)
		e.typ(v.Type)
	}
}

func (e *encoder) attrs(o *Op) {
	for _, id := range o.Code.Info().Attrs {
		switch id {
		case attrValue:
			e.int(int(o.Int))
			e.float(o.Float)
		case attrRoles:
			e.int(len(o.Roles))
			for _, r := range o.Roles {
				e.text(r.Name)
				e.int(r.Warps)
				e.int(r.Registers)
			}
		default:
			e.attr(attrTable[id].field(&o.Attrs))
		}
	}
	e.bool(o.Sched.Set)
	if o.Sched.Set {
		e.int(o.Sched.Stage)
		e.int(o.Sched.Order)
	}
}

func (e *encoder) attr(field any) {
	switch f := field.(type) {
	case *int:
		e.int(*f)
	case *bool:
		e.bool(*f)
	case *[]int:
		e.ints(*f)
	case word:
		e.int(int(*f.p))
	}
}

// float writes a constant; every NaN is the same.
func (e *encoder) float(v float64) {
	if math.IsNaN(v) {
		v = math.NaN()
	}
	e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v))
}
