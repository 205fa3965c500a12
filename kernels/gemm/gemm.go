// Package gemm is the family of matrix products with an epilogue:
//
//	C[M,N] = act(alpha * A[M,K] B[K,N] + bias[N]) + residual[M,N]
//
// accumulated in f32, each operand row- or column-major.
package gemm

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/num"
	"github.com/kgen-dev/kgen/kernels/family"
)

// Problem is one matrix product.
type Problem struct {
	M, N, K int
	Type    string // of the operands and the arithmetic: f16, bf16, tf32, f32, e4m3 or e5m2
	Out     string // of C and the residual: f16, bf16 or f32
	Layout  string // nn, nt, tn or tt: A then B; t means stored transposed, [K,M] or [N,K]

	Bias     bool   // add bias[N], of type f32
	Act      string // none, relu, gelu or silu
	Residual bool   // add residual[M,N] after the activation
	Alpha    float64

	Pad int // elements between the rows of every matrix
}

// Family describes GEMM.
func Family() *family.Family {
	return &family.Family{
		Name:   "gemm",
		Doc:    "matrix product with an epilogue: act(alpha A B + bias) + residual",
		Prefix: "Gemm",
		Sizes: []family.Extent{
			{Symbol: "M", Field: "M", Doc: "rows of A and C"},
			{Symbol: "N", Field: "N", Doc: "columns of B and C"},
			{Symbol: "K", Field: "K", Doc: "columns of A, rows of B"},
		},
		Others: []map[string]string{{"m": "4095", "n": "4095", "k": "4095"}},
		Flags: []family.Flag{
			family.Size("m", 4096, "rows of A and C"),
			family.Size("n", 4096, "columns of B and C"),
			family.Size("k", 4096, "columns of A, rows of B"),
			family.OneOf("dtype", "type of A and B; tf32 takes f32 matrices, of which the kernel uses tf32's bits",
				family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"},
				family.Option{Name: "tf32", Since: target.CC{Major: 8}}, family.Option{Name: "f32"},
				family.Option{Name: "e4m3", Since: fp8Since}, family.Option{Name: "e5m2", Since: fp8Since}),
			family.OneOf("out", "type of C and the residual; same: that of A and B, bf16 for e4m3 and e5m2",
				family.Option{Name: "same"}, family.Option{Name: "bf16", Since: target.CC{Major: 8}}, family.Option{Name: "f16"}, family.Option{Name: "f32"}),
			family.OneOf("layout", "storage of A and B: n is row-major, t is column-major",
				family.Option{Name: "nn"}, family.Option{Name: "nt"}, family.Option{Name: "tn"}, family.Option{Name: "tt"}),
			family.Switch("bias", false, "add a bias of each column, of type f32"),
			family.OneOf("act", "activation after the bias; gelu is the tanh form",
				family.Option{Name: "none"}, family.Option{Name: "relu"}, family.Option{Name: "gelu"}, family.Option{Name: "silu"}),
			family.Switch("residual", false, "add a matrix of C's size and type after the activation"),
			{Name: "alpha", Doc: "factor of the product", Kind: family.Float, Default: "1"},
		},
		New:     func(v family.Values) (family.Problem, error) { return fromFlags(v), nil },
		Awkward: func(r *rand.Rand) family.Problem { return awkward(r) },
	}
}

func fromFlags(v family.Values) *Problem {
	p := &Problem{
		M: v.Int("m"), N: v.Int("n"), K: v.Int("k"),
		Type: v.Choice("dtype"), Out: v.Choice("out"), Layout: v.Choice("layout"),
		Bias: v.Bool("bias"), Act: v.Choice("act"), Residual: v.Bool("residual"), Alpha: v.Float("alpha"),
	}
	if p.Out == "same" {
		p.Out = p.elem().String()
		if p.small() {
			p.Out = ir.BF16.String()
		}
	}
	return p
}

// fp8Since is the first compute capability whose tensor cores have 8-bit floats.
var fp8Since = target.CC{Major: 8, Minor: 9}

// small tells whether A and B are 8-bit floats.
func (p *Problem) small() bool { return p.elem().Bits() == 8 }

// awkward draws sizes around the smallest tiles, one in four of them aligned.
func awkward(r *rand.Rand) *Problem {
	size := func(most int) int {
		if r.IntN(4) == 0 {
			return 16 * (1 + r.IntN(most/16))
		}
		return 1 + r.IntN(most)
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	p := &Problem{
		M: size(150), N: size(150), K: size(200),
		Type: pick("bf16", "f16", "tf32", "f32"), Layout: pick("nn", "nt", "tn", "tt"),
		Bias: r.IntN(2) == 0, Act: pick("none", "relu", "gelu", "silu"), Residual: r.IntN(2) == 0, Alpha: 1,
	}
	p.Out = p.elem().String()
	if r.IntN(3) == 0 {
		p.Out = pick("f32", "f16", "bf16")
	}
	if r.IntN(3) == 0 {
		p.Alpha = 0.5 + r.Float64()
	}
	if r.IntN(3) == 0 {
		p.Pad = pick2(r, 8, 3)
	}
	return p
}

func pick2(r *rand.Rand, a, b int) int {
	if r.IntN(2) == 0 {
		return a
	}
	return b
}

// Settings lists the flags.
func (p *Problem) Settings() family.Settings {
	s := family.Settings{
		{Name: "m", Value: strconv.Itoa(p.M)}, {Name: "n", Value: strconv.Itoa(p.N)}, {Name: "k", Value: strconv.Itoa(p.K)},
		{Name: "dtype", Value: p.Type}, {Name: "out", Value: p.Out}, {Name: "layout", Value: p.Layout},
		{Name: "bias", Value: strconv.FormatBool(p.Bias)}, {Name: "act", Value: p.Act},
		{Name: "residual", Value: strconv.FormatBool(p.Residual)}, {Name: "alpha", Value: strconv.FormatFloat(p.Alpha, 'g', -1, 64)},
	}
	if p.Pad > 0 {
		s = append(s, family.Setting{Name: "pad", Value: strconv.Itoa(p.Pad)})
	}
	return s
}

// Work counts 2MNK FLOPs; A, B, bias, residual and C once each; one exponential an element
// for gelu and silu.
func (p *Problem) Work() family.Work {
	m, n, k := float64(p.M), float64(p.N), float64(p.K)
	w := family.Work{Math: p.math(), FLOPs: 2 * m * n * k}
	w.Bytes = float64(p.elem().Bits()/8)*(m*k+k*n) + float64(p.out().Bits()/8)*m*n
	if p.Bias {
		w.Bytes += 4 * n
	}
	if p.Residual {
		w.Bytes += float64(p.out().Bits()/8) * m * n
	}
	if p.Act == "gelu" || p.Act == "silu" {
		w.Exp2 = m * n
	}
	return w
}

// math returns the arithmetic of the product.
func (p *Problem) math() target.Math {
	switch p.Type {
	case "bf16":
		return target.BF16
	case "f16":
		return target.F16Acc32
	case "tf32":
		return target.TF32
	case "e4m3", "e5m2":
		return target.F8Acc32
	}
	return target.F32
}

// elem returns the type of A and B in memory.
func (p *Problem) elem() ir.Elem {
	switch p.Type {
	case "bf16":
		return ir.BF16
	case "f16":
		return ir.F16
	case "e4m3":
		return ir.E4M3
	case "e5m2":
		return ir.E5M2
	}
	return ir.F32
}

func (p *Problem) out() ir.Elem {
	e, ok := ir.ElemByName(p.Out)
	if !ok {
		panic(fmt.Sprintf("gemm: output type %q", p.Out))
	}
	return e
}

func (p *Problem) precision() ir.Precision {
	if p.Type == "tf32" {
		return ir.TF32
	}
	return ir.Exact
}

func (p *Problem) transposedA() bool { return p.Layout[0] == 't' }
func (p *Problem) transposedB() bool { return p.Layout[1] == 't' }

// Args lists A, B, bias, residual, alpha and C, those that the problem has.
func (p *Problem) Args() []family.Arg {
	args := []family.Arg{
		p.matrix("a", p.elem(), p.M, p.K, p.transposedA()),
		p.matrix("b", p.elem(), p.K, p.N, p.transposedB()),
	}
	if p.Bias {
		args = append(args, family.Arg{Name: "bias", Elem: ir.F32, Dims: []int{p.N}, Strides: []int{1}})
	}
	if p.Residual {
		args = append(args, p.matrix("residual", p.out(), p.M, p.N, false))
	}
	if p.Alpha != 1 {
		args = append(args, family.Arg{Name: "alpha", Elem: ir.F32, Float: float64(float32(p.Alpha)), Doc: "factor of the product"})
	}
	c := p.matrix("c", p.out(), p.M, p.N, false)
	c.Out = true
	args = append(args, c)
	if p.Type == "tf32" {
		args[0].Fill, args[1].Fill = toTF32, toTF32
	}
	return args
}

// toTF32 gives a tensor's elements the precision of tf32, so that it does not matter to a
// check whether the instruction rounds them or cuts them.
func toTF32(t *family.Tensor) {
	row := make([]float64, t.Dims[1])
	for i := range t.Dims[0] {
		t.Row(row, t.Offset(i, 0))
		for j, x := range row {
			t.Set(float64(num.RoundTF32(float32(x))), i, j)
		}
	}
}

// matrix describes a matrix as it is stored: the last dimension has stride 1.
func (p *Problem) matrix(name string, e ir.Elem, rows, cols int, transposed bool) family.Arg {
	if transposed {
		rows, cols = cols, rows
	}
	return family.Arg{Name: name, Elem: e, Dims: []int{rows, cols}, Strides: []int{cols + p.Pad, 1}}
}
