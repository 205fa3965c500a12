package vm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// pass is a block that writes its words, waits for the block before it, and reads that
// block's: by release and acquire, or by fences.
func pass(before, tell, look, after string) string {
	return `mov.u32 %j, %i;
` + wordOf + `st.global.u32 [%g], %i; bar.sync 0;
mov.u32 %y, %ctaid.x; mad.wide.u32 %h, %y, 4, %c;
setp.ne.u32 %p, %t, 0; @%p bra TOLD;
` + before + tell + ` [%h], 1;
TOLD: setp.eq.u32 %p, %y, 0; @%p bra DONE; setp.ne.u32 %p, %t, 0; @%p bra MET;
WAIT: ` + look + ` %x, [%h+-4]; setp.eq.u32 %p, %x, 0; @%p bra WAIT;
` + after + `
MET: bar.sync 0; ld.global.u32 %x, [%g+-256];
DONE: bar.sync 0;
`
}

// Where there are more places that something was released to than are kept, what is
// forgotten of them makes up no race, and a race that nothing could order is still found.
func TestForgottenReleasesAreNoRaces(t *testing.T) {
	const words, block = 1 << 12, 64
	for name, body := range map[string]string{
		"release": pass("", "st.release.gpu.global.u32", "ld.acquire.gpu.global.u32", ""),
		"count":   pass("", "red.release.gpu.global.add.u32", "ld.acquire.gpu.global.u32", ""),
		"fence":   pass("fence.acq_rel.gpu; ", "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32", "fence.acq_rel.gpu;"),
	} {
		for _, most := range []int64{0, 4000, 1 << 30} {
			few := func(l *launch) { l.limits.located = most }
			l, report, _ := remembered(t, body, words, block, few)
			require.Empty(t, report.Faults, "%s, %d", name, most)
			x := &l.across.located
			require.Equal(t, most < 1<<30, x.crowded, "%s, %d", name, most)
			require.LessOrEqual(t, x.size, most)
			_, report, _ = remembered(t, "st.global.u32 [%in+8], %i;\n"+body, words, block, few)
			require.NotEmpty(t, report.Faults, "%s, %d", name, most)
			for _, f := range report.Faults {
				require.Equal(t, bench.GlobalRace, f.Class)
			}
		}
	}
}

// Releases to any number of places take no more than they may.
func TestReleasesAreBounded(t *testing.T) {
	const words, block = 1 << 14, 64
	for _, body := range []string{
		"red.release.gpu.global.add.u32 [%g], 1;",
		"atom.acq_rel.gpu.global.add.u32 %x, [%g], 1;",
		"st.release.gpu.global.u32 [%g], 1;",
		"fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%g], 1;",
	} {
		l, report, _ := remembered(t, scattered+wordOf+body, words, block, func(l *launch) { l.limits.located = 4 * words / 8 })
		require.Empty(t, report.Faults, body)
		require.True(t, l.across.located.crowded, body)
		require.LessOrEqual(t, l.across.located.size, l.limits.located, body)
	}
	l, report, _ := remembered(t, scattered+wordOf+"st.relaxed.gpu.global.u32 [%g], 1;", words, block, func(*launch) {})
	require.Empty(t, report.Faults)
	require.Empty(t, l.across.located.at, "who has nothing to tell leaves nothing")
}
