package vm_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"
)

const (
	mumaxN     = 389
	mumaxBlock = 96
)

// line covers mumaxN elements with blocks in two dimensions, some of them
// beyond the end.
var line = dim{3, groups(mumaxN, 3*mumaxBlock), 1}

var lineBlock = dim{mumaxBlock, 1, 1}

// mumaxCases are kernels by their wrapper's name.
var mumaxCases = map[string]func(x *runner){
	"madd2": func(x *runner) { x.weightedSum(2) },
	"madd3": func(x *runner) { x.weightedSum(3) },
	"madd4": func(x *runner) { x.weightedSum(4) },
	"madd7": func(x *runner) { x.weightedSum(7) },
	"mul": func(x *runner) {
		a, b := x.floats(mumaxN), x.floats(mumaxN)
		o := out[float32](x, mumaxN)
		x.launch("mul", line, lineBlock, 0, o, in(x, a), in(x, b), mumaxN)
		for i, got := range o.get() {
			require.Equal(x.t, a[i]*b[i], got)
		}
	},
	"pointwise_div": func(x *runner) {
		a, b := x.floats(mumaxN), x.floats(mumaxN)
		for i := 0; i < mumaxN; i += 7 {
			b[i] = 0 // and 0 comes of it
		}
		o := out[float32](x, mumaxN)
		x.launch("pointwise_div", line, lineBlock, 0, o, in(x, a), in(x, b), mumaxN)
		for i, got := range o.get() {
			want := float32(0)
			if b[i] != 0 {
				want = a[i] / b[i]
			}
			require.Equal(x.t, want, got, i)
		}
	},
	"dotproduct": func(x *runner) {
		a, av := x.field(mumaxN)
		b, bv := x.field(mumaxN)
		before := x.floats(mumaxN)
		dst := in(x, before)
		x.launch("dotproduct", line, lineBlock, 0, dst, float32(-0.75), a[0], a[1], a[2], b[0], b[1], b[2], mumaxN)
		requireRounded(x.t, "dst", dst.get(), func(i int) rounded {
			return exact(before[i]).add(exact(-0.75).mul(exactVec(av[i]).dot(exactVec(bv[i]))))
		})
	},
	"crossproduct": func(x *runner) {
		a, av := x.field(mumaxN)
		b, bv := x.field(mumaxN)
		o := x.outField(mumaxN)
		x.launch("crossproduct", line, lineBlock, 0, o[0], o[1], o[2], a[0], a[1], a[2], b[0], b[1], b[2], mumaxN)
		o.require(x.t, "cross", func(i int) vec { return exactVec(av[i]).cross(exactVec(bv[i])) })
	},
	"normalize": func(x *runner) {
		for _, volumes := range []bool{false, true} {
			v := make([][3]float32, mumaxN)
			var f field
			for c := range f {
				component := x.floats(mumaxN)
				component[5] = 0
				for i := range v {
					v[i][c] = component[i]
				}
				f[c] = in(x, component)
			}
			vol := x.floats(mumaxN)
			var arg any = null{}
			if volumes {
				arg = in(x, vol)
			}
			x.launch("normalize", line, lineBlock, 0, f[0], f[1], f[2], arg, mumaxN)
			f.require(x.t, "unit", func(i int) vec {
				if volumes {
					return exactVec(v[i]).times(exact(vol[i])).unit()
				}
				return exactVec(v[i]).unit()
			})
		}
	},
	"reducesum": func(x *runner) {
		v := x.floats(mumaxN)
		x.reduce("reducesum", -3, false, func(i int) rounded { return exact(v[i]) }, in(x, v))
	},
	"reducedot": func(x *runner) {
		a, b := x.floats(mumaxN), x.floats(mumaxN)
		x.reduce("reducedot", 0, false, func(i int) rounded { return exact(a[i]).mul(exact(b[i])) }, in(x, a), in(x, b))
	},
	"reducemaxabs": func(x *runner) {
		v := x.floats(mumaxN)
		x.reduce("reducemaxabs", 0, true, func(i int) rounded { return exact(float32(math.Abs(float64(v[i])))) }, in(x, v))
	},
	"reducemaxdiff": func(x *runner) {
		a, b := x.floats(mumaxN), x.floats(mumaxN)
		x.reduce("reducemaxdiff", 0, true, func(i int) rounded { return exact(float32(math.Abs(float64(a[i] - b[i])))) }, in(x, a), in(x, b))
	},
	"reducemaxvecnorm2": func(x *runner) {
		f, v := x.field(mumaxN)
		x.reduce("reducemaxvecnorm2", 0, true, func(i int) rounded { a := exactVec(v[i]); return a.dot(a) }, f[0], f[1], f[2])
	},
	"reducemaxvecdiff2": func(x *runner) {
		f, v := x.field(mumaxN)
		g, w := x.field(mumaxN)
		x.reduce("reducemaxvecdiff2", 0, true, func(i int) rounded { a := exactVec(v[i]).sub(exactVec(w[i])); return a.dot(a) },
			f[0], f[1], f[2], g[0], g[1], g[2])
	},
	"lltorque2": func(x *runner) {
		for _, arrayOfAlpha := range []bool{false, true} {
			m, mv := x.field(mumaxN)
			h, hv := x.field(mumaxN)
			o := x.outField(mumaxN)
			alphas := x.floats(mumaxN)
			var arg any = null{}
			if arrayOfAlpha {
				arg = in(x, alphas)
			}
			x.launch("lltorque2", line, lineBlock, 0, o[0], o[1], o[2], m[0], m[1], m[2], h[0], h[1], h[2], arg, float32(0.3), mumaxN)
			o.require(x.t, "torque", func(i int) vec {
				alpha := exact(0.3)
				if arrayOfAlpha {
					alpha = alpha.mul(exact(alphas[i]))
				}
				m := exactVec(mv[i])
				mh := m.cross(exactVec(hv[i]))
				return mh.add(m.cross(mh).times(alpha)).times(exact(-1).div(exact(1).add(alpha.mul(alpha))))
			})
		}
	},
	"llnoprecess": func(x *runner) {
		m, mv := x.field(mumaxN)
		h, hv := x.field(mumaxN)
		o := x.outField(mumaxN)
		x.launch("llnoprecess", line, lineBlock, 0, o[0], o[1], o[2], m[0], m[1], m[2], h[0], h[1], h[2], mumaxN)
		o.require(x.t, "torque", func(i int) vec {
			m := exactVec(mv[i])
			return m.cross(m.cross(exactVec(hv[i]))).times(exact(-1))
		})
	},
	"minimize": func(x *runner) {
		m0, m0v := x.field(mumaxN)
		torque, tv := x.field(mumaxN)
		o := x.outField(mumaxN)
		const dt = 0.125
		x.launch("minimize", line, lineBlock, 0, o[0], o[1], o[2], m0[0], m0[1], m0[2], torque[0], torque[1], torque[2], float32(dt), mumaxN)
		o.require(x.t, "m", func(i int) vec {
			t := exactVec(tv[i])
			t2 := exact(dt * dt).mul(t.dot(t))
			sum := exactVec(m0v[i]).times(exact(4).sub(t2)).add(t.times(exact(4 * dt)))
			var v vec
			for c := range v {
				v[c] = sum[c].div(exact(4).add(t2))
			}
			return v
		})
	},
	"kernmulC": func(x *runner) {
		c := cells{13, 7, 1}
		m, k := x.floats(2*c.n()), x.floats(2*c.n())
		fft := in(x, m)
		x.launch("kernmulC", c.grid(), cellBlock, 0, fft, in(x, k), c.x, c.y)
		requireRounded(x.t, "fft", fft.get(), func(i int) rounded {
			j := i &^ 1
			re, im, kre, kim := exact(m[j]), exact(m[j+1]), exact(k[j]), exact(k[j+1])
			if i == j {
				return re.mul(kre).sub(im.mul(kim))
			}
			return re.mul(kim).add(im.mul(kre))
		})
	},
	"kernmulRSymm2Dz": func(x *runner) {
		c := cells{13, 9, 1}
		m, k := x.floats(2*c.n()), x.floats(c.n())
		fft := in(x, m)
		x.launch("kernmulRSymm2Dz", c.grid(), cellBlock, 0, fft, in(x, k), c.x, c.y)
		for i, got := range fft.get() {
			cx, cy, _ := c.of(i / 2)
			require.Equal(x.t, m[i]*k[c.at(cx, mirror(cy, c.y), 0)], got)
		}
	},
	"kernmulRSymm2Dxy": func(x *runner) {
		c := cells{11, 10, 1}
		mx, my := x.floats(2*c.n()), x.floats(2*c.n())
		kxx, kyy, kxy := x.floats(c.n()), x.floats(c.n()), x.floats(c.n())
		fx, fy := in(x, mx), in(x, my)
		x.launch("kernmulRSymm2Dxy", c.grid(), cellBlock, 0, fx, fy, in(x, kxx), in(x, kyy), in(x, kxy), c.x, c.y)
		row := func(same, other, k []float32) func(i int) rounded {
			return func(i int) rounded {
				cx, cy, _ := c.of(i / 2)
				j := c.at(cx, mirror(cy, c.y), 0)
				mixed := exact(kxy[j])
				if cy > c.y/2 {
					mixed = mixed.neg()
				}
				return exact(same[i]).mul(exact(k[j])).add(exact(other[i]).mul(mixed))
			}
		}
		requireRounded(x.t, "x", fx.get(), row(mx, my, kxx))
		requireRounded(x.t, "y", fy.get(), row(my, mx, kyy))
	},
	"kernmulRSymm3D": func(x *runner) {
		c := cells{9, 6, 5}
		half := cells{c.x, c.y/2 + 1, c.z/2 + 1}
		m, mv := x.field(2 * c.n())
		var k [6]array[float32] // xx yy zz yz xz xy
		var kv [6][]float32
		for i := range k {
			kv[i] = x.floats(half.n())
			k[i] = in(x, kv[i])
		}
		x.launch("kernmulRSymm3D", c.grid(), cellBlock, 0, m[0], m[1], m[2], k[0], k[1], k[2], k[3], k[4], k[5], c.x, c.y, c.z)
		m.require(x.t, "fft", func(i int) vec {
			cx, cy, cz := c.of(i / 2)
			at := half.at(cx, mirror(cy, c.y), mirror(cz, c.z))
			var kk [6]rounded
			for j := range kk {
				kk[j] = exact(kv[j][at])
			}
			y, z := cy > c.y/2, cz > c.z/2
			for j, flip := range [6]bool{3: y != z, 4: z, 5: y} {
				if flip {
					kk[j] = kk[j].neg()
				}
			}
			v := exactVec(mv[i])
			return vec{v.dot(vec{kk[0], kk[5], kk[4]}), v.dot(vec{kk[5], kk[1], kk[3]}), v.dot(vec{kk[4], kk[3], kk[2]})}
		})
	},
	"copyunpad": func(x *runner) {
		d, s := cells{7, 5, 3}, cells{13, 6, 4}
		src := x.floats(s.n())
		o := out[float32](x, d.n())
		x.launch("copyunpad", d.grid(), cellBlock, 0, o, d.x, d.y, d.z, in(x, src), s.x, s.y, s.z)
		for i, got := range o.get() {
			require.Equal(x.t, src[s.at(d.of(i))], got)
		}
	},
	"copypadmul2": func(x *runner) {
		d, s := cells{13, 6, 4}, cells{7, 5, 3}
		src, ms, vol, before := x.floats(s.n()), x.floats(s.n()), x.floats(s.n()), x.floats(d.n())
		dst := in(x, before)
		x.launch("copypadmul2", s.grid(), cellBlock, 0, dst, d.x, d.y, d.z, in(x, src), s.x, s.y, s.z, in(x, ms), float32(2.5), in(x, vol))
		requireRounded(x.t, "dst", dst.get(), func(i int) rounded {
			px, py, pz := d.of(i)
			if px >= s.x || py >= s.y || pz >= s.z {
				return exact(before[i])
			}
			j := s.at(px, py, pz)
			permeability := rounded{v: 4 * math.Pi * 1e-7}
			return exact(2.5).mul(exact(ms[j])).mul(permeability).off(0.5).mul(exact(vol[j])).mul(exact(src[j]))
		})
	},
	"zeromask":    func(x *runner) { x.zeroMask("zeromask", true) },
	"zeromaskinv": func(x *runner) { x.zeroMask("zeromaskinv", false) },
	"regiondecode": func(x *runner) {
		lut, regions := x.floats(256), x.bytesBelow(mumaxN, 256)
		o := out[float32](x, mumaxN)
		x.launch("regiondecode", line, lineBlock, 0, o, in(x, lut), in(x, regions), mumaxN)
		for i, got := range o.get() {
			require.Equal(x.t, lut[regions[i]], got)
		}
	},
	"regionaddv": func(x *runner) {
		lut, lv := x.field(256)
		f, fv := x.field(mumaxN)
		regions := x.bytesBelow(mumaxN, 256)
		x.launch("regionaddv", line, lineBlock, 0, f[0], f[1], f[2], lut[0], lut[1], lut[2], in(x, regions), mumaxN)
		f.require(x.t, "dst", func(i int) vec { return exactVec(fv[i]).add(exactVec(lv[regions[i]])) })
	},
	"regionselect": func(x *runner) {
		src, regions := x.floats(mumaxN), x.bytesBelow(mumaxN, 4)
		o := out[float32](x, mumaxN)
		x.launch("regionselect", line, lineBlock, 0, o, in(x, src), in(x, regions), uint8(2), mumaxN)
		for i, got := range o.get() {
			want := float32(0)
			if regions[i] == 2 {
				want = src[i]
			}
			require.Equal(x.t, want, got)
		}
	},
	"shiftbytes": func(x *runner) {
		c := cells{13, 5, 2}
		src := x.bytesBelow(c.n(), 256)
		for _, by := range []int{3, -4} {
			o := out[uint8](x, c.n())
			x.launch("shiftbytes", c.grid(), cellBlock, 0, o, in(x, src), c.x, c.y, c.z, by, uint8(99))
			for i, got := range o.get() {
				cx, cy, cz := c.of(i)
				want := uint8(99)
				if from := cx - by; from >= 0 && from < c.x {
					want = src[c.at(from, cy, cz)]
				}
				require.Equal(x.t, want, got)
			}
		}
	},
	"shifty": func(x *runner) {
		c := cells{5, 13, 2}
		src := x.floats(c.n())
		for _, by := range []int{2, -5} {
			o := out[float32](x, c.n())
			x.launch("shifty", c.grid(), cellBlock, 0, o, in(x, src), c.x, c.y, c.z, by, float32(7), float32(-7))
			for i, got := range o.get() {
				cx, cy, cz := c.of(i)
				want := float32(7)
				switch from := cy - by; {
				case from >= c.y:
					want = -7
				case from >= 0:
					want = src[c.at(cx, from, cz)]
				}
				require.Equal(x.t, want, got)
			}
		}
	},
	"crop": func(x *runner) {
		d, s := cells{6, 3, 2}, cells{11, 7, 4}
		src := x.floats(s.n())
		o := out[float32](x, d.n())
		x.launch("crop", d.grid(), cellBlock, 0, o, d.x, d.y, d.z, in(x, src), s.x, s.y, s.z, 4, 3, 1)
		for i, got := range o.get() {
			cx, cy, cz := d.of(i)
			require.Equal(x.t, src[s.at(cx+4, cy+3, cz+1)], got)
		}
	},
	"resize": func(x *runner) {
		s, scaleX, scaleY := cells{17, 10, 3}, 3, 4
		d := cells{6, 3, 1}
		src := x.floats(s.n())
		o := out[float32](x, d.n())
		x.launch("resize", d.grid(), cellBlock, 0, o, d.x, d.y, d.z, in(x, src), s.x, s.y, s.z, 2, scaleX, scaleY)
		requireRounded(x.t, "dst", o.get(), func(i int) rounded {
			cx, cy, _ := d.of(i)
			var all []rounded
			for y := cy * scaleY; y < min((cy+1)*scaleY, s.y); y++ {
				for px := cx * scaleX; px < min((cx+1)*scaleX, s.x); px++ {
					all = append(all, exact(src[s.at(px, y, 2)]))
				}
			}
			return sumOf(all...).div(exact(float32(len(all))))
		})
	},
	"setTheta": func(x *runner) {
		c := cells{13, 7, 2}
		m := x.floats(c.n())
		o := out[float32](x, c.n())
		x.launch("setTheta", c.grid(), cellBlock, 0, o, in(x, m), c.x, c.y, c.z)
		requireRounded(x.t, "theta", o.get(), func(i int) rounded {
			return rounded{v: math.Acos(float64(m[i]))}.off(2) // CUDA C++ Programming Guide, table of functions: acosf 2 ulp
		})
	},
	"setPhi": func(x *runner) {
		c := cells{13, 7, 2}
		mx, my := x.floats(c.n()), x.floats(c.n())
		o := out[float32](x, c.n())
		x.launch("setPhi", c.grid(), cellBlock, 0, o, in(x, mx), in(x, my), c.x, c.y, c.z)
		requireRounded(x.t, "phi", o.get(), func(i int) rounded {
			return rounded{v: math.Atan2(float64(my[i]), float64(mx[i]))}.off(3) // atan2f 3 ulp, same table
		})
	},
	"addexchange": func(x *runner) {
		for _, c := range []cells{{9, 6, 3}, {10, 7, 1}} {
			for pbc := uint8(0); pbc < 8; pbc += 5 {
				x.exchange(c, pbc)
			}
		}
	},
	"exchangedecode": func(x *runner) {
		for _, c := range []cells{{9, 6, 3}, {10, 7, 1}} {
			const kinds, pbc = 5, 6
			lut, regions := x.floats(kinds*(kinds+1)/2), x.bytesBelow(c.n(), kinds)
			o := out[float32](x, c.n())
			x.launch("exchangedecode", c.grid(), cellBlock, 0, o, in(x, lut), in(x, regions), float32(1), float32(1), float32(1), c.x, c.y, c.z, uint8(pbc))
			requireRounded(x.t, "average", o.get(), func(i int) rounded {
				var all []rounded
				for _, sides := range c.axes(i, pbc) {
					for _, j := range sides {
						all = append(all, exact(lut[pair(regions[i], regions[j])]))
					}
				}
				return sumOf(all...).div(exact(float32(len(all))))
			})
		}
	},
	"setvectorpotential": func(x *runner) {
		c := cells{7, 11, 2}
		f, fv := x.field(c.n())
		o := x.outField(c.n())
		x.launch("setvectorpotential", c.grid(), cellBlock, 0, o[0], o[1], o[2], f[0], f[1], f[2], float32(0.5), c.x, c.y, c.z, uint8(0))
		o.require(x.t, "A", func(i int) vec {
			cx, cy, cz := c.of(i)
			var ax, az []rounded
			for y := range cy {
				v := exactVec(fv[c.at(cx, y, cz)]).times(exact(0.5))
				ax, az = append(ax, v[2].neg()), append(az, v[0])
			}
			return vec{sumOf(ax...), {}, sumOf(az...)}
		})
	},
}

// weightedSum is the kernels madd2 to madd7.
func (x *runner) weightedSum(n int) {
	o := out[float32](x, mumaxN)
	args := []any{o}
	src, factors := make([][]float32, n), x.floats(n)
	for i := range src {
		src[i] = x.floats(mumaxN)
		args = append(args, in(x, src[i]), factors[i])
	}
	x.launch(fmt.Sprint("madd", n), line, lineBlock, 0, append(args, mumaxN)...)
	requireRounded(x.t, "dst", o.get(), func(i int) rounded {
		var all []rounded
		for j := range src {
			all = append(all, exact(src[j][i]).mul(exact(factors[j])))
		}
		return sumOf(all...)
	})
}

// reduce is the kernels that add up, or find the greatest, with 512 threads a
// block. Every block begins with the value first.
func (x *runner) reduce(kernel string, first float32, greatest bool, value func(i int) rounded, src ...any) {
	const blocks = 3
	o := in(x, []float32{0})
	args := slices.Concat(src, []any{o, first, mumaxN})
	x.launch(kernel, dim{blocks, 1, 1}, dim{512, 1, 1}, 0, args...)
	var all []rounded
	best := exact(first)
	for i := range mumaxN {
		v := value(i)
		all = append(all, v)
		if v.v > best.v {
			best.v = v.v
		}
		best.e = max(best.e, v.e)
	}
	want := best
	if !greatest {
		for range blocks * 512 { // each thread begins with it
			all = append(all, exact(first))
		}
		want = sumOf(all...)
	}
	requireRounded(x.t, kernel, o.get(), func(int) rounded { return want })
}

func (x *runner) outField(n int) field {
	return field{out[float32](x, n), out[float32](x, n), out[float32](x, n)}
}

// mirror folds the upper half of a symmetric axis on the lower one.
func mirror(i, n int) int {
	if i > n/2 {
		return n - i
	}
	return i
}

func (x *runner) zeroMask(kernel string, zeroWhereSet bool) {
	lut, regions, before := x.floats(256), x.bytesBelow(mumaxN, 256), x.floats(mumaxN)
	for i := range 128 {
		lut[2*i] = 0
	}
	dst := in(x, before)
	x.launch(kernel, line, lineBlock, 0, dst, in(x, lut), in(x, regions), mumaxN)
	for i, got := range dst.get() {
		want := before[i]
		if (lut[regions[i]] != 0) == zeroWhereSet {
			want = 0
		}
		require.Equal(x.t, want, got)
	}
}

// axes are a cell's neighbours along the axes that count: not z in a mesh of
// one layer.
func (c cells) axes(i int, pbc uint8) [][2]int {
	all := c.neighbours(i, pbc)
	if c.z == 1 {
		return all[:2]
	}
	return all[:]
}

// exchange is the field of neighbours that pull a cell their way; an empty cell
// has none, and pulls nobody.
func (x *runner) exchange(c cells, pbc uint8) {
	const kinds = 4
	m := make([][3]float32, c.n())
	var mf field
	for d := range mf {
		component := x.floats(c.n())
		for i := 0; i < c.n(); i += 5 {
			component[i] = 0
		}
		for i := range m {
			m[i][d] = component[i]
		}
		mf[d] = in(x, component)
	}
	b, before := x.field(c.n())
	lut, regions, ms := x.floats(kinds*(kinds+1)/2), x.bytesBelow(c.n(), kinds), x.floats(c.n())
	ms[2] = 0
	w := [3]float32{0.5, 2, 1.5}
	x.launch("addexchange", c.grid(), cellBlock, 0, b[0], b[1], b[2], mf[0], mf[1], mf[2], in(x, ms), float32(1.25),
		in(x, lut), in(x, regions), w[0], w[1], w[2], c.x, c.y, c.z, pbc)
	b.require(x.t, "B", func(i int) vec {
		if m[i] == ([3]float32{}) {
			return exactVec(before[i])
		}
		var sum vec
		for axis, sides := range c.axes(i, pbc) {
			for _, j := range sides {
				if m[j] == ([3]float32{}) {
					continue
				}
				weight := exact(w[axis]).mul(exact(lut[pair(regions[i], regions[j])]))
				sum = sum.add(exactVec(m[j]).sub(exactVec(m[i])).times(weight))
			}
		}
		var inverse rounded
		if ms[i] != 0 {
			inverse = exact(1).div(exact(1.25).mul(exact(ms[i])))
		}
		return exactVec(before[i]).add(sum.times(inverse))
	})
}
