package numcheck

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every value of the small types encodes to its own bits, and a number between
// two neighbours to the nearer.
func TestEncodeEveryValue(t *testing.T) {
	for _, typ := range []Type{F16, BF16, E4M3, E5M2} {
		step := 1
		if typ.Size() == 2 {
			step = 37
		}
		for i := 0; i < 1<<(8*typ.Size()); i += step {
			b := binary.LittleEndian.AppendUint16(nil, uint16(i))[:typ.Size()]
			v := typ.At(b, 0).Float()
			got, err := Encode(typ, v)
			require.NoError(t, err)
			if math.IsNaN(v) {
				require.True(t, math.IsNaN(typ.At(got, 0).Float()))
				continue
			}
			require.Equal(t, b, got, "%s %v", typ, v)
		}
	}
}

func TestEncodeRounds(t *testing.T) {
	for _, tc := range []struct {
		typ  Type
		v    float64
		want uint64
	}{
		{F16, 1 + math.Exp2(-11), 0x3c00},
		{F16, 1 + 3*math.Exp2(-11), 0x3c02},
		{F16, 65519, 0x7bff},
		{BF16, 1.00390625, 0x3f80},
		{BF16, 1.01171875, 0x3f82},
		{E4M3, 464, 0x7e},
		{E4M3, 17, 0x58},
		{F32, 0.1, 0x3dcccccd},
		{F64, -2, 0xc000000000000000},
	} {
		got, err := Encode(tc.typ, tc.v)
		require.NoError(t, err)
		require.Equal(t, binary.LittleEndian.AppendUint64(nil, tc.want)[:tc.typ.Size()], got, "%s %v", tc.typ, tc.v)
	}
	for typ, v := range map[Type]float64{F16: 65520, E4M3: 464.1, E5M2: 1e9, BF16: 1e39} {
		_, err := Encode(typ, v)
		require.ErrorContains(t, err, "want at most")
	}
	_, err := Encode(E4M3, math.Inf(1))
	require.ErrorContains(t, err, "no infinity")
	_, err = Encode(I8, 3)
	require.Error(t, err)
}
