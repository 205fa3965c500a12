package vm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLdmatrix loads four matrices whose rows lie scattered, plain and
// transposed, after copying them with cp.async.
func TestLdmatrix(t *testing.T) {
	for _, trans := range []bool{false, true} {
		mod := ""
		if trans {
			mod = ".trans"
		}
		r := rand.New(rand.NewPCG(3, 4))
		src := make([]uint32, 32*4)
		for i := range src {
			src[i] = r.Uint32()
		}
		order := r.Perm(32) // row i lies at place order[i]
		place := make([]uint32, 32)
		for i, p := range order {
			place[i] = uint32(16 * p)
		}
		p := small{
			decls: ".extern .shared .align 16 .b8 sm[];",
			regs:  ".reg .b64 %ad; .reg .b32 %r<9>;",
			body: `mul.wide.u32 %ad, %t, 4; add.s64 %ad, %ad, %in1;
ld.global.b32 %r0, [%ad];
mov.u32 %r1, sm; add.u32 %r0, %r0, %r1;
mul.wide.u32 %ad, %t, 16; add.s64 %ad, %ad, %in0;
cp.async.cg.shared.global [%r0], [%ad], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x4` + mod + `.shared.b16 {%r2,%r3,%r4,%r5}, [%r0];
mul.wide.u32 %ad, %t, 16; add.s64 %ad, %ad, %in2;
st.global.v4.b32 [%ad], {%r2,%r3,%r4,%r5};`,
			block: 32, dynamic: 512,
		}
		out, report := p.run(t, words(src...), words(place...), make([]byte, 512))
		require.Empty(t, report.Faults)
		half := func(row, col int) uint32 { return src[row*4+col/2] >> (16 * (col % 2)) & 0xffff }
		got := toWords(out[2])
		for lane := range 32 {
			for j := range 4 {
				g, q := lane/4, lane%4
				want := half(8*j+g, 2*q) | half(8*j+g, 2*q+1)<<16
				if trans {
					want = half(8*j+2*q, g) | half(8*j+2*q+1, g)<<16
				}
				require.Equal(t, want, got[lane*4+j], "lane %d matrix %d", lane, j)
			}
		}
		require.EqualValues(t, 4, report.Counters.Shared.Matrix.Ideal)
		require.EqualValues(t, 16, report.Counters.Global.Copies.Sectors)
	}
}
