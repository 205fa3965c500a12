package gemm

import (
	"math"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Program builds the product as one launch, or for split > 1 as partial products in a
// workspace [split, M, N] and a launch that adds them up in order. With atomic set, a launch
// stores what C begins with instead, and the product adds its parts to that.
func (p *Problem) Program(c space.Config) (*ir.Program, error) {
	cfg, err := p.decode(c)
	if err != nil {
		return nil, err
	}
	partial, err := p.product(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.split == 1 {
		return ir.Single(partial), nil
	}
	if cfg.atomic == 1 {
		return p.added(cfg, partial)
	}
	sum, err := p.sum(cfg)
	if err != nil {
		return nil, err
	}
	prog := &ir.Program{
		Name: "gemm",
		Workspace: []ir.Buffer{{
			Name: "part", Elem: ir.F32,
			Dims: []ir.Expr{ir.Lit(int64(cfg.split)), ir.Sym("M"), ir.Sym("N")},
		}},
		Kernels: []*ir.Kernel{partial, sum},
		Steps: []ir.Step{
			{Kernel: partial.Name, Args: []string{"a", "b", "part"}},
			{Kernel: sum.Name, Args: append([]string{"part"}, p.tail()...)},
		},
	}
	for _, v := range slices.Concat(partial.Params[:2], sum.Params[1:]) {
		prog.Params = append(prog.Params, &ir.Value{ID: len(prog.Params), Name: v.Name, Type: v.Type})
	}
	return prog, nil
}

// added is the program whose product adds its parts to C.
func (p *Problem) added(cfg config, product *ir.Kernel) (*ir.Program, error) {
	start, err := p.start(cfg)
	if err != nil {
		return nil, err
	}
	prog := &ir.Program{Name: "gemm", Kernels: []*ir.Kernel{start, product}}
	for _, k := range prog.Kernels {
		step := ir.Step{Kernel: k.Name}
		for _, v := range k.Params {
			step.Args = append(step.Args, v.Name)
		}
		prog.Steps = append(prog.Steps, step)
	}
	for i, a := range p.Args() {
		v := product.Param(a.Name)
		if v == nil {
			v = start.Param(a.Name)
		}
		prog.Params = append(prog.Params, &ir.Value{ID: i, Name: v.Name, Type: v.Type})
	}
	return prog, nil
}

// start builds the kernel that stores what parts are added to: bias and residual, or zeros.
func (p *Problem) start(cfg config) (*ir.Kernel, error) {
	b := ir.NewKernel("gemm_start")
	q := *p
	q.Alpha = 1 // a factor of the product alone
	e := q.epilogue(b)
	row, col := p.strips(b, cfg)
	e.store(b, &q, b.Zero(ir.TileOf(ir.F32, reduceRows, cfg.BN)), row, col)
	return b.Finish()
}

// strips gives a kernel the tiles of C of reduceRows rows, and returns where a tile begins.
func (p *Problem) strips(b *ir.Builder, cfg config) (row, col *ir.Value) {
	i := b.Over("i", ir.Sym("M").CeilDiv(ir.Lit(reduceRows)))
	j := b.Over("j", ir.Sym("N").CeilDiv(ir.Lit(int64(cfg.BN))))
	b.SetHints(ir.Hints{Warps: 4})
	return family.Named("row", b.Mul(i, b.Int(reduceRows))), family.Named("col", b.Mul(j, b.Int(cfg.BN)))
}

// tail names the arguments after A and B, in order.
func (p *Problem) tail() []string {
	var names []string
	for _, a := range p.Args()[2:] {
		names = append(names, a.Name)
	}
	return names
}

// product builds the kernel that multiplies: it stores C, or for split > 1 its part of
// the sum over K.
func (p *Problem) product(cfg config) (*ir.Kernel, error) {
	name := "gemm"
	if cfg.split > 1 {
		name = "gemm_partial"
	}
	b := ir.NewKernel(name)
	av := p.operand(b, "a", "M", "K", p.transposedA())
	bv := p.operand(b, "b", "K", "N", p.transposedB())
	var e epilogue
	var part *ir.Value
	switch {
	case cfg.atomic == 1:
		bare := *p
		bare.Bias, bare.Residual = false, false // which C begins with
		e = bare.epilogue(b)
	case cfg.split > 1:
		part = b.View("part", ir.F32, cfg.split, "M", "N")
		p.assumePart(b, part)
	default:
		e = p.epilogue(b)
	}
	i := b.Over("i", ir.Sym("M").CeilDiv(ir.Lit(int64(cfg.BM))))
	j := b.Over("j", ir.Sym("N").CeilDiv(ir.Lit(int64(cfg.BN))))
	row, col := family.Named("row", b.Mul(i, b.Int(cfg.BM))), family.Named("col", b.Mul(j, b.Int(cfg.BN)))
	lo, hi := b.Int(0), b.Dim(av, p.kDim())
	var s *ir.Value
	if cfg.split > 1 {
		s = b.Over("s", ir.Lit(int64(cfg.split)))
		lo, hi = splitRange(b, s, hi, cfg)
	}
	b.SetOrder(cfg.order())
	b.SetHints(ir.Hints{Warps: cfg.warps, Stages: cfg.stages, Cluster: cfg.clusters(), Portable: cfg.portable, Persistent: cfg.persistent, Copy: cfg.copy})

	zero := b.Zero(ir.TileOf(ir.F32, cfg.BM, cfg.BN))
	acc := b.For(lo, hi, b.Int(cfg.BK), []*ir.Value{zero}, ir.Loop{Stages: cfg.stages}, func(k *ir.Value, carried []*ir.Value) []*ir.Value {
		family.Named("k", k)
		family.Named("sum", carried[0])
		x := family.Named("x", p.tile(b, av, row, k, cfg.BM, cfg.BK, p.transposedA()))
		y := family.Named("y", p.tile(b, bv, k, col, cfg.BK, cfg.BN, p.transposedB()))
		if p.small() { // tensor cores add 8-bit products to fewer bits than f32 has
			return []*ir.Value{b.Add(carried[0], b.Dot(x, y, b.Zero(ir.TileOf(ir.F32, cfg.BM, cfg.BN)), p.precision()))}
		}
		return []*ir.Value{b.Dot(x, y, carried[0], p.precision())}
	})[0]
	family.Named("acc", acc)
	switch {
	case cfg.atomic == 1:
		if e.alpha != nil {
			acc = b.Mul(acc, e.alpha)
		}
		b.Atomic(ir.Add, e.c, []*ir.Value{row, col}, acc)
	case cfg.split > 1:
		b.Store(part, []*ir.Value{s, row, col}, acc)
	default:
		e.store(b, p, acc, row, col)
	}
	return b.Finish()
}

// order is the raster of the tiles of C.
func (c config) order() ir.Order {
	if c.hilbert > 0 {
		return ir.Order{Hilbert: c.hilbert}
	}
	return ir.Order{Group: c.group}
}

// clusters is the hint that asks for clusters, 0 where there are none.
func (c config) clusters() int {
	if c.cluster == 1 {
		return 0
	}
	return c.cluster
}

// kDim is which dimension of A, as stored, is K.
func (p *Problem) kDim() int {
	if p.transposedA() {
		return 0
	}
	return 1
}

// splitRange cuts K into whole steps, as equal as they get; later splits may be empty.
func splitRange(b *ir.Builder, s, k *ir.Value, cfg config) (lo, hi *ir.Value) {
	steps := b.CeilDiv(b.CeilDiv(k, cfg.BK), cfg.split)
	length := b.Mul(steps, b.Int(cfg.BK))
	lo = b.Mul(s, length)
	return lo, b.Min(k, b.Add(lo, length))
}

// operand adds a matrix parameter with the assumptions that the problem meets.
func (p *Problem) operand(b *ir.Builder, name, rows, cols string, transposed bool) *ir.Value {
	if transposed {
		rows, cols = cols, rows
	}
	v := b.View(name, p.elem(), rows, cols)
	p.assume(b, v, name)
	return v
}

// tile loads a rows x cols tile of a matrix that may be stored transposed.
func (p *Problem) tile(b *ir.Builder, view, row, col *ir.Value, rows, cols int, transposed bool) *ir.Value {
	if transposed {
		return b.Transpose(b.Load(view, []*ir.Value{col, row}, ir.TileOf(p.elem(), cols, rows)))
	}
	return b.Load(view, []*ir.Value{row, col}, ir.TileOf(p.elem(), rows, cols))
}

// assume states what the matrix's argument allows.
func (p *Problem) assume(b *ir.Builder, v *ir.Value, name string) {
	for _, a := range p.Args() {
		if a.Name == name {
			family.AssumeRows(b, v, a)
		}
	}
}

// assumePart states what is true of the dense workspace.
func (p *Problem) assumePart(b *ir.Builder, v *ir.Value) {
	b.AssumeStride(v, 2, 1)
	b.AssumePointer(v, 16)
	if p.N%4 == 0 {
		b.AssumeStrideMultiple(v, 0, 4)
		b.AssumeStrideMultiple(v, 1, 4)
		b.AssumeDimMultiple(v, 2, 4)
	}
}

// sum builds the kernel that adds the parts, the first split first, and ends the
// product.
func (p *Problem) sum(cfg config) (*ir.Kernel, error) {
	b := ir.NewKernel("gemm_sum")
	part := b.View("part", ir.F32, cfg.split, "M", "N")
	p.assumePart(b, part)
	e := p.epilogue(b)
	row, col := p.strips(b, cfg)
	t := ir.TileOf(ir.F32, reduceRows, cfg.BN)
	acc := b.For(b.Int(0), b.Int(cfg.split), b.Int(1), []*ir.Value{b.Zero(t)}, ir.Loop{}, func(s *ir.Value, carried []*ir.Value) []*ir.Value {
		family.Named("sum", carried[0])
		return []*ir.Value{b.Add(carried[0], b.Load(part, []*ir.Value{s, row, col}, t))}
	})[0]
	e.store(b, p, acc, row, col)
	return b.Finish()
}

// epilogue holds the parameters of the last part of a product; absent ones are nil.
type epilogue struct{ bias, residual, alpha, c *ir.Value }

// epilogue adds the parameters, in the order of Args.
func (p *Problem) epilogue(b *ir.Builder) epilogue {
	var e epilogue
	if p.Bias {
		e.bias = b.View("bias", ir.F32, "N")
		b.AssumeStride(e.bias, 0, 1)
		b.AssumePointer(e.bias, 16)
	}
	if p.Residual {
		e.residual = b.View("residual", p.out(), "M", "N")
		p.assume(b, e.residual, "residual")
	}
	if p.Alpha != 1 {
		e.alpha = b.Scalar("alpha", ir.F32)
	}
	e.c = b.View("c", p.out(), "M", "N")
	p.assume(b, e.c, "c")
	return e
}

// store writes act(alpha acc + bias) + residual.
func (e epilogue) store(b *ir.Builder, p *Problem, acc, row, col *ir.Value) {
	rows, cols := acc.Type.Shape[0], acc.Type.Shape[1]
	z := acc
	if e.alpha != nil {
		z = b.Mul(z, e.alpha)
	}
	if e.bias != nil {
		v := b.Load(e.bias, []*ir.Value{col}, ir.TileOf(ir.F32, cols))
		z = b.Add(z, b.Rows(v, rows))
	}
	z = activate(b, p.Act, z)
	if e.residual != nil {
		r := b.Load(e.residual, []*ir.Value{row, col}, ir.TileOf(p.out(), rows, cols))
		z = b.Add(z, b.Cast(r, ir.F32))
	}
	b.Store(e.c, []*ir.Value{row, col}, b.Cast(z, p.out()))
}

// geluA and geluB are the constants of the tanh form of GELU,
// x/2 (1 + tanh(geluA (x + geluB x^3))), Hendrycks and Gimpel, arXiv 1606.08415.
const (
	geluA = 0.7978845608028654 // sqrt(2/pi)
	geluB = 0.044715
)

// activate applies an activation. gelu is computed as x sigmoid(2t), which is the tanh
// form, so that it costs one exponential as silu does.
func activate(b *ir.Builder, act string, x *ir.Value) *ir.Value {
	f := func(v float64) *ir.Value { return b.Const(ir.F32, v) }
	switch act {
	case "relu":
		return b.Max(x, f(0))
	case "silu":
		return sigmoidTimes(b, x, b.Mul(x, f(-math.Log2E)))
	case "gelu":
		cubic := b.Fma(b.Mul(x, x), f(-2*math.Log2E*geluA*geluB), f(-2*math.Log2E*geluA))
		return sigmoidTimes(b, x, b.Mul(x, cubic))
	}
	return x
}

// sigmoidTimes returns x / (1 + 2^t).
func sigmoidTimes(b *ir.Builder, x, t *ir.Value) *ir.Value {
	return b.Fast(ir.OpDiv, x, b.Add(b.Fast(ir.OpExp2, t), b.Const(ir.F32, 1)))
}
