package vm_test

import (
	"math"
	"slices"
	"sort"

	"github.com/stretchr/testify/require"
)

// More programs of testdata/cuda that compute on arrays.

func needlemanWunsch(x *runner) {
	const b, squares, penalty = 16, 3, 7
	const n = b*squares + 1
	match := x.ints(n*n, 20)
	for i := range match {
		match[i] -= 10
	}
	want := make([]int32, n*n)
	for i := range n {
		want[i], want[i*n] = int32(-i*penalty), int32(-i*penalty)
	}
	score := in(x, want) // its first row and column
	for y := 1; y < n; y++ {
		for c := 1; c < n; c++ {
			want[y*n+c] = max(want[(y-1)*n+c-1]+match[y*n+c], want[y*n+c-1]-penalty, want[(y-1)*n+c]-penalty)
		}
	}
	m := in(x, match)
	for d := range 2*squares - 1 {
		first := max(0, d-squares+1)
		// The squares of a diagonal have rows and columns that add up to d.
		x.launch("nw", threads(min(d, squares-1)-first+1), threads(b), 0, score, m, n, penalty, first, d+1)
	}
	require.Equal(x.t, want, score.get())
}

func reductions(x *runner) {
	const n, blocks = 1001, 5
	v := x.floats(n)
	wide := make([]float64, n)
	long := make([]int64, n)
	var all []rounded
	var sum int64
	for i := range v {
		wide[i] = float64(v[i])
		long[i] = int64(x.rng.Uint64())
		sum += long[i]
		all = append(all, exact(v[i]))
	}
	of := out[float32](x, 1)
	x.launch("sumF32", threads(blocks), threads(128), 0, in(x, v), n, out[float32](x, blocks), in(x, []uint32{0}), of)
	requireRounded(x.t, "sum", of.get(), func(int) rounded { return sumOf(all...) })
	od := out[float64](x, 1)
	x.launch("sumF64", threads(blocks), threads(64), 0, in(x, wide), n, out[float64](x, blocks), in(x, []uint32{0}), od)
	require.InDelta(x.t, sumOf(all...).v, od.get()[0], n*n*unit64)
	ol := out[int64](x, 1)
	x.launch("sumI64", threads(blocks), threads(96), 0, in(x, long), n, out[int64](x, blocks), in(x, []uint32{0}), ol)
	require.Equal(x.t, sum, ol.get()[0])
}

func scans(x *runner) {
	before := func(v []int32) []int32 {
		s := make([]int32, len(v))
		for i := 1; i < len(v); i++ {
			s[i] = s[i-1] + v[i-1]
		}
		return s
	}
	v := x.ints(117, 1000)
	o := out[int32](x, len(v))
	x.launch("scanTree", threads(1), threads(64), 4*(128+4), in(x, v), o, len(v))
	require.Equal(x.t, before(v), o.get())

	const block = 96
	v = x.ints(7*block+5, 1000)
	blocks := int(groups(len(v), block))
	o = out[int32](x, len(v))
	zero := func() array[int32] { return in(x, make([]int32, blocks)) }
	x.launch("scanLookBack", threads(blocks), threads(block), 0, in(x, v), o, len(v), zero(), zero(), zero(), in(x, []int32{0}))
	require.Equal(x.t, before(v), o.get())
}

func sgemm(x *runner) {
	const m, n, k = 41, 37, 21
	a, b, c := x.floats(m*k), x.floats(k*n), x.floats(m*n)
	o := in(x, c)
	x.launch("sgemm", dim{groups(n, 32), groups(m, 32), 1}, threads(128), 0, in(x, a), in(x, b), o, m, n, k)
	requireRounded(x.t, "c", o.get(), func(i int) rounded {
		all := []rounded{exact(c[i])}
		for p := range k {
			all = append(all, exact(a[i/n*k+p]).mul(exact(b[p*n+i%n])))
		}
		return sumOf(all...)
	})
}

func sorts(x *runner) {
	keys := make([]uint32, 203)
	for i := range keys {
		keys[i] = x.rng.Uint32() >> x.rng.IntN(30) // some equal
	}
	a := in(x, keys)
	x.launch("bitonic", threads(1), threads(128), 4*256, a, len(keys))
	want := slices.Clone(keys)
	slices.Sort(want)
	require.Equal(x.t, want, a.get())

	values := make([]uint32, len(keys))
	order := make([]uint32, len(keys))
	for i := range values {
		values[i], order[i] = uint32(i), uint32(i)
	}
	sort.SliceStable(order, func(i, j int) bool { return keys[order[i]] < keys[order[j]] })
	a, b := in(x, keys), in(x, values)
	x.launch("radix", threads(1), threads(256), 0, a, b, len(keys))
	require.Equal(x.t, want, a.get())
	require.Equal(x.t, order, b.get())
}

func spmv(x *runner) {
	const rows, cols = 61, 83
	row, col := []int32{0}, []int32{}
	for r := range rows {
		for range x.rng.IntN(3) * x.rng.IntN(10) * (r % 4) {
			col = append(col, int32(x.rng.IntN(cols)))
		}
		row = append(row, int32(len(col)))
	}
	val, vector := x.floats(len(col)), x.floats(cols)
	want := func(r int) rounded {
		var all []rounded
		for e := row[r]; e < row[r+1]; e++ {
			all = append(all, exact(val[e]).mul(exact(vector[col[e]])))
		}
		return sumOf(all...)
	}
	dr, dc, dv, dx := in(x, row), in(x, col), in(x, val), in(x, vector)
	for kernel, width := range map[string]int{"spmvWarp": 32, "spmvThread": 1} {
		o := out[float32](x, rows)
		grid, block := over(rows*width, 96)
		x.launch(kernel, grid, block, 0, dr, dc, dv, dx, o, rows)
		requireRounded(x.t, kernel, o.get(), want)
	}
	o := out[float64](x, rows)
	grid, block := over(rows*8, 96)
	x.launch("spmvPart", grid, block, 0, dr, dc, in(x, widen(val)), in(x, widen(vector)), o, rows)
	for r, got := range o.get() {
		require.InDelta(x.t, want(r).v, got, float64(row[r+1]-row[r])*2*unit64*float64(len(col)))
	}
}

func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i := range v {
		w[i] = float64(v[i])
	}
	return w
}

func stencil(x *runner) {
	const nx, ny, nz, r = 23, 13, 9, 2
	v, before := widen(x.floats(nx*ny*nz)), widen(x.floats(nx*ny*nz))
	o := in(x, before)
	x.launch("stencil", dim{groups(nx, 16), groups(ny, 8), 1}, dim{16, 8, 1}, 0, in(x, v), o, nx, ny, nz)
	weight := []float64{-2.5, 4.0 / 3, -1.0 / 12}
	c := cells{nx, ny, nz}
	for i, got := range o.get() {
		cx, cy, cz := c.of(i)
		if min(cx, cy, cz) < r || cx >= nx-r || cy >= ny-r || cz >= nz-r {
			require.Equal(x.t, before[i], got)
			continue
		}
		want := 3 * weight[0] * v[i]
		for d := 1; d <= r; d++ {
			for _, step := range []int{1, nx, nx * ny} {
				want += weight[d] * (v[i-d*step] + v[i+d*step])
			}
		}
		require.InDelta(x.t, want, got, 20*2*unit64*3*(2.5+8.0/3+1.0/6), i)
	}
}

func transposes(x *runner) {
	const w, h = 45, 37
	f, d, b := x.floats(w*h), widen(x.floats(w*h)), x.bytesBelow(w*h, 256)
	of, od, ob := out[float32](x, w*h), out[float64](x, w*h), out[uint8](x, w*h)
	x.launch("transposeF32", dim{groups(w, 32), groups(h, 32), 1}, dim{32, 8, 1}, 0, in(x, f), of, w, h)
	x.launch("transposeF64", dim{groups(w, 16), groups(h, 16), 1}, dim{16, 8, 1}, 0, in(x, d), od, w, h)
	x.launch("transposeU8", dim{groups(w, 16), groups(h, 16), 1}, dim{16, 4, 1}, 0, in(x, b), ob, w, h)
	gf, gd, gb := of.get(), od.get(), ob.get()
	for i := range w * h {
		from := i%h*w + i/h
		require.Equal(x.t, f[from], gf[i])
		require.Equal(x.t, math.Float64bits(d[from]), math.Float64bits(gd[i]))
		require.Equal(x.t, b[from], gb[i])
	}
}
