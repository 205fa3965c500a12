package eval

import (
	"context"
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/ir"
)

// Arg is an argument of a program: a tensor for a view, otherwise a number.
type Arg struct {
	Tensor *Tensor
	Int    int64   // scalar of an integer type
	Float  float64 // scalar of a floating-point type; rounded to it
}

// View returns the argument for a view.
func View(t *Tensor) Arg { return Arg{Tensor: t} }

// Int returns the argument for an integer scalar.
func Int(v int64) Arg { return Arg{Int: v} }

// Float returns the argument for a floating-point scalar.
func Float(v float64) Arg { return Arg{Float: v} }

// Options says how to run a program.
type Options struct {
	// Tiles, if not nil, says which points of a kernel's tile space to run.
	Tiles func(kernel string, tile []int) bool

	// Wide makes dots and reductions by addition accumulate in float64 and round
	// once at the end.
	Wide bool

	// MaxBytes bounds the memory of the workspace and that of a kernel's tiles,
	// each; 0 means 4 GiB.
	MaxBytes int64

	// MaxOps bounds the operations run in one tile; 0 means no bound.
	MaxOps int

	// Workspace, if not nil, gets the tensors made for the workspace.
	Workspace func(name string, t *Tensor)
}

func (o *Options) maxBytes() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return 4 << 30
}

// Run runs a program's steps in order on args, one for each of its parameters.
func Run(ctx context.Context, p *ir.Program, args []Arg, o Options) error {
	if err := ir.Verify(p); err != nil {
		return err
	}
	r := &runner{ctx: ctx, prog: p, options: o, args: map[string]Arg{}}
	if err := r.bind(args); err != nil {
		return fmt.Errorf("program %s: %w", p.Name, err)
	}
	for _, b := range p.Workspace {
		if err := r.workspace(b); err != nil {
			return fmt.Errorf("program %s: workspace %s: %w", p.Name, b.Name, err)
		}
	}
	for _, s := range p.Steps {
		if err := r.step(s); err != nil {
			return fmt.Errorf("kernel %s: %w", s.Kernel, err)
		}
	}
	return nil
}

type runner struct {
	ctx     context.Context
	prog    *ir.Program
	options Options
	args    map[string]Arg
	sizes   sizes
	bytes   int64 // of workspace so far
}

func (r *runner) bind(args []Arg) error {
	if len(args) != len(r.prog.Params) {
		return fmt.Errorf("%d arguments: want %d", len(args), len(r.prog.Params))
	}
	for i, p := range r.prog.Params {
		r.args[p.Name] = args[i]
	}
	var err error
	r.sizes, err = bindSizes(r.prog.Params, args)
	return err
}

// sizes holds what size expressions may name.
type sizes map[string]int64

func (s sizes) env(name string) (int64, bool) {
	v, ok := s[name]
	return v, ok
}

// bindSizes checks arguments against parameters and returns their sizes.
func bindSizes(params []*ir.Value, args []Arg) (sizes, error) {
	s := sizes{}
	for i, p := range params {
		a := args[i]
		if p.Type.Kind != ir.View {
			if err := checkScalar(p, a); err != nil {
				return nil, err
			}
			s[p.Name] = a.Int
			continue
		}
		t := a.Tensor
		if t == nil || t.Elem != p.Type.Elem || len(t.Shape) != len(p.Type.Dims) {
			return nil, fmt.Errorf("argument %s: want a tensor of %s", p.Name, p.Type)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("argument %s: %w", p.Name, err)
		}
		for d, dim := range p.Type.Dims {
			want, known := int64(dim.Size), dim.Size > 0
			if dim.Sym != "" {
				want, known = s[dim.Sym]
				s[dim.Sym] = int64(t.Shape[d])
			}
			if known && want != int64(t.Shape[d]) {
				return nil, fmt.Errorf("argument %s: dimension %d (%s) is %d: want %d", p.Name, d, dim, t.Shape[d], want)
			}
		}
	}
	return s, nil
}

func checkScalar(p *ir.Value, a Arg) error {
	e := p.Type.Elem
	if a.Tensor != nil {
		return fmt.Errorf("argument %s: want a number for %s", p.Name, e)
	}
	if bits := e.Bits(); e.IsInt() && bits < 64 && e != ir.I1 && (a.Int < -1<<(bits-1) || a.Int >= 1<<(bits-1)) {
		return fmt.Errorf("argument %s: %d is outside %s", p.Name, a.Int, e)
	}
	return nil
}

func (r *runner) workspace(b ir.Buffer) error {
	shape := make([]int, len(b.Dims))
	bytes := int64(max(b.Elem.MemoryBits(), 8) / 8)
	for i, d := range b.Dims {
		n, err := d.Eval(r.sizes.env)
		if err != nil {
			return err
		}
		if n < 0 || n > ir.MaxDim {
			return fmt.Errorf("size %s is %d: want 0 to %d", d, n, ir.MaxDim)
		}
		shape[i] = int(n)
		if bytes *= max(n, 1); bytes > r.options.maxBytes() {
			return fmt.Errorf("more than %d bytes", r.options.maxBytes())
		}
	}
	if r.bytes += bytes; r.bytes > r.options.maxBytes() {
		return fmt.Errorf("more than %d bytes with those before it", r.options.maxBytes())
	}
	t := NewTensor(b.Elem, shape...)
	if !b.Zero {
		t.Poison()
	}
	r.args[b.Name] = View(t)
	if r.options.Workspace != nil {
		r.options.Workspace(b.Name, t)
	}
	return nil
}

// step runs a kernel over its tile space.
func (r *runner) step(s ir.Step) error {
	k := r.prog.Kernel(s.Kernel)
	args := make([]Arg, len(s.Args))
	for i, name := range s.Args {
		args[i] = r.args[name]
	}
	sz, err := bindSizes(k.Params, args)
	if err != nil {
		return err
	}
	for _, a := range k.Assume {
		if err := checkAssumption(a, args[paramIndex(k, a.Param)]); err != nil {
			return err
		}
	}
	m := newMachine(r.ctx, k, args, r.options)
	return m.space(sz)
}

func paramIndex(k *ir.Kernel, v *ir.Value) int {
	for i, p := range k.Params {
		if p == v {
			return i
		}
	}
	return 0
}

// checkAssumption checks an argument against what a kernel assumes; addresses
// mean nothing here.
func checkAssumption(a ir.Assumption, arg Arg) error {
	var have int64
	what := ""
	switch a.Kind {
	case ir.AssumeStride, ir.AssumeStrideMultiple:
		if arg.Tensor.Shape[a.Dim] == 1 {
			return nil // never used
		}
		have, what = int64(arg.Tensor.Strides[a.Dim]), "stride"
	case ir.AssumeDimMultiple, ir.AssumeDimRange:
		have, what = int64(arg.Tensor.Shape[a.Dim]), "size"
	case ir.AssumeMultiple, ir.AssumeRange:
		have, what = arg.Int, "value"
	default:
		return nil
	}
	ok := true
	switch a.Kind {
	case ir.AssumeStride:
		ok = have == a.Lo
	case ir.AssumeStrideMultiple, ir.AssumeDimMultiple, ir.AssumeMultiple:
		ok = have%a.Lo == 0
	case ir.AssumeDimRange, ir.AssumeRange:
		ok = have >= a.Lo && have <= a.Hi
	}
	if !ok {
		return fmt.Errorf("argument %s: %s %d (dimension %d) breaks what the kernel assumes", a.Param.Name, what, have, a.Dim)
	}
	return nil
}

// space runs the body for every point of the tile space, in index order.
func (m *machine) space(sz sizes) error {
	counts := make([]int, len(m.kernel.Space))
	total := 1.0
	for i, a := range m.kernel.Space {
		n, err := a.Count.Eval(sz.env)
		if err != nil {
			return err
		}
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("axis %d has %d tiles: want 0 to %d", i, n, math.MaxInt32)
		}
		counts[i] = int(n)
		total *= float64(n)
	}
	if total == 0 {
		return nil
	}
	tile := make([]int, len(counts))
	for {
		if err := m.point(tile); err != nil {
			return fmt.Errorf("tile %v: %w", tile, err)
		}
		if !next(tile, counts) {
			return nil
		}
	}
}

// next advances tile in row-major order; false at the end.
func next(tile, counts []int) bool {
	for i := len(tile) - 1; i >= 0; i-- {
		if tile[i]++; tile[i] < counts[i] {
			return true
		}
		tile[i] = 0
	}
	return false
}

// point runs the body for one point.
func (m *machine) point(tile []int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if m.options.Tiles != nil && !m.options.Tiles(m.kernel.Name, tile) {
		return nil
	}
	for i, a := range m.kernel.Space {
		m.own(a.Var).i[0] = int32(tile[i])
	}
	m.role = &role{}
	return m.region(m.kernel.Body)
}
