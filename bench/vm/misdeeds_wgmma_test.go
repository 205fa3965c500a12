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
		target: "sm_90a", decls: ".extern .shared .align 1024 .b8 sm[];", dynamic: 2304, block: 128,
		regs: ".reg .b32 %a, %b; .reg .b64 %da, %db; .reg .f32 %c<4>;", body: replace(oneProduct, right, wrong),
	}}
}

var wgmmaMisdeeds = []misdeed{
	wgmmaMisdeed("a product of what threads wrote without a proxy fence", bench.MissingProxyFence, "fence.proxy.async;", ""),
	wgmmaMisdeed("a product of what threads wrote, with an ordinary fence", bench.MissingProxyFence, "fence.proxy.async;", "fence.sc.cta;"),
	wgmmaMisdeed("accumulators read before the wait", bench.AsyncCopyRace, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"),
	wgmmaMisdeed("accumulators of a group that was not committed", bench.AsyncCopyRace, "wgmma.commit_group.sync.aligned;", ""),
	wgmmaMisdeed("an operand written while it is read", bench.AsyncCopyRace, "/*flight*/", "st.shared.u32 [%b], 1;"),
	wgmmaMisdeed("an operand brought over while it is read", bench.AsyncCopyRace, "/*flight*/", "cp.async.ca.shared.global [%b], [%in0], 16; cp.async.wait_all;"),
	wgmmaMisdeed("a product past the end of shared memory", bench.BadDescriptor, "add.u64 %db, %da, 128;", "add.u64 %db, %da, 144;"),
	wgmmaMisdeed("a product by half of a warp", bench.DivergentCollective, "wgmma.mma_async.sync", "and.b32 %b, %t, 31; setp.lt.u32 %p, %b, 16; @%p wgmma.mma_async.sync"),
	wgmmaMisdeed("an operand that nobody wrote", bench.UninitialisedSharedRead, "@%p st.shared.v4.u32 [%b+2048]", "@%r st.shared.v4.u32 [%b+2048]"),
}
