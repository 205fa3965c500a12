package paged

import (
	"fmt"
	"math/rand/v2"

	"github.com/kgen-dev/kgen/kernels/attention"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Expect computes a region of o or lse, with attention's tolerances for as many keys as
// a query sees.
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
					x := p.row(d, func(i int) int32 { return table.page(b, i) }, b, t, h, g)
					lo, hi := p.sees(p.length(b), t)
					if r.Out == "lse" {
						x.ExpectLSE(&e, p.elem(), hi-lo)
					} else {
						x.ExpectO(&e, p.elem(), p.elem(), hi-lo, r.Lo[4], r.Hi[4])
					}
				}
			}
		}
	}
	return e, nil
}

func (p *Problem) row(d family.Data, pages func(i int) int32, b, t, h, g int) attention.Row {
	q, key, value := make([]float64, p.HeadDim), make([]float64, p.HeadDim), make([]float64, p.HeadDim)
	d["q"].Row(q, d["q"].Offset(b, t, h, g, 0))
	x := attention.NewRow(q, len(q), p.scale())
	lo, hi := p.sees(p.length(b), t)
	for i := lo; i < hi; i++ {
		at := p.at(int(pages(i/p.Page)), i%p.Page, h, 0)
		d["k"].Row(key, d["k"].Offset(at...))
		d["v"].Row(value, d["v"].Offset(at...))
		x.See(key, value, attention.Norm(key))
	}
	return x
}

// Parts draws tiles of rows with all their pieces.
func (p *Problem) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	cfg, err := decode(c)
	if err != nil {
		return nil, err
	}
	var parts []family.Part
	for _, at := range family.Points(r, n, family.CeilDiv(p.rows(), cfg.BM), p.KVHeads, p.Batch) {
		m, h, b := at[0], at[1], at[2]
		lo, hi := m*cfg.BM, min(p.rows(), (m+1)*cfg.BM)
		part := family.Part{Tiles: [][][]int{{at}}, Regions: p.regions(b, h, lo, hi)}
		if cfg.chunk > 0 {
			var attend, join [][]int
			for s := range family.CeilDiv(p.entries()*p.Page, cfg.chunk) {
				attend = append(attend, []int{m, h, b, s})
			}
			for i := lo / joinRows; i < family.CeilDiv(hi, joinRows); i++ {
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
