package vm_test

import "github.com/kgen-dev/kgen/bench"

// Programs that touch what they must not, or what nobody wrote.
var memoryMisdeeds = []misdeed{
	{
		name: "load one element past the end by an off-by-one", class: bench.GlobalOutOfBounds, p: small{
			block: 128, body: "mad.wide.u32 %ad, %t, 4, %in0; ld.global.u32 %x, [%ad+4]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %x;",
		},
		fix: map[string]string{"[%ad+4]": "[%ad]"},
	},
	{
		name: "an atomic before the buffer", class: bench.GlobalOutOfBounds, p: small{
			block: 1, body: "red.global.add.u32 [%in0+-4], 1;",
		},
		fix: map[string]string{"+-4": "+4"},
	},
	{
		name: "cp.async from past the end", class: bench.GlobalOutOfBounds, p: small{
			decls: sharedDecl, dynamic: 1024, regs: ".reg .b32 %a;", block: 33,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a; mad.wide.u32 %ad, %t, 16, %in0; cp.async.cg.shared.global [%a], [%ad], 16; cp.async.wait_all;",
		},
		fix: map[string]string{"[%ad], 16;": "[%ad], 16, %n;", "cp.async.cg": ".reg .b32 %n; setp.lt.u32 %p, %t, 32; selp.b32 %n, 16, 0, %p; cp.async.cg"},
	},
	{
		name: "a bulk copy longer than the buffer", class: bench.GlobalOutOfBounds, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 1024, block: 1,
			body: `mbarrier.init.shared.b64 [sm+768], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [sm+768], 528;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 528, [sm+768];
W: mbarrier.try_wait.parity.shared.b64 %p, [sm+768], 0; @!%p bra W;`,
		},
		fix: map[string]string{"528": "512"},
	},
	{
		name: "a negative index into shared memory", class: bench.SharedOutOfBounds, p: small{
			decls: sharedDecl, dynamic: 128, regs: ".reg .b32 %a;", block: 32, body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a+-4], %t;",
		},
		fix: map[string]string{"+-4": ""},
	},
	{
		name: "ldmatrix rows past the end", class: bench.SharedOutOfBounds, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b, %c<4>;", block: 32,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a; mov.b32 %b, 0; st.shared.v4.u32 [%a], {%b,%b,%b,%b}; bar.sync 0; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%c0,%c1,%c2,%c3}, [%a+16];",
		},
		fix: map[string]string{"[%a+16]": "[%a]"},
	},
	{
		name: "a bulk copy past the end of shared memory", class: bench.SharedOutOfBounds, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 256, block: 1,
			body: `mbarrier.init.shared.b64 [sm], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [sm], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm+144], [%in0], 128, [sm];
W: mbarrier.try_wait.parity.shared.b64 %p, [sm], 0; @!%p bra W;`,
		},
		fix: map[string]string{"sm+144": "sm+128"},
	},
	{
		name: "a local index from data", class: bench.LocalOutOfBounds, p: small{
			regs: ".reg .b32 %a, %l;", block: 1, body: ".local .align 4 .b8 lo[32]; mov.u32 %l, lo; ld.global.u32 %a, [%in0]; add.u32 %a, %a, 9; mad.lo.u32 %a, %a, 4, %l; st.local.u32 [%a], 5;",
		},
		fix: map[string]string{"%a, 9": "%a, 7"},
	},
	{
		name: "a vector past the end of a local array", class: bench.LocalOutOfBounds, p: small{
			regs: ".reg .b32 %l;", block: 1, body: ".local .align 16 .b8 lo[20]; mov.u32 %l, lo; st.local.v4.u32 [%l], {1, 2, 3, 4}; st.local.v4.u32 [%l+16], {5, 6, 7, 8};",
		},
		fix: map[string]string{"st.local.v4.u32 [%l+16], {5, 6, 7, 8}": "st.local.u32 [%l+16], 5"},
	},
	{
		name: "a vector from one local array into the next", class: bench.LocalOutOfBounds, p: small{
			regs: ".reg .b32 %l, %a, %b;", block: 1, body: ".local .align 8 .b8 lo[12]; .local .align 4 .b8 hi[12]; mov.u32 %l, lo; st.local.u32 [hi], 1; st.local.u32 [%l+8], 2; ld.local.v2.u32 {%a, %b}, [%l+8]; st.global.u32 [%in0], %a;",
		},
		fix: map[string]string{"ld.local.v2.u32 {%a, %b}, [%l+8]": "ld.local.u32 %a, [%l+8]"},
	},
	{
		name: "a word between two local arrays", class: bench.LocalOutOfBounds, p: small{
			regs: ".reg .b32 %l;", block: 1, body: ".local .align 16 .b8 lo[4]; .local .align 16 .b8 hi[16]; mov.u32 %l, lo; st.local.u32 [hi], 1; st.local.u32 [%l+8], 2;",
		},
		fix: map[string]string{"[%l+8]": "[%l]"},
	},
	{
		name: "a generic address below local memory", class: bench.LocalOutOfBounds, p: small{
			regs: ".reg .b64 %l;", block: 1, body: ".local .align 8 .b8 lo[16]; mov.u64 %l, lo; cvta.local.u64 %l, %l; st.u64 [%l+24], %l;",
		},
		fix: map[string]string{"+24": "+8"},
	},
	{
		name: "a misaligned atomic", class: bench.MisalignedAddress, p: small{
			block: 1, body: "red.global.add.u32 [%in0+6], 1;",
		},
		fix: map[string]string{"+6": "+8"},
	},
	{
		name: "a misaligned source of cp.async", class: bench.MisalignedAddress, p: small{
			decls: sharedDecl, dynamic: 64, block: 1, body: "cp.async.cg.shared.global [sm], [%in0+8], 16; cp.async.wait_all;",
		},
		fix: map[string]string{"+8": "+16"},
	},
	{
		name: "a misaligned local word", class: bench.MisalignedAddress, p: small{
			regs: ".reg .b32 %l;", block: 1, body: ".local .align 8 .b8 lo[16]; mov.u32 %l, lo; st.local.u64 [%l+4], %in0;",
		},
		fix: map[string]string{"+4": "+8"},
	},
	{
		name: "a misaligned row of ldmatrix", class: bench.MisalignedAddress, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b;", block: 32,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; bar.sync 0; mov.u32 %a, sm; and.b32 %b, %t, 7; mad.lo.u32 %a, %b, 8, %a; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%b}, [%a];",
		},
		fix: map[string]string{"%b, 8, %a": "%b, 16, %a"},
	},
	{
		name: "a buffer that nobody wrote, stored", class: bench.UninitialisedGlobalRead, p: small{
			block: 32, fresh: 1, body: "mad.wide.u32 %ad, %t, 4, %in2; ld.global.u32 %x, [%ad]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x;",
		},
		fix: map[string]string{"ld.global": "st.global.u32 [%ad], 3; ld.global"},
	},
	{
		name: "another's element, written after a barrier", class: bench.UninitialisedGlobalRead, p: small{
			block: 64, fresh: 1, body: "xor.b32 %x, %t, 33; mad.wide.u32 %ad, %x, 4, %in2; ld.global.u32 %x, [%ad]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x; bar.sync 0; mad.wide.u32 %ad, %t, 4, %in2; st.global.u32 [%ad], %t;",
		},
		fix: map[string]string{"xor.b32": "mad.wide.u32 %ad, %t, 4, %in2; st.global.u32 [%ad], %t; bar.sync 0; xor.b32"},
	},
	{
		name: "another's word of shared memory, used and written after a barrier", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 256, regs: ".reg .b32 %a;", block: 64,
			body: "xor.b32 %x, %t, 33; mov.u32 %a, sm; mad.lo.u32 %a, %x, 4, %a; ld.shared.u32 %x, [%a]; bar.sync 0; mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x;",
		},
		fix: map[string]string{"xor.b32": "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; bar.sync 0; xor.b32"},
	},
	{
		name: "another warp's word of shared memory, exchanged by volatile accesses that nothing orders", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 256, regs: ".reg .b32 %a, %b, %c; .reg .b64 %ad;", block: 64,
			body: `mov.u32 %a, sm; mad.lo.u32 %c, %t, 4, %a; st.volatile.shared.u32 [%c], %t; /*here*/
xor.b32 %b, %t, 63; mad.lo.u32 %c, %b, 4, %a; ld.volatile.shared.u32 %b, [%c]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;`,
		},
		fix: map[string]string{"/*here*/": "bar.sync 0;"},
	},
	{
		name: "a mate's word of shared memory, written after the warp met", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 256, regs: ".reg .b32 %a;", block: 64,
			body: "xor.b32 %x, %t, 1; mov.u32 %a, sm; mad.lo.u32 %a, %x, 4, %a; ld.shared.u32 %x, [%a]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %x; bar.warp.sync -1; mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t;",
		},
		fix: map[string]string{"xor.b32": "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; bar.warp.sync -1; xor.b32"},
	},
	{
		name: "a branch on an element that nobody wrote", class: bench.UninitialisedGlobalRead, p: small{
			block: 1, fresh: 1, body: "st.global.u32 [%in2], 1; ld.global.u32 %x, [%in2+4]; setp.gt.u32 %p, %x, 3; @%p st.global.u32 [%in0], 1;",
		},
		fix: map[string]string{"[%in2+4]": "[%in2]"},
	},
	{
		name: "what cp.async brought was never written", class: bench.UninitialisedGlobalRead, p: small{
			decls: sharedDecl, dynamic: 64, block: 1, fresh: 1, body: "cp.async.cg.shared.global [sm], [%in2], 16; cp.async.wait_all; ld.shared.u32 %x, [sm+8]; st.global.u32 [%in0], %x;",
		},
		fix: map[string]string{"[%in2], 16": "[%in1], 16"},
	},
	{
		name: "what a bulk copy brought was never written", class: bench.UninitialisedGlobalRead, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 256, block: 1, fresh: 1,
			body: `mbarrier.init.shared.b64 [sm+128], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [sm+128], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in2], 128, [sm+128];
W: mbarrier.try_wait.parity.shared.b64 %p, [sm+128], 0; @!%p bra W; ld.shared.u32 %x, [sm+64]; st.global.u32 [%in0], %x;`,
		},
		fix: map[string]string{"[%in2], 128": "[%in1], 128"},
	},
	{
		name: "an address from shared memory that nobody wrote", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 64, block: 1, body: "/*write*/ ld.shared.u64 %ad, [sm]; ld.global.u32 %x, [%ad];",
		},
		fix: map[string]string{"/*write*/": "st.shared.u64 [sm], %in0;"},
	},
	{
		name: "half of a tile written", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 256, regs: ".reg .b32 %a, %b;", block: 64,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; setp.lt.u32 %p, %t, 32; @%p st.shared.u32 [%a], %t; bar.sync 0; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b;",
		},
		fix: map[string]string{"%t, 32": "%t, 64"},
	},
	{
		name: "a local array read before it is written", class: bench.UninitialisedRegister, p: small{
			regs: ".reg .b32 %l;", block: 1, body: ".local .align 4 .b8 lo[16]; mov.u32 %l, lo; /*write*/ ld.local.u32 %x, [%l+4]; st.global.u32 [%in0], %x;",
		},
		fix: map[string]string{"/*write*/": "st.local.u32 [%l+4], 1;"},
	},
	{
		name: "a predicate never set", class: bench.UninitialisedRegister, p: small{
			regs: ".reg .pred %never;", block: 32, body: "/*set*/ @%never st.global.u32 [%in0], 1;",
		},
		fix: map[string]string{"/*set*/": "mov.pred %never, %q;"},
	},
	{
		name: "a shuffle of what lanes never loaded, stored", class: bench.UninitialisedRegister, p: small{
			regs: ".reg .b32 %a, %b;", block: 32, body: "setp.lt.u32 %p, %t, 16; @%p mov.u32 %a, %t; shfl.sync.bfly.b32 %b, %a, 16, 31, -1; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b;",
		},
		fix: map[string]string{"%a, 16, 31": "%a, 8, 31", "st.global": "@%p st.global"},
	},
	{
		name: "an accumulator never cleared", class: bench.UninitialisedRegister, p: small{
			regs: ".reg .f32 %s, %v; .reg .b32 %i;", block: 1, body: "/*clear*/ mov.u32 %i, 0; L: mad.wide.u32 %ad, %i, 4, %in0; ld.global.f32 %v, [%ad]; add.f32 %s, %s, %v; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 4; @%p bra L; st.global.f32 [%in1], %s;",
		},
		fix: map[string]string{"/*clear*/": "mov.f32 %s, 0f00000000;"},
	},
	{
		name: "a store to a constant array", class: bench.WriteToConst, p: small{
			decls: ".const .align 4 .b8 table[64];", block: 4, body: "mov.u64 %ad, table; cvta.const.u64 %ad, %ad; mad.wide.u32 %ad, %t, 4, %ad; st.u32 [%ad], 1;",
		},
		fix: map[string]string{"st.u32 [%ad], 1": "ld.u32 %x, [%ad]"},
	},
	{
		name: "an atomic on a constant", class: bench.WriteToConst, p: small{
			decls: ".const .align 4 .b32 c = 7;", block: 1, body: "mov.u64 %ad, c; cvta.const.u64 %ad, %ad; atom.add.u32 %x, [%ad], 1;",
		},
		fix: map[string]string{"atom.add.u32 %x, [%ad], 1": "ld.u32 %x, [%ad]"},
	},
}
