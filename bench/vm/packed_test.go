package vm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackedIntegers: sums, differences and extremes of integers of 8 and 16
// bits, part by part, saturated and not.
func TestPackedIntegers(t *testing.T) {
	clamp := func(v, least, most int64) int64 { return min(max(v, least), most) }
	keep := func(v, _, _ int64) int64 { return v }
	add := func(a, b int64) int64 { return a + b }
	sub := func(a, b int64) int64 { return a - b }
	lesser := func(a, b int64) int64 { return min(a, b) }
	greater := func(a, b int64) int64 { return max(a, b) }
	positive := func(f func(a, b int64) int64) func(a, b int64) int64 {
		return func(a, b int64) int64 { return max(f(a, b), 0) }
	}
	for _, o := range []struct {
		name   string
		bits   int
		signed bool
		f      func(a, b int64) int64
		fit    func(v, least, most int64) int64
	}{
		{"add.u8x4", 8, false, add, keep}, {"add.s8x4", 8, true, add, keep},
		{"add.sat.u8x4", 8, false, add, clamp}, {"add.sat.s8x4", 8, true, add, clamp},
		{"add.sat.u16x2", 16, false, add, clamp}, {"add.sat.s16x2", 16, true, add, clamp},
		{"add.sat.u32", 32, false, add, clamp}, {"add.sat.s32", 32, true, add, clamp}, {"add.u16x2", 16, false, add, keep},
		{"sub.u8x4", 8, false, sub, keep}, {"sub.s8x4", 8, true, sub, keep},
		{"sub.sat.u8x4", 8, false, sub, clamp}, {"sub.sat.s8x4", 8, true, sub, clamp}, {"sub.sat.s32", 32, true, sub, clamp},
		{"min.u8x4", 8, false, lesser, keep}, {"min.s8x4", 8, true, lesser, keep}, {"min.relu.s8x4", 8, true, positive(lesser), keep},
		{"max.u8x4", 8, false, greater, keep}, {"max.s8x4", 8, true, greater, keep}, {"max.relu.s8x4", 8, true, positive(greater), keep},
		{"neg.s8x4", 8, true, func(a, _ int64) int64 { return -a }, keep},
	} {
		t.Run(o.name, func(t *testing.T) {
			operands := "%a, %b"
			if o.name[:3] == "neg" {
				operands = "%a"
			}
			p := small{
				target: "sm_120f", regs: ".reg .b64 %ad; .reg .b32 %a, %b, %d;", block: 256,
				body: fmt.Sprintf("mad.wide.u32 %%ad, %%t, 8, %%in0; ld.global.v2.b32 {%%a, %%b}, [%%ad]; %s %%d, %s; mad.wide.u32 %%ad, %%t, 4, %%in1; st.global.b32 [%%ad], %%d;", o.name, operands),
			}
			r := rand.New(rand.NewPCG(9, 2))
			in := make([]uint32, 512)
			edges := []uint32{0, 0x7f807f80, 0x80ff80ff, 0xffffffff, 0x7fffffff, 0x80000000, 0x01ff00fe}
			for i := range in {
				if in[i] = r.Uint32(); r.IntN(3) == 0 {
					in[i] = edges[r.IntN(len(edges))]
				}
			}
			out, report := p.run(t, words(in...), words(make([]uint32, 256)...))
			require.Empty(t, report.Faults)
			for i, got := range toWords(out[1]) {
				var want uint32
				for at := 0; at < 32; at += o.bits {
					mask := uint32(uint64(1)<<o.bits - 1)
					a, b := int64(in[2*i]>>at&mask), int64(in[2*i+1]>>at&mask)
					least, most := int64(0), int64(mask)
					if o.signed {
						a, b = a<<(64-o.bits)>>(64-o.bits), b<<(64-o.bits)>>(64-o.bits)
						least, most = -1<<(o.bits-1), 1<<(o.bits-1)-1
					}
					want |= uint32(o.fit(o.f(a, b), least, most)) & mask << at
				}
				require.Equal(t, want, got, "%#x and %#x", in[2*i], in[2*i+1])
			}
		})
	}
}
