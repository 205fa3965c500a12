package vm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

const (
	// waitOwn waits for the mbarrier that a body has at sm+1024.
	waitOwn = "W: mbarrier.try_wait.parity.shared.b64 %p, [sm+1024], 0; @!%p bra W;"

	// boxRegs and boxStart are what a copy of a box by thread 0 takes: its map in %m.
	boxRegs  = ".reg .b64 %m; .reg .b32 %a, %c;"
	boxStart = "mov.b64 %m, map; cvta.param.u64 %m, %m; "
	boxEnd   = " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"

	// rowsOfWords writes sixteen bytes a lane, and makes them seen by the copy engine.
	rowsOfWords = "mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a; st.shared.v4.u32 [%a], {%t,%t,%t,%t}; fence.proxy.async; bar.warp.sync -1; "
)

// loadBox loads a box of so many bytes at (x, y).
func loadBox(bytes, x, y string) string {
	return boxStart + "mbarrier.init.shared.b64 [sm+1024], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [sm+1024], " + bytes + `;
mov.u32 %a, ` + x + "; mov.u32 %c, " + y + `;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [sm], [%m, {%a, %c}], [sm+1024]; ` + waitOwn
}

// storeBox stores the box at (8, 2) or adds it to what is there.
func storeBox(op, kind string) string {
	return rowsOfWords + boxStart + "mov.u32 %a, 8; mov.u32 %c, 2; @%q " + op + ".async.bulk.tensor.2d.global.shared::cta" + kind + ".tile.bulk_group [%m, {%a, %c}], [sm];" + boxEnd
}

// bytesProduct is a product of a warpgroup of 64 rows by 16 columns of bytes: A is
// 2048 bytes of shared memory, B the 512 after it.
func bytesProduct() small {
	return small{
		target: "sm_90a", decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: 2048 + 512, block: 128,
		regs: ".reg .b32 %a, %b; .reg .b64 %da, %db; .reg .f32 %c<8>;",
		body: `mov.u32 %a, sm; mad.lo.u32 %b, %t, 16, %a; mov.b32 %x, 0; st.shared.v4.u32 [%b], {%x,%x,%x,%x}; setp.lt.u32 %p, %t, 32; @%p st.shared.v4.u32 [%b+2048], {%x,%x,%x,%x};
fence.proxy.async; bar.sync 0; shr.u32 %a, %a, 4; cvt.u64.u32 %da, %a; add.u64 %db, %da, 128; or.b64 %da, %da, 0x800400000; or.b64 %db, %db, 0x800100000;
wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, %da, %db, 0, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;`,
	}
}

// running is the program of a misdeed with another body.
func (m misdeed) running(body string) small {
	m.p.body = body
	return m.p
}

// asyncCounts are small kernels of the tensor cores and the copy engine, counted by hand.
var asyncCounts = []handCount{
	// Two warps. By all: mov of the thread's number, two loads of parameters, setp x3 and
	// not of the predicates that every body here begins with, and ret.
	{name: "instructions by pipe", p: small{block: 64, regs: ".reg .b32 %y; .reg .f32 %f; .reg .f64 %d; .reg .b16 %h;", body: `add.u32 %x, %t, 1; mul.lo.u32 %y, %x, %x; cvt.rn.f32.u32 %f, %y; fma.rn.f32 %f, %f, %f, %f; ex2.approx.f32 %f, %f;
cvt.f64.f32 %d, %f; add.f64 %d, %d, %d; mul.f64 %d, %d, %d; popc.b32 %x, %x; shfl.sync.bfly.b32 %x, %x, 1, 31, -1; bar.sync 0; @%q add.u32 %x, %x, 1;`}, want: map[string]float64{
		"alu pipe": 2 * (1 + 4 + 2), "fma pipe": 2 * 2, "fp64 pipe": 2 * 2, "mufu pipe": 2 * 2, "convert pipe": 2 * 2, "tensor pipe": 0, "async pipe": 0,
		"control pipe": 2 * 2, "fp64 threads": 2 * 64, "mufu threads": 2 * 64, "barriers": 2,
	}},
	{name: "divergence within divergence", p: small{block: 32, body: "setp.lt.u32 %p, %t, 16; @!%p bra L; setp.lt.u32 %p, %t, 8; @!%p bra L; mov.u32 %x, 1; L: mov.u32 %x, 2;"}, want: map[string]float64{
		// 8 at the start, setp, bra, the last mov and ret by 32 lanes; setp and bra by 16, mov by 8.
		"branches": 2, "divergent": 2, "efficiency": (11*32 + 2*16 + 8) / (14 * 32.0),
	}},
	{name: "products of a warp, dense and sparse", p: small{block: 64, regs: ".reg .b32 %v<4>, %z; .reg .f32 %c<4>;", body: `mov.f32 %c0, 0f00000000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0; mov.b32 %v0, 0; mov.b32 %v1, 0; mov.b32 %v2, 0; mov.b32 %v3, 0; mov.b32 %z, 0x44444444;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0,%c1,%c2,%c3}, {%v0,%v1,%v2,%v3}, {%v0,%v1}, {%c0,%c1,%c2,%c3};
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0,%c1,%c2,%c3}, {%v0,%v1,%v2,%v3}, {%v0,%v1}, {%c0,%c1,%c2,%c3};
mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%c0,%c1,%c2,%c3}, {%v0,%v1,%v2,%v3}, {%v0,%v1,%v2,%v3}, {%c0,%c1,%c2,%c3}, %z, 0;`}, want: map[string]float64{
		"tensor pipe": 2 * 3, "tensor threads": 64 * 3,
		"mma m16n8k16 f16 f16 f32": 2 * 2, "mma m16n8k16 f16 f16 f32 operations": 2 * 2 * (2 * 16 * 8 * 16),
		"mma m16n8k32 f16 f16 f32 sparse": 2, "mma m16n8k32 f16 f16 f32 sparse operations": 2 * (2 * 16 * 8 * 32),
	}},
	// Each warp reads 16 of A's 64 rows of 32 bytes, and is charged a quarter of B's 256: 576 bytes.
	{name: "a product of a warpgroup", p: wgmmaMisdeed("", "", "/*flight*/", "").running(oneProduct), want: map[string]float64{
		"wgmma m64n8k16 f16 f16 f32": 1, "wgmma m64n8k16 f16 f16 f32 operations": 2 * 64 * 8 * 16, "tensor pipe": 4, "tensor threads": 128,
		"operand requests": 4, "operand bytes": 64*32 + 8*32, "operand wavefronts": 4 * 5, "operand ideal": 4 * 5,
		"shared stores": 4*4 + 2, "conflicts": 0, "barriers": 4, "fences": 4 + 4, "store requests": 4, "store sectors": 16, "unique written": 512,
	}},
	{name: "two products with A in registers", p: registerMisdeed("", "", nil).running(replace(registerProduct, "/*wait*/", "wgmma.wait_group.sync.aligned 0;")), want: map[string]float64{
		"wgmma m64n8k16 f16 f16 f32": 2, "wgmma m64n8k16 f16 f16 f32 operations": 2 * 2 * 64 * 8 * 16, "tensor pipe": 8,
		"operand requests": 8, "operand bytes": 2 * 8 * 32, "operand wavefronts": 8, // 64 bytes a warp
		"fences": 4 + 2*4,
	}},
	{name: "a product of bytes", p: bytesProduct(), want: map[string]float64{
		"wgmma m64n16k32 e4m3 e5m2 f32": 1, "wgmma m64n16k32 e4m3 e5m2 f32 operations": 2 * 64 * 16 * 32,
		"operand bytes": 64*32 + 16*32, "operand wavefronts": 4 * 5, // 512 and 128 bytes a warp
		"shared stores": 4*4 + 4,
	}},
	// 32 columns and 16 of k: 128 rows of A and 32 of B have 32 bytes each. 8192 bytes come to shared
	// memory by 4 warps a word a lane; lanes of tensor memory are 256 bytes apart in global memory.
	{name: "a product of tensor memory", p: tensorSample().small(), raw: true, buffers: tensorSample().buffers(), want: map[string]float64{
		"tcgen05 m128n32k16 f16 f16 f32": 1, "tcgen05 m128n32k16 f16 f16 f32 operations": 2 * 128 * 32 * 16,
		"operand requests": 2, "operand bytes": 128*32 + 32*32, "operand wavefronts": 32 + 8, "operand ideal": 40,
		"load requests": 64 + 4*64, "load sectors": 64*4 + 4*64*32, "store requests": 4 * 64, "store sectors": 4 * 64 * 32,
		"unique read": 8192 + 128*64*4, "unique written": 128 * 64 * 4, "barriers": 3 * 4,
	}},
	// Rows of 128 bytes; sixteen words from column 8 on of rows 2 and 3: two sectors each.
	{name: "a box of a tensor", p: small{target: "sm_90", decls: sharedDecl, dynamic: 1040, block: 1, regs: boxRegs, body: loadBox("128", "8", "2"),
		tensor: &bench.TensorMap{Type: ptx.F32, Dims: []uint64{32, 4}, Strides: []uint64{128}, Box: []uint32{16, 2}}}, want: map[string]float64{
		"copy requests": 2, "copy bytes": 128, "copy sectors": 4, "unique read": 128, "L2 reads": 4, "memory reads": 4, "bulk loads": 128, "bulk stores": 0,
		"operand requests": 1, "operand wavefronts": 1, "async pipe": 1,
	}},
	// Rows of 48 bytes, columns 6 to 11 of rows 0 to 2: bytes 24 to 47 (two sectors), 72 to 95 (one), 120 to 143 (two).
	// What lies outside is zeros in shared memory.
	{name: "a box over a tensor's edges", p: small{target: "sm_90", decls: sharedDecl, dynamic: 1040, block: 1, regs: boxRegs, body: loadBox("128", "6", "-1"),
		tensor: &bench.TensorMap{Type: ptx.F32, Dims: []uint64{12, 5}, Strides: []uint64{48}, Box: []uint32{8, 4}}}, want: map[string]float64{
		"copy requests": 3, "copy bytes": 72, "copy sectors": 5, "unique read": 72, "bulk loads": 128, "operand bytes": 128,
	}},
	{name: "a box stored", p: small{target: "sm_90", decls: sharedDecl, dynamic: 512, block: 32, regs: boxRegs, body: storeBox("cp", ""),
		tensor: &bench.TensorMap{Type: ptx.F32, Dims: []uint64{32, 4}, Strides: []uint64{128}, Box: []uint32{16, 2}}}, want: map[string]float64{
		"write requests": 2, "write bytes": 128, "write sectors": 4, "unique written": 128, "unique read": 0, "bulk stores": 128, "bulk loads": 0,
		"L2 writes": 4, "memory writes": 4, "memory reads": 0, "store requests": 0, "shared stores": 4, "operand bytes": 128, "fences": 1,
	}},
	{name: "a box added", p: small{target: "sm_90", decls: sharedDecl, dynamic: 512, block: 32, regs: boxRegs, body: storeBox("cp.reduce", ".add"),
		tensor: &bench.TensorMap{Type: ptx.U32, Dims: []uint64{32, 4}, Strides: []uint64{128}, Box: []uint32{16, 2}}}, want: map[string]float64{
		"write requests": 2, "write bytes": 128, "write sectors": 4, "unique written": 128, "unique read": 128, "bulk reduces": 128, "bulk stores": 0, "L2 reads": 4, "L2 writes": 4, "L2 hits": 0, "memory reads": 4, "memory writes": 4, // one look-up for both
	}},
	{name: "a bulk store", p: small{target: "sm_90", decls: sharedDecl, dynamic: 512, block: 32, regs: boxRegs, body: rowsOfWords + "@%q cp.async.bulk.global.shared::cta.bulk_group [%in0+16], [sm], 496;" + boxEnd}, want: map[string]float64{
		// 496 bytes from 16 on: all but half of the first of sixteen sectors, and four wavefronts.
		"write requests": 1, "write bytes": 496, "write sectors": 16, "unique written": 496, "bulk stores": 496, "operand wavefronts": 4,
	}},
	// One of two blocks asks for 128 bytes: read once, and written to the shared memory of both.
	{name: "a multicast", p: small{target: "sm_90", decls: sharedDecl, dynamic: 512, grid: 2, cluster: 2, block: 1, regs: clusterRegs + ".reg .b32 %fbar; .reg .pred %s;", body: told("128", multicast+waitTold+clusterSync)}, want: map[string]float64{
		"copy requests": 1, "copy bytes": 128, "copy sectors": 4, "unique read": 128, "L2 reads": 4, "bulk loads": 2 * 128, "operand requests": 2, "operand wavefronts": 2,
	}},
	{name: "each of two blocks copies to the other", p: small{target: "sm_90", decls: sharedDecl, dynamic: 512, grid: 2, cluster: 2, block: 1, regs: clusterRegs + ".reg .b32 %fbar; .reg .pred %s;", body: told("128", fillOwn+proxyFence+copyOver+waitTold+clusterSync)}, want: map[string]float64{
		"copy requests": 0, "unique read": 0, "L2 reads": 0, "bulk loads": 2 * 128,
	}},
	{name: "an mbarrier", p: small{target: "sm_90", decls: sharedDecl, dynamic: 64, block: 64, body: "@%q mbarrier.init.shared.b64 [sm], 64; bar.sync 0; mbarrier.arrive.shared.b64 _, [sm]; bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p, [sm], 0;"}, want: map[string]float64{
		"mbarriers": 1 + 64 + 64, "barriers": 4, "shared loads": 0, "shared stores": 0,
	}},
	{name: "cp.async to rows 128 bytes apart", p: small{decls: sharedDecl, dynamic: 4096, regs: ".reg .b32 %a;", block: 32, body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 128, %a; mad.wide.u32 %ad, %t, 16, %in0; cp.async.cg.shared.global [%a], [%ad], 16; cp.async.wait_all;"}, want: map[string]float64{
		"copy requests": 1, "copy sectors": 16, "shared copies": 32, "shared ideal": 4, "conflicts": 28, // each of four phases has eight lanes at the same banks
	}},
	{name: "a word written twice", p: small{block: 32, body: own + "st.global.u32 [%ad], %t; st.global.u32 [%ad], %t;"}, want: map[string]float64{
		"store requests": 2, "store sectors": 8, "L2 writes": 8, "L2 hits": 4, "memory writes": 4, "memory reads": 0, "unique written": 128,
	}},
	{name: "atomics that return, of sixteen words", p: small{block: 32, body: "and.b32 %x, %t, 15; mad.wide.u32 %ad, %x, 4, %in0; atom.global.add.u32 %x, [%ad], 1;"}, want: map[string]float64{
		"atomics": 32, "atomic requests": 1, "atomic bytes": 128, "atomic sectors": 2, "L2 reads": 2, "L2 writes": 2, "memory reads": 2, "memory writes": 2, "unique read": 64, "unique written": 64,
	}},
}

// TestHandCountsByLine: what lines do, by hand, where the PTX says which and where not.
func TestHandCountsByLine(t *testing.T) {
	p := wgmmaMisdeed("", "", "/*flight*/", "").running(oneProduct)
	p.decls = `.file 1 "k.cu"` + "\n" + p.decls
	p.body = replace(p.body, "st.shared.v4.u32 [%b], {%x,%x,%x,%x}", "\n.loc 1 10 0\nst.shared.v4.u32 [%b], {%x,%x,%x,%x}")
	p.body = replace(p.body, "setp.lt.u32 %p, %t, 16", "\n.loc 1 11 0\nsetp.lt.u32 %p, %t, 16")
	p.body = replace(p.body, "fence.proxy.async;", "\n.loc 1 12 0\nfence.proxy.async;")
	p.body = replace(p.body, "wgmma.mma_async", "\n.loc 1 13 0\nwgmma.mma_async")
	p.body = replace(p.body, "st.global.f32", "\n.loc 1 14 0\nst.global.f32")
	p.lines = true
	for _, opt := range []vm.Options{{}, {Checks: vm.NoChecks(), Workers: 1}} {
		m := misdeed{p: p}.prepare(false)
		m.opt = opt
		_, r := m.run(t, make([]byte, 512), make([]byte, 512))
		require.Empty(t, r.Faults)
		lines := map[string]bench.LineCount{}
		for _, l := range r.Lines {
			l.Line = 0
			lines[l.Source] = l
		}
		for source, want := range map[string]bench.LineCount{
			"k.cu:10": {Instructions: bench.Issue{Warp: 4, Thread: 128}, Shared: bench.SharedCount{Requests: 4, Bytes: 2048, Wavefronts: 16, Ideal: 16}},
			// setp, and the store of half a warp: all issue what a guard keeps from acting.
			"k.cu:11": {Instructions: bench.Issue{Warp: 8, Thread: 256}, Shared: bench.SharedCount{Requests: 1, Bytes: 256, Wavefronts: 2, Ideal: 2}},
			"k.cu:14": {Instructions: bench.Issue{Warp: 8, Thread: 256}, Global: bench.AccessCount{Requests: 4, Bytes: 512, Sectors: 16}}, // and ret
			// mma_async, commit, wait, mad.
			"k.cu:13": {Instructions: bench.Issue{Warp: 16, Thread: 512}, Shared: bench.SharedCount{Requests: 4, Bytes: 2304, Wavefronts: 20, Ideal: 20}},
			// fence, bar, shr, cvt, add, or, or, four mov, wgmma.fence.
			"k.cu:12": {Instructions: bench.Issue{Warp: 48, Thread: 1536}},
		} {
			want.Source = source
			require.Equal(t, want, lines[source])
		}
	}

	bare := misdeed{p: small{block: 32, lines: true, body: "\nmad.wide.u32 %ad, %t, 16, %in0;\nld.global.u32 %x, [%ad];\nadd.u32 %x, %x, 1; add.u32 %x, %x, 1;"}}.prepare(false)
	_, r := bare.run(t, make([]byte, 512))
	text := strings.Split(bare.text(1), "\n")
	got := map[string]bench.LineCount{}
	for _, l := range r.Lines {
		got[text[l.Line-1]] = l
	}
	require.Equal(t, bench.AccessCount{Requests: 1, Bytes: 128, Sectors: 16}, got["ld.global.u32 %x, [%ad];"].Global)
	require.Equal(t, bench.Issue{Warp: 2, Thread: 64}, got["add.u32 %x, %x, 1; add.u32 %x, %x, 1;"].Instructions)
}
