package vm

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/ir/num"
)

// Approx is what the approximate instructions give.
type Approx string

// Results of approximate instructions.
const (
	Rounded   Approx = ""        // the nearest value
	Perturbed Approx = "perturb" // another one within PTX's bounds, by the seed
)

// ParseApprox reads "round" or "perturb".
func ParseApprox(s string) (Approx, error) {
	switch s {
	case "", "round":
		return Rounded, nil
	case "perturb":
		return Perturbed, nil
	}
	return "", fmt.Errorf("approximate instructions %q: want round or perturb", s)
}

// errorBound is how far a result may be off: in units in the last place, in
// parts of the result, and absolutely.
type errorBound struct{ ulps, relative, absolute float64 }

// errorBounds are those of PTX ISA 9.7.3 and 9.7.4, by operation and type. That
// of sin and cos is for arguments up to 2 pi.
var errorBounds = map[string]errorBound{
	"div.f32": {ulps: 2}, "rcp.f32": {ulps: 1}, "ex2.f32": {ulps: 2},
	"sqrt.f32":  {relative: 0x1p-23},
	"rsqrt.f32": {relative: 1.27e-7},                                 // 2^-22.9
	"sin.f32":   {absolute: 6.74e-7}, "cos.f32": {absolute: 6.74e-7}, // 2^-20.5
	"tanh.f32": {relative: 0x1p-11},
	"ex2.f16":  {relative: 1.04e-3}, "ex2.bf16": {relative: 0x1p-7}, // 2^-9.9
	"tanh.f16": {absolute: 4.92e-4}, "tanh.bf16": {absolute: 0x1p-8}, // 2^-10.987
}

// boundOf is the bound of lg2, whose kind depends on the argument, or another's.
func boundOf(op string, t ptx.Type, x float64) errorBound {
	if op == "lg2" {
		if x > 0.5 && x < 2 {
			return errorBound{absolute: 0x1p-22}
		}
		return errorBound{relative: 0x1p-22}
	}
	return errorBounds[op+"."+t.String()]
}

// perturbation is a function of an argument and its exact result, if the device
// perturbs: a number within the bound when rounded to nearest. The same argument
// always gets the same. Zeros, infinities, NaN and results for zero, which PTX's
// tables fix, stay.
func (d *decoder) perturbation(op string, t ptx.Type) func(x, y float64) float64 {
	ft, ok := floatOf(t)
	if d.mod.dev.opt.Approx != Perturbed || !ok || ft.wide {
		return nil
	}
	plain := map[ptx.Type]ptx.Type{ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16}[t]
	if plain == ptx.NoType {
		plain = t
	}
	seed := d.mod.dev.opt.Seed
	for _, c := range op {
		seed = scatterBits(seed ^ uint64(c))
	}
	return func(x, y float64) float64 {
		if x == 0 || y == 0 || !finite(y) || math.Abs(y) > ft.f.Max()/2 || math.Abs(y) < ft.f.MinNormal() {
			return y
		}
		b := boundOf(op, plain, x)
		room := b.ulps*ft.f.ULP(y) + b.relative*math.Abs(y) + b.absolute
		// Rounding may add half a unit of where it leads.
		room -= 0.5 * ft.f.ULP(math.Abs(y)+room)
		if room <= 0 {
			return y
		}
		part := float64(scatterBits(seed^math.Float64bits(x))>>11)/(1<<52) - 1 // from -1 up to 1
		return y + 0.99*part*room
	}
}

// scatterBits scatters bits: the finaliser of SplitMix64.
func scatterBits(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// approximate are the functions of the special function unit, correctly
// rounded here; PTX bounds their error.
var approximate = map[string]func(float64) float64{
	"rcp":   func(x float64) float64 { return 1 / x },
	"sqrt":  math.Sqrt,
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"ex2":   math.Exp2,
	"lg2":   math.Log2,
	"sin":   math.Sin,
	"cos":   math.Cos,
	"tanh":  math.Tanh,
}

// approximation is the lane function of an approximate instruction; off, if not
// nil, changes its exact result.
func approximation(op string, t floatType, m floatMode, off func(x, y float64) float64) laneFn {
	f := approximate[op]
	if off != nil {
		exact := f
		f = func(x float64) float64 { return off(x, exact(x)) }
	}
	return m.wrap(t, func(a, _, _ uint64) uint64 { return t.encode(f(t.value(a)), num.Even) })
}

// perturbedQuotient is div.approx and div.full, perturbed. What is changed
// depends on both operands.
func perturbedQuotient(off func(x, y float64) float64, m floatMode) laneFn {
	t := floatType{f: num.F32}
	return m.wrap(t, func(a, b, _ uint64) uint64 {
		q := float64(f32(a)) / float64(f32(b))
		return t.encode(off(math.Float64frombits(a<<32|b), q), num.Even)
	})
}
