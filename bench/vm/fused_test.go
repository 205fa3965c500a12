package vm_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/ir/num"
)

// measuredDot is a product of a row and a column that a GPU computed.
type measuredDot struct {
	gpu, typ, acc string
	a, b          []uint32
	c, d          uint32
}

// measuredDots reads testdata/tensor, whose README says where it is from.
func measuredDots(t *testing.T) []measuredDot {
	f, err := os.Open("testdata/tensor/measured.txt.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var all []measuredDot
	for lines := bufio.NewScanner(z); lines.Scan(); {
		w := strings.Fields(lines.Text())
		require.Len(t, w, 7)
		d := measuredDot{gpu: w[0], typ: w[1], acc: w[2]}
		digits := map[string]int{"f16": 4, "bf16": 4, "tf32": 8, "e4m3": 2, "e5m2": 2}[d.typ]
		for i := 0; i < len(w[3]); i += digits {
			d.a = append(d.a, hexWord(t, w[3][i:i+digits]))
			d.b = append(d.b, hexWord(t, w[4][i:i+digits]))
		}
		d.c, d.d = hexWord(t, w[5]), hexWord(t, w[6])
		all = append(all, d)
	}
	return all
}

func hexWord(t *testing.T, s string) uint32 {
	v, err := strconv.ParseUint(s, 16, 32)
	require.NoError(t, err)
	return uint32(v)
}

// quadShape is the four products of m8n8k4, all of the same matrices.
func quadShape(acc string) (s mmaShape, place fragment) {
	own := func(l, i int) (int, int) { return l&3 + 4*(l>>4), i }
	s = mmaShape{
		name: "m8n8k4", m: 8, n: 8, k: 4, typ: "f16", bits: 16, acc: acc, a: own,
		b: func(l, i int) (int, int) { return i, l&3 + 4*(l>>4) },
	}
	if acc == "f16" {
		return s, own
	}
	return s, func(l, i int) (int, int) { return l&1 + i&2 + 4*(l>>4), i&4 + l&2 + i&1 }
}

// multiply runs one product on a device of a target: rows of A, columns of B and
// the sums of both, as far as there are some.
func (s mmaShape) multiply(t *testing.T, target string, opt vm.Options, a, b [][]uint32, c func(row, col int) uint32) func(row, col int) uint32 {
	per := 32 / s.bits
	na, nb, nc, bits := s.m*s.k/per/32, s.n*s.k/per/32, 4, 32
	place := fragment(accumulatorPlace)
	if s.name == "m8n8k4" {
		_, place = quadShape(s.acc)
		na, nb, nc = 2, 2, 8
	}
	if s.acc == "f16" {
		nc, bits = nc/2, 16
	}
	of := func(m [][]uint32, i, k int) uint32 {
		if i < len(m) && k < len(m[i]) {
			return m[i][k]
		}
		return 0
	}
	p := s.program(target, na, nb, nc)
	p.opt = opt
	out, report := p.run(t,
		words(pack(s.a, per, na, s.bits, func(row, k int) uint32 { return of(a, row, k) })...),
		words(pack(s.b, per, nb, s.bits, func(k, col int) uint32 { return of(b, col, k) })...),
		words(pack(place, 32/bits, nc, bits, c)...),
		make([]byte, 32*4*nc))
	require.Empty(t, report.Faults)
	got := map[[2]int]uint32{}
	for lane := range 32 {
		for i := range nc * 32 / bits {
			row, col := place(lane, i)
			got[[2]int{row, col}] = uint32(uint64(toWords(out[3])[lane*nc+i*bits/32]) >> (bits * i % 32) & (1<<bits - 1))
		}
	}
	return func(row, col int) uint32 { return got[[2]int{row, col}] }
}

// shapeOf is the shape of the least K from k on.
func shapeOf(typ, acc string, k int) mmaShape {
	if typ == "f16" && k == 4 {
		s, _ := quadShape(acc)
		return s
	}
	var best mmaShape
	for _, s := range mmaShapes {
		if s.typ == typ && s.k >= k && (best.k == 0 || s.k < best.k) {
			best = s
		}
	}
	if best.k == 16 && k == 8 { // bf16 has k8 too, whose fragments are those of f16
		best.name, best.k = "m16n8k8", 8
	}
	best.acc = acc
	return best
}

// TestMeasuredTensorCores: what GPUs computed, bit for bit.
func TestMeasuredTensorCores(t *testing.T) {
	targets := map[string]string{"V100": "sm_70", "A100": "sm_80", "L40S": "sm_89", "Ada": "sm_89", "H100": "sm_90a", "B200": "sm_100a"}
	groups := map[string][]measuredDot{}
	for _, d := range measuredDots(t) {
		name := d.gpu + "." + d.typ + "." + d.acc
		groups[name] = append(groups[name], d)
	}
	require.Len(t, groups, 30)
	opt := vm.Options{Tensor: vm.Fused}
	differ := 0 // from sums in the order of K
	for name, dots := range groups {
		t.Run(name, func(t *testing.T) {
			require.Len(t, dots, 48)
			for ; len(dots) > 0; dots = dots[8:] {
				var a, b [][]uint32
				for _, d := range dots[:8] {
					a, b = append(a, d.a), append(b, d.b)
				}
				c := func(row, col int) uint32 {
					if row == col {
						return dots[row].c
					}
					return 0
				}
				first := dots[0]
				wide := first.gpu == "H100" && first.typ[0] == 'e' && first.acc == "f32"
				if wide {
					got := wgmmaBytes(t, first.typ, opt, a, b)
					for i, d := range dots[:8] {
						require.Equal(t, fmt.Sprintf("%08x", d.d), fmt.Sprintf("%08x", got(i, i)), "%v", d)
					}
					continue
				}
				s := shapeOf(first.typ, first.acc, len(first.a))
				got := s.multiply(t, targets[first.gpu], opt, a, b, c)
				ordered := s.multiply(t, targets[first.gpu], vm.Options{}, a, b, c)
				for i, d := range dots[:8] {
					require.Equal(t, fmt.Sprintf("%08x", d.d), fmt.Sprintf("%08x", got(i, i)), "%v", d)
					if ordered(i, i) != d.d {
						differ++
					}
				}
			}
		})
	}
	require.Greater(t, differ, 200, "products that say nothing about how tensor cores add")
}

// wgmmaBytes is a product of 8-bit floats by wgmma, onto zeros.
func wgmmaBytes(t *testing.T, typ string, opt vm.Options, a, b [][]uint32) func(row, col int) uint32 {
	// B in shared memory: two matrices of 8 columns by 16 bytes.
	image := make([]byte, 256)
	for col := range b {
		for k, v := range b[col] {
			image[k/16*128+col*16+k%16] = byte(v)
		}
	}
	s := shapeOf(typ, "f32", 32)
	fragments := pack(s.a, 4, 4, 8, func(row, k int) uint32 {
		if row < len(a) {
			return a[row][k]
		}
		return 0
	})
	out, report := small{
		target: "sm_90a", decls: sharedDecl, dynamic: 256, block: 128, opt: opt,
		regs: ".reg .b32 %a<4>, %d<4>, %i, %x, %v, %l; .reg .b64 %g, %h, %db; .reg .pred %s;",
		body: `and.b32 %i, %t, 63; shl.b32 %i, %i, 2; cvt.u64.u32 %h, %i; add.u64 %h, %h, %in0; ld.global.u32 %v, [%h]; mov.u32 %x, sm; add.u32 %x, %x, %i; setp.lt.u32 %s, %t, 64;
@%s st.shared.u32 [%x], %v;
fence.proxy.async; bar.sync 0;
and.b32 %l, %t, 31; mad.wide.u32 %g, %l, 16, %in1; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%g];
mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
mov.b64 %db, ` + strconv.Itoa(1024>>4|128>>4<<16) + `; setp.eq.u32 %s, %t, %t;
wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k32.f32.` + typ + `.` + typ + ` {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %db, %s, 1, 1;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
setp.lt.u32 %s, %t, 32; mad.wide.u32 %g, %l, 16, %in2; @%s st.global.v4.b32 [%g], {%d0, %d1, %d2, %d3};`,
	}.run(t, image, words(fragments...), make([]byte, 32*16))
	require.Empty(t, report.Faults)
	got := toWords(out[2])
	return func(row, col int) uint32 {
		for i, v := range got {
			if r, c := accumulatorPlace(i/4, i%4); r == row && c == col {
				return v
			}
		}
		panic("no such element")
	}
}

// exactTerm is a number to add and the exponent it is cut off by.
type exactTerm struct {
	value    *big.Float
	exponent int
}

// exactFactor is a number of a format as a term.
func exactFactor(v float64, format num.Format) exactTerm {
	t := exactTerm{new(big.Float).SetPrec(400).SetFloat64(v), -126}
	if v != 0 {
		t.exponent = max(math.Ilogb(v), math.Ilogb(format.MinNormal()))
	}
	return t
}

func (t exactTerm) times(u exactTerm) exactTerm {
	return exactTerm{new(big.Float).Mul(t.value, u.value), t.exponent + u.exponent}
}

// fusedReference is the published model in arithmetic of any precision: the sum of
// terms cut off fraction bits below the largest exponent, as f16 or as f32 of kept
// fraction bits.
func fusedReference(terms []exactTerm, fraction, kept int, half bool) float64 {
	top := terms[0].exponent
	for _, t := range terms {
		top = max(top, t.exponent)
	}
	unit := new(big.Float).SetMantExp(big.NewFloat(1), fraction-top)
	sum := new(big.Int)
	for _, t := range terms {
		n, _ := new(big.Float).SetPrec(400).Mul(t.value, unit).Int(nil)
		sum.Add(sum, n)
	}
	exact := new(big.Float).SetPrec(400).Quo(new(big.Float).SetInt(sum), unit)
	if half {
		v, _ := exact.Float64()
		return num.F16.Decode(num.F16.Encode(v, num.Even, false))
	}
	prec := kept + 1
	if e := exact.MantExp(nil) - 1; exact.Sign() != 0 && e < -126 {
		prec -= -126 - e
	}
	if prec <= 0 {
		return 0
	}
	v, _ := new(big.Float).SetPrec(uint(prec)).SetMode(big.ToZero).Set(exact).Float64()
	return float64(float32(v))
}

// TestFusedSums holds random products of every type, with subnormals, zeros and
// terms far apart, to the model in exact arithmetic.
func TestFusedSums(t *testing.T) {
	r := rand.New(rand.NewPCG(26, 11))
	for _, c := range []struct {
		target, typ, acc       string
		k, step, fraction, top int
	}{
		{"sm_70", "f16", "f32", 4, 4, 23, 23}, {"sm_75", "f16", "f16", 8, 8, 24, 23}, {"sm_80", "f16", "f32", 16, 8, 24, 23},
		{"sm_80", "bf16", "f32", 16, 8, 24, 23}, {"sm_86", "tf32", "f32", 8, 4, 24, 23}, {"sm_89", "e4m3", "f32", 32, 16, 13, 13},
		{"sm_89", "e5m2", "f16", 32, 16, 13, 13}, {"sm_90a", "f16", "f16", 16, 16, 25, 23}, {"sm_90a", "bf16", "f32", 16, 16, 25, 23},
		{"sm_100a", "tf32", "f32", 8, 8, 25, 23}, {"sm_120a", "e4m3", "f32", 32, 32, 25, 23}, {"sm_120a", "e5m2", "f16", 32, 32, 25, 23},
	} {
		t.Run(c.target+"."+c.typ+"."+c.acc, func(t *testing.T) {
			s := shapeOf(c.typ, c.acc, c.k)
			format := map[string]num.Format{"f16": num.F16, "bf16": num.BF16, "tf32": num.TF32, "e4m3": num.E4M3, "e5m2": num.E5M2}[c.typ]
			accumulator := num.F32
			if c.acc == "f16" {
				accumulator = num.F16
			}
			draw := func() uint32 {
				spread := []float64{0, 1, 4, 30}[r.IntN(4)]
				return format.Encode(r.NormFloat64()*math.Exp2(spread*r.NormFloat64()), num.Even, true)
			}
			matrix := func(n int) [][]uint32 {
				m := make([][]uint32, n)
				for i := range m {
					m[i] = make([]uint32, c.k)
					for k := range m[i] {
						m[i][k] = draw()
					}
				}
				return m
			}
			for range 4 {
				a, b := matrix(s.m), matrix(s.n)
				sums := make([]uint32, s.m*s.n)
				for i := range sums {
					sums[i] = accumulator.Encode(r.NormFloat64()*math.Exp2(12*r.NormFloat64()), num.Even, true)
				}
				got := s.multiply(t, c.target, vm.Options{Tensor: vm.Fused}, a, b, func(row, col int) uint32 { return sums[row*s.n+col] })
				for i := range sums {
					row, col := i/s.n, i%s.n
					want := accumulator.Decode(sums[i])
					for k := 0; k < c.k && !math.IsInf(want, 0); k += c.step {
						terms := []exactTerm{exactFactor(want, num.F32)}
						for i := k; i < k+c.step; i++ {
							terms = append(terms, exactFactor(format.Decode(a[row][i]), format).times(exactFactor(format.Decode(b[col][i]), format)))
						}
						want = fusedReference(terms, c.fraction, c.top, c.acc == "f16")
					}
					require.Equal(t, want, accumulator.Decode(got(row, col)), "row %d, column %d", row, col)
				}
			}
		})
	}
}

// TestFusedSpecials: infinities and NaN come through, sums too large are infinite.
func TestFusedSpecials(t *testing.T) {
	s := shapeOf("f16", "f32", 16)
	inf, one, large := uint32(0x7c00), uint32(0x3c00), math.Float32bits(math.MaxFloat32)
	for _, c := range []struct {
		a, b []uint32
		c    uint32
		want uint32
	}{
		{[]uint32{inf, one}, []uint32{one, one}, 0, 0x7f800000},
		{[]uint32{inf, inf}, []uint32{one, 0xbc00}, 0, 0x7fffffff},
		{[]uint32{inf}, []uint32{0}, 0, 0x7fffffff},
		{[]uint32{0x7e01}, []uint32{one}, 0, 0x7fffffff},
		{[]uint32{one}, []uint32{one}, 0xff800000, 0xff800000},
		{[]uint32{0x7bff}, []uint32{0x7bff}, large, large}, // cut off, not rounded up
		{[]uint32{0x8000}, []uint32{one}, 0x80000000, 0},
	} {
		got := s.multiply(t, "sm_90a", vm.Options{Tensor: vm.Fused}, [][]uint32{c.a}, [][]uint32{c.b}, func(int, int) uint32 { return c.c })
		require.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", got(0, 0)), "%x * %x + %x", c.a, c.b, c.c)
	}
}

// TestFusedScalesThatAreNaN: one among several makes the sum NaN, also an infinite
// one.
func TestFusedScalesThatAreNaN(t *testing.T) {
	body := "mov.b32 %x, 0x38387f38; " + // ue4m3: the second of four has no number
		"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%d0,%d1,%d2,%d3}, {%x0,%x0,%x0,%x0}, {%x0,%x0}, {%c,%c,%c,%c}, %x, {0, 0}, %x1, {0, 0}; " +
		"mad.wide.u32 %ad, %t, 4, %in0; st.global.f32 [%ad], %d0;"
	for _, tensor := range []vm.Tensor{vm.Ordered, vm.Fused} {
		out, report := small{
			target: "sm_120a", block: 32, opt: vm.Options{Tensor: tensor},
			regs: ".reg .b64 %ad; .reg .b32 %x, %x0, %x1; .reg .f32 %c, %d<4>;",
			body: "mov.f32 %c, 0f7F800000; mov.b32 %x0, 0x22222222; mov.b32 %x1, 0x38383838; " + body,
		}.run(t, make([]byte, 128))
		require.Empty(t, report.Faults)
		require.Equal(t, uint32(0x7fffffff), toWords(out[0])[5], "%q", tensor)
	}
}
