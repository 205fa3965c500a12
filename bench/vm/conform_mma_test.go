package vm_test

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/ir/num"
)

// warpProgram is a program of one warp: operands come from buffers, so many
// 32-bit words a lane, and the results go to the last one.
func warpProgram(target, decls, op string, in []int, out int) small {
	var body strings.Builder
	for b, n := range in {
		fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in%d;\n", 4*n, b)
		for i := range n {
			fmt.Fprintf(&body, "ld.global.b32 %%%c%d, [%%ad+%d];\n", 'a'+b, i, 4*i)
		}
	}
	fmt.Fprintf(&body, "%s\nmad.wide.u32 %%ad, %%t, %d, %%in%d;\n", op, 4*out, len(in))
	for i := range out {
		fmt.Fprintf(&body, "st.global.b32 [%%ad+%d], %%z%d;\n", 4*i, i)
	}
	regs := ".reg .b64 %ad; .reg .b32 %z<9>;"
	for b := range in {
		regs += fmt.Sprintf(" .reg .b32 %%%c<9>;", 'a'+b)
	}
	return small{target: target, regs: regs + decls, body: body.String(), block: 32}
}

// accumulatorPlace is where element i of a lane's C or D lies.
func accumulatorPlace(l, i int) (row, col int) { return g(l) + 8*(i>>1), 2*q(l) + i&1 }

func TestMmaBits(t *testing.T) {
	for _, s := range []struct{ m, k int }{{8, 128}, {16, 128}, {16, 256}} {
		for _, op := range []string{"xor", "and"} {
			name := fmt.Sprintf("m%dn8k%d.row.col.s32.b1.b1.s32.%s", s.m, s.k, op)
			t.Run(name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(2, 9))
				na, nb, nc := s.m*s.k/1024, s.k/128, s.m/4
				a, b := make([][]uint32, s.m), make([][]uint32, 8) // rows and columns, 32 bits a word
				for _, x := range [][][]uint32{a, b} {
					for i := range x {
						x[i] = make([]uint32, s.k/32)
						for j := range x[i] {
							x[i][j] = r.Uint32()
						}
					}
				}
				ra, rb, rc := make([]uint32, 32*na), make([]uint32, 32*nb), make([]uint32, 32*nc)
				for l := range 32 {
					for i := range na { // PTX ISA 9.7.14.5.5, 12 and 13
						row, word := g(l), q(l)+4*i
						if s.m == 16 {
							row, word = g(l)+8*(i&1), q(l)+4*(i>>1)
						}
						ra[na*l+i] = a[row][word]
					}
					for i := range nb {
						rb[nb*l+i] = b[g(l)][q(l)+4*i]
					}
					for i := range nc {
						rc[nc*l+i] = r.Uint32()
					}
				}
				p := warpProgram("sm_80", "", "mma.sync.aligned."+name+".popc "+regList("%z", nc)+", "+regList("%a", na)+", "+regList("%b", nb)+", "+regList("%c", nc)+";", []int{na, nb, nc}, nc)
				out, report := p.run(t, words(ra...), words(rb...), words(rc...), make([]byte, 128*nc))
				require.Empty(t, report.Faults)
				got := toWords(out[3])
				for l := range 32 {
					for i := range nc {
						row, col := accumulatorPlace(l, i)
						want := rc[nc*l+i]
						for k := range s.k / 32 {
							v := a[row][k] ^ b[col][k]
							if op == "and" {
								v = a[row][k] & b[col][k]
							}
							want += uint32(bits.OnesCount32(v))
						}
						require.Equal(t, want, got[nc*l+i], "lane %d element %d", l, i)
					}
				}
			})
		}
	}
}

// smallFloat is an element of 8 bits or fewer, and where it lies in a byte.
type smallFloat struct {
	name        string
	f           num.Format
	bits, shift int
}

var smallFloats = []smallFloat{{"e4m3", num.E4M3, 8, 0}, {"e5m2", num.E5M2, 8, 0}, {"e3m2", num.E3M2, 6, 0}, {"e2m3", num.E2M3, 6, 0}, {"e2m1", num.E2M1, 4, 2}}

// finite is a random code that is a number.
func (s smallFloat) finite(r *rand.Rand) uint32 {
	for {
		c := r.Uint32() & (1<<s.bits - 1)
		if x := s.f.Decode(c); !math.IsNaN(x) && !math.IsInf(x, 0) {
			return c
		}
	}
}

// scaledCase is a product with elements of 8 or 4 bits and perhaps scales.
type scaledCase struct {
	mods, suffix string // "kind::f8f6f4", and what follows the types
	a, b         smallFloat
	k, per       int
	parts        int                     // scales of a row; 0: none
	scale        func(c uint32) float64  // of a scale's code
	codes        func(*rand.Rand) uint32 // of scales
	byteA        int
	threadA      int
	byteB        int
	threadB      int
}

// TestMmaSmallFloats: the kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4, all pairs of
// types and choices of scales.
func TestMmaSmallFloats(t *testing.T) {
	e8m0 := func(c uint32) float64 { return math.Ldexp(1, int(c)-127) }
	near := func(r *rand.Rand) uint32 { return uint32(120 + r.IntN(15)) }
	ue4m3 := func(c uint32) float64 { return num.E4M3.Decode(c) }
	small := func(r *rand.Rand) uint32 { return uint32(r.IntN(0x7f)) }
	packed := smallFloat{"e2m1", num.E2M1, 4, 0}
	var cases []scaledCase
	for i, a := range smallFloats {
		for _, b := range smallFloats {
			cases = append(cases, scaledCase{mods: "kind::f8f6f4", a: a, b: b, k: 32, per: 4},
				scaledCase{
					mods: "kind::mxf8f6f4.block_scale.scale_vec::1X", suffix: ".ue8m0", a: a, b: b, k: 32, per: 4, parts: 1, scale: e8m0, codes: near,
					byteA: i % 4, threadA: i % 2, byteB: (i + 1) % 4, threadB: (i + 2) % 4,
				})
		}
	}
	for i := range 4 {
		two := scaledCase{suffix: ".ue8m0", a: packed, b: packed, k: 64, per: 8, parts: 2, scale: e8m0, codes: near, byteA: 2 * (i & 1), threadA: i & 1, byteB: i & 2, threadB: i}
		four := two
		four.parts, four.byteA, four.byteB = 4, 0, 0
		two.mods = "kind::mxf4.block_scale"
		cases = append(cases, two)
		two.mods = "kind::mxf4nvf4.block_scale.scale_vec::2X"
		cases = append(cases, two)
		four.mods = "kind::mxf4nvf4.block_scale.scale_vec::4X"
		cases = append(cases, four)
		four.suffix, four.scale, four.codes = ".ue4m3", ue4m3, small
		cases = append(cases, four)
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s.%s.%s%s.%d%d%d%d", c.mods, c.a.name, c.b.name, c.suffix, c.byteA, c.threadA, c.byteB, c.threadB), c.check)
	}
}

func (c scaledCase) check(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(c.k), 5))
	a, b := make([]uint32, 16*c.k), make([]uint32, 8*c.k)
	for i := range a {
		a[i] = c.a.finite(r)
	}
	for i := range b {
		b[i] = c.b.finite(r)
	}
	na, nb := 16*c.k/c.per/32, 8*c.k/c.per/32
	ra, rb, rc, rs := make([]uint32, 32*na), make([]uint32, 32*nb), make([]uint32, 32*4), make([]uint32, 64)
	width := 32 / c.per
	for l := range 32 {
		for i := range na * c.per { // PTX ISA 9.7.14.5.10 and 11
			reg, j := i/c.per, i%c.per
			row, k := g(l)+8*(reg&1), c.per*q(l)+j+4*c.per*(reg>>1)
			ra[na*l+reg] |= a[row*c.k+k] << (width*j + c.a.shift)
		}
		for i := range nb * c.per {
			reg, j := i/c.per, i%c.per
			k := c.per*q(l) + j + 4*c.per*reg
			rb[nb*l+reg] |= b[g(l)*c.k+k] << (width*j + c.b.shift)
		}
		for i := range 4 {
			rc[4*l+i] = math.Float32bits(float32(r.IntN(64) - 32))
		}
	}
	scales := func(row, part int) float64 { return 1 }
	scalesB := scales
	op := fmt.Sprintf("mma.sync.aligned.m16n8k%d.row.col.%s.f32.%s.%s.f32%s %s, %s, %s, %s", c.k, c.mods, c.a.name, c.b.name, c.suffix,
		regList("%z", 4), regList("%a", na), regList("%b", nb), regList("%c", 4))
	if c.parts > 0 {
		for i := range rs { // all bytes, also those not chosen
			for j := range 4 {
				rs[i] |= c.codes(r) << (8 * j)
			}
		}
		scales = func(row, part int) float64 { // PTX ISA 9.7.14.3: two lanes of a quad
			return c.scale(rs[2*(4*(row%8)+2*c.threadA+row/8)] >> (8 * (c.byteA + part)) & 0xff)
		}
		scalesB = func(col, part int) float64 {
			return c.scale(rs[2*(4*col+c.threadB)+1] >> (8 * (c.byteB + part)) & 0xff)
		}
		op += fmt.Sprintf(", %%d0, {%d, %d}, %%d1, {%d, %d}", c.byteA, c.threadA, c.byteB, c.threadB)
	}
	run := func(tensor vm.Tensor) []uint32 {
		p := warpProgram("sm_120a", "", op+";", []int{na, nb, 4, 2}, 4)
		p.opt.Tensor = tensor
		out, report := p.run(t, words(ra...), words(rb...), words(rc...), words(rs...), make([]byte, 512))
		require.Empty(t, report.Faults)
		return toWords(out[4])
	}
	got, fused := run(vm.Ordered), run(vm.Fused)
	parts := max(c.parts, 1)
	for l := range 32 {
		for i := range 4 {
			row, col := accumulatorPlace(l, i)
			want := float64(float(rc[4*l+i]))
			scale := math.Abs(want)
			terms := []exactTerm{exactFactor(want, num.F32)}
			for k := range c.k {
				va, vb := c.a.f.Decode(a[row*c.k+k]), c.b.f.Decode(b[col*c.k+k])
				sa, sb := scales(row, k*parts/c.k), scalesB(col, k*parts/c.k)
				x := va * vb * sa * sb
				want += x
				scale += math.Abs(x)
				product := exactFactor(va, c.a.f).times(exactFactor(vb, c.b.f))
				if c.per == 8 {
					product.exponent = 0
				}
				terms = append(terms, product.times(c.factor(sa)).times(c.factor(sb)))
			}
			// Each of k+1 sums errs by at most half an ulp of what it sums.
			require.InDelta(t, want, float64(float(got[4*l+i])), float64(c.k+1)*0x1p-24*scale, "lane %d element %d", l, i)
			require.Equal(t, c.fused(terms), float64(float(fused[4*l+i])), "lane %d element %d", l, i)
		}
	}
}

// factor is a scale as a term.
func (c scaledCase) factor(v float64) exactTerm {
	if c.suffix == ".ue4m3" {
		return exactFactor(v, num.E4M3)
	}
	return exactFactor(v, num.F32)
}

// fused is the sum of an accumulator and products as tensor cores add. Of packed
// e2m1 sixteen products are one term with the exponent of its scales.
func (c scaledCase) fused(terms []exactTerm) float64 {
	if c.per != 8 {
		return fusedReference(terms, 25, 23, false)
	}
	joined := terms[:1:1]
	for i := 1; i < len(terms); i += 16 {
		group := exactTerm{new(big.Float).SetPrec(400), terms[i].exponent}
		for _, t := range terms[i : i+16] {
			group.value.Add(group.value, t.value)
		}
		joined = append(joined, group)
	}
	return fusedReference(joined, 35, 23, false)
}

// TestMmaDouble: all shapes of f64 in all roundings: the chain of fused
// multiply-adds in the order of k, each rounded.
func TestMmaDouble(t *testing.T) {
	for _, s := range []struct{ m, k int }{{8, 4}, {16, 4}, {16, 8}, {16, 16}} {
		for _, mode := range []string{"", "rn", "rz", "rm", "rp"} {
			t.Run(fmt.Sprintf("m%dn8k%d.%s", s.m, s.k, mode), func(t *testing.T) {
				r := rand.New(rand.NewPCG(6, 2))
				na, nb, nc := s.m*s.k/32, s.k/4, s.m/4
				var in [3][]byte
				a, b, c := make([]float64, s.m*s.k), make([]float64, 8*s.k), make([]float64, s.m*8)
				for _, x := range [][]float64{a, b, c} {
					for i := range x {
						x[i] = r.NormFloat64()
					}
				}
				for l := range 32 {
					for i := range na {
						row, k := g(l)+8*(i&1), q(l)+4*(i>>1)
						if s.m == 8 {
							row, k = g(l), q(l)
						}
						in[0] = append(in[0], longs(math.Float64bits(a[row*s.k+k]))...)
					}
					for i := range nb {
						in[1] = append(in[1], longs(math.Float64bits(b[g(l)*s.k+q(l)+4*i]))...)
					}
					for i := range nc {
						row, col := accumulatorPlace(l, i)
						in[2] = append(in[2], longs(math.Float64bits(c[8*row+col]))...)
					}
				}
				var body strings.Builder
				for n, x := range []struct {
					name string
					n    int
				}{{"a", na}, {"b", nb}, {"c", nc}} {
					fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in%d;\n", 8*x.n, n)
					for i := range x.n {
						fmt.Fprintf(&body, "ld.global.f64 %%%s%d, [%%ad+%d];\n", x.name, i, 8*i)
					}
				}
				dot := ""
				if mode != "" {
					dot = "." + mode
				}
				fmt.Fprintf(&body, "mma.sync.aligned.m%dn8k%d.row.col%s.f64.f64.f64.f64 %s, %s, %s, %s;\nmad.wide.u32 %%ad, %%t, %d, %%in3;\n", s.m, s.k, dot,
					regList("%z", nc), regList("%a", na), regList("%b", nb), regList("%c", nc), 8*nc)
				for i := range nc {
					fmt.Fprintf(&body, "st.global.f64 [%%ad+%d], %%z%d;\n", 8*i, i)
				}
				p := small{target: "sm_90", regs: ".reg .b64 %ad; .reg .f64 %a<8>, %b<4>, %c<4>, %z<4>;", body: body.String(), block: 32}
				out, report := p.run(t, in[0], in[1], in[2], make([]byte, 32*8*nc))
				require.Empty(t, report.Faults)
				got := toLongs(out[3])
				if dot == "" {
					mode = "rn"
				}
				for l := range 32 {
					for i := range nc {
						row, col := accumulatorPlace(l, i)
						x := math.Float64bits(c[8*row+col])
						for k := range s.k {
							x = double.fma(math.Float64bits(a[row*s.k+k]), math.Float64bits(b[col*s.k+k]), x, mode)
						}
						require.Equal(t, x, got[nc*l+i], "lane %d element %d", l, i)
					}
				}
			})
		}
	}
}
