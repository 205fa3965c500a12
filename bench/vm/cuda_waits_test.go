package vm_test

import (
	"math/bits"

	"github.com/stretchr/testify/require"
)

// Programs of testdata/cuda that wait in memory, and those whose lanes part.

func waiting(x *runner) {
	const block, grid, rounds, n = 96, 5, 4, 300
	o := out[int32](x, block)
	x.launch("lanes", threads(1), threads(block), 0, o)
	for i, got := range o.get() {
		want := int32(1)
		for lane := int32(30); lane >= int32(i%32); lane-- {
			want = 3*want + lane
		}
		require.Equal(x.t, want, got, "lane %d", i)
	}

	numbers := make([]int32, block)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	o = out[int32](x, block)
	x.launch("bothWays", threads(1), threads(block), 0, in(x, make([]int32, block)), o)
	require.Equal(x.t, numbers, o.get())

	o = out[int32](x, grid)
	x.launch("ring", threads(grid), threads(block), 0, o, rounds)
	want := int32(1)
	for i := range rounds * block / 32 {
		want = want*3 + int32(i%(block/32))
	}
	require.Equal(x.t, []int32{want, want, want, want, want}, o.get())

	o = out[int32](x, grid*block)
	x.launch("chain", threads(grid), threads(block), 0, in(x, []int32{0}), o)
	for i, got := range o.get() {
		require.Equal(x.t, int32((grid-i/block)*(i%block+1)), got, "thread %d", i)
	}

	values, sum := x.ints(n, 1000), int32(0)
	for _, v := range values {
		sum += v
	}
	count, part, total := in(x, []uint32{0}), out[int32](x, grid), out[int32](x, 1)
	for range 2 { // the count starts again by itself
		x.launch("last", threads(grid), threads(32), 0, in(x, values), part, count, total, n)
		require.Equal(x.t, []int32{sum}, total.get())
	}

	o = out[int32](x, 32)
	x.launch("inFunction", threads(1), threads(32), 0, in(x, []int32{0}), o)
	for i, got := range o.get() {
		require.Equal(x.t, int32(5+i), got)
	}

	const turns = 20000
	for _, block := range []int{32, 33} { // lanes of one warp, and another warp
		o := out[uint32](x, block)
		x.launch("counts", threads(1), threads(block), 0, in(x, []int32{0}), o, uint32(turns))
		want := uint32(block - 1)
		for range turns {
			want = want*1664525 + 1013904223
		}
		got := o.get()
		require.Equal(x.t, want, got[block-1])
		for _, one := range got[:block-1] {
			require.Equal(x.t, uint32(1), one)
		}
	}
}

func flows(x *runner) {
	const n = 140
	grid, block := over(n, 64)
	which := x.ints(n, 64)
	first, second := out[int32](x, n), out[int32](x, n)
	x.launch("tables", grid, block, 0, in(x, which), first, n)
	x.launch("setTable", threads(1), threads(4), 0)
	x.launch("tables", grid, block, 0, in(x, which), second, n)
	for i := range n {
		require.Equal(x.t, byTables([4]func(a, b int32) int32{minus, times, folded, plus}, which, i), first.get()[i], "thread %d", i)
		require.Equal(x.t, byTables([4]func(a, b int32) int32{folded, plus, folded, plus}, which, i), second.get()[i], "thread %d", i)
	}

	op := x.ints(n, 21)
	for i := range op {
		op[i] -= 4
	}
	o := out[int32](x, n)
	x.launch("switches", grid, block, 0, in(x, op), o, n)
	for i, got := range o.get() {
		want := int32(i)
		for k := range 4 {
			want = chosen(op[(i*4+k)%n], want)
		}
		require.Equal(x.t, want, got, "thread %d", i)
	}

	v := x.ints(n, 4096)
	o = out[int32](x, n)
	x.launch("irreducible", grid, block, 0, in(x, v), o, n)
	for i, got := range o.get() {
		require.Equal(x.t, enteredInside(v[i]), got, "thread %d", i)
	}

	o = out[int32](x, 64)
	x.launch("allocas", threads(1), threads(64), 0, o)
	for i, got := range o.get() {
		require.Equal(x.t, sized(int32(1+i%9)), got, "thread %d", i)
	}
	leaving(x)
	matching(x)
	specialRegisters(x)
}

func plus(a, b int32) int32   { return a + b }
func minus(a, b int32) int32  { return a - b }
func times(a, b int32) int32  { return a * b }
func folded(a, b int32) int32 { return a ^ b<<3 ^ a>>5 }

// byTables is what a thread of tables gives with these functions in the table in
// global memory.
func byTables(globals [4]func(a, b int32) int32, which []int32, i int) int32 {
	constants, with := []func(a, b int32) int32{folded, plus, times, minus}, []int32{3, 10, 5, 77}
	v := int32(i)
	for k := range 5 {
		w := which[(i+k)%len(which)]
		v = constants[w&3](v, with[w&3])
		v = globals[w>>2&3](v, int32(k))
		if w&16 != 0 {
			v = globals[1+w>>5&1](v, int32(i))
		}
	}
	return v
}

func chosen(op, v int32) int32 {
	switch op {
	case 0:
		return v + 1
	case 1:
		v = v*3 ^ 0x55
	case 2:
		v ^= 0x55
	case 3:
		return -v
	case 4:
		v /= 3
	case 5:
		v += op - 1000
	case 6, 7:
		v += op
	case 8:
		return v << 2
	case 9:
		v %= 17
	case 11:
		v = ^v
	case 12:
		if v <= 0 {
			v = 12
		}
	case 13:
		return v & 0xffff
	case 14:
		v |= 0x1000
	case 15:
		v >>= 1
	case -3:
		v = 5
	default:
		v += 100
	}
	return v * 2
}

// enteredInside is what a thread of irreducible gives.
func enteredInside(v int32) int32 {
	var c, d int32
	at := "outer"
	switch {
	case v&1 != 0:
		at = "inner"
	case v&2 != 0:
		at = "side"
	}
	for {
		switch at {
		case "outer":
			c++
			v = (v*7 + 3) & 0xfff
			at = "inner"
		case "inner":
			d += v & 3
			if d > 40 || c > 50 {
				return c<<20 + d<<12 + v
			}
			if at = "side"; v%5 == 2 {
				v += 9
			} else if v ^= 0x2b; v&4 != 0 {
				at = "outer"
			}
		case "side":
			d++
			v = (v + c) & 0xfff
			switch {
			case v&8 != 0:
				at = "inner"
			case c < 30:
				at = "outer"
			default:
				return c<<20 + d<<12 + v
			}
		}
	}
}

func sized(n int32) (s int32) {
	for i := n - 1; i >= 0; i -= 2 {
		s = s*3 + i*n
	}
	if n > 1 {
		s += sized(n / 2)
	}
	return s
}

// leaving: before each vote the lanes that have left are out of its mask.
func leaving(x *runner) {
	const block = 64
	before := make([]uint32, block)
	for i := range before {
		before[i] = 0xabcd
	}
	o := in(x, before)
	x.launch("leaving", threads(1), threads(block), 0, o)
	for i, got := range o.get() {
		lane, sum, mask := uint32(i%32), uint32(0), uint32(1<<32-1)
		if lane%7 < 6 {
			require.Equal(x.t, uint32(0xabcd), got, "lane %d has left", lane)
			continue
		}
		for round := range uint32(6) {
			for l := range uint32(32) {
				if l%7 == round {
					mask &^= 1 << l
				}
			}
			sum = sum*5 + uint32(bits.OnesCount32(mask&0xaaaaaaaa))
			if mask&63 == 0 {
				sum += 100
			}
			sum += 1000 * (mask >> 12 & 1)
			sum += uint32(bits.TrailingZeros32(mask)) + round + 7
		}
		require.Equal(x.t, sum, got, "lane %d", lane)
	}
}

func matching(x *runner) {
	v := append(x.ints(32, 100), x.ints(32, 300)...)
	for range 32 {
		v = append(v, 41)
	}
	o := out[uint32](x, 4*len(v))
	x.launch("matching", threads(1), threads(len(v)), 0, in(x, v), o)
	got := o.get()
	for i := range v {
		var like, xor, sum, most uint32
		hundreds, least := true, int32(0)
		for l := range 32 {
			w := v[i&^31+l]
			if w == v[i] {
				like |= 1 << l
			}
			hundreds = hundreds && w/100 == v[i]/100
			if w&1 != 0 {
				xor, sum, most, least = xor^uint32(w), sum+uint32(w), max(most, uint32(w)), min(least, -w)
			}
		}
		want := []uint32{like, 0, 1, 1}
		if hundreds {
			want[1] = 1 // the mask of all lanes, and twice true
		}
		if v[i]&1 != 0 {
			want[3] += sum*3 + most + uint32(least) + xor
		}
		require.Equal(x.t, want, got[4*i:4*i+4], "thread %d", i)
	}
}

func specialRegisters(x *runner) {
	grid, block, shared := dim{2, 3, 2}, dim{5, 3, 4}, 40
	each := int(block[0] * block[1] * block[2])
	n := int(grid[0]*grid[1]*grid[2]) * each
	o := out[uint32](x, 12*n)
	x.launch("registers", grid, block, shared, o)
	got := o.get()
	for i := range n {
		th, bl := i%each, i/each
		lane := th % 32
		below := uint32(1)<<lane - 1
		want := []uint32{
			uint32(lane), below + 1, below, below<<1 | 1, ^(below<<1 | 1), ^below,
			uint32(th / 5 % 3), 4, uint32(bl / 6), 3, uint32(shared), 31,
		}
		for k := range want {
			require.Equal(x.t, want[k], got[k*n+i], "number %d of thread %d", k, i)
		}
	}
}
