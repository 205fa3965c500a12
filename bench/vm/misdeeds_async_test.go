package vm_test

import "github.com/kgen-dev/kgen/bench"

// oneBulkLoad brings 128 bytes to shared memory for a warp, by thread 0, which
// has initialised the mbarrier at 256.
const oneBulkLoad = `@!%q bra INIT; mbarrier.init.shared.b64 [sm+256], 1; INIT: bar.sync 0;
@!%q bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [sm+256], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 128, [sm+256];
WAIT: `

const waitForLoad = `TRY: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra TRY; `

const readLoad = `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b; `

// bulkMisdeed is a program of a warp with bulk copies.
func bulkMisdeed(name string, class bench.FaultClass, body string, fix map[string]string) misdeed {
	return misdeed{name: name, class: class, fix: fix, p: small{
		target: "sm_90", decls: sharedDecl, dynamic: 1024, regs: ".reg .b32 %a, %b, %c;", block: 32, body: body,
	}}
}

// Programs that do not wait for asynchronous work, or hide writes from it.
var asyncMisdeeds = []misdeed{
	bulkMisdeed("a barrier in place of a wait", bench.AsyncCopyRace, oneBulkLoad+"bar.sync 0; /*wait*/ "+readLoad+"DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;",
		map[string]string{"/*wait*/": waitForLoad}),
	bulkMisdeed("a wait for the wrong parity", bench.AsyncCopyRace, oneBulkLoad+replace(waitForLoad, "[sm+256], 0", "[sm+256], 1")+readLoad,
		map[string]string{"TRY: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 1": "TRY: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0"}),
	bulkMisdeed("bytes expected fewer than come, the rest read", bench.AsyncCopyRace, oneBulkLoad+`@!%q bra NEXT; fence.proxy.async;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm+128], [%in0+128], 128, [sm+264]; NEXT: `+waitForLoad+"/*wait*/ ld.shared.u32 %b, [sm+192]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b; W2: mbarrier.try_wait.parity.shared.b64 %p, [sm+264], 0; @!%p bra W2;",
		map[string]string{"/*wait*/": "W1: mbarrier.try_wait.parity.shared.b64 %p, [sm+264], 0; @!%p bra W1;"}).with("mbarrier.init.shared.b64 [sm+256], 1;", "mbarrier.init.shared.b64 [sm+256], 1; mbarrier.init.shared.b64 [sm+264], 1; mbarrier.arrive.expect_tx.shared.b64 _, [sm+264], 128;"),
	bulkMisdeed("a destination written while it is brought", bench.AsyncCopyRace, oneBulkLoad+"mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; /*wait*/ st.shared.u32 [%a], %t; DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;",
		map[string]string{"/*wait*/": waitForLoad}),
	bulkMisdeed("two loads of one place", bench.AsyncCopyRace, oneBulkLoad+"@!%q bra NEXT; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [sm+256], 128; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm+64], [%in0+128], 128, [sm+256]; NEXT:"+waitForLoad+readLoad,
		map[string]string{"[sm+64], [%in0+128]": "[sm+128], [%in0+128]"}),
	bulkMisdeed("a load over what a store still reads", bench.AsyncCopyRace, oneBulkLoad+waitForLoad+`@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in1], [sm], 128; cp.async.bulk.commit_group; /*wait*/
mbarrier.arrive.expect_tx.shared.b64 _, [sm+256], 128; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0+128], 128, [sm+256]; cp.async.bulk.wait_group 0;
LAST: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 1; @!%p bra LAST; END:`,
		map[string]string{"/*wait*/": "cp.async.bulk.wait_group.read 0;"}),
	bulkMisdeed("a masked store over its neighbour's bytes", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;
@!%q bra NEXT; cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%in0], [sm], 16, 0x00ff; cp.async.bulk.commit_group; NEXT:
bar.sync 0; @%q st.global.u32 [%in0+4], 5; cp.async.bulk.wait_group 0;`,
		map[string]string{"[%in0+4], 5": "[%in0+8], 5"}).on("sm_100"),
	bulkMisdeed("a wait for all but the group that matters", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.commit_group; cp.async.ca.shared.global [%a+128], [%ad+128], 4; cp.async.commit_group; cp.async.wait_group 1;
ld.shared.u32 %b, [%a+128]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b; cp.async.wait_all;`,
		map[string]string{"%b, [%a+128]": "%b, [%a]"}),
	bulkMisdeed("a copy of a neighbour waited for and not met", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.commit_group; cp.async.wait_group 0; /*here*/
xor.b32 %b, %t, 1; mov.u32 %a, sm; mad.lo.u32 %a, %b, 4, %a; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;`,
		map[string]string{"/*here*/": "bar.warp.sync -1;"}),
	bulkMisdeed("a bulk store of bytes that nobody wrote", bench.UninitialisedSharedRead, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;
@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm+16], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"[sm+16], 128": "[sm+16], 112"}),
	bulkMisdeed("a copy that was never committed", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; /*here*/ cp.async.wait_group 0; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b; cp.async.wait_all;`,
		map[string]string{"/*here*/": "cp.async.commit_group;"}),

	bulkMisdeed("a try whose answer nobody looks at", bench.AsyncCopyRace, oneBulkLoad+"TRY: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; "+readLoad+"DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;",
		map[string]string{"[sm+256], 0; mov.u32 %a, sm": "[sm+256], 0; @!%p bra TRY; mov.u32 %a, sm"}),
	bulkMisdeed("a test whose answer ends in a register", bench.AsyncCopyRace, oneBulkLoad+"TRY: mbarrier.test_wait.parity.shared.b64 %p, [sm+256], 0; selp.u32 %c, 1, 0, %p; "+readLoad+"DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;",
		map[string]string{"selp.u32 %c, 1, 0, %p;": "selp.u32 %c, 1, 0, %p; setp.eq.u32 %p, %c, 0; @%p bra TRY;"}),
	bulkMisdeed("the source of a bulk copy overwritten", bench.AsyncCopyRace, oneBulkLoad+"mad.wide.u32 %ad, %t, 4, %in0; /*wait*/ st.global.u32 [%ad], 7; DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;",
		map[string]string{"/*wait*/": waitForLoad}),
	bulkMisdeed("the source of a bulk copy overwritten behind a barrier", bench.AsyncCopyRace, oneBulkLoad+"mad.wide.u32 %ad, %t, 4, %in0; /*wait*/ bar.sync 0; st.global.u32 [%ad], 7; DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;",
		map[string]string{"/*wait*/": waitForLoad}),
	bulkMisdeed("the source of cp.async overwritten", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.commit_group; /*wait*/ st.global.u32 [%ad], 7; cp.async.wait_all; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;`,
		map[string]string{"/*wait*/": "cp.async.wait_group 0;"}),
	bulkMisdeed("the source of a neighbour's cp.async overwritten behind a barrier", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.commit_group; /*wait*/ bar.sync 0; xor.b32 %b, %t, 1; mad.wide.u32 %ad, %b, 4, %in0; st.global.u32 [%ad], 7; cp.async.wait_all;`,
		map[string]string{"/*wait*/": "cp.async.wait_all;"}),
	bulkMisdeed("the source of another's cp.async overwritten after it was waited for", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0;
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.wait_all; /*meet*/ xor.b32 %b, %t, 1; mad.wide.u32 %ad, %b, 4, %in0; st.global.u32 [%ad], 7;`,
		map[string]string{"/*meet*/": "bar.warp.sync -1;"}),
	bulkMisdeed("half of the lanes wait for their copies", bench.AsyncCopyRace, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0; setp.lt.u32 %p, %t, 16;
cp.async.ca.shared.global [%a], [%ad], 4; @%p cp.async.commit_group; @%p cp.async.wait_group 0; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b; cp.async.wait_all;`,
		map[string]string{"@%p cp.async.commit_group; @%p cp.async.wait_group 0;": "@%p cp.async.commit_group; @!%p cp.async.commit_group; @%p cp.async.wait_group 0; @!%p cp.async.wait_group 0;"}),

	bulkMisdeed("a fence before the writes", bench.MissingProxyFence, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; fence.proxy.async; st.shared.u32 [%a], %t; /*here*/ bar.sync 0;
@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"/*here*/": "fence.proxy.async;"}),
	bulkMisdeed("an ordinary fence in place of a proxy fence", bench.MissingProxyFence, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.acq_rel.cta; bar.sync 0;
@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"fence.acq_rel.cta": "fence.proxy.async.shared::cta"}),
	bulkMisdeed("a proxy fence by one of the writers", bench.MissingProxyFence, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; @%q fence.proxy.async; bar.sync 0;
@!%q bra END; /*here*/ cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"/*here*/": "fence.proxy.async;"}),
	bulkMisdeed("a reduction of what an atomic wrote", bench.MissingProxyFence, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], 0; bar.sync 0; atom.shared.add.u32 %b, [%a], 1; /*here*/ bar.sync 0;
@!%q bra END; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in0], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"/*here*/": "fence.proxy.async;"}),
	bulkMisdeed("stmatrix and a bulk store", bench.MissingProxyFence, `mov.u32 %a, sm; mad.lo.u32 %a, %t, 16, %a; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%t, %t, %t, %t}; /*here*/ bar.warp.sync -1;
@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		map[string]string{"/*here*/": "fence.proxy.async;"}),
	bulkMisdeed("a copy from global memory that threads wrote", bench.MissingProxyFence, `mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %t; /*here*/ `+oneBulkLoad+waitForLoad+readLoad,
		map[string]string{"/*here*/": "fence.proxy.async;"}),
}

// crossBlock is a block that writes global memory and another that brings it to
// shared memory, ordered by a flag.
const crossBlock = `mov.u32 %a, %ctaid.x; setp.eq.u32 %p, %a, 1; @%p bra TAKE; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %t; /*writer*/ bar.sync 0; @%q st.release.gpu.global.u32 [%in1], 1; bra END;
TAKE: ld.acquire.gpu.global.u32 %a, [%in1]; setp.eq.u32 %p, %a, 0; @%p bra TAKE; /*reader*/ @!%q bra INIT; mbarrier.init.shared.b64 [sm+256], 1; INIT: bar.sync 0;
@!%q bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [sm+256], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0], 128, [sm+256];
WAIT: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra WAIT; mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad+128], %b; END:`

// crossMisdeed is crossBlock with a way to put it right.
func crossMisdeed(name, right, with string) misdeed {
	m := bulkMisdeed(name, bench.MissingProxyFence, crossBlock, map[string]string{right: with})
	m.p.grid = 2
	return m
}

var crossMisdeeds = []misdeed{
	crossMisdeed("what another block wrote brought without a proxy fence of the writers", "/*writer*/", "fence.proxy.async;"),
	crossMisdeed("what another block wrote brought without a proxy fence of the reader", "/*reader*/", "fence.proxy.async;"),
}

// with is the misdeed with something else in its body.
func (m misdeed) with(from, to string) misdeed {
	m.p.body = replace(m.p.body, from, to)
	return m
}

// on is the misdeed for another target.
func (m misdeed) on(target string) misdeed {
	m.p.target = target
	return m
}
