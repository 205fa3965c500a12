package vm_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// clusterRegs are registers that the programs below share; clusterStart puts
// the block's rank, that of its right neighbour in a cluster of n, and the
// address of the neighbour's sm in them.
const clusterRegs = ".reg .b32 %a, %b, %c, %rank, %peer, %n, %far; .reg .b64 %g, %h; "

const clusterStart = `mov.u32 %rank, %cluster_ctarank; mov.u32 %n, %cluster_nctarank;
add.u32 %peer, %rank, 1; setp.eq.u32 %p, %peer, %n; @%p mov.u32 %peer, 0;
mov.u32 %a, sm; mapa.shared::cluster.u32 %far, %a, %peer;
`

const clusterSync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"

// clusterMisdeeds are programs of two or more blocks in a cluster, each wrong
// as it stands and right with its fix.
var clusterMisdeeds = []misdeed{
	{
		name: "a remote load without a barrier of the cluster", class: bench.SharedRace, p: small{
			body: "st.shared.u32 [%a], %rank; " + clusterSync + " st.shared.u32 [%a+4], %rank; /*here*/ ld.shared::cluster.u32 %b, [%far+4]; " + clusterSync + "st.global.u32 [%in0], 1;",
		},
		fix: map[string]string{"/*here*/": clusterSync},
	},
	{
		name: "a remote store that races with a load", class: bench.SharedRace, p: small{
			body: "st.shared.u32 [%a], 7; " + clusterSync + " st.shared::cluster.u32 [%far], %rank; /*here*/ ld.shared.u32 %b, [%a]; " + clusterSync,
		},
		fix: map[string]string{"/*here*/": clusterSync},
	},
	{
		name: "a relaxed arrival does not release", class: bench.SharedRace, p: small{
			body: "st.shared.u32 [%a], 7; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned; ld.shared::cluster.u32 %b, [%far]; " + clusterSync,
		},
		fix: map[string]string{"arrive.relaxed": "arrive.release"},
	},
	{
		name: "a store between arrival and wait", class: bench.SharedRace, p: small{
			body: "barrier.cluster.arrive.aligned; st.shared.u32 [%a], 7; barrier.cluster.wait.aligned; ld.shared::cluster.u32 %b, [%far]; " + clusterSync,
		},
		fix: map[string]string{"barrier.cluster.arrive.aligned; st.shared.u32 [%a], 7;": "st.shared.u32 [%a], 7; barrier.cluster.arrive.aligned;"},
	},
	{
		name: "a block's own barrier is not the cluster's", class: bench.SharedRace, p: small{
			body: "st.shared.u32 [%a], 7; bar.sync 0; ld.shared::cluster.u32 %b, [%far]; " + clusterSync,
		},
		fix: map[string]string{"bar.sync 0;": clusterSync},
	},
	{
		name: "a load from a block that may have exited", class: bench.SharedOutOfBounds, p: small{
			body: "st.shared.u32 [%a], 7; " + clusterSync + " ld.shared::cluster.u32 %b, [%far]; /*here*/",
		},
		fix: map[string]string{"/*here*/": clusterSync},
	},
	{
		name: "an atomic on a block that may have exited", class: bench.SharedOutOfBounds, p: small{
			body: "st.shared.u32 [%a], 7; " + clusterSync + " red.relaxed.cluster.shared::cluster.add.u32 [%far], 1; /*here*/",
		},
		fix: map[string]string{"/*here*/": clusterSync},
	},
	{
		name: "atomics of too small a scope within a cluster", class: bench.SharedRace, p: small{
			body: "setp.eq.u32 %p, %rank, 0; @%p st.shared.u32 [%a], 0; mapa.shared::cluster.u32 %far, %a, 0;" + clusterSync + "red.relaxed.cta.shared::cluster.add.u32 [%far], 1; " + clusterSync,
		},
		fix: map[string]string{"red.relaxed.cta": "red.relaxed.cluster"},
	},
	{
		name: "a flag released for the block alone", class: bench.SharedRace, p: small{
			body: `st.shared.u32 [%a], 0; ` + clusterSync + `
setp.eq.u32 %p, %rank, 0; @!%p bra READ; st.shared.u32 [%a+8], 5; st.release.cta.shared::cluster.u32 [%far], 1; bra END;
READ: ld.acquire.cluster.shared.u32 %b, [%a]; setp.eq.u32 %p, %b, 0; @%p bra READ; ld.shared::cluster.u32 %b, [%far+8];
END:` + clusterSync,
		},
		fix: map[string]string{"st.release.cta": "st.release.cluster"},
	},
	{
		name: "a generic address in another block's memory", class: bench.SharedRace, p: small{
			body: "cvta.shared.u64 %g, %h; mov.u64 %g, sm; cvta.shared.u64 %g, %g; mapa.u64 %h, %g, %peer; st.u32 [%g], %rank; /*here*/ ld.u32 %b, [%h];" + clusterSync,
		},
		fix: map[string]string{"cvta.shared.u64 %g, %h;": "", "/*here*/": clusterSync},
	},
	{
		name: "another block's memory as one's own", class: bench.SharedOutOfBounds, p: small{
			body: "st.shared.u32 [%a], 7; " + clusterSync + " ld.shared.u32 %b, [%far]; " + clusterSync,
		},
		fix: map[string]string{"ld.shared.": "ld.shared::cluster."},
	},
	{
		name: "past the end of another block's memory", class: bench.SharedOutOfBounds, p: small{
			body: "st.shared.u32 [%a+508], 7; " + clusterSync + " ld.shared::cluster.u32 %b, [%far+512]; " + clusterSync,
		},
		fix: map[string]string{"+512": "+508"},
	},
	{
		name: "a rank that the cluster does not have", class: bench.SharedOutOfBounds, p: small{
			body: "st.shared.u32 [%a], 7; mapa.shared::cluster.u32 %far, %a, 2; " + clusterSync + "ld.shared::cluster.u32 %b, [%far];" + clusterSync,
		},
		fix: map[string]string{"%a, 2": "%a, 1"},
	},
	{
		name: "a block that does not come to the cluster's barrier", class: bench.Deadlock, p: small{
			body: "mbarrier.init.shared.b64 [%a], 1; setp.eq.u32 %p, %rank, 0; @%p bra WAIT; W: mbarrier.try_wait.parity.shared.b64 %p, [%a], 0; @!%p bra W; WAIT:" + clusterSync,
		},
		fix: map[string]string{"@%p bra WAIT;": "bra WAIT;"},
	},
	{
		name: "arriving twice at the cluster's barrier", class: bench.BarrierDivergence, p: small{
			body: "barrier.cluster.arrive.aligned; /*here*/ barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
		},
		fix: map[string]string{"/*here*/": "barrier.cluster.wait.aligned;"},
	},
	{
		name: "waiting at the cluster's barrier without arriving", class: bench.BarrierDivergence, p: small{
			body: "/*here*/ barrier.cluster.wait.aligned;",
		},
		fix: map[string]string{"/*here*/": "barrier.cluster.arrive.aligned;"},
	},
	{
		name: "a remote arrival before the initialisation", class: bench.MbarrierMisuse, p: small{
			body: "mbarrier.init.shared.b64 [%a], 1; /*here*/ mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far]; W: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p, [%a], 0; @!%p bra W;" + clusterSync,
		},
		fix: map[string]string{"/*here*/": "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"},
	},
	{
		name: "a fence of a block's own memory after a write to another's", class: bench.MissingProxyFence, p: small{
			body: farFilled + "fence.proxy.async.shared::cta;" + clusterSync + farStored,
		},
		fix: map[string]string{"shared::cta;": "shared::cluster;"},
	},
	{
		name: "another block's write with no fence by the block that it went to", class: bench.MissingProxyFence, p: small{
			body: farFilled + clusterSync + "/*here*/" + farStored,
		},
		fix: map[string]string{"/*here*/": "fence.proxy.async.shared::cta;"},
	},
	{
		name: "remote data before the mbarrier that tells of them", class: bench.SharedRace, p: small{
			body: "mbarrier.init.shared.b64 [%a], 1; fence.mbarrier_init.release.cluster;" + clusterSync +
				"st.shared::cluster.u32 [%far+16], %rank; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far]; ld.shared.u32 %b, [%a+16]; W: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p, [%a], 0; @!%p bra W; /*here*/" + clusterSync,
		},
		fix: map[string]string{"ld.shared.u32 %b, [%a+16];": "", "/*here*/": "ld.shared.u32 %b, [%a+16];"},
	},
}

// A write of another block's shared memory, and a bulk store of what was written.
const (
	farFilled = "st.shared::cluster.v4.u32 [%far], {%rank, %rank, %rank, %rank};"
	farStored = "mov.u32 %c, %ctaid.x; mad.wide.u32 %in1, %c, 16, %in1; cp.async.bulk.global.shared::cta.bulk_group [%in1], [%a], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
)

func TestClusterFaults(t *testing.T) {
	for _, m := range clusterMisdeeds {
		t.Run(m.name, func(t *testing.T) {
			m.p.target, m.p.decls, m.p.regs = "sm_90a", sharedDecl, clusterRegs+m.p.regs
			m.p.dynamic, m.p.cluster, m.p.grid, m.p.block = 512, 2, 4, 1
			m.p.body = clusterStart + m.p.body
			buffers := [][]byte{make([]byte, 512), make([]byte, 512)}
			for _, opt := range timings {
				p := m.prepare(false)
				p.opt = opt
				_, report := p.run(t, buffers...)
				require.NotEmpty(t, report.Faults, "%+v", opt)
				for _, f := range report.Faults {
					require.Equal(t, m.class, f.Class, "%+v: %s", opt, f.Message)
				}
				p = m.prepare(true)
				p.opt = opt
				_, report = p.run(t, buffers...)
				require.Empty(t, report.Faults, "the right program, %+v", opt)
			}
		})
	}
}

// TestClusterPlaces: what each block of a cluster of 2x1x2 in a grid of 4x3x2
// reads about itself.
func TestClusterPlaces(t *testing.T) {
	names := []string{
		"cluster_ctaid.x", "cluster_ctaid.y", "cluster_ctaid.z", "cluster_nctaid.x", "cluster_nctaid.y", "cluster_nctaid.z",
		"clusterid.x", "clusterid.y", "clusterid.z", "nclusterid.x", "nclusterid.y", "nclusterid.z", "cluster_ctarank", "cluster_nctarank",
	}
	body := `mov.u32 %b, %ctaid.x; mov.u32 %c, %ctaid.y; mad.lo.u32 %b, %c, 4, %b; mov.u32 %c, %ctaid.z; mad.lo.u32 %b, %c, 12, %b;
mad.wide.u32 %g, %b, 64, %in0; mov.pred %p, %is_explicit_cluster; selp.u32 %c, 1, 0, %p; st.global.u32 [%g+56], %c;
mov.u64 %h, sm; mapa.shared::cluster.u64 %h, %h, 2; getctarank.shared::cluster.u64 %c, %h; st.global.u32 [%g+60], %c;`
	for i, n := range names {
		body += "mov.u32 %c, %" + n + "; st.global.u32 [%g+" + strconv.Itoa(4*i) + "], %c;\n"
	}
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	p := small{target: "sm_90", decls: sharedDecl, regs: clusterRegs + ".reg .pred %p;", body: body}
	m, err := dev.Load(t.Context(), "small.ptx", []byte(replace(p.text(1), ".visible .entry k(.param .u64 p0)", ".visible .entry k(.param .u64 p0) .explicitcluster .reqnctapercluster 2, 1, 2")))
	require.NoError(t, err)
	require.Equal(t, [3]uint32{2, 1, 2}, m.Kernels[0].ReqCluster)
	b, err := dev.Alloc(24*64, 256)
	require.NoError(t, err)
	_, err = dev.Launch(t.Context(), m, "k", bench.Launch{Grid: [3]uint32{4, 3, 2}, SharedBytes: 128, Args: []bench.Arg{bench.Pointer(b)}})
	require.NoError(t, err)
	out := make([]byte, 24*64)
	require.NoError(t, dev.Read(b, 0, out))
	for i := range uint32(24) {
		x, y, z := i%4, i/4%3, i/12
		require.Equal(t, []uint32{x % 2, 0, z, 2, 1, 2, x / 2, y, 0, 2, 3, 1, x%2 + 2*z, 4, 1, 2}, toWords(out[64*i:])[:16], "block %d %d %d", x, y, z)
	}
	for want, c := range map[string]bench.Launch{
		"cluster [4 1 1]: the kernel requires [2 1 2]":       {Grid: [3]uint32{4, 3, 2}, Cluster: [3]uint32{4}},
		"cluster [2 1 2]: want divisors of the grid [4 3 1]": {Grid: [3]uint32{4, 3, 1}},
	} {
		c.Args = []bench.Arg{bench.Pointer(b)}
		_, err = dev.Launch(t.Context(), m, "k", c)
		require.ErrorContains(t, err, want)
	}
}

// TestBlocksAreClusters: a launch of 3 x 1 x 2 is one of so many clusters.
func TestBlocksAreClusters(t *testing.T) {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	p := small{target: "sm_90", regs: ".reg .b32 %a, %b, %n; .reg .b64 %g;", body: `mov.u32 %n, %nctaid.x; mov.u32 %a, %ctaid.x; mov.u32 %b, %ctaid.z;
mad.lo.u32 %a, %b, %n, %a; mov.u32 %n, %ntid.x; mad.lo.u32 %a, %a, %n, %t; mad.wide.u32 %g, %a, 4, %in0; st.global.u32 [%g], %a;`}
	src := replace(p.text(1), ".visible .entry k(.param .u64 p0)", ".visible .entry k(.param .u64 p0) .blocksareclusters .reqntid 8 .reqnctapercluster 2")
	m, err := dev.Load(t.Context(), "small.ptx", []byte(src))
	require.NoError(t, err)
	const threads = 3 * 2 * 2 * 8
	for _, block := range []uint32{1, 8} {
		b, err := dev.Alloc(4*threads, 4)
		require.NoError(t, err)
		report, err := dev.Launch(t.Context(), m, "k", bench.Launch{Grid: [3]uint32{3, 1, 2}, Block: [3]uint32{block}, Args: []bench.Arg{bench.Pointer(b)}})
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		require.Equal(t, int64(12), report.Counters.Blocks)
		out := make([]byte, 4*threads)
		require.NoError(t, dev.Read(b, 0, out))
		for i, v := range toWords(out) {
			require.Equal(t, uint32(i), v)
		}
	}
	for want, l := range map[string]bench.Launch{
		"block [16 1 1]: the kernel requires [8 1 1]": {Grid: [3]uint32{3, 1, 2}, Block: [3]uint32{16}},
		"4294967294 blocks in dimension 0":            {Grid: [3]uint32{1<<31 - 1}},
	} {
		l.Args = []bench.Arg{make([]byte, 8)}
		_, err = dev.Launch(t.Context(), m, "k", l)
		require.ErrorContains(t, err, want)
	}
}

// TestClusterSpaces: an address in another block's shared memory is in the
// cluster's, not in the block's own, and mapa of the own rank changes nothing.
func TestClusterSpaces(t *testing.T) {
	p := small{
		target: "sm_90", decls: sharedDecl, regs: clusterRegs + ".reg .pred %p; .reg .b64 %own;", dynamic: 256, cluster: 4, grid: 4, block: 1,
		body: clusterStart + `mov.u64 %own, sm; cvta.shared.u64 %own, %own; mapa.u64 %h, %own, %peer; mapa.u64 %g, %own, %rank; getctarank.u64 %n, %h;
mov.u32 %c, 0; isspacep.shared::cta %p, %own; @%p or.b32 %c, %c, 1; isspacep.shared::cluster %p, %own; @%p or.b32 %c, %c, 2;
isspacep.shared::cta %p, %h; @%p or.b32 %c, %c, 4; isspacep.shared::cluster %p, %h; @%p or.b32 %c, %c, 8; isspacep.global %p, %h; @%p or.b32 %c, %c, 16;
setp.eq.u64 %p, %g, %own; @%p or.b32 %c, %c, 32; setp.eq.u32 %p, %n, %peer; @%p or.b32 %c, %c, 64;
cvta.to.shared::cluster.u64 %h, %h; cvt.u32.u64 %b, %h; setp.eq.u32 %p, %b, %far; @%p or.b32 %c, %c, 128;
mad.wide.u32 %g, %rank, 4, %in0; st.global.u32 [%g], %c;`,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		require.Equal(t, []uint32{235, 235, 235, 235}, toWords(out[0]))
	}, make([]byte, 16))
}
