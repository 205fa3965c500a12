package vm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/ir/num"
)

// fragment says where element i of a lane's operand lies in its matrix: the
// tables of PTX ISA 9.7.14, written out for each shape.
type fragment func(lane, i int) (row, col int)

type mmaShape struct {
	name    string
	m, n, k int
	typ     string
	bits    int // of an element of A and B
	a, b    fragment
	acc     string
}

func g(l int) int { return l >> 2 }
func q(l int) int { return l & 3 }

var mmaShapes = []mmaShape{
	{
		name: "m16n8k16", m: 16, n: 8, k: 16, typ: "f16", bits: 16, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>1&1), 2*q(l) + i&1 + 8*(i>>2) },
		b: func(l, i int) (int, int) { return 2*q(l) + i&1 + 8*(i>>1), g(l) },
	},
	{
		name: "m16n8k16", m: 16, n: 8, k: 16, typ: "bf16", bits: 16, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>1&1), 2*q(l) + i&1 + 8*(i>>2) },
		b: func(l, i int) (int, int) { return 2*q(l) + i&1 + 8*(i>>1), g(l) },
	},
	{
		name: "m16n8k16", m: 16, n: 8, k: 16, typ: "f16", bits: 16, acc: "f16",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>1&1), 2*q(l) + i&1 + 8*(i>>2) },
		b: func(l, i int) (int, int) { return 2*q(l) + i&1 + 8*(i>>1), g(l) },
	},
	{
		name: "m16n8k8", m: 16, n: 8, k: 8, typ: "f16", bits: 16, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>1), 2*q(l) + i&1 },
		b: func(l, i int) (int, int) { return 2*q(l) + i, g(l) },
	},
	{
		name: "m16n8k8", m: 16, n: 8, k: 8, typ: "tf32", bits: 32, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i&1), q(l) + 4*(i>>1) },
		b: func(l, i int) (int, int) { return q(l) + 4*i, g(l) },
	},
	{
		name: "m16n8k4", m: 16, n: 8, k: 4, typ: "tf32", bits: 32, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*i, q(l) },
		b: func(l, _ int) (int, int) { return q(l), g(l) },
	},
	{
		name: "m16n8k32", m: 16, n: 8, k: 32, typ: "e4m3", bits: 8, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>2&1), 4*q(l) + i&3 + 16*(i>>3) },
		b: func(l, i int) (int, int) { return 4*q(l) + i&3 + 16*(i>>2), g(l) },
	},
	{
		name: "m16n8k32", m: 16, n: 8, k: 32, typ: "e5m2", bits: 8, acc: "f32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>2&1), 4*q(l) + i&3 + 16*(i>>3) },
		b: func(l, i int) (int, int) { return 4*q(l) + i&3 + 16*(i>>2), g(l) },
	},
	{
		name: "m16n8k32", m: 16, n: 8, k: 32, typ: "s8", bits: 8, acc: "s32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>2&1), 4*q(l) + i&3 + 16*(i>>3) },
		b: func(l, i int) (int, int) { return 4*q(l) + i&3 + 16*(i>>2), g(l) },
	},
	{
		name: "m16n8k16", m: 16, n: 8, k: 16, typ: "u8", bits: 8, acc: "s32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>2), 4*q(l) + i&3 },
		b: func(l, i int) (int, int) { return 4*q(l) + i, g(l) },
	},
	{
		name: "m16n8k64", m: 16, n: 8, k: 64, typ: "s4", bits: 4, acc: "s32",
		a: func(l, i int) (int, int) { return g(l) + 8*(i>>3&1), 8*q(l) + i&7 + 32*(i>>4) },
		b: func(l, i int) (int, int) { return 8*q(l) + i&7 + 32*(i>>3), g(l) },
	},
}

// decodeElement is an element's value.
func decodeElement(typ string, v uint32) float64 {
	switch typ {
	case "f16":
		return num.F16.Decode(v)
	case "bf16":
		return num.BF16.Decode(v)
	case "tf32":
		return num.TF32.Decode(v)
	case "e4m3":
		return num.E4M3.Decode(v)
	case "e5m2":
		return num.E5M2.Decode(v)
	case "s8":
		return float64(int8(v))
	case "u8":
		return float64(uint8(v))
	case "s4":
		return float64(int8(v<<4) >> 4)
	}
	panic(typ)
}

// encodeElement is an element of about v.
func encodeElement(typ string, v float64) uint32 {
	switch typ {
	case "f16":
		return num.F16.Encode(v, num.Even, false)
	case "bf16":
		return num.BF16.Encode(v, num.Even, false)
	case "tf32":
		return num.TF32.Encode(v, num.Even, false)
	case "e4m3":
		return num.E4M3.Encode(v, num.Even, true)
	case "e5m2":
		return num.E5M2.Encode(v, num.Even, true)
	case "s8":
		return uint32(uint8(int8(v * 20)))
	case "u8":
		return uint32(uint8(int8(v*20))) & 0xff
	case "s4":
		return uint32(int8(v*2)) & 15
	}
	panic(typ)
}

// pack puts a matrix into a warp's registers, operand by operand.
func pack(f fragment, per, regs, bits int, at func(row, col int) uint32) []uint32 {
	out := make([]uint32, 32*regs)
	for lane := range 32 {
		for i := range regs * per {
			row, col := f(lane, i)
			out[lane*regs+i/per] |= at(row, col) << (bits * (i % per))
		}
	}
	return out
}

func regList(prefix string, n int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("%s%d", prefix, i))
	}
	return "{" + strings.Join(s, ",") + "}"
}

// program multiplies fragments of the first three buffers into the fourth: na, nb
// and nc registers of each lane.
func (s mmaShape) program(target string, na, nb, nc int) small {
	var body strings.Builder
	load := func(name string, n int, buf int) {
		fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in%d;\n", 4*n, buf)
		for i := range n {
			fmt.Fprintf(&body, "ld.global.b32 %s%d, [%%ad+%d];\n", name, i, 4*i)
		}
	}
	load("%a", na, 0)
	load("%b", nb, 1)
	load("%c", nc, 2)
	fmt.Fprintf(&body, "mma.sync.aligned.%s.row.col.%s.%s.%s.%s %s, %s, %s, %s;\n", s.name, s.acc, s.typ, s.typ, s.acc,
		regList("%d", nc), regList("%a", na), regList("%b", nb), regList("%c", nc))
	fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in3;\n", 4*nc)
	for i := range nc {
		fmt.Fprintf(&body, "st.global.b32 [%%ad+%d], %%d%d;\n", 4*i, i)
	}
	return small{target: target, regs: ".reg .b64 %ad; .reg .b32 %a<4>, %b<4>, %c<8>, %d<8>;", body: body.String(), block: 32}
}

func TestMma(t *testing.T) {
	for _, s := range mmaShapes {
		t.Run(s.name+"."+s.typ+"."+s.acc, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			a := make([]uint32, s.m*s.k)
			b := make([]uint32, s.k*s.n)
			for i := range a {
				a[i] = encodeElement(s.typ, r.NormFloat64())
			}
			for i := range b {
				b[i] = encodeElement(s.typ, r.NormFloat64())
			}
			per := 32 / s.bits
			na, nb := s.m*s.k/per/32, s.n*s.k/per/32
			nc := 4
			if s.acc == "f16" {
				nc = 2
			}
			c := make([]float64, s.m*s.n)
			for i := range c {
				c[i] = float64(r.IntN(100) - 50)
			}
			cf := func(l, i int) (int, int) { return g(l) + 8*(i>>1), 2*q(l) + i&1 }
			encodeC := func(row, col int) uint32 {
				switch s.acc {
				case "f32":
					return num.F32.Encode(c[row*s.n+col], num.Even, false)
				case "f16":
					return num.F16.Encode(c[row*s.n+col], num.Even, false)
				}
				return uint32(int32(c[row*s.n+col]))
			}
			cper := 4 / nc
			cbits := 32 / cper
			p := s.program("sm_90a", na, nb, nc)
			out, report := p.run(t,
				words(pack(s.a, per, na, s.bits, func(row, col int) uint32 { return a[row*s.k+col] })...),
				words(pack(s.b, per, nb, s.bits, func(row, col int) uint32 { return b[row*s.n+col] })...),
				words(pack(cf, cper, nc, cbits, encodeC)...),
				make([]byte, 32*4*nc))
			require.Empty(t, report.Faults)
			got := toWords(out[3])
			for lane := range 32 {
				for i := range 4 {
					row, col := cf(lane, i)
					want := c[row*s.n+col]
					scale := max(want, -want)
					for k := range s.k {
						x := decodeElement(s.typ, a[row*s.k+k]) * decodeElement(s.typ, b[k*s.n+col])
						want += x
						scale += max(x, -x)
					}
					v := got[lane*nc+i/cper] >> (cbits * (i % cper))
					switch s.acc {
					case "s32":
						require.Equal(t, int32(want), int32(v), "lane %d element %d", lane, i)
					case "f32":
						// Each of k+1 sums errs by at most half an ulp of what it sums.
						require.InDelta(t, want, float64(float(v)), float64(s.k+1)*0x1p-24*scale, "lane %d element %d", lane, i)
					default:
						require.InDelta(t, want, num.F16.Decode(v&0xffff), 0x1p-11*max(want, -want)+1e-3, "lane %d element %d", lane, i)
					}
				}
			}
			require.Len(t, report.Counters.Tensor, 1)
			require.EqualValues(t, 2*s.m*s.n*s.k, report.Counters.Tensor[0].Operations)
		})
	}
}

// TestQuadMma: m8n8k4 of f16 is four products, each by eight lanes; all layouts.
func TestQuadMma(t *testing.T) {
	for _, layout := range []string{"row.col", "row.row", "col.col", "col.row"} {
		for _, acc := range []string{"f32", "f16"} {
			t.Run(layout+"."+acc, func(t *testing.T) {
				r := rand.New(rand.NewPCG(8, 8))
				var a, b [4][32]uint32
				var c [4][64]float64
				for p := range 4 {
					for i := range 32 {
						a[p][i] = num.F16.Encode(float64(r.IntN(9)-4), num.Even, false)
						b[p][i] = num.F16.Encode(float64(r.IntN(9)-4), num.Even, false)
					}
					for i := range 64 {
						c[p][i] = float64(r.IntN(9) - 4)
					}
				}
				nc := 8
				if acc == "f16" {
					nc = 4
				}
				place := func(l, i int) (row, col int) {
					h := l >> 4
					if acc == "f16" {
						return l&3 + 4*h, i
					}
					return l&1 + i&2 + 4*h, i&4 + l&2 + i&1
				}
				ra, rb, rc := make([]uint32, 64), make([]uint32, 64), make([]uint32, 32*nc)
				for l := range 32 {
					p, q, h := l>>2&3, l&3, l>>4
					for i := range 4 {
						row, k := q+4*h, i
						if layout[:3] == "col" {
							row, k = i+4*h, q
						}
						ra[2*l+i/2] |= a[p][4*row+k] << (16 * (i % 2))
						k, col := i, q+4*h
						if layout[4:] == "row" {
							k, col = q, i+4*h
						}
						rb[2*l+i/2] |= b[p][8*k+col] << (16 * (i % 2))
					}
					for i := range 8 {
						row, col := place(l, i)
						if acc == "f16" {
							rc[4*l+i/2] |= num.F16.Encode(c[p][8*row+col], num.Even, false) << (16 * (i % 2))
						} else {
							rc[8*l+i] = num.F32.Encode(c[p][8*row+col], num.Even, false)
						}
					}
				}
				var body strings.Builder
				for n, x := range []struct {
					name string
					n    int
				}{{"%a", 2}, {"%b", 2}, {"%c", nc}} {
					fmt.Fprintf(&body, "mad.wide.u32 %%ad, %%t, %d, %%in%d;\n", 4*x.n, n)
					for i := range x.n {
						fmt.Fprintf(&body, "ld.global.b32 %s%d, [%%ad+%d];\n", x.name, i, 4*i)
					}
				}
				typ := map[string]string{"f32": ".f32", "f16": ".b32"}[acc]
				fmt.Fprintf(&body, "mma.sync.aligned.m8n8k4.%s.%s.f16.f16.%s %s, {%%a0,%%a1}, {%%b0,%%b1}, %s;\nmad.wide.u32 %%ad, %%t, %d, %%in3;\n",
					layout, acc, acc, regList("%d", nc), regList("%c", nc), 4*nc)
				for i := range nc {
					fmt.Fprintf(&body, "st.global.b32 [%%ad+%d], %%d%d;\n", 4*i, i)
				}
				p := small{target: "sm_80", regs: ".reg .b64 %ad; .reg .b32 %a<2>, %b<2>; .reg " + typ + " %c<8>, %d<8>;", body: body.String(), block: 32}
				out, report := p.run(t, words(ra...), words(rb...), words(rc...), make([]byte, 128*nc))
				require.Empty(t, report.Faults)
				got := toWords(out[3])
				for l := range 32 {
					pr := l >> 2 & 3
					for i := range 8 {
						row, col := place(l, i)
						want := c[pr][8*row+col]
						for k := range 4 {
							want += num.F16.Decode(a[pr][4*row+k]) * num.F16.Decode(b[pr][8*k+col])
						}
						if acc == "f16" {
							require.Equal(t, num.F16.Encode(want, num.Even, false), got[4*l+i/2]>>(16*(i%2))&0xffff)
						} else {
							require.Equal(t, num.F32.Encode(want, num.Even, false), got[8*l+i])
						}
					}
				}
			})
		}
	}
}
