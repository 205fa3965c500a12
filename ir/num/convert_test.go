package num

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWidenEveryEncoding(t *testing.T) {
	for bits := range uint32(1) << 16 {
		for _, c := range []struct {
			f   Format
			got float32
		}{
			{F16, F16ToF32(uint16(bits))}, {BF16, BF16ToF32(uint16(bits))},
			{E4M3, E4M3ToF32(uint8(bits))}, {E5M2, E5M2ToF32(uint8(bits))}, {E2M1, E2M1ToF32(uint8(bits))},
		} {
			want := float32(c.f.Decode(bits))
			if math.Float32bits(c.got) != math.Float32bits(want) && !(want != want && c.got != c.got) {
				t.Fatalf("%v %#x: %v, want %v", c.f, bits, c.got, want)
			}
		}
	}
}

// The fast narrowing agrees with Encode, which is checked against a search: on
// every exponent with every pattern of leading and trailing mantissa bits, around
// every midpoint, and at random.
func TestNarrowAgreesWithEncode(t *testing.T) {
	check := func(u uint32) {
		x := math.Float32frombits(u)
		for _, c := range []struct {
			f    Format
			got  uint32
			mode Rounding
			sat  bool
		}{
			{F16, uint32(F16FromF32(x)), Even, false},
			{BF16, uint32(BF16FromF32(x)), Even, false},
			{TF32, math.Float32bits(RoundTF32(x)), Away, false},
			{E4M3, uint32(E4M3FromF32(x)), Even, true},
			{E5M2, uint32(E5M2FromF32(x)), Even, true},
			{E2M1, uint32(E2M1FromF32(x)), Even, true},
			{F16, uint32(F16FromF64(float64(x))), Even, false},
			{BF16, uint32(BF16FromF64(float64(x))), Even, false},
		} {
			if want := c.f.Encode(float64(x), c.mode, c.sat); c.got != want {
				t.Fatalf("%v of %#x (%v): %#x, want %#x", c.f, u, x, c.got, want)
			}
		}
		if x == x {
			if want := TF32.Encode(float64(x), Zero, false); math.Float32bits(TruncateTF32(x)) != want {
				t.Fatalf("truncated %#x: %#x, want %#x", u, math.Float32bits(TruncateTF32(x)), want)
			}
		}
	}
	for exponent := range uint32(256) {
		for top := range uint32(1) << 7 {
			for _, rest := range []uint32{0, 1, 2, 0x7fff, 0x8000, 0x8001, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0xf000, 0xffff} {
				u := exponent<<23 | top<<16 | rest
				check(u)
				check(u | 1<<31)
			}
		}
	}
	r := rand.New(rand.NewPCG(9, 10))
	for range 200_000 {
		check(r.Uint32())
	}
	for bits := range uint32(1) << 15 { // midpoints of binary16
		x := F16.Decode(bits)
		if x < F16.Max() {
			u := math.Float32bits(float32(x + F16.ULP(x)/2))
			check(u - 1)
			check(u)
			check(u + 1)
		}
	}
}

func TestNaNs(t *testing.T) {
	for _, u := range []uint32{0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff} {
		x := math.Float32frombits(u)
		require.Equal(t, uint16(0x7fff), F16FromF32(x))
		require.Equal(t, uint16(0x7fff), BF16FromF32(x))
		require.Equal(t, uint32(0x7fffffff), math.Float32bits(RoundTF32(x)))
		require.True(t, math.IsNaN(float64(TruncateTF32(x))))
		require.Equal(t, uint8(0x7f), E4M3FromF32(x))
		require.Equal(t, uint8(0x7f), E5M2FromF32(x))
		require.Equal(t, uint8(0x7), E2M1FromF32(x))
	}
	require.Equal(t, uint8(0xfe), E4M3FromF32(float32(math.Inf(-1))))
	require.Equal(t, uint8(0x7b), E5M2FromF32(float32(math.Inf(1))))
	require.Equal(t, uint8(0xf), E2M1FromF32(-1e9))
}

var (
	sink32 float32
	sink16 uint16
	sink8  uint8
)

func BenchmarkF16ToF32(b *testing.B) {
	for i := range b.N {
		sink32 += F16ToF32(uint16(i))
	}
}

func BenchmarkF16FromF32(b *testing.B) {
	for i := range b.N {
		sink16 ^= F16FromF32(math.Float32frombits(uint32(i) * 2654435761))
	}
}

func BenchmarkBF16FromF32(b *testing.B) {
	for i := range b.N {
		sink16 ^= BF16FromF32(math.Float32frombits(uint32(i) * 2654435761))
	}
}

func BenchmarkF16FromF64(b *testing.B) {
	for i := range b.N {
		sink16 ^= F16FromF64(float64(i) * 0.37)
	}
}

func BenchmarkE4M3FromF32(b *testing.B) {
	for i := range b.N {
		sink8 ^= E4M3FromF32(float32(i) * 0.37)
	}
}

func BenchmarkFMA32(b *testing.B) {
	x := float32(0.99999)
	for i := range b.N {
		x = FMA32(x, 0.99998, float32(i))
	}
	sink32 = x
}

func BenchmarkPhilox7(b *testing.B) {
	for i := range b.N {
		sink16 ^= Random16x8(42, 0, 1, 2, uint32(i))[3]
	}
}
