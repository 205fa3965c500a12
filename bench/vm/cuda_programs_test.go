package vm_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir/num"
)

// cudaPrograms are the sources of testdata/cuda with what they must compute.
var cudaPrograms = []cudaProgram{
	{"bfs.cu", bfs},
	{"bits.cu", bitTricks},
	{"digest.cu", digests},
	{"fft.cu", fourier},
	{"flows.cu", flows},
	{"gridbarrier.cu", gridBarrier},
	{"half.cu", halves},
	{"histogram.cu", histogramOfBytes},
	{"hotspot.cu", hotspot},
	{"kmeans.cu", kmeans},
	{"life.cu", lifeAndPath},
	{"local.cu", localArrays},
	{"lock.cu", locks},
	{"lud.cu", lud},
	{"machine.cu", machine},
	{"mandelbrot.cu", mandelbrot},
	{"nbody.cu", nbody},
	{"nw.cu", needlemanWunsch},
	{"pointers.cu", pointers},
	{"print.cu", printing},
	{"queens.cu", queens},
	{"recursion.cu", recursion},
	{"reduce.cu", reductions},
	{"scan.cu", scans},
	{"sgemm.cu", sgemm},
	{"sort.cu", sorts},
	{"spmv.cu", spmv},
	{"stencil.cu", stencil},
	{"structs.cu", structs},
	{"tangle.cu", tangle},
	{"transpose.cu", transposes},
	{"waits.cu", waiting},
}

// threads is a block of n threads in a row.
func threads(n int) dim { return dim{uint32(n), 1, 1} }

// over covers n threads with blocks of a size.
func over(n, block int) (grid, blockDim dim) { return dim{groups(n, block), 1, 1}, threads(block) }

func bfs(x *runner) {
	const nodes = 211
	first, edges := []int32{0}, []int32{}
	for range nodes {
		for range x.rng.IntN(4) {
			edges = append(edges, int32(x.rng.IntN(nodes)))
		}
		first = append(first, int32(len(edges)))
	}
	want := slices.Repeat([]int32{-1}, nodes)
	want[0] = 0
	for queue := []int32{0}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, to := range edges[first[n]:first[n+1]] {
			if want[to] < 0 {
				want[to] = want[n] + 1
				queue = append(queue, to)
			}
		}
	}
	start := slices.Repeat([]int32{-1}, nodes)
	start[0] = 0
	level, f, e := in(x, start), in(x, first), in(x, edges)
	queue, length := in(x, []int32{0}), 1
	for depth := 1; length > 0; depth++ {
		next, count := out[int32](x, nodes), in(x, []int32{0})
		grid, block := over(length, 40)
		x.launch("bfs", grid, block, 0, f, e, level, queue, length, next, count, depth)
		queue, length = next, int(count.get()[0])
	}
	require.Equal(x.t, want, level.get())
}

func bitTricks(x *runner) {
	const n = 77
	a, b := make([]uint32, n), make([]uint32, n)
	for i := range a {
		a[i], b[i] = x.rng.Uint32(), x.rng.Uint32()>>x.rng.IntN(32)
	}
	o := out[uint32](x, 16*n)
	grid, block := over(n, 32)
	x.launch("bits", grid, block, 0, in(x, a), in(x, b), o, n)
	got := o.get()
	for i := range n {
		require.Equal(x.t, bitTricksOf(a[i], b[i]), [16]uint32(got[16*i:16*i+16]), "%#x and %#x", a[i], b[i])
	}
}

func bitTricksOf(x, y uint32) (o [16]uint32) {
	o[0], o[1] = 1000, 7
	for s := 0; s < 32; s += 8 {
		o[0] += uint32(int32(int8(x>>s)) * int32(int8(y>>s)))
		o[1] += x >> s & 255 * (y >> s & 255)
	}
	ffs := uint32(0)
	if x != 0 {
		ffs = uint32(bits.TrailingZeros32(x) + 1)
	}
	o[2] = uint32(bits.OnesCount32(x)) | uint32(bits.LeadingZeros32(y))<<8 | ffs<<16
	o[3] = bits.Reverse32(x)
	both := uint64(y)<<32 | uint64(x)
	for k, sel := range []int{0, 4, 2, 6} {
		o[4] |= uint32(both>>(8*sel)&255) << (8 * k)
	}
	o[5] = uint32(both << (y & 31) >> 32)
	o[6] = uint32(int64(int32(x)) * int64(int32(y)) >> 32)
	o[7] = uint32(uint64(x) * uint64(y) >> 32)
	o[8] = uint32(max(int64(int32(x)), int64(int32(y)))-min(int64(int32(x)), int64(int32(y)))) + 5
	p, q := uint64(x)*uint64(y)+12345, uint64(y)|1<<33
	o[9], o[10] = uint32(p/q), uint32(p%q)
	sp := int64(p) - 1<<62
	o[11] = uint32(sp%1000003) + uint32(sp/77)
	o[12] = uint32(bits.LeadingZeros64(p)) | uint32(bits.OnesCount64(p))<<8
	d := int32(y | 1)
	o[13] = uint32(int32(x)/d + int32(x)%d)
	o[14] = max(x, y) - min(x, y) + 1 + uint32((int64(int32(x))+int64(int32(y)))>>1) + uint32((uint64(x)+uint64(y))>>1)
	hi, _ := bits.Mul64(p, q<<20)
	o[15] = uint32(bits.Reverse64(p)>>32) ^ uint32(hi)
	return o
}

func digests(x *runner) {
	const n = 70
	text := x.bytesBelow(150, 256)
	data := in(x, text)
	sum, crc := out[uint32](x, 8*n), out[uint32](x, n)
	grid, block := over(n, 48)
	x.launch("sha256", grid, block, 0, data, len(text), sum, n)
	x.launch("crc32", grid, block, 0, data, len(text), crc, n)
	sums, crcs := sum.get(), crc.get()
	for i := range n {
		h := sha256.Sum256(text[i:])
		for j := range 8 {
			require.Equal(x.t, binary.BigEndian.Uint32(h[4*j:]), sums[8*i+j], i)
		}
		require.Equal(x.t, crc32.ChecksumIEEE(text[i:]), crcs[i])
	}
}

func fourier(x *runner) {
	const blocks, points = 3, 128
	v := x.floats(2 * blocks * points)
	data := in(x, v)
	x.launch("fft", threads(blocks), threads(points/2), 0, data)
	got := data.get()
	for b := range blocks {
		at := 2 * b * points
		for k := range points {
			var re, im float64
			for j := range points {
				s, c := math.Sincos(-2 * math.Pi * float64(j*k%points) / points)
				p, q := float64(v[at+2*j]), float64(v[at+2*j+1])
				re, im = re+p*c-q*s, im+p*s+q*c
			}
			// Seven stages of rounding, of sums up to 2*128.
			const bound = 7 * 4 * unit32 * 2 * points
			require.InDelta(x.t, re, got[at+2*k], bound)
			require.InDelta(x.t, im, got[at+2*k+1], bound)
		}
	}
}

func gridBarrier(x *runner) {
	const n, times = 101, 5
	v := x.ints(n, 1000)
	a, b := in(x, v), out[int32](x, n)
	x.launch("sweeps", threads(4), threads(32), 0, a, b, n, times, in(x, []uint32{0}), in(x, []uint32{0}))
	for range times {
		next := make([]int32, n)
		for i := range v {
			next[i] = v[(i+n-1)%n] + 2*v[i] + v[(i+1)%n]
		}
		v = next
	}
	require.Equal(x.t, v, b.get()) // after an odd number of sweeps
}

func halves(x *runner) {
	const n = 75
	a, b, f := make([]uint32, n), make([]uint32, n), x.floats(2*n)
	for i := range a {
		a[i], b[i] = x.halfPair(), x.halfPair()
	}
	o := out[uint32](x, 4*n)
	grid, block := over(n, 32)
	x.launch("half2", grid, block, 0, in(x, a), in(x, b), o, n)
	got := o.get()
	for i := range n {
		for h := 0; h < 32; h += 16 {
			p, q := halfValue(a[i]>>h), halfValue(b[i]>>h)
			s := halfValue(uint32(num.F16FromF64(p + q)))
			require.Equal(x.t, s, halfValue(got[4*i]>>h))
			require.Equal(x.t, max(p, q), halfValue(got[4*i+1]>>h))
			want := halfValue(uint32(num.F16FromF64(p*q + s))) // the sum is exact in binary64
			require.Equal(x.t, want, float64(math.Float32frombits(got[4*i+2+h/16])))
		}
	}
	if !strings.Contains(x.kernels(), "bf16x2") {
		return
	}
	o = out[uint32](x, 2*n)
	x.launch("bf16x2", grid, block, 0, in(x, f), o, n)
	got = o.get()
	for i := range n {
		for h := range 2 {
			p := float64(num.BF16ToF32(num.BF16FromF32(f[2*i+h])))
			require.Equal(x.t, p, float64(math.Float32frombits(got[2*i]>>(16*h)<<16)))
			require.Equal(x.t, float64(num.BF16ToF32(num.BF16FromF64(p*p+p))), float64(math.Float32frombits(got[2*i+1]>>(16*h)<<16)))
		}
	}
}

func halfValue(h uint32) float64 { return float64(num.F16ToF32(uint16(h))) }

// halfPair is two numbers from -1 to 1 of 16 bits each.
func (x *runner) halfPair() uint32 {
	v := x.floats(2)
	return uint32(num.F16FromF32(v[0])) | uint32(num.F16FromF32(v[1]))<<16
}

func (x *runner) kernels() string {
	var names []string
	for _, k := range x.mod.Kernels {
		names = append(names, k.Name)
	}
	return strings.Join(names, " ")
}

func histogramOfBytes(x *runner) {
	data := x.bytesBelow(1003, 37)
	bins := in(x, make([]uint32, 256))
	x.launch("histogram", threads(3), threads(96), 0, in(x, data), len(data), bins)
	want := make([]uint32, 256)
	for _, b := range data {
		want[b]++
	}
	require.Equal(x.t, want, bins.get())
}

func hotspot(x *runner) {
	const w, h, steps, tile, k = 23, 17, 3, 16, 0.125
	power, from := x.floats(w*h), x.floats(w*h)
	o := out[float32](x, w*h)
	inner := tile - 2*steps
	x.launch("hotspot", dim{groups(w, inner), groups(h, inner), 1}, dim{tile, tile, 1}, 0, in(x, power), in(x, from), o, w, h, float32(k))
	now := make([]rounded, w*h)
	for i := range now {
		now[i] = exact(from[i])
	}
	for range steps {
		next := make([]rounded, w*h)
		for i := range next {
			px, py := i%w, i/w
			at := func(x, y int) rounded { return now[min(max(y, 0), h-1)*w+min(max(x, 0), w-1)] }
			sum := sumOf(at(px, py-1), at(px, py+1), at(px+1, py), at(px-1, py), exact(-4).mul(now[i]), exact(power[i]))
			next[i] = now[i].add(exact(k).mul(sum))
		}
		now = next
	}
	requireRounded(x.t, "plate", o.get(), func(i int) rounded { return now[i] })
}

func kmeans(x *runner) {
	const n, k, d = 157, 5, 3
	points, centres := x.floats(n*d), x.floats(k*d)
	of, sums, counts := out[int32](x, n), in(x, make([]float32, k*d)), in(x, make([]int32, k))
	grid, block := over(n, 64)
	x.launch("kmeans", grid, block, 0, in(x, points), n, in(x, centres), of, sums, counts)
	distance := func(i, c int) rounded {
		var s rounded
		for j := range d {
			e := exact(points[j*n+i]).sub(exact(centres[c*d+j]))
			s = s.add(e.mul(e))
		}
		return s
	}
	var members [k][]int
	for i, c := range of.get() {
		for other := range k { // no other centre is surely nearer
			a, b := distance(i, int(c)), distance(i, other)
			require.LessOrEqual(x.t, a.v-a.e, b.v+b.e)
		}
		members[c] = append(members[c], i)
	}
	got := counts.get()
	for c := range k {
		require.EqualValues(x.t, len(members[c]), got[c])
	}
	requireRounded(x.t, "sums", sums.get(), func(i int) rounded {
		var all []rounded
		for _, p := range members[i/d] {
			all = append(all, exact(points[i%d*n+p]))
		}
		return sumOf(all...)
	})
}

func lifeAndPath(x *runner) {
	const wordsWide, rows = 3, 13
	cellsOf := make([]uint32, wordsWide*rows)
	for i := range cellsOf {
		cellsOf[i] = x.rng.Uint32()
	}
	o := out[uint32](x, len(cellsOf))
	x.launch("life", dim{1, rows, 1}, threads(32), 0, in(x, cellsOf), o, wordsWide, rows)
	const wide = 32 * wordsWide
	alive := func(cx, cy int) uint32 {
		cx, cy = (cx+wide)%wide, (cy+rows)%rows
		return cellsOf[cy*wordsWide+cx/32] >> (cx % 32) & 1
	}
	got := o.get()
	for i := range wide * rows {
		cx, cy := i%wide, i/wide
		n := -alive(cx, cy)
		for d := range 9 {
			n += alive(cx+d%3-1, cy+d/3-1)
		}
		want := uint32(0)
		if n == 3 || n == 2 && alive(cx, cy) == 1 {
			want = 1
		}
		require.Equal(x.t, want, got[cy*wordsWide+cx/32]>>(cx%32)&1, "cell %d of row %d", cx, cy)
	}

	const cols, all, each = 150, 12, 4
	cost := x.ints(cols*all, 10)
	a, b, table := in(x, cost[:cols]), out[int32](x, cols), in(x, cost)
	want := slices.Clone(cost[:cols])
	for first := 1; first < all; first += each {
		n := min(each, all-first)
		x.launch("path", dim{groups(cols, 64-2*n), 1, 1}, threads(64), 0, table, a, b, cols, first, n)
		a, b = b, a
	}
	for r := 1; r < all; r++ {
		next := make([]int32, cols)
		for c := range next {
			next[c] = slices.Min(want[max(c-1, 0):min(c+2, cols)]) + cost[r*cols+c]
		}
		want = next
	}
	require.Equal(x.t, want, a.get())
}

func localArrays(x *runner) {
	const n = 90
	v := x.ints(n, 100000)
	o := out[int32](x, 2*n)
	grid, block := over(n, 64)
	x.launch("local", grid, block, 0, in(x, v), o, n)
	got := o.get()
	for i := range n {
		var count [16]int32
		for k := range 40 {
			count[v[(i+k*7)%n]&15]++
		}
		order := make([]int, 16)
		for k := range order {
			order[k] = k
		}
		sort.SliceStable(order, func(a, b int) bool { return count[order[a]] > count[order[b]] })
		require.EqualValues(x.t, order[0]*256+order[1]*16+int(count[order[0]]), got[2*i])
		digits := int32(0)
		for _, c := range fmt.Sprint(v[i]) {
			digits = digits*11 + c - '0'
		}
		require.Equal(x.t, digits, got[2*i+1])
	}
}

func locks(x *runner) {
	const blocks, block, kinds = 3, 40, 5
	grid := threads(blocks)
	held, counters := in(x, make([]int32, kinds)), in(x, make([]int32, kinds))
	x.launch("spin", grid, threads(block), 0, held, counters, kinds)
	require.Equal(x.t, slices.Repeat([]int32{blocks * block / kinds}, kinds), counters.get())
	require.Equal(x.t, make([]int32, kinds), held.get())

	one, count := in(x, []int32{0}), in(x, []int32{0})
	x.launch("spinInside", grid, threads(block), 0, one, count)
	require.Equal(x.t, []int32{blocks * block}, count.get())

	log := out[uint32](x, blocks*block)
	length := in(x, []int32{0})
	x.launch("ticket", grid, threads(block), 0, in(x, []uint32{0}), in(x, []uint32{0}), log, length)
	seen := log.get()
	slices.Sort(seen)
	for i, v := range seen {
		require.EqualValues(x.t, i, v)
	}

	const n = 100
	nodes, head := out[uint32](x, 2*n), in(x, []uint32{0})
	x.launch("push", grid, threads(block), 0, nodes, head, n)
	list := nodes.get()
	var values []uint32
	for at := head.get()[0]; at != 0; at = list[2*at-1] {
		values = append(values, list[2*at-2])
	}
	slices.Sort(values)
	require.Len(x.t, values, n)
	for i, v := range values {
		require.EqualValues(x.t, 3*i, v)
	}
}

func lud(x *runner) {
	const b, squares = 16, 3
	const n = b * squares
	v := x.floats(n * n)
	for i := range n {
		v[i*n+i] += n / 4 // well away from singular
	}
	a := in(x, v)
	for s := range squares {
		rest := squares - 1 - s
		x.launch("ludDiagonal", threads(1), threads(b), 0, a, n, s*b)
		if rest > 0 {
			x.launch("ludPerimeter", threads(rest), threads(2*b), 0, a, n, s*b)
			x.launch("ludInternal", dim{uint32(rest), uint32(rest), 1}, dim{b, b, 1}, 0, a, n, s*b)
		}
	}
	// The product of what came out is what went in, up to the backward error of
	// elimination: n u |L||U| for each entry (Higham, 9.3).
	lu := a.get()
	for i := range n {
		for j := range n {
			var sum, magnitude float64
			for k := range min(i, j) + 1 {
				l := 1.0
				if k < i {
					l = float64(lu[i*n+k])
				}
				p := l * float64(lu[k*n+j])
				sum, magnitude = sum+p, magnitude+math.Abs(p)
			}
			require.InDelta(x.t, v[i*n+j], sum, n*2*unit32*magnitude)
		}
	}
}

func mandelbrot(x *runner) {
	const w, h, most, x0, y0, step = 21, 13, 50, -2.0, -1.2, 0.2
	o := out[int32](x, w*h)
	x.launch("mandelbrot", dim{groups(w, 8), groups(h, 8), 1}, dim{8, 8, 1}, 0, o, w, h, x0, y0, step, most)
	for i, got := range o.get() {
		cx, cy := math.FMA(float64(i%w), step, x0), math.FMA(float64(i/w), step, y0)
		var a, b float64
		n := int32(0)
		for ; n < most; n++ {
			aa, bb := a*a, b*b
			if float64(aa)+float64(bb) > 4 {
				break
			}
			b = float64(2*a*b) + cy
			a = float64(float64(aa)-float64(bb)) + cx
		}
		require.Equal(x.t, n, got, i)
	}
}

func nbody(x *runner) {
	const n, soft = 70, 0.25
	v := x.floats(4 * n)
	o := out[float32](x, 4*n)
	grid, block := over(n, 64)
	x.launch("nbody", grid, block, 0, in(x, v), o, n, float32(soft))
	body := func(i int) vec { return vec{exact(v[4*i]), exact(v[4*i+1]), exact(v[4*i+2])} }
	force := make([]vec, n)
	for i := range force {
		var parts [3][]rounded
		for j := range n {
			d := body(j).sub(body(i))
			r := sumOf(d[0].mul(d[0]), d[1].mul(d[1]), d[2].mul(d[2]), exact(soft))
			inv := exact(1).div(r.sqrt()).off(2) // rsqrt.approx: PTX ISA 9.7.3.18, 2^-22.9
			for c, p := range d.times(exact(v[4*j+3]).mul(inv).mul(inv).mul(inv)) {
				parts[c] = append(parts[c], p)
			}
		}
		force[i] = vec{sumOf(parts[0]...), sumOf(parts[1]...), sumOf(parts[2]...)}
	}
	requireRounded(x.t, "force", o.get(), func(i int) rounded {
		if i%4 == 3 {
			return rounded{}
		}
		return force[i/4][i%4]
	})
}
