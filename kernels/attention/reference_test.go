package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/kernels/family"
)

func data(t testing.TB, p *Problem) family.Data {
	t.Helper()
	d, err := family.NewData(p.Args(), 7)
	require.NoError(t, err)
	return d
}

// blocked is a row as a GPU computes it: f32 throughout, keys step at a time under a
// running maximum, weights rounded to the tensors' type before they meet V. Keys from
// skip to skip+dropped are left out.
func blocked(p *Problem, d family.Data, b, h, i, step, skip, dropped int) (o []float32, lse float32) {
	kvHead := h / (p.Heads / p.KVHeads)
	c := float32(p.scale() * math.Log2E)
	top, sum := float32(math.Inf(-1)), float32(0)
	o = make([]float32, p.HeadDimV)
	for n := 0; n < p.sees(i); n += step {
		scores := map[int]float32{}
		old := top
		for j := n; j < min(n+step, p.sees(i)); j++ {
			if j >= skip && j < skip+dropped {
				continue
			}
			var s float32
			for x := range p.HeadDim {
				s += float32(d["q"].At(b, i, h, x) * d["k"].At(b, j, kvHead, x))
			}
			scores[j] = s
			top = max(top, s)
		}
		if math.IsInf(float64(top), -1) {
			continue
		}
		r := float32(math.Exp2(float64((old - top) * c)))
		sum *= r
		for x := range o {
			o[x] *= r
		}
		for j := n; j < n+step; j++ {
			if s, ok := scores[j]; ok {
				w := float32(math.Exp2(float64(s*c - top*c)))
				sum += w
				weight := round(p, float64(w))
				for x := range o {
					o[x] += float32(weight * d["v"].At(b, j, kvHead, x))
				}
			}
		}
	}
	if sum == 0 {
		return o, float32(math.Inf(-1))
	}
	for x := range o {
		o[x] = float32(round(p, float64(o[x]/sum)))
	}
	return o, top*float32(p.scale()) + float32(math.Log(float64(sum)))
}

// round rounds to the tensors' type.
func round(p *Problem, x float64) float64 {
	cell, err := family.NewTensor(family.Arg{Name: "x", Elem: p.elem(), Dims: []int{1}, Strides: []int{1}})
	if err != nil {
		panic(err)
	}
	cell.Set(x, 0)
	return cell.At(0)
}

// near reports whether O and LSE of a row are within their tolerances.
func near(t *testing.T, p *Problem, d family.Data, b, h, i int, o []float32, lse float32) (okO, okLSE bool) {
	t.Helper()
	e, err := p.Expect(d, family.Region{Out: "o", Lo: []int{b, i, h, 0}, Hi: []int{b + 1, i + 1, h + 1, p.HeadDimV}})
	require.NoError(t, err)
	okO = true
	for x := range o {
		okO = okO && math.Abs(float64(o[x])-e.Want[x]) <= e.Tol[x]
	}
	e, err = p.Expect(d, family.Region{Out: "lse", Lo: []int{b, h, i}, Hi: []int{b + 1, h + 1, i + 1}})
	require.NoError(t, err)
	return okO, float64(lse) == e.Want[0] || math.Abs(float64(lse)-e.Want[0]) <= e.Tol[0]
}

// What a GPU computes is within the tolerances; a step of keys left out is caught by
// both outputs, a single key by LSE.
func TestToleranceHoldsAndCatchesDroppedKeys(t *testing.T) {
	for _, typ := range []string{"f16", "bf16"} {
		for _, keys := range []int{1, 70, 1000, 4096} {
			p := &Problem{Batch: 1, Heads: 2, KVHeads: 1, Seq: 300, SeqKV: keys, HeadDim: 64, HeadDimV: 64, Causal: false, Type: typ, Out: typ}
			d := data(t, p)
			i, h := 123, 1
			o, lse := blocked(p, d, 0, h, i, 64, 0, 0)
			okO, okLSE := near(t, p, d, 0, h, i, o, lse)
			require.True(t, okO && okLSE, "%s, %d keys", typ, keys)

			o, lse = blocked(p, d, 0, h, i, 64, keys-1-(keys-1)%64, 64)
			okO, okLSE = near(t, p, d, 0, h, i, o, lse)
			require.False(t, okO || okLSE, "%s, %d keys, the last step dropped", typ, keys)

			_, lse = blocked(p, d, 0, h, i, 64, keys/2, 1)
			_, okLSE = near(t, p, d, 0, h, i, o, lse)
			require.False(t, okLSE, "%s, %d keys, one dropped", typ, keys)
		}
	}
}

// Scores of 8-bit floats are off by more, yet most keys left out of 512 show in LSE.
func TestToleranceOfSmallTypesCatchesDroppedKeys(t *testing.T) {
	for _, typ := range []string{"e4m3", "e5m2"} {
		p := &Problem{Batch: 1, Heads: 1, KVHeads: 1, Seq: 4, SeqKV: 512, HeadDim: 128, HeadDimV: 16, Type: typ, Out: "bf16"}
		d := data(t, p)
		e, err := p.Expect(d, family.Region{Out: "lse", Lo: []int{0, 0, 0}, Hi: []int{1, 1, p.Seq}})
		require.NoError(t, err)
		scale := p.scale() * d["q_scale"].At(0, 0) * d["k_scale"].At(0, 0)
		caught := 0
		for i, want := range e.Want {
			query, key := make([]float64, p.HeadDim), make([]float64, p.HeadDim)
			d["q"].Row(query, d["q"].Offset(0, i, 0, 0))
			for j := range p.SeqKV {
				d["k"].Row(key, d["k"].Offset(0, j, 0, 0))
				weight := math.Exp(scale*dot(query, key) - want)
				if -math.Log1p(-weight) > e.Tol[i] {
					caught++
				}
			}
		}
		require.Greater(t, caught, p.Seq*p.SeqKV*3/4, typ)
	}
}

// Causal rows see the first keys only, aligned at the bottom right, and none at the top
// where there are fewer keys than queries.
func TestCausalRows(t *testing.T) {
	for _, p := range []*Problem{
		{Batch: 2, Heads: 2, KVHeads: 2, Seq: 7, SeqKV: 4, HeadDim: 16, HeadDimV: 16, Causal: true, Type: "f16", Out: "f16"},
		{Batch: 2, Heads: 4, KVHeads: 2, Seq: 4, SeqKV: 7, HeadDim: 16, HeadDimV: 32, Causal: true, Type: "bf16", Out: "bf16", Pad: 3},
	} {
		d := data(t, p)
		for b := range p.Batch {
			for h := range p.Heads {
				for i := range p.Seq {
					require.Equal(t, max(0, min(p.SeqKV, i+p.SeqKV-p.Seq+1)), p.sees(i))
					o, lse := blocked(p, d, b, h, i, 2, 0, 0)
					okO, okLSE := near(t, p, d, b, h, i, o, lse)
					require.True(t, okO && okLSE)
					if p.sees(i) == 0 {
						e, err := p.Expect(d, family.Region{Out: "lse", Lo: []int{b, h, i}, Hi: []int{b + 1, h + 1, i + 1}})
						require.NoError(t, err)
						require.Equal(t, math.Inf(-1), e.Want[0])
						require.Equal(t, make([]float32, p.HeadDimV), o)
					}
				}
			}
		}
	}
}

// A region is computed the same alone as among the whole.
func TestRegionsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		p := awkward(r)
		d := data(t, p)
		for _, a := range p.Args() {
			if !a.Out {
				continue
			}
			all, err := p.Expect(d, a.Whole())
			require.NoError(t, err)
			lo, hi, at := make([]int, len(a.Dims)), make([]int, len(a.Dims)), 0
			for k, n := range a.Dims {
				lo[k] = r.IntN(n)
				hi[k] = lo[k] + 1
				at = at*n + lo[k]
			}
			one, err := p.Expect(d, family.Region{Out: a.Name, Lo: lo, Hi: hi})
			require.NoError(t, err)
			require.Equal(t, family.Expected{Want: all.Want[at : at+1], Tol: all.Tol[at : at+1]}, one)
		}
	}
	_, err := awkward(r).Expect(nil, family.Region{Out: "q"})
	require.ErrorContains(t, err, `attention has no output "q": want o or lse`)
}

func BenchmarkExpectTile(b *testing.B) {
	p := &Problem{Batch: 1, Heads: 4, KVHeads: 1, Seq: 4096, SeqKV: 4096, HeadDim: 128, HeadDimV: 128, Causal: true, Type: "bf16", Out: "bf16"}
	d := data(b, p)
	for b.Loop() {
		if _, err := p.Expect(d, family.Region{Out: "o", Lo: []int{0, 3968, 3, 0}, Hi: []int{1, 4096, 4, 128}}); err != nil {
			b.Fatal(err)
		}
	}
}
