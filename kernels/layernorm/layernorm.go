// Package layernorm is the family of fused LayerNorm-Dropout-Add kernels. For each row,
//
//	t = dropout(x) + residual
//	y = (t - mean(t)) / sqrt(var(t) + eps) * weight + bias
//
// computed in f32 whatever the types; RMSNorm leaves the mean out. The variance is that
// of the deviations from the mean, not a difference of squares.
package layernorm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Problem is the normalisation of each of Rows rows of length Cols.
type Problem struct {
	Rows, Cols int
	Norm       string // layer or rms
	Type       string // of x and y: f32, bf16 or f16

	Residual      string // type of the residual stream, read and written; none: t is dropout(x)
	WriteResidual bool   // write t, rounded to the residual's type, or to Type if there is none
	Weight, Bias  string // types of these vectors, or none
	Stats         bool   // write mean (LayerNorm) and 1/sqrt(var + eps) of each row in f32

	Dropout float64 // probability that an element of x is dropped, in [0, 1)
	Seed    int64   // of the dropout mask
	Eps     float64

	Pad int // elements between the rows of every matrix
}

const none = "none"

var (
	types = []family.Option{{Name: "bf16", Since: target.CC{Major: 8}}, {Name: "f16"}, {Name: "f32"}}
	// own are the types of an argument that may have its own, or be absent.
	own = append(append([]family.Option{{Name: "same"}}, types...), family.Option{Name: none})
)

// Family describes layernorm.
func Family() *family.Family {
	return &family.Family{
		Name:   "layernorm",
		Doc:    "LayerNorm or RMSNorm of dropout(x) + residual",
		Prefix: "LayerNorm",
		Sizes: []family.Extent{
			{Symbol: "R", Field: "Rows", Doc: "rows of x"},
			{Symbol: "N", Field: "Cols", Doc: "elements of a row", Max: maxCols},
		},
		Others: []map[string]string{{"cols": "1023"}, {"cols": "40960"}, {"cols": "65536"}, {"cols": "262144"}, {"cols": "1048576"}, {"cols": "1048575"}},
		Flags: []family.Flag{
			family.Size("rows", 8192, "rows of x"),
			family.SizeTo("cols", 4096, maxCols, "elements of a row"),
			family.OneOf("norm", "layer subtracts the mean, rms does not", family.Option{Name: "layer"}, family.Option{Name: "rms"}),
			family.OneOf("dtype", "type of x and y", types...),
			family.OneOf("residual", "type of the residual that is added; same: that of x", own...),
			family.Switch("write-residual", true, "write dropout(x) + residual too"),
			family.OneOf("weight", "type of the weight; same: that of x", own...),
			family.OneOf("bias", "type of the bias; same: that of x", own...),
			family.Switch("stats", true, "write each row's mean and reciprocal standard deviation"),
			{Name: "dropout", Kind: family.Float, Default: "0.1", Positive: true, Below: 1, Doc: "probability that an element of x is dropped"},
			{Name: "dropout-seed", Default: "0", Min: 0, Max: math.MaxInt64, Doc: "seed of the dropout mask"},
			{Name: "eps", Kind: family.Float, Default: "1e-05", Positive: true, Doc: "added to the variance"},
		},
		New:     parse,
		Awkward: func(r *rand.Rand) family.Problem { return awkward(r) },
	}
}

// maxCols is the longest row: 2^20.
const maxCols = 1 << 20

func parse(v family.Values) (family.Problem, error) {
	p := &Problem{
		Rows: v.Int("rows"), Cols: v.Int("cols"), Norm: v.Choice("norm"), Type: v.Choice("dtype"),
		WriteResidual: v.Bool("write-residual"), Stats: v.Bool("stats"),
		Dropout: v.Float("dropout"), Seed: int64(v.Int("dropout-seed")), Eps: v.Float("eps"),
	}
	for name, t := range map[string]*string{"residual": &p.Residual, "weight": &p.Weight, "bias": &p.Bias} {
		if *t = v.Choice(name); *t == "same" {
			*t = p.Type
		}
	}
	return p, nil
}

// awkward draws rows from one element to several tiles, some too long for few registers,
// and every option.
func awkward(r *rand.Rand) *Problem {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	p := &Problem{
		Rows: 1 + r.IntN(24), Cols: 1 + r.IntN(1+r.IntN(2500)), Norm: pick("layer", "layer", "rms"), Type: pick("f32", "bf16", "f16"),
		Residual: pick("f32", "bf16", "f16", none), Weight: pick("f32", "bf16", "f16", none), Bias: pick("f32", "bf16", "f16", none),
		WriteResidual: r.IntN(2) == 0, Stats: r.IntN(2) == 0,
		Dropout: []float64{0, 0.1, 0.5, 0.999}[r.IntN(4)], Seed: r.Int64(), Eps: []float64{1e-5, 1e-3}[r.IntN(2)],
	}
	if r.IntN(3) == 0 {
		p.Cols = 8 * (1 + p.Cols/8)
	}
	if r.IntN(5) == 0 {
		p.Rows, p.Cols = 1+p.Rows%3, p.Cols+4096<<r.IntN(3) // some of which a cluster's blocks divide
	}
	p.Pad = []int{0, 0, 0, 8, 3}[r.IntN(5)]
	return p
}

// Settings lists the flags.
func (p *Problem) Settings() family.Settings {
	float := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	s := family.Settings{
		{Name: "rows", Value: strconv.Itoa(p.Rows)}, {Name: "cols", Value: strconv.Itoa(p.Cols)},
		{Name: "norm", Value: p.Norm}, {Name: "dtype", Value: p.Type},
		{Name: "residual", Value: p.Residual}, {Name: "write-residual", Value: strconv.FormatBool(p.WriteResidual)},
		{Name: "weight", Value: p.Weight}, {Name: "bias", Value: p.Bias}, {Name: "stats", Value: strconv.FormatBool(p.Stats)},
		{Name: "dropout", Value: float(p.Dropout)}, {Name: "dropout-seed", Value: strconv.FormatInt(p.Seed, 10)}, {Name: "eps", Value: float(p.Eps)},
	}
	if p.Pad > 0 {
		s = append(s, family.Setting{Name: "pad", Value: strconv.Itoa(p.Pad)})
	}
	return s
}

// Work counts of each element the square and its sum, the product with the reciprocal
// standard deviation, and what the options add; every argument once.
func (p *Problem) Work() family.Work {
	each := 3.0
	for _, on := range []bool{
		p.Norm == "layer", p.Norm == "layer", // the sum, and the difference from the mean
		p.threshold() > 0, p.Residual != none, p.Weight != none, p.Bias != none,
	} {
		if on {
			each++
		}
	}
	w := family.Work{Math: target.F32, FLOPs: each * float64(p.Rows) * float64(p.Cols)}
	w.Bytes = family.Bytes(p.Args())
	return w
}

// threshold is the least draw that keeps an element; 0 without dropout.
func (p *Problem) threshold() uint32 { return num.DropoutThreshold(p.Dropout) }

// Args lists x, residual, weight, bias, y, sum, mean and rstd, those that there are,
// then eps and for dropout the threshold, the scale, the seed and the offset. No output
// may overlap an input.
func (p *Problem) Args() []family.Arg {
	args := []family.Arg{p.matrix("x", p.Type)}
	if p.Residual != none {
		args = append(args, p.matrix("residual", p.Residual))
	}
	vector := func(name, typ string, n int, out bool) {
		args = append(args, family.Arg{Name: name, Elem: elem(typ), Dims: []int{n}, Strides: []int{1}, Out: out})
	}
	if p.Weight != none {
		vector("weight", p.Weight, p.Cols, false)
	}
	if p.Bias != none {
		vector("bias", p.Bias, p.Cols, false)
	}
	output := func(a family.Arg) { a.Out = true; args = append(args, a) }
	output(p.matrix("y", p.Type))
	if p.WriteResidual {
		output(p.matrix("sum", p.sumType()))
	}
	if p.Stats && p.Norm == "layer" {
		vector("mean", "f32", p.Rows, true)
	}
	if p.Stats {
		vector("rstd", "f32", p.Rows, true)
	}
	args = append(args, family.Arg{Name: "eps", Elem: ir.F32, Float: p.Eps, From0: true, Doc: "added to the variance"})
	if t := p.threshold(); t > 0 {
		args = append(args,
			family.Arg{Name: "threshold", Elem: ir.I32, Int: int64(t), Dropout: p.Dropout, Doc: "an element is dropped where its draw of 16 bits is below, 65536 p"},
			family.Arg{Name: "scale", Elem: ir.F32, Float: num.DropoutScale(t), Dropout: p.Dropout, Doc: "factor of what is kept, 1/(1-p)"},
			family.Arg{Name: "seed", Elem: ir.I64, Int: p.Seed, Doc: "seed of the draws"},
			family.Arg{Name: "offset", Elem: ir.I32, Int: 0, Doc: "which draws of the seed: another for every launch"})
	}
	return args
}

// sumType is the type that t is written in.
func (p *Problem) sumType() string {
	if p.Residual == none {
		return p.Type
	}
	return p.Residual
}

func (p *Problem) matrix(name, typ string) family.Arg {
	return family.Arg{Name: name, Elem: elem(typ), Dims: []int{p.Rows, p.Cols}, Strides: []int{p.Cols + p.Pad, 1}}
}

func elem(name string) ir.Elem {
	e, ok := ir.ElemByName(name)
	if !ok {
		panic(fmt.Sprintf("layernorm: type %q", name))
	}
	return e
}
