package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestFencesPassedOnAgain: what lanes pass on after they met is not all that they
// pass on when they met again.
func TestFencesPassedOnAgain(t *testing.T) {
	body := `
mad.wide.u32 %d, %t, 4, %in0; mov.u32 %i, 0; mov.u32 %x, %ctaid.x; setp.ne.u32 %p, %x, 0; setp.eq.u32 %one, %t, 33;
bar.sync 0; @%p bra TAKE;
GIVE: add.u32 %i, %i, 1; add.u64 %d, %d, 256; st.global.u32 [%d], %i; membar.gl; bar.sync 0;
@%one st.volatile.global.u32 [%in1], %i; bar.sync 0; setp.lt.u32 %q, %i, 3; @%q bra GIVE; ret;
TAKE: add.u32 %i, %i, 1; add.u64 %d, %d, 256; @!%one bra MET;
POLL: ld.volatile.global.u32 %x, [%in1]; setp.lt.u32 %q, %x, %i; @%q bra POLL;
MET: bar.sync 0; membar.gl; ld.global.u32 %y, [%d]; add.u32 %sum, %sum, %y; setp.lt.u32 %q, %i, 3; @%q bra TAKE;
mad.wide.u32 %d, %t, 4, %in2; st.global.u32 [%d], %sum;`
	p := small{
		regs: ".reg .b32 %i, %x, %y, %sum; .reg .b64 %d; .reg .pred %p, %q, %one;", body: "mov.u32 %sum, 0;" + body,
		grid: 2, block: 64,
	}
	for seed := range uint64(8) {
		p.opt = vm.Options{Schedule: vm.Shuffle, Seed: seed}
		out, report := p.run(t, make([]byte, 1024), make([]byte, 4), make([]byte, 256))
		require.Empty(t, report.Faults, "seed %d", seed)
		require.Equal(t, uint32(6), toWords(out[2])[5])
	}
	for from, to := range map[string]string{
		"st.global.u32 [%d], %i; membar.gl;": "st.global.u32 [%d], %i; setp.gt.u32 %q, %i, 2; @!%q membar.gl;",
		"bar.sync 0; membar.gl; ld":          "bar.sync 0; ld",
	} {
		p.body = "mov.u32 %sum, 0;" + replace(body, from, to)
		_, report := p.run(t, make([]byte, 1024), make([]byte, 4), make([]byte, 256))
		require.NotEmpty(t, report.Faults, to)
		for _, f := range report.Faults {
			require.Equal(t, bench.GlobalRace, f.Class)
		}
	}
}
