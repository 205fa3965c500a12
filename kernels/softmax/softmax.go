// Package softmax is the family of row softmaxes, Y[r, :] = e^X[r, :] / sum of e^X[r, :].
package softmax

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Problem is one softmax of each of Rows rows of length Cols.
type Problem struct {
	Rows, Cols int
	Type       string // of X and Y: f32, bf16 or f16
}

// Family describes softmax.
func Family() *family.Family {
	return &family.Family{
		Name:   "softmax",
		Doc:    "softmax of every row of a matrix",
		Prefix: "Softmax",
		Sizes: []family.Extent{
			{Symbol: "R", Field: "Rows", Doc: "rows"},
			{Symbol: "N", Field: "Cols", Doc: "elements of a row"},
		},
		Others: []map[string]string{{"cols": "4095"}},
		Flags: []family.Flag{
			family.Size("rows", 4096, "rows"),
			family.Size("cols", 4096, "elements of a row"),
			family.OneOf("dtype", "type of both matrices",
				family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"}, family.Option{Name: "f32"}),
		},
		New: func(v family.Values) (family.Problem, error) {
			return &Problem{Rows: v.Int("rows"), Cols: v.Int("cols"), Type: v.Choice("dtype")}, nil
		},
		Awkward: func(r *rand.Rand) family.Problem {
			return &Problem{Rows: 1 + r.IntN(40), Cols: 1 + r.IntN(1500), Type: []string{"f32", "bf16", "f16"}[r.IntN(3)]}
		},
	}
}

// Settings lists the flags.
func (p *Problem) Settings() family.Settings {
	return family.Settings{{Name: "rows", Value: strconv.Itoa(p.Rows)}, {Name: "cols", Value: strconv.Itoa(p.Cols)}, {Name: "dtype", Value: p.Type}}
}

// Work counts a subtraction, an exponential, an addition and a product an element, and one
// comparison; X and Y once each.
func (p *Problem) Work() family.Work {
	n := float64(p.Rows) * float64(p.Cols)
	return family.Work{Math: target.F32, FLOPs: 4 * n, Bytes: 2 * n * float64(p.elem().Bits()/8), Exp2: n}
}

func (p *Problem) elem() ir.Elem {
	e, ok := ir.ElemByName(p.Type)
	if !ok {
		panic(fmt.Sprintf("softmax: type %q", p.Type))
	}
	return e
}

// Args lists X and Y.
func (p *Problem) Args() []family.Arg {
	x := family.Arg{Name: "x", Elem: p.elem(), Dims: []int{p.Rows, p.Cols}, Strides: []int{p.Cols, 1}}
	y := x
	y.Name, y.Out = "y", true
	return []family.Arg{x, y}
}

// Space returns the tiles to search: rows of a block, and columns taken at a time.
func (p *Problem) Space(gpu *target.GPU) (*space.Bound, error) {
	env := family.Env(gpu)
	env["rows"], env["cols"] = int64(p.Rows), int64(p.Cols)
	return tiles.Bind(env)
}

var tiles = space.Space{
	Params: []space.Param{
		{Name: "BM", Values: []int{1, 2, 4, 8, 16}, Doc: "rows of a tile"},
		{Name: "BN", Values: []int{128, 256, 512, 1024, 2048, 4096, 8192}, Doc: "columns of a tile"},
		{Name: "warps", Values: []int{1, 2, 4, 8}, Also: []int{16}, Doc: "warps of a block"},
	},
	Constraints: []space.Constraint{
		{Name: "registers", Expr: "BM*BN <= 64*32*warps", Doc: "64 elements a thread at most"},
		{Name: "threads", Expr: "BM*BN >= 4*32*warps", Doc: "4 elements a thread at least"},
		{Name: "oversize", Expr: "(BM < 2*rows || BM == 1) && (BN < 2*cols || BN == 128)", Doc: "no tile twice the problem"},
	},
}

// Default takes the widest tile of one row that a block of 8 warps holds.
func (p *Problem) Default(gpu *target.GPU) (space.Config, error) {
	b, err := p.Space(gpu)
	if err != nil {
		return space.Config{}, err
	}
	var best space.Config
	for c := range b.All() {
		if n, _ := c.Get("BM"); n == 1 {
			best = c // the widest tile, the most warps come last
		}
	}
	return best, nil
}

// Program goes over the columns twice: once for the row's maximum and the sum under it,
// once to write.
func (p *Problem) Program(c space.Config) (*ir.Program, error) {
	if err := tiles.Check(c); err != nil {
		return nil, err
	}
	r := c.Read()
	bm, bn, warps := r.Int("BM"), r.Int("BN"), r.Int("warps")

	b := ir.NewKernel("softmax")
	x, y := p.matrix(b, "x"), p.matrix(b, "y")
	row := b.Mul(b.Over("r", ir.Sym("R").CeilDiv(ir.Lit(int64(bm)))), b.Int(bm))
	b.SetHints(ir.Hints{Warps: warps})

	f32 := func(v float64) *ir.Value { return b.Const(ir.F32, v) }
	cols := b.Dim(x, 1)
	t := ir.TileOf(p.elem(), bm, bn)
	scaled := func(col *ir.Value) *ir.Value { // x log2(e), -inf outside the row
		v := b.Cast(b.Load(x, []*ir.Value{row, col}, t), ir.F32)
		inside := b.Cmp(ir.LT, b.Add(b.Iota(1, bm, bn), col), cols)
		return b.Select(inside, b.Mul(v, f32(math.Log2E)), f32(math.Inf(-1)))
	}
	init := []*ir.Value{b.Full(ir.TileOf(ir.F32, bm), math.Inf(-1)), b.Zero(ir.TileOf(ir.F32, bm))}
	stat := b.For(b.Int(0), cols, b.Int(bn), init, ir.Loop{}, func(col *ir.Value, carried []*ir.Value) []*ir.Value {
		v := scaled(col)
		m := b.Max(carried[0], b.Reduce(ir.Max, v, 1))
		e := b.Fast(ir.OpExp2, b.Sub(v, b.Cols(m, bn)))
		old := b.Fast(ir.OpExp2, b.Sub(carried[0], m))
		return []*ir.Value{m, b.Fma(carried[1], old, b.Reduce(ir.Add, e, 1))}
	})
	inverse := b.Unary(ir.OpRcp, stat[1])
	b.For(b.Int(0), cols, b.Int(bn), nil, ir.Loop{}, func(col *ir.Value, _ []*ir.Value) []*ir.Value {
		e := b.Fast(ir.OpExp2, b.Sub(scaled(col), b.Cols(stat[0], bn)))
		b.Store(y, []*ir.Value{row, col}, b.Cast(b.Mul(e, b.Cols(inverse, bn)), p.elem()))
		return nil
	})
	k, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return ir.Single(k), nil
}

// matrix adds a row-major matrix, with aligned rows where the length allows.
func (p *Problem) matrix(b *ir.Builder, name string) *ir.Value {
	v := b.View(name, p.elem(), "R", "N")
	family.AssumeRows(b, v, p.Args()[0]) // x and y are alike
	return v
}

// Parts draws blocks of rows.
func (p *Problem) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	if err := tiles.Check(c); err != nil {
		return nil, err
	}
	bm, _ := c.Get("BM")
	var parts []family.Part
	for _, at := range family.Points(r, n, (p.Rows+bm-1)/bm) {
		lo := at[0] * bm
		parts = append(parts, family.Part{
			Tiles:   [][][]int{{at}},
			Regions: []family.Region{{Out: "y", Lo: []int{lo, 0}, Hi: []int{min(p.Rows, lo+bm), p.Cols}}},
		})
	}
	return parts, nil
}

// Expect computes rows of Y. The tolerance is 2^-18 of an element, for the rounding of
// x log2(e) near 2^4, the approximate exponentials and the sum; then it is rounded.
func (p *Problem) Expect(d family.Data, r family.Region) (family.Expected, error) {
	var e family.Expected
	if r.Out != "y" {
		return e, fmt.Errorf("softmax has no output %q: want y", r.Out)
	}
	n := (r.Hi[0] - r.Lo[0]) * (r.Hi[1] - r.Lo[1])
	e.Want, e.Tol = make([]float64, 0, n), make([]float64, 0, n)
	x := make([]float64, p.Cols)
	for i := r.Lo[0]; i < r.Hi[0]; i++ {
		d["x"].Row(x, d["x"].Offset(i, 0))
		top, sum := math.Inf(-1), 0.0
		for _, v := range x {
			top = max(top, v)
		}
		for _, v := range x {
			sum += math.Exp(v - top)
		}
		for _, v := range x[r.Lo[1]:r.Hi[1]] {
			want := math.Exp(v-top) / sum
			e.Want = append(e.Want, want)
			e.Tol = append(e.Tol, family.Rounded(p.elem(), want, 0x1p-18*want))
		}
	}
	return e, nil
}
