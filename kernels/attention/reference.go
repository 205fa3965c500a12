package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Expect computes a region of O or LSE.
//
// Tolerances, with u the unit roundoff of the tensors' type and s = sqrt(sum of p^2 v^2)
// over the normalised weights p:
//
//   - O: (4u + Sk 2^-23 + 2^-14) s for weights rounded to the type before the second
//     product (4u bounds up to 16 terms, and is 7 standard deviations of many), for its
//     accumulation in f32, and for the scores' errors and the approximate exponential;
//     then O is rounded to its own type. Weights too small for normal numbers of an 8-bit
//     type err by 2^-18 of the largest at most, which the first term covers, as it does
//     what tensor cores lose of sums of 8-bit floats, 2 family.NarrowSum(Sk) s or less.
//   - LSE: 2^-20 (1 + |LSE|) + sqrt(Sk) 2^-21 + D 2^-23 g, for the last operations, the
//     sum of the weights, and the scores, whose products have a root sum of squares of
//     about g = scale |q| |k| / sqrt(D). Scores of 8-bit floats err by e g more, with e =
//     family.NarrowSum(D), each by itself but for what they lose of their own size, since
//     sums are cut off towards zero: LSE by 2 e g sqrt(sum of p^2) + e/2 |sum of p score|.
//
// A key left out changes LSE by about 1/Sk, above this for Sk up to about 2^13, of 8-bit
// floats up to about 2^10.
func (p *Problem) Expect(d family.Data, r family.Region) (family.Expected, error) {
	var e family.Expected
	switch r.Out {
	case "o":
		for b := r.Lo[0]; b < r.Hi[0]; b++ {
			heads := make([][]Row, r.Hi[2])
			for h := r.Lo[2]; h < r.Hi[2]; h++ {
				heads[h] = p.rows(d, b, h, r.Lo[1], r.Hi[1])
			}
			for i := range r.Hi[1] - r.Lo[1] {
				for h := r.Lo[2]; h < r.Hi[2]; h++ {
					heads[h][i].ExpectO(&e, p.elem(), p.out(), p.SeqKV, r.Lo[3], r.Hi[3])
				}
			}
		}
	case "lse":
		for b := r.Lo[0]; b < r.Hi[0]; b++ {
			for h := r.Lo[1]; h < r.Hi[1]; h++ {
				for _, x := range p.rows(d, b, h, r.Lo[2], r.Hi[2]) {
					x.ExpectLSE(&e, p.elem(), p.SeqKV)
				}
			}
		}
	default:
		return e, fmt.Errorf("attention has no output %q: want o or lse", r.Out)
	}
	return e, nil
}

// Row is one query's softmax in progress: the largest score, and sums of the weights
// e^(score - max), of their squares, of weight times score, of weight times value, and of
// the squares of that.
type Row struct {
	query                    []float64
	norm, keyNorm            float64 // of the query, of the longest key seen
	scale                    float64
	max, sum, square, scores float64
	acc, squares             []float64
}

// NewRow begins a row of so many values. The query's length is a multiple of 4.
func NewRow(query []float64, values int, scale float64) Row {
	return Row{query: query, norm: Norm(query), scale: scale, max: math.Inf(-1), acc: make([]float64, values), squares: make([]float64, values)}
}

// See takes in a key, whose length the caller knows, and its value.
func (x *Row) See(key, value []float64, length float64) {
	x.keyNorm = max(x.keyNorm, length)
	x.add(x.scale*dot(x.query, key), value)
}

// ExpectO adds elements lo to hi of O, of type out, for a row of at most keys keys, whose
// weights are rounded to type e.
func (x *Row) ExpectO(to *family.Expected, e, out ir.Elem, keys, lo, hi int) {
	weights := 4*family.UnitRoundoff(e) + float64(keys)*0x1p-23 + 0x1p-14
	for j := lo; j < hi; j++ {
		var want, tol float64
		if x.sum > 0 {
			want = x.acc[j] / x.sum
			tol = family.Rounded(out, want, weights*math.Sqrt(x.squares[j])/x.sum)
		}
		to.Want = append(to.Want, want)
		to.Tol = append(to.Tol, tol)
	}
}

// ExpectLSE adds the LSE of a row of at most keys keys, whose scores are products of type e.
func (x *Row) ExpectLSE(to *family.Expected, e ir.Elem, keys int) {
	want := math.Inf(-1)
	if x.sum > 0 {
		want = x.max + math.Log(x.sum)
	}
	d := float64(len(x.query))
	g := x.scale * x.norm * x.keyNorm / math.Sqrt(d)
	tol := 0x1p-20*(1+math.Abs(want)) + math.Sqrt(float64(keys))*0x1p-21 + d*0x1p-23*g
	if e.Bits() == 8 && x.sum > 0 {
		tol += family.NarrowSum(len(x.query)) * (2*g*math.Sqrt(x.square) + math.Abs(x.scores)/2) / x.sum
	}
	to.Want = append(to.Want, want)
	to.Tol = append(to.Tol, tol)
}

// rows goes over the keys of a head once for queries lo to hi.
func (p *Problem) rows(d family.Data, b, h, lo, hi int) []Row {
	q, k, v := d["q"], d["k"], d["v"]
	kvHead := h / (p.Heads / p.KVHeads)
	scale, ofV := p.scale(), 1.0
	if p.small() {
		scale *= d["q_scale"].At(b, kvHead) * d["k_scale"].At(b, kvHead)
		ofV = d["v_scale"].At(b, kvHead)
	}
	rows := make([]Row, hi-lo)
	for i := range rows {
		query := make([]float64, p.HeadDim)
		q.Row(query, q.Offset(b, lo+i, h, 0))
		rows[i] = NewRow(query, p.HeadDimV, scale)
	}
	key, value := make([]float64, p.HeadDim), make([]float64, p.HeadDimV)
	for j := range p.sees(hi - 1) {
		k.Row(key, k.Offset(b, j, kvHead, 0))
		v.Row(value, v.Offset(b, j, kvHead, 0))
		for i := range value {
			value[i] *= ofV
		}
		n := Norm(key)
		for i := range rows {
			if j < p.sees(lo+i) {
				rows[i].See(key, value, n)
			}
		}
	}
	return rows
}

// add takes one key's score and value in.
func (x *Row) add(score float64, value []float64) {
	if score > x.max {
		r := math.Exp(x.max - score)
		x.max = score
		x.sum *= r
		x.square *= r * r
		x.scores *= r
		for i := range x.acc {
			x.acc[i] *= r
			x.squares[i] *= r * r
		}
	}
	w := math.Exp(score - x.max)
	x.sum += w
	x.square += w * w
	x.scores += w * score
	acc, squares := x.acc[:len(value)], x.squares[:len(value)]
	for i, v := range value {
		t := w * v
		acc[i] += t
		squares[i] += t * t
	}
}

// dot multiplies vectors whose length is a multiple of 4; four chains of additions keep
// the processor busy.
func dot(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	y = y[:len(x)]
	for i := 0; i+3 < len(x); i += 4 {
		s0 += x[i] * y[i]
		s1 += x[i+1] * y[i+1]
		s2 += x[i+2] * y[i+2]
		s3 += x[i+3] * y[i+3]
	}
	return s0 + s1 + s2 + s3
}

// Norm is the length of a vector of a multiple of 4 elements.
func Norm(x []float64) float64 { return math.Sqrt(dot(x, x)) }

// Parts draws tiles of queries, with the rows of O and LSE they write.
func (p *Problem) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	cfg, err := p.decode(c)
	if err != nil {
		return nil, err
	}
	var parts []family.Part
	for _, at := range family.Points(r, n, p.Batch, p.Heads, family.CeilDiv(p.Seq, cfg.BM)) {
		b, h, m := at[0], at[1], at[2]
		lo, hi := m*cfg.BM, min(p.Seq, (m+1)*cfg.BM)
		parts = append(parts, family.Part{
			Tiles: [][][]int{{slices.Insert([]int{b, h}, rowAxis[cfg.order], m)}},
			Regions: []family.Region{
				{Out: "o", Lo: []int{b, lo, h, 0}, Hi: []int{b + 1, hi, h + 1, p.HeadDimV}},
				{Out: "lse", Lo: []int{b, h, lo}, Hi: []int{b + 1, h + 1, hi}},
			},
		})
	}
	return parts, nil
}
