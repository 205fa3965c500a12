package vm_test

import "github.com/kgen-dev/kgen/bench"

// Programs whose threads do not meet as they should.
var meetingMisdeeds = []misdeed{
	{
		name: "a barrier in a loop that some lanes leave early", class: bench.BarrierDivergence, p: small{
			regs: ".reg .b32 %i, %n;", block: 64, body: "and.b32 %n, %t, 1; add.u32 %n, %n, 2; mov.u32 %i, 0; L: bar.sync 0; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L; mov.u32 %i, 3;",
		},
		fix: map[string]string{"and.b32 %n, %t, 1": "mov.u32 %n, 1"},
	},
	{
		name: "bar.red that half a warp skips", class: bench.BarrierDivergence, p: small{
			block: 32, body: "setp.lt.u32 %p, %t, 16; @!%p bra L; bar.red.popc.u32 %x, 0, %q; L: mov.u32 %x, 0;",
		},
		fix: map[string]string{"%t, 16": "%t, 32"},
	},
	{
		name: "two barriers in the arms of a branch", class: bench.BarrierDivergence, p: small{
			block: 32, body: "setp.lt.u32 %p, %t, 16; @%p bra A; bar.sync 0; bra E; A: bar.sync 0; E: mov.u32 %x, 0;",
		},
		fix: map[string]string{"%t, 16": "%t, 32"},
	},
	{
		name: "a shuffle with a mask of more lanes than are there", class: bench.DivergentCollective, p: small{
			block: 32, body: "setp.lt.u32 %p, %t, 8; @!%p bra L; shfl.sync.down.b32 %x, %t, 4, 31, 0xffff; L: mov.u32 %x, 1;",
		},
		fix: map[string]string{"0xffff": "0xff"},
	},
	{
		name: "masks that differ", class: bench.DivergentCollective, p: small{
			regs: ".reg .b32 %m;", block: 32, body: "setp.lt.u32 %p, %t, 8; selp.b32 %m, 0xffff, -1, %p; vote.sync.any.pred %p, %q, %m;",
		},
		fix: map[string]string{"0xffff": "-1"},
	},
	{
		name: "redux in a branch", class: bench.DivergentCollective, p: small{
			block: 32, body: "setp.lt.u32 %p, %t, 8; @!%p bra L; redux.sync.add.u32 %x, %t, -1; L: mov.u32 %x, 1;",
		},
		fix: map[string]string{"%t, -1": "%t, 0xff"},
	},
	{
		name: "mma by half a warp", class: bench.DivergentCollective, p: small{
			regs: ".reg .b32 %a; .reg .f32 %c<4>;", block: 32, body: "mov.b32 %a, 0; setp.lt.u32 %p, %t, 16; @!%p bra L; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%c0,%c1,%c2,%c3}, {%a,%a}, {%a}, {0f00000000,0f00000000,0f00000000,0f00000000}; L: mov.b32 %a, 1;",
		},
		fix: map[string]string{"%t, 16": "%t, 32"},
	},
	{
		name: "a lane read that is not in the mask", class: bench.UninitialisedRegister, p: small{
			block: 32, body: "setp.lt.u32 %p, %t, 8; @!%p bra L; shfl.sync.idx.b32 %x, %t, 9, 31, 0xff; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x; L: mov.u32 %x, 1;",
		},
		fix: map[string]string{"%t, 9, 31": "%t, 7, 31"},
	},
	{
		name: "an arrival with a count too high", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 32, body: "@!%q bra L; mbarrier.init.shared.b64 [sm], 31; L: bar.sync 0; mbarrier.arrive.shared.b64 _, [sm];",
		},
		fix: map[string]string{"[sm], 31": "[sm], 32"},
	},
	{
		name: "a plain load of a live mbarrier", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "mbarrier.init.shared.b64 [sm], 1; /*here*/ ld.shared.u32 %x, [sm+4];",
		},
		fix: map[string]string{"/*here*/": "mbarrier.inval.shared.b64 [sm]; st.shared.u64 [sm], %in0;"},
	},
	{
		name: "a wait before init", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "/*here*/ W: mbarrier.try_wait.parity.shared.b64 %p, [sm], 1; @!%p bra W;",
		},
		fix: map[string]string{"/*here*/": "mbarrier.init.shared.b64 [sm], 1;"},
	},
	{
		name: "more bytes expected than come", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 256, block: 1,
			body: `mbarrier.init.shared.b64 [sm+128], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [sm+128], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 128, [sm+128];
W: mbarrier.try_wait.parity.shared.b64 %p, [sm+128], 0; @!%p bra W;`,
		},
		fix: map[string]string{"[sm+128], 256": "[sm+128], 128"},
	},
	{
		name: "fewer bytes expected than come", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 256, block: 1,
			body: `mbarrier.init.shared.b64 [sm+128], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [sm+128], 64;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 128, [sm+128];
W: mbarrier.try_wait.parity.shared.b64 %p, [sm+128], 0; @!%p bra W;`,
		},
		fix: map[string]string{"[sm+128], 64": "[sm+128], 128"},
	},
	{
		name: "a token of two phases ago", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, regs: ".reg .b64 %s;", block: 1,
			body: "mbarrier.init.shared.b64 [sm], 1; mbarrier.arrive.shared.b64 %s, [sm]; mbarrier.arrive.shared.b64 _, [sm]; /*here*/ mbarrier.test_wait.shared.b64 %p, [sm], %s;",
		},
		fix: map[string]string{"mbarrier.arrive.shared.b64 _, [sm]; /*here*/": ""},
	},
	{
		name: "an arrival that never comes", class: bench.Deadlock, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 64,
			body: "@!%q bra L; mbarrier.init.shared.b64 [sm], 64; L: bar.sync 0; setp.lt.u32 %p, %t, 63; @%p mbarrier.arrive.shared.b64 _, [sm]; W: mbarrier.try_wait.parity.shared.b64 %p, [sm], 0; @!%p bra W;",
		},
		fix: map[string]string{"%t, 63": "%t, 64"},
	},
	{
		name: "a barrier that fewer warps come to than it counts", class: bench.Deadlock, p: small{
			block: 96, body: "setp.ge.u32 %p, %t, 64; @%p bra END; bar.sync 1, 96; END:",
		},
		fix: map[string]string{"bar.sync 1, 96": "bar.sync 1, 64"},
	},
	{
		name: "two warps wait at different barriers", class: bench.Deadlock, p: small{
			block: 64, body: "setp.ge.u32 %p, %t, 32; @%p bra B; bar.sync 1, 64; bra END; B: bar.sync 2, 64; END:",
		},
		fix: map[string]string{"bar.sync 2, 64": "bar.sync 1, 64"},
	},
	{
		name: "a flag that nobody sets", class: bench.Deadlock, p: small{
			grid: 2, block: 1, regs: ".reg .b32 %a;", body: "mov.u32 %a, %ctaid.x; setp.eq.u32 %p, %a, 0; @%p st.release.gpu.global.u32 [%in0+4], 1; W: ld.acquire.gpu.global.u32 %a, [%in0]; setp.eq.u32 %p, %a, 0; @%p bra W;",
		},
		fix: map[string]string{"[%in0+4], 1": "[%in0], 1"},
	},
	{
		name: "the second phase of an mbarrier never begins", class: bench.Deadlock, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 32,
			body: `@!%q bra L; mbarrier.init.shared.b64 [sm], 32; L: bar.sync 0; mbarrier.arrive.shared.b64 _, [sm]; W: mbarrier.try_wait.parity.shared.b64 %p, [sm], 0; @!%p bra W;
/*here*/ V: mbarrier.try_wait.parity.shared.b64 %p, [sm], 1; @!%p bra V;`,
		},
		fix: map[string]string{"/*here*/": "mbarrier.arrive.shared.b64 _, [sm];"},
	},
	{
		name: "a tensor map that is no tensor map", class: bench.BadDescriptor, p: small{
			target: "sm_90a", decls: sharedDecl, dynamic: 512, block: 1,
			body: "st.shared.u32 [sm], 1; fence.proxy.async; cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%in1, {0}], [sm]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
		},
		fix: map[string]string{"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%in1, {0}], [sm]": "cp.async.bulk.global.shared::cta.bulk_group [%in1], [sm], 16", "st.shared.u32 [sm], 1": "st.shared.v4.u32 [sm], {1,1,1,1}"},
	},
}
