package vm_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// liveHeap is what was in use at the last collection, in bytes.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// TestNeverWaited: a loop that begins asynchronous work and waits for none of it is
// stopped by counting as well, before what is remembered of the work fills the
// machine's memory.
func TestNeverWaited(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	const (
		load    = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 16, [sm+512]; "
		store   = "cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm+64], 16; "
		product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %d, %d, 0, 1, 1, 0, 0; "
	)
	zero := "mov.b64 %d, 0; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; "
	bulk := "@%q mbarrier.init.shared.b64 [sm+512], 1; bar.sync 0; st.shared.v4.u32 [sm+64], {1,1,1,1}; fence.proxy.async;\n"
	for _, c := range []struct {
		name, before, body string
		block              uint32
	}{
		{"bulk loads", bulk, load, 1},
		{"bulk loads by a warp", bulk, load, 32},
		{"bulk stores", bulk, store, 1},
		{"bulk stores by a warp", bulk, store, 32},
		{"bulk stores in groups", bulk, store + "cp.async.bulk.commit_group;", 1},
		{"bulk stores whose sources are waited for", bulk, store + "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;", 1},
		{"bulk groups of nothing", bulk + store, "cp.async.bulk.commit_group;", 32},
		{"reductions", bulk, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in0], [sm+64], 16;", 1},
		{"stores to another's shared memory", bulk, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [sm], 1, [sm+512];", 1},
		{"cp.async", "", "cp.async.ca.shared.global [sm], [%in0], 16;", 32},
		{"cp.async in groups", "", "cp.async.ca.shared.global [sm], [%in0], 16; cp.async.commit_group;", 1},
		{"groups of nothing", "", "cp.async.commit_group;", 1},
		{"arrivals of copies", bulk, "cp.async.mbarrier.arrive.shared.b64 [sm+512];", 1},
		{"products", zero + "wgmma.fence.sync.aligned;", product, 128},
		{"products in groups", zero + "wgmma.fence.sync.aligned;", product + "wgmma.commit_group.sync.aligned;", 128},
	} {
		for _, async := range []vm.Async{vm.Late, vm.Early, vm.Random} {
			t.Run(fmt.Sprintf("%s %s", c.name, async), func(t *testing.T) {
				p := small{
					target: "sm_90a", decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: 4096, block: c.block, regs: ".reg .f32 %f<4>; .reg .b64 %d; .reg .pred %q;",
					body: "setp.eq.u32 %q, %t, 0;\n" + c.before + "L: " + c.body + "\nbra L;",
				}
				p.opt = vm.Options{Async: async, MaxSteps: 1 << 20, Workers: 1}
				runtime.GC()
				before := liveHeap()
				_, report := p.run(t, make([]byte, 512))
				require.Less(t, int64(liveHeap()-before), int64(64<<20))
				last := report.Faults[len(report.Faults)-1]
				require.Contains(t, last.Message, "no end after")
				if !strings.HasPrefix(c.before, bulk) { // else races at an mbarrier may be why
					require.Equal(t, bench.Deadlock, last.Class)
				}
			})
		}
	}
}
