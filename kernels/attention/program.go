package attention

import (
	"math"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Program builds the pass as one launch: a block keeps BM queries of a head and goes
// over the keys BN at a time, with a running maximum and sum a row.
func (p *Problem) Program(c space.Config) (*ir.Program, error) {
	cfg, err := p.decode(c)
	if err != nil {
		return nil, err
	}
	b := ir.NewKernel("attention")
	f := &forward{Builder: b, p: p, config: cfg}
	f.q = f.view("q", p.elem(), "Sq", "H", p.HeadDim)
	f.k = f.view("k", p.elem(), "Sk", "KVH", p.HeadDim)
	f.v = f.view("v", p.elem(), "Sk", "KVH", p.HeadDimV)
	if p.small() {
		for i, name := range factors {
			f.factors[i] = b.View(name, ir.F32, "B", "KVH")
		}
	}
	f.scale = b.Scalar("scale", ir.F32)
	f.o = f.view("o", p.out(), "Sq", "H", p.HeadDimV)
	f.lse = b.View("lse", ir.F32, "B", "H", "Sq")
	b.AssumeStride(f.lse, 2, 1)
	f.tile()
	b.SetHints(ir.Hints{Warps: cfg.warps, Stages: cfg.stages, Portable: cfg.portable, Overlap: cfg.overlap, Persistent: cfg.persistent, Copy: cfg.copy})
	f.pass()
	k, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return ir.Single(k), nil
}

// forward builds the kernel.
type forward struct {
	*ir.Builder
	config
	p *Problem

	q, k, v, scale, o, lse *ir.Value    // parameters
	factors                [3]*ir.Value // parameters, of small types: of Q, K and V
	batch, head, rows      *ir.Value    // the tile: rows is its number along the queries

	outFactor *ir.Value // of small types: what O is multiplied by in the end
}

// view adds a [batch, seq, heads, dim] tensor. Its rows are contiguous, and
// where the padding allows every one starts on 16, 8 or 4 bytes.
func (f *forward) view(name string, e ir.Elem, seq, heads string, dim int) *ir.Value {
	v := f.View(name, e, "B", seq, heads, dim)
	f.AssumeStride(v, 3, 1)
	if granule := family.Granule(e, dim+f.p.Pad); granule > 1 {
		f.AssumePointer(v, granule*int64(e.Bits())/8)
		for d := range 3 {
			f.AssumeStrideMultiple(v, d, granule)
		}
	}
	return v
}

// tile declares the tile space. A causal tile is the longer the later its rows, so the
// last rows start first.
func (f *forward) tile() {
	count := ir.Sym("Sq").CeilDiv(ir.Lit(int64(f.BM)))
	axes := []func(){
		func() { f.batch = f.Over("b", ir.Sym("B")) },
		func() { f.head = f.Over("h", ir.Sym("H")) },
	}
	at := rowAxis[f.order]
	for _, axis := range slices.Insert(axes, at, func() { f.rows = f.Over("m", count) }) {
		axis()
	}
	if f.p.Causal {
		f.SetOrder(ir.Order{Reversed: []int{at}})
	}
}

// pass builds the body.
func (f *forward) pass() {
	d, dv, zero := f.p.HeadDim, f.p.HeadDimV, f.Int(0)
	sq, sk := f.Dim(f.q, 1), family.Named("sk", f.Dim(f.k, 1))
	first := family.Named("first", f.Mul(f.rows, f.Int(f.BM)))
	last := family.Named("last", f.Add(first, f.Sub(sk, sq))) // key that the first query sees
	group := f.Div(f.Dim(f.q, 2), f.Dim(f.k, 2))
	kvHead := family.Named("kv_head", f.Div(f.head, group))
	spans := ir.Access{Dims: []int{1, 3}}

	q := family.Named("qt", f.Load(f.q, []*ir.Value{f.batch, first, f.head, zero}, ir.TileOf(f.p.elem(), f.BM, d), spans))
	if f.p.small() {
		f.scaled(kvHead)
	}
	c := family.Named("c", f.Mul(f.scale, f.f32(math.Log2E)))
	end := sk
	if f.p.Causal {
		end = family.Named("end", f.Min(sk, f.Add(last, f.Int(f.BM))))
	}
	init := []*ir.Value{
		f.Zero(ir.TileOf(ir.F32, f.BM, dv)),
		f.Full(ir.TileOf(ir.F32, f.BM), math.Inf(-1)),
		f.Zero(ir.TileOf(ir.F32, f.BM)),
	}
	out := f.For(zero, end, f.Int(f.BN), init, ir.Loop{Stages: f.stages}, func(n *ir.Value, carried []*ir.Value) []*ir.Value {
		family.Named("n", n)
		acc, max, sum := family.Named("acc", carried[0]), family.Named("max", carried[1]), family.Named("sum", carried[2])
		at := []*ir.Value{f.batch, n, kvHead, zero}
		kt := family.Named("kt", f.Load(f.k, at, ir.TileOf(f.p.elem(), f.BN, d), spans))
		s := f.Dot(q, f.Transpose(kt), f.Zero(ir.TileOf(ir.F32, f.BM, f.BN)), ir.Exact)
		s = family.Named("s", f.Select(f.mask(last, n, sk), s, f.f32(math.Inf(-1))))
		p, newMax, rescale := f.softmax(s, c, max)
		vt := family.Named("vt", f.Load(f.v, at, ir.TileOf(f.p.elem(), f.BN, dv), spans))
		acc = f.Dot(f.weights(p), vt, f.Mul(acc, f.Cols(rescale, dv)), ir.Exact)
		return []*ir.Value{acc, newMax, f.Fma(sum, rescale, f.Reduce(ir.Add, p, 1))}
	})
	f.finish(out[0], out[1], out[2], first)
}

// mask is where a key is seen: it exists and, causally, is not past its query's. last
// is the last key that the tile's first query sees.
func (f *forward) mask(last, n, sk *ir.Value) *ir.Value {
	col := f.Add(f.Iota(1, f.BM, f.BN), n)
	seen := f.Cmp(ir.LT, col, sk)
	if f.p.Causal {
		row := f.Add(f.Iota(0, f.BM, f.BN), last)
		seen = f.And(f.Cmp(ir.GE, row, col), seen)
	}
	return seen
}

// scaled puts the factors of Q and K into that of the scores, and keeps that of V for O.
func (f *forward) scaled(kvHead *ir.Value) {
	var of [3]*ir.Value
	for i, v := range f.factors {
		of[i] = f.Load(v, []*ir.Value{f.batch, kvHead}, ir.ScalarOf(ir.F32))
	}
	f.scale = f.Mul(f.scale, f.Mul(of[0], of[1]))
	f.outFactor = of[2]
}

// smallShift is the exponent that weights of small types are raised by, so that those of
// 2^-14 of the largest are normal numbers of e4m3, whose largest is 448.
const smallShift = 8

// weights rounds the weights to the type of V.
func (f *forward) weights(p *ir.Value) *ir.Value {
	if f.p.small() {
		return f.CastSat(p, f.p.elem())
	}
	return f.Cast(p, f.p.elem())
}

// softmax turns scores into weights p = 2^(c s - c max) under the running maximum, and
// returns the factor for what was accumulated under the old one. A row that has seen
// nothing yet has maximum -inf; it uses 0, so that no infinity is subtracted from
// another.
func (f *forward) softmax(s, c, old *ir.Value) (p, max, rescale *ir.Value) {
	max = f.Max(old, f.Reduce(ir.Max, s, 1))
	safe := f.Select(f.Cmp(ir.EQ, max, f.f32(math.Inf(-1))), f.f32(0), max)
	bias := f.Neg(f.Mul(safe, c))
	if f.p.small() {
		bias = f.Fma(safe, f.Neg(c), f.f32(smallShift))
	}
	bias = f.Cols(bias, f.BN)
	p = f.Fast(ir.OpExp2, f.Fma(s, c, bias))
	rescale = f.Fast(ir.OpExp2, f.Mul(f.Sub(old, safe), c)) // 1 exactly while the maximum stays
	return family.Named("p", p), family.Named("new_max", max), family.Named("rescale", rescale)
}

// finish divides by the sums and stores O and LSE.
func (f *forward) finish(acc, max, sum, first *ir.Value) {
	none := f.Cmp(ir.EQ, sum, f.f32(0))
	inverse := f.Unary(ir.OpRcp, f.Select(none, f.f32(1), sum))
	if f.p.small() {
		inverse = f.Mul(inverse, f.outFactor)
	}
	o := f.Cast(f.Mul(acc, f.Cols(inverse, f.p.HeadDimV)), f.p.out())
	f.Store(f.o, []*ir.Value{f.batch, first, f.head, f.Int(0)}, o, ir.Access{Dims: []int{1, 3}})
	log := f.Unary(ir.OpLog2, sum)
	if f.p.small() {
		log = f.Sub(log, f.f32(smallShift))
	}
	ln := f.Mul(log, f.f32(math.Ln2))
	lse := f.Select(none, f.f32(math.Inf(-1)), f.Fma(max, f.scale, ln))
	f.Store(f.lse, []*ir.Value{f.batch, f.head, first}, lse)
}

func (f *forward) f32(v float64) *ir.Value { return f.Const(ir.F32, v) }
