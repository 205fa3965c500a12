package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kgen-dev/kgen/ir/num"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Expect computes a block of C.
//
// The tolerance of a sum of K products whose root sum of squares is s is K 2^-23 s: the
// partial sums of independent terms stay near s, and each of K additions, or of K/8
// steps of a tensor core that truncates, loses a few 2^-24 of one. The epilogue adds
// 2^-20 of what it handles (approximate exponential and division), then C is rounded to
// its type. A term left out is about s/sqrt(K): K 2^-23 s stays below it up to K of
// about 2^15, and a whole step of K far beyond. Of 8-bit floats it is 2
// family.NarrowSum(128) s more, 2^-9.5 s, since their sums leave the tensor core after
// each step, of up to 128 terms: a term of the mean size stays above it up to K of about
// 2^16.
func (p *Problem) Expect(d family.Data, r family.Region) (family.Expected, error) {
	if r.Out != "c" {
		return family.Expected{}, fmt.Errorf("gemm has no output %q: want c", r.Out)
	}
	rows, cols := r.Hi[0]-r.Lo[0], r.Hi[1]-r.Lo[1]
	e := family.Expected{Want: make([]float64, 0, rows*cols), Tol: make([]float64, 0, rows*cols)}
	sums := make([]dot, rows*cols)
	for k := 0; k < p.K; k += stretch {
		end := min(p.K, k+stretch)
		a := p.vectors(d["a"], r.Lo[0], r.Hi[0], k, end, p.transposedA())
		b := p.vectors(d["b"], r.Lo[1], r.Hi[1], k, end, !p.transposedB())
		for i, x := range a {
			for j, y := range b {
				sums[i*cols+j].add(x, y)
			}
		}
	}
	for n := range sums {
		sum, s := sums[n].value()
		tol := float64(p.K) * 0x1p-23 * s
		if p.small() {
			tol += 2 * family.NarrowSum(min(p.K, longestStep)) * s
		}
		want, tol := p.end(d, r.Lo[0]+n/cols, r.Lo[1]+n%cols, sum, tol)
		e.Want = append(e.Want, want)
		e.Tol = append(e.Tol, tol)
	}
	return e, nil
}

// longestStep is how much of K the tensor cores add before a sum of 8-bit floats goes on
// in f32, at most.
const longestStep = 128

// stretch is how much of K is held as float64 at a time, which bounds the memory that a
// long K takes; it is even.
const stretch = 1 << 13

// vectors reads stretches, from to end, of the vectors along K, lo to hi: rows of a
// matrix, or columns (across).
func (p *Problem) vectors(t *family.Tensor, lo, hi, from, end int, across bool) [][]float64 {
	out := make([][]float64, hi-lo)
	for i := range out {
		out[i] = make([]float64, end-from)
		if !across {
			t.Row(out[i], t.Offset(lo+i, from))
		}
	}
	if across {
		row := make([]float64, hi-lo)
		for k := range end - from {
			t.Row(row, t.Offset(from+k, lo))
			for i, x := range row {
				out[i][k] = x
			}
		}
	}
	if p.Type == "tf32" {
		for _, v := range out {
			for k, x := range v {
				v[k] = float64(num.RoundTF32(float32(x)))
			}
		}
	}
	return out
}

// dot is a sum of products and the sum of their squares. Two chains of additions keep
// the processor busy.
type dot struct{ sum0, sum1, square0, square1 float64 }

// add takes in the products of two vectors. Only the last may have an odd length.
func (d *dot) add(x, y []float64) {
	s := *d
	y = y[:len(x)]
	for k := 0; k+1 < len(x); k += 2 {
		t, u := x[k]*y[k], x[k+1]*y[k+1]
		s.sum0 += t
		s.sum1 += u
		s.square0 += t * t
		s.square1 += u * u
	}
	if n := len(x); n%2 == 1 {
		t := x[n-1] * y[n-1]
		s.sum0 += t
		s.square0 += t * t
	}
	*d = s
}

// value returns the sum and the root of the sum of squares.
func (d *dot) value() (sum, root float64) {
	return d.sum0 + d.sum1, math.Sqrt(d.square0 + d.square1)
}

// end applies the epilogue to one sum.
func (p *Problem) end(d family.Data, i, j int, sum, tol float64) (want, wantTol float64) {
	alpha := float64(float32(p.Alpha))
	z := alpha * sum
	size := math.Abs(z)
	tol *= math.Abs(alpha)
	if p.Bias {
		bias := d["bias"].At(j)
		z += bias
		size += math.Abs(bias)
	}
	near := math.Abs(math.Abs(z)-num.F32.Overflow()) <= tol+0x1p-20*size
	if math.Abs(z) >= num.F32.Overflow() {
		z = math.Copysign(math.Inf(1), z) // as f32 has it: then silu and gelu of a negative one are NaN
	}
	z = activation(p.Act, z)
	tol *= 1.13 // the steepest slope of gelu; relu and silu are flatter
	if p.Residual {
		x := d["residual"].At(i, j)
		z += x
		size += math.Abs(x)
	}
	if !p.plain() {
		tol += 0x1p-20 * size
	}
	if near {
		return z, math.Inf(1)
	}
	return z, family.Rounded(p.out(), z, tol)
}

// plain reports whether C is the product itself.
func (p *Problem) plain() bool { return !p.Bias && !p.Residual && p.Alpha == 1 && p.Act == "none" }

func activation(act string, x float64) float64 {
	switch act {
	case "relu":
		return max(x, 0)
	case "silu":
		return x / (1 + math.Exp(-x))
	case "gelu":
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x
}

// Parts draws tiles of C. With split > 1 a part runs all the splits of its tile, then the rows
// of the sum that lie in it, or before them those of what they are added to.
func (p *Problem) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	cfg, err := p.decode(c)
	if err != nil {
		return nil, err
	}
	var parts []family.Part
	for _, at := range family.Points(r, n, family.CeilDiv(p.M, cfg.BM), family.CeilDiv(p.N, cfg.BN)) {
		i, j := at[0], at[1]
		region := family.Region{Out: "c", Lo: []int{i * cfg.BM, j * cfg.BN}, Hi: []int{min(p.M, (i+1)*cfg.BM), min(p.N, (j+1)*cfg.BN)}}
		parts = append(parts, family.Part{Tiles: p.steps(cfg, i, j), Regions: []family.Region{region}})
	}
	return parts, nil
}

// steps lists the points of each launch that tile (i, j) needs.
func (p *Problem) steps(cfg config, i, j int) [][][]int {
	if cfg.split == 1 {
		return [][][]int{{{i, j}}}
	}
	var product, sum [][]int
	for s := range cfg.split {
		product = append(product, []int{i, j, s})
	}
	for row := i * cfg.BM; row < min(p.M, (i+1)*cfg.BM); row += reduceRows {
		sum = append(sum, []int{row / reduceRows, j})
	}
	if cfg.atomic == 1 {
		return [][][]int{sum, product}
	}
	return [][][]int{product, sum}
}
