package num

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The known answers that the generator's authors publish with Random123
// (tests/kat_vectors).
func TestPhiloxKnownAnswers(t *testing.T) {
	const all = 0xffffffff
	for _, c := range []struct {
		rounds  int
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{7, [4]uint32{}, [2]uint32{}, [4]uint32{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
		{7, [4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
		{7, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
		{10, [4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{10, [4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{10, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		require.Equal(t, c.want, Philox4x32(c.counter, c.key, c.rounds))
	}
}

func TestRandom16(t *testing.T) {
	const seed, offset, plane, row = 0x0123456789abcdef, 11, 22, 33
	words := Philox4x32([4]uint32{1000 >> 3, row, plane, offset}, [2]uint32{0x89abcdef, 0x01234567}, 7)
	for col := uint32(1000); col < 1008; col++ {
		i := col - 1000
		require.Equal(t, uint16(words[i/2]>>(16*(i%2))), Random16(seed, offset, plane, row, col))
	}
	// The share of drops is the threshold's, within five standard deviations.
	for _, p := range []float64{0.1, 0.5, 0.9} {
		threshold := DropoutThreshold(p)
		const n = 1 << 16
		kept := 0
		for i := range uint32(n) {
			if uint32(Random16(7, 0, 0, i>>9, i&511)) >= threshold {
				kept++
			}
		}
		deviation := math.Sqrt(n * p * (1 - p))
		require.InDelta(t, n*(1-p), kept, 5*deviation)
	}
}

func TestDropoutThreshold(t *testing.T) {
	for p, want := range map[float64]uint32{0: 0, -1: 0, 0.1: 6554, 0.5: 32768, 1: 65535, 7: 65535, 0x1p-17: 1, 0x1p-18: 0, math.Inf(1): 65535} {
		require.Equal(t, want, DropoutThreshold(p), "p = %v", p)
	}
	require.Zero(t, DropoutThreshold(math.NaN()))
	require.Equal(t, 1.0, DropoutScale(0))
	require.Equal(t, 2.0, DropoutScale(32768))
	require.Equal(t, 65536.0, DropoutScale(65535))
}
