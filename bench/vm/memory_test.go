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
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestSpaces reaches every memory by its own addresses and by generic ones.
func TestSpaces(t *testing.T) {
	p := small{
		decls: `.const .align 8 .b32 table[2][3] = {{1, 2, 3}, {4, 5}};
.global .align 4 .f32 half = 0f3F000000;
.global .align 8 .u64 link = table;
.global .align 8 .u64 links[2] = {generic(half), 77};
.shared .align 16 .b8 sh[256];`,
		regs: ".reg .b64 %ad, %g, %l, %o; .reg .b32 %a<9>; .reg .f32 %f; .reg .b16 %h; .reg .pred %p;",
		body: `.local .align 16 .b8 loc[32];
mad.wide.u32 %o, %t, 64, %in0;
// const and global variables
mov.u64 %ad, table; ld.const.u32 %a0, [%ad+16]; ld.const.u32 %a1, [table+8]; ld.const.u32 %a2, [table+20];
st.global.v2.u32 [%o], {%a0, %a1}; st.global.u32 [%o+8], %a2;
ld.global.f32 %f, [half]; st.global.f32 [%o+12], %f;
ld.global.u64 %ad, [links]; ld.f32 %f, [%ad]; st.global.f32 [%o+16], %f;
ld.global.u64 %ad, [link]; ld.const.u32 %a0, [%ad]; st.global.u32 [%o+20], %a0;
// shared memory, its generic address, narrow accesses and sign
mov.u64 %ad, sh; mad.wide.u32 %ad, %t, 8, %ad; cvta.shared.u64 %g, %ad;
st.shared.u32 [%ad], 0x8081ff7f; ld.s8 %a0, [%g+2]; ld.u8 %a1, [%g+2]; ld.shared.s16 %a2, [%ad]; ld.u16 %h, [%g]; cvt.u32.u16 %a3, %h;
st.global.v4.u32 [%o+32], {%a0, %a1, %a2, %a3};
isspacep.shared %p, %g; selp.u32 %a0, 1, 0, %p; isspacep.global %p, %g; selp.u32 %a1, 2, 0, %p; or.b32 %a0, %a0, %a1; isspacep.local %p, %g; selp.u32 %a1, 4, 0, %p; or.b32 %a0, %a0, %a1;
// local memory is each thread's own
mov.u64 %l, loc; st.local.v4.u32 [%l], {%t, %t, 3, 4}; st.local.u32 [loc+4], 9; cvta.local.u64 %g, %l; ld.v2.u32 {%a2, %a3}, [%g];
add.u32 %a2, %a2, %a3; isspacep.local %p, %g; selp.u32 %a1, 8, 0, %p; or.b32 %a0, %a0, %a1;
cvta.to.local.u64 %l, %g; ld.local.u32 %a4, [%l+8];
st.global.v2.u32 [%o+48], {%a0, %a2}; st.global.u32 [%o+56], %a4;`,
		block: 16,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		for i := range 16 {
			got := toWords(out[0][64*i : 64*i+64])
			one := math.Float32bits(0.5)
			require.Equal(t, []uint32{5, 3, 0, one, one, 1}, got[:6])
			require.Equal(t, []uint32{0xffffff81, 0x81, 0xffffff7f, 0xff7f}, got[8:12])
			require.Equal(t, []uint32{1 | 8, uint32(i) + 9, 3}, got[12:15])
		}
		require.Positive(t, rep.Counters.Local.Requests)
		require.Positive(t, rep.Counters.Const.Requests)
	}, make([]byte, 16*64))
}

// TestAtomics applies every operation by many threads to one place, and to
// places of their own, in global and in shared memory.
func TestAtomics(t *testing.T) {
	type op struct {
		name string
		size int
		f    func(old, b uint64) uint64
	}
	s32 := func(v uint64) int32 { return int32(uint32(v)) }
	f32 := func(v uint64) float32 { return math.Float32frombits(uint32(v)) }
	for _, o := range []op{
		{"add.u32", 4, func(a, b uint64) uint64 { return a + b }},
		{"add.u64", 8, func(a, b uint64) uint64 { return a + b }},
		{"min.s32", 4, func(a, b uint64) uint64 { return uint64(uint32(min(s32(a), s32(b)))) }},
		{"max.u32", 4, func(a, b uint64) uint64 { return max(a, b) }},
		{"max.s64", 8, func(a, b uint64) uint64 { return uint64(max(int64(a), int64(b))) }},
		{"and.b32", 4, func(a, b uint64) uint64 { return a & b }},
		{"or.b64", 8, func(a, b uint64) uint64 { return a | b }},
		{"xor.b32", 4, func(a, b uint64) uint64 { return a ^ b }},
		{"exch.b32", 4, func(_, b uint64) uint64 { return b }},
		{"inc.u32", 4, func(a, b uint64) uint64 {
			if a >= b {
				return 0
			}
			return a + 1
		}},
		{"dec.u32", 4, func(a, b uint64) uint64 {
			if a == 0 || a > b {
				return b
			}
			return a - 1
		}},
		{"add.f32", 4, func(a, b uint64) uint64 { return uint64(math.Float32bits(f32(a) + f32(b))) }},
		{"add.f64", 8, func(a, b uint64) uint64 { return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b)) }},
	} {
		for _, space := range []string{"global", "shared"} {
			t.Run(space+"."+o.name, func(t *testing.T) {
				n := 8 * o.size
				where := "%in2"
				setup := ""
				threads := 64
				if space == "shared" {
					threads = 32 // warps may come in any order
					where = "%sh"
					setup = fmt.Sprintf("mov.u64 %%sh, sm; setp.eq.u32 %%p, %%t, 0; ld.global.b%d %%v, [%%in2]; @%%p st.shared.b%d [%%sh], %%v; bar.sync 0;", n, n)
				}
				p := small{
					decls: ".shared .align 8 .b8 sm[8];",
					regs:  fmt.Sprintf(".reg .b64 %%ad, %%sh; .reg .b%d %%v, %%d; .reg .pred %%p;", n),
					body: fmt.Sprintf(`%s mad.wide.u32 %%ad, %%t, %d, %%in0; ld.global.b%d %%v, [%%ad];
atom.%s.%s %%d, [%s], %%v; mad.wide.u32 %%ad, %%t, %d, %%in1; st.global.b%d [%%ad], %%d;`, setup, o.size, n, space, o.name, where, o.size, n),
					block: uint32(threads),
				}
				r := rand.New(rand.NewPCG(4, 4))
				in := make([]byte, 64*o.size)
				vals := make([]uint64, 64)
				for i := range vals {
					vals[i] = uint64(r.IntN(1000))
					switch o.name {
					case "add.f32":
						vals[i] = uint64(math.Float32bits(float32(r.NormFloat64())))
					case "add.f64":
						vals[i] = math.Float64bits(r.NormFloat64())
					}
					put(in[i*o.size:], o.size, vals[i])
				}
				start := make([]byte, 8)
				put(start, o.size, vals[3])
				out, report := p.run(t, in, make([]byte, 64*o.size), start)
				require.Empty(t, report.Faults)
				require.EqualValues(t, threads, report.Counters.Atomics)
				old := vals[3]
				for i := range threads { // lanes in order, warps in order
					require.Equal(t, old, take(out[1][i*o.size:], o.size), "thread %d", i)
					old = o.f(old, vals[i])
					if o.size == 4 {
						old &= 0xffffffff
					}
				}
				if space == "global" {
					require.Equal(t, old, take(out[2], o.size))
				}
			})
		}
	}
}

func put(b []byte, size int, v uint64) {
	if size == 4 {
		binary.LittleEndian.PutUint32(b, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(b, v)
	}
}

func take(b []byte, size int) uint64 {
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// TestCounters compares what is counted with counts by hand.
func TestCounters(t *testing.T) {
	base := small{decls: ".extern .shared .align 128 .b8 sm[];", regs: ".reg .b64 %ad; .reg .b32 %a<9>, %b; .reg .pred %p;", block: 32, dynamic: 32 * 1024}
	run := func(body string) *bench.Counters {
		t.Helper()
		p := base
		p.body = body
		checks, err := vm.ParseChecks("none")
		require.NoError(t, err)
		p.opt.Checks = checks
		_, rep := p.run(t, make([]byte, 1<<16))
		return &rep.Counters
	}
	address := func(stride int) string { return fmt.Sprintf("mad.wide.u32 %%ad, %%t, %d, %%in0;", stride) }
	shared := func(stride int) string { return fmt.Sprintf("mov.u32 %%b, sm; mad.lo.u32 %%b, %%t, %d, %%b;", stride) }
	for _, c := range []struct {
		name string
		body string
		got  func(c *bench.Counters) int64
		want int64
	}{
		{"32 words in a row: 4 sectors", address(4) + "ld.global.u32 %a0, [%ad];", func(c *bench.Counters) int64 { return c.Global.Loads.Sectors }, 4},
		{"32 words in a row, off by 16 bytes: 5 sectors", address(4) + "ld.global.u32 %a0, [%ad+16];", func(c *bench.Counters) int64 { return c.Global.Loads.Sectors }, 5},
		{"a word of each sector", address(32) + "ld.global.u32 %a0, [%ad];", func(c *bench.Counters) int64 { return c.Global.Loads.Sectors }, 32},
		{"vectors of 16 bytes", address(16) + "ld.global.v4.u32 {%a0,%a1,%a2,%a3}, [%ad];", func(c *bench.Counters) int64 { return c.Global.Loads.Sectors }, 16},
		{"all lanes one word", "ld.global.u32 %a0, [%in0];", func(c *bench.Counters) int64 { return c.Global.Loads.Sectors }, 1},
		{"bytes asked for", address(16) + "ld.global.v4.u32 {%a0,%a1,%a2,%a3}, [%ad];", func(c *bench.Counters) int64 { return c.Global.Loads.Bytes }, 512},
		{"stores by half the warp", address(4) + "setp.lt.u32 %p, %t, 16; @%p st.global.u32 [%ad], %t;", func(c *bench.Counters) int64 { return c.Global.Stores.Bytes*100 + c.Global.Stores.Sectors }, 6402},
		{"shared words in a row", shared(4) + "ld.shared.u32 %a0, [%b];", func(c *bench.Counters) int64 { return c.Shared.Loads.Wavefronts }, 1},
		{"two banks apart: 2 ways", shared(8) + "ld.shared.u32 %a0, [%b];", func(c *bench.Counters) int64 { return c.Shared.Loads.Wavefronts }, 2},
		{"one bank: 32 ways", shared(128) + "ld.shared.u32 %a0, [%b];", func(c *bench.Counters) int64 { return c.Shared.Loads.Wavefronts }, 32},
		{"padded column", shared(132) + "ld.shared.u32 %a0, [%b];", func(c *bench.Counters) int64 { return c.Shared.Loads.Wavefronts }, 1},
		{"broadcast", "ld.shared.u32 %a0, [sm];", func(c *bench.Counters) int64 { return c.Shared.Loads.Wavefronts }, 1},
		{"shared vectors of 16 bytes: a wavefront for each quarter", shared(16) + "ld.shared.v4.u32 {%a0,%a1,%a2,%a3}, [%b];", func(c *bench.Counters) int64 { return c.Shared.Loads.Wavefronts }, 4},
		{"shared vectors of 8 bytes", shared(8) + "st.shared.v2.u32 [%b], {%t,%t};", func(c *bench.Counters) int64 { return c.Shared.Stores.Wavefronts*10 + c.Shared.Stores.Ideal }, 22},
		{"rows of a matrix one below the other: 8 ways", shared(128) + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a0}, [%b];", func(c *bench.Counters) int64 { return c.Shared.Matrix.Wavefronts*10 + c.Shared.Matrix.Ideal }, 81},
		{"rows of a matrix side by side", shared(16) + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0,%a1,%a2,%a3}, [%b];", func(c *bench.Counters) int64 { return c.Shared.Matrix.Wavefronts*10 + c.Shared.Matrix.Ideal }, 44},
		{"shared atomics on one word go one by one", "red.shared.add.u32 [sm], 1;", func(c *bench.Counters) int64 { return c.Shared.Atomics.Wavefronts }, 32},
		{"barriers of a warp", "bar.sync 0; bar.sync 0; bar.sync 1;", func(c *bench.Counters) int64 { return c.Barriers }, 3},
		{"a branch that parts the warp", "setp.lt.u32 %p, %t, 5; @%p bra L; mov.u32 %a0, 1; L:", func(c *bench.Counters) int64 { return c.Branches*10 + c.Divergent }, 11},
		{
			"active lanes", "setp.lt.u32 %p, %t, 5; @%p bra L; mov.u32 %a0, 1; mov.u32 %a1, 1; L:",
			func(c *bench.Counters) int64 { return c.ActiveLanes - 32*5 }, 2 * 27,
		}, // the program's own: mov, ld.param, setp, bra, ret
		{"fences", "fence.acq_rel.gpu; membar.cta;", func(c *bench.Counters) int64 { return c.Fences }, 2},
	} {
		require.Equal(t, c.want, c.got(run(c.body)), c.name)
	}
}

// TestBulkLoadOfUnwritten: what a bulk copy brings of bytes that were never
// written is as undefined as what a load reads there.
func TestBulkLoadOfUnwritten(t *testing.T) {
	for _, opt := range timings {
		for _, at := range []int{0, 64} { // the first 64 bytes were written
			dev, err := vm.New(opt)
			require.NoError(t, err)
			p := small{
				target: "sm_90", decls: sharedDecl, regs: ".reg .b32 %a, %b; .reg .pred %p;",
				body: fmt.Sprintf(`mov.u32 %%a, sm; mbarrier.init.shared.b64 [%%a+128], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%%a+128], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%a], [%%in0], 128, [%%a+128];
W: mbarrier.try_wait.parity.shared.b64 %%p, [%%a+128], 0; @!%%p bra W; ld.shared.u32 %%b, [%%a+%d]; st.global.u32 [%%in1], %%b;`, at),
			}
			m, err := dev.Load(t.Context(), "small.ptx", []byte(p.text(2)))
			require.NoError(t, err)
			in, err := dev.Alloc(128, 256)
			require.NoError(t, err)
			require.NoError(t, dev.Write(in, 0, make([]byte, 64)))
			out, err := dev.Alloc(4, 256)
			require.NoError(t, err)
			report, err := dev.Launch(t.Context(), m, "k", bench.Launch{Block: [3]uint32{1}, SharedBytes: 256, Args: []bench.Arg{bench.Pointer(in), bench.Pointer(out)}})
			require.NoError(t, err)
			if at == 0 {
				require.Empty(t, report.Faults)
				continue
			}
			require.Len(t, report.Faults, 1)
			require.Equal(t, bench.UninitialisedGlobalRead, report.Faults[0].Class)
		}
	}
}

// TestCopyIssuedInFunction: a copy that a function issued lands while its caller
// runs, which has fewer instructions than stand before the copy.
func TestCopyIssuedInFunction(t *testing.T) {
	var nothing strings.Builder
	for range 60 {
		nothing.WriteString("add.u32 %x, %x, 1;\n")
	}
	p := small{
		target: "sm_90", dynamic: 256, regs: ".reg .b32 %a, %b; .reg .pred %p;",
		decls: sharedDecl + `
.func f(.param .b64 from) { .reg .b32 %a, %x; .reg .b64 %g; ld.param.b64 %g, [from]; mov.u32 %a, sm; mov.u32 %x, 0;
` + nothing.String() + `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%g], 128, [%a+128]; ret; }`,
		body: `mov.u32 %a, sm; mbarrier.init.shared.b64 [%a+128], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%a+128], 128;
{ .param .b64 from; st.param.b64 [from], %in0; call.uni f, (from); }
W: mbarrier.try_wait.parity.shared.b64 %p, [%a+128], 0; @!%p bra W; ld.shared.u32 %b, [%a+8]; st.global.u32 [%in1], %b;`,
	}
	in := make([]byte, 128)
	in[8] = 77
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		require.Equal(t, []uint32{77}, toWords(out[1]))
	}, in, make([]byte, 4))
	plain := p
	plain.decls = replace(p.decls, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%g], 128, [%a+128];", "cp.async.ca.shared.global [%a+8], [%g+8], 8;")
	plain.body = replace(replace(p.body, "W: mbarrier", "cp.async.wait_all; bra R; W: mbarrier"), "ld.shared", "R: ld.shared")
	plain.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		require.Equal(t, []uint32{77}, toWords(out[1]))
	}, in, make([]byte, 4))
	p.body = replace(p.body, "ld.shared.u32 %b", "mbarrier.inval.shared.b64 [%a+128]; ld.shared.u32 %b")
	p.body = replace(p.body, "W: mbarrier.try_wait.parity.shared.b64 %p, [%a+128], 0; @!%p bra W;", "") // gone when the copy lands
	p.opt = vm.Options{}
	_, rep := p.run(t, in, make([]byte, 4))
	require.NotEmpty(t, rep.Faults)
}

// TestExtentsByValues: an array whose first extent is left out is as large as its
// values say, of vectors too.
func TestExtentsByValues(t *testing.T) {
	p := small{
		decls: ".global .b32 a[] = {3, 4, 5}; .const .b16 b[][2] = {{1, 2}, {3}}; .global .v2 .b32 c[] = {{6, 7}, {8, 9}}; .global .b32 after = 10;",
		regs:  ".reg .b32 %v; .reg .b16 %h;",
		body: `ld.global.b32 %v, [a+8]; st.global.b32 [%in0], %v; ld.const.u16 %h, [b+4]; cvt.u32.u16 %v, %h; st.global.b32 [%in0+4], %v;
ld.const.u16 %h, [b+6]; cvt.u32.u16 %v, %h; st.global.b32 [%in0+8], %v; ld.global.b32 %v, [c+12]; st.global.b32 [%in0+12], %v;
ld.global.b32 %v, [after]; st.global.b32 [%in0+16], %v;`,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		require.Equal(t, []uint32{5, 3, 0, 9, 10}, toWords(out[0]))
	}, make([]byte, 20))
}
