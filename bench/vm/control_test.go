package vm_test

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// everywhere runs a program under several schedules: all must agree.
func (s small) everywhere(t *testing.T, check func(out [][]byte, r *bench.Report), buffers ...[]byte) {
	t.Helper()
	for _, opt := range timings {
		opt.MaxSteps = 1 << 22
		s.opt = opt
		out, report := s.run(t, buffers...)
		check(out, report)
	}
}

// TestDivergence: lanes leave nested loops at different times and meet again.
func TestDivergence(t *testing.T) {
	p := small{
		regs: ".reg .b64 %ad; .reg .b32 %n, %i, %j, %s, %m; .reg .pred %p;",
		body: `mad.wide.u32 %ad, %t, 4, %in0; ld.global.u32 %n, [%ad];
mov.u32 %s, 0; mov.u32 %i, 0;
OUTER:
 setp.ge.u32 %p, %i, %n; @%p bra DONE;
 mov.u32 %j, 0;
INNER:
 and.b32 %m, %j, 1; setp.eq.u32 %p, %m, 0; @%p bra EVEN;
 add.u32 %s, %s, %j; bra NEXT;
EVEN:
 mad.lo.u32 %s, %i, 3, %s;
 rem.u32 %m, %s, 7; setp.eq.u32 %p, %m, 3; @%p bra NEXTOUTER;
NEXT:
 add.u32 %j, %j, 1; setp.lt.u32 %p, %j, %i; @%p bra INNER;
NEXTOUTER:
 add.u32 %i, %i, 1; bra OUTER;
DONE:
 vote.sync.ballot.b32 %m, 1, -1; add.u32 %s, %s, %m;
 mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %s;`,
		block: 64,
	}
	in := make([]uint32, 64)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range in {
		in[i] = uint32(r.IntN(20))
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		for i, got := range toWords(out[1]) {
			var s uint32
			for a := range in[i] {
				for b := uint32(0); ; {
					if b&1 == 0 {
						s += 3 * a
						if s%7 == 3 {
							break
						}
					} else {
						s += b
					}
					if b++; b >= a {
						break
					}
				}
			}
			require.Equal(t, s-1, got, "thread %d", i) // the ballot is all ones
		}
		require.Positive(t, rep.Counters.Divergent)
	}, words(in...), make([]byte, 256))
}

func TestBranchIndexed(t *testing.T) {
	p := small{
		regs: ".reg .b64 %ad; .reg .b32 %i, %s;",
		body: `and.b32 %i, %t, 3;
T: .branchtargets A, B, C, D;
brx.idx %i, T;
A: mov.u32 %s, 10; bra E;
B: mov.u32 %s, 20; bra E;
C: mov.u32 %s, 30; bra E;
D: mov.u32 %s, 40;
E: mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %s;`,
		block: 32,
	}
	p.everywhere(t, func(out [][]byte, _ *bench.Report) {
		for i, got := range toWords(out[0]) {
			require.EqualValues(t, 10*(i%4+1), got)
		}
	}, make([]byte, 128))
}

// TestCalls: arguments and results, recursion, divergent returns, calls through
// a table of addresses.
func TestCalls(t *testing.T) {
	p := small{
		decls: `
.func (.param .b32 r) fib (.param .b32 n) {
 .reg .b32 %a, %b, %n; .reg .pred %p;
 ld.param.b32 %n, [n];
 setp.gt.u32 %p, %n, 1; @%p bra MORE;
 st.param.b32 [r], %n; ret;
MORE:
 sub.u32 %a, %n, 1;
 { .param .b32 x; .param .b32 y; st.param.b32 [x], %a; call (y), fib, (x); ld.param.b32 %a, [y]; }
 sub.u32 %b, %n, 2;
 { .param .b32 x; .param .b32 y; st.param.b32 [x], %b; call (y), fib, (x); ld.param.b32 %b, [y]; }
 add.u32 %a, %a, %b; st.param.b32 [r], %a; ret;
}
.func (.param .b32 r) twice (.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; add.u32 %a, %a, %a; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) square (.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; mul.lo.u32 %a, %a, %a; st.param.b32 [r], %a; ret; }`,
		regs: ".reg .b64 %ad, %f, %g; .reg .b32 %n, %s, %m; .reg .pred %p;",
		body: `rem.u32 %n, %t, 11;
{ .param .b32 x; .param .b32 y; st.param.b32 [x], %n; call (y), fib, (x); ld.param.b32 %s, [y]; }
mov.u64 %f, twice; mov.u64 %g, square;
and.b32 %m, %t, 1; setp.eq.u32 %p, %m, 0; selp.b64 %f, %f, %g, %p;
P: .callprototype (.param .b32 _) _ (.param .b32 _);
{ .param .b32 x; .param .b32 y; st.param.b32 [x], %t; call (y), %f, (x), P; ld.param.b32 %m, [y]; }
mad.wide.u32 %ad, %t, 8, %in0; st.global.v2.u32 [%ad], {%s, %m};`,
		block: 48,
	}
	fib := func(n int) uint32 {
		a, b := uint32(0), uint32(1)
		for range n {
			a, b = b, a+b
		}
		return a
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got := toWords(out[0])
		for i := range 48 {
			require.Equal(t, fib(i%11), got[2*i], "thread %d", i)
			want := uint32(2 * i)
			if i%2 == 1 {
				want = uint32(i * i)
			}
			require.Equal(t, want, got[2*i+1], "thread %d", i)
		}
	}, make([]byte, 48*8))
}

// TestStackOverflow ends endless recursion.
func TestStackOverflow(t *testing.T) {
	p := small{
		decls: `.func f () { .local .b32 x[64]; call f, (); ret; }`,
		body:  `call f, ();`,
		block: 32,
	}
	_, report := p.run(t)
	require.NotEmpty(t, report.Faults)
	require.Equal(t, bench.LocalOutOfBounds, report.Faults[0].Class)
}

// TestSpinLock: every lane of every warp and block takes one lock, in the way
// that hangs machines whose lanes can't go their own ways.
func TestSpinLock(t *testing.T) {
	p := small{
		regs: ".reg .b64 %ad; .reg .b32 %x, %v; .reg .pred %p;",
		body: `
LOCK: atom.acquire.gpu.global.cas.b32 %x, [%in0], 0, 1;
 setp.ne.u32 %p, %x, 0; @%p bra LOCK;
 ld.global.u32 %v, [%in0+4]; add.u32 %v, %v, 1; st.global.u32 [%in0+4], %v;
 atom.release.gpu.global.exch.b32 %x, [%in0], 0;`,
		grid: 3, block: 40,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		require.Equal(t, []uint32{0, 120}, toWords(out[0]))
	}, make([]byte, 8))
}

// TestFlagsBetweenBlocks: each block waits for the one after it, so that they
// must run at the same time.
func TestFlagsBetweenBlocks(t *testing.T) {
	p := small{
		regs: ".reg .b64 %ad, %nx; .reg .b32 %b, %n, %x, %v; .reg .pred %p, %q;",
		body: `mov.u32 %b, %ctaid.x; mov.u32 %n, %nctaid.x; sub.u32 %n, %n, 1;
mad.wide.u32 %ad, %b, 8, %in0; setp.eq.u32 %q, %b, %n; mov.u32 %v, 0;
@%q bra GO;
WAIT: ld.acquire.gpu.global.u32 %x, [%ad+8]; setp.eq.u32 %p, %x, 0; @%p bra WAIT;
 ld.global.u32 %v, [%ad+12];
GO: add.u32 %v, %v, %b;
 bar.sync 0;
 setp.ne.u32 %p, %t, 0; @%p bra END;
 st.global.u32 [%ad+4], %v; st.release.gpu.global.u32 [%ad], 1;
END:`,
		grid: 20, block: 64,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got := toWords(out[0])
		sum := uint32(0)
		for b := 19; b >= 0; b-- {
			sum += uint32(b)
			require.Equal(t, []uint32{1, sum}, got[2*b:2*b+2])
		}
	}, make([]byte, 160))
}

// TestRelaxedFlag: a flag without order does not order.
func TestRelaxedFlag(t *testing.T) {
	for _, fences := range []bool{true, false} {
		fence := ""
		if fences {
			fence = "fence.acq_rel.gpu;"
		}
		p := small{
			regs: ".reg .b64 %ad; .reg .b32 %b, %x, %v; .reg .pred %p;",
			body: `mov.u32 %b, %ctaid.x; setp.eq.u32 %p, %b, 1; @%p bra READ;
 st.global.u32 [%in0+4], 7; ` + fence + ` st.relaxed.gpu.global.u32 [%in0], 1; bra END;
READ: ld.relaxed.gpu.global.u32 %x, [%in0]; setp.eq.u32 %p, %x, 0; @%p bra READ;
 ` + fence + ` ld.global.u32 %v, [%in0+4]; st.global.u32 [%in0+8], %v;
END:`,
			grid: 2, block: 1,
		}
		p.everywhere(t, func(out [][]byte, rep *bench.Report) {
			if fences {
				require.Empty(t, rep.Faults)
				require.EqualValues(t, 7, toWords(out[0])[2])
				return
			}
			require.Len(t, rep.Faults, 1)
			require.Equal(t, bench.GlobalRace, rep.Faults[0].Class)
			require.NotNil(t, rep.Faults[0].Other)
		}, make([]byte, 12))
	}
}

// TestScopesOfFlags: between blocks both sides must reach as far as the other.
func TestScopesOfFlags(t *testing.T) {
	for _, set := range []string{"st.release.CTA.global.u32", "membar.CTA; st.relaxed.gpu.global.u32", "fence.acq_rel.CTA; red.relaxed.gpu.global.or.b32"} {
		for _, get := range []string{"ld.acquire.CTA.global.u32 %x, [%in0];", "ld.relaxed.gpu.global.u32 %x, [%in0]; fence.acq_rel.CTA;", "ld.volatile.global.u32 %x, [%in0]; membar.CTA;"} {
			for i, scopes := range [][2]string{{"gpu", "gpu"}, {"gpu", "cta"}, {"cta", "gpu"}, {"cta", "cta"}} {
				set, get := strings.ReplaceAll(set, "CTA", scopes[0]), strings.ReplaceAll(get, "CTA", scopes[1])
				set, get = strings.ReplaceAll(set, "membar.gpu", "membar.gl"), strings.ReplaceAll(get, "membar.gpu", "membar.gl")
				for _, blocks := range []uint32{1, 2} { // a flag within a block, and between blocks
					p := small{
						target: "sm_70",
						regs:   ".reg .b32 %w, %x, %v; .reg .pred %p;",
						body: `mov.u32 %w, %ctaid.x; shr.u32 %v, %t, 5; add.u32 %w, %w, %v; setp.eq.u32 %p, %w, 1; @%p bra READ;
 st.global.u32 [%in0+4], 7; ` + set + ` [%in0], 1; bra END;
READ: ` + get + ` setp.eq.u32 %p, %x, 0; @%p bra READ;
 ld.global.u32 %v, [%in0+4]; st.global.u32 [%in0+8], %v;
END:`,
						grid: blocks, block: 64 / blocks,
					}
					p.body = "setp.eq.u32 %p, %t, 0; @%p bra GO; setp.ne.u32 %p, %t, 32; @%p bra END; GO: " + p.body
					p.everywhere(t, func(out [][]byte, rep *bench.Report) {
						if blocks == 1 || i == 0 {
							require.Empty(t, rep.Faults, "%s against %s", set, get)
							require.EqualValues(t, 7, toWords(out[0])[2])
							return
						}
						require.NotEmpty(t, rep.Faults, "%s against %s", set, get)
						for _, f := range rep.Faults {
							require.Equal(t, bench.GlobalRace, f.Class)
						}
					}, make([]byte, 12))
				}
			}
		}
	}
}

// TestNamedBarriers: producers arrive and go on, consumers wait.
func TestNamedBarriers(t *testing.T) {
	p := small{
		regs:  ".reg .b64 %ad; .reg .b32 %x, %y, %i; .reg .pred %p;",
		decls: ".shared .align 4 .b8 sm[256];",
		body: `mov.u32 %x, sm; and.b32 %i, %t, 63; mad.lo.u32 %x, %i, 4, %x;
setp.ge.u32 %p, %t, 64; @%p bra CONSUMER;
 mul.lo.u32 %y, %t, 5; st.shared.u32 [%x], %y; bar.arrive 1, 128; bar.sync 2, 128; bra END;
CONSUMER:
 bar.sync 1, 128; mov.u32 %y, 63; sub.u32 %i, %y, %i; mov.u32 %x, sm; mad.lo.u32 %x, %i, 4, %x;
 ld.shared.u32 %y, [%x]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad+-256], %y; bar.arrive 2, 128;
END: bar.red.popc.u32 %y, 0, %p; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad+256], %y;`,
		block: 128,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got := toWords(out[0])
		for i := range 64 {
			require.EqualValues(t, 5*(63-i), got[i])
		}
		for _, v := range got[64:] {
			require.EqualValues(t, 64, v)
		}
	}, make([]byte, 256+512))
}

// TestCollectives compares shuffles, votes, matches and reductions, with masks
// of part of the warp, with what PTX defines.
func TestCollectives(t *testing.T) {
	p := small{
		regs: ".reg .b64 %ad; .reg .b32 %v, %m, %h, %o<12>; .reg .pred %p, %q<9>;",
		body: `mad.wide.u32 %ad, %t, 4, %in0; ld.global.u32 %v, [%ad];
and.b32 %h, %t, 1; setp.eq.u32 %p, %h, 0;
mov.u32 %m, 0x55555555; @!%p mov.u32 %m, 0xaaaaaaaa;
shfl.sync.up.b32 %o0|%q0, %v, 2, 0, %m;
shfl.sync.down.b32 %o1|%q1, %v, 4, 0x181f, %m;
shfl.sync.bfly.b32 %o2|%q2, %v, 6, 31, %m;
shfl.sync.idx.b32 %o3|%q3, %v, %h, 31, %m;
vote.sync.ballot.b32 %o4, %p, -1;
match.any.sync.b32 %o5, %v, %m;
redux.sync.add.u32 %o6, %v, %m;
redux.sync.min.s32 %o7, %v, %m;
redux.sync.xor.b32 %o8, %v, -1;
elect.sync %o9|%q4, %m;
vote.sync.all.pred %q5, %p, %m;
selp.u32 %o10, 1, 0, %q4; selp.u32 %h, 2, 0, %q5; or.b32 %o10, %o10, %h;
selp.u32 %h, 4, 0, %q0; or.b32 %o10, %o10, %h; selp.u32 %h, 8, 0, %q1; or.b32 %o10, %o10, %h;
activemask.b32 %o11;
mad.wide.u32 %ad, %t, 48, %in1;
st.global.v4.u32 [%ad], {%o0,%o1,%o2,%o3}; st.global.v4.u32 [%ad+16], {%o4,%o5,%o6,%o7}; st.global.v4.u32 [%ad+32], {%o8,%o9,%o10,%o11};`,
		target: "sm_90", block: 32,
	}
	r := rand.New(rand.NewPCG(2, 3))
	in := make([]uint32, 32)
	for i := range in {
		in[i] = uint32(r.IntN(5)) - 2
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got := toWords(out[1])
		for i := range 32 {
			o := got[12*i : 12*i+12]
			up, upOK := in[i], i >= 2
			if upOK {
				up = in[i-2]
			}
			require.Equal(t, up, o[0], "up %d", i)
			down, downOK := in[i], i&7+4 < 8 // segments of 8
			if downOK {
				down = in[i+4]
			}
			require.Equal(t, down, o[1], "down %d", i)
			require.Equal(t, in[i^6], o[2])
			require.Equal(t, in[i&1], o[3])
			require.EqualValues(t, 0x55555555, o[4])
			var same, sum, x uint32
			least := int32(1 << 30)
			for j := range 32 {
				x ^= in[j]
				if j&1 != i&1 {
					continue
				}
				if in[j] == in[i] {
					same |= 1 << j
				}
				sum += in[j]
				least = min(least, int32(in[j]))
			}
			require.Equal(t, []uint32{same, sum, uint32(least), x}, o[5:9], "lane %d", i)
			lead := i & 1
			require.EqualValues(t, lead, o[9])
			flags := uint32(0)
			if i == lead {
				flags |= 1
			}
			if i&1 == 0 {
				flags |= 2
			}
			if upOK {
				flags |= 4
			}
			if downOK {
				flags |= 8
			}
			require.Equal(t, flags, o[10], "lane %d", i)
			require.Equal(t, 32, bits.OnesCount32(o[11]))
		}
	}, words(in...), make([]byte, 48*32))
}

// TestCollectiveAcrossPaths: lanes on both sides of a branch meet in like
// instructions.
func TestCollectiveAcrossPaths(t *testing.T) {
	p := small{
		regs: ".reg .b64 %ad; .reg .b32 %v, %o; .reg .pred %p;",
		body: `mul.lo.u32 %v, %t, 3; setp.lt.u32 %p, %t, 13; @%p bra LOW;
 add.u32 %v, %v, 100; shfl.sync.bfly.b32 %o, %v, 1, 31, -1; bra END;
LOW: shfl.sync.bfly.b32 %o, %v, 1, 31, -1;
END: mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %o;`,
		block: 32,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		for i, got := range toWords(out[0]) {
			want := 3 * (i ^ 1)
			if i^1 >= 13 {
				want += 100
			}
			require.EqualValues(t, want, got)
		}
	}, make([]byte, 128))
}

func TestTrapAndAssert(t *testing.T) {
	_, _, err := small{body: "trap;", block: 32}.try(t)
	require.ErrorContains(t, err, "trap")
	p := small{
		decls: `.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 msg[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};`,
		regs: ".reg .b64 %m, %f; .reg .b32 %l;",
		body: `mov.u64 %m, msg; cvta.global.u64 %m, %m; mov.u64 %f, file; cvta.global.u64 %f, %f; mov.u32 %l, 12;
{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
st.param.b64 [a], %m; st.param.b64 [b], %f; st.param.b32 [c], %l; st.param.b64 [d], %f; st.param.b64 [e], 1;
call __assertfail, (a, b, c, d, e); }`,
		block: 1,
	}
	_, _, err = p.try(t)
	require.ErrorContains(t, err, `assertion "x > 0" failed at a.cu:12`)
}

func TestPrintf(t *testing.T) {
	p := small{
		decls: `.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 msg[14] = {37, 100, 32, 37, 46, 50, 102, 32, 37, 108, 108, 117, 10, 0};`,
		regs: ".reg .b64 %m, %b; .reg .f64 %d; .reg .b32 %r;",
		body: `.local .align 8 .b8 depot[24];
mov.u64 %b, depot; st.local.u32 [%b], %t; mov.f64 %d, 0d4009000000000000; st.local.f64 [%b+8], %d; st.local.u64 [%b+16], 12345678901;
cvta.local.u64 %b, %b; mov.u64 %m, msg; cvta.global.u64 %m, %m;
{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %m; st.param.b64 [b], %b; call (r), vprintf, (a, b); ld.param.b32 %r, [r]; }`,
		block: 2,
	}
	_, report := p.run(t)
	require.Empty(t, report.Faults)
	require.Equal(t, "0 3.12 12345678901\n1 3.12 12345678901\n", report.Printed)
}

func TestCancel(t *testing.T) {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	p := small{regs: ".reg .b32 %x;", body: "W: add.u32 %x, %x, 1; bra W;"}
	m, err := dev.Load(context.Background(), "x.ptx", []byte(p.text(0)))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = dev.Launch(ctx, m, "k", bench.Launch{Grid: [3]uint32{50, 50, 50}, Block: [3]uint32{256}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestChosenBlocks(t *testing.T) {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	p := small{regs: ".reg .b64 %ad; .reg .b32 %x, %y;", body: `mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mad.lo.u32 %x, %y, 1000000, %x;
mad.wide.u32 %ad, %x, 0, %in0; atom.global.add.u32 %x, [%ad], %x;`}
	ctx := context.Background()
	m, err := dev.Load(ctx, "x.ptx", []byte(p.text(1)))
	require.NoError(t, err)
	b, err := dev.Alloc(4, 4)
	require.NoError(t, err)
	require.NoError(t, dev.Write(b, 0, words(0)))
	r, err := dev.Launch(ctx, m, "k", bench.Launch{
		Grid: [3]uint32{1<<31 - 1, 65535, 65535}, Block: [3]uint32{1}, Args: []bench.Arg{bench.Pointer(b)},
		Blocks: [][3]uint32{{5, 0, 0}, {7, 1, 2}, {1 << 20, 2, 65534}},
	})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.EqualValues(t, 3, r.Counters.Blocks)
	data := make([]byte, 4)
	require.NoError(t, dev.Read(b, 0, data))
	require.EqualValues(t, 5+1000007+2000000+1<<20, toWords(data)[0])
	_, err = dev.Launch(ctx, m, "k", bench.Launch{Args: []bench.Arg{bench.Pointer(b)}, Blocks: [][3]uint32{{1}}})
	require.ErrorContains(t, err, "outside the grid")
}

// TestAsyncArrive: an mbarrier that copies arrive at.
func TestAsyncArrive(t *testing.T) {
	for _, noinc := range []string{"", ".noinc"} {
		count := "64" // each thread arrives by itself, after its copies
		arrive := ""
		if noinc == "" {
			arrive = "mbarrier.arrive.shared.b64 %st, [mb];" // and the copies' arrival is one more
		}
		p := small{
			target: "sm_80", decls: ".shared .align 16 .b8 sm[256]; .shared .align 8 .b64 mb;",
			regs: ".reg .b64 %ad, %st; .reg .b32 %a, %b; .reg .pred %p, %q;",
			body: `setp.eq.u32 %q, %t, 0; @!%q bra INIT; mbarrier.init.shared.b64 [mb], ` + count + `; INIT: bar.sync 0;
mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.mbarrier.arrive` + noinc + `.shared.b64 [mb]; ` + arrive + `
W: mbarrier.test_wait.parity.shared.b64 %p, [mb], 0; @!%p bra W;
mov.u32 %a, sm; sub.u32 %b, 63, %t; mad.lo.u32 %a, %b, 4, %a; ld.shared.u32 %b, [%a];
mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;`,
			block: 64,
		}
		in := make([]uint32, 64)
		for i := range in {
			in[i] = uint32(i * i)
		}
		p.everywhere(t, func(out [][]byte, rep *bench.Report) {
			require.Empty(t, rep.Faults)
			for i, v := range toWords(out[1]) {
				require.EqualValues(t, (63-i)*(63-i), v)
			}
		}, words(in...), make([]byte, 256))
	}
}

// TestIndexedAddress: an index counts elements of the variable, whatever is read.
func TestIndexedAddress(t *testing.T) {
	p := small{
		target: "sm_90a", decls: ".shared .align 8 .b32 wide[8]; .shared .b8 bytes[8];",
		regs: ".reg .b32 %a, %b; .reg .b16 %h;", block: 1,
		body: `st.shared.u32 wide[3], 0x20001; st.shared.u8 bytes[5], 7; ld.shared.u16 %h, wide[3]; cvt.u32.u16 %a, %h;
ld.shared.u8 %b, bytes[2+3]; st.global.u32 [%in0], %a; st.global.u32 [%in0+4], %b;
mov.u32 %a, wide; ld.shared.u32 %a, [%a+12]; st.global.u32 [%in0+8], %a;`,
	}
	out, report := p.run(t, make([]byte, 12))
	require.Empty(t, report.Faults)
	require.Equal(t, []uint32{1, 7, 0x20001}, toWords(out[0]))
}

// TestLop3PredicateAlone: the form that only tests its result.
func TestLop3PredicateAlone(t *testing.T) {
	p := small{
		target: "sm_80", regs: ".reg .b64 %ad; .reg .b32 %a; .reg .pred %p, %q;",
		body: `setp.lt.u32 %q, %t, 10; lop3.or.b32 _|%p, %t, 1, 0, 0xc0, %q;
selp.u32 %a, 100, 7, %p; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %a;`,
		block: 32,
	}
	out, report := p.run(t, make([]byte, 128))
	require.Empty(t, report.Faults)
	for i, v := range toWords(out[0]) {
		want := 7
		if i&1 != 0 || i < 10 {
			want = 100
		}
		require.EqualValues(t, want, v)
	}
}

// TestLop3Predicate: the form that also tests its result.
func TestLop3Predicate(t *testing.T) {
	p := small{
		target: "sm_80", regs: ".reg .b64 %ad; .reg .b32 %a, %b; .reg .pred %p, %q;",
		body: `and.b32 %a, %t, 3; setp.lt.u32 %q, %t, 10; lop3.and.b32 %b|%p, %a, 1, 0, 0xc0, %q;
selp.u32 %a, 100, 0, %p; add.u32 %b, %b, %a; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b;`,
		block: 32,
	}
	out, report := p.run(t, make([]byte, 128))
	require.Empty(t, report.Faults)
	for i, v := range toWords(out[0]) {
		want := i & 1
		if want != 0 && i < 10 {
			want += 100
		}
		require.EqualValues(t, want, v)
	}
}
