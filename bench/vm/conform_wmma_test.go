package vm_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/ir/num"
)

// wmmaCase is a shape and types of wmma with how many registers each fragment
// has: PTX ISA 9.7.14.4.1.
type wmmaCase struct {
	m, n, k    int
	typ        string // of A and B
	c, d       string // of the accumulators
	na, nb     int    // registers
	bits       int
	rowA, colB bool // the one layout that there is
	mod        string
}

func wmmaCases() []wmmaCase {
	var list []wmmaCase
	for _, s := range [][3]int{{16, 16, 16}, {8, 32, 16}, {32, 8, 16}} {
		for _, acc := range [][2]string{{"f32", "f32"}, {"f16", "f16"}, {"f32", "f16"}, {"f16", "f32"}} {
			list = append(list, wmmaCase{m: s[0], n: s[1], k: s[2], typ: "f16", c: acc[0], d: acc[1], na: 8, nb: 8, bits: 16})
		}
		list = append(list, wmmaCase{m: s[0], n: s[1], k: s[2], typ: "bf16", c: "f32", d: "f32", na: s[0] / 4, nb: s[1] / 4, bits: 16})
		for _, typ := range []string{"s8", "u8"} {
			list = append(list, wmmaCase{m: s[0], n: s[1], k: s[2], typ: typ, c: "s32", d: "s32", na: s[0] / 8, nb: s[1] / 8, bits: 8})
		}
	}
	return append(list,
		wmmaCase{m: 16, n: 16, k: 8, typ: "tf32", c: "f32", d: "f32", na: 4, nb: 4, bits: 32},
		wmmaCase{m: 8, n: 8, k: 4, typ: "f64", c: "f64", d: "f64", na: 1, nb: 1, bits: 64},
		wmmaCase{m: 8, n: 8, k: 32, typ: "s4", c: "s32", d: "s32", na: 1, nb: 1, bits: 4, rowA: true, colB: true},
		wmmaCase{m: 8, n: 8, k: 32, typ: "u4", c: "s32", d: "s32", na: 1, nb: 1, bits: 4, rowA: true, colB: true},
		wmmaCase{m: 8, n: 8, k: 128, typ: "b1", c: "s32", d: "s32", na: 1, nb: 1, bits: 1, rowA: true, colB: true, mod: "xor.popc."},
		wmmaCase{m: 8, n: 8, k: 128, typ: "b1", c: "s32", d: "s32", na: 1, nb: 1, bits: 1, rowA: true, colB: true, mod: "and.popc."},
	)
}

// wmmaMatrix is a matrix in memory, lines a stride of elements apart.
type wmmaMatrix struct {
	rows, cols, stride int
	rowMajor           bool
	bits               int
}

func (m wmmaMatrix) bytes() int {
	lines := m.cols
	if m.rowMajor {
		lines = m.rows
	}
	return lines * m.stride * m.bits / 8
}

func (m wmmaMatrix) at(row, col int) int {
	if m.rowMajor {
		return row*m.stride + col
	}
	return col*m.stride + row
}

func (m wmmaMatrix) put(mem []byte, row, col int, code uint64) {
	i := m.at(row, col)
	if m.bits < 8 {
		mem[i*m.bits/8] |= byte(code << (i * m.bits % 8))
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], code)
	copy(mem[i*m.bits/8:], b[:m.bits/8])
}

func (m wmmaMatrix) get(mem []byte, row, col int) uint64 {
	var b [8]byte
	i := m.at(row, col)
	copy(b[:m.bits/8], mem[i*m.bits/8:])
	return binary.LittleEndian.Uint64(b[:])
}

// wmmaElement is a small random element and its value.
func wmmaElement(r *rand.Rand, typ string) (uint64, float64) {
	x := float64(r.IntN(17)-8) / 4
	switch typ {
	case "f16":
		return uint64(num.F16.Encode(x, num.Even, false)), x
	case "bf16":
		return uint64(num.BF16.Encode(x, num.Even, false)), x
	case "tf32", "f32":
		return uint64(math.Float32bits(float32(x))), x
	case "f64":
		return math.Float64bits(x), x
	case "b1":
		v := r.Uint64() & 1
		return v, float64(v)
	}
	n := r.Uint64()
	switch typ {
	case "s8":
		return n & 0xff, float64(int8(n))
	case "u8":
		return n & 0xff, float64(uint8(n))
	case "s4":
		return n & 15, float64(int8(n<<4) >> 4)
	case "u4":
		return n & 15, float64(n & 15)
	}
	return uint64(uint32(n)) >> 8, float64(uint32(n) >> 8) // s32
}

// TestWmma loads, multiplies and stores in every shape, type and layout, from
// global, shared and generic addresses, with strides above the least.
func TestWmma(t *testing.T) {
	i := 0
	for _, c := range wmmaCases() {
		for _, rowA := range []bool{true, false} {
			for _, rowB := range []bool{true, false} {
				if c.rowA && !rowA || c.colB && rowB {
					continue
				}
				i++
				c.check(t, i, rowA, rowB)
			}
		}
	}
}

func (c wmmaCase) accRegs(t string) int {
	n := c.m * c.n / 32
	if t == "f16" {
		n /= 2
	}
	return n
}

func accBits(t string) int { return map[string]int{"f16": 16, "f32": 32, "s32": 32, "f64": 64}[t] }

func layoutName(row bool) string {
	if row {
		return "row"
	}
	return "col"
}

func (c wmmaCase) check(t *testing.T, seed int, rowA, rowB bool) {
	shape := fmt.Sprintf("m%dn%dk%d", c.m, c.n, c.k)
	name := fmt.Sprintf("%s%s.%s.%s.%s.%s.%s", c.mod, shape, layoutName(rowA), layoutName(rowB), c.d, c.typ, c.c)
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	rowC, rowD := seed%2 == 0, seed%3 == 0
	gap := []int{0, 16, 48}[seed%3] // more than the least stride
	if c.bits < 8 {
		gap *= 8
	}
	matrix := func(rows, cols int, row bool, bits int) wmmaMatrix {
		m := wmmaMatrix{rows, cols, rows, row, bits}
		if row {
			m.stride = cols
		}
		m.stride += gap
		return m
	}
	a, b := matrix(c.m, c.k, rowA, c.bits), matrix(c.k, c.n, rowB, c.bits)
	acc, res := matrix(c.m, c.n, rowC, accBits(c.c)), matrix(c.m, c.n, rowD, accBits(c.d))
	mem := [4][]byte{make([]byte, a.bytes()), make([]byte, b.bytes()), make([]byte, acc.bytes()), make([]byte, res.bytes())}
	va, vb, vc := make([]float64, c.m*c.k), make([]float64, c.k*c.n), make([]float64, c.m*c.n)
	fill := func(m wmmaMatrix, mem []byte, v []float64, typ string) {
		for row := range m.rows {
			for col := range m.cols {
				code, x := wmmaElement(r, typ)
				m.put(mem, row, col, code)
				v[row*m.cols+col] = x
			}
		}
	}
	fill(a, mem[0], va, c.typ)
	fill(b, mem[1], vb, c.typ)
	fill(acc, mem[2], vc, c.c)

	space := []string{".global", ".shared", ""}[seed/2%3]
	var body strings.Builder
	address := func(i, n int) string {
		if space != ".shared" {
			return fmt.Sprintf("%%in%d", i)
		}
		// Copied to shared memory first, byte by byte.
		fmt.Fprintf(&body, "mov.u32 %%i, %%t; setp.ge.u32 %%p, %%i, %d; @%%p bra E%d; L%d: cvt.u64.u32 %%ad, %%i; add.u64 %%ad, %%ad, %%in%d; ld.global.u8 %%h, [%%ad]; mov.u32 %%s, sm; add.u32 %%s, %%s, %%i; st.shared.u8 [%%s+%d], %%h; add.u32 %%i, %%i, 32; setp.lt.u32 %%p, %%i, %d; @%%p bra L%d; E%d: bar.warp.sync -1;\n",
			n, i, i, i, 16384*i, n, i, i)
		return fmt.Sprintf("sm+%d", 16384*i)
	}
	stride := func(m wmmaMatrix) string {
		if gap == 0 {
			return ""
		}
		return fmt.Sprintf(", %d", m.stride)
	}
	for i, x := range []struct {
		letter string
		m      wmmaMatrix
		typ    string
		n      int
	}{{"a", a, c.typ, c.na}, {"b", b, c.typ, c.nb}, {"c", acc, c.c, c.accRegs(c.c)}} {
		at := address(i, len(mem[i]))
		fmt.Fprintf(&body, "wmma.load.%s.sync.aligned.%s.%s%s.%s %s, [%s]%s;\n", x.letter, layoutName(x.m.rowMajor), shape, space, x.typ, regList("%"+x.letter, x.n), at, stride(x.m))
	}
	types := fmt.Sprintf("%s.%s.%s.%s", c.d, c.typ, c.typ, c.c)
	if c.typ == "f16" {
		types = c.d + "." + c.c
	}
	fmt.Fprintf(&body, "wmma.mma.%ssync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n", c.mod, layoutName(rowA), layoutName(rowB), shape, types,
		regList("%z", c.accRegs(c.d)), regList("%a", c.na), regList("%b", c.nb), regList("%c", c.accRegs(c.c)))
	fmt.Fprintf(&body, "wmma.store.d.sync.aligned.%s.%s.global.%s [%%in3], %s%s;\n", layoutName(rowD), shape, c.d, regList("%z", c.accRegs(c.d)), stride(res))
	reg := func(typ string) string {
		if typ == "f64" || typ == "f32" {
			return "." + typ
		}
		return ".b32"
	}
	p := small{
		target: "sm_80", decls: ".shared .align 128 .b8 sm[49152];",
		regs: fmt.Sprintf(".reg .b64 %%ad; .reg .b32 %%i, %%s; .reg .b16 %%h; .reg .pred %%p; .reg %s %%a<8>, %%b<8>; .reg %s %%c<8>; .reg %s %%z<8>;",
			strings.Replace(reg(c.typ), ".f32", ".b32", 1), reg(c.c), reg(c.d)),
		body: body.String(), block: 32,
	}
	if space != ".shared" {
		p.decls = ""
	}
	out, report, err := p.try(t, mem[:]...)
	require.NoError(t, err, name)
	require.Empty(t, report.Faults, name)
	for row := range c.m {
		for col := range c.n {
			want := vc[row*c.n+col]
			for k := range c.k {
				x, y := va[row*c.k+k], vb[k*c.n+col]
				switch c.mod {
				case "xor.popc.":
					want += math.Abs(x - y)
				default:
					want += x * y
				}
			}
			got := res.get(out[3], row, col)
			switch c.d { // all exact: the numbers are small multiples of 1/16
			case "s32":
				require.Equal(t, want, float64(int32(got)), "%s row %d col %d", name, row, col)
			case "f16":
				require.Equal(t, num.F16.Encode(want, num.Even, false), uint32(got), "%s row %d col %d", name, row, col)
			case "f64":
				require.Equal(t, want, math.Float64frombits(got), "%s row %d col %d", name, row, col)
			default:
				require.Equal(t, want, float64(float(uint32(got))), "%s row %d col %d", name, row, col)
			}
		}
	}
	require.Len(t, report.Counters.Tensor, 1, name)
	require.EqualValues(t, 2*c.m*c.n*c.k, report.Counters.Tensor[0].Operations, name)
}

// TestWmmaFaults: an address past the end, and rows that were never written,
// which make those rows of the result undefined and no others.
func TestWmmaFaults(t *testing.T) {
	p := small{
		regs: ".reg .b32 %a<8>;",
		body: "add.u64 %in0, %in0, 32; wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + regList("%a", 8) + ", [%in0];", block: 32,
	}
	_, report := p.run(t, make([]byte, 512))
	require.Len(t, report.Faults, 1)
	require.Equal(t, bench.GlobalOutOfBounds, report.Faults[0].Class)

	p = small{
		target: "sm_80", decls: ".shared .align 128 .b8 sm[512];",
		regs: ".reg .b64 %ad; .reg .b32 %a<8>, %b<8>, %s, %x, %y; .reg .f32 %c<8>; .reg .pred %p;",
		// 8 of 16 rows are written; 16 lanes write 16 bytes each.
		body: `mov.u32 %y, 0; mul.lo.u32 %s, %t, 16; mov.u32 %x, sm; add.u32 %s, %s, %x; setp.lt.u32 %p, %t, 16;
@%p st.shared.v4.b32 [%s], {%y, %y, %y, %y}; bar.warp.sync -1;
mov.b32 %b0, 0; mov.b32 %b1, 0; mov.b32 %b2, 0; mov.b32 %b3, 0; mov.b32 %b4, 0; mov.b32 %b5, 0; mov.b32 %b6, 0; mov.b32 %b7, 0;
mov.f32 %c0, 0f00000000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0; mov.f32 %c4, %c0; mov.f32 %c5, %c0; mov.f32 %c6, %c0; mov.f32 %c7, %c0;
wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 ` + regList("%a", 8) + `, [sm];
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 ` + regList("%c", 8) + ", " + regList("%a", 8) + ", " + regList("%b", 8) + ", " + regList("%c", 8) + `;
bar.warp.sync -1; wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [sm], ` + regList("%c", 8) + `; bar.warp.sync -1;`,
		block: 32, dynamic: 0,
	}
	p.decls = ".shared .align 128 .b8 sm[1024];"
	defined := p
	defined.body += "\nmul.lo.u32 %s, %t, 16; mov.u32 %x, sm; add.u32 %s, %s, %x; ld.shared.b32 %x, [%s]; mul.wide.u32 %ad, %t, 4; add.u64 %ad, %ad, %in0; st.global.b32 [%ad], %x;"
	_, report = defined.run(t, make([]byte, 128)) // the first 8 rows of 64 bytes
	require.Empty(t, report.Faults)
	undefined := p
	undefined.body += "\nmul.lo.u32 %s, %t, 16; mov.u32 %x, sm; add.u32 %s, %s, %x; ld.shared.b32 %x, [%s+512]; mul.wide.u32 %ad, %t, 4; add.u64 %ad, %ad, %in0; st.global.b32 [%ad], %x;"
	_, report = undefined.run(t, make([]byte, 128))
	require.NotEmpty(t, report.Faults)
	require.Equal(t, bench.UninitialisedSharedRead, report.Faults[0].Class)
}
