package vm_test

import "github.com/kgen-dev/kgen/bench"

// Programs whose accesses nothing orders.
var orderMisdeeds = []misdeed{
	{
		name: "a reduction without its last syncwarp", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 128, regs: ".reg .b32 %a, %b, %c;", block: 32,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; bar.warp.sync -1;
setp.lt.u32 %p, %t, 16; @%p ld.shared.u32 %b, [%a+64]; @%p ld.shared.u32 %c, [%a]; @%p add.u32 %b, %b, %c; @%p st.shared.u32 [%a], %b; /*here*/
setp.lt.u32 %p, %t, 8; @%p ld.shared.u32 %b, [%a+32]; @%p st.shared.u32 [%a], %b;`,
		},
		fix: map[string]string{"/*here*/": "bar.warp.sync -1;"},
	},
	{
		name: "a named barrier that half of the readers skip", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b;", block: 96,
			body: `setp.ge.u32 %p, %t, 32; @%p bra READ; mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; bar.arrive 1, 64; bra END;
READ: setp.ge.u32 %p, %t, 64; @%p bra LATE; bar.sync 1, 64; bra TAKE; LATE: /*here*/ 
TAKE: ld.shared.u32 %b, [sm+64]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b; END:`,
		},
		fix: map[string]string{"/*here*/": "bra END;"},
	},
	{
		name: "a flag in shared memory without fences", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .b32 %a;", block: 64,
			body: `@%q st.relaxed.cta.shared.u32 [sm], 0; bar.sync 0; setp.ge.u32 %p, %t, 32; @%p bra WAIT;
@%q st.shared.u32 [sm+4], 7; @%q st.relaxed.cta.shared.u32 [sm], 1; bra END;
WAIT: ld.relaxed.cta.shared.u32 %a, [sm]; setp.eq.u32 %p, %a, 0; @%p bra WAIT; ld.shared.u32 %a, [sm+4]; END:`,
		},
		fix: map[string]string{"@%q st.relaxed.cta.shared.u32 [sm], 1": "@%q st.release.cta.shared.u32 [sm], 1", "WAIT: ld.relaxed": "WAIT: ld.acquire"},
	},
	{
		name: "a barrier of half the block", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b, %n;", block: 128,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; shr.u32 %n, %t, 6; add.u32 %n, %n, 1; bar.sync %n, 64; xor.b32 %b, %t, 64; mov.u32 %a, sm; mad.lo.u32 %a, %b, 4, %a; ld.shared.u32 %b, [%a];",
		},
		fix: map[string]string{"%t, 64;": "%t, 32;"},
	},
	{
		name: "writes of two values by two warps", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .b32 %a;", block: 64, body: "shr.u32 %a, %t, 5; st.shared.u32 [sm], %a;",
		},
		fix: map[string]string{"%a, %t, 5": "%a, %t, 6"},
	},
	{
		name: "lanes that store sums of other terms", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .f32 %f;", block: 32, body: "cvt.rn.f32.u32 %f, %t; fma.rn.f32 %f, %f, 0f3E800000, 0f3F800000; st.shared.f32 [sm], %f;",
		},
		fix: map[string]string{"0f3E800000": "0f35000000"}, // 2^-21: rounding
	},
	{
		name: "lanes that store pairs of sums of other terms", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .f32 %f, %g; .reg .b64 %b;", block: 32,
			body: "cvt.rn.f32.u32 %f, %t; fma.rn.f32 %g, %f, 0f3E800000, 0f3F800000; fma.rn.f32 %f, %f, 0f35000000, 0f40400000; mov.b64 %b, {%f, %g}; st.shared.v2.b64 [sm], {%b, %b};",
		},
		fix: map[string]string{"0f3E800000": "0f35000000"},
	},
	{
		name: "lanes that store f64 sums of other terms", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .f64 %f;", block: 32, body: "cvt.rn.f64.u32 %f, %t; fma.rn.f64 %f, %f, 0d3E00000000000000, 0d3FF0000000000000; st.shared.f64 [sm], %f;",
		},
		fix: map[string]string{"0d3E00000000000000": "0d3D00000000000000"}, // 2^-47
	},
	{
		name: "lanes that store 64-bit whole numbers", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .b64 %b;", block: 32, body: "cvt.u64.u32 %b, %t; st.shared.u64 [sm], %b;",
		},
		fix: map[string]string{"[sm], %b": "[sm], 7"},
	},
	{
		name: "lanes that store small whole numbers", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, block: 32, body: "st.shared.u32 [sm], %t;",
		},
		fix: map[string]string{"[sm], %t": "[sm], 7"},
	},
	{
		name: "warps that store sums rounded otherwise", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, regs: ".reg .b32 %a; .reg .f32 %f;", block: 64,
			body: "shr.u32 %a, %t, 5; cvt.rn.f32.u32 %f, %a; fma.rn.f32 %f, %f, 0f35000000, 0f3F800000; st.shared.f32 [sm], %f;",
		},
		fix: map[string]string{"%t, 5": "%t, 6"},
	},
	{
		name: "a vote is no barrier", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 128, regs: ".reg .b32 %a, %b;", block: 32,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; vote.sync.ballot.b32 %b, %q, -1; xor.b32 %b, %t, 1; mov.u32 %a, sm; mad.lo.u32 %a, %b, 4, %a; ld.shared.u32 %b, [%a];",
		},
		fix: map[string]string{"vote.sync.ballot.b32 %b, %q, -1": "bar.warp.sync -1"},
	},
	{
		name: "an atomic and a plain read in shared memory", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 64, block: 64, body: "@%q st.shared.u32 [sm], 0; bar.sync 0; red.shared.add.u32 [sm], 1; /*here*/ ld.shared.u32 %x, [sm]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x;",
		},
		fix: map[string]string{"/*here*/": "bar.sync 0;"},
	},
	{
		name: "neighbours in global memory without a barrier", class: bench.GlobalRace, p: small{
			block: 64, regs: ".reg .b32 %b;", body: "mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %t; /*here*/ xor.b32 %b, %t, 32; mad.wide.u32 %ad, %b, 4, %in0; ld.global.u32 %b, [%ad]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;",
		},
		fix: map[string]string{"/*here*/": "bar.sync 0;"},
	},
	{
		name: "a flag between blocks without fences", class: bench.GlobalRace, p: small{
			grid: 2, block: 1, regs: ".reg .b32 %a;",
			body: `mov.u32 %a, %ctaid.x; setp.ne.u32 %p, %a, 0; @%p bra WAIT; st.global.u32 [%in1], 7; st.relaxed.gpu.global.u32 [%in0], 1; bra END;
WAIT: ld.relaxed.gpu.global.u32 %a, [%in0]; setp.eq.u32 %p, %a, 0; @%p bra WAIT; ld.global.u32 %a, [%in1]; st.global.u32 [%in1+64], %a; END:`,
		},
		fix: map[string]string{"st.relaxed": "st.release", "WAIT: ld.relaxed": "WAIT: ld.acquire"},
	},
	{
		name: "fences before a barrier, and a flag behind it by one thread", class: bench.GlobalRace, p: small{
			grid: 2, block: 64, regs: ".reg .b32 %a;",
			body: `mov.u32 %a, %ctaid.x; mad.wide.u32 %ad, %t, 4, %in0; setp.eq.u32 %p, %a, 0; @%p bra READ;
st.global.u32 [%ad+256], %t; fence.acq_rel.gpu; bar.sync 0; @%q st.relaxed.gpu.global.u32 [%in0], 1; bra END;
READ: @!%q bra MEET; W: ld.relaxed.gpu.global.u32 %a, [%in0]; setp.eq.u32 %p, %a, 0; @%p bra W; fence.acq_rel.gpu;
MEET: bar.sync 0; ld.global.u32 %a, [%ad+256]; END:`,
		},
		fix: map[string]string{"fence.acq_rel.gpu": "membar.gl"},
	},
	{
		name: "fences before a syncwarp, and a count behind it by one lane", class: bench.GlobalRace, p: small{
			grid: 2, block: 32, regs: ".reg .b32 %a;",
			body: `mov.u32 %a, %ctaid.x; mad.wide.u32 %ad, %t, 4, %in0; setp.eq.u32 %p, %a, 0; @%p bra READ;
st.global.u32 [%ad+256], %t; fence.acq_rel.gpu; bar.warp.sync -1; @%q red.relaxed.gpu.global.add.u32 [%in0], 1; bra END;
READ: @!%q bra MEET; W: ld.relaxed.gpu.global.u32 %a, [%in0]; setp.eq.u32 %p, %a, 0; @%p bra W; fence.sc.gpu;
MEET: bar.warp.sync -1; ld.global.u32 %a, [%ad+256]; END:`,
		},
		fix: map[string]string{"fence.acq_rel.gpu": "fence.sc.gpu"},
	},
	{
		name: "a flag read by one thread, and fences by all behind a barrier", class: bench.GlobalRace, p: small{
			grid: 2, block: 64, regs: ".reg .b32 %a;",
			body: `mov.u32 %a, %ctaid.x; mad.wide.u32 %ad, %t, 4, %in0; setp.eq.u32 %p, %a, 0; @%p bra READ;
@!%q bra END; st.global.u32 [%in0+256], %t; fence.sc.gpu; st.relaxed.gpu.global.u32 [%in0], 1; bra END;
READ: @!%q bra MEET; W: ld.relaxed.gpu.global.u32 %a, [%in0]; setp.eq.u32 %p, %a, 0; @%p bra W;
MEET: bar.sync 0; fence.acq_rel.gpu; ld.global.u32 %a, [%in0+256]; END:`,
		},
		fix: map[string]string{"fence.acq_rel.gpu": "fence.sc.gpu"},
	},
	{
		name: "a fence of the block between blocks", class: bench.GlobalRace, p: small{
			grid: 2, block: 1, regs: ".reg .b32 %a;",
			body: `mov.u32 %a, %ctaid.x; setp.ne.u32 %p, %a, 0; @%p bra WAIT; st.global.u32 [%in1], 7; membar.cta; st.volatile.global.u32 [%in0], 1; bra END;
WAIT: ld.volatile.global.u32 %a, [%in0]; setp.eq.u32 %p, %a, 0; @%p bra WAIT; membar.gl; ld.global.u32 %a, [%in1]; st.global.u32 [%in1+64], %a; END:`,
		},
		fix: map[string]string{"membar.cta": "membar.gl"},
	},
	{
		name: "a last block that doesn't fence", class: bench.GlobalRace, p: small{
			grid: 4, block: 1, regs: ".reg .b32 %a, %b, %c, %d;",
			body: `mov.u32 %a, %ctaid.x; mad.wide.u32 %ad, %a, 4, %in1; st.global.u32 [%ad], 5; /*here*/ atom.relaxed.gpu.global.add.u32 %b, [%in0], 1; setp.ne.u32 %p, %b, 3; @%p bra END;
fence.acq_rel.gpu; ld.global.u32 %a, [%in1]; ld.global.u32 %b, [%in1+4]; ld.global.u32 %c, [%in1+8]; ld.global.u32 %d, [%in1+12]; add.u32 %a, %a, %b; add.u32 %c, %c, %d; add.u32 %a, %a, %c; st.global.u32 [%in1+64], %a; END:`,
		},
		fix: map[string]string{"/*here*/": "fence.acq_rel.gpu;"},
	},
	{
		name: "overlapping halves of blocks", class: bench.GlobalRace, p: small{
			grid: 2, block: 33, regs: ".reg .b32 %b;", body: "mov.u32 %b, %ctaid.x; mad.lo.u32 %b, %b, 32, %t; mad.wide.u32 %ad, %b, 4, %in0; st.global.u32 [%ad], %t;",
		},
		fix: map[string]string{"%b, 32, %t": "%b, 33, %t"},
	},
	{
		name: "a lock without acquire", class: bench.GlobalRace, p: small{
			grid: 3, block: 1, regs: ".reg .b32 %a, %b;",
			body: `L: atom.relaxed.gpu.global.cas.b32 %a, [%in0], 0, 1; setp.ne.u32 %p, %a, 0; @%p bra L;
ld.global.u32 %b, [%in1]; add.u32 %b, %b, 1; st.global.u32 [%in1], %b; atom.release.gpu.global.exch.b32 %a, [%in0], 0;`,
		},
		fix: map[string]string{"L: atom.relaxed": "L: atom.acquire"},
	},
}
