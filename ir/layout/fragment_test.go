package layout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fragment tables of the PTX ISA (9.7.14.5 for mma.sync, 9.7.15.5 for wgmma),
// written down as published: element i of a lane with g = lane / 4, t = lane % 4.
type table struct {
	name  string
	count int
	at    func(i, g, t int) (int, int)
}

var operandA = map[int]table{
	32: {"m16n8k8 tf32", 4, func(i, g, t int) (int, int) { return g + 8*(i&1), t + 4*(i>>1) }},
	16: {"m16n8k16 f16", 8, func(i, g, t int) (int, int) { return g + 8*((i>>1)&1), 2*t + (i & 1) + 8*(i>>2) }},
	8:  {"m16n8k32 s8", 16, func(i, g, t int) (int, int) { return g + 8*((i>>2)&1), 4*t + (i & 3) + 16*(i>>3) }},
	4:  {"m16n8k64 s4", 32, func(i, g, t int) (int, int) { return g + 8*((i>>3)&1), 8*t + (i & 7) + 32*(i>>4) }},
}

var halfA = map[int]table{
	32: {"m16n8k4 tf32", 2, func(i, g, t int) (int, int) { return g + 8*i, t }},
	16: {"m16n8k8 f16", 4, func(i, g, t int) (int, int) { return g + 8*(i>>1), 2*t + (i & 1) }},
	8:  {"m16n8k16 s8", 8, func(i, g, t int) (int, int) { return g + 8*(i>>2), 4*t + (i & 3) }},
	4:  {"m16n8k32 s4", 16, func(i, g, t int) (int, int) { return g + 8*(i>>3), 8*t + (i & 7) }},
}

var operandB = map[int]table{
	32: {"m16n8k8 tf32", 2, func(i, g, t int) (int, int) { return t + 4*i, g }},
	16: {"m16n8k16 f16", 4, func(i, g, t int) (int, int) { return 2*t + (i & 1) + 8*(i>>1), g }},
	8:  {"m16n8k32 s8", 8, func(i, g, t int) (int, int) { return 4*t + (i & 3) + 16*(i>>2), g }},
	4:  {"m16n8k64 s4", 16, func(i, g, t int) (int, int) { return 8*t + (i & 7) + 32*(i>>3), g }},
}

var halfB = map[int]table{
	32: {"m16n8k4 tf32", 1, func(_, g, t int) (int, int) { return t, g }},
	16: {"m16n8k8 f16", 2, func(i, g, t int) (int, int) { return 2*t + i, g }},
	8:  {"m16n8k16 s8", 4, func(i, g, t int) (int, int) { return 4*t + i, g }},
	4:  {"m16n8k32 s4", 8, func(i, g, t int) (int, int) { return 8*t + i, g }},
}

func requireTable(t *testing.T, l *Layout, warp int, row0 int, want table) {
	t.Helper()
	for lane := range 32 {
		for i := range want.count {
			r, c := want.at(i, lane>>2, lane&3)
			require.Equal(t, []int{r + row0, c}, l.At(i, lane, warp), "%s lane %d element %d", want.name, lane, i)
		}
	}
}

func TestFragmentTables(t *testing.T) {
	for _, bits := range []int{32, 16, 8, 4} {
		k := 256 / bits
		requireTable(t, mustLayout(t)(MMAOperandA([]int{16, k}, bits, 1, 1)), 0, 0, operandA[bits])
		requireTable(t, mustLayout(t)(MMAOperandA([]int{16, k / 2}, bits, 1, 1)), 0, 0, halfA[bits])
		requireTable(t, mustLayout(t)(MMAOperandB([]int{k, 8}, bits, 1, 1)), 0, 0, operandB[bits])
		requireTable(t, mustLayout(t)(MMAOperandB([]int{k / 2, 8}, bits, 1, 1)), 0, 0, halfB[bits])
	}
	acc := table{"accumulator", 4, func(i, g, t int) (int, int) { return g + 8*(i>>1), 2*t + (i & 1) }}
	requireTable(t, mustLayout(t)(MMAAccumulator([]int{16, 8}, 1, 1)), 0, 0, acc)
}

func TestWGMMATables(t *testing.T) {
	for _, n := range []int{8, 64, 128, 256} {
		d := mustLayout(t)(WGMMAAccumulator([]int{64, n}, 1))
		for w := range 4 {
			requireTable(t, d, w, 16*w, table{"wgmma D", n / 2, func(i, g, t int) (int, int) {
				return g + 8*((i>>1)&1), 8*(i>>2) + 2*t + i&1
			}})
		}
	}
	// A value printed by CuTe: thread 37, element 5.
	require.Equal(t, []int{17, 11}, mustLayout(t)(WGMMAAccumulator([]int{64, 64}, 1)).At(5, 5, 1))
	for _, bits := range []int{32, 16, 8} {
		a := mustLayout(t)(WGMMAOperandA([]int{64, 256 / bits}, bits, 1))
		for w := range 4 {
			requireTable(t, a, w, 16*w, operandA[bits])
		}
	}
}

// An accumulator is the 8-bit operand of the next product with its registers in another
// order, where that product's depth is interleaved: both its operands have the same element
// at the same place of the depth.
func TestAccumulatorIsInterleavedOperand(t *testing.T) {
	for _, n := range []int{32, 96, 224, 256} {
		acc := mustLayout(t)(WGMMAAccumulator([]int{128, n}, 2))
		a := mustLayout(t)(AccumulatorOperandA([]int{128, n}, 2))
		require.Less(t, Convert(acc, a).Kind, Shuffles)
		plain := mustLayout(t)(WGMMAOperandA([]int{128, n}, 8, 2))
		b := mustShared(t)(Swizzled([]int{8, n}, []int{1, 0}, 1, 32))
		crossed := mustShared(t)(b.Interleaved())
		for r := range a.Registers() {
			for lane := range 32 {
				require.Equal(t, b.OffsetAt([]int{0, plain.At(r, lane, 5)[1]}), crossed.OffsetAt([]int{0, a.At(r, lane, 5)[1]}))
			}
		}
	}
	_, err := mustShared(t)(Swizzled([]int{8, 32}, []int{1, 0}, 2, 64)).Interleaved()
	require.EqualError(t, err, "interleaved shared layout of 2-byte elements, swizzle 64: want bytes in swizzled atoms")
}

// Odd factors repeat outermost: 176 columns are eleven runs of sixteen.
func TestFragmentsOfOddWidth(t *testing.T) {
	for _, n := range []int{80, 176, 112, 48, 24} {
		l := mustLayout(t)(MMAAccumulator([]int{64, n}, 4, 1))
		require.Equal(t, n/2, l.Registers())
		sub := pow2Part(n)
		for r := range l.Registers() {
			inner, copyNumber := r%(sub/2), r/(sub/2)
			want := []int{8 * (inner >> 1 & 1), copyNumber*sub + inner>>2*8 + inner&1}
			require.Equal(t, want, l.At(r, 0, 0))
		}
	}
}

// Warps along M come first, each with one run of rows; the operands of a product
// hold copies over the warps that do not concern them.
func TestWarpsOfFragments(t *testing.T) {
	acc := mustLayout(t)(MMAAccumulator([]int{128, 64}, 4, 2))
	require.Equal(t, [][]int{{32, 0}, {64, 0}, {0, 32}}, acc.WarpBases())
	a := mustLayout(t)(MMAOperandA([]int{128, 32}, 16, 4, 2))
	require.Equal(t, [][]int{{32, 0}, {64, 0}, {0, 0}}, a.WarpBases())
	require.Equal(t, 4, a.FreeWarps())
	b := mustLayout(t)(MMAOperandB([]int{32, 64}, 16, 4, 2))
	require.Equal(t, [][]int{{0, 0}, {0, 0}, {0, 32}}, b.WarpBases())
	require.Equal(t, [][]int{{16, 0}, {32, 0}, {64, 0}}, mustLayout(t)(WGMMAAccumulator([]int{128, 64}, 2)).WarpBases())
	// Two m64 tiles of one warpgroup are registers.
	require.Equal(t, [][]int{{16, 0}, {32, 0}}, mustLayout(t)(WGMMAAccumulator([]int{128, 64}, 1)).WarpBases())
}

// Three warpgroups have a third of the rows each; a slice along the rows is the same in all of
// them, and only the first need store it.
func TestThreeWarpgroups(t *testing.T) {
	for _, rows := range []int{192, 384} {
		acc := mustLayout(t)(WGMMAAccumulator([]int{rows, 16}, 3))
		require.Equal(t, 12, acc.Warps())
		require.Equal(t, rows*16/384, acc.Registers())
		one := mustLayout(t)(WGMMAAccumulator([]int{rows / 3, 16}, 1))
		for w := range 12 {
			for r := range acc.Registers() {
				want := one.At(r, 9, w%4)
				want[0] += w / 4 * rows / 3
				require.Equal(t, want, acc.At(r, 9, w))
			}
		}
		require.Zero(t, acc.FreeWarps())
		columns := acc.Slice(0)
		require.Equal(t, 12, columns.Warps())
		require.Equal(t, 15, columns.FreeWarps())
		require.Equal(t, 3, acc.Slice(1).Parts())
		require.Zero(t, acc.Slice(1).FreeWarps())
		_, ok := acc.Reduce(1)
		require.True(t, ok)
		_, ok = acc.Reduce(0)
		require.False(t, ok)
	}
	blocked := mustLayout(t)(Blocked([]int{192, 64}, []int{1, 0}, 8, 12))
	require.Equal(t, "layout<192x64, reg=(0,1)(0,2)(0,4)(16,0)(32,0), lane=(0,8)(0,16)(0,32)(1,0)(2,0), warp=(4,0)(8,0)*3(64,0)>", blocked.String())
	require.Equal(t, Memory, Convert(mustLayout(t)(WGMMAAccumulator([]int{192, 64}, 3)), blocked).Kind)
}

func TestBlocked(t *testing.T) {
	for _, c := range []struct {
		shape, order []int
		vector       int
		warps        int
		want         string
	}{
		{[]int{128, 64}, []int{1, 0}, 8, 4,
			"layout<128x64, reg=(0,1)(0,2)(0,4)(16,0)(32,0)(64,0), lane=(0,8)(0,16)(0,32)(1,0)(2,0), warp=(4,0)(8,0)>"},
		{[]int{1, 4096}, []int{1, 0}, 8, 4,
			"layout<1x4096, reg=(0,1)(0,2)(0,4)(0,1024)(0,2048), lane=(0,8)(0,16)(0,32)(0,64)(0,128), warp=(0,256)(0,512)>"},
		{[]int{64, 80}, []int{1, 0}, 8, 2,
			"layout<64x80, reg=(0,1)(0,2)(0,4)(32,0), lane=(0,8)(1,0)(2,0)(4,0)(8,0), warp=(16,0)>"},
		{[]int{8, 8}, []int{0, 1}, 4, 2,
			"layout<8x8, reg=(1,0)(2,0), lane=(4,0)(0,1)(0,2)(0,4)(0,0), warp=(0,0)>"},
		{[]int{}, []int{}, 4, 2, "layout<scalar, reg=, lane=()()()()(), warp=()>"},
	} {
		l := mustLayout(t)(Blocked(c.shape, c.order, c.vector, c.warps))
		require.Equal(t, c.want, l.String())
	}
	l := mustLayout(t)(Blocked([]int{128, 64}, []int{1, 0}, 8, 4))
	require.Equal(t, 8, l.Contiguous(1))
	require.Equal(t, 1, l.Contiguous(0))
	require.True(t, l.Additive(0))
}

func TestBadLayouts(t *testing.T) {
	for want, build := range map[string]func() (*Layout, error){
		"accumulator fragment of 24x8: want multiples of 16x8":                              func() (*Layout, error) { return MMAAccumulator([]int{24, 8}, 1, 1) },
		"operand B fragment of 8x8: want multiples of 16x8":                                 func() (*Layout, error) { return MMAOperandB([]int{8, 8}, 8, 1, 1) },
		"fragment of 12-bit elements: want 4, 8, 16 or 32":                                  func() (*Layout, error) { return MMAOperandA([]int{16, 16}, 12, 1, 1) },
		"wgmma accumulator fragment of 32x8: want multiples of 64x8":                        func() (*Layout, error) { return WGMMAAccumulator([]int{32, 8}, 1) },
		"layout over 33 warps: want 1 to 32":                                                func() (*Layout, error) { return Blocked([]int{8, 8}, []int{1, 0}, 1, 33) },
		"accumulator fragment over 3 warps: want a power of two":                            func() (*Layout, error) { return MMAAccumulator([]int{48, 8}, 3, 1) },
		"wgmma accumulator of 128x8 over 3 warpgroups: want 3 times a power of two of rows": func() (*Layout, error) { return WGMMAAccumulator([]int{128, 8}, 3) },
		"blocked layout with vectors of 3 elements: want a power of two":                    func() (*Layout, error) { return Blocked([]int{8, 8}, []int{1, 0}, 3, 1) },
		"layout order [1 1]: want a permutation of 2 dimensions":                            func() (*Layout, error) { return Blocked([]int{8, 8}, []int{1, 1}, 1, 1) },
		"layout extent 0 of dimension 1: want 1 to 65536":                                   func() (*Layout, error) { return Blocked([]int{8, 0}, []int{1, 0}, 1, 1) },
		"layout of 65536x65536: more than 65536 registers":                                  func() (*Layout, error) { return Replicated([]int{65536, 65536}, 1) },
		"layout of 65535x65535: more than 65536 registers":                                  func() (*Layout, error) { return Replicated([]int{65535, 65535}, 1) },
		"layout of 8: its bases reach 2^0 of 2^3 elements":                                  func() (*Layout, error) { return New([]int{8}, nil, zeros(5, 1), nil, nil) },
		"layout with 4 lane bases: want 5":                                                  func() (*Layout, error) { return New([]int{8}, nil, zeros(4, 1), nil, nil) },
		"layout repeat 3 of dimension 0: want a divisor of 8":                               func() (*Layout, error) { return New([]int{8}, nil, zeros(5, 1), nil, []int{3}) },
		"layout register basis [9]: coordinate 9 of dimension 0 is outside extent 8":        func() (*Layout, error) { return New([]int{8}, [][]int{{9}}, zeros(5, 1), nil, nil) },
		"layout basis (8): want coordinates below the power-of-two factors of 12":           func() (*Layout, error) { return New([]int{12}, [][]int{{8}}, zeros(5, 1), nil, nil) },
	} {
		_, err := build()
		require.EqualError(t, err, want)
	}
}

func zeros(n, rank int) [][]int {
	out := make([][]int, n)
	for i := range out {
		out[i] = make([]int, rank)
	}
	return out
}

// Explicit repeats of an even count become register bits, last dimension lowest.
func TestNewUnfoldsRepeats(t *testing.T) {
	l := mustLayout(t)(New([]int{4, 24}, nil, [][]int{{1, 0}, {0, 1}, {0, 0}, {0, 0}, {0, 0}}, nil, []int{2, 12}))
	require.Equal(t, [][]int{{0, 2}, {0, 4}, {2, 0}}, l.RegBases())
	require.Equal(t, []int{1, 3}, l.Repeat())
	require.Equal(t, 24, l.Registers())
	require.Equal(t, fmt.Sprint([]int{0, 8}), fmt.Sprint(l.At(8, 0, 0)))
}
