package numcheck

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

func f32s(all ...float32) []byte {
	var b []byte
	for _, v := range all {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestCompareFloats(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	want := f32s(1, -2, nan, inf, -inf, 0, 1000)
	c, err := Compare(F32, want, want, Tolerance{}, 3)
	require.NoError(t, err)
	require.Equal(t, Comparison{Elements: 7}, c)

	got := f32s(1.25, -2.5, 7, -inf, nan, 0.25, inf)
	c, err = Compare(F32, got, want, Tolerance{Absolute: 0.25, Relative: 0.125}, 3)
	require.NoError(t, err)
	require.EqualValues(t, 4, c.Mismatches, "-2.5 is within 0.25 + 0.125*2; what is not finite is wrong")
	require.Equal(t, 0.5, c.MaxAbs)
	require.Equal(t, 0.25, c.MaxRel)
	text, err := json.Marshal(c.First)
	require.NoError(t, err)
	require.JSONEq(t, `[{"index":2,"got":7,"want":"NaN"},{"index":3,"got":"-Infinity","want":"Infinity"},{"index":4,"got":"NaN","want":"-Infinity"}]`, string(text))

	_, err = Compare(F32, got[:8], want, Tolerance{}, 1)
	require.Error(t, err)
	_, err = Compare(F32, got[:7], want[:7], Tolerance{}, 1)
	require.Error(t, err)
}

// An infinity is as far from a finite number as the nearest one that rounds to it.
func TestCompareAtTheEndOfATypesRange(t *testing.T) {
	for _, tc := range []struct {
		typ       Type
		got, want uint64
		tolerance float64
		right     bool
	}{
		{F16, 0x7c00, 0x7bff, 16, true}, // 65504 is wanted, 65520 is infinite
		{F16, 0x7c00, 0x7bff, 15, false},
		{F16, 0x7bff, 0x7c00, 16, true},
		{F16, 0x7bff, 0x7c00, 15, false},
		{F16, 0xfc00, 0x7c00, 1e5, false},
		{F16, 0xfc00, 0x7bff, 1e5, false},
		{BF16, 0x7f80, 0x7f7f, 0x1p119, true},
		{BF16, 0x7f80, 0x7f7f, 0x1p118, false},
		{F32, 0x7f800000, 0x7f7fffff, 0x1p103, true},
		{F32, 0x7f800000, 0x7f7fffff, 0x1p102, false},
		{E5M2, 0x7c, 0x7b, 4096, true},
		{E5M2, 0x7c, 0x7b, 4095, false},
		{F64, 0x7ff0000000000000, 0x7fefffffffffffff, math.MaxFloat64, false},
	} {
		got := binary.LittleEndian.AppendUint64(nil, tc.got)[:tc.typ.Size()]
		want := binary.LittleEndian.AppendUint64(nil, tc.want)[:tc.typ.Size()]
		c, err := Compare(tc.typ, got, want, Tolerance{Absolute: tc.tolerance}, 1)
		require.NoError(t, err)
		require.Equal(t, tc.right, c.Mismatches == 0, "%+v", tc)
	}
}

func TestCompareNaNBits(t *testing.T) {
	got := binary.LittleEndian.AppendUint32(nil, 0x7fc00001)
	want := binary.LittleEndian.AppendUint32(nil, 0xffffffff)
	c, err := Compare(F32, got, want, Tolerance{}, 1)
	require.NoError(t, err)
	require.Zero(t, c.Mismatches, "any NaN equals any")
}

func TestCompareIntegersExactly(t *testing.T) {
	const big = math.MaxInt64
	pair := func(a, b int64) ([]byte, []byte) {
		return binary.LittleEndian.AppendUint64(nil, uint64(a)), binary.LittleEndian.AppendUint64(nil, uint64(b))
	}
	got, want := pair(big, big-1)
	c, err := Compare(I64, got, want, Tolerance{}, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, c.Mismatches, "they are the same float64")
	require.Equal(t, 1.0, c.MaxAbs)
	text, err := json.Marshal(c.First[0].Got)
	require.NoError(t, err)
	require.Equal(t, "9223372036854775807", string(text))

	got, want = pair(math.MinInt64, big)
	c, err = Compare(I64, got, want, Tolerance{}, 1)
	require.NoError(t, err)
	require.Equal(t, math.Exp2(64), c.MaxAbs)

	c, err = Compare(U8, []byte{0}, []byte{255}, Tolerance{Absolute: 254}, 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, c.Mismatches)
	require.Equal(t, 255.0, c.MaxAbs)
}

func TestDecodeSpotValues(t *testing.T) {
	for _, tc := range []struct {
		typ  Type
		bits uint64
		want float64
	}{
		{F16, 0x3c00, 1},
		{F16, 0x0001, math.Exp2(-24)},
		{F16, 0xfbff, -65504},
		{F16, 0x7c00, math.Inf(1)},
		{BF16, 0x3f80, 1},
		{BF16, 0x0001, math.Exp2(-133)},
		{BF16, 0xff80, math.Inf(-1)},
		{E4M3, 0x7e, 448},
		{E4M3, 0x78, 256},
		{E4M3, 0x01, math.Exp2(-9)},
		{E4M3, 0xb8, -1},
		{E5M2, 0x7b, 57344},
		{E5M2, 0x7c, math.Inf(1)},
		{E5M2, 0x01, math.Exp2(-16)},
		{I8, 0x80, -128},
		{U8, 0x80, 128},
		{I16, 0xffff, -1},
		{I32, 0xfffffffe, -2},
		{U32, 0xffffffff, 4294967295},
	} {
		b := binary.LittleEndian.AppendUint64(nil, tc.bits)
		require.Equal(t, tc.want, tc.typ.At(b, 0).Float(), "%s 0x%x", tc.typ, tc.bits)
	}
	for _, tc := range []struct {
		typ  Type
		bits byte
	}{{E4M3, 0x7f}, {E4M3, 0xff}, {E5M2, 0x7d}, {E5M2, 0xff}} {
		require.True(t, math.IsNaN(tc.typ.At([]byte{tc.bits}, 0).Float()))
	}
}

// Neighbours in a type's order are one unit in the last place apart, and the
// order of ordinals is that of the values.
func TestOrdinalsFollowValues(t *testing.T) {
	for _, typ := range []Type{F16, BF16, E4M3, E5M2, F32, F64} {
		rapid.Check(t, func(t *rapid.T) {
			a := binary.LittleEndian.AppendUint64(nil, rapid.Uint64().Draw(t, "a"))
			b := binary.LittleEndian.AppendUint64(nil, rapid.Uint64().Draw(t, "b"))
			x, y := typ.At(a, 0).Float(), typ.At(b, 0).Float()
			if math.IsNaN(x) || math.IsNaN(y) {
				return
			}
			if (x < y) != (typ.ordinal(a, 0) < typ.ordinal(b, 0)) {
				t.Fatalf("%s: %v and %v", typ, x, y)
			}
		})
	}
	require.EqualValues(t, 1, ulps(F32.ordinal(f32s(1), 0), F32.ordinal(f32s(math.Nextafter32(1, 2)), 0)))
	require.EqualValues(t, 2, ulps(F32.ordinal(f32s(math.SmallestNonzeroFloat32), 0), F32.ordinal(f32s(-math.SmallestNonzeroFloat32), 0)))
}

func TestParseType(t *testing.T) {
	for typ := F16; typ <= U64; typ++ {
		got, err := ParseType(typ.String())
		require.NoError(t, err)
		require.Equal(t, typ, got)
	}
	_, err := ParseType("float32")
	require.EqualError(t, err, `type "float32": want one of f16 bf16 f32 f64 e4m3 e5m2 i8 i16 i32 i64 u8 u16 u32 u64`)
}
