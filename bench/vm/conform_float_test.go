package vm_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/ir/num"
)

// format is a binary floating-point format, worked with through math/big.
type format struct {
	name     string
	bits     int
	mantissa int // stored bits
	bias     int
}

var (
	half     = format{"f16", 16, 10, 15}
	brain    = format{"bf16", 16, 7, 127}
	single   = format{"f32", 32, 23, 127}
	double   = format{"f64", 64, 52, 1023}
	formatOf = map[string]format{"f16": half, "bf16": brain, "f32": single, "f64": double}
)

func (f format) exponentBits() int { return f.bits - 1 - f.mantissa }
func (f format) inf() uint64       { return (1<<f.exponentBits() - 1) << f.mantissa }
func (f format) sign() uint64      { return 1 << (f.bits - 1) }
func (f format) nan() uint64       { return f.sign() - 1 }
func (f format) isNaN(v uint64) bool {
	return v&^f.sign() > f.inf()
}
func (f format) isInf(v uint64) bool { return v&^f.sign() == f.inf() }

// exact is a finite value.
func (f format) exact(v uint64) *big.Float {
	m, e := v&(1<<f.mantissa-1), int(v>>f.mantissa)&(1<<f.exponentBits()-1)
	if e > 0 {
		m |= 1 << f.mantissa
	} else {
		e = 1
	}
	x := new(big.Float).SetPrec(64).SetUint64(m)
	x.SetMantExp(x, e-f.bias-f.mantissa)
	if v&f.sign() != 0 {
		x.Neg(x)
	}
	return x
}

// round rounds an exact value that is not zero; mode is rn, rz, rm or rp.
func (f format) round(x *big.Float, mode string) uint64 {
	sign := uint64(0)
	a := new(big.Float).Abs(x)
	if x.Sign() < 0 {
		sign = f.sign()
	}
	_, e := new(big.Float).Copy(a).MantExp(nil), a.MantExp(nil)-1
	_ = e
	exp := a.MantExp(nil) - 1
	exp = max(exp, 1-f.bias)
	// a in units of the last place.
	units := new(big.Float).SetPrec(5000).SetMantExp(new(big.Float).SetPrec(5000).Set(a), f.mantissa-exp)
	whole, _ := units.Int(nil)
	rest := new(big.Float).SetPrec(5000).Sub(units, new(big.Float).SetInt(whole))
	up := false
	switch mode {
	case "rn":
		c := rest.Cmp(big.NewFloat(0.5))
		up = c > 0 || c == 0 && whole.Bit(0) == 1
	case "rm":
		up = rest.Sign() > 0 && sign != 0
	case "rp":
		up = rest.Sign() > 0 && sign == 0
	}
	if up {
		whole.Add(whole, big.NewInt(1))
	}
	n := whole.Uint64()
	if n >= 2<<f.mantissa {
		n >>= 1
		exp++
	}
	if n < 1<<f.mantissa {
		return sign | n // subnormal
	}
	e2 := exp + f.bias
	if e2 >= 1<<f.exponentBits()-1 {
		if mode == "rz" || mode == "rm" && sign == 0 || mode == "rp" && sign != 0 {
			return sign | (f.inf() - 1)
		}
		return sign | f.inf()
	}
	return sign | uint64(e2)<<f.mantissa | n&(1<<f.mantissa-1)
}

// native computes what is infinite, NaN or zero with the processor's doubles:
// there nothing rounds.
func (f format) value(v uint64) float64 {
	switch {
	case f.isNaN(v):
		return math.NaN()
	case f.isInf(v) && v&f.sign() != 0:
		return math.Inf(-1)
	case f.isInf(v):
		return math.Inf(1)
	case v&^f.sign() == 0 && v != 0:
		return math.Copysign(0, -1)
	}
	x, _ := f.exact(v).Float64()
	return x
}

// special is a result that is zero, infinite or NaN.
func (f format) special(x float64) uint64 {
	sign := uint64(0)
	if math.Signbit(x) {
		sign = f.sign()
	}
	switch {
	case x != x:
		return f.nan()
	case math.IsInf(x, 0):
		return sign | f.inf()
	}
	return sign
}

func (f format) finite(v ...uint64) bool {
	for _, x := range v {
		if f.isNaN(x) || f.isInf(x) {
			return false
		}
	}
	return true
}

// fma is a*b + c; add and mul are fma with a one or a zero of the right sign.
func (f format) fma(a, b, c uint64, mode string) uint64 {
	if !f.finite(a, b, c) {
		return f.special(math.FMA(f.value(a), f.value(b), f.value(c)))
	}
	p := new(big.Float).SetPrec(5000).Mul(f.exact(a), f.exact(b))
	sum := new(big.Float).SetPrec(5000).Add(p, f.exact(c))
	if sum.Sign() != 0 {
		return f.round(sum, mode)
	}
	neg := (a^b)&f.sign() != 0
	if p.Sign() == 0 && f.exact(c).Sign() == 0 && neg == (c&f.sign() != 0) {
		if neg {
			return f.sign()
		}
		return 0
	}
	if mode == "rm" { // an exact zero of unlike signs
		return f.sign()
	}
	return 0
}

func (f format) one() uint64 { return uint64(f.bias) << f.mantissa }

func (f format) mul(a, b uint64, mode string) uint64 {
	if !f.finite(a, b) || f.exact(a).Sign() == 0 || f.exact(b).Sign() == 0 {
		return f.special(f.value(a) * f.value(b))
	}
	return f.round(new(big.Float).SetPrec(5000).Mul(f.exact(a), f.exact(b)), mode)
}

func (f format) div(a, b uint64, mode string) uint64 {
	if !f.finite(a, b) || f.exact(a).Sign() == 0 || f.exact(b).Sign() == 0 {
		return f.special(f.value(a) / f.value(b))
	}
	// Enough digits that what follows them can't matter but by not being zero.
	q := new(big.Float).SetPrec(600).SetMode(big.ToZero).Quo(f.exact(a), f.exact(b))
	if back := new(big.Float).SetPrec(5000).Mul(q, f.exact(b)); back.Cmp(f.exact(a)) != 0 {
		q = new(big.Float).SetPrec(700).Mul(q, new(big.Float).SetPrec(700).Add(big.NewFloat(1), new(big.Float).SetMantExp(big.NewFloat(1), -640)))
	}
	return f.round(q, mode)
}

func (f format) sqrt(a uint64, mode string) uint64 {
	if !f.finite(a) || f.exact(a).Sign() <= 0 {
		return f.special(math.Sqrt(f.value(a)))
	}
	r := new(big.Float).SetPrec(600).Sqrt(f.exact(a))
	return f.round(r, mode)
}

// flush is .ftz.
func (f format) flush(v uint64) uint64 {
	if v&f.inf() == 0 {
		return v & f.sign()
	}
	return v
}

// floatValues favours the values where things go wrong.
func floatValues(f format) func(r *rand.Rand, bits int) uint64 {
	return func(r *rand.Rand, bits int) uint64 {
		if bits != f.bits {
			return anyBits(r, bits)
		}
		special := []uint64{
			0, f.sign(), f.inf(), f.inf() | f.sign(), f.nan(), f.inf() + 1, 1, f.sign() | 1, f.inf() - 1, f.one(),
			f.one() | f.sign(), 1 << f.mantissa, 1<<f.mantissa - 1, f.one() + 1,
		}
		near := f.one() + uint64(r.IntN(9)-4)<<f.mantissa + r.Uint64()&(1<<f.mantissa-1) // sums that round
		switch r.IntN(4) {
		case 0:
			return special[r.IntN(len(special))]
		case 1:
			return near | r.Uint64()&f.sign()
		case 2:
			return r.Uint64() & (f.sign() | 3<<f.mantissa | 1<<f.mantissa - 1) // small
		}
		return r.Uint64()
	}
}

func floatInstructions() []instruction {
	var list []instruction
	for _, name := range []string{"f16", "bf16", "f32", "f64"} {
		f := formatOf[name]
		n := f.bits
		modes := []string{"rn"}
		if n >= 32 {
			modes = []string{"rn", "rz", "rm", "rp"}
		}
		values := floatValues(f)
		for _, m := range modes {
			list = append(list,
				instruction{op: "add." + m + "." + name, dst: n, src: []int{n, n}, values: values, want: func(v []uint64) uint64 { return f.fma(v[0], f.one(), v[1], m) }},
				instruction{op: "mul." + m + "." + name, dst: n, src: []int{n, n}, values: values, want: func(v []uint64) uint64 { return f.mul(v[0], v[1], m) }},
				instruction{op: "fma." + m + "." + name, dst: n, src: []int{n, n, n}, values: values, want: func(v []uint64) uint64 { return f.fma(v[0], v[1], v[2], m) }},
				instruction{op: "sub." + m + "." + name, dst: n, src: []int{n, n}, values: values, want: func(v []uint64) uint64 {
					if f.isNaN(v[1]) {
						return f.nan()
					}
					return f.fma(v[0], f.one(), v[1]^f.sign(), m)
				}},
			)
			if n >= 32 {
				list = append(list,
					instruction{op: "div." + m + "." + name, dst: n, src: []int{n, n}, values: values, want: func(v []uint64) uint64 { return f.div(v[0], v[1], m) }},
					instruction{op: "sqrt." + m + "." + name, dst: n, src: []int{n}, values: values, want: func(v []uint64) uint64 { return f.sqrt(v[0], m) }},
					instruction{op: "rcp." + m + "." + name, dst: n, src: []int{n}, values: values, want: func(v []uint64) uint64 { return f.div(f.one(), v[0], m) }},
				)
			}
		}
		list = append(list, extremes(f, values)...)
		list = append(list, comparisonsOf(f, values)...)
	}
	f := single
	ftz := func(g func(v []uint64) uint64) func(v []uint64) uint64 {
		return func(v []uint64) uint64 {
			for i := range v {
				v[i] = f.flush(v[i])
			}
			return f.flush(g(v))
		}
	}
	sat := func(v uint64) uint64 {
		switch x := f.value(v); {
		case x != x || x <= 0:
			return 0
		case x > 1:
			return f.one()
		}
		return v
	}
	values := floatValues(f)
	list = append(list,
		instruction{op: "add.ftz.f32", dst: 32, src: []int{32, 32}, values: values, want: ftz(func(v []uint64) uint64 { return f.fma(v[0], f.one(), v[1], "rn") })},
		instruction{op: "mul.rz.ftz.f32", dst: 32, src: []int{32, 32}, values: values, want: ftz(func(v []uint64) uint64 { return f.mul(v[0], v[1], "rz") })},
		instruction{op: "fma.rn.ftz.f32", dst: 32, src: []int{32, 32, 32}, values: values, want: ftz(func(v []uint64) uint64 { return f.fma(v[0], v[1], v[2], "rn") })},
		instruction{op: "fma.rn.sat.f32", dst: 32, src: []int{32, 32, 32}, values: values, want: func(v []uint64) uint64 { return sat(f.fma(v[0], v[1], v[2], "rn")) }},
		instruction{op: "div.full.f32", dst: 32, src: []int{32, 32}, values: values, want: func(v []uint64) uint64 { return f.div(v[0], v[1], "rn") }},
		instruction{op: "copysign.f32", dst: 32, src: []int{32, 32}, values: values, want: func(v []uint64) uint64 { return v[1]&^f.sign() | v[0]&f.sign() }},
	)
	h := half
	hv := func(r *rand.Rand, _ int) uint64 {
		g := floatValues(h)
		return g(r, 16)&0xffff | g(r, 16)<<16
	}
	list = append(list,
		instruction{op: "fma.rn.f16x2", dst: 32, src: []int{32, 32, 32}, values: hv, want: func(v []uint64) uint64 {
			return h.fma(v[0]&0xffff, v[1]&0xffff, v[2]&0xffff, "rn") | h.fma(v[0]>>16, v[1]>>16, v[2]>>16, "rn")<<16
		}},
		instruction{op: "fma.rn.relu.f16x2", dst: 32, src: []int{32, 32, 32}, values: hv, want: func(v []uint64) uint64 {
			relu := func(x uint64) uint64 {
				if x&h.sign() != 0 && !h.isNaN(x) {
					return 0
				}
				return x
			}
			return relu(h.fma(v[0]&0xffff, v[1]&0xffff, v[2]&0xffff, "rn")) | relu(h.fma(v[0]>>16, v[1]>>16, v[2]>>16, "rn"))<<16
		}},
	)
	return list
}

// extremes are min and max.
func extremes(f format, values func(*rand.Rand, int) uint64) []instruction {
	var list []instruction
	for _, op := range []string{"min", "max"} {
		for _, nan := range []string{"", ".NaN"} {
			if nan != "" && f.bits == 64 {
				continue
			}
			list = append(list, instruction{op: op + nan + "." + f.name, dst: f.bits, src: []int{f.bits, f.bits}, values: values, want: func(v []uint64) uint64 {
				a, b := v[0], v[1]
				switch na, nb := f.isNaN(a), f.isNaN(b); {
				case na && nb, nan != "" && (na || nb):
					return f.nan()
				case na:
					return b
				case nb:
					return a
				}
				x, y := f.value(a), f.value(b)
				first := x < y || x == y && math.Signbit(x)
				if (op == "min") == first {
					return a
				}
				return b
			}})
		}
	}
	return list
}

func comparisonsOf(f format, values func(*rand.Rand, int) uint64) []instruction {
	var list []instruction
	for op, g := range map[string]func(x, y float64) bool{
		"eq": func(x, y float64) bool { return x == y }, "lt": func(x, y float64) bool { return x < y },
		"ge": func(x, y float64) bool { return x >= y }, "gt": func(x, y float64) bool { return x > y },
		"ne":  func(x, y float64) bool { return x < y || x > y },
		"neu": func(x, y float64) bool { return x != y }, "leu": func(x, y float64) bool { return !(x > y) },
		"nan": func(x, y float64) bool { return x != x || y != y }, "num": func(x, y float64) bool { return x == x && y == y },
	} {
		list = append(list, instruction{op: fmt.Sprintf("setp.%s.%s", op, f.name), dst: 1, src: []int{f.bits, f.bits}, values: values, want: func(v []uint64) uint64 {
			return yes(g(f.value(v[0]), f.value(v[1])))
		}})
	}
	return list
}

func TestFloatInstructions(t *testing.T) {
	for _, ins := range floatInstructions() {
		t.Run(ins.op, ins.check)
	}
}

// TestApproximations: results stay within PTX's bounds (ISA 9.7.3 and 9.7.4),
// also when they are perturbed, and then some are not the nearest.
func TestApproximations(t *testing.T) {
	for _, a := range []struct {
		op       string
		f        func(x float64) float64
		lo, hi   float64
		ulps     float64
		relative float64
		absolute float64
	}{
		{"rcp.approx.f32", func(x float64) float64 { return 1 / x }, 1e-30, 1e30, 1, 0, 0},
		{"rcp.approx.ftz.f32", func(x float64) float64 { return 1 / x }, 1e-30, 1e30, 1, 0, 0},
		{"sqrt.approx.f32", math.Sqrt, 1e-30, 1e30, 0, 0x1p-23, 0},
		{"sqrt.approx.ftz.f32", math.Sqrt, 1e-30, 1e30, 0, 0x1p-23, 0},
		{"rsqrt.approx.f32", func(x float64) float64 { return 1 / math.Sqrt(x) }, 1e-30, 1e30, 0, math.Exp2(-22.9), 0},
		{"rsqrt.approx.ftz.f32", func(x float64) float64 { return 1 / math.Sqrt(x) }, 1e-30, 1e30, 0, math.Exp2(-22.9), 0},
		{"ex2.approx.f32", math.Exp2, -120, 120, 2, 0, 0},
		{"ex2.approx.ftz.f32", math.Exp2, -120, 120, 2, 0, 0},
		{"lg2.approx.f32", math.Log2, 0.501, 1.999, 0, 0, 0x1p-22},
		{"lg2.approx.ftz.f32", math.Log2, 0.501, 1.999, 0, 0, 0x1p-22},
		{"lg2.approx.f32", math.Log2, 2, 1e30, 0, 0x1p-22, 0},
		{"lg2.approx.ftz.f32", math.Log2, 2, 1e30, 0, 0x1p-22, 0},
		{"sin.approx.f32", math.Sin, -2 * math.Pi, 2 * math.Pi, 0, 0, math.Exp2(-20.5)},
		{"sin.approx.ftz.f32", math.Sin, -2 * math.Pi, 2 * math.Pi, 0, 0, math.Exp2(-20.5)},
		{"cos.approx.f32", math.Cos, -2 * math.Pi, 2 * math.Pi, 0, 0, math.Exp2(-20.5)},
		{"cos.approx.ftz.f32", math.Cos, -2 * math.Pi, 2 * math.Pi, 0, 0, math.Exp2(-20.5)},
		{"tanh.approx.f32", math.Tanh, -10, 10, 0, 0x1p-11, 0},
	} {
		for _, approx := range []vm.Approx{vm.Rounded, vm.Perturbed} {
			t.Run(a.op+string(approx), func(t *testing.T) {
				const n = 1024
				r := rand.New(rand.NewPCG(9, 9))
				var in []byte
				var xs []float64
				for range n {
					x := a.lo + (a.hi-a.lo)*r.Float64()
					if a.lo > 0 {
						x = a.lo * math.Pow(a.hi/a.lo, r.Float64())
					}
					xs = append(xs, float64(float32(x)))
					in = append(in, longs(uint64(math.Float32bits(float32(x))))...)
				}
				ins := instruction{op: a.op, dst: 32, src: []int{32}, opt: vm.Options{Approx: approx, Seed: 5}}
				got := ins.run(t, in, n)
				off := 0
				for i, x := range xs {
					want := a.f(x)
					bound := a.ulps*num.F32.ULP(want) + a.relative*math.Abs(want) + a.absolute
					require.InDelta(t, want, float64(float(uint32(got[i]))), bound, "%s(%g)", a.op, x)
					if got[i] != uint64(math.Float32bits(float32(want))) {
						off++
					}
				}
				if approx == vm.Perturbed {
					require.Greater(t, off, n/8)
					require.Equal(t, got, ins.run(t, in, n), "the same seed")
					ins.opt.Seed = 6
					require.NotEqual(t, got, ins.run(t, in, n), "another seed")
				} else {
					require.Zero(t, off, "not the nearest")
				}
			})
		}
	}
}

// TestExp2Edges: ex2 at zeros, ends of the range, infinities, NaN, subnormals.
func TestExp2Edges(t *testing.T) {
	in := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 127, 128, -126, -127, -149, -150, -151, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-40}
	want := []float32{1, 1, 2, .5, 0x1p127, float32(math.Inf(1)), 0x1p-126, 0x1p-127, 0x1p-149, 0, 0, float32(math.Inf(1)), 0, 0, 1}
	var data []byte
	for _, x := range in {
		data = append(data, longs(uint64(math.Float32bits(x)))...)
	}
	got := instruction{op: "ex2.approx.f32", dst: 32, src: []int{32}}.run(t, data, len(in))
	for i := range in {
		if in[i] != in[i] {
			require.EqualValues(t, 0x7fffffff, got[i])
			continue
		}
		require.EqualValues(t, math.Float32bits(want[i]), got[i], "2^%g", in[i])
	}
}
