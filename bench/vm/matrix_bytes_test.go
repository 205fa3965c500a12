package vm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// byteMatrix is ldmatrix of bytes. bit says at which bit of a row-major image of
// the matrices byte v of a lane lies, as CuTe's traits SM100_U8x8_LDSM_T and their
// like have it (NVIDIA cutlass, BSD-3); lane gives each lane's address the place
// of its row in that image.
type byteMatrix struct {
	mods      string
	registers int
	bits      int // of an element in memory
	place     func(lane int) int
	bit       func(lane, v int) int
}

// squareRow is the place of the row that a lane gives: (2,2,4,2):(1,8,2,16).
func squareRow(l int) int { return l&1 + l>>1&1*8 + l>>2&3*2 + l>>4*16 }

// squareBit is (4,8),(8,2,2,4) to (256,8),(1,128,64,1024).
func squareBit(lane, v int) int {
	return lane&3*256 + lane>>2*8 + v&1*128 + v>>1&1*64 + v>>2*1024
}

func wideRow(l int) int { return l }

func wideBit(lane, v int) int { return lane*32 + v&3*8 + v>>2*1024 }

func TestLdmatrixBytes(t *testing.T) {
	var all []byteMatrix
	for n := 1; n <= 4; n *= 2 {
		for _, pack := range []struct {
			name string
			bits int
		}{{"b8", 8}, {"b8x16.b6x16_p32", 6}, {"b8x16.b4x16_p64", 4}} {
			if n <= 2 {
				all = append(all, byteMatrix{fmt.Sprintf("m16n16.x%d.trans.shared.%s", n, pack.name), 2 * n, pack.bits, squareRow, squareBit})
			}
			if pack.bits < 8 {
				all = append(all, byteMatrix{fmt.Sprintf("m8n16.x%d.shared.%s", n, pack.name), n, pack.bits, wideRow, wideBit})
			}
		}
	}
	for _, m := range all {
		t.Run(m.mods, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, uint64(m.registers)))
			rows := 8 * m.registers
			elements := make([][16]uint32, rows)
			memory := make([]byte, 512)
			for i := range memory {
				memory[i] = byte(r.Uint32()) // also what lies between the rows
			}
			for row := range elements {
				at := memory[16*row:]
				for e := range 16 {
					v := r.Uint32() & (1<<m.bits - 1)
					elements[row][e] = v
					for b := range m.bits {
						i := m.bits*e + b
						at[i/8] = at[i/8]&^(1<<(i%8)) | byte(v>>b&1)<<(i%8)
					}
				}
			}
			registers := "%r2"
			for i := 1; i < m.registers; i++ {
				registers += fmt.Sprintf(", %%r%d", 2+i)
			}
			p := small{
				target: "sm_120a", decls: ".extern .shared .align 16 .b8 sm[];",
				regs: ".reg .b64 %ad; .reg .b32 %r<9>;",
				body: `mul.wide.u32 %ad, %t, 16; add.s64 %ad, %ad, %in0;
ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%ad];
shl.b32 %r0, %t, 4; mov.u32 %r1, sm; add.u32 %r0, %r0, %r1;
st.shared.v4.b32 [%r0], {%r2,%r3,%r4,%r5};
bar.sync 0;
ldmatrix.sync.aligned.` + m.mods + " {" + registers + `}, [%r0];
mul.wide.u32 %ad, %t, 16; add.s64 %ad, %ad, %in1;
st.global.v4.b32 [%ad], {%r2,%r3,%r4,%r5};`,
				block: 32, dynamic: 512,
			}
			out, report := p.run(t, memory, make([]byte, 512))
			require.Empty(t, report.Faults)
			giver := map[int]int{} // of the row at a place
			for l := range rows {
				giver[m.place(l)] = l
			}
			got := toWords(out[1])
			for lane := range 32 {
				for v := range 4 * m.registers {
					bit := m.bit(lane, v)
					want := elements[giver[bit/128]][bit%128/8]
					if m.bits == 4 {
						want <<= 2
					}
					require.Equal(t, want, got[4*lane+v/4]>>(8*(v%4))&0xff, "lane %d value %d", lane, v)
				}
			}
		})
	}
}

// TestStmatrixBytes stores what (4,8),(8,2,2,4) to (256,8),(1,128,64,1024) says.
func TestStmatrixBytes(t *testing.T) {
	for n := 1; n <= 4; n *= 2 {
		r := rand.New(rand.NewPCG(6, uint64(n)))
		src := make([]uint32, 32*4)
		for i := range src {
			src[i] = r.Uint32()
		}
		p := small{
			target: "sm_120a", decls: ".extern .shared .align 16 .b8 sm[];",
			regs: ".reg .b64 %ad; .reg .b32 %r<9>;",
			body: `mul.wide.u32 %ad, %t, 16; add.s64 %ad, %ad, %in0;
ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%ad];
shl.b32 %r0, %t, 4; mov.u32 %r1, sm; add.u32 %r0, %r0, %r1;
st.shared.v4.b32 [%r0], {0, 0, 0, 0};
bar.sync 0;
stmatrix.sync.aligned.m16n8.x` + fmt.Sprint(n) + ".trans.shared.b8 [%r0], {" + strings.Join([]string{"%r2", "%r3", "%r4", "%r5"}[:n], ", ") + `};
bar.sync 0;
ld.shared.v4.b32 {%r2,%r3,%r4,%r5}, [%r0];
mul.wide.u32 %ad, %t, 16; add.s64 %ad, %ad, %in1;
st.global.v4.b32 [%ad], {%r2,%r3,%r4,%r5};`,
			block: 32, dynamic: 512,
		}
		out, report := p.run(t, words(src...), make([]byte, 512))
		require.Empty(t, report.Faults)
		want := make([]byte, 512)
		for lane := range 32 {
			for v := range 4 * n {
				want[squareBit(lane, v)/8] = byte(src[4*lane+v/4] >> (8 * (v % 4)))
			}
		}
		require.Equal(t, want, out[1], "x%d", n)
	}
}
