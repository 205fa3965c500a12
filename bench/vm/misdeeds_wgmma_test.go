package vm_test

import "github.com/kgen-dev/kgen/bench"

// oneProduct is a product of a warpgroup: A, of 64 x 16, lies at the beginning
// of shared memory, B, of 16 x 8, 2048 bytes after it.
const oneProduct = `mov.u32 %a, sm; mad.lo.u32 %b, %t, 16, %a; mov.b32 %x, 0; st.shared.v4.u32 [%b], {%x,%x,%x,%x}; setp.lt.u32 %p, %t, 16; @%p st.shared.v4.u32 [%b+2048], {%x,%x,%x,%x};
fence.proxy.async; bar.sync 0; shr.u32 %a, %a, 4; cvt.u64.u32 %da, %a; add.u64 %db, %da, 128; or.b64 %da, %da, 0x800400000; or.b64 %db, %db, 0x800080000;
mov.f32 %c0, 0f00000000; mov.f32 %c1, 0f00000000; mov.f32 %c2, 0f00000000; mov.f32 %c3, 0f00000000;
wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0,%c1,%c2,%c3}, %da, %db, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;
/*flight*/ wgmma.wait_group.sync.aligned 0; mad.wide.u32 %ad, %t, 4, %in0; st.global.f32 [%ad], %c1;`

// wgmmaMisdeed is the product with something put in place of another.
func wgmmaMisdeed(name string, class bench.FaultClass, right, wrong string) misdeed {
	wrong += " /*wrong*/"
	return misdeed{name: name, class: class, fix: map[string]string{wrong: right}, p: small{
		target: "sm_90a", decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: 4352, block: 128,
		regs: ".reg .b32 %a, %b; .reg .b64 %da, %db; .reg .f32 %c<4>;", body: replace(oneProduct, right, wrong),
	}}
}

// storeSums sends accumulators out of shared memory by a bulk store, from 2304 bytes
// after its beginning on, where nothing else is.
const storeSums = `mov.b32 %b, %c1; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%a+2304], {%b}; fence.proxy.async; bar.sync 0;
setp.eq.u32 %p, %t, 0; @%p cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm+2304], 128; @%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group 0; bar.sync 0;`

// anotherProduct is the same product once more, without a fence and not committed.
const anotherProduct = `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0,%c1,%c2,%c3}, %da, %db, 1, 1, 1, 0, 0;`

// registerProduct is the product with A in registers, twice over.
const registerProduct = `mov.u32 %a, sm; mov.b32 %x, 0; mad.lo.u32 %b, %t, 16, %a; setp.lt.u32 %p, %t, 16; @%p st.shared.v4.u32 [%b], {%x,%x,%x,%x};
fence.proxy.async; bar.sync 0; shr.u32 %a, %a, 4; cvt.u64.u32 %db, %a; or.b64 %db, %db, 0x800080000; mov.b64 %da, 0;
mov.f32 %c0, 0f00000000; mov.f32 %c1, 0f00000000; mov.f32 %c2, 0f00000000; mov.f32 %c3, 0f00000000; mov.b32 %r0, 0; mov.b32 %r1, %t; mov.b32 %r2, 0; mov.b32 %r3, 0;
wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0,%c1,%c2,%c3}, {%r0,%r1,%r2,%r3}, %db, 1, 1, 1, 0; wgmma.commit_group.sync.aligned;
/*wait*/ mov.b32 %r1, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0,%c1,%c2,%c3}, {%r0,%r1,%r2,%r3}, %db, 1, 1, 1, 0; wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0; mad.wide.u32 %ad, %t, 4, %in0; st.global.f32 [%ad], %c1;`

// registerMisdeed is the product with A in registers with something put in place of
// another; the right program is it with the fixes.
func registerMisdeed(name string, class bench.FaultClass, fix map[string]string) misdeed {
	return misdeed{name: name, class: class, fix: fix, p: small{
		target: "sm_90a", decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: 256, block: 128,
		regs: ".reg .b32 %a, %b, %r<4>; .reg .b64 %da, %db; .reg .f32 %c<4>;", body: registerProduct,
	}}
}

// fixedBy is the misdeed with another way to put it right.
func (m misdeed) fixedBy(from, to string) misdeed {
	m.fix = map[string]string{from: to}
	return m
}

var wgmmaMisdeeds = []misdeed{
	wgmmaMisdeed("a product of what threads wrote without a proxy fence", bench.MissingProxyFence, "fence.proxy.async;", ""),
	wgmmaMisdeed("a product of what threads wrote, with an ordinary fence", bench.MissingProxyFence, "fence.proxy.async;", "fence.sc.cta;"),
	wgmmaMisdeed("accumulators read before the wait", bench.AsyncCopyRace, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"),
	wgmmaMisdeed("accumulators that go out by a bulk store before the wait", bench.AsyncCopyRace, "/*flight*/ wgmma.wait_group.sync.aligned 0;", "mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a; "+storeSums+" wgmma.wait_group.sync.aligned 0;").fixedBy("mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a;", "wgmma.wait_group.sync.aligned 0; mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a;"),
	wgmmaMisdeed("accumulators of a group that was not committed", bench.AsyncCopyRace, "wgmma.commit_group.sync.aligned;", ""),
	wgmmaMisdeed("an operand written while it is read", bench.AsyncCopyRace, "/*flight*/", "st.shared.u32 [%b], 1;"),
	wgmmaMisdeed("an operand brought over while it is read", bench.AsyncCopyRace, "/*flight*/", "cp.async.ca.shared.global [%b], [%in0], 16; cp.async.wait_all;"),
	wgmmaMisdeed("a product past the end of shared memory", bench.BadDescriptor, "add.u64 %db, %da, 128;", "add.u64 %db, %da, 272;"),
	wgmmaMisdeed("a product by half of a warp", bench.DivergentCollective, "wgmma.mma_async.sync", "and.b32 %b, %t, 31; setp.lt.u32 %p, %b, 16; @%p wgmma.mma_async.sync"),
	wgmmaMisdeed("accumulators of which only the first product was committed", bench.AsyncCopyRace, "wgmma.commit_group.sync.aligned;", "wgmma.commit_group.sync.aligned; "+anotherProduct).fixedBy("/*wrong*/", "wgmma.commit_group.sync.aligned; "),
	wgmmaMisdeed("an accumulator written while it is added to", bench.AsyncCopyRace, "/*flight*/", "mov.f32 %c2, 0f3f800000;"),
	wgmmaMisdeed("accumulators cleared after the fence", bench.AsyncCopyRace, "wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned; mov.f32 %c3, 0f00000000;"),
	wgmmaMisdeed("no fence before the first product", bench.AsyncCopyRace, "wgmma.fence.sync.aligned;", ""),
	wgmmaMisdeed("an accumulator changed between two products without a fence", bench.AsyncCopyRace, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 0; add.f32 %c1, %c1, %c1; "+anotherProduct+" wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;").fixedBy("add.f32 %c1, %c1, %c1;", "add.f32 %c1, %c1, %c1; wgmma.fence.sync.aligned;"),
	wgmmaMisdeed("a descriptor that one lane has otherwise", bench.BadDescriptor, "mov.f32 %c0, 0f00000000;", "mov.f32 %c0, 0f00000000; setp.eq.u32 %p, %t, 17; @%p add.u64 %db, %db, 1;").fixedBy("%p, %t, 17", "%p, %t, 170"),
	wgmmaMisdeed("a descriptor that one warp has otherwise", bench.BadDescriptor, "mov.f32 %c0, 0f00000000;", "mov.f32 %c0, 0f00000000; setp.ge.u32 %p, %t, 96; @%p sub.u64 %da, %da, 1;").fixedBy("%p, %t, 96", "%p, %t, 196"),
	wgmmaMisdeed("scale-d that one warp has otherwise", bench.BadDescriptor, "%da, %db, 1, 1, 1, 0, 0;", "%da, %db, %p, 1, 1, 0, 0;").with("wgmma.fence", "setp.lt.u32 %p, %t, 32; wgmma.fence").fixedBy("%p, %t, 32; wgmma", "%p, %t, 320; wgmma"),
	wgmmaMisdeed("a product that one warp of the group leaves out", bench.DivergentCollective, "wgmma.mma_async", "setp.lt.u32 %p, %t, 96; @!%p bra PAST; wgmma.mma_async").with("wgmma.commit_group", "PAST: wgmma.commit_group").fixedBy("%p, %t, 96; @!%p bra PAST", "%p, %t, 128; @!%p bra PAST"),
	wgmmaMisdeed("an operand that nobody wrote", bench.UninitialisedSharedRead, "@%p st.shared.v4.u32 [%b+2048]", "@%r st.shared.v4.u32 [%b+2048]"),
	registerMisdeed("registers of A written while they are read", bench.AsyncCopyRace, map[string]string{"/*wait*/": "wgmma.wait_group.sync.aligned 0;"}),
	registerMisdeed("registers of A written after the fence", bench.AsyncCopyRace, map[string]string{"/*wait*/ mov.b32 %r1, 0; wgmma.fence.sync.aligned;": "wgmma.wait_group.sync.aligned 0; mov.b32 %r1, 0; wgmma.fence.sync.aligned;"}).with("/*wait*/ mov.b32 %r1, 0; wgmma.fence.sync.aligned;", "wgmma.wait_group.sync.aligned 0; wgmma.fence.sync.aligned; mov.b32 %r1, 0;").fixedBy("wgmma.fence.sync.aligned; mov.b32 %r1, 0;", "mov.b32 %r1, 0; wgmma.fence.sync.aligned;"),
}
