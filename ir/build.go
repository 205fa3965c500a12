package ir

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
)

// Builder builds a kernel, or adds operations to a region of one. Its methods
// infer the types of results. The first mistake is kept and returned by Finish
// or Err; later methods go on quietly with values of a plausible type.
type Builder struct {
	kernel *Kernel
	region *Region
	err    error
}

// NewKernel returns a builder of a kernel without parameters.
func NewKernel(name string) *Builder {
	k := &Kernel{Name: name, Body: &Region{}, Pos: callerPos()}
	return &Builder{kernel: k, region: k.Body}
}

// BuildAt returns a builder that appends to a region of an existing kernel.
func BuildAt(k *Kernel, r *Region) *Builder { return &Builder{kernel: k, region: r} }

// Kernel returns the kernel under construction.
func (b *Builder) Kernel() *Kernel { return b.kernel }

// Err returns the first mistake.
func (b *Builder) Err() error { return b.err }

// Finish verifies the kernel and returns it.
func (b *Builder) Finish() (*Kernel, error) {
	if b.err != nil {
		return nil, b.err
	}
	if err := VerifyKernel(b.kernel); err != nil {
		return nil, err
	}
	return b.kernel, nil
}

// callerPos returns the first frame outside this package.
func callerPos() Pos {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "kgen/ir.") || strings.HasSuffix(f.File, "_test.go") {
			return Pos{File: f.File, Line: f.Line}
		}
		if !more {
			return Pos{}
		}
	}
}

// fail keeps the first mistake, with the place in the caller's source.
func (b *Builder) fail(pos Pos, format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%s: kernel %s: %w", pos, b.kernel.Name, fmt.Errorf(format, args...))
	}
}

// Failf lets a helper outside this package report a mistake of its caller.
func (b *Builder) Failf(format string, args ...any) { b.fail(callerPos(), format, args...) }

// View adds a view parameter. A dimension is a string (symbol) or an int
// (constant size).
func (b *Builder) View(name string, e Elem, dims ...any) *Value {
	t := ViewOf(e, make([]Dim, len(dims))...)
	for i, d := range dims {
		switch d := d.(type) {
		case string:
			t.Dims[i].Sym = d
		case int:
			t.Dims[i].Size = d
		default:
			b.fail(callerPos(), "view %s: dimension %d is a %T: want a string or an int", name, i, d)
		}
	}
	return b.param(name, t)
}

// Scalar adds a scalar parameter.
func (b *Builder) Scalar(name string, e Elem) *Value { return b.param(name, ScalarOf(e)) }

func (b *Builder) param(name string, t Type) *Value {
	v := b.kernel.NewValue(name, t)
	b.kernel.Params = append(b.kernel.Params, v)
	return v
}

// Over adds an axis to the tile space and returns its variable (i32).
func (b *Builder) Over(name string, count Expr) *Value {
	v := b.kernel.NewValue(name, ScalarOf(I32))
	b.kernel.Space = append(b.kernel.Space, Axis{Var: v, Count: count})
	return v
}

// SetOrder sets the order in which the tile space is walked.
func (b *Builder) SetOrder(o Order) { b.kernel.Order = o }

// SetHints sets the hints to the code generator.
func (b *Builder) SetHints(h Hints) { b.kernel.Hints = h }

// Assume adds an assumption about a parameter.
func (b *Builder) Assume(a Assumption) { b.kernel.Assume = append(b.kernel.Assume, a) }

// AssumeStride assumes that dimension dim of a view has the given stride.
func (b *Builder) AssumeStride(view *Value, dim int, stride int64) {
	b.Assume(Assumption{Kind: AssumeStride, Param: view, Dim: dim, Lo: stride})
}

// AssumeStrideMultiple assumes that the stride of dimension dim (elements) is a
// multiple of n.
func (b *Builder) AssumeStrideMultiple(view *Value, dim int, n int64) {
	b.Assume(Assumption{Kind: AssumeStrideMultiple, Param: view, Dim: dim, Lo: n})
}

// AssumePointer assumes that a view's address is a multiple of n bytes.
func (b *Builder) AssumePointer(view *Value, n int64) {
	b.Assume(Assumption{Kind: AssumePointer, Param: view, Lo: n})
}

// AssumeDimMultiple assumes that the size of dimension dim is a multiple of n.
func (b *Builder) AssumeDimMultiple(view *Value, dim int, n int64) {
	b.Assume(Assumption{Kind: AssumeDimMultiple, Param: view, Dim: dim, Lo: n})
}

// AssumeRange assumes that an integer scalar lies in lo..hi.
func (b *Builder) AssumeRange(scalar *Value, lo, hi int64) {
	b.Assume(Assumption{Kind: AssumeRange, Param: scalar, Lo: lo, Hi: hi})
}

// Append checks an operation, gives it results and appends it to the region;
// want are the types of the results where the operation states them, nil
// otherwise. It is what all other methods come down to.
func (b *Builder) Append(o *Op, want ...Type) []*Value {
	if o.Pos.IsZero() {
		o.Pos = callerPos()
	}
	types, err := b.check(o, want)
	if err != nil {
		b.fail(o.Pos, "%s: %w", o.Code, err)
		types = b.guess(o, want)
	}
	for i, t := range types {
		v := b.kernel.NewValue("", t)
		v.Def, v.Index = o, i
		o.Results = append(o.Results, v)
	}
	b.region.Ops = append(b.region.Ops, o)
	return o.Results
}

func (b *Builder) check(o *Op, want []Type) ([]Type, error) {
	if slices.Contains(o.Args, nil) {
		return nil, errors.New("an operand is nil")
	}
	return o.infer(want)
}

// guess returns types for the results of a wrong operation.
func (b *Builder) guess(o *Op, want []Type) []Type {
	if len(want) > 0 {
		return want
	}
	n := o.Code.Info().Results
	if o.Code == OpFor {
		n = max(len(o.Args)-3, 0)
	}
	types := make([]Type, max(n, 0))
	for i := range types {
		types[i] = ScalarOf(F32)
		if len(o.Args) > 0 && o.Args[0] != nil {
			types[i] = o.Args[0].Type
		}
	}
	return types
}

// Emit appends an operation of one result without attributes.
func (b *Builder) Emit(code Opcode, args ...*Value) *Value {
	return b.one(&Op{Code: code, Args: args})
}

func (b *Builder) one(o *Op, want ...Type) *Value {
	rs := b.Append(o, want...)
	if len(rs) == 0 {
		return nil
	}
	return rs[0]
}

// Int returns the i32 constant v.
func (b *Builder) Int(v int) *Value { return b.Full(ScalarOf(I32), float64(v)) }

// Const returns a scalar constant.
func (b *Builder) Const(e Elem, v float64) *Value { return b.Full(ScalarOf(e), v) }

// Const64 returns a scalar integer constant of any 64-bit value.
func (b *Builder) Const64(e Elem, v int64) *Value {
	return b.one(&Op{Code: OpConst, Attrs: Attrs{Int: v}}, ScalarOf(e))
}

// Zero returns a tile of zeros.
func (b *Builder) Zero(t Type) *Value { return b.Full(t, 0) }

// Full returns a scalar or tile with v in every element. v must be a value of the
// element type: it is not rounded, except to f32.
func (b *Builder) Full(t Type, v float64) *Value {
	o := &Op{Code: OpConst, Pos: callerPos()}
	switch {
	case t.Elem == F32:
		o.Float = float64(float32(v))
	case t.Elem.IsFloat():
		o.Float = v
	case v != math.Trunc(v) || math.Abs(v) > 1<<53:
		b.fail(o.Pos, "constant %v: want an integer of at most 53 bits for %s", v, t.Elem)
	default:
		o.Int = int64(v)
	}
	return b.one(o, t)
}

// Dim returns the size of a view's dimension (i32).
func (b *Builder) Dim(view *Value, dim int) *Value {
	return b.one(&Op{Code: OpDim, Args: []*Value{view}, Attrs: Attrs{Axis: dim}})
}
