package vm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// told is a program whose blocks each wait for bytes that copies bring to their
// mbarrier at sm+256, the peer's in %fbar.
func told(bytes, body string) string {
	return clusterStart + `add.u32 %fbar, %far, 256; setp.eq.u32 %p, %rank, 0;
mbarrier.init.shared.b64 [%a+256], 1; fence.mbarrier_init.release.cluster; ` + clusterSync + `
mbarrier.arrive.expect_tx.shared.b64 _, [%a+256], ` + bytes + ";\n" + body
}

const (
	waitTold = "\nW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %s, [%a+256], 0; @!%s bra W;\n"

	// storeBoth writes the words at sm and sm+124 to the block's place in in0.
	storeBoth = "\nmov.u32 %b, %ctaid.x; mad.wide.u32 %g, %b, 8, %in0; ld.shared.u32 %b, [%a]; st.global.u32 [%g], %b; ld.shared.u32 %b, [%a+124]; st.global.u32 [%g+4], %b;\n"

	// fillOwn gives the block's first 32 words from 128 on the value rank+5.
	fillOwn = `mov.u32 %rank, %cluster_ctarank; add.u32 %c, %rank, 5; mov.u32 %b, 0; F: add.u32 %n, %a, %b; st.shared.u32 [%n+128], %c; add.u32 %b, %b, 4; setp.lt.u32 %s, %b, 128; @%s bra F;
`
	clearOwn = `mov.u32 %b, 0; Z: add.u32 %n, %a, %b; st.shared.u32 [%n], 1; add.u32 %b, %b, 4; setp.lt.u32 %s, %b, 128; @%s bra Z;
`
	proxyFence = "fence.proxy.async;"

	multicast = "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a], [%in1], 128, [%a+256], 3;"
	copyOver  = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far], [%a+128], 128, [%fbar];"
	addOver   = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%far], [%a+128], 128, [%fbar];"
)

// clusterCopies are right programs of two clusters of two blocks, what the
// words are that storeBoth writes (0 to 31 stand in in1), and how to make them
// wrong.
var clusterCopies = []struct {
	name, body string
	want       [2][2]uint32 // by rank
	wrong      map[bench.FaultClass]map[string]string
}{
	{
		name: "multicast", body: told("128", multicast+waitTold+storeBoth+clusterSync), want: [2][2]uint32{{0, 31}, {0, 31}},
		wrong: map[bench.FaultClass]map[string]string{
			bench.AsyncCopyRace:     {waitTold + storeBoth: storeBoth + waitTold},
			bench.SharedOutOfBounds: {"256], 3;": "256], 7;"},
			bench.MbarrierMisuse:    {"[%a+256], 128": "[%a+256], 144"},
			bench.MisalignedAddress: {"[%in1], 128": "[%in1+8], 128"},
			bench.GlobalOutOfBounds: {"[%in1], 128": "[%in1+448], 128"},
		},
	},
	{
		name: "a block leaves before its multicast", body: told("128", multicast+"/*skip*/"+waitTold+"END:"+clusterSync), want: [2][2]uint32{},
		wrong: map[bench.FaultClass]map[string]string{bench.SharedOutOfBounds: {"/*skip*/": "@!%p bra END;"}},
	},
	{
		name: "st.async", body: told("8", "add.u32 %c, %rank, 40; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far], %c, [%fbar]; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far+124], 9, [%fbar];"+waitTold+storeBoth+clusterSync),
		want: [2][2]uint32{{41, 9}, {40, 9}},
		wrong: map[bench.FaultClass]map[string]string{
			bench.AsyncCopyRace:     {waitTold + storeBoth: storeBoth + waitTold},
			bench.MisalignedAddress: {"[%far+124]": "[%far+122]"},
			bench.MbarrierMisuse:    {"9, [%fbar]": "9, [%a+256]"},
		},
	},
	{
		name: "st.async of vectors", body: told("32", "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%far], {7, %rank, 0, 1}, [%fbar]; mov.b64 %g, {%rank, %peer}; st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%far+112], {%g, %g}, [%fbar];"+waitTold+storeBoth+clusterSync),
		want: [2][2]uint32{{7, 0}, {7, 1}},
	},
	{
		name: "bytes expected by the sender", body: clusterStart + "add.u32 %fbar, %far, 256; mbarrier.init.shared.b64 [%a+256], 1; fence.mbarrier_init.release.cluster; " + clusterSync +
			"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%fbar], 4; mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%fbar], 4;" +
			"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far], 8, [%fbar]; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far+124], 9, [%fbar];" + waitTold + storeBoth + clusterSync,
		want:  [2][2]uint32{{8, 9}, {8, 9}},
		wrong: map[bench.FaultClass]map[string]string{bench.MbarrierMisuse: {"[%fbar], 4; mbarrier.e": "[%fbar], 8; mbarrier.e"}},
	},
	{
		name: "red.async", body: clearOwn + told("16", `mapa.shared::cluster.u32 %far, %a, 0; add.u32 %fbar, %far, 256;
add.u32 %c, %rank, 3; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%far], %c, [%fbar]; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%far+124], %c, [%fbar];
@!%p bra END;`+waitTold+storeBoth+"END:"+clusterSync), want: [2][2]uint32{{8, 4}, {0, 0}},
		wrong: map[bench.FaultClass]map[string]string{
			bench.AsyncCopyRace: {waitTold + storeBoth: storeBoth + waitTold},
		},
	},
	{
		name: "within the cluster", body: fillOwn + proxyFence + told("128", copyOver+waitTold+storeBoth+clusterSync), want: [2][2]uint32{{6, 6}, {5, 5}},
		wrong: map[bench.FaultClass]map[string]string{
			bench.AsyncCopyRace:     {waitTold + storeBoth: "st.shared.u32 [%a+140], 3;" + waitTold + storeBoth},
			bench.MissingProxyFence: {proxyFence: ""},
			bench.SharedOutOfBounds: {"[%a+128], 128": "[%a+448], 128"},
		},
	},
	{
		name: "source used again once the receiver says so", body: fillOwn + proxyFence + told("128", copyOver+waitTold+storeBoth+"/*again*/"+clusterSync+"st.shared.u32 [%a+140], 3;"), want: [2][2]uint32{},
		wrong: map[bench.FaultClass]map[string]string{bench.AsyncCopyRace: {"/*again*/": "st.shared.u32 [%a+136], 3;"}},
	},
	{
		name: "a reduction within the cluster", body: clearOwn + replace(fillOwn, "F", "G") + proxyFence + told("128", addOver+waitTold+storeBoth+clusterSync), want: [2][2]uint32{{7, 7}, {6, 6}},
		wrong: map[bench.FaultClass]map[string]string{
			bench.AsyncCopyRace: {waitTold + storeBoth: storeBoth + waitTold},
		},
	},
}

func TestClusterCopies(t *testing.T) {
	in1 := make([]byte, 512)
	for i := range 32 {
		binary.LittleEndian.PutUint32(in1[4*i:], uint32(i))
	}
	for _, c := range clusterCopies {
		t.Run(c.name, func(t *testing.T) {
			p := small{
				target: "sm_90a", decls: sharedDecl, regs: clusterRegs + ".reg .b32 %fbar; .reg .pred %p, %s;",
				dynamic: 512, cluster: 2, grid: 4, block: 1, body: "mov.u32 %a, sm;" + c.body,
			}
			for _, opt := range timings {
				p.opt = opt
				out, report := p.run(t, make([]byte, 512), in1)
				require.Empty(t, report.Faults, "%+v", opt)
				if c.want != ([2][2]uint32{}) {
					got := toWords(out[0])[:8]
					require.Equal(t, append(append(c.want[0][:], c.want[1][:]...), append(c.want[0][:], c.want[1][:]...)...), got, "%+v", opt)
				}
			}
			for class, edits := range c.wrong {
				bad := p
				for from, to := range edits {
					bad.body = replace(bad.body, from, to)
				}
				for _, opt := range timings {
					bad.opt = opt
					_, report := bad.run(t, make([]byte, 512), in1)
					require.NotEmpty(t, report.Faults, "%s, %+v", class, opt)
					for _, f := range report.Faults {
						require.Equal(t, class, f.Class, "%+v: %s", opt, f.Message)
					}
				}
			}
		})
	}
}

// TestMulticastExpected: each block of a multicast expects the bytes that it gets.
// One that expects none goes on before they come, or waits for ever if they came
// before it arrived: one class of fault, whichever it is.
func TestMulticastExpected(t *testing.T) {
	const forget = "mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %p, %rank, 0; selp.u32 %c, 128, 0, %p;"
	p := small{
		target: "sm_90a", decls: sharedDecl, regs: clusterRegs + ".reg .b32 %fbar; .reg .pred %p, %s;", dynamic: 512, cluster: 2, grid: 2, block: 1,
		body: "mov.u32 %a, sm; mov.u32 %c, 128; /*here*/" + told("%c", multicast+waitTold+storeBoth+clusterSync),
	}
	for i, opt := range timings {
		p.opt = opt
		_, report := p.run(t, make([]byte, 512), make([]byte, 512))
		require.Empty(t, report.Faults, "%+v", opt)
		bad := p
		bad.body = replace(p.body, "/*here*/", forget)
		_, report = bad.run(t, make([]byte, 512), make([]byte, 512))
		require.NotEmpty(t, report.Faults, "%+v", opt)
		class := report.Faults[0].Class
		require.Contains(t, []bench.FaultClass{bench.AsyncCopyRace, bench.MbarrierMisuse}, class, "%+v", opt)
		if i == 0 {
			require.Equal(t, bench.AsyncCopyRace, class)
		}
		for _, f := range report.Faults {
			require.Equal(t, class, f.Class, "%+v: %s", opt, f.Message)
		}
	}
}

// TestClusterWorkers: how many workers there are changes nothing in a program
// whose clusters touch global memory by atomics, and whose blocks race.
func TestClusterWorkers(t *testing.T) {
	p := small{
		target: "sm_90a", decls: sharedDecl, regs: clusterRegs + ".reg .pred %p;", dynamic: 512, cluster: 4, grid: 24, block: 64,
		body: clusterStart + `mad.lo.u32 %a, %t, 4, %a; mad.lo.u32 %far, %t, 4, %far; st.shared.u32 [%a], %t;` + clusterSync +
			`ld.shared::cluster.u32 %b, [%far]; st.shared::cluster.u32 [%far], %rank; atom.global.add.u32 %b, [%in0], %b; st.global.u32 [%in1], %b;` + clusterSync,
	}
	var first *bench.Report
	var data [][]byte
	for _, n := range []int{1, 2, 5} {
		p.opt = vm.Options{Workers: n, Schedule: vm.Shuffle, Seed: 5}
		out, report := p.run(t, make([]byte, 512), make([]byte, 512))
		require.Equal(t, uint32(24*63*32), toWords(out[0])[0])
		require.NotEmpty(t, report.Faults)
		require.EqualValues(t, 24, report.Counters.Blocks)
		if first == nil {
			first, data = report, out
		}
		require.Equal(t, first, report)
		require.Equal(t, data, out)
	}
}
