package paged

import (
	"math"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Program builds one launch, or for pieces of the context one that leaves each piece's
// sum, maximum and denominator in a workspace and one that joins them, the first piece
// first. A sequence's result depends on its own length, queries and cache alone, to the
// bit, whatever else is in the batch.
func (p *Problem) Program(c space.Config) (*ir.Program, error) {
	cfg, err := decode(c)
	if err != nil {
		return nil, err
	}
	attend, err := p.attend(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.chunk == 0 {
		return ir.Single(attend), nil
	}
	join, err := p.join(cfg)
	if err != nil {
		return nil, err
	}
	pieces := ir.Sym("E").Times(ir.Lit(int64(p.Page))).CeilDiv(ir.Lit(int64(cfg.chunk)))
	rows := ir.Sym("T").Times(ir.Lit(int64(p.group())))
	dims := []ir.Expr{pieces, ir.Sym("B"), ir.Sym("KVH"), rows}
	prog := &ir.Program{
		Name: "paged",
		Workspace: []ir.Buffer{
			{Name: "part", Elem: ir.F32, Dims: append(dims[:4:4], ir.Lit(int64(p.HeadDim)))},
			{Name: "top", Elem: ir.F32, Dims: dims},
			{Name: "denominator", Elem: ir.F32, Dims: dims},
		},
		Kernels: []*ir.Kernel{attend, join},
		Steps: []ir.Step{
			{Kernel: attend.Name, Args: []string{"q", "k", "v", "table", "len", "scale", "window", "part", "top", "denominator"}},
			{Kernel: join.Name, Args: []string{"part", "top", "denominator", "len", "scale", "o", "lse"}},
		},
	}
	for _, v := range append(attend.Params[:7:7], join.Params[5:]...) {
		prog.Params = append(prog.Params, &ir.Value{ID: len(prog.Params), Name: v.Name, Type: v.Type})
	}
	return prog, nil
}

// kernel builds either kernel.
type kernel struct {
	*ir.Builder
	config
	p *Problem

	q, k, v, table, length, scale, window *ir.Value // parameters
	part, top, denominator                *ir.Value // the workspace, or nil
	o, lse                                *ir.Value

	tile, head, batch, piece *ir.Value // the point of the tile space; piece may be nil
	first, n                 *ir.Value // the tile's first row, and the sequence's length
	token, member            *ir.Value // of each row: which query token, which of the heads that share keys
}

// attend builds the kernel that reads the cache.
func (p *Problem) attend(cfg config) (*ir.Kernel, error) {
	k := &kernel{Builder: ir.NewKernel("paged"), config: cfg, p: p}
	k.q = k.rowsOf("q")
	k.k, k.v = p.view(k.Builder, "k"), p.view(k.Builder, "v")
	k.table, k.length = tableAndLength(k.Builder)
	k.scale = k.Scalar("scale", ir.F32)
	k.window = k.Scalar("window", ir.I32)
	if cfg.chunk > 0 {
		k.workspace()
	} else {
		k.outputs()
	}
	k.space(k.BM)
	if cfg.chunk > 0 {
		pieces := ir.Sym("E").Times(ir.Lit(int64(p.Page))).CeilDiv(ir.Lit(int64(cfg.chunk)))
		k.piece = k.Over("s", pieces)
	}
	k.SetHints(ir.Hints{Warps: cfg.warps, Stages: cfg.stages})
	k.start(k.BM, k.Mul(k.Dim(k.table, 1), k.Int(p.Page)))
	acc, top, sum := k.pass()
	if cfg.chunk > 0 {
		at := []*ir.Value{k.piece, k.batch, k.head, k.first}
		k.Store(k.part, append(at[:4:4], k.Int(0)), acc)
		k.Store(k.top, at, top)
		k.Store(k.denominator, at, sum)
	} else {
		k.finish(acc, top, sum)
	}
	return k.Finish()
}

// rowsOf adds a tensor of queries or outputs.
func (k *kernel) rowsOf(name string) *ir.Value {
	return k.p.aligned(k.Builder, k.View(name, k.p.elem(), "B", "T", "KVH", k.p.group(), k.p.HeadDim))
}

// workspace adds the pieces' results: sums [piece, batch, head, row, dim] of weights
// times values, and of each row the largest score and the sum of the weights.
func (k *kernel) workspace() {
	k.part = k.View("part", ir.F32, "S", "B", "KVH", "R", k.p.HeadDim)
	k.AssumeStride(k.part, 4, 1)
	k.AssumePointer(k.part, 16)
	for d := range 4 {
		k.AssumeStrideMultiple(k.part, d, 4)
	}
	for _, v := range []struct {
		to   **ir.Value
		name string
	}{{&k.top, "top"}, {&k.denominator, "denominator"}} {
		*v.to = k.View(v.name, ir.F32, "S", "B", "KVH", "R")
		k.AssumeStride(*v.to, 3, 1)
	}
}

// outputs adds o and lse.
func (k *kernel) outputs() {
	k.o = k.rowsOf("o")
	k.lse = k.View("lse", ir.F32, "B", "T", "KVH", k.p.group())
	k.AssumeStride(k.lse, 3, 1)
}

// space declares the tile space, rows tiles of bm.
func (k *kernel) space(bm int) {
	rows := ir.Sym("T").Times(ir.Lit(int64(k.p.group())))
	k.tile = k.Over("m", rows.CeilDiv(ir.Lit(int64(bm))))
	k.head = k.Over("h", ir.Sym("KVH"))
	k.batch = k.Over("b", ir.Sym("B"))
}

// start reads the length, which must be from 0 to most, and numbers the rows. One that is
// not would have loops run through all of 32 bits and beyond, so that it is the nearest that
// is.
func (k *kernel) start(bm int, most *ir.Value) {
	k.first = family.Named("first", k.Mul(k.tile, k.Int(bm)))
	k.n = k.Load(k.length, []*ir.Value{k.batch}, ir.ScalarOf(ir.I32))
	k.n = family.Named("n", k.Max(k.Min(k.n, most), k.Int(0)))
	row := k.Add(k.Iota(0, bm), k.first)
	g := k.Int(k.p.group())
	k.token = family.Named("token", k.Div(row, g))
	k.member = family.Named("member", k.Rem(row, g))
}

// at is where the tile's rows are in a tensor of rows.
func (k *kernel) at() []*ir.Value { return []*ir.Value{k.batch, k.token, k.head, k.member} }

// within keeps an access to the rows that there are.
func (k *kernel) within(tokens *ir.Value) ir.Access {
	return ir.Access{Limit: k.Sub(k.Mul(tokens, k.Int(k.p.group())), k.first)}
}

// pass goes over the keys, with a running maximum and sum a row.
func (k *kernel) pass() (acc, top, sum *ir.Value) {
	d, zero := k.p.HeadDim, k.Int(0)
	tokens := k.Dim(k.q, 1)
	q := family.Named("qt", k.Load(k.q, append(k.at(), zero), ir.TileOf(k.p.elem(), k.BM, d), k.within(tokens)))
	c := family.Named("c", k.Mul(k.scale, k.f32(math.Log2E)))
	before := family.Named("before", k.Sub(k.n, tokens)) // keys before the first query's own
	own := family.Named("own", k.Add(k.token, before))   // of each row, the last key it sees
	if k.p.Window > 0 {                                  // whatever it is, no key less it leaves 32 bits
		k.window = k.Max(k.window, k.Int(0))
		own = k.Max(own, k.Int(-1))
	}
	lo, hi := k.keys(before, tokens)
	init := []*ir.Value{
		k.Zero(ir.TileOf(ir.F32, k.BM, d)),
		k.Full(ir.TileOf(ir.F32, k.BM), math.Inf(-1)),
		k.Zero(ir.TileOf(ir.F32, k.BM)),
	}
	out := k.For(lo, hi, k.Int(k.BN), init, ir.Loop{Stages: k.stages}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		family.Named("i", i)
		acc, top, sum := family.Named("acc", carried[0]), family.Named("max", carried[1]), family.Named("sum", carried[2])
		step := k.locate(i)
		kt := family.Named("kt", step.load(k.k))
		s := k.Dot(q, k.Transpose(kt), k.Zero(ir.TileOf(ir.F32, k.BM, k.BN)), ir.Exact)
		s = family.Named("s", k.Select(k.seen(own, i), s, k.f32(math.Inf(-1))))
		newTop := family.Named("new_max", k.Max(top, k.Reduce(ir.Max, s, 1)))
		safe := k.safe(newTop)
		p := family.Named("p", k.Fast(ir.OpExp2, k.Fma(s, c, k.Cols(k.Neg(k.Mul(safe, c)), k.BN))))
		rescale := k.Fast(ir.OpExp2, k.Mul(k.Sub(top, safe), c))
		vt := family.Named("vt", step.load(k.v))
		acc = k.Dot(k.Cast(p, k.p.elem()), vt, k.Mul(acc, k.Cols(rescale, d)), ir.Exact)
		return []*ir.Value{acc, newTop, k.Fma(sum, rescale, k.Reduce(ir.Add, p, 1))}
	})
	return out[0], out[1], out[2]
}

// keys is the range of keys that the tile's rows see, of the block's piece. It starts
// at a whole step.
func (k *kernel) keys(before, tokens *ir.Value) (lo, hi *ir.Value) {
	lo = k.Int(0)
	g := k.Int(k.p.group())
	lastToken := k.Min(k.Sub(tokens, k.Int(1)), k.Div(k.Add(k.first, k.Int(k.BM-1)), g))
	hi = k.Add(k.Add(before, lastToken), k.Int(1))
	if k.p.Window > 0 { // from the first key of the first row, which may be negative
		from := k.Sub(k.Max(k.Add(k.Add(before, k.Div(k.first, g)), k.Int(1)), k.Int(0)), k.window)
		lo = k.Mul(k.Div(k.Max(from, k.Int(0)), k.Int(k.BN)), k.Int(k.BN))
	}
	if k.piece != nil {
		start := k.Mul(k.piece, k.Int(k.chunk))
		lo, hi = k.Max(lo, start), k.Min(hi, k.Add(start, k.Int(k.chunk)))
	}
	return family.Named("lo", lo), family.Named("hi", hi)
}

// seen is which keys of a step each row sees.
func (k *kernel) seen(own, i *ir.Value) *ir.Value {
	key := k.Add(k.Iota(1, k.BM, k.BN), i)
	last := k.Cols(own, k.BN)
	seen := k.Cmp(ir.LE, key, last)
	if k.p.Window > 0 {
		seen = k.And(seen, k.Cmp(ir.GT, key, k.Sub(last, k.window)))
	}
	return seen
}

// safe replaces the maximum of rows that have seen nothing, so that no infinity is
// subtracted from another.
func (k *kernel) safe(top *ir.Value) *ir.Value {
	return k.Select(k.Cmp(ir.EQ, top, k.f32(math.Inf(-1))), k.f32(0), top)
}

// finish divides by the sums and stores o and lse; rows that saw nothing give 0 and -inf.
func (k *kernel) finish(acc, top, sum *ir.Value) {
	rows := k.within(k.Dim(k.o, 1))
	none := k.Cmp(ir.EQ, sum, k.f32(0))
	inverse := k.Unary(ir.OpRcp, k.Select(none, k.f32(1), sum))
	k.Store(k.o, append(k.at(), k.Int(0)), k.Cast(k.Mul(acc, k.Cols(inverse, k.p.HeadDim)), k.p.elem()), rows)
	ln := k.Mul(k.Unary(ir.OpLog2, sum), k.f32(math.Ln2))
	k.Store(k.lse, k.at(), k.Select(none, k.f32(math.Inf(-1)), k.Fma(top, k.scale, ln)), rows)
}

// joinRows is the tile height of the kernel that joins pieces; it divides BM.
const joinRows = 16

// join builds the kernel that joins the pieces.
func (p *Problem) join(cfg config) (*ir.Kernel, error) {
	k := &kernel{Builder: ir.NewKernel("paged_join"), config: cfg, p: p}
	k.workspace()
	k.length = k.View("len", ir.I32, "B")
	k.AssumeStride(k.length, 0, 1)
	k.scale = k.Scalar("scale", ir.F32)
	k.outputs()
	k.space(joinRows)
	k.SetHints(ir.Hints{Warps: 2})
	k.start(joinRows, k.Mul(k.Dim(k.top, 0), k.Int(cfg.chunk)))
	c := k.Mul(k.scale, k.f32(math.Log2E))
	d := p.HeadDim
	rows := ir.TileOf(ir.F32, joinRows)
	init := []*ir.Value{k.Zero(ir.TileOf(ir.F32, joinRows, d)), k.Full(rows, math.Inf(-1)), k.Zero(rows)}
	out := k.For(k.Int(0), k.CeilDiv(k.n, k.chunk), k.Int(1), init, ir.Loop{}, func(s *ir.Value, carried []*ir.Value) []*ir.Value {
		at := []*ir.Value{family.Named("s", s), k.batch, k.head, k.first}
		here := k.Load(k.top, at, rows)
		top := k.Max(carried[1], here)
		safe := k.safe(top)
		old := k.Fast(ir.OpExp2, k.Mul(k.Sub(carried[1], safe), c))
		now := k.Fast(ir.OpExp2, k.Mul(k.Sub(here, safe), c))
		part := k.Load(k.part, append(at[:4:4], k.Int(0)), ir.TileOf(ir.F32, joinRows, d))
		acc := k.Fma(part, k.Cols(now, d), k.Mul(carried[0], k.Cols(old, d)))
		sum := k.Fma(k.Load(k.denominator, at, rows), now, k.Mul(carried[2], old))
		return []*ir.Value{acc, top, sum}
	})
	k.finish(out[0], out[1], out[2])
	return k.Finish()
}

func (k *kernel) f32(v float64) *ir.Value { return k.Const(ir.F32, v) }
