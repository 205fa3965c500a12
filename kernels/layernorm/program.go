package layernorm

import (
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Program builds one launch. With one pass a block holds BM whole rows; with two it
// merges the moments of one tile after the other, then reads the rows again for y. Rows
// of a bounded number of tiles are gone over for each moment: what loops over as few tiles
// compute again is kept.
func (p *Problem) Program(c space.Config) (*ir.Program, error) {
	cfg, err := decode(c)
	if err != nil {
		return nil, err
	}
	k := newKernel(p, cfg)
	switch {
	case cfg.passes == 1:
		k.onePass()
	case cfg.keep > 0:
		k.keptRows()
	default:
		k.twoPasses()
	}
	kernel, err := k.b.Finish()
	if err != nil {
		return nil, err
	}
	return ir.Single(kernel), nil
}

// kernel is one being built; what the problem lacks is nil.
type kernel struct {
	p   *Problem
	cfg config
	b   *ir.Builder

	x, residual, weight, bias      *ir.Value
	y, sum, mean, rstd             *ir.Value
	eps                            *ir.Value
	threshold, scale, seed, offset *ir.Value

	row, cols *ir.Value // the block's first row, and the length of a row
}

func newKernel(p *Problem, cfg config) *kernel {
	b := ir.NewKernel("layernorm")
	k := &kernel{p: p, cfg: cfg, b: b}
	fields := map[string]**ir.Value{
		"x": &k.x, "residual": &k.residual, "weight": &k.weight, "bias": &k.bias,
		"y": &k.y, "sum": &k.sum, "mean": &k.mean, "rstd": &k.rstd, "eps": &k.eps,
		"threshold": &k.threshold, "scale": &k.scale, "seed": &k.seed, "offset": &k.offset,
	}
	for _, a := range p.Args() {
		*fields[a.Name] = k.param(a)
	}
	if tiles := cfg.mostTiles(); tiles > 0 {
		b.Assume(ir.Assumption{Kind: ir.AssumeDimRange, Param: k.x, Dim: 1, Lo: 1, Hi: int64(tiles * cfg.BN)})
	}
	k.row = family.Named("row", b.Mul(b.Over("r", ir.Sym("R").CeilDiv(ir.Lit(int64(cfg.BM)))), b.Int(cfg.BM)))
	k.cols = b.Dim(k.x, 1)
	b.SetHints(ir.Hints{Warps: cfg.warps, Cluster: cfg.clusters()})
	return k
}

// clusters is the hint that asks for clusters, 0 where there are none.
func (c config) clusters() int {
	if c.cluster == 1 {
		return 0
	}
	return c.cluster
}

// param adds an argument, with aligned rows where the length allows.
func (k *kernel) param(a family.Arg) *ir.Value {
	b := k.b
	if a.IsScalar() {
		return b.Scalar(a.Name, a.Elem)
	}
	if len(a.Dims) == 1 {
		size := "N"
		if a.Out {
			size = "R"
		}
		v := b.View(a.Name, a.Elem, size)
		b.AssumeStride(v, 0, 1)
		b.AssumePointer(v, 16)
		return v
	}
	v := b.View(a.Name, a.Elem, "R", "N")
	family.AssumeRows(b, v, a)
	return v
}

// tile loads columns from col on of the block's rows, in f32.
func (k *kernel) tile(view, col *ir.Value) *ir.Value {
	t := ir.TileOf(view.Type.Elem, k.cfg.BM, k.cfg.BN)
	return k.b.Cast(k.b.Load(view, []*ir.Value{k.row, col}, t), ir.F32)
}

// vector loads a piece of the weight or the bias for every row, in f32.
func (k *kernel) vector(view, col *ir.Value) *ir.Value {
	v := k.b.Load(view, []*ir.Value{col}, ir.TileOf(view.Type.Elem, k.cfg.BN))
	return k.b.Rows(k.b.Cast(v, ir.F32), k.cfg.BM)
}

// index numbers a tile's columns, from col on.
func (k *kernel) index(col *ir.Value) *ir.Value {
	return k.b.Add(k.b.Iota(1, k.cfg.BM, k.cfg.BN), col)
}

// total computes t = dropout(x) + residual, 0 outside the row.
func (k *kernel) total(col *ir.Value) *ir.Value {
	b := k.b
	t := k.tile(k.x, col)
	if k.threshold != nil {
		rows := b.Add(b.Iota(0, k.cfg.BM, k.cfg.BN), k.row)
		draw := b.Random16(k.seed, k.offset, b.Int(0), rows, k.index(col))
		t = b.Select(b.Cmp(ir.GE, draw, k.threshold), b.Mul(t, k.scale), b.Const(ir.F32, 0))
	}
	if k.residual != nil {
		t = b.Add(t, k.tile(k.residual, col))
	}
	return family.Named("t", t)
}

// writeSum stores t.
func (k *kernel) writeSum(t, col *ir.Value) {
	if k.sum != nil {
		k.b.Store(k.sum, []*ir.Value{k.row, col}, k.b.Cast(t, k.sum.Type.Elem))
	}
}

// deviation is t - mean within the row, 0 outside; for RMSNorm, t.
func (k *kernel) deviation(t, mean, col *ir.Value) *ir.Value {
	if k.p.Norm == "rms" {
		return t
	}
	b := k.b
	d := b.Sub(t, b.Cols(mean, k.cfg.BN))
	return b.Select(b.Cmp(ir.LT, k.index(col), k.cols), d, b.Const(ir.F32, 0))
}

// squares sums the squares of each row.
func (k *kernel) squares(d *ir.Value) *ir.Value {
	return k.b.Reduce(ir.Add, k.b.Mul(d, d), 1)
}

// inverse is 1 / sqrt(squares/n + eps), of each row.
func (k *kernel) inverse(squares, oneOverN *ir.Value) *ir.Value {
	return family.Named("rs", k.b.Unary(ir.OpRsqrt, k.b.Fma(squares, oneOverN, k.eps)))
}

// write stores y of a tile of deviations.
func (k *kernel) write(d, rs, col *ir.Value) {
	b := k.b
	y := b.Mul(d, b.Cols(rs, k.cfg.BN))
	if k.weight != nil {
		y = b.Mul(y, k.vector(k.weight, col))
	}
	if k.bias != nil {
		y = b.Add(y, k.vector(k.bias, col))
	}
	b.Store(k.y, []*ir.Value{k.row, col}, b.Cast(y, k.y.Type.Elem))
}

// writeStats stores each row's moments.
func (k *kernel) writeStats(mean, rs *ir.Value) {
	if k.mean != nil {
		k.b.Store(k.mean, []*ir.Value{k.row}, mean)
	}
	if k.rstd != nil {
		k.b.Store(k.rstd, []*ir.Value{k.row}, rs)
	}
}

// onePass keeps t in registers.
func (k *kernel) onePass() {
	b := k.b
	col, oneOverN := b.Int(0), b.Unary(ir.OpRcp, b.Cast(k.cols, ir.F32))
	t := k.total(col)
	k.writeSum(t, col)
	var mean *ir.Value
	if k.p.Norm == "layer" {
		mean = family.Named("mu", b.Mul(b.Reduce(ir.Add, t, 1), oneOverN))
	}
	d := k.deviation(t, mean, col)
	rs := k.inverse(k.squares(d), oneOverN)
	k.write(d, rs, col)
	k.writeStats(mean, rs)
}

// twoPasses merges the moments of the tiles by the rule of Chan, Golub and LeVeque,
// "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979):
// with n and m elements, means u and v, and sums of squared deviations S and T, the
// whole has the mean u + (v-u) m/(n+m) and the sum S + T + (v-u)^2 n m/(n+m).
func (k *kernel) twoPasses() {
	b := k.b
	bm, bn := k.cfg.BM, b.Int(k.cfg.BN)
	f32 := func(v *ir.Value) *ir.Value { return b.Cast(v, ir.F32) }
	zero := b.Zero(ir.TileOf(ir.F32, bm))
	layer := k.p.Norm == "layer"

	moments := b.For(b.Int(0), k.cols, bn, []*ir.Value{zero, zero}, ir.Loop{}, func(col *ir.Value, carried []*ir.Value) []*ir.Value {
		family.Named("col", col)
		t := k.total(col)
		k.writeSum(t, col)
		if !layer {
			return []*ir.Value{carried[0], b.Add(carried[1], k.squares(t))}
		}
		here := b.Min(bn, b.Sub(k.cols, col))
		mean := b.Mul(b.Reduce(ir.Add, t, 1), b.Unary(ir.OpRcp, f32(here)))
		squares := k.squares(k.deviation(t, mean, col))
		share := b.Div(f32(here), f32(b.Add(col, here)))
		delta := b.Sub(mean, carried[0])
		between := b.Mul(b.Mul(delta, delta), b.Mul(f32(col), share))
		return []*ir.Value{b.Fma(delta, share, carried[0]), b.Add(carried[1], b.Add(squares, between))}
	})
	mean := family.Named("mu", moments[0])
	rs := k.inverse(moments[1], b.Unary(ir.OpRcp, f32(k.cols)))
	b.For(b.Int(0), k.cols, bn, nil, ir.Loop{}, func(col *ir.Value, _ []*ir.Value) []*ir.Value {
		family.Named("col", col)
		k.write(k.deviation(k.total(col), mean, col), rs, col)
		return nil
	})
	k.writeStats(mean, rs)
}

// keptRows adds up whole tiles, so that warps meet once for each moment.
func (k *kernel) keptRows() {
	b := k.b
	oneOverN := b.Unary(ir.OpRcp, b.Cast(k.cols, ir.F32))
	each := func(f func(t, col, sums *ir.Value) *ir.Value) *ir.Value {
		zero := b.Zero(ir.TileOf(ir.F32, k.cfg.BM, k.cfg.BN))
		sums := b.For(b.Int(0), k.cols, b.Int(k.cfg.BN), []*ir.Value{zero}, ir.Loop{}, func(col *ir.Value, carried []*ir.Value) []*ir.Value {
			return []*ir.Value{f(k.total(family.Named("col", col)), col, carried[0])}
		})
		return b.Mul(b.Reduce(ir.Add, sums[0], 1), oneOverN)
	}
	var mean *ir.Value
	if k.p.Norm == "layer" {
		mean = family.Named("mu", each(func(t, col, sums *ir.Value) *ir.Value {
			k.writeSum(t, col)
			return b.Add(sums, t)
		}))
	}
	variance := each(func(t, col, sums *ir.Value) *ir.Value {
		if mean == nil {
			k.writeSum(t, col)
		}
		d := k.deviation(t, mean, col)
		return b.Fma(d, d, sums)
	})
	rs := family.Named("rs", b.Unary(ir.OpRsqrt, b.Add(variance, k.eps)))
	b.For(b.Int(0), k.cols, b.Int(k.cfg.BN), nil, ir.Loop{}, func(col *ir.Value, _ []*ir.Value) []*ir.Value {
		k.write(k.deviation(k.total(family.Named("col", col)), mean, col), rs, col)
		return nil
	})
	k.writeStats(mean, rs)
}
