package vm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// Programs of testdata/cuda whose flow is what matters.

func machine(x *runner) {
	const length, n = 24, 150
	code, input := x.bytesBelow(4*length, 16), x.ints(n, 1000)
	o := out[int32](x, 2*n)
	grid, block := over(n, 64)
	x.launch("machine", grid, block, 0, in(x, code), length, in(x, input), o, n)
	got := o.get()
	for i := range n {
		acc, steps := runMachine(code[i%4*length:][:length], input[i])
		require.Equal(x.t, []int32{acc, steps}, got[2*i:2*i+2], "thread %d", i)
	}
}

func runMachine(p []uint8, acc int32) (result, steps int32) {
	stack := [8]int32{0, 1, 2, 3, 4, 5, 6, 7}
	sp, pc := 0, 0
	for {
		if steps++; steps > 200 || pc >= len(p) {
			return acc, steps
		}
		op := p[pc]
		pc++
		switch op {
		case 0:
			acc += 3
		case 1:
			acc *= 5
		case 2:
			acc ^= acc << 3
		case 3:
			stack[sp&7] = acc
			sp++
		case 4:
			sp--
			acc += stack[sp&7]
		case 5:
			if acc&1 != 0 {
				pc++
			}
		case 6:
			if acc&7 < 4 {
				pc = 0
			}
		case 7:
			acc /= 3
		case 8:
			acc = -acc
		case 9:
			if acc > 1000000 {
				return acc, steps
			}
		case 10:
			acc += stack[(sp+7)&7] - 11
		case 11:
			acc -= 11
		case 12:
			acc %= 1000
		case 13:
			acc += int32(pc)
		default:
			acc++
		}
	}
}

func pointers(x *runner) {
	const n = 70
	v, which := x.floats(n), x.ints(n, 3)
	o := out[float32](x, 2*n)
	grid, block := over(n, 32)
	x.launch("pointers", grid, block, 0, in(x, v), o, in(x, which), n)
	got := o.get()
	for i := range n {
		y := []float32{2 * v[i], v[i] * v[i], -v[i]}[which[i]]
		require.Equal(x.t, y, got[2*i])
		if which[i] == 1 {
			require.Equal(x.t, 3*y*y, got[2*i+1])
		} else {
			requireRounded(x.t, "area", got[2*i+1:2*i+2], func(int) rounded { return exact(y).mul(exact(0.5)).add(exact(400)) })
		}
	}
}

func printing(x *runner) {
	const n = 40
	v := x.floats(n)
	grid, block := over(n, 32)
	before := x.printed
	x.launch("print", grid, block, 0, in(x, v), n)
	var want []string
	for i := 0; i < n; i += 3 {
		parity := []string{"even", "odd"}[i%2]
		want = append(want, fmt.Sprintf("%d: %.3f %s %s %5d|%-4d|%x", i, v[i], parity, []byte{byte('a' + i)}, 7*i, -i, 0x123456789ab*i))
	}
	got := strings.Split(strings.TrimSpace(strings.TrimPrefix(x.printed, before)), "\n")
	slices.Sort(want) // threads print in any order
	slices.Sort(got)
	require.Equal(x.t, want, got)
}

func queens(x *runner) {
	for n, ways := range map[int]uint64{5: 10, 6: 4, 7: 40} {
		total := in(x, []uint64{0})
		grid, block := over(n*n, 32)
		x.launch("queens", grid, block, 0, n, total)
		require.Equal(x.t, ways, total.get()[0])
	}
}

func recursion(x *runner) {
	const n, each = 45, 12
	data := x.ints(n*each, 50)
	o, d := out[uint32](x, 4*n), in(x, data)
	grid, block := over(n, 32)
	x.launch("recursion", grid, block, 0, o, d, each, n)
	got, sorted := o.get(), d.get()
	fib := []uint32{0, 1, 1, 2, 3, 5, 8, 13, 21}
	for i := range n {
		k := uint32(i % 4)
		require.Equal(x.t, []uint32{fib[i%9], uint32(1 - i%7%2), []uint32{k + 1, k + 2, 2*k + 3}[i%3], 77}, got[4*i:4*i+4], i)
		want := slices.Clone(data[i*each : (i+1)*each])
		slices.Sort(want[:each-i%3])
		require.Equal(x.t, want, sorted[i*each:(i+1)*each])
	}
}

func structs(x *runner) {
	const n = 50
	type pixel struct{ R, G, B uint8 }
	j := struct {
		Scale  float64
		Colour [5]pixel
		_      uint8
		Offset [3]int16
		_      uint16
		Seed   int64
		From   uint64
	}{Scale: 1.5, Offset: [3]int16{1, -2, 300}, Seed: 77}
	pixels := make([]pixel, n)
	for i := range pixels {
		v := x.bytesBelow(3, 256)
		pixels[i] = pixel{v[0], v[1], v[2]}
	}
	copy(j.Colour[:], pixels[20:])
	from := in(x, pixels)
	j.From = from.buf.Address
	var b bytes.Buffer
	require.NoError(x.t, binary.Write(&b, binary.LittleEndian, j))
	to, o := out[pixel](x, n), out[float32](x, n)
	grid, block := over(n, 32)
	x.launch("structs", grid, block, 0, b.Bytes(), to, o, n)
	got, numbers := to.get(), o.get()
	for i, p := range pixels {
		c, by := j.Colour[i%5], i%4
		require.Equal(x.t, pixel{
			p.R + c.R + uint8(int(j.Offset[0])+by), p.G - c.G + uint8(int(j.Offset[1])+by), p.B ^ c.B ^ uint8(int(j.Offset[2])+by),
		}, got[i])
		require.Equal(x.t, math.Float32bits(2*1.5+77)^uint32(i), math.Float32bits(numbers[i]))
	}
}

func tangle(x *runner) {
	const blocks, block = 3, 64
	v := x.ints(blocks*block, 1024)
	before := x.ints(blocks*block, 1000)
	o := in(x, before)
	x.launch("tangle", threads(blocks), threads(block), 0, in(x, v), o, blocks*block)
	got := o.get()
	for b := range blocks {
		results, stayed := map[int]int32{}, 0
		for i := b * block; i < (b+1)*block; i++ {
			if w, stays := tangled(v[i]); stays {
				results[i] = w
				stayed++
			}
		}
		require.NotZero(x.t, stayed)
		for i := b * block; i < (b+1)*block; i++ {
			want := before[i]
			if w, ok := results[i]; ok {
				want = w + int32(1000000*stayed)
			}
			require.Equal(x.t, want, got[i], "thread %d", i)
		}
	}
}

// tangled is what a thread of tangle.cu computes; stays is false of one that
// leaves early.
func tangled(v int32) (w int32, stays bool) {
	k := 0
	at := 'A'
	if v%3 == 0 {
		at = 'B'
	}
	for {
		switch at {
		case 'A':
			w += 2
			v = (v*5 + 1) & 1023
			if k++; k > 60 {
				return w, true
			}
			at = 'B'
			if v%7 == 2 {
				at = 'C'
			}
		case 'B':
			w ^= v
			v = (v*3 + 2) & 1023
			switch {
			case v%5 == 1:
				at = 'A'
			case v%211 == 4:
				return 0, false
			default:
				at = 'C'
			}
		case 'C':
			w = w*3 + 1
			if k++; k > 60 {
				return w, true
			}
		search:
			for a := range int32(4) {
				for b := range a + 1 {
					if (v+a*b)&64 != 0 {
						break search
					}
					if (v^w)%13 == a {
						continue
					}
					w += a + b
					if w%29 == 3 {
						break
					}
				}
			}
			v = (v + w) & 1023
			at = 'A'
			if v&1 != 0 {
				at = 'B'
			}
		}
	}
}
