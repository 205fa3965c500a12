package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// lockBody takes a lock in a loop that never comes back to the same state,
// since it counts its tries, and counts under the lock behind the loop.
const lockBody = `mov.u32 %n, 0;
LOCK: add.u32 %n, %n, 1; nanosleep.u32 %n;
 atom.acquire.gpu.global.cas.b32 %x, [%in0], 0, 1;
 setp.ne.u32 %p, %x, 0; @%p bra LOCK;
 ld.global.u32 %v, [%in0+4]; add.u32 %v, %v, 1; st.global.u32 [%in0+4], %v;
 atom.release.gpu.global.exch.b32 %x, [%in0], 0;`

// TestProgress: lanes that wait for what only their mates, behind a join, a
// call or a branch, can give.
func TestProgress(t *testing.T) {
	const grid, block = 3, 40
	for name, p := range map[string]small{
		"a lock with a growing pause": {
			regs: ".reg .b32 %x, %v, %n; .reg .pred %p;", body: lockBody,
		},
		"a lock taken in a function": {
			decls: `.func take (.param .b64 at) { .reg .b64 %a; .reg .b32 %x; .reg .pred %p; ld.param.b64 %a, [at];
LOCK: atom.acquire.gpu.global.cas.b32 %x, [%a], 0, 1; setp.ne.u32 %p, %x, 0; @%p bra LOCK; ret; }`,
			regs: ".reg .b32 %x, %v;",
			body: `{ .param .b64 a; st.param.b64 [a], %in0; call take, (a); }
 ld.global.u32 %v, [%in0+4]; add.u32 %v, %v, 1; st.global.u32 [%in0+4], %v;
 atom.release.gpu.global.exch.b32 %x, [%in0], 0;`,
		},
		"a lane that waits for one past the branch": {
			regs: ".reg .b32 %x, %o, %l; .reg .pred %p;",
			// Lane k waits until k lanes have been here.
			body: `mov.u32 %l, %ctaid.x; mad.lo.u32 %l, %l, 40, %t;
W: ld.acquire.gpu.global.u32 %x, [%in0+4]; setp.ne.u32 %p, %x, %l; @%p bra W;
 atom.release.gpu.global.add.u32 %o, [%in0+4], 1;`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.grid, p.block = grid, block
			p.everywhere(t, func(out [][]byte, rep *bench.Report) {
				require.Empty(t, rep.Faults)
				require.Equal(t, []uint32{0, grid * block}, toWords(out[0]))
			}, make([]byte, 8))
		})
	}
}

// TestEarlyExit: lanes that leave the kernel, from inside a loop too, are
// waited for by nobody; the others are together again at a barrier.
func TestEarlyExit(t *testing.T) {
	for _, leave := range []string{"bra END", "exit", "ret"} {
		p := small{
			decls: ".shared .align 4 .b8 sm[256];",
			regs:  ".reg .b64 %ad; .reg .b32 %i, %k, %s, %m; .reg .pred %p, %q;",
			// Each round the thread of the round's number leaves, a third of them
			// takes another way, and those left add up what their neighbours hold.
			body: `mov.u32 %i, 0; mov.u32 %s, %t; mov.u32 %m, sm; mad.lo.u32 %m, %t, 4, %m; st.shared.u32 [%m], 0;
LOOP: setp.eq.u32 %p, %t, %i; @%p ` + leave + `;
 rem.u32 %k, %s, 3; setp.eq.u32 %q, %k, 0; @%q bra THIRD;
 mad.lo.u32 %s, %s, 5, %i; bra NEXT;
THIRD: add.u32 %s, %s, 7;
NEXT: bar.sync 0; st.shared.u32 [%m], %s; bar.sync 0;
 xor.b32 %k, %t, 1; mov.u32 %m, sm; mad.lo.u32 %m, %k, 4, %m; ld.shared.u32 %k, [%m]; add.u32 %s, %s, %k;
 mov.u32 %m, sm; mad.lo.u32 %m, %t, 4, %m;
 add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 9; @%p bra LOOP;
 mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %s;
END:`,
			block: 64,
		}
		held, s := [64]uint32{}, [64]uint32{}
		for i := range s {
			s[i] = uint32(i)
		}
		for i := range uint32(9) {
			for j := range s {
				if uint32(j) > i {
					if s[j]%3 == 0 {
						s[j] += 7
					} else {
						s[j] = s[j]*5 + i
					}
					held[j] = s[j]
				}
			}
			for j := range s {
				if uint32(j) > i {
					s[j] += held[j^1]
				}
			}
		}
		p.everywhere(t, func(out [][]byte, rep *bench.Report) {
			require.Empty(t, rep.Faults, leave)
			require.Equal(t, s[9:], toWords(out[0])[9:], leave)
			require.Equal(t, make([]uint32, 9), toWords(out[0])[:9])
		}, make([]byte, 256))
	}
}

// TestBarriersOfParts: the lanes of a warp may come to a bar.sync one after the
// other, but not to different ones.
func TestBarriersOfParts(t *testing.T) {
	const two = "setp.lt.u32 %p, %t, 40; @!%p bra L; bar.sync 0; bra M;\nL: bar.sync 0;\nM: mov.u32 %x, 1;"
	p := small{regs: ".reg .b32 %x; .reg .pred %p;", body: two, block: 64}
	p.everywhere(t, func(_ [][]byte, rep *bench.Report) {
		require.NotEmpty(t, rep.Faults)
		for _, f := range rep.Faults {
			require.Equal(t, bench.BarrierDivergence, f.Class, f.Message)
		}
	})
	for _, other := range []string{"%t, 32", "%t, 64"} { // along whole warps it is right
		p.body = replace(two, "%t, 40", other)
		p.everywhere(t, func(_ [][]byte, rep *bench.Report) { require.Empty(t, rep.Faults) })
	}
	p.body = replace(two, "L: bar.sync 0", "L: bar.sync 1")
	p.everywhere(t, func(_ [][]byte, rep *bench.Report) {
		require.NotEmpty(t, rep.Faults)
		require.Equal(t, bench.BarrierDivergence, rep.Faults[0].Class, rep.Faults[0].Message)
	})
}

// TestPollingWithTheTime: a thread that polls an mbarrier looks at the time between
// one test and the next, as libcu++ does before sm_90, so that no state of the block
// comes again. What it waits for lands all the same.
func TestPollingWithTheTime(t *testing.T) {
	for name, copies := range map[string]string{
		"cp.async": `mad.lo.u32 %c, %t, 16, %a; mad.wide.u32 %g, %t, 16, %in0; cp.async.cg.shared.global [%c], [%g], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [%a+512];`,
		"bulk": `setp.ne.u32 %p, %t, 0; @%p bra ARRIVE;
mbarrier.expect_tx.shared.b64 [%a+512], 512; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%in0], 512, [%a+512];
ARRIVE: mbarrier.arrive.shared.b64 _, [%a+512];`,
	} {
		t.Run(name, func(t *testing.T) {
			p := small{
				target: "sm_90", decls: ".shared .align 128 .b8 sm[640];", block: 32,
				regs: ".reg .b32 %a, %b, %c; .reg .b64 %g, %time; .reg .pred %p;",
				body: `mov.u32 %a, sm; setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%a+512], 33; bar.sync 0;
@%p mbarrier.arrive.shared.b64 _, [%a+512]; mov.u32 %b, 0;
` + copies + `
L: mbarrier.test_wait.parity.shared.b64 %p, [%a+512], 0; @%p bra DONE;
mov.u64 %time, %globaltimer; add.u32 %b, %b, 1; nanosleep.u32 %b; bra L;
DONE: mad.lo.u32 %c, %t, 16, %a; ld.shared.u32 %b, [%c]; mad.wide.u32 %g, %t, 4, %in1; st.global.u32 [%g], %b;`,
			}
			in := make([]byte, 512)
			for i := range 32 {
				in[16*i] = byte(i + 1)
			}
			for _, opt := range timings {
				p.opt = opt
				p.opt.MaxSteps = 1 << 16
				out, rep := p.run(t, in, make([]byte, 128))
				require.Empty(t, rep.Faults)
				for i, v := range toWords(out[1]) {
					require.EqualValues(t, i+1, v)
				}
			}
		})
	}
}

// TestWaitingByTheClock waits as libcu++ does on GPUs that can't wait for an mbarrier: it
// asks, looks at the clock, and sleeps the longer the longer it has waited. In vain that
// is a deadlock, soon, and a limit that the program sets itself is none.
func TestWaitingByTheClock(t *testing.T) {
	for name, faults := range map[string]int{"L": 1, "UNTIL": 0} {
		t.Run(name, func(t *testing.T) {
			p := small{
				target: "sm_80", decls: ".shared .align 8 .b64 bar;", block: 64,
				regs: ".reg .b64 %start, %time; .reg .b32 %ns; .reg .pred %p;",
				body: `setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], 65; bar.sync 0; mbarrier.arrive.shared.b64 %start, [bar]; mov.u64 %start, %globaltimer;
L: mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; @%p bra DONE;
mov.u64 %time, %globaltimer; sub.s64 %time, %time, %start; setp.gt.s64 %p, %time, 4000000; @%p bra LONG;
shr.u64 %time, %time, 2; cvt.u32.u64 %ns, %time; nanosleep.u32 %ns; bra L;
LONG: nanosleep.u32 1000000; bra ` + name + `;
UNTIL: setp.lt.s64 %p, %time, 5000000000; @%p bra L;
DONE: st.global.u32 [%in1], 1;`,
			}
			p.opt.MaxSteps = 1 << 22
			_, rep := p.run(t, nil, make([]byte, 4))
			require.Len(t, rep.Faults, faults)
			for _, f := range rep.Faults {
				require.Equal(t, bench.Deadlock, f.Class)
				require.Contains(t, f.Message, "nothing changes any more")
			}
		})
	}
}

// TestFlagThatWasNotStored polls, by a loop that counts, a flag that an access out of
// bounds should have set: that it never ends is no second fault.
func TestFlagThatWasNotStored(t *testing.T) {
	p := small{
		target: "sm_80", grid: 2, block: 32, regs: ".reg .b32 %b, %i; .reg .pred %p;",
		body: `mov.u32 %b, %ctaid.x; setp.eq.u32 %p, %b, 1; @%p bra W; setp.eq.u32 %p, %t, 0; @%p st.release.gpu.global.u32 [%in1+4], 1; bra DONE;
W: mov.u32 %i, 0;
L: add.u32 %i, %i, 1; ld.acquire.gpu.global.u32 %b, [%in1]; setp.eq.u32 %p, %b, 0; @%p bra L;
DONE: mov.u32 %b, 0;`,
	}
	p.opt.MaxSteps = 1 << 12
	_, rep := p.run(t, nil, make([]byte, 4))
	require.Len(t, rep.Faults, 1)
	require.Equal(t, bench.GlobalOutOfBounds, rep.Faults[0].Class)
}
