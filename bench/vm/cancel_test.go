package vm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// stealing counts, for each tile of a grid, how often some block worked on it
// and how often under its own number: blocks take over those that have not begun
// until there are none. One block fills a multiprocessor.
func stealing(try string) small {
	return small{
		target: "sm_100a",
		decls:  ".shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;",
		regs:   ".reg .b32 tile, phase, one, n, a, old; .reg .b64 at, state; .reg .b128 answered; .reg .pred first, more, passed;",
		body: `mov.u32 a, answer;
			mov.u32 tile, %ctaid.x;
			mov.u32 phase, 0;
			setp.eq.u32 first, %t, 0;
			@first mbarrier.init.shared.b64 [bar], 1;
			@first fence.mbarrier_init.release.cluster;
			barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
			mad.wide.u32 at, tile, 8, %in0;
			@first atom.global.add.u32 old, [at+4], 1;
		LOOP:
			@!first bra WORK;
			mbarrier.arrive.expect_tx.shared.b64 state, [bar], 16;
			` + try + `
		WORK:
			mad.wide.u32 at, tile, 8, %in0;
			@first atom.global.add.u32 old, [at], 1;
		WAIT:
			mbarrier.try_wait.parity.shared.b64 passed, [bar], phase;
			@!passed bra WAIT;
			xor.b32 phase, phase, 1;
			ld.shared.b128 answered, [answer];
			clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 more, answered;
			@more clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 tile, answered;
			mov.u32 n, %cluster_ctarank;
			@more add.u32 tile, tile, n;
			fence.proxy.async.shared::cta;
			barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
			@more bra LOOP;`,
		block: 64, dynamic: 150_000,
	}
}

const (
	tryCancel     = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [a], [bar];"
	tryCancelMany = `mov.u32 n, %cluster_ctarank;
		setp.eq.u32 passed, n, 0;
		@passed clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [a], [bar];`
)

func TestBlocksTakeOthersOver(t *testing.T) {
	const tiles = 400
	for _, cluster := range []uint32{1, 4} {
		for i, o := range orders() {
			t.Run(fmt.Sprint(cluster, " blocks, order ", i), func(t *testing.T) {
				s := stealing(tryCancel)
				if cluster > 1 {
					s = stealing(tryCancelMany)
				}
				s.grid, s.cluster, s.opt = tiles, cluster, o
				out, report := s.run(t, make([]byte, 8*tiles))
				require.Empty(t, report.Faults)
				began := 0
				for tile, n := range pairs(out[0]) {
					require.Equal(t, uint32(1), n[0], "tile %d", tile)
					began += int(n[1])
				}
				require.Equal(t, report.Counters.Blocks, int64(began))
				require.Less(t, began, 200, "an SM holds one block, and there are about 150")
			})
		}
	}
}

func orders() []vm.Options {
	return []vm.Options{
		{}, {Workers: 1}, {Async: vm.Early},
		{Schedule: vm.Shuffle, Async: vm.Random, Seed: 1},
		{Schedule: vm.Shuffle, Async: vm.Random, Seed: 2},
	}
}

func pairs(b []byte) [][2]uint32 {
	w := toWords(b)
	all := make([][2]uint32, len(w)/2)
	for i := range all {
		all[i] = [2]uint32{w[2*i], w[2*i+1]}
	}
	return all
}

// Whatever the number of workers, the same blocks take the same ones over.
func TestTakingOverDoesNotDependOnWorkers(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 2, 7} {
		s := stealing(tryCancel)
		s.grid, s.opt = 300, vm.Options{Workers: workers}
		out, _ := s.run(t, make([]byte, 8*300))
		if first == nil {
			first = out[0]
		}
		require.Equal(t, first, out[0])
	}
}

// Where all blocks of a grid are resident, there is nothing to take over.
func TestNothingToTakeOver(t *testing.T) {
	s := stealing(tryCancel)
	s.grid = 20
	out, report := s.run(t, make([]byte, 8*20))
	require.Empty(t, report.Faults)
	for _, n := range pairs(out[0]) {
		require.Equal(t, [2]uint32{1, 1}, n)
	}
}

// The block that was taken over is named by three coordinates.
func TestTakenOverCoordinates(t *testing.T) {
	src := `.version 9.0
.target sm_100
.address_size 64
.shared .align 16 .b8 answer[32];
.visible .entry k(.param .u64 tiles) {
.reg .b64 p, g, at, state, low, high; .reg .b32 x, y, z, n, m; .reg .b128 r; .reg .pred more, passed;
ld.param.u64 p, [tiles];
mov.u64 g, answer;
cvta.shared.u64 g, g;
mbarrier.init.b64 [g+16], 1;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 state, [answer+16], 16;
clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [g], [g+16];
WAIT: mbarrier.try_wait.shared.b64 passed, [answer+16], state;
@!passed bra WAIT;
ld.shared.v2.b64 {low, high}, [answer];
mov.b128 r, {low, high};
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 more, r;
@!more ret;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, r;
mad.lo.u32 n, z, 3, y;
mad.lo.u32 n, n, 200, x;
mad.wide.u32 at, n, 4, p;
st.global.u32 [at], 1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 m, r; sub.u32 x, x, m;
clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 m, r; sub.u32 y, y, m;
clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 m, r; sub.u32 z, z, m;
or.b32 x, x, y; or.b32 x, x, z;
setp.ne.u32 passed, x, 0;
@passed trap;
ret;
}`
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	m, err := dev.Load(t.Context(), "k.ptx", []byte(src))
	require.NoError(t, err)
	const blocks = 200 * 3 * 2
	buf, err := dev.Alloc(4*blocks, 4)
	require.NoError(t, err)
	require.NoError(t, dev.Write(buf, 0, make([]byte, 4*blocks)))
	report, err := dev.Launch(t.Context(), m, "k", bench.Launch{
		Grid: [3]uint32{200, 3, 2}, Block: [3]uint32{1}, SharedBytes: 150_000, Args: []bench.Arg{bench.Pointer(buf)},
	})
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	data := make([]byte, 4*blocks)
	require.NoError(t, dev.Read(buf, 0, data))
	taken := 0
	for _, n := range toWords(data) {
		taken += int(n)
	}
	require.Equal(t, int64(blocks), report.Counters.Blocks+int64(taken), "each began or was taken over")
	require.Greater(t, taken, 100)
}

// What a request must not do.
func TestTakingOverMisdeeds(t *testing.T) {
	again := replace(stealing(tryCancel).body, "@more bra LOOP;", `@more bra LOOP;
		@!first ret;
		mbarrier.arrive.expect_tx.shared.b64 state, [bar], 16;`+tryCancel)
	for _, c := range []struct {
		name, body string
		class      bench.FaultClass
	}{
		{"after it was seen that none is left", again, bench.BadDescriptor},
		{"who was not taken over", replace(stealing(tryCancel).body, "@more clusterlaunchcontrol", "clusterlaunchcontrol"), bench.UninitialisedRegister},
		{"a misaligned answer", replace(stealing(tryCancel).body, "[a], [bar]", "[a+8], [bar]"), bench.MisalignedAddress},
		{"no mbarrier", replace(stealing(tryCancel).body, "[a], [bar]", "[a], [a]"), bench.MbarrierMisuse},
		{"an answer that is read at once", replace(stealing(tryCancel).body, "mbarrier.try_wait.parity.shared.b64 passed, [bar], phase;\n\t\t\t@!passed bra WAIT;", ""), bench.AsyncCopyRace},
		{"the answer was read by others", replace(stealing(tryCancel).body, "ld.shared.b128 answered, [answer];", "ld.shared.b128 answered, [answer]; @first st.shared.b32 [answer], 0;"), bench.SharedRace},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stealing(tryCancel)
			s.body, s.grid = c.body, 300
			if c.class == bench.UninitialisedRegister {
				s.body = replace(s.body, "@more bra LOOP;", "mad.wide.u32 at, tile, 8, %in0; @more bra LOOP; @first st.global.u32 [at], 0;")
			}
			_, report, err := s.try(t, make([]byte, 8*300))
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(report.Faults, func(f bench.Fault) bool { return f.Class == c.class }), report.Faults)
		})
	}
}
