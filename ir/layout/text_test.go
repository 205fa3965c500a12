package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      `layout text at byte 0, "": want "layout"`,
		"layout<0x8, reg=, lane=, warp=>":       `layout text at byte 7, "0x8, reg=, l...": want a number from 1 to 65536`,
		"layout<99999999999999999999, reg=":     `layout text at byte 7, "999999999999...": want a number from 1 to 65536`,
		"layout<1x1x1x1x1, reg=, lane=, warp=>": `layout text at byte 15, "1, reg=, lan...": want at most 4 dimensions`,
		"layout<2, reg=(1), lane=(0)(0)(0)(0), warp=>":                      `layout with 4 lane bases: want 5`,
		"layout<2, reg=(2), lane=(0)(0)(0)(0)(0), warp=>":                   `layout text at byte 15, "2), lane=(0)...": want a number from 0 to 1`,
		"layout<2, reg=(0), lane=(0)(0)(0)(0)(0), warp=>":                   `layout of 2: its bases reach 2^0 of 2^1 elements`,
		"layout<2, reg=(1), lane=(0)(0)(0)(0)(0), warp=> x":                 `layout text at byte 48, "x": want the end`,
		"layout<2, reg=(1), lane=(0)(0)(0)(0)(0), warp=(0)(0)(0)(0)(0)(0)>": `layout with 1 * 2^6 warps: want at most 32`,
		"layout<6, reg=(1), lane=(0)(0)(0)(0)(0), warp=*2(2)>":              `layout with 2 parts of warps: want an odd number`,
		"layout<6, reg=(1), lane=(0)(0)(0)(0)(0), warp=*3(1)>":              `layout of 6 with 3 parts of warps at (1): want the odd factor of a dimension`,
		"layout<6, reg=(1), lane=(0)(0)(0)(0)(0), warp=*5(2)>":              `layout of 6 with 5 parts of warps at (2): want the odd factor of a dimension`,
	} {
		_, err := Parse(text)
		require.EqualError(t, err, want)
	}
	for text, want := range map[string]string{
		"shared<8x8, order=(1,1), elem=2, pad=0>":         `layout order [1 1]: want a permutation of 2 dimensions`,
		"shared<8x8, order=(1,0), elem=3, pad=0>":         `shared layout of 3-byte elements: want 1, 2, 4, 8 or 16`,
		"shared<8x8, order=(1,0), elem=2, swizzle=128>":   `shared layout of 8x8: rows of 16 bytes do not split into 128-byte atoms`,
		"shared<8x64, order=(1,0), elem=2, swizzle=96>":   `shared layout with a swizzle of 96 bytes: want 32, 64 or 128`,
		"shared<7x64, order=(1,0), elem=2, swizzle=128>":  `shared layout of 7x64: dimension 0 breaks the eight-row pattern of a swizzle`,
		"shared<4x64, order=(1,0), elem=2, swizzle=128>":  `swizzled shared layout of 4 rows: want a multiple of 8`,
		"shared<65536x65536, order=(1,0), elem=2, pad=0>": `shared layout of 65536x65536 with 2-byte elements: more than 16777216 bytes`,
		"shared<8x8, order=(1,0), elem=2, pad=7>":         `shared layout with 7 bytes of padding: want a multiple of 2 up to 1024`,
		"shared<scalar, order=(), elem=2, pad=0>":         `shared layout of rank 0: want 1 to 4`,
	} {
		_, err := ParseShared(text)
		require.EqualError(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("layout<16x8, reg=(0,1)(8,0), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=>")
	f.Add("layout<scalar, reg=, lane=()()()()(), warp=()>")
	f.Add("layout<64x176, reg=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(16,0)(32,0)>")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(l.String())
		if err != nil || !again.Equal(l) || again.String() != l.String() {
			t.Fatalf("%q reads as %v, which reads as %v (%v)", text, l, again, err)
		}
		for d := range l.Rank() {
			l.Slice(d)
			l.Contiguous(d)
		}
		for _, r := range []int{0, l.Registers() - 1} {
			c := l.Coord(r, 31, l.Warps()-1)
			reg, lane, warp, ok := l.Find(c)
			if !ok || l.Coord(reg, lane, warp) != c {
				t.Fatalf("%v does not find %v", l, c.Unpack(l.Rank()))
			}
		}
	})
}

func FuzzParseShared(f *testing.F) {
	f.Add("shared<128x64, order=(1,0), elem=2, swizzle=128>")
	f.Add("shared<128x80, order=(1,0), elem=2, pad=16>")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseShared(text)
		if err != nil {
			return
		}
		again, err := ParseShared(s.String())
		if err != nil || !again.Equal(s) {
			t.Fatalf("%q reads as %v, which reads as %v (%v)", text, s, again, err)
		}
		last := s.Shape()
		for d := range last {
			last[d]--
		}
		for _, at := range [][]int{make([]int, len(last)), last} {
			if o := s.OffsetAt(at); o < 0 || o+s.ElemBytes() > s.Size() {
				t.Fatalf("%v puts %v at %d of %d bytes", s, at, o, s.Size())
			}
		}
	})
}
