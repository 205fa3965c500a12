package paged

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Expect computes a region of o or lse. The tolerances are those of attention: for o
// (4u + keys 2^-23 + 2^-14) sqrt(sum of p^2 v^2) over the normalised weights p, with u
// the unit roundoff of the type; for lse 2^-20 (1 + |lse|) + sqrt(keys) 2^-21 +
// D 2^-23 g, with g the root sum of squares of a score's products, scale |q| |k| /
// sqrt(D).
func (p *Problem) Expect(d family.Data, r family.Region) (family.Expected, error) {
	var e family.Expected
	if r.Out != "o" && r.Out != "lse" {
		return e, fmt.Errorf("paged attention has no output %q: want o or lse", r.Out)
	}
	table := p.table()
	for b := r.Lo[0]; b < r.Hi[0]; b++ {
		for t := r.Lo[1]; t < r.Hi[1]; t++ {
			for h := r.Lo[2]; h < r.Hi[2]; h++ {
				for g := r.Lo[3]; g < r.Hi[3]; g++ {
					x := p.row(d, table[b*p.entries():(b+1)*p.entries()], b, t, h, g)
					if r.Out == "lse" {
						p.expectLSE(&e, x)
					} else {
						p.expectO(&e, x, r.Lo[4], r.Hi[4])
					}
				}
			}
		}
	}
	return e, nil
}

// row is one query's softmax: the keys it saw, the largest score, and sums of the
// weights e^(score - max), of weight times value, and of the squares of those.
type row struct {
	keys         int
	norms        float64 // of the query times that of the longest key
	max, sum     float64
	acc, squares []float64
}

func (p *Problem) row(d family.Data, pages []int32, b, t, h, g int) row {
	x := row{max: math.Inf(-1), acc: make([]float64, p.HeadDim), squares: make([]float64, p.HeadDim)}
	q, key, value := make([]float64, p.HeadDim), make([]float64, p.HeadDim), make([]float64, p.HeadDim)
	d["q"].Row(q, d["q"].Offset(b, t, h, g, 0))
	lo, hi := p.sees(p.length(b), t)
	x.keys = hi - lo
	scores := make([]float64, 0, x.keys)
	for i := lo; i < hi; i++ {
		d["k"].Row(key, d["k"].Offset(p.at(int(pages[i/p.Page]), i%p.Page, h, 0)...))
		s := p.scale() * dot(q, key)
		scores = append(scores, s)
		x.max = max(x.max, s)
		x.norms = max(x.norms, math.Sqrt(dot(q, q)*dot(key, key)))
	}
	for i := lo; i < hi; i++ {
		d["v"].Row(value, d["v"].Offset(p.at(int(pages[i/p.Page]), i%p.Page, h, 0)...))
		w := math.Exp(scores[i-lo] - x.max)
		x.sum += w
		for j, v := range value {
			x.acc[j] += w * v
			x.squares[j] += w * v * w * v
		}
	}
	return x
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func (p *Problem) expectO(e *family.Expected, x row, lo, hi int) {
	weights := 4*family.UnitRoundoff(p.elem()) + float64(x.keys)*0x1p-23 + 0x1p-14
	for j := lo; j < hi; j++ {
		var want, tol float64
		if x.sum > 0 {
			want = x.acc[j] / x.sum
			tol = family.Rounded(p.elem(), want, weights*math.Sqrt(x.squares[j])/x.sum)
		}
		e.Want = append(e.Want, want)
		e.Tol = append(e.Tol, tol)
	}
}

func (p *Problem) expectLSE(e *family.Expected, x row) {
	want := math.Inf(-1)
	if x.sum > 0 {
		want = x.max + math.Log(x.sum)
	}
	g := p.scale() * x.norms / math.Sqrt(float64(p.HeadDim))
	tol := 0x1p-20*(1+math.Abs(want)) + math.Sqrt(float64(x.keys))*0x1p-21 + float64(p.HeadDim)*0x1p-23*g
	e.Want = append(e.Want, want)
	e.Tol = append(e.Tol, tol)
}

// Parts draws tiles of rows with all their pieces.
func (p *Problem) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	cfg, err := decode(c)
	if err != nil {
		return nil, err
	}
	var parts []family.Part
	for _, at := range family.Points(r, n, ceil(p.rows(), cfg.BM), p.KVHeads, p.Batch) {
		m, h, b := at[0], at[1], at[2]
		lo, hi := m*cfg.BM, min(p.rows(), (m+1)*cfg.BM)
		part := family.Part{Tiles: [][][]int{{at}}, Regions: p.regions(b, h, lo, hi)}
		if cfg.chunk > 0 {
			var attend, join [][]int
			for s := range ceil(p.entries()*p.Page, cfg.chunk) {
				attend = append(attend, []int{m, h, b, s})
			}
			for i := lo / joinRows; i < ceil(hi, joinRows); i++ {
				join = append(join, []int{i, h, b})
			}
			part.Tiles = [][][]int{attend, join}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// regions are the boxes of o and lse that rows lo to hi of a head fill: whole tokens,
// and parts of the first and the last.
func (p *Problem) regions(b, h, lo, hi int) []family.Region {
	g := p.group()
	var regions []family.Region
	for lo < hi {
		t, from := lo/g, lo%g
		tokens, to := 1, min(g, from+hi-lo)
		if from == 0 && hi-lo >= g {
			tokens, to = (hi-lo)/g, g
		}
		box := func(out string, dims ...int) family.Region {
			return family.Region{Out: out, Lo: append([]int{b, t, h, from}, make([]int, len(dims))...), Hi: append([]int{b + 1, t + tokens, h + 1, to}, dims...)}
		}
		regions = append(regions, box("o", p.HeadDim), box("lse"))
		lo += tokens * (to - from)
	}
	return regions
}
