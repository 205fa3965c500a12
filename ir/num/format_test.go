package num

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var small = []Format{BF16, F16, E5M2, E4M3, E2M1}

// exact is the value of an encoding by the textbook formula in exact arithmetic;
// ok is false for infinities and NaNs.
func exact(bits uint32, exponent, mantissa, bias int) *big.Float {
	e := int(bits>>mantissa) & (1<<exponent - 1)
	fraction := int64(bits) & (1<<mantissa - 1)
	if e > 0 {
		fraction += 1 << mantissa
	} else {
		e = 1
	}
	v := new(big.Float).SetInt64(fraction)
	v.SetMantExp(v, e-bias-mantissa)
	if bits>>(exponent+mantissa)&1 == 1 {
		v.Neg(v)
	}
	return v
}

func TestDecodeEveryEncoding(t *testing.T) {
	shape := map[Format]struct{ exponent, mantissa, bias int }{
		BF16: {8, 7, 127}, F16: {5, 10, 15}, E5M2: {5, 2, 15}, E4M3: {4, 3, 7}, E2M1: {2, 1, 1},
	}
	for _, f := range small {
		s := shape[f]
		for bits := range uint32(1) << f.Bits() {
			got := f.Decode(bits)
			magnitude := bits & (1<<(f.Bits()-1) - 1)
			full := magnitude>>s.mantissa == 1<<s.exponent-1
			var wantNaN, wantInf bool
			switch f {
			case E4M3:
				wantNaN = magnitude == 0x7f
			case E2M1:
			default:
				wantInf = full && magnitude&(1<<s.mantissa-1) == 0
				wantNaN = full && !wantInf
			}
			switch {
			case wantNaN:
				require.True(t, math.IsNaN(got), "%v %#x", f, bits)
			case wantInf:
				require.True(t, math.IsInf(got, 1-2*int(bits>>(f.Bits()-1))), "%v %#x", f, bits)
			default:
				want, accuracy := exact(bits, s.exponent, s.mantissa, s.bias).Float64()
				require.Equal(t, big.Exact, accuracy)
				if math.Float64bits(want) != math.Float64bits(got) {
					t.Fatalf("%v %#x: %v, want %v", f, bits, got, want)
				}
			}
		}
	}
}

// Values everyone knows.
func TestLimits(t *testing.T) {
	require.Equal(t, 65504.0, F16.Max())
	require.Equal(t, 448.0, E4M3.Max())
	require.Equal(t, 57344.0, E5M2.Max())
	require.Equal(t, 6.0, E2M1.Max())
	require.Equal(t, math.MaxFloat32, F32.Max())
	require.Equal(t, 3.3895313892515355e38, BF16.Max())
	require.Equal(t, 65520.0, F16.Overflow())
	require.Equal(t, 464.0, E4M3.Overflow())
	require.Equal(t, 61440.0, E5M2.Overflow())
	require.Equal(t, 0x1p128-0x1p103, F32.Overflow())
	require.Equal(t, 0x1p-14, F16.MinNormal())
	require.Equal(t, 0x1p-6, E4M3.MinNormal())
	require.Equal(t, 0x1p-8, BF16.Epsilon()/2)
	require.Equal(t, []int{32, 32, 16, 16, 8, 8, 4}, []int{F32.Bits(), TF32.Bits(), BF16.Bits(), F16.Bits(), E5M2.Bits(), E4M3.Bits(), E2M1.Bits()})
}

// search rounds by looking x up in the list of all non-negative finite values.
type search struct {
	f      Format
	values []float64 // by encoding, ascending
}

func newSearch(f Format) search {
	s := search{f: f}
	for bits := range uint32(1) << (f.Bits() - 1) {
		if v := f.Decode(bits); !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.values = append(s.values, v)
		}
	}
	return s
}

func (s search) encode(x float64, mode Rounding, saturate bool) uint32 {
	nan := map[Format]uint32{BF16: 0x7fff, F16: 0x7fff, E5M2: 0x7f, E4M3: 0x7f, E2M1: 7}[s.f]
	if math.IsNaN(x) {
		return nan
	}
	sign := uint32(0)
	if math.Signbit(x) {
		sign = 1 << (s.f.Bits() - 1)
	}
	last := len(s.values) - 1
	beyond := uint32(last + 1) // infinity, where there is one
	if s.f == E2M1 || saturate {
		beyond = uint32(last)
	}
	finish := func(m uint32) uint32 {
		if s.f == E4M3 && m > uint32(last) {
			return nan
		}
		return m | sign
	}
	abs := math.Abs(x)
	if math.IsInf(x, 0) {
		return finish(beyond)
	}
	i, found := slices.BinarySearch(s.values, abs)
	if found {
		return finish(uint32(i))
	}
	lower := i - 1
	// The value after the last, had the format one more.
	next := 2*s.values[last] - s.values[last-1]
	if i <= last {
		next = s.values[i]
	}
	outward := false
	switch mode {
	case Even, Away:
		// Both distances are exact in big arithmetic.
		a := new(big.Float).Sub(big.NewFloat(abs).SetPrec(400), big.NewFloat(s.values[lower]).SetPrec(400))
		b := new(big.Float).Sub(big.NewFloat(next).SetPrec(400), big.NewFloat(abs).SetPrec(400))
		c := a.Cmp(b)
		outward = c > 0 || c == 0 && (mode == Away || lower%2 == 1)
	case Up:
		outward = sign == 0
	case Down:
		outward = sign != 0
	}
	switch {
	case !outward:
		return finish(uint32(lower))
	case i > last:
		return finish(beyond)
	}
	return finish(uint32(i))
}

func TestEncodeAgainstSearch(t *testing.T) {
	for _, f := range small {
		s := newSearch(f)
		check := func(x float64) {
			for _, mode := range []Rounding{Even, Away, Zero, Up, Down} {
				for _, saturate := range []bool{false, true} {
					for _, y := range []float64{x, -x} {
						if got, want := f.Encode(y, mode, saturate), s.encode(y, mode, saturate); got != want {
							t.Fatalf("%v of %v (%x), mode %d, saturate %v: %#x, want %#x", f, y, y, mode, saturate, got, want)
						}
					}
				}
			}
		}
		stride := 1
		if f.Bits() == 16 {
			stride = 7 // coprime to all structure; TestRoundTrip visits every value
		}
		for i := 0; i < len(s.values); i += stride {
			v := s.values[i]
			next := math.Inf(1)
			if i+1 < len(s.values) {
				next = s.values[i+1]
			}
			middle := v + f.ULP(v)/2
			for _, x := range []float64{v, math.Nextafter(v, next), middle, math.Nextafter(middle, 0), math.Nextafter(middle, math.Inf(1))} {
				check(x)
			}
		}
		for _, x := range []float64{math.Inf(1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, 0, 0x1p-1022, f.Max(),
			f.Max() + f.ULP(f.Max())/2, math.Nextafter(f.Max()+f.ULP(f.Max())/2, 0), f.Max() + f.ULP(f.Max()), 2 * f.Max()} {
			check(x)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			check(math.Ldexp(1+r.Float64(), r.IntN(300)-150))
		}
	}
}

// Every number survives widening and narrowing, in every mode.
func TestRoundTrip(t *testing.T) {
	for _, f := range small {
		for bits := range uint32(1) << f.Bits() {
			v := f.Decode(bits)
			if math.IsNaN(v) {
				continue
			}
			for mode := Even; mode <= Down; mode++ {
				if got := f.Encode(v, mode, false); got != bits {
					t.Fatalf("%v %#x became %#x", f, bits, got)
				}
			}
		}
	}
}

// binary32 has the compiler's own conversion as a witness, tf32 and the directed
// modes exact arithmetic.
func TestEncodeF32AndTF32(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		x := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			x = math.Ldexp(r.NormFloat64(), r.IntN(320)-160)
		}
		if math.IsNaN(x) {
			continue
		}
		if got, want := F32.Encode(x, Even, false), math.Float32bits(float32(x)); got != want {
			t.Fatalf("f32 of %x: %#x, want %#x", x, got, want)
		}
		b := new(big.Float).SetPrec(24).SetMode(big.ToZero)
		if math.Abs(x) > F32.Max() || math.Abs(x) < F32.MinNormal() {
			continue
		}
		want, _ := b.SetFloat64(x).Float64()
		require.Equal(t, want, F32.Decode(F32.Encode(x, Zero, false)))
		for mode, bigMode := range map[Rounding]big.RoundingMode{Even: big.ToNearestEven, Away: big.ToNearestAway, Zero: big.ToZero, Up: big.ToPositiveInf, Down: big.ToNegativeInf} {
			want, _ := new(big.Float).SetPrec(11).SetMode(bigMode).SetFloat64(x).Float64()
			if math.Abs(want) > TF32.Max() {
				continue
			}
			if got := TF32.Decode(TF32.Encode(x, mode, false)); got != want {
				t.Fatalf("tf32 of %x, mode %d: %x, want %x", x, mode, got, want)
			}
		}
	}
	require.Equal(t, uint32(0x7f7fe000), TF32.Encode(math.Inf(1), Even, true))
	require.Equal(t, uint32(0xff800000), TF32.Encode(-1e300, Even, false))
	require.Equal(t, uint32(0x7fffffff), TF32.Encode(math.NaN(), Even, true))
}

func TestDistance(t *testing.T) {
	require.Equal(t, uint32(0), F16.Distance(0, 0x8000))
	require.Equal(t, uint32(2), F16.Distance(1, 0x8001))
	require.Equal(t, uint32(1), F16.Distance(0x7bff, 0x7c00))
	require.Equal(t, uint32(0), F16.Distance(0x7e00, 0xfe01))
	require.Equal(t, uint32(math.MaxUint32), F16.Distance(0x7e00, 0))
	require.Equal(t, uint32(1), TF32.Distance(0x3f800000, 0x3f802000))
	for _, f := range small {
		s := newSearch(f)
		r := rand.New(rand.NewPCG(5, 6))
		for range 1000 {
			i, j := r.IntN(len(s.values)), r.IntN(len(s.values))
			require.Equal(t, uint32(max(i, j)-min(i, j)), f.Distance(uint32(i), uint32(j)))
			minus := uint32(1) << (f.Bits() - 1)
			require.Equal(t, uint32(i+j), f.Distance(uint32(i)|minus, uint32(j)))
		}
	}
}

func TestError(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	require.Equal(t, 0.5, F16.Error(0x3c00, 1+0x1p-11))
	require.Equal(t, 1.0, F16.Error(0x0001, 0))
	require.Zero(t, F16.Error(0x7c00, inf))
	require.Zero(t, F16.Error(0x7c00, 1e9))
	require.Equal(t, 0.5, F16.Error(0x7c00, 65520))
	require.Equal(t, inf, F16.Error(0x7c00, 65000))
	require.Equal(t, inf, F16.Error(0xfc00, 1e9))
	require.Equal(t, inf, F16.Error(0x7e00, 1))
	require.Equal(t, inf, F16.Error(0x3c00, nan))
	require.Equal(t, inf, F16.Error(0x7bff, inf))
	require.Zero(t, F16.Error(0x7e00, nan))
	// One rounding to nearest errs by half a unit at most, and reaches it.
	r := rand.New(rand.NewPCG(7, 8))
	for _, f := range []Format{F32, TF32, BF16, F16, E5M2, E4M3, E2M1} {
		worst := 0.0
		for range 5000 {
			x := f.Max() * math.Ldexp(2*r.Float64()-1, -r.IntN(8))
			worst = max(worst, f.Error(f.Encode(x, Even, true), x))
		}
		require.LessOrEqual(t, worst, 0.5, f.String())
		require.Greater(t, worst, 0.49, f.String())
	}
}
