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
