package vm_test

import (
	"fmt"
	"testing"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/stretchr/testify/require"
)

// arrivals is a warp whose threads each bring a word, then another, have an mbarrier
// told of the one or of both, and read a neighbour's word.
func arrivals(copies, wait, read string) small {
	return small{
		target: "sm_90", decls: ".shared .align 128 .b8 sm[640];", block: 32,
		regs: ".reg .b32 %a, %b, %c, %n; .reg .b64 %g; .reg .pred %p;",
		body: `mov.u32 %a, sm; setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%a+512], 32; @%p mbarrier.init.shared.b64 [%a+520], 32; bar.sync 0;
mad.lo.u32 %c, %t, 4, %a; xor.b32 %n, %t, 1; mad.lo.u32 %n, %n, 4, %a; mad.wide.u32 %g, %t, 4, %in0;
` + copies + fmt.Sprintf(`
L: mbarrier.test_wait.parity.shared.b64 %%p, [%%a+%s], 0; @!%%p bra L;
ld.shared.u32 %%b, [%%n%s]; mad.wide.u32 %%g, %%t, 4, %%in1; st.global.u32 [%%g], %%b; cp.async.wait_all;`, wait, read),
	}
}

const (
	oneCopy   = "cp.async.ca.shared.global [%c], [%g], 4; "
	otherCopy = "cp.async.ca.shared.global [%c+128], [%g+128], 4; "
	oneTold   = "cp.async.mbarrier.arrive.noinc.shared.b64 [%a+512]; "
	otherTold = "cp.async.mbarrier.arrive.noinc.shared.b64 [%a+520]; "
)

// TestArrivalsCoverEarlierCopies: an arrival waits for all of its thread's copies before
// it, also for those that another mbarrier is told of, whichever lands first.
func TestArrivalsCoverEarlierCopies(t *testing.T) {
	in := floats(64, func(i int) float32 { return float32(i) })
	for _, c := range []struct {
		copies, wait, read string
		wrong              bool
	}{
		{copies: oneCopy + oneTold + otherTold, wait: "512"},
		{copies: oneCopy + oneTold + otherTold, wait: "520"},
		{copies: oneCopy + oneTold + otherCopy + otherTold, wait: "512"},
		{copies: oneCopy + oneTold + otherCopy + otherTold, wait: "520"},
		{copies: oneCopy + oneTold + otherCopy + otherTold, wait: "520", read: "+128"},
		{copies: oneCopy + oneTold + otherCopy + otherTold, wait: "512", read: "+128", wrong: true},
		{copies: oneTold + oneCopy + otherTold, wait: "512", wrong: true},
	} {
		for seed := range uint64(6) {
			p := arrivals(c.copies, c.wait, c.read)
			p.opt = vm.Options{Async: vm.Random, Seed: seed}
			out, rep := p.run(t, in, make([]byte, 128))
			if c.wrong {
				require.NotEmpty(t, rep.Faults, "%s wait for %s, seed %d", c.copies, c.wait, seed)
				require.Equal(t, bench.AsyncCopyRace, rep.Faults[0].Class)
				continue
			}
			require.Empty(t, rep.Faults, "%s wait for %s, seed %d", c.copies, c.wait, seed)
			from := 0
			if c.read != "" {
				from = 128
			}
			for i, v := range toWords(out[1]) {
				require.Equal(t, toWords(in[from:])[i^1], v)
			}
		}
	}
}

// TestTryWaitTimesOut: a wait that asks once and reads whatever the answer is found by some
// schedule, as the answer may be no.
func TestTryWaitTimesOut(t *testing.T) {
	p := small{
		target: "sm_90", decls: ".shared .align 128 .b8 sm[640];", block: 64, regs: ".reg .b32 %a, %b; .reg .b64 %g; .reg .pred %p, %q;",
		body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; setp.eq.u32 %q, %t, 0; @%q mbarrier.init.shared.b64 [sm+512], 1; bar.sync 0;
@%q mbarrier.arrive.expect_tx.shared.b64 _, [sm+512], 256; @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 256, [sm+512];
mbarrier.try_wait.parity.shared.b64 %p, [sm+512], 0; /*early*/ @%p bra DONE;
W: mbarrier.try_wait.parity.shared.b64 %p, [sm+512], 0; @!%p bra W;
DONE: /*late*/ mad.wide.u32 %g, %t, 4, %in1; st.global.u32 [%g], %b;`,
	}
	const read = "ld.shared.u32 %b, [%a];"
	found := 0
	for seed := range uint64(16) {
		early, late := p, p
		early.body, late.body = replace(p.body, "/*early*/", read), replace(p.body, "/*late*/", read)
		early.opt = vm.Options{Schedule: vm.Shuffle, Seed: seed}
		late.opt = early.opt
		_, rep := late.run(t, make([]byte, 256), make([]byte, 256))
		require.Empty(t, rep.Faults, "seed %d", seed)
		_, rep = early.run(t, make([]byte, 256), make([]byte, 256))
		for _, f := range rep.Faults {
			require.Equal(t, bench.AsyncCopyRace, f.Class)
			found++
		}
	}
	require.Positive(t, found)
}
