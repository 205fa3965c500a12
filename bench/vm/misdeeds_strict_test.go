package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// strictMisdeeds are programs that only strict-proxy complains of.
var strictMisdeeds = []misdeed{
	bulkMisdeed("what cp.async brought stored by a bulk copy", bench.MissingProxyFence, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.wait_all; /*fence*/ bar.sync 0;
@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in1], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"/*fence*/": "fence.proxy.async;"}),
	bulkMisdeed("what threads read brought anew", bench.MissingProxyFence, strictLoad+readLoad+`/*fence*/ bar.sync 0; @!%q bra AGAIN; mbarrier.arrive.expect_tx.shared.b64 _, [sm+256], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 128, [sm+256]; AGAIN: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 1; @!%p bra AGAIN;`,
		map[string]string{"/*fence*/": "fence.proxy.async;"}),
	bulkMisdeed("an mbarrier told whose initialisation is not fenced", bench.MissingProxyFence, oneBulkLoad+waitForLoad+readLoad,
		map[string]string{"INIT: bar.sync 0;": "fence.proxy.async; INIT: bar.sync 0;"}),
	bulkMisdeed("an mbarrier told whose initialisation is fenced by nobody", bench.MissingProxyFence, oneBulkLoad+waitForLoad+readLoad,
		map[string]string{"INIT: bar.sync 0;": "fence.mbarrier_init.release.cluster; INIT: bar.sync 0;"}),
}

var strictLoad = replace(oneBulkLoad, "INIT: bar.sync 0;", "fence.mbarrier_init.release.cluster; INIT: bar.sync 0;") + waitForLoad

// TestStrictProxy: what is only suspicious is reported where it is asked for, and
// not otherwise.
func TestStrictProxy(t *testing.T) {
	strict, err := vm.ParseChecks("+strict-proxy")
	require.NoError(t, err)
	for _, m := range strictMisdeeds {
		t.Run(m.name, func(t *testing.T) {
			buffers := [][]byte{make([]byte, 512), make([]byte, 512)}
			for _, opt := range moments() {
				p := m.prepare(false)
				p.opt = opt
				_, report := p.run(t, buffers...)
				require.Empty(t, report.Faults, "by default")
				p.opt.Checks = strict
				_, report = p.run(t, buffers...)
				require.NotEmpty(t, report.Faults, "%+v", opt)
				for _, f := range report.Faults {
					require.Equal(t, m.class, f.Class, "%+v: %s", opt, f.Message)
				}
				p = m.prepare(true)
				p.opt = opt
				p.opt.Checks = strict
				_, report = p.run(t, buffers...)
				require.Empty(t, report.Faults, "the right program")
			}
		})
	}
}

// TestStrictTensor: between uses of tensor memory by different warps strict-proxy
// wants a tcgen05.fence on both sides of what orders them.
func TestStrictTensor(t *testing.T) {
	const (
		before = "tcgen05.fence::before_thread_sync; "
		after  = " tcgen05.fence::after_thread_sync;"
		told   = "@!%p bra W;\n" + "tcgen05.fence::after_thread_sync;"
	)
	strict, err := vm.ParseChecks("+strict-proxy")
	require.NoError(t, err)
	fenced := func(text string) string { return replace(text, "bar.sync 0;", before+"bar.sync 0;"+after) }
	for _, c := range []struct {
		name  string
		edit  func(text string) string
		right bool
	}{
		{"right", fenced, true},
		{"none before", func(text string) string { return replace(fenced(text), before, "") }, false},
		{"none after", func(text string) string {
			return replace(replace(fenced(text), after, ""), told, replace(told, after[1:], ""))
		}, false},
		{"none after the product", func(text string) string { return replace(fenced(text), told, replace(told, after[1:], "")) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, opt := range timings {
				p := tensorSample()
				p.edit, p.opt = c.edit, opt
				_, faults := p.run(t)
				require.Empty(t, faults, "by default")
				p.opt.Checks = strict
				_, faults = p.run(t)
				if c.right {
					require.Empty(t, faults, "%+v", opt)
					continue
				}
				require.NotEmpty(t, faults, "%+v", opt)
				for _, f := range faults {
					require.Equal(t, bench.MissingProxyFence, f.Class, "%+v: %s", opt, f.Message)
				}
			}
		})
	}
}
