package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
)

func data(t *testing.T, p *Problem) family.Data {
	t.Helper()
	d, err := family.NewData(p.Args(), 7)
	require.NoError(t, err)
	return d
}

func whole(p *Problem) family.Region {
	return family.Region{Out: "c", Lo: []int{0, 0}, Hi: []int{p.M, p.N}}
}

// product multiplies as a GPU could: in f32, either one product at a time or eight at
// once with the sum cut off to 24 bits, the way a tensor core's adder loses bits. Terms
// from skip to skip+dropped are left out.
func product(p *Problem, d family.Data, i, j int, tensor bool, skip, dropped int) float64 {
	a, b := p.vectors(d["a"], i, i+1, 0, p.K, p.transposedA())[0], p.vectors(d["b"], j, j+1, 0, p.K, !p.transposedB())[0]
	var acc float64
	for k := 0; k < p.K; k += 8 {
		sum := acc
		for l := k; l < min(k+8, p.K); l++ {
			if l >= skip && l < skip+dropped {
				continue
			}
			sum += a[l] * b[l]
			if !tensor {
				sum = float64(float32(sum))
			}
		}
		acc = sum
		if tensor {
			acc = cut(sum)
		}
	}
	return acc
}

// cut rounds to f32 towards zero.
func cut(x float64) float64 {
	y := float32(x)
	if math.Abs(float64(y)) > math.Abs(x) {
		y = math.Nextafter32(y, 0)
	}
	return float64(y)
}

// narrow multiplies as the tensor cores of compute capability 9.0 do 8-bit floats, 32
// products at a time: what lies 13 bits below the largest exponent is cut off. Steps of
// 128 are added in f32.
func narrow(p *Problem, d family.Data, i, j, skip, dropped int) float64 {
	a, b := p.vectors(d["a"], i, i+1, 0, p.K, p.transposedA())[0], p.vectors(d["b"], j, j+1, 0, p.K, !p.transposedB())[0]
	var sum float32
	for step := 0; step < p.K; step += 128 {
		var acc float64
		for from := step; from < min(step+128, p.K); from += 32 {
			terms, top := []float64{acc}, exponent(acc)
			for k := from; k < min(from+32, p.K); k++ {
				if k < skip || k >= skip+dropped {
					terms = append(terms, a[k]*b[k])
					top = max(top, exponent(a[k])+exponent(b[k]))
				}
			}
			unit := math.Ldexp(1, top-13)
			acc = 0
			for _, x := range terms {
				acc += math.Trunc(x/unit) * unit
			}
			unit = math.Ldexp(1, exponent(acc)-13)
			acc = math.Trunc(acc/unit) * unit
		}
		sum += float32(acc)
	}
	return float64(sum)
}

func exponent(x float64) int {
	if x == 0 {
		return -126
	}
	return math.Ilogb(x)
}

// What a GPU computes is within the tolerance of every element; a step of K left out, or
// at K = 4096 a single term, is not.
func TestToleranceHoldsAndCatchesADroppedTerm(t *testing.T) {
	for _, typ := range []string{"f16", "bf16", "tf32", "f32", "e4m3", "e5m2"} {
		for _, k := range []int{1, 37, 512, 4096} {
			p := &Problem{M: 3, N: 5, K: k, Type: typ, Layout: "nt", Act: "none", Alpha: 1}
			p.Out = p.elem().String()
			tensor := func(p *Problem, d family.Data, i, j, skip, dropped int) float64 {
				return product(p, d, i, j, true, skip, dropped)
			}
			if p.small() {
				p.Out, tensor = "f32", narrow
			}
			d := data(t, p)
			e, err := p.Expect(d, whole(p))
			require.NoError(t, err)
			terms, steps := 0, 0
			out := family.Arg{Name: "x", Elem: p.out(), Dims: []int{1}, Strides: []int{1}}
			for n := range e.Want {
				near := func(got float64) bool {
					cell, err := family.NewTensor(out)
					require.NoError(t, err)
					cell.Set(got, 0)
					return cell.Check(out.Whole(), family.Expected{Want: e.Want[n : n+1], Tol: e.Tol[n : n+1]}) == nil
				}
				i, j := n/p.N, n%p.N
				require.True(t, near(product(p, d, i, j, false, 0, 0)), "%s K=%d, one by one", typ, k)
				require.True(t, near(tensor(p, d, i, j, 0, 0)), "%s K=%d, tensor core", typ, k)
				if !near(tensor(p, d, i, j, k/2, 1)) {
					terms++
				}
				if !near(tensor(p, d, i, j, k-min(k, 16), 16)) {
					steps++
				}
			}
			// A 16-bit C hides a term in its own rounding where the sum is large.
			least := map[bool]int{true: 12, false: 5}[p.out() == ir.F32]
			if p.small() && k > 1000 {
				least = 10
			}
			require.GreaterOrEqual(t, terms, least, "%s K=%d: a dropped term", typ, k)
			require.GreaterOrEqual(t, steps, 10, "%s K=%d: a dropped step", typ, k)
		}
	}
}

// Sums of 8-bit floats have an eighth of the tolerance as their error, or less.
func TestNarrowSums(t *testing.T) {
	for _, typ := range []string{"e4m3", "e5m2"} {
		p := &Problem{M: 20, N: 20, K: 1000, Type: typ, Out: "f32", Layout: "nt", Act: "none", Alpha: 1}
		d := data(t, p)
		e, err := p.Expect(d, whole(p))
		require.NoError(t, err)
		var squares, most float64
		for n, want := range e.Want {
			x := (narrow(p, d, n/p.N, n%p.N, 0, 0) - want) / e.Tol[n]
			squares += x * x
			most = max(most, math.Abs(x))
		}
		typical := math.Sqrt(squares / float64(len(e.Want)))
		require.Greater(t, typical, 1./32, typ)
		require.Less(t, typical, 1./8, typ)
		require.Less(t, most, 1./2, typ)
	}
}

func TestEpilogue(t *testing.T) {
	base := &Problem{M: 9, N: 11, K: 20, Type: "f32", Out: "f32", Layout: "tn", Act: "none", Alpha: 1, Pad: 2}
	sums, err := base.Expect(data(t, base), whole(base))
	require.NoError(t, err)
	for act, f := range map[string]func(float64) float64{
		"none": func(x float64) float64 { return x },
		"relu": func(x float64) float64 { return math.Max(x, 0) },
		"silu": func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		// GELU itself: the tanh form stays within 5e-4 of it.
		"gelu": func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 },
	} {
		p := *base
		p.Act, p.Bias, p.Residual, p.Alpha = act, true, true, -0.75
		d := data(t, &p)
		e, err := p.Expect(d, whole(&p))
		require.NoError(t, err)
		for n, got := range e.Want {
			i, j := n/p.N, n%p.N
			want := f(-0.75*sums.Want[n]+d["bias"].At(j)) + d["residual"].At(i, j)
			require.InDelta(t, want, got, map[bool]float64{true: 5e-4, false: 1e-12}[act == "gelu"], act)
			require.Less(t, e.Tol[n], 1e-4)
		}
	}
}

// A region is computed the same alone as among the whole, in every layout.
func TestRegionsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		p := awkward(r)
		d := data(t, p)
		all, err := p.Expect(d, whole(p))
		require.NoError(t, err)
		i, j := r.IntN(p.M), r.IntN(p.N)
		one, err := p.Expect(d, family.Region{Out: "c", Lo: []int{i, j}, Hi: []int{i + 1, j + 1}})
		require.NoError(t, err)
		require.Equal(t, family.Expected{Want: all.Want[i*p.N+j : i*p.N+j+1], Tol: all.Tol[i*p.N+j : i*p.N+j+1]}, one)
		if p.Type != "tf32" && p.plain() {
			require.InDelta(t, byIndex(p, d, i, j), one.Want[0], 1e-9)
		}
	}
	_, err := awkward(r).Expect(nil, family.Region{Out: "d"})
	require.ErrorContains(t, err, `gemm has no output "d": want c`)
}

// byIndex multiplies element by element.
func byIndex(p *Problem, d family.Data, i, j int) float64 {
	var sum float64
	for k := range p.K {
		a, b := []int{i, k}, []int{k, j}
		if p.Layout[0] == 't' {
			a = []int{k, i}
		}
		if p.Layout[1] == 't' {
			b = []int{j, k}
		}
		sum += d["a"].At(a...) * d["b"].At(b...)
	}
	return sum
}

func BenchmarkExpectTile(b *testing.B) {
	p := &Problem{M: 4096, N: 4096, K: 4096, Type: "bf16", Out: "bf16", Layout: "nn", Act: "none", Alpha: 1}
	d, err := family.NewData(p.Args(), 1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Expect(d, family.Region{Out: "c", Lo: []int{128, 128}, Hi: []int{256, 256}}); err != nil {
			b.Fatal(err)
		}
	}
}
