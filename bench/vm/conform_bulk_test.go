package vm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// bulkProgram is a program whose thread 0 does something with shared memory sm of n
// bytes, which the block fills from in0 before and writes to in1 after. Its
// mbarrier is at sm+n, n more bytes after that are free.
func bulkProgram(n int, body string) small {
	move := func(label, body string) string {
		return fmt.Sprintf("shl.b32 %%i, %%t, 4;\n%s: setp.ge.u32 %%p, %%i, %d; @%%p bra %sX; mov.u32 %%a, sm; add.u32 %%a, %%a, %%i; cvt.u64.u32 %%g, %%i; %s add.u32 %%i, %%i, 512; bra %s;\n%sX:\n", label, n, label, body, label, label)
	}
	return small{
		target: "sm_100a", decls: fmt.Sprintf(".shared .align 128 .b8 sm[%d];", n+64), block: 32,
		regs: ".reg .b64 %g, %h, %w, %v, %policy, %from; .reg .b32 %a, %i, %left, %right; .reg .pred %p, %q;",
		body: "setp.eq.u32 %q, %t, 0; createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;\n" +
			move("IN", "add.u64 %h, %g, %in0; ld.global.v2.b64 {%w, %v}, [%h]; st.shared.v2.b64 [%a], {%w, %v};") +
			fmt.Sprintf("@%%q mbarrier.init.shared.b64 [sm+%d], 1; fence.proxy.async; bar.sync 0; @!%%q bra DONE;\n", n) + body + "\nDONE: bar.sync 0;\n" +
			move("OUT", "add.u64 %h, %g, %in1; ld.shared.v2.b64 {%w, %v}, [%a]; st.global.v2.b64 [%h], {%w, %v};"),
	}
}

// waitBytes waits at the mbarrier of bulkProgram for a copy that op issues.
func waitBytes(n, size int, op string) string {
	return fmt.Sprintf("mbarrier.arrive.expect_tx.shared.b64 _, [sm+%d], %d;\n%s\nW: mbarrier.try_wait.parity.shared.b64 %%p, [sm+%d], 0; @!%%p bra W;\n", n, size, op, n)
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestBulkLoads: every way to write a copy from global to shared memory.
func TestBulkLoads(t *testing.T) {
	const n = 1024
	for _, how := range []string{
		".shared::cta.global", ".shared::cluster.global", ".weak.shared::cta.global", ".weak.shared::cluster.global",
		".relaxed.cta.shared::cta.global b128", ".relaxed.gpu.shared::cluster.global b128", ".relaxed.sys.shared::cta.global b128", ".shared::cta.global b128",
	} {
		for _, policy := range []bool{false, true} {
			for _, c := range []struct{ at, size int }{{0, 16}, {48, 32}, {512, 512}, {0, 1024}} {
				head, typ, _ := strings.Cut(how, " ")
				op := "cp.async.bulk" + head + ".mbarrier::complete_tx::bytes"
				end := ""
				if policy {
					op, end = op+".L2::cache_hint", ", %policy"
				}
				if typ != "" {
					op += "." + typ
				}
				p := bulkProgram(n, waitBytes(n, c.size, fmt.Sprintf("%s [sm+%d], [%%in2+32], %d, [sm+%d]%s;", op, c.at, c.size, n, end)))
				r := rand.New(rand.NewPCG(uint64(c.size), 1))
				before, from := randomBytes(r, n), randomBytes(r, n+64)
				want := bytes.Clone(before)
				copy(want[c.at:], from[32:32+c.size])
				p.everywhere(t, func(out [][]byte, rep *bench.Report) {
					require.Empty(t, rep.Faults, p.body)
					require.Equal(t, want, out[1], op)
				}, before, make([]byte, n), from)
			}
		}
	}
}

// TestBulkIgnoresEnds: .ignore_oob reads nothing of up to 15 bytes at either end,
// which may lie outside the buffer; what it leaves of them is undefined.
func TestBulkIgnoresEnds(t *testing.T) {
	const n = 256
	r := rand.New(rand.NewPCG(2, 1))
	program := func(size, left, right int) small {
		op := fmt.Sprintf("mov.u32 %%left, %d; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [sm+16], [%%in2], %d, %%left, %d, [sm+%d];", left, size, right, n)
		p := bulkProgram(n, waitBytes(n, size, op)+"/*read*/")
		// The ends are written over before anybody reads them.
		p.body = replace(p.body, "/*read*/", fmt.Sprintf(`mov.u32 %%i, 0; L: setp.ge.u32 %%p, %%i, %d; @%%p bra R; mov.u32 %%a, sm; add.u32 %%a, %%a, %%i; st.shared.u8 [%%a+16], 7; add.u32 %%i, %%i, 1; bra L;
R: setp.ge.u32 %%p, %%i, %d; @%%p bra DONE; mov.u32 %%a, sm; add.u32 %%a, %%a, %%i; st.shared.u8 [%%a+%d], 9; add.u32 %%i, %%i, 1; bra R;`, left, left+right, 16+size-left-right))
		return p
	}
	for _, size := range []int{16, 96} {
		for range 12 {
			left, right := r.IntN(16), r.IntN(16)
			if size == 16 && left+right > 16 {
				continue
			}
			before, from := randomBytes(r, n), randomBytes(r, size-right) // ends right after what is read
			want := bytes.Clone(before)
			copy(want[16+left:], from[left:])
			copy(want[16:], bytes.Repeat([]byte{7}, left))
			copy(want[16+size-right:], bytes.Repeat([]byte{9}, right))
			program(size, left, right).everywhere(t, func(out [][]byte, rep *bench.Report) {
				require.Empty(t, rep.Faults, "%d: %d, %d", size, left, right)
				require.Equal(t, want, out[1])
			}, before, make([]byte, n), from)
		}
	}
	class := func(p small, from int) bench.FaultClass {
		_, rep := p.run(t, make([]byte, n), make([]byte, n), make([]byte, from))
		require.NotEmpty(t, rep.Faults)
		return rep.Faults[0].Class
	}
	require.Equal(t, bench.GlobalOutOfBounds, class(program(96, 3, 4), 91))
	require.Equal(t, bench.BadDescriptor, class(program(96, 16, 4), 96))
	for _, over := range []string{"st.shared.u8 [%a+16], 7;", "st.shared.u8 [%a+105], 9;"} {
		p := program(96, 3, 4)
		p.body = replace(p.body, over, "")
		require.Equal(t, bench.UninitialisedSharedRead, class(p, 96), over)
	}
}

// TestBulkStores: every way to write a copy from shared to global memory, whole and
// by a mask of bytes of each 16.
func TestBulkStores(t *testing.T) {
	const n = 512
	r := rand.New(rand.NewPCG(7, 1))
	for _, how := range []string{".global.shared::cta", ".weak.global.shared::cta", ".global.shared::cta b128", ".relaxed.gpu.global.shared::cta b128"} {
		for _, policy := range []bool{false, true} {
			for _, mask := range []int{-1, 0, 1, 0x8000, 0xffff, r.IntN(1 << 16), r.IntN(1 << 16)} {
				head, typ, _ := strings.Cut(how, " ")
				op, end := "cp.async.bulk"+head+".bulk_group", ""
				if policy {
					op, end = op+".L2::cache_hint", ", %policy"
				}
				if mask >= 0 {
					op, end = op+".cp_mask", end+fmt.Sprintf(", %d", mask)
				}
				if typ != "" {
					op += "." + typ
				}
				size := 16 * (1 + r.IntN(20))
				p := bulkProgram(n, fmt.Sprintf("%s [%%in2+64], [sm+32], %d%s; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", op, size, end))
				before, to := randomBytes(r, n), randomBytes(r, n)
				want := bytes.Clone(to)
				for i := range size {
					if mask>>(i%16)&1 == 1 {
						want[64+i] = before[32+i]
					}
				}
				p.everywhere(t, func(out [][]byte, rep *bench.Report) {
					require.Empty(t, rep.Faults)
					require.Equal(t, want, out[2], "%s %#x", op, mask)
				}, before, make([]byte, n), to)
			}
		}
	}
}

// onEach applies a combination to elements that lie one after the other.
func (c combination) onEach(old, with []byte) []byte {
	out := bytes.Clone(old)
	size := c.bits / 8
	at := func(b []byte, i int) uint64 {
		var v [8]byte
		copy(v[:size], b[i:])
		return binary.LittleEndian.Uint64(v[:])
	}
	for i := 0; i < len(with); i += size {
		copy(out[i:i+size], binary.LittleEndian.AppendUint64(nil, c.f(at(old, i), at(with, i), 0)))
	}
	return out
}

// elements are n bytes of operands.
func (c combination) elements(r *rand.Rand, n int) []byte {
	var b []byte
	for len(b) < n {
		b = append(b, binary.LittleEndian.AppendUint64(nil, c.values(r, c.bits))[:c.bits/8]...)
	}
	return b
}

// bulkCombinations are those that bulk reductions have: to global memory, or within
// the cluster. PTX ISA 9.7.9.25.4.2.
func bulkCombinations(cluster bool) []combination {
	var list []combination
	for _, c := range combinations() {
		types := ".add.u32.add.s32.add.u64.min.u32.min.s32.max.u32.max.s32.inc.u32.dec.u32.and.b32.or.b32.xor.b32."
		if !cluster {
			types += "add.f32.add.f64.add.noftz.f16.add.noftz.bf16.min.u64.max.u64.min.s64.max.s64.min.f16.max.f16.min.bf16.max.bf16.and.b64.or.b64.xor.b64."
		}
		if c.op[0] == 'm' {
			c.op = c.op[:3] // no .noftz
		}
		if strings.Contains(types, "."+c.String()+".") {
			list = append(list, c)
		}
	}
	return list
}

// TestBulkReductions: every operation and type of cp.reduce.async.bulk.
func TestBulkReductions(t *testing.T) {
	const n = 512
	for i, c := range bulkCombinations(false) {
		t.Run(c.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, uint64(i)))
			how, end := "", ""
			if i%3 == 1 {
				how, end = ".L2::cache_hint", ", %policy"
			}
			p := bulkProgram(n, fmt.Sprintf("cp.reduce.async.bulk.global.shared::cta.bulk_group%s.%s [%%in2+64], [sm], %d%s; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", how, c, n, end))
			with, old := c.elements(r, n), c.elements(r, n)
			want := c.flushing().onEach(old, with)
			p.everywhere(t, func(out [][]byte, rep *bench.Report) {
				require.Empty(t, rep.Faults)
				require.Equal(t, want, out[2][64:])
			}, with, make([]byte, n), append(make([]byte, 64), old...))
		})
	}
}

// TestBulkReductionsInCluster: those to shared memory, and red.async, which has the
// same.
func TestBulkReductionsInCluster(t *testing.T) {
	const n = 256
	for i, c := range bulkCombinations(true) {
		for _, register := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s.%t", c, register), func(t *testing.T) {
				r := rand.New(rand.NewPCG(4, uint64(i)))
				size := n
				op := fmt.Sprintf("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s [%%far], [%%a+%d], %d, [%%fbar];", c, n, n)
				if register {
					size = c.bits / 8
					op = fmt.Sprintf("ld.shared.b%d %%x, [%%a+%d]; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.%s [%%far], %%x, [%%fbar];", c.bits, n, c)
				}
				move := func(from, to string) string {
					return fmt.Sprintf("mov.u32 %%i, 0; %s: cvt.u64.u32 %%g, %%i; mad.wide.u32 %%g, %%rank, %d, %%g; add.u32 %%c, %%a, %%i; %s add.u32 %%i, %%i, 8; setp.lt.u32 %%p, %%i, %d; @%%p bra %s;\n", to, 2*n, from, 2*n, to)
				}
				p := small{
					target: "sm_90a", cluster: 2, grid: 2, block: 1, decls: fmt.Sprintf(".shared .align 128 .b8 sm[%d];", 2*n+8),
					regs: clusterRegs + fmt.Sprintf(".reg .b32 %%fbar, %%i; .reg .b64 %%w; .reg .b%d %%x; .reg .pred %%p;", c.bits),
					body: clusterStart + fmt.Sprintf("add.u32 %%fbar, %%far, %d; mbarrier.init.shared.b64 [%%a+%d], 1; fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 _, [%%a+%d], %d;\n", 2*n, 2*n, 2*n, size) +
						move("add.u64 %g, %g, %in0; ld.global.b64 %w, [%g]; st.shared.b64 [%c], %w;", "IN") + "fence.proxy.async;" + clusterSync + op +
						fmt.Sprintf("\nW: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %%p, [%%a+%d], 0; @!%%p bra W;\n", 2*n) +
						move("add.u64 %g, %g, %in1; ld.shared.b64 %w, [%c]; st.global.b64 [%g], %w;", "OUT") + clusterSync,
				}
				in := c.elements(r, 4*n) // of each block: what it has, what it sends
				want := bytes.Clone(in)
				copy(want, c.onEach(in[:size], in[3*n:3*n+size]))
				copy(want[2*n:], c.onEach(in[2*n:2*n+size], in[n:n+size]))
				p.everywhere(t, func(out [][]byte, rep *bench.Report) {
					require.Empty(t, rep.Faults)
					require.Equal(t, want, out[1])
				}, in, make([]byte, 4*n))
			})
		}
	}
}
