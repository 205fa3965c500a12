package ir

import (
	"errors"
	"fmt"
)

// Limits that the verifier holds beside those of types.
const (
	MaxParams = 128 // parameters of a kernel or program
	MaxAxes   = 6   // axes of a tile space
	maxErrors = 10  // reported at a time
)

// verifier collects what is wrong.
type verifier struct {
	where string // "kernel gemm"
	errs  []error

	kernel *Kernel
	seen   []*Value // by ID: the value that has it
	scope  []bool   // by ID: whether the value is in scope
	depth  int
}

func (v *verifier) fail(pos Pos, format string, args ...any) {
	if len(v.errs) == maxErrors {
		return
	}
	err := fmt.Errorf("%s: %w", v.where, fmt.Errorf(format, args...))
	if !pos.IsZero() {
		err = fmt.Errorf("%s: %w", pos, err)
	}
	v.errs = append(v.errs, err)
}

// Verify reports what is wrong with a program: at most ten mistakes, joined, each
// with its position where that is known.
func Verify(p *Program) error {
	v := &verifier{where: "program " + p.Name}
	v.program(p)
	for _, k := range p.Kernels {
		if len(v.errs) < maxErrors {
			v.errs = append(v.errs, verifyKernel(k, maxErrors-len(v.errs))...)
		}
	}
	return errors.Join(v.errs...)
}

// VerifyKernel reports what is wrong with a kernel, as Verify does.
func VerifyKernel(k *Kernel) error { return errors.Join(verifyKernel(k, maxErrors)...) }

func verifyKernel(k *Kernel, most int) []error {
	v := &verifier{where: "kernel " + k.Name, kernel: k}
	v.seen, v.scope = make([]*Value, k.values), make([]bool, k.values)
	v.header()
	if k.Body == nil {
		v.fail(k.Pos, "no body")
	} else {
		v.region(k.Body, nil)
	}
	return v.errs[:min(len(v.errs), most)]
}

func (v *verifier) program(p *Program) {
	if !isName(p.Name) {
		v.fail(p.Pos, "name %q: want letters, digits and underscores", p.Name)
	}
	types := map[string]Type{}
	v.params(p.Params, p.Pos, func(name string, t Type) { types[name] = t })
	symbols := sizeSymbols(p.Params)
	for _, b := range p.Workspace {
		if _, ok := types[b.Name]; ok || !isName(b.Name) {
			v.fail(b.Pos, "workspace %q: want a name not yet used", b.Name)
		}
		t := ViewOf(b.Elem, make([]Dim, len(b.Dims))...)
		for i, d := range b.Dims {
			v.expr(b.Pos, "workspace "+b.Name, d, symbols)
			if d.Op == ExprConst && d.Val > 0 {
				t.Dims[i].Size = int(min(d.Val, 1<<31-1))
			}
		}
		if err := t.Check(); err != nil {
			v.fail(b.Pos, "workspace %s: %w", b.Name, err)
		}
		types[b.Name] = t
	}
	v.kernels(p)
	for _, s := range p.Steps {
		v.step(p, s, types)
	}
}

func (v *verifier) kernels(p *Program) {
	for i, k := range p.Kernels {
		if p.Kernel(k.Name) != p.Kernels[i] {
			v.fail(k.Pos, "a second kernel %s: want different names", k.Name)
		}
	}
}

// step checks that a step's arguments fit the kernel's parameters.
func (v *verifier) step(p *Program, s Step, types map[string]Type) {
	k := p.Kernel(s.Kernel)
	if k == nil {
		v.fail(s.Pos, "step of kernel %s: there is none of that name", s.Kernel)
		return
	}
	if len(s.Args) != len(k.Params) {
		v.fail(s.Pos, "step of %s with %d arguments: want %d", s.Kernel, len(s.Args), len(k.Params))
		return
	}
	for i, name := range s.Args {
		t, ok := types[name]
		switch want := k.Params[i].Type; {
		case !ok:
			v.fail(s.Pos, "step of %s: %%%s is no parameter and no buffer", s.Kernel, name)
		case !binds(t, want):
			v.fail(s.Pos, "step of %s: %%%s of type %s: want %s", s.Kernel, name, t, want)
		}
	}
}

// binds reports whether an argument of type t may stand for a parameter of type
// want: sizes not known here are checked at launch.
func binds(t, want Type) bool {
	if t.Kind != want.Kind || t.Elem != want.Elem || len(t.Dims) != len(want.Dims) {
		return false
	}
	for i, d := range want.Dims {
		if have := t.Dims[i]; d.Size > 0 && have.Size > 0 && d.Size != have.Size {
			return false
		}
	}
	return true
}

// params checks parameters and hands each to found.
func (v *verifier) params(params []*Value, pos Pos, found func(string, Type)) {
	names := map[string]bool{}
	if len(params) > MaxParams {
		v.fail(pos, "%d parameters: want at most %d", len(params), MaxParams)
	}
	for _, p := range params {
		if names[p.Name] || !isName(p.Name) {
			v.fail(pos, "parameter %q: want a name not yet used", p.Name)
		}
		names[p.Name] = true
		if err := p.Type.Check(); err != nil {
			v.fail(pos, "parameter %s: %w", p.Name, err)
		}
		if p.Type.Kind != View && !p.Type.IsScalar() {
			v.fail(pos, "parameter %s of type %s: want a view or a scalar", p.Name, p.Type)
		}
		for i, d := range p.Type.Dims {
			if d == (Dim{}) || d.Sym != "" && (!isName(d.Sym) || d.Size != 0) {
				v.fail(pos, "parameter %s: dimension %d: want a symbol or a size", p.Name, i)
			}
		}
		found(p.Name, p.Type)
	}
}

// sizeSymbols returns what size expressions may name: symbols of dimensions and
// integer scalars.
func sizeSymbols(params []*Value) map[string]bool {
	symbols := map[string]bool{}
	for _, p := range params {
		for _, d := range p.Type.Dims {
			symbols[d.Sym] = true
		}
		if p.Type.IsScalar() && (p.Type.Elem == I32 || p.Type.Elem == I64) {
			symbols[p.Name] = true
		}
	}
	delete(symbols, "")
	return symbols
}

func (v *verifier) expr(pos Pos, what string, x Expr, symbols map[string]bool) {
	x.Symbols(func(name string) {
		if !symbols[name] {
			v.fail(pos, "%s: %s: %s is neither a dimension of a parameter nor an integer parameter", what, x, name)
		}
	})
}

func (v *verifier) header() {
	k := v.kernel
	if !isName(k.Name) {
		v.fail(k.Pos, "name %q: want letters, digits and underscores", k.Name)
	}
	v.params(k.Params, k.Pos, func(string, Type) {})
	for _, p := range k.Params {
		v.define(p, nil, 0, k.Pos)
	}
	symbols := sizeSymbols(k.Params)
	if len(k.Space) > MaxAxes {
		v.fail(k.Pos, "%d axes: want at most %d", len(k.Space), MaxAxes)
	}
	for _, a := range k.Space {
		v.define(a.Var, nil, 0, k.Pos)
		v.expr(k.Pos, "over", a.Count, symbols)
		if a.Var != nil && !a.Var.Type.Equal(ScalarOf(I32)) {
			v.fail(k.Pos, "tile-space variable of type %s: want i32", a.Var.Type)
		}
	}
	v.order(k)
	for _, name := range HintNames {
		if n := *k.Hints.Hint(name); n < 0 || n > 1024 {
			v.fail(k.Pos, "hint %s=%d: want 0 to 1024", name, n)
		}
	}
	for _, a := range k.Assume {
		v.assumption(a)
	}
}

// mostSquare is how many clusters a square of a Hilbert order is high at most.
const mostSquare = 256

func (v *verifier) order(k *Kernel) {
	o := k.Order
	if o.Group < 0 || o.Group > 0 && len(k.Space) < 2 {
		v.fail(k.Pos, "order grouped %d of %d axes: want 1 or more, of two axes", o.Group, len(k.Space))
	}
	if n := o.Hilbert; n != 0 && (n < 1 || n > mostSquare || n&(n-1) != 0 || o.Group > 0 || len(k.Space) < 2) {
		v.fail(k.Pos, "order hilbert %d of %d axes: want a power of two up to %d, of two axes, and no groups", n, len(k.Space), mostSquare)
	}
	if !areDistinct(o.Reversed, len(k.Space)) {
		v.fail(k.Pos, "order reversed %v: want different axes of the %d", o.Reversed, len(k.Space))
	}
}

func (v *verifier) assumption(a Assumption) {
	known := false
	for _, p := range v.kernel.Params {
		known = known || p == a.Param
	}
	if !known {
		v.fail(v.kernel.Pos, "an assumption about something else than a parameter")
		return
	}
	view, scalar := a.Param.Type.Kind == View, a.Param.Type.IsScalar() && a.Param.Type.Elem.IsInt()
	ok := false
	switch a.Kind {
	case AssumeStride:
		ok = view && a.Lo >= 0
	case AssumeStrideMultiple, AssumePointer, AssumeDimMultiple:
		ok = view && a.Lo > 0
	case AssumeDimRange:
		ok = view && a.Lo <= a.Hi
	case AssumeMultiple:
		ok = scalar && a.Lo > 0
	case AssumeRange:
		ok = scalar && a.Lo <= a.Hi
	}
	if !ok || a.Dim < 0 || view && a.Dim > 0 && a.Dim >= len(a.Param.Type.Dims) {
		v.fail(v.kernel.Pos, "an assumption about %s %s that cannot hold (dimension %d, %d, %d)", a.Param.Type, a.Param.Name, a.Dim, a.Lo, a.Hi)
	}
}
