package vm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// TestEnds: launches that can't go on end by themselves, with a report.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		p    small
		want bench.FaultClass
	}{
		{"a barrier for more threads than there are", small{body: "bar.sync 1, 128;", block: 64}, bench.Deadlock},
		{"an mbarrier that nobody arrives at", small{
			target: "sm_90", decls: ".shared .align 8 .b64 mb;", regs: ".reg .pred %p;",
			body: "mbarrier.init.shared.b64 [mb], 5;\nW: mbarrier.try_wait.parity.shared.b64 %p, [mb], 0; @!%p bra W;", block: 1,
		}, bench.Deadlock},
		{"a flag that nobody sets", small{
			regs: ".reg .b32 %x; .reg .pred %p;",
			body: "W: ld.volatile.global.u32 %x, [%in0]; setp.eq.u32 %p, %x, 0; @%p bra W;", grid: 4, block: 32,
		}, bench.Deadlock},
		{"a flag in shared memory that nobody sets", small{
			decls: ".shared .align 4 .b32 sm;", regs: ".reg .b32 %x; .reg .pred %p;",
			body: "st.shared.u32 [sm], 0; bar.sync 0;\nW: ld.volatile.shared.u32 %x, [sm]; setp.eq.u32 %p, %x, 0; @%p bra W;", block: 64,
		}, bench.Deadlock},
		{"blocks more than fit, each waiting for the last", small{
			regs: ".reg .b32 %x, %b, %n; .reg .pred %p, %q;",
			body: `mov.u32 %b, %ctaid.x; mov.u32 %n, %nctaid.x; sub.u32 %n, %n, 1; setp.eq.u32 %q, %b, %n; @%q bra LAST;
W: ld.acquire.gpu.global.u32 %x, [%in0]; setp.eq.u32 %p, %x, 0; @%p bra W; bra END;
LAST: st.release.gpu.global.u32 [%in0], 1;
END:`, grid: 300, block: 1024,
		}, bench.Deadlock},
		{"a barrier of more blocks than fit", small{
			decls: ".extern .shared .b32 sm[];", dynamic: 160 << 10, grid: 110, block: 64, regs: ".reg .b32 %x, %n; .reg .pred %p, %q;",
			body: `mov.u32 %n, %nctaid.x; setp.ne.u32 %q, %t, 0; bar.sync 0; @%q bra END;
fence.acq_rel.gpu; red.global.add.u32 [%in0], 1;
W: ld.acquire.gpu.global.u32 %x, [%in0]; setp.lt.u32 %p, %x, %n; @%p bra W;
END: bar.sync 0;`,
		}, bench.Deadlock},
		{"an endless loop", small{regs: ".reg .b32 %x;", body: "mov.u32 %x, 0;\nW: add.u32 %x, %x, 1; bra W;", block: 32}, bench.Deadlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.opt.MaxSteps = 1 << 20
			start := time.Now()
			_, report := c.p.run(t, make([]byte, 64))
			require.NotEmpty(t, report.Faults)
			for _, f := range report.Faults {
				require.Equal(t, c.want, f.Class, f.Message)
			}
			t.Logf("%v: %s", time.Since(start).Round(time.Millisecond), report.Faults[0].Message)
		})
	}
}
