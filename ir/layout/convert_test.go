package layout

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/kgen-dev/kgen/internal/fixedseed" // of rapid
)

// apply runs a plan on data as a code generator would.
func (p Plan) apply(src, dst *Layout, data fill) fill {
	out := make(fill, len(data))
	for w := range out {
		out[w] = make([][]int, 32)
		for lane := range out[w] {
			out[w][lane] = make([]int, dst.Registers())
			for r := range out[w][lane] {
				if p.Kind == None || p.Kind == Registers {
					out[w][lane][r] = data[w][lane][p.Table[r]]
				}
			}
		}
		if p.Kind == Shuffles {
			for c, from := range p.Exchange.Copies {
				p.Exchange.apply(data[w], out[w], w, from, c)
			}
		}
	}
	return out
}

func (x *Exchange) apply(src, dst [][]int, warp, from, to int) {
	regs := make([][]int, 32)
	for lane := range regs {
		regs[lane] = src[lane][from*x.SourceRegisters:][:x.SourceRegisters]
	}
	selectAll(regs, x.Pre, warp)
	got := make([][]int, 32)
	for lane := range got {
		for _, round := range x.Rounds {
			source := round.Lane
			for i, v := range x.Lane {
				source ^= v * (lane >> i & 1)
			}
			for i, v := range x.Warp {
				source ^= v * (warp >> i & 1)
			}
			got[lane] = append(got[lane], regs[source][round.From])
		}
		slots := make([]int, len(x.Results))
		for k, round := range x.Results {
			slots[k] = got[lane][round]
		}
		got[lane] = slots
	}
	selectAll(got, x.Post, warp)
	for lane := range dst {
		copy(dst[lane][to*x.Registers:][:x.Registers], got[lane])
	}
}

func selectAll(regs [][]int, stages []Select, warp int) {
	for lane := range regs {
		for _, s := range stages {
			if bits.OnesCount(uint((warp<<LaneBits|lane)&s.Threads))%2 == 0 {
				continue
			}
			old := regs[lane]
			regs[lane] = make([]int, len(old))
			for j := range old {
				regs[lane][j] = old[j^s.Xor]
			}
		}
	}
}

// reachable says by enumeration whether each place of dst finds its element in
// the same thread, in the same warp.
func reachable(src, dst *Layout) (thread, warp bool) {
	from, to := load(src), load(dst)
	thread, warp = true, true
	for w := range to {
		inWarp := map[int]bool{}
		for lane := range from[w] {
			for _, e := range from[w][lane] {
				inWarp[e] = true
			}
		}
		for lane := range to[w] {
			inThread := map[int]bool{}
			for _, e := range from[w][lane] {
				inThread[e] = true
			}
			for _, e := range to[w][lane] {
				thread = thread && inThread[e]
				warp = warp && inWarp[e]
			}
		}
	}
	return thread, warp
}

func TestConvert(t *testing.T) {
	kinds := map[Kind]int{}
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(0, 3).Draw(t, "rank"), 8)
		warps := rapid.IntRange(0, 2).Draw(t, "warps")
		src := drawLayout(t, shape, warps, "src")
		dst := drawLayout(t, shape, warps, "dst")
		switch rapid.IntRange(0, 3).Draw(t, "relation") {
		case 0:
			dst = sameWarps(t, src)
		case 1:
			m := *src
			m.reg = rapid.Permutation(src.reg).Draw(t, "registers")
			dst = m.must()
		}
		p := Convert(src, dst)
		kinds[p.Kind]++
		thread, warp := reachable(src, dst)
		// Which register a thread has to take may depend on its part of the warps, which no
		// plan but that through memory does.
		require.Equal(t, warp && src.part == dst.part, p.Kind != Memory, "%v to %v", src, dst)
		if p.Kind <= Registers {
			require.True(t, thread)
		}
		if p.Kind == Memory {
			return
		}
		require.Equal(t, load(dst), p.apply(src, dst, load(src)), "%v to %v: %+v", src, dst, p.Exchange)
		if x := p.Exchange; x != nil && thread {
			require.Zero(t, x.Shuffles(32))
		}
	})
	for k := None; k <= Memory; k++ {
		require.NotZero(t, kinds[k], "no conversion of kind %v drawn", k)
	}
}

// sameWarps draws a layout like l with its register and lane bits shuffled.
func sameWarps(t *rapid.T, l *Layout) *Layout {
	var inner []Coord
	inner = append(append(inner, l.reg...), l.lane[:]...)
	inner = rapid.Permutation(inner).Draw(t, "inner")
	m := &Layout{shape: l.shape, warp: l.warp, parts: l.parts, part: l.part}
	m.reg = inner[:len(l.reg)]
	copy(m.lane[:], inner[len(l.reg):])
	return m.must()
}

// The attention kernel's P: the accumulator of the first product is the A operand
// of the second, in registers alone.
func TestAccumulatorFeedsOperandA(t *testing.T) {
	for _, shape := range [][]int{{64, 64}, {128, 128}, {128, 80}, {64, 176}} {
		acc := mustLayout(t)(MMAAccumulator(shape, 4, 1))
		a := mustLayout(t)(MMAOperandA(shape, 16, 4, 1))
		p := Convert(acc, a)
		require.LessOrEqual(t, p.Kind, Registers)
		require.Equal(t, load(a), p.apply(acc, a, load(acc)))
		require.LessOrEqual(t, Convert(a, acc).Kind, Registers)

		w := mustLayout(t)(WGMMAAccumulator(shape, 1))
		wa := mustLayout(t)(WGMMAOperandA(shape, 16, 1))
		require.LessOrEqual(t, Convert(w, wa).Kind, Registers)
	}
	// For 8-bit elements the columns move among the four lanes of a row.
	acc := mustLayout(t)(MMAAccumulator([]int{64, 64}, 4, 1))
	a := mustLayout(t)(MMAOperandA([]int{64, 64}, 8, 4, 1))
	p := Convert(acc, a)
	require.Equal(t, Shuffles, p.Kind)
	require.Equal(t, load(a), p.apply(acc, a, load(acc)))
	require.Equal(t, 2, p.Exchange.Packed)
}

// What exchanges cost, case by case, each checked by running the plan.
func TestExchangeCosts(t *testing.T) {
	parse := func(text string) *Layout { return mustLayout(t)(Parse(text)) }
	for _, c := range []struct {
		name              string
		src, dst          *Layout
		shuffles, selects int
	}{
		{"copies in registers need selects alone",
			mustLayout(t)(Replicated([]int{32}, 1)), mustLayout(t)(Blocked([]int{32}, []int{0}, 1, 1)), 0, 5 * 32},
		{"a lane bit and a register bit trade places: half of the registers stay",
			parse("layout<128, reg=(32)(64), lane=(1)(2)(4)(8)(16), warp=>"),
			parse("layout<128, reg=(1)(64), lane=(32)(2)(4)(8)(16), warp=>"), 2, 2 * 4},
		{"row sums of an accumulator, one a thread: each of four lanes offers its row",
			mustLayout(t)(MMAAccumulator([]int{128, 64}, 4, 1)).Slice(1), mustLayout(t)(Blocked([]int{128}, []int{0}, 1, 4)), 1, 2 * 4},
		{"lanes that hold copies take over what registers held",
			parse("layout<32, reg=(16), lane=(1)(2)(4)(8)(0), warp=>"),
			parse("layout<32, reg=, lane=(2)(4)(8)(16)(1), warp=>"), 1, 2},
		{"two lanes want two registers of one lane: a spare result",
			parse("layout<64, reg=(32), lane=(1)(2)(4)(8)(16), warp=(0)>"),
			parse("layout<64, reg=, lane=(32)(2)(4)(8)(16), warp=(1)>"), 2, 2 + 2},
		{"odd repeats go alike",
			parse("layout<160, reg=, lane=(1)(2)(4)(8)(16), warp=>"),
			parse("layout<160, reg=, lane=(16)(2)(4)(8)(1), warp=>"), 5, 0},
		{"registers that repeat are fetched once",
			parse("layout<32, reg=, lane=(1)(2)(4)(8)(16), warp=>"),
			parse("layout<32, reg=(0)(16)(16), lane=(1)(2)(4)(8)(0), warp=>"), 2, 0},
	} {
		p := Convert(c.src, c.dst)
		require.Equal(t, Shuffles, p.Kind, c.name)
		require.Equal(t, load(c.dst), p.apply(c.src, c.dst, load(c.src)), "%s: %+v", c.name, p.Exchange)
		require.Equal(t, c.shuffles, p.Exchange.Shuffles(32), "%s: %+v", c.name, p.Exchange)
		require.Equal(t, c.selects, p.Exchange.Selects(), "%s: %+v", c.name, p.Exchange)
	}
	// Pairs of 16-bit elements share a shuffle, 64-bit elements take two.
	acc := mustLayout(t)(MMAAccumulator([]int{64, 64}, 4, 1))
	x := Convert(acc, mustLayout(t)(MMAOperandA([]int{64, 64}, 8, 4, 1))).Exchange
	require.Equal(t, []int{16, 16, 32, 64}, []int{x.Shuffles(8), x.Shuffles(16), x.Shuffles(32), x.Shuffles(64)})
}

// A spread layout has each element in the same warps, in no more registers, and its
// copies are told by shuffles at most.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(1, 3).Draw(t, "rank"), 6)
		l := drawLayout(t, shape, rapid.IntRange(0, 2).Draw(t, "warps"), "layout")
		s := l.Spread()
		require.LessOrEqual(t, s.Registers(), l.Registers())
		require.Equal(t, l.WarpBases(), s.WarpBases())
		require.LessOrEqual(t, Convert(s, l).Kind, Shuffles)
		if l.FreeLanes() != 0 && l.RegisterBits() > 0 {
			require.Less(t, s.Registers(), l.Registers())
		}
	})
}

// TestWidth: lanes that read one and the same lane of their group do so by its number.
func TestWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, rapid.IntRange(1, 2).Draw(t, "rank"), 6)
		l := drawLayout(t, shape, rapid.IntRange(0, 2).Draw(t, "warps"), "layout")
		plan := Convert(l.Spread(), l)
		if plan.Kind != Shuffles {
			return
		}
		x := plan.Exchange
		width, ok := x.Width()
		if !ok {
			return
		}
		for lane := range 1 << LaneBits {
			source := 0
			for i := range LaneBits {
				if lane>>i&1 == 1 {
					source ^= x.Lane[i]
				}
			}
			for _, r := range x.Rounds {
				require.Equal(t, lane/width*width+r.Lane, source^r.Lane)
			}
		}
	})
	l, err := New([]int{64}, [][]int{{2}, {4}, {8}, {16}, {32}}, [][]int{{0}, {0}, {0}, {0}, {1}}, nil, nil)
	require.NoError(t, err)
	width, ok := Convert(l.Spread(), l).Exchange.Width()
	require.True(t, ok)
	require.Equal(t, 16, width)
}
