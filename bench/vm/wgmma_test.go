package vm_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// wgmmaType is an operand type: how many elements 16 bytes hold, and the bits
// of 1 and 2, all others being their negatives and 0.
type wgmmaType struct {
	name     string
	k, bits  int
	one, two uint32
	integer  bool
	anyMajor bool // M or N may be contiguous, also of 8 bits
}

var wgmmaTypes = []wgmmaType{
	{"f16", 16, 16, 0x3c00, 0x4000, false, false},
	{"bf16", 16, 16, 0x3f80, 0x4000, false, false},
	{"tf32", 8, 32, 0x3f800000, 0x40000000, false, false},
	{"e4m3", 32, 8, 0x38, 0x40, false, false},
	{"e5m2", 32, 8, 0x3c, 0x40, false, false},
	{"s8", 32, 8, 1, 2, true, false},
	{"u8", 32, 8, 1, 2, true, false},
	{"b1", 32, 8, 1, 2, true, false}, // a value is eight elements
}

// times is what two values add to the product.
func (t wgmmaType) times(a, b int) int {
	if t.name == "b1" {
		return bits.OnesCount8(uint8(a & b))
	}
	return a * b
}

// instruction is the name of a product of 64xn into sums of a type.
func (t wgmmaType) instruction(n int, dt string, bt wgmmaType) string {
	k, end := t.k, ""
	if t.name == "b1" {
		k, end = 8*t.k, ".and.popc"
	}
	return fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s%s", n, k, dt, t.name, bt.name, end)
}

func (t wgmmaType) encode(v int) uint32 {
	if t.name == "b1" {
		return uint32(v)
	}
	b := []uint32{0, t.one, t.two}[max(v, -v)]
	switch {
	case v < 0 && t.integer:
		return uint32(v) & 0xff
	case v < 0:
		b |= 1 << (t.bits - 1)
	}
	return b
}

// wgmmaOperand is a matrix in shared memory by one of the canonical layouts of
// PTX ISA 9.7.15.5.1: rows of A, or columns of B, times k.
type wgmmaOperand struct {
	rows, k  int
	t        wgmmaType
	mnMajor  bool
	swizzle  int
	start    int // multiple of 16
	leading  int
	stride   int
	base     int // the field base offset
	size     int
	values   []int // by row, then k
	advanced int   // bytes into the swizzled row where k begins
}

func drawOperand(t *rapid.T, typ wgmmaType, rows int, at int) *wgmmaOperand {
	o := &wgmmaOperand{rows: rows, k: typ.k, t: typ}
	o.swizzle = rapid.SampledFrom([]int{0, 32, 64, 128}).Draw(t, "swizzle")
	o.mnMajor = (typ.bits == 16 || typ.anyMajor) && rapid.Bool().Draw(t, "mn-major")
	chunk := 128 / typ.bits // elements
	other := rapid.Bool().Draw(t, "order")
	pad := rapid.IntRange(0, 2).Draw(t, "pad")
	unit := max(8*o.swizzle, 128) // bytes of a core matrix or swizzle atom
	pad *= unit
	across, along := rows/8, 2 // core matrices: of the strided dimension, of the contiguous
	if o.mnMajor {
		across, along = o.k/8, rows/chunk
	}
	switch {
	case o.swizzle > 0 && !o.mnMajor:
		o.stride, o.leading = unit+pad, 16
		o.size = across * o.stride
		if room := o.swizzle/32 - 1; room > 0 {
			o.advanced = 32 * rapid.IntRange(0, room).Draw(t, "advanced")
		}
	case o.swizzle > 0:
		atoms := (along*16 + o.swizzle - 1) / o.swizzle
		o.leading, o.stride = unit, atoms*unit+pad
		if other {
			o.stride, o.leading = unit, across*unit+pad
		}
		o.size = atoms*o.leading + across*o.stride
	default:
		inner, outer := 128, across*128+pad
		if other {
			inner, outer = along*128+pad, 128
		}
		o.stride, o.leading = inner, outer // between core matrices of the strided and of the contiguous dimension
		o.size = across*o.stride + along*o.leading
		if o.mnMajor {
			o.stride, o.leading = o.leading, o.stride
		}
	}
	o.start = at
	if o.swizzle > 0 && o.advanced == 0 && rapid.Bool().Draw(t, "off the boundary") {
		shift := rapid.IntRange(0, 7).Draw(t, "lines")
		o.start += 128 * shift
		o.base = shift
	}
	o.size += 1024
	o.values = make([]int, rows*o.k)
	for i := range o.values {
		if typ.name == "b1" {
			o.values[i] = rapid.IntRange(0, 255).Draw(t, "v")
			continue
		}
		o.values[i] = rapid.IntRange(-2, 2).Draw(t, "v")
		if typ.name == "u8" {
			o.values[i] = max(o.values[i], -o.values[i])
		}
	}
	return o
}

// offset is where an element lies: the canonical layout's strides, then the
// swizzle relative to where its pattern starts.
func (o *wgmmaOperand) offset(row, k int) int {
	chunk, size := 128/o.t.bits, o.t.bits/8
	var p int
	switch {
	case !o.mnMajor && o.swizzle == 0: // ((8,m),(T,2)) : ((1T,SBO),(1,LBO))
		p = row%8*16 + row/8*o.stride + k%chunk*size + k/chunk*o.leading
	case !o.mnMajor: // ((8,m),(T,2)) : ((S,SBO),(1,T))
		p = row%8*o.swizzle + row/8*o.stride + o.advanced + k*size
	case o.swizzle == 0: // ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO))
		p = row%chunk*size + row/chunk*o.stride + k%8*16 + k/8*o.leading
	default: // ((T,S,m),(8,k)) : ((1,T,LBO),(S,SBO))
		n := o.swizzle / size
		p = row%n*size + row/n*o.leading + k%8*o.swizzle + k/8*o.stride
	}
	if o.swizzle > 0 {
		p ^= p >> 3 & (o.swizzle - 16)
	}
	return o.start + p
}

func (o *wgmmaOperand) fill(image []byte) {
	for row := range o.rows {
		for k := range o.k {
			v := binary.LittleEndian.AppendUint32(nil, o.t.encode(o.values[row*o.k+k]))
			copy(image[o.offset(row, k):], v[:o.t.bits/8])
		}
	}
}

func (o *wgmmaOperand) descriptor(base int) uint64 {
	mode := map[int]uint64{0: 0, 32: 3, 64: 2, 128: 1}[o.swizzle]
	return uint64(base+o.start+o.advanced)>>4 | uint64(o.leading>>4)<<16 | uint64(o.stride>>4)<<32 | uint64(o.base)<<49 | mode<<62
}

// TestWgmma compares random products with plain sums: every type, canonical
// layout and shape, A in registers or shared memory, signs and scale.
func TestWgmma(tb *testing.T) {
	const reserved = 1024 // bytes of shared memory below the program's
	rapid.Check(tb, func(t *rapid.T) {
		at := rapid.SampledFrom(wgmmaTypes).Draw(t, "type")
		bt := at
		if at.bits == 8 && at.name != "b1" && rapid.Bool().Draw(t, "mixed") {
			bt = map[string]wgmmaType{"e4m3": wgmmaTypes[4], "e5m2": wgmmaTypes[3], "s8": wgmmaTypes[6], "u8": wgmmaTypes[5]}[at.name]
		}
		n := 8 * rapid.IntRange(1, 32).Draw(t, "n/8")
		if at.integer && n > 32 {
			n = n / 16 * 16
		}
		dt := "f32"
		switch {
		case at.integer:
			dt = "s32"
		case at.name != "bf16" && at.name != "tf32" && rapid.Bool().Draw(t, "f16 sums"):
			dt = "f16"
		}
		inRegs := rapid.Bool().Draw(t, "A in registers")
		a := drawOperand(t, at, 64, 0)
		b := drawOperand(t, bt, n, (a.size+1023)/1024*1024)
		image := make([]byte, b.start+b.size)
		a.fill(image)
		b.fill(image)
		signs := []int{1, 1}
		if !at.integer {
			signs = []int{1 - 2*rapid.IntRange(0, 1).Draw(t, "-A"), 1 - 2*rapid.IntRange(0, 1).Draw(t, "-B")}
		}
		scale := rapid.IntRange(0, 1).Draw(t, "scale-d")

		regs := n / 2
		if dt == "f16" {
			regs = n / 4
		}
		var body, list strings.Builder
		for i := range regs {
			fmt.Fprintf(&body, "ld.global.b32 %%d%d, [%%g+%d];\n", i, 4*i)
			if i > 0 {
				list.WriteString(", ")
			}
			fmt.Fprintf(&list, "%%d%d", i)
		}
		left := "%da"
		if inRegs {
			left = "{%a0, %a1, %a2, %a3}"
		}
		fmt.Fprintf(&body, "setp.eq.u32 %%s, %d, 1; mov.b64 %%da, %d; mov.b64 %%db, %d;\n", scale, int64(a.descriptor(reserved)), int64(b.descriptor(reserved)))
		fmt.Fprintf(&body, "wgmma.fence.sync.aligned;\n%s {%s}, %s, %%db, %%s", at.instruction(n, dt, bt), list.String(), left)
		if !at.integer {
			fmt.Fprintf(&body, ", %d, %d", signs[0], signs[1])
		}
		if at.bits == 16 {
			if !inRegs {
				fmt.Fprintf(&body, ", %d", truthOf(a.mnMajor))
			}
			fmt.Fprintf(&body, ", %d", truthOf(b.mnMajor))
		}
		body.WriteString(";\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n")
		for i := range regs {
			fmt.Fprintf(&body, "st.global.b32 [%%g+%d], %%d%d;\n", 4*i, i)
		}
		p := small{
			target: "sm_90a", decls: sharedDecl, dynamic: int64(len(image)), block: 128,
			regs: fmt.Sprintf(".reg .b32 %%d<%d>, %%a<4>, %%i, %%v, %%x; .reg .b64 %%g, %%h, %%da, %%db; .reg .pred %%p, %%s;", regs),
			body: fmt.Sprintf(`shl.b32 %%i, %%t, 2;
L: setp.ge.u32 %%p, %%i, %d; @%%p bra DONE; cvt.u64.u32 %%h, %%i; add.u64 %%h, %%h, %%in0; ld.global.u32 %%v, [%%h]; mov.u32 %%x, sm; add.u32 %%x, %%x, %%i; st.shared.u32 [%%x], %%v; add.u32 %%i, %%i, 512; bra L;
DONE: fence.proxy.async; bar.sync 0;
mad.wide.u32 %%h, %%t, 16, %%in1; ld.global.v4.b32 {%%a0, %%a1, %%a2, %%a3}, [%%h];
mad.wide.u32 %%g, %%t, %d, %%in2;
`, len(image), 4*regs) + body.String(),
			opt: timings[rapid.IntRange(0, len(timings)-1).Draw(t, "timing")],
		}
		initial := make([]byte, 128*4*regs)
		sum := func(thread, i int) int { return thread%5 - 2 + i%3 }
		want := make([]int, 128*regs*2)
		for thread := range 128 {
			for i := range n / 2 {
				row, col := wgmmaSum(thread, i)
				v := sum(thread, i) * scale
				for k := range at.k {
					v += signs[0] * signs[1] * at.times(a.values[row*at.k+k], b.values[col*at.k+k])
				}
				want[thread*n/2+i] = v
				switch dt {
				case "f16":
					binary.LittleEndian.PutUint16(initial[(thread*n/2+i)*2:], halfOf(sum(thread, i)))
				case "f32":
					binary.LittleEndian.PutUint32(initial[(thread*n/2+i)*4:], math.Float32bits(float32(sum(thread, i))))
				default:
					binary.LittleEndian.PutUint32(initial[(thread*n/2+i)*4:], uint32(sum(thread, i)))
				}
			}
		}
		out, report := p.run(tb, image, fragmentsOf(a), initial)
		require.Empty(t, report.Faults)
		for i := range 128 * n / 2 {
			var got int
			switch dt {
			case "f16":
				got = intOfHalf(binary.LittleEndian.Uint16(out[2][2*i:]))
			case "f32":
				got = int(math.Float32frombits(binary.LittleEndian.Uint32(out[2][4*i:])))
			default:
				got = int(int32(binary.LittleEndian.Uint32(out[2][4*i:])))
			}
			require.Equal(t, want[i], got, "thread %d, element %d", i/(n/2), i%(n/2))
		}
	})
}

// fragmentsOf is A as each thread's four registers.
func fragmentsOf(a *wgmmaOperand) []byte {
	out := make([]byte, 128*16)
	size := a.t.bits / 8
	for thread := range 128 {
		for i := range 16 / size {
			row, k := wgmmaFragment(a.t.bits, thread, i)
			v := binary.LittleEndian.AppendUint32(nil, a.t.encode(a.values[row*a.k+k]))
			copy(out[thread*16+i*size:], v[:size])
		}
	}
	return out
}

// wgmmaFragment is where element i of a thread's registers lies in A, of so many
// bits.
func wgmmaFragment(bits, thread, i int) (row, k int) {
	row, q := 16*(thread/32)+thread%32/4, thread&3
	switch bits {
	case 16:
		return row + 8*(i>>1&1), 2*q + i&1 + 8*(i>>2)
	case 32:
		return row + 8*(i&1), q + 4*(i>>1)
	}
	return row + 8*(i>>2&1), 4*q + i&3 + 16*(i>>3)
}

// wgmmaSum is where element i of a thread's accumulators lies in D.
func wgmmaSum(thread, i int) (row, col int) {
	return 16*(thread/32) + thread%32/4 + 8*(i>>1&1), 8*(i>>2) + 2*(thread&3) + i&1
}

func truthOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// halfOf is a small integer as f16; intOfHalf is the way back.
func halfOf(v int) uint16 {
	sign := uint16(0)
	if v < 0 {
		sign, v = 0x8000, -v
	}
	if v == 0 {
		return sign
	}
	e := 0
	for v>>(e+1) != 0 {
		e++
	}
	return sign | uint16(e+15)<<10 | uint16(v<<10>>e)&0x3ff
}

func intOfHalf(h uint16) int {
	e := int(h>>10&31) - 15
	if e < 0 {
		return 0
	}
	v := (1<<10 | int(h&0x3ff)) << e >> 10
	if h>>15 != 0 {
		v = -v
	}
	return v
}
