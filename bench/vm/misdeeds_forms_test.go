package vm_test

import "github.com/kgen-dev/kgen/bench"

// ownWord makes %a a thread's word of shared memory, and %ad its word of the second
// buffer.
const ownWord = "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in1; "

// warpPair is a program of two warps over shared memory.
func warpPair(name string, class bench.FaultClass, body string, fix map[string]string) misdeed {
	return misdeed{name: name, class: class, fix: fix, p: small{
		target: "sm_90", decls: sharedDecl, dynamic: 1024, regs: ".reg .b32 %a, %b, %c; .reg .b64 %g, %v;", block: 64, body: ownWord + body,
	}}
}

// Faults by forms of instructions that the other programs have not.
var formMisdeeds = []misdeed{
	warpPair("a generic store past the end of shared memory", bench.SharedOutOfBounds,
		"cvt.u64.u32 %g, %a; cvta.shared.u64 %g, %g; st.u32 [%g+1020], %t;", map[string]string{"%g+1020": "%g+768"}),
	warpPair("an exchange past the end of shared memory", bench.SharedOutOfBounds,
		"@%q st.shared.u32 [sm], 0; @%q atom.shared.exch.b32 %b, [sm+1024], 5;", map[string]string{"sm+1024": "sm"}),
	warpPair("a vector reduction past the end of a buffer", bench.GlobalOutOfBounds,
		"@%q red.global.add.v4.f32 [%in1+512], {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};", map[string]string{"%in1+512": "%in1+496"}),
	warpPair("a packed reduction that is misaligned", bench.MisalignedAddress,
		"@%q red.global.add.noftz.f16x2 [%in1+2], %t;", map[string]string{"%in1+2": "%in1+4"}),
	warpPair("a misaligned generic vector", bench.MisalignedAddress,
		"@%q ld.v2.u32 {%b, %c}, [%in0+4];", map[string]string{"%in0+4": "%in0+8"}),
	warpPair("bytes of one word by two warps, and the word read", bench.SharedRace,
		"and.b32 %b, %t, 31; shr.u32 %c, %t, 5; mov.u32 %a, sm; mad.lo.u32 %a, %b, 4, %a; add.u32 %c, %a, %c; st.shared.u8 [%c], %t; st.shared.u8 [%c+2], 1; /*here*/ ld.shared.u8 %b, [%a+1]; st.global.u32 [%ad], %b;",
		map[string]string{"/*here*/": "bar.sync 0;"}),
	warpPair("a compare-and-swap, and a plain store behind it", bench.SharedRace,
		"@%q st.shared.u32 [sm], 0; bar.sync 0; setp.eq.u32 %p, %t, 40; @%p atom.shared.cas.b32 %b, [sm], 0, 7; /*here*/ @%q st.shared.u32 [sm], 1;",
		map[string]string{"/*here*/": "bar.sync 0;"}),
	warpPair("a volatile read of plain writes", bench.SharedRace,
		"st.shared.u32 [%a], %t; /*here*/ xor.b32 %b, %t, 32; mov.u32 %c, sm; mad.lo.u32 %c, %b, 4, %c; ld.volatile.shared.u32 %b, [%c]; st.global.u32 [%ad], %b;",
		map[string]string{"/*here*/": "bar.sync 0;"}),
	warpPair("halves of the block that meet at barriers of other numbers", bench.SharedRace,
		"st.shared.u32 [%a], %t; shr.u32 %c, %t, 5; add.u32 %c, %c, 1; bar.sync %c, 32; xor.b32 %b, %t, 32; mov.u32 %c, sm; mad.lo.u32 %c, %b, 4, %c; ld.shared.u32 %b, [%c]; st.global.u32 [%ad], %b;",
		map[string]string{"bar.sync %c, 32": "bar.sync 1, 64"}),
	warpPair("bar.arrive by those who go on to read", bench.SharedRace,
		"st.shared.u32 [%a], %t; setp.lt.u32 %p, %t, 32; @%p bra FIRST; bar.sync 1, 64; bra MET; FIRST: bar.arrive 1, 64; MET: xor.b32 %b, %t, 32; mov.u32 %c, sm; mad.lo.u32 %c, %b, 4, %c; ld.shared.u32 %b, [%c]; st.global.u32 [%ad], %b;",
		map[string]string{"bar.arrive": "bar.sync"}),
	warpPair("sixteen bytes by cp.async.cg of which a neighbour reads before its wait", bench.AsyncCopyRace,
		"setp.lt.u32 %p, %t, 8; mul.wide.u32 %g, %t, 16; add.u64 %g, %g, %in0; mov.u32 %b, sm; mad.lo.u32 %b, %t, 16, %b; @%p cp.async.cg.shared.global [%b], [%g], 16; cp.async.commit_group; /*wait*/ bar.sync 0; setp.lt.u32 %p, %t, 32; @%p ld.shared.u32 %c, [%a]; @%p st.global.u32 [%ad], %c; cp.async.wait_group 0;",
		map[string]string{"/*wait*/": "cp.async.wait_group 0;"}),
	warpPair("a group of cp.async too many left in flight", bench.AsyncCopyRace,
		"mad.wide.u32 %g, %t, 4, %in0; cp.async.ca.shared.global [%a], [%g], 4; cp.async.commit_group; cp.async.ca.shared.global [%a+256], [%g+256], 4; cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %c, [%a+256]; st.global.u32 [%ad], %c; cp.async.wait_all;",
		map[string]string{"wait_group 1": "wait_group 0"}),
	warpPair("an atomic's result in a bulk store without a proxy fence", bench.MissingProxyFence,
		"st.shared.u32 [%a], 0; fence.proxy.async; bar.sync 0; red.shared.add.u32 [%a], %t; /*fence*/ bar.sync 0; @!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in1], [sm], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:",
		map[string]string{"/*fence*/": "fence.proxy.async.shared::cta;"}),
	warpPair("a generic store in a bulk reduction without a proxy fence", bench.MissingProxyFence,
		"cvt.u64.u32 %g, %a; cvta.shared.u64 %g, %g; st.u32 [%g], %t; bar.sync 0; @!%q bra END; /*fence*/ cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in1], [sm], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:",
		map[string]string{"/*fence*/": "fence.proxy.async;"}),
	warpPair("global words written and brought by a bulk load without a proxy fence", bench.MissingProxyFence,
		"mad.wide.u32 %g, %t, 4, %in0; st.global.u32 [%g], %t; @%q mbarrier.init.shared.b64 [sm+512], 1; bar.sync 0; @!%q bra TRY; /*fence*/ mbarrier.arrive.expect_tx.shared.b64 _, [sm+512], 256; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 256, [sm+512]; TRY: mbarrier.try_wait.parity.shared.b64 %p, [sm+512], 0; @!%p bra TRY; ld.shared.u32 %b, [%a]; st.global.u32 [%ad], %b;",
		map[string]string{"/*fence*/": "fence.proxy.async;"}),
	warpPair("an exchange that keeps what nobody wrote", bench.UninitialisedSharedRead,
		"@%q atom.shared.exch.b32 %b, [sm], 5; @%q st.global.u32 [%in1], %b;", map[string]string{"@%q atom": "@%q st.shared.u32 [sm], 1; @%q atom"}),
	warpPair("an atomic's result where a branch leaves it undefined", bench.UninitialisedRegister,
		"@%q atom.global.add.u32 %b, [%in0], 1; st.global.u32 [%ad], %b;", map[string]string{"; st.global": "; @%q st.global"}),
	warpPair("a barrier's count where a branch leaves it undefined", bench.UninitialisedRegister,
		"setp.lt.u32 %p, %t, 32; @%p bra A; bra B; A: bar.red.popc.u32 %b, 1, 32, %q; B: st.global.u32 [%ad], %b;", map[string]string{"B: st": "B: @%p st"}),
	warpPair("half of a packed word undefined, and that half stored", bench.UninitialisedSharedRead,
		"st.shared.u16 [%a], 1; ld.shared.u32 %b, [%a]; shr.u32 %b, %b, 16; st.global.u32 [%ad], %b;", map[string]string{"shr.u32 %b, %b, 16": "and.b32 %b, %b, 0xffff"}),
	warpPair("a selector never written", bench.UninitialisedRegister,
		"@%q mov.u32 %b, 1; prmt.b32 %c, %t, %t, %b; st.global.u32 [%ad], %c;", map[string]string{"@%q mov": "mov"}),
	warpPair("match by fewer lanes than it names", bench.DivergentCollective,
		"setp.lt.u32 %p, %t, 20; @!%p bra L; match.any.sync.b32 %b, %t, 0xffffffff; L: mov.u32 %b, 0;", map[string]string{"%t, 20": "%t, 64"}),
	warpPair("elect in one arm of a branch", bench.DivergentCollective,
		"and.b32 %b, %t, 1; setp.eq.u32 %p, %b, 0; @%p bra L; elect.sync %c|%r, 0xffffffff; L: mov.u32 %b, 0;", map[string]string{"0xffffffff": "0xaaaaaaaa"}),
	warpPair("stmatrix by the lower half of a warp", bench.DivergentCollective,
		"and.b32 %b, %t, 31; setp.lt.u32 %p, %b, 16; shr.u32 %c, %t, 5; mad.lo.u32 %a, %b, 12, %a; mad.lo.u32 %a, %c, 384, %a; and.b32 %a, %a, 0xfff0; @!%p bra L; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%a], {%t}; L: mov.u32 %b, 0;", map[string]string{"%b, 16;": "%b, 32;"}),
	warpPair("barrier.red that one warp asks otherwise", bench.Deadlock,
		"setp.lt.u32 %p, %t, 32; @%p bra A; bar.red.and.pred %r, 2, 64, %q; bra L; A: bar.red.and.pred %r, 3, 64, %q; L: mov.u32 %b, 0;", map[string]string{"3, 64": "2, 64"}),
	warpPair("an mbarrier re-initialised while it is waited for", bench.MbarrierMisuse,
		"@%q mbarrier.init.shared.b64 [sm+512], 64; bar.sync 0; mbarrier.arrive.shared.b64 %v, [sm+512]; /*here*/ @%q mbarrier.init.shared.b64 [sm+512], 64;", map[string]string{"/*here*/": "T: mbarrier.test_wait.shared.b64 %p, [sm+512], %v; @!%p bra T; bar.sync 0; @%q mbarrier.inval.shared.b64 [sm+512];"}),
	warpPair("an atomic store to an mbarrier in use", bench.MbarrierMisuse,
		"@%q mbarrier.init.shared.b64 [sm+512], 64; @%q st.shared.u64 [sm+520], 0; bar.sync 0; mbarrier.arrive.shared.b64 %v, [sm+512]; @%q atom.shared.add.u64 %g, [sm+512], 1; T: mbarrier.test_wait.shared.b64 %p, [sm+512], %v; @!%p bra T;", map[string]string{"%g, [sm+512]": "%g, [sm+520]"}),
}
