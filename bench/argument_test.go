package bench

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/numcheck"
)

func TestParseArgument(t *testing.T) {
	v, err := ParseArgument("i16=-2", 3, 0, "")
	require.NoError(t, err)
	require.Equal(t, &Argument{Value: CaseArg{Buffer: -1, Kind: "i16", Bytes: []byte{0xfe, 0xff}}}, v)
	v, err = ParseArgument("bytes=00ff10", 0, 0, "")
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0xff, 0x10}, v.Value.Bytes)

	b, err := ParseArgument("e5m2[3x4]:iota", 1, 0, "")
	require.NoError(t, err)
	require.Equal(t, []int64{3, 4}, b.Buffer.Shape)
	for i := range 12 {
		require.Equal(t, float64(i%8), numcheck.E5M2.At(b.Buffer.Data, i).Float(), "every number is one of the type's")
	}
	none, err := ParseArgument("f64[5]:none", 1, 0, "")
	require.NoError(t, err)
	require.Nil(t, none.Buffer.Data)
	require.Equal(t, int64(40), none.Buffer.Size())

	// Random data are those of the seed and the place, and in range.
	draw := func(place int, seed uint64) []byte {
		b, err := ParseArgument("f16[1000]:random", place, seed, "")
		require.NoError(t, err)
		return b.Buffer.Data
	}
	require.Equal(t, draw(1, 2), draw(1, 2))
	require.NotEqual(t, draw(1, 2), draw(1, 3))
	require.NotEqual(t, draw(1, 2), draw(0, 2))
	least, most := 1.0, -1.0
	for i, data := 0, draw(0, 0); i < 1000; i++ {
		x := numcheck.F16.At(data, i).Float()
		least, most = min(least, x), max(most, x)
	}
	require.InDelta(t, -1, least, 0.02)
	require.InDelta(t, 1, most, 0.02)

	dir := t.TempDir()
	file := filepath.Join(dir, "x.npy")
	require.NoError(t, WriteNPYFile(file, &Array{"f2", []int64{500, 2}, draw(0, 0)}))
	b, err = ParseArgument("f16:"+file+",want="+file, 0, 0, "")
	require.NoError(t, err)
	require.Equal(t, []int64{500, 2}, b.Buffer.Shape)
	require.Equal(t, b.Buffer.Want, b.Buffer.Data)
}

func TestArgumentBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"f16[3x4]:random": 24, "u8[0]:zeros": 0, "f32[17179869184]:none,want=y.npy": 1 << 36, "f16:x.npy": 0,
		"i32=7": 0, "f32[x]:none": 0, "f33[8]:none": 0, "f32[17179869185]:none": 0,
	} {
		require.Equal(t, want, ArgumentBytes(text), text)
	}
	_, err := ParseArgument("f32[4]:none,want=2", 0, 0, "")
	require.ErrorContains(t, err, "want=2: want a FILE.npy")
}

func TestArgumentsOfImpossibleSizes(t *testing.T) {
	for _, text := range []string{
		"f32[17179869185]:none", "f32[4294967296x4294967296]:none", // 2^66 bytes
		"f32[4294967296x4294967296x4]:random", "u8[0x99999999999999999999]:zeros",
	} {
		_, err := ParseArgument(text, 0, 0, "")
		require.ErrorContains(t, err, "want at most 68719476736 bytes", text)
	}
	a, err := ParseArgument("u8[0x68719476736x68719476736]:none", 0, 0, "")
	require.NoError(t, err)
	require.Zero(t, a.Buffer.Size())
}

func FuzzParseArgument(f *testing.F) {
	for _, text := range []string{"i32=7", "f32[4]:iota", "u8[2x3]:zeros", "bytes=00", "f32[1]:none,want=x.npy", "f16[", "f8[1]:", "i32[-1]:random", "x=:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16 { // no buffers of gigabytes
			return
		}
		a, err := ParseArgument(text, 0, 0, "")
		if err == nil && a.Buffer != nil && a.Buffer.Data != nil && int64(len(a.Buffer.Data)) != a.Buffer.Size() {
			t.Errorf("%q: %d bytes of data for %d", text, len(a.Buffer.Data), a.Buffer.Size())
		}
	})
}
