package vm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// clusterPipeline is the loop of multicasting GEMMs: two blocks, each with a
// warp that produces and one that consumes. Per round each block brings half of
// the data and sends it to both; a full barrier waits for both halves, an empty
// barrier for the consumers of both blocks, which arrive remotely. At the end
// producers wait until all stages are free, so that nobody arrives at a block
// that has exited. Data of a stage are 256 bytes from sm; full barriers lie at
// 1024, empty ones at 1040.
const clusterPipeline = `mov.u32 %rank, %cluster_ctarank; mov.u32 %a, sm; setp.ne.u32 %q, %t, 0; @%q bra READY;
mbarrier.init.shared::cta.b64 [%a+1024], 1; mbarrier.init.shared::cta.b64 [%a+1032], 1;
mbarrier.init.shared::cta.b64 [%a+1040], 2; mbarrier.init.shared::cta.b64 [%a+1048], 2;
fence.mbarrier_init.release.cluster;
READY: barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;
mov.u32 %round, 0; setp.ge.u32 %p, %t, 32; @%p bra CONSUME;

elect.sync _|%p, -1; @!%p bra END;
PRODUCE: and.b32 %stage, %round, 1; shr.u32 %phase, %round, 1; and.b32 %phase, %phase, 1; xor.b32 %b, %phase, 1;
mad.lo.u32 %bar, %stage, 8, %a; mad.lo.u32 %c, %stage, 256, %a; mad.lo.u32 %c, %rank, 128, %c;
W0: mbarrier.try_wait.parity.shared::cta.b64 %q, [%bar+1040], %b; @!%q bra W0;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+1024], 256; /*late*/
mul.lo.u32 %b, %round, 256; mad.lo.u32 %b, %rank, 128, %b; cvt.u64.u32 %g, %b; add.u64 %g, %g, %in1; mov.u16 %both, 3; add.u32 %b, %bar, 1024;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%c], [%g], 128, [%b], %both;
add.u32 %round, %round, 1; setp.lt.u32 %q, %round, 6; @%q bra PRODUCE;
TAIL0: mbarrier.try_wait.parity.shared::cta.b64 %q, [%a+1040], 0; @!%q bra TAIL0;
TAIL1: mbarrier.try_wait.parity.shared::cta.b64 %q, [%a+1048], 0; @!%q bra TAIL1;
bra END;

CONSUME: mov.u32 %sum, 0;
ROUND: and.b32 %stage, %round, 1; shr.u32 %phase, %round, 1; and.b32 %phase, %phase, 1;
mad.lo.u32 %bar, %stage, 8, %a; mad.lo.u32 %c, %stage, 256, %a; sub.u32 %b, %t, 32; mad.lo.u32 %c, %b, 8, %c;
W1: mbarrier.try_wait.parity.shared::cta.b64 %q, [%bar+1024], %phase; @!%q bra W1;
ld.shared.v2.u32 {%n, %b}, [%c]; mad.lo.u32 %sum, %sum, 3, %n; mad.lo.u32 %sum, %sum, 3, %b;
bar.warp.sync -1; setp.lt.u32 %q, %t, 34; @!%q bra SKIP; sub.u32 %b, %t, 32; add.u32 %c, %bar, 1040;
mapa.shared::cluster.u32 %far, %c, %b; mbarrier.arrive.shared::cluster.b64 _, [%far];
SKIP: add.u32 %round, %round, 1; setp.lt.u32 %q, %round, 6; @%q bra ROUND;
mov.u32 %b, %ctaid.x; mad.lo.u32 %b, %b, 32, %t; sub.u32 %b, %b, 32; mad.wide.u32 %g, %b, 4, %in0; st.global.u32 [%g], %sum;
END:`

// TestClusterPipeline runs the loop under all timings, and finds what is wrong
// with it when a step is left out.
func TestClusterPipeline(t *testing.T) {
	data := make([]byte, 6*256)
	for i := range len(data) / 4 {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(i*i+7))
	}
	want := make([]uint32, 128)
	for i := range want {
		sum := uint32(0)
		for round := range 6 {
			w := toWords(data[round*256+8*(i%32):])
			sum = (sum*3+w[0])*3 + w[1]
		}
		want[i] = sum
	}
	p := small{
		target: "sm_90a", decls: sharedDecl, dynamic: 1056, cluster: 2, grid: 4, block: 64, body: clusterPipeline,
		regs: clusterRegs + ".reg .b32 %round, %stage, %phase, %bar, %sum; .reg .b16 %both; .reg .pred %p, %q;",
	}
	for _, opt := range timings {
		p.opt = opt
		out, report := p.run(t, make([]byte, 512), data)
		require.Empty(t, report.Faults, "%+v", opt)
		require.Equal(t, want, toWords(out[0]), "%+v", opt)
	}
	for from, wrong := range map[string]struct {
		to    string
		class bench.FaultClass
	}{
		"W1: mbarrier": {"ld.shared.v2.u32 {%n, %b}, [%c]; W1: mbarrier", bench.AsyncCopyRace},
		"expect_tx.shared::cta.b64 _, [%bar+1024], 256":                                     {"expect_tx.shared::cta.b64 _, [%bar+1024], 272", bench.MbarrierMisuse},
		"mapa.shared::cluster.u32 %far, %c, %b":                                             {"mov.u32 %far, %c", bench.AsyncCopyRace},
		"TAIL1: mbarrier.try_wait.parity.shared::cta.b64 %q, [%a+1048], 0; @!%q bra TAIL1;": {"", bench.SharedOutOfBounds},
		"fence.mbarrier_init.release.cluster;":                                              {"", bench.MbarrierMisuse},
		"bar.warp.sync -1; setp.lt.u32 %q, %t, 34":                                          {"setp.lt.u32 %q, %t, 34", bench.AsyncCopyRace},
	} {
		t.Run(from, func(t *testing.T) {
			bad := p
			bad.body = replace(bad.body, from, wrong.to)
			found := 0
			for _, opt := range timings {
				bad.opt = opt
				_, report := bad.run(t, make([]byte, 512), data)
				for _, f := range report.Faults {
					require.Equal(t, wrong.class, f.Class, "%+v: %s", opt, f.Message)
					found++
				}
			}
			require.Positive(t, found)
		})
	}
}
