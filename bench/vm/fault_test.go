package vm_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// misdeed is a program with a fault, and what makes it right.
type misdeed struct {
	name  string
	class bench.FaultClass
	p     small
	fix   map[string]string // replacements in the body that make it clean
}

const sharedDecl = ".extern .shared .align 128 .b8 sm[];"

var misdeeds = []misdeed{
	{
		name: "store past the end of a buffer", class: bench.GlobalOutOfBounds, p: small{
			regs: ".reg .b64 %ad;", block: 129, body: "mad.wide.u32 %ad, %t, 4, %in0; @%p st.global.u32 [%ad], %t;",
		},
		fix: map[string]string{"@%p st": "setp.lt.u32 %p, %t, 128; @%p st"},
	},
	{
		name: "null pointer", class: bench.GlobalOutOfBounds, p: small{
			regs: ".reg .b64 %ad;", block: 1, body: "mov.u64 %ad, 0; st.u32 [%ad], %t;",
		},
		fix: map[string]string{"mov.u64 %ad, 0": "mov.u64 %ad, %in0"},
	},
	{
		name: "shared memory overrun", class: bench.SharedOutOfBounds, p: small{
			decls: sharedDecl, dynamic: 128, regs: ".reg .b32 %a;", block: 33, body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; @%p st.shared.u32 [%a], %t;",
		},
		fix: map[string]string{"@%p st": "setp.lt.u32 %p, %t, 32; @%p st"},
	},
	{
		name: "local array overrun", class: bench.LocalOutOfBounds, p: small{
			regs: ".reg .b32 %a;", block: 8, body: ".local .align 4 .b8 x[16]; mov.u32 %a, x; mad.lo.u32 %a, %t, 4, %a; st.local.u32 [%a+-0], %t;",
		},
		fix: map[string]string{"%t, 4, %a": "0, 4, %a"},
	},
	{
		name: "misaligned vector", class: bench.MisalignedAddress, p: small{
			regs: ".reg .b32 %a<4>;", block: 1, body: "ld.global.v4.u32 {%a0,%a1,%a2,%a3}, [%in0+8];",
		},
		fix: map[string]string{"+8": "+16"},
	},
	{
		name: "misaligned shared word", class: bench.MisalignedAddress, p: small{
			decls: sharedDecl, dynamic: 128, block: 1, body: "st.shared.u32 [sm+2], %t;",
		},
		fix: map[string]string{"+2": "+4"},
	},
	{
		name: "branch on shared memory never written", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 128, regs: ".reg .b32 %a;", block: 32, body: "ld.shared.u32 %a, [sm]; setp.eq.u32 %p, %a, 3; @%p bra L; L:",
		},
		fix: map[string]string{"ld.shared": "@!%q bra S; st.shared.u32 [sm], 1; S: bar.sync 0; ld.shared"},
	},
	{
		name: "store of a register never written", class: bench.UninitialisedRegister, p: small{
			regs: ".reg .b32 %a, %b;", block: 32, body: "setp.lt.u32 %p, %t, 7; @%p mov.u32 %a, 1; add.u32 %b, %a, 1; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b;",
		},
		fix: map[string]string{"st.g": "@%p st.g"},
	},
	{
		name: "address from a register never written", class: bench.UninitialisedRegister, p: small{
			regs: ".reg .b64 %ad;", block: 1, body: "@%r mov.u64 %ad, %in0; ld.global.u32 %x, [%ad];",
		},
		fix: map[string]string{"@%r mov": "mov"},
	},
	{
		name: "undefined bits that reach memory", class: bench.UninitialisedSharedRead, p: small{
			decls: sharedDecl, dynamic: 128, regs: ".reg .b32 %a, %b;", block: 1, body: "st.shared.u16 [sm], 5; ld.shared.u32 %a, [sm]; shr.u32 %a, %a, 8; st.global.u32 [%in0], %a;",
		},
		fix: map[string]string{"shr.u32 %a, %a, 8": "and.b32 %a, %a, 0xffff"},
	},
	{
		name: "neighbours read without a barrier", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b;", block: 128,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; xor.b32 %b, %t, 1; mov.u32 %a, sm; mad.lo.u32 %a, %b, 4, %a; @%r bar.warp.sync -1; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b;",
		},
		fix: map[string]string{"@%r bar": "bar"},
	},
	{
		name: "a barrier missing between uses of a buffer", class: bench.SharedRace, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b, %i, %c;", block: 128,
			body: `mov.u32 %i, 0; mov.u32 %c, 0;
L: mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; add.u32 %b, %t, %i; st.shared.u32 [%a], %b; bar.sync 0;
mov.u32 %b, 127; sub.u32 %b, %b, %t; mov.u32 %a, sm; mad.lo.u32 %a, %b, 4, %a; ld.shared.u32 %b, [%a]; add.u32 %c, %c, %b;
/*here*/ add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra L;
mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %c;`,
		},
		fix: map[string]string{"/*here*/": "bar.sync 0;"},
	},
	{
		name: "lane 0 arrives for its warp without a syncwarp", class: bench.SharedRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b;", block: 64,
			body: `@!%q bra INIT; mbarrier.init.shared.b64 [sm+256], 1; INIT: bar.sync 0;
setp.ge.u32 %p, %t, 32; @%p bra READ;
mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; @%r bar.warp.sync -1; @%q mbarrier.arrive.shared.b64 _, [sm+256]; bra END;
READ: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra READ;
mov.u32 %a, sm; sub.u32 %b, 63, %t; mad.lo.u32 %a, %b, 4, %a; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %b;
END:`,
		},
		fix: map[string]string{"@%r bar": "bar"},
	},
	{
		name: "two blocks write one word", class: bench.GlobalRace, p: small{
			grid: 2, block: 1, regs: ".reg .b32 %b;", body: "mov.u32 %b, %ctaid.x; st.global.u32 [%in0], %b;",
		},
		fix: map[string]string{"[%in0], %b": "[%in0], 5"},
	}, // the same value is silent
	{
		name: "rows of stmatrix at one address", class: bench.SharedRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, regs: ".reg .b32 %a;", block: 32,
			body: "and.b32 %a, %t, 15; stmatrix.sync.aligned.m8n8.x2.shared.b16 [sm], {%a, %a}; stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [sm+16], {458759, 458759};",
		},
		fix: map[string]string{"%t, 15": "%t, 3"},
	}, // the same value is silent
	{
		name: "a block reads what another writes", class: bench.GlobalRace, p: small{
			grid: 2, block: 1, regs: ".reg .b32 %b;", body: "mov.u32 %b, %ctaid.x; setp.eq.u32 %p, %b, 0; @%p st.global.u32 [%in0], 3; @!%p ld.global.u32 %b, [%in0]; @!%p st.global.u32 [%in0+8], %b;",
		},
		fix: map[string]string{"%b, [%in0]": "%b, [%in0+4]"},
	},
	{
		name: "an atomic and a plain store", class: bench.GlobalRace, p: small{
			grid: 2, block: 1, regs: ".reg .b32 %b;", body: "mov.u32 %b, %ctaid.x; setp.eq.u32 %p, %b, 0; @%p red.global.add.u32 [%in0], 3; @!%p st.global.u32 [%in0], 4;",
		},
		fix: map[string]string{"st.global.u32 [%in0], 4": "red.global.add.u32 [%in0], 4"},
	},
	{
		name: "atomics of too small a scope", class: bench.GlobalRace, p: small{
			grid: 2, block: 1, body: "red.cta.global.add.u32 [%in0], 3;",
		},
		fix: map[string]string{".cta": ".gpu"},
	},
	{
		name: "cp.async not waited for", class: bench.AsyncCopyRace, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b;", block: 32,
			body: "mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0; cp.async.ca.shared.global [%a], [%ad], 4; cp.async.commit_group; @%r cp.async.wait_group 0; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;",
		},
		fix: map[string]string{"@%r cp": "cp"},
	},
	{
		name: "cp.async over what others still read", class: bench.AsyncCopyRace, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b, %c;", block: 64,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %ad, %t, 4, %in0; st.shared.u32 [%a], %t; bar.sync 0;
sub.u32 %b, 63, %t; mov.u32 %c, sm; mad.lo.u32 %c, %b, 4, %c; ld.shared.u32 %b, [%c]; /*here*/
cp.async.ca.shared.global [%a], [%ad], 4; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;`,
		},
		fix: map[string]string{"/*here*/": "bar.sync 0;"},
	},
	{
		name: "bulk load read before its mbarrier", class: bench.AsyncCopyRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b;", block: 32,
			body: `@!%q bra INIT; mbarrier.init.shared.b64 [sm+256], 1; INIT: bar.sync 0;
@!%q bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [sm+256], 128; mov.u32 %a, sm;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%in0], 128, [sm+256];
WAIT: mov.pred %p, %r; @%p bra READ; bra READ;
TRY: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra TRY;
READ: mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; ld.shared.u32 %b, [%a]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %b;
DONE: mbarrier.try_wait.parity.shared.b64 %p, [sm+256], 0; @!%p bra DONE;`,
		},
		fix: map[string]string{"@%p bra READ; bra READ;": ""},
	},
	{
		name: "copy within shared memory of bytes never written", class: bench.UninitialisedSharedRead, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 1,
			body: `mbarrier.init.shared.b64 [sm+384], 1; mbarrier.arrive.expect_tx.shared.b64 _, [sm+384], 128; mbarrier.init.shared.b64 [sm+392], 1;
mov.u32 %a, sm; st.shared.v4.u32 [sm+16], {1, 1, 1, 1}; fence.proxy.async;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a+128], [%a], 128, [sm+384];
W: mbarrier.try_wait.parity.shared.b64 %p, [sm+384], 0; @!%p bra W; ld.shared.u32 %a, [sm+132]; st.global.u32 [%in0], %a;`,
		},
		fix: map[string]string{"[sm+132]": "[sm+148]"},
	},
	{
		name: "bulk store without a proxy fence", class: bench.MissingProxyFence, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 32,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; /*here*/ bar.sync 0;
@!%q bra END; mov.u32 %a, sm; cp.async.bulk.global.shared::cta.bulk_group [%in0], [%a], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:`,
		},
		fix: map[string]string{"/*here*/": "fence.proxy.async;"},
	},
	{
		name: "source of a bulk store overwritten", class: bench.AsyncCopyRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 32,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;
@!%q bra NEXT; cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm], 128; cp.async.bulk.commit_group; @%r cp.async.bulk.wait_group.read 0; NEXT:
bar.sync 0; st.shared.u32 [%a], 9; cp.async.bulk.wait_group 0;`,
		},
		fix: map[string]string{"@%r cp": "cp"},
	},
	{
		name: "a barrier in a branch", class: bench.BarrierDivergence, p: small{
			regs: ".reg .b32 %a;", block: 64, body: "setp.lt.u32 %p, %t, 40; @!%p bra L; bar.sync 0; L: mov.u32 %a, 1;",
		},
		fix: map[string]string{"%t, 40": "%t, 64"},
	},
	{
		name: "an unaligned barrier in a branch", class: bench.BarrierDivergence, p: small{
			block: 64, body: "setp.lt.u32 %p, %t, 40; @!%p bra L; barrier.sync 0; L: barrier.sync 1;",
		},
		fix: map[string]string{"%t, 40": "%t, 64"},
	},
	{
		name: "a vote that some lanes skip", class: bench.DivergentCollective, p: small{
			regs: ".reg .b32 %a;", block: 32, body: "setp.lt.u32 %p, %t, 9; @!%p bra L; vote.sync.ballot.b32 %a, %p, -1; L: mov.u32 %a, 1;",
		},
		fix: map[string]string{"%p, -1": "%p, 0x1ff"},
	},
	{
		name: "a lane outside its own mask", class: bench.DivergentCollective, p: small{
			regs: ".reg .b32 %a;", block: 32, body: "vote.sync.ballot.b32 %a, %q, 0x7fffffff;",
		},
		fix: map[string]string{"0x7fffffff": "-1"},
	},
	{
		name: "ldmatrix by half a warp", class: bench.DivergentCollective, p: small{
			decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 32, body: "st.shared.v4.u32 [sm], {1,1,1,1}; bar.sync 0; setp.lt.u32 %p, %t, 16; @%p ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a}, [sm];",
		},
		fix: map[string]string{"%t, 16": "%t, 32"},
	},
	{
		name: "an mbarrier before its initialisation", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "/*here*/ mbarrier.arrive.shared.b64 _, [sm];",
		},
		fix: map[string]string{"/*here*/": "mbarrier.init.shared.b64 [sm], 1;"},
	},
	{
		name: "an mbarrier after inval", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "mbarrier.init.shared.b64 [sm], 2; mbarrier.inval.shared.b64 [sm]; mbarrier.arrive.shared.b64 _, [sm];",
		},
		fix: map[string]string{"mbarrier.inval.shared.b64 [sm];": ""},
	},
	{
		name: "an mbarrier initialised twice", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "mbarrier.init.shared.b64 [sm], 2; /*here*/ mbarrier.init.shared.b64 [sm], 2;",
		},
		fix: map[string]string{"/*here*/": "mbarrier.inval.shared.b64 [sm];"},
	},
	{
		name: "too many arrivals", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "mbarrier.init.shared.b64 [sm], 2; mbarrier.arrive.shared.b64 _, [sm], 3;",
		},
		fix: map[string]string{", 3;": ", 2;"},
	},
	{
		name: "a plain store to an mbarrier", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "mbarrier.init.shared.b64 [sm], 2; st.shared.u32 [sm+4], 1;",
		},
		fix: map[string]string{"[sm+4]": "[sm+8]"},
	},
	{
		name: "bytes expected that nothing brings", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 1, body: "mbarrier.init.shared.b64 [sm], 1; mbarrier.arrive.expect_tx.shared.b64 _, [sm], 16; W: mbarrier.try_wait.parity.shared.b64 %p, [sm], 0; @!%p bra W;",
		},
		fix: map[string]string{", 16;": ", 0;"},
	},
	{
		name: "no order from init to arrive", class: bench.MbarrierMisuse, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 64, block: 64, body: "@!%q bra L; mbarrier.init.shared.b64 [sm], 64; L: /*here*/ mbarrier.arrive.shared.b64 _, [sm];",
		},
		fix: map[string]string{"/*here*/": "bar.sync 0;"},
	},
	{
		name: "write to constant memory", class: bench.WriteToConst, p: small{
			decls: ".const .align 4 .b32 c = 7;", regs: ".reg .b64 %ad;", block: 1, body: "mov.u64 %ad, c; cvta.const.u64 %ad, %ad; st.u32 [%ad], 1;",
		},
		fix: map[string]string{"st.u32 [%ad], 1": "ld.u32 %x, [%ad]"},
	},
	ringMisdeed("a ring's consumer that doesn't wait", bench.AsyncCopyRace,
		"FULL: mbarrier.try_wait.parity.shared.b64 %p, [%m+256], %h; @!%p bra FULL;", ""),
	ringMisdeed("a ring's consumer that waits for the wrong phase", bench.AsyncCopyRace, "[%m+256], %h;", "[%m+256], %e;"),
	ringMisdeed("a ring's producer that doesn't wait", bench.AsyncCopyRace,
		"EMPTY: mbarrier.try_wait.parity.shared.b64 %p, [%m+272], %e; @!%p bra EMPTY;", ""),
	ringMisdeed("a ring's mbarriers that may not be initialised", bench.MbarrierMisuse, "bar.sync 0;", ""),
	{
		name: "what a bulk store wrote read before it is complete", class: bench.AsyncCopyRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 32,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;
@!%q bra END; cp.async.bulk.global.shared::cta.bulk_group [%in0+64], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
ld.global.u32 %a, [%in0+188]; st.global.u32 [%in1], %a; END: cp.async.bulk.wait_group 0;`,
		},
		fix: map[string]string{"wait_group.read 0": "wait_group 0"},
	},
	{
		name: "what a bulk reduction changed read by others before it is complete", class: bench.AsyncCopyRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 32,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;
@!%q bra NEXT; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in0], [sm], 128; cp.async.bulk.commit_group;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in0+64], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 1;
NEXT: bar.sync 0; mad.wide.u32 %ad, %t, 4, %in0; ld.global.u32 %a, [%ad+128]; mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %a; cp.async.bulk.wait_group 0;`,
		},
		fix: map[string]string{"[%ad+128]": "[%ad+192]"},
	},
	{
		name: "a store over what a bulk store is still to write", class: bench.AsyncCopyRace, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 32,
			body: `mov.u32 %a, sm; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;
@!%q bra NEXT; cp.async.bulk.global.shared::cta.bulk_group [%in0], [sm], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
NEXT: bar.sync 0; mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], 9; cp.async.bulk.wait_group 0;`,
		},
		fix: map[string]string{"wait_group.read 0": "wait_group 0"},
	},
	{name: "a tensor map of zeros", class: bench.BadDescriptor, p: small{
		target: "sm_90a", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a;", block: 1,
		body: "mbarrier.init.shared.b64 [sm+256], 1; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [sm], [%in0, {0, 0}], [sm+256];",
	}},
}

// ring is a pipeline of two stages: thread 32 brings tiles of 128 bytes, warp 0
// adds them up. Its mbarriers say which stages are full and which are empty.
const ring = `setp.ne.u32 %p, %t, 32; @%p bra INIT; mbarrier.init.shared.b64 [sm+256], 1; mbarrier.init.shared.b64 [sm+264], 1;
mbarrier.init.shared.b64 [sm+272], 32; mbarrier.init.shared.b64 [sm+280], 32;
INIT: bar.sync 0;
mov.u32 %i, 0; mov.u32 %c, 0; setp.lt.u32 %p, %t, 32; @%p bra TAKE; setp.ne.u32 %p, %t, 32; @%p bra END;
BRING: and.b32 %s, %i, 1; shr.u32 %h, %i, 1; and.b32 %h, %h, 1; xor.b32 %e, %h, 1; mov.u32 %m, sm; mad.lo.u32 %a, %s, 128, %m; mad.lo.u32 %m, %s, 8, %m;
EMPTY: mbarrier.try_wait.parity.shared.b64 %p, [%m+272], %e; @!%p bra EMPTY;
mbarrier.arrive.expect_tx.shared.b64 _, [%m+256], 128; and.b32 %s, %i, 3; mad.wide.u32 %ad, %s, 128, %in0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%ad], 128, [%m+256];
add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 8; @%p bra BRING; bra END;
TAKE: and.b32 %s, %i, 1; shr.u32 %h, %i, 1; and.b32 %h, %h, 1; xor.b32 %e, %h, 1; mov.u32 %m, sm; mad.lo.u32 %a, %s, 128, %m; mad.lo.u32 %m, %s, 8, %m;
FULL: mbarrier.try_wait.parity.shared.b64 %p, [%m+256], %h; @!%p bra FULL;
mad.lo.u32 %a, %t, 4, %a; ld.shared.u32 %x, [%a]; add.u32 %c, %c, %x; mbarrier.arrive.shared.b64 _, [%m+272];
add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 8; @%p bra TAKE;
mad.wide.u32 %ad, %t, 4, %in1; st.global.u32 [%ad], %c;
END:`

// ringMisdeed is the ring with something left out or replaced.
func ringMisdeed(name string, class bench.FaultClass, right, wrong string) misdeed {
	wrong += " /*wrong*/"
	return misdeed{
		name: name, class: class, p: small{
			target: "sm_90", decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %c, %e, %h, %i, %m, %s;", block: 64,
			body: replace(ring, right, wrong),
		},
		fix: map[string]string{wrong: right},
	}
}

func (m misdeed) prepare(fixed bool) small {
	p := m.p
	// Predicates that every program may use: never, and whether it is thread 0.
	p.regs += " .reg .b64 %ad_; .reg .b32 %x; .reg .pred %p, %q, %r;"
	if !contains(p.regs, "%ad;") && !contains(p.regs, "%ad,") {
		p.regs += " .reg .b64 %ad;"
	}
	p.body = "setp.eq.u32 %q, %t, 0; setp.gt.u32 %r, %t, 5000; setp.gt.u32 %p, %t, 5000; not.pred %p, %p;\n" + p.body
	if fixed {
		for from, to := range m.fix {
			p.body = replace(p.body, from, to)
		}
	}
	return p
}

// moments are the schedules and times of asynchronous work under which a fault
// must show, and a right program be silent: eight seeds for each time.
func moments() []vm.Options {
	all := []vm.Options{{}, {Async: vm.Early}}
	for _, a := range []vm.Async{vm.Late, vm.Early, vm.Random} {
		for seed := range uint64(8) {
			all = append(all, vm.Options{Schedule: vm.Shuffle, Async: a, Seed: seed})
		}
	}
	return all
}

// TestFaults: a wrong program is reported as what it is, and as nothing else,
// and the right one is not, whatever the schedule.
func TestFaults(t *testing.T) {
	for _, m := range slices.Concat(misdeeds, wideMisdeeds, memoryMisdeeds, orderMisdeeds, asyncMisdeeds, crossMisdeeds, wgmmaMisdeeds, meetingMisdeeds, formMisdeeds) {
		t.Run(m.name, func(t *testing.T) {
			buffers := [][]byte{make([]byte, 512), make([]byte, 512)}
			for _, opt := range moments() {
				p := m.prepare(false)
				p.opt = opt
				_, report := p.run(t, buffers...)
				require.NotEmpty(t, report.Faults, "%+v", opt)
				for _, f := range report.Faults {
					require.Equal(t, m.class, f.Class, "%+v: %s", opt, f.Message)
					require.Positive(t, f.Line)
					require.NotEmpty(t, f.Message)
				}
				if m.fix == nil {
					continue
				}
				p = m.prepare(true)
				p.opt = opt
				_, report = p.run(t, buffers...)
				require.Empty(t, report.Faults, "the right program")
			}
			// A check that is off reports nothing.
			none, err := vm.ParseChecks("none")
			require.NoError(t, err)
			p := m.prepare(false)
			p.opt = vm.Options{Checks: none}
			_, report := p.run(t, buffers...)
			require.Empty(t, report.Faults)
		})
	}
}

// TestReadersOfOtherCells: two warps read one word, then, a barrier later,
// another while the first is written again. Nothing races.
func TestReadersOfOtherCells(t *testing.T) {
	p := small{
		decls: sharedDecl, dynamic: 512, regs: ".reg .b32 %a, %b; .reg .pred %q;", block: 64,
		body: `setp.eq.u32 %q, %t, 0;
@%q st.shared.u32 [sm], 1; @%q st.shared.u32 [sm+64], 2; bar.sync 0;
ld.shared.u32 %a, [sm]; bar.sync 0;
ld.shared.u32 %b, [sm+64]; @%q st.shared.u32 [sm], 3; bar.sync 0;
ld.shared.u32 %b, [sm];`,
	}
	p.everywhere(t, func(_ [][]byte, rep *bench.Report) { require.Empty(t, rep.Faults) })
}

// TestManyPages: blocks that read more memory than they keep copies of, with a
// barrier now and then, and one write into it by another block.
func TestManyPages(t *testing.T) {
	for _, racy := range []bool{false, true} {
		at := "%in1"
		if racy {
			at = "%in0+1048576"
		}
		p := small{
			regs: ".reg .b64 %ad; .reg .b32 %i, %v, %s, %b; .reg .pred %p, %q;", grid: 3, block: 32,
			body: `mov.u32 %b, %ctaid.x; mov.u32 %i, 0; mov.u32 %s, 0; setp.eq.u32 %q, %b, 2; @%q bra WRITE;
L: mad.lo.u32 %v, %i, 32, %t; mad.wide.u32 %ad, %v, 16, %in0; ld.global.u32 %v, [%ad]; add.u32 %s, %s, %v;
bar.sync 0; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 6000; @%p bra L;
mad.wide.u32 %ad, %b, 4, %in1; setp.eq.u32 %p, %t, 5; @%p st.global.u32 [%ad+64], %s; bra END;
WRITE: setp.eq.u32 %p, %t, 7; @%p st.global.u32 [` + at + `], 9;
END:`,
		}
		big := make([]byte, 6000*512)
		for i := range big {
			big[i] = byte(i % 251)
		}
		var reports []*bench.Report
		for _, workers := range []int{1, 2, 3} {
			p.opt = vm.Options{Workers: workers}
			out, rep := p.run(t, big, make([]byte, 128))
			want := uint32(0)
			for i := range 6000 {
				want += toWords(big[(32*i+5)*16:][:4])[0]
			}
			require.Equal(t, []uint32{want, want}, toWords(out[1])[16:18])
			reports = append(reports, rep)
			if !racy {
				require.Empty(t, rep.Faults)
				continue
			}
			require.Len(t, rep.Faults, 1)
			require.Equal(t, bench.GlobalRace, rep.Faults[0].Class)
		}
		require.Equal(t, reports[0], reports[1])
		require.Equal(t, reports[0], reports[2])
	}
}
