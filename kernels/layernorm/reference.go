package layernorm

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kgen-dev/kgen/ir/num"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Parts draws blocks of rows.
func (p *Problem) Parts(c space.Config, r *rand.Rand, n int) ([]family.Part, error) {
	cfg, err := decode(c)
	if err != nil {
		return nil, err
	}
	var parts []family.Part
	for _, at := range family.Points(r, n, (p.Rows+cfg.BM-1)/cfg.BM) {
		lo := at[0] * cfg.BM
		hi := min(p.Rows, lo+cfg.BM)
		part := family.Part{Tiles: [][][]int{{at}}}
		for _, a := range p.Args() {
			if !a.Out {
				continue
			}
			region := family.Region{Out: a.Name, Lo: []int{lo}, Hi: []int{hi}}
			if len(a.Dims) == 2 {
				region.Lo, region.Hi = append(region.Lo, 0), append(region.Hi, p.Cols)
			}
			part.Regions = append(part.Regions, region)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// roundoff is f32's unit roundoff.
const roundoff = 0x1p-24

// row is one row's t and its moments.
type row struct {
	t, tol     []float64 // t, and how far the f32 value may be off
	mean, rstd float64
	meanTol    float64 // absolute
	rstdTol    float64 // relative
}

// row computes row i. An f32 t has two roundings, of the product with the scale (whose
// own is a third) and of the sum with the residual.
//
// Bounds of sums are those of independent roundings, eight standard deviations wide, for
// inputs of mean 0 as family.NewData draws them: a level of the tree of additions adds
// the roundoff times the root of the sum of squares, and there are at most 96 of
// them and the merges: 64 elements in a thread, 10 halvings, and 22 for products. Squares don't cancel,
// and the roundings under a few large ones may all go one way: every level counts.
func (p *Problem) row(d family.Data, i int) row {
	x, residual := make([]float64, p.Cols), make([]float64, p.Cols)
	d["x"].Row(x, d["x"].Offset(i, 0))
	if p.Residual != none {
		d["residual"].Row(residual, d["residual"].Offset(i, 0))
	}
	r := row{t: make([]float64, p.Cols), tol: make([]float64, p.Cols)}
	threshold := p.threshold()
	scale := num.DropoutScale(threshold)
	n := float64(p.Cols)
	sum, power, off := 0.0, 0.0, 0.0 // power and off: sums of squares of t and of its tolerance
	for j := range x {
		v := x[j]
		if threshold > 0 {
			if uint32(num.Random16(uint64(p.Seed), 0, 0, uint32(i), uint32(j))) >= threshold {
				v *= scale
			} else {
				v = 0
			}
		}
		r.t[j] = v + residual[j]
		r.tol[j] = roundoff * (2*math.Abs(v) + math.Abs(r.t[j]))
		sum += r.t[j]
		power += r.t[j] * r.t[j]
		off += r.tol[j] * r.tol[j]
	}
	merges := n/(1<<15) + 1 // of tiles, one after the other
	if p.Norm == "layer" {
		r.mean = sum / n
		r.meanTol = roundoff*math.Abs(r.mean) + 8*math.Sqrt(roundoff*roundoff*(96+merges)*power+off)/n
	}
	squares, squaresTol := 0.0, 0.0
	for j, t := range r.t {
		dev := t - r.mean
		tol := r.tol[j] + r.meanTol + roundoff*math.Abs(dev)
		squares += dev * dev
		squaresTol += 2*math.Abs(dev)*tol + tol*tol
	}
	variance := squares/n + float64(float32(p.Eps))
	r.rstd = 1 / math.Sqrt(variance)
	// The square root halves a relative error; 4 roundings for its approximation.
	r.rstdTol = ((96+merges)*roundoff*squares+squaresTol)/n/variance/2 + 4*roundoff
	return r
}

// Expect computes rows of an output.
func (p *Problem) Expect(d family.Data, r family.Region) (family.Expected, error) {
	var e family.Expected
	add := func(a *family.Tensor, want, tol float64) {
		e.Want = append(e.Want, want)
		e.Tol = append(e.Tol, family.Rounded(a.Elem, want, tol))
	}
	out, ok := d[r.Out]
	if !ok || !out.Out {
		return e, fmt.Errorf("layernorm has no output %q: want %s", r.Out, p.outputs())
	}
	for i := r.Lo[0]; i < r.Hi[0]; i++ {
		row := p.row(d, i)
		switch r.Out {
		case "mean":
			add(out, row.mean, row.meanTol)
		case "rstd":
			add(out, row.rstd, row.rstdTol*row.rstd)
		case "sum":
			for j := r.Lo[1]; j < r.Hi[1]; j++ {
				add(out, row.t[j], row.tol[j])
			}
		case "y":
			for j := r.Lo[1]; j < r.Hi[1]; j++ {
				want, tol := p.element(d, row, j)
				add(out, want, tol)
			}
		}
	}
	return e, nil
}

// element computes y in column j, and how far its f32 value may be off.
func (p *Problem) element(d family.Data, r row, j int) (want, tol float64) {
	dev := r.t[j] - r.mean
	want = dev * r.rstd
	tol = r.rstd*(r.tol[j]+r.meanTol+roundoff*math.Abs(dev)) + math.Abs(want)*(r.rstdTol+roundoff)
	if p.Weight != none {
		w := d["weight"].At(j)
		want, tol = want*w, tol*math.Abs(w)
		tol += roundoff * math.Abs(want)
	}
	if p.Bias != none {
		want += d["bias"].At(j)
		tol += roundoff * math.Abs(want)
	}
	return want, tol
}

// outputs names what the kernel writes.
func (p *Problem) outputs() string {
	names := ""
	for _, a := range p.Args() {
		if !a.Out {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += a.Name
	}
	return names
}
