package vm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// tensorSample is a right program: a product of 128x32x16 of f16, added to what
// tensor memory holds.
func tensorSample() tensorProgram {
	rows := func(count int) [][]byte {
		all := make([][]byte, count)
		for r := range all {
			all[r] = make([]byte, 32)
			all[r][1] = 0x3c
		}
		return all
	}
	image := make([]byte, 8<<10)
	da, end := plainMatrix(image, 0, rows(128))
	db, _ := plainMatrix(image, end, rows(32))
	return tensorProgram{
		image: image, columns: 64, initial: make([]uint32, 128*64),
		regs: ".reg .b32 %id, %xa, %z<8>; .reg .b64 %da, %db; .reg .pred %pk, %pz;",
		issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 1; add.u32 %%xa, %%tm, 32;\n", int64(da), int64(db), 1<<4|4<<17|8<<24) +
			"@%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm], %da, %db, %id, %pk;",
	}
}

// tensorDeed is an edit of a right program, and the one class of fault that it
// makes; no class is a right program again.
type tensorDeed struct {
	name  string
	edit  func(p *tensorProgram)
	class bench.FaultClass
	says  string
}

// check runs an edited sample under every timing.
func (c *tensorDeed) check(t *testing.T, sample func() tensorProgram) {
	t.Run(c.name, func(t *testing.T) {
		for _, opt := range timings {
			p := sample()
			c.edit(&p)
			p.opt = opt
			_, faults := p.run(t)
			if c.class == "" {
				require.Empty(t, faults, "%+v", opt)
				continue
			}
			require.NotEmpty(t, faults, "%+v", opt)
			var all []string
			for _, f := range faults {
				require.Equal(t, c.class, f.Class, "%+v: %s", opt, f.Message)
				all = append(all, f.Message)
			}
			require.Contains(t, strings.Join(all, "\n"), c.says)
		}
	})
}

// TestTensorFaults: every misuse has its class, whatever the schedule, and what is
// right has none.
func TestTensorFaults(t *testing.T) {
	const product = "@%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm], %da, %db, %id, %pk;"
	const wait = "W: mbarrier.try_wait.parity.shared.b64 %p, [%sm+8200], 0; @!%p bra W;"
	const load = "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%z0, %z1, %z2, %z3, %z4, %z5, %z6, %z7}, [%la+4];\n"
	const store = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%la+4], {%t, %t, %t, %t, %t, %t, %t, %t};\n"
	const dealloc = "@%pw tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 512;"
	again := func(columns int) string { // allocates and gives back
		return fmt.Sprintf("\n@%%pw tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%%sm+8192], %d;\n@%%pw ld.shared.u32 %%tm, [%%sm+8192];\n@%%pw tcgen05.dealloc.cta_group::1.sync.aligned.b32 %%tm, %d;", columns, columns)
	}
	swap := func(from, to string) func(p *tensorProgram) {
		return func(p *tensorProgram) { p.edit = func(text string) string { return replace(text, from, to) } }
	}
	for _, c := range []tensorDeed{
		{"right", func(*tensorProgram) {}, "", ""},
		{"several products", func(p *tensorProgram) { p.issue += "\n" + product + "\n" + product }, "", ""},
		{"a product after a copy", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "@%p0 tcgen05.cp.cta_group::1.128x256b [%xa], %da;\n@%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm], [%xa], %db, %id, %pk;")
		}, "", ""},
		{"relaxed arrival and wait with fences", func(p *tensorProgram) {
			p.issue = product // by the last thread, which hears of the others by an mbarrier
			p.all = replace(replace(tensorSample().issue, product, ""), "mov.pred %pk, 1;", "mov.pred %pk, 1;") + `
@%p0 mbarrier.init.shared.b64 [%sm+8216], 128; bar.sync 0;
` + store + `tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; mbarrier.arrive.relaxed.cta.shared.b64 _, [%sm+8216];
V: mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p, [%sm+8216], 0; @!%p bra V;
tcgen05.fence::after_thread_sync;`
		}, "", ""},
		{"no wait", swap(wait, ""), bench.AsyncCopyRace, ""},
		{"no commit", swap("@%p0 tcgen05.commit", "@%p0 add.u32 %x, %x, 0; // tcgen05.commit"), bench.Deadlock, "mbarrier"},
		{"a commit of another thread's products", swap("@%p0 tcgen05.commit", "setp.eq.u32 %pz, %t, 33; @%pz tcgen05.commit"), bench.AsyncCopyRace, ""},
		{"a commit before the products", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "")
			p.edit = func(text string) string { return replace(text, wait, product+"\n"+wait) }
		}, bench.AsyncCopyRace, ""},
		{"a wait for the phase before", swap(wait, "W: mbarrier.try_wait.parity.shared.b64 %p, [%sm+8200], 1; @!%p bra W;"), bench.AsyncCopyRace, ""},
		{"operands overwritten", swap(wait, "@%pi st.shared.u32 [%sm+64], %t;\n"+wait), bench.AsyncCopyRace, ""},
		{"no fence before the product", swap("fence.proxy.async;", ""), bench.MissingProxyFence, ""},
		{"stores that are not waited for", func(p *tensorProgram) { p.all = store + "bar.sync 0;" }, bench.AsyncCopyRace, "tcgen05.st"},
		{"a load of what is being stored", func(p *tensorProgram) {
			p.all = store + load + "tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned; bar.sync 0;"
		}, bench.AsyncCopyRace, ""},
		{"a load that is not waited for", func(p *tensorProgram) { p.all = load + "bar.sync 0;" }, bench.AsyncCopyRace, "tcgen05.ld"},
		{"a load that only the end of the allocation follows", func(p *tensorProgram) {
			p.edit = func(text string) string { return replace(text, dealloc, load+"bar.sync 0;\n"+dealloc) }
		}, "", ""},
		{"no barrier before the product", func(p *tensorProgram) { p.all = store + "tcgen05.wait::st.sync.aligned;" }, bench.AsyncCopyRace, "nothing orders"},
		{"sums as an operand", func(p *tensorProgram) {
			p.issue += "\n@%p0 tcgen05.mma.cta_group::1.kind::f16 [%xa], [%tm], %db, %id, %pk;"
		}, bench.AsyncCopyRace, ""},
		{"sums of two shapes", func(p *tensorProgram) { p.issue += "\nadd.u32 %id, %id, 262144;\n" + product }, bench.AsyncCopyRace, ""},
		{"no initial sums", func(p *tensorProgram) { p.initial = nil }, bench.UninitialisedRegister, "tensor memory in lane"},
		{"operands never written", func(p *tensorProgram) {
			p.edit = func(text string) string {
				return replace(text, "st.shared.u32 [%x], %v;", "setp.eq.u32 %pz, %i, 64; @!%pz st.shared.u32 [%x], %v;")
			}
		}, bench.UninitialisedSharedRead, "tcgen05.mma"},
		{"columns that nobody has", swap("b32 [%sm+8192], 512;\n", "b32 [%sm+8192], 32;\n"), bench.BadDescriptor, "not all allocated"},
		{"sums of half the rows in columns that nobody has", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "add.u32 %xa, %tm, 1000; xor.b32 %id, %id, 201326592;\n"+replace(product, "[%tm]", "[%xa]"))
		}, bench.BadDescriptor, "not all allocated"},
		{"lanes of another warp", func(p *tensorProgram) {
			p.all = replace(load, "[%la+4]", "[%tm+4]") + "tcgen05.wait::ld.sync.aligned; bar.sync 0;"
		}, bench.BadDescriptor, "reaches lanes"},
		{"nothing given back", swap(dealloc, ""), bench.BadDescriptor, "has not given back"},
		{"less given back", swap(dealloc, "@%pw tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 256;"), bench.BadDescriptor, "no allocation"},
		{"given back too early", func(p *tensorProgram) {
			p.edit = func(text string) string {
				before, _, _ := strings.Cut(text, wait)
				return before + dealloc
			}
		}, bench.AsyncCopyRace, ""},
		{"given back with no barrier", swap("bar.sync 0;\n"+dealloc, dealloc), bench.AsyncCopyRace, ""},
		{"used after it is given back", swap(dealloc, dealloc+" bar.sync 0;\n"+load), bench.BadDescriptor, "not all allocated"},
		{"allocated after giving up the right", func(p *tensorProgram) {
			p.all = "@%pw tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n@%pw tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%sm+8208], 32;"
		}, bench.BadDescriptor, "right to allocate"},
		{"allocated more than there is", func(p *tensorProgram) {
			p.all = "@%pw tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%sm+8208], 32;"
		}, bench.Deadlock, "32 columns of tensor memory"},
		{"an odd number of columns", func(p *tensorProgram) {
			p.all = "mov.b32 %xa, 48; @%pw tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%sm+8208], %xa;"
		}, bench.BadDescriptor, "power of two"},
		{"half a warp loads", func(p *tensorProgram) {
			p.all = "and.b32 %xa, %t, 16; setp.eq.u32 %pz, %xa, 0; @!%pz bra PAST;\n" + load + "tcgen05.wait::ld.sync.aligned;\nPAST: bar.sync 0;"
		}, bench.DivergentCollective, ""},
		{"a descriptor of wgmma", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "and.b64 %da, %da, -70368744177665;\n"+product)
		}, bench.BadDescriptor, "bits 46 to 48"},
		{"no such N", func(p *tensorProgram) { p.issue = replace(p.issue, product, "xor.b32 %id, %id, 524288;\n"+product) }, bench.BadDescriptor, "N of 0"},
		{"no such M", func(p *tensorProgram) { p.issue = replace(p.issue, product, "xor.b32 %id, %id, 16777216;\n"+product) }, bench.BadDescriptor, "M of 144"},
		{"negated integers", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "xor.b32 %id, %id, 8240;\n"+replace(product, "f16", "i8")) // bits 4, 5 and 13
		}, bench.BadDescriptor, "negated integers"},
		{"columns of bytes that don't fill 16", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "xor.b32 %id, %id, 983040;\n"+replace(product, "f16", "f8f6f4")) // bit 16, N of 24
		}, bench.BadDescriptor, "N of 24, want a multiple of 16"},
		{"shifted rows of half the lanes", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "xor.b32 %id, %id, 201326592;\n@%p0 tcgen05.mma.cta_group::1.kind::f16.ashift [%tm], [%xa], %db, %id, %pk;") // M of 64
		}, bench.BadDescriptor, "M of 64, want 128 or 256 of shifted rows"},
		{"A in other lanes than the sums", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "xor.b32 %id, %id, 201326592; add.u32 %xa, %xa, 1048576;\n"+replace(product, "%da", "[%xa]"))
		}, bench.BadDescriptor, "want the lane of the sums, 0"},
		{"A in the lanes of the sums", func(p *tensorProgram) {
			p.issue = replace(p.issue, product, "xor.b32 %id, %id, 201326592; add.u32 %xa, %tm, 1048608; add.u32 %x, %tm, 1048576;\n"+replace(replace(product, "%da", "[%xa]"), "[%tm]", "[%x]"))
		}, "", ""},
		{"a matrix outside", func(p *tensorProgram) { p.issue = replace(p.issue, product, "add.u64 %db, %db, 256;\n"+product) }, bench.BadDescriptor, "reaches shared address"},
		{"an mbarrier that is none", swap("@%pi mbarrier.init.shared.b64 [%sm+8200], 1;", "@%pi mbarrier.init.shared.b64 [%sm+8216], 1;"), bench.MbarrierMisuse, ""},
		{"a pair of one", func(p *tensorProgram) {
			p.edit = func(string) string {
				return "mov.b32 %tm, 0; setp.eq.u32 %p0, %t, 0; @%p0 tcgen05.shift.cta_group::2.down [%tm];"
			}
		}, bench.BadDescriptor, "to make a pair with"},
		{"an allocation larger than the one before", func(p *tensorProgram) {
			p.edit = func(text string) string { return replace(text, dealloc, dealloc+again(32)+again(64)) }
		}, bench.BadDescriptor, "64 columns of tensor memory after 32"},
		{"allocations that don't grow", func(p *tensorProgram) {
			p.edit = func(text string) string { return replace(text, dealloc, dealloc+again(64)+again(64)+again(32)) }
		}, "", ""},
		{"another number of columns in another thread", func(p *tensorProgram) {
			p.columns, p.initial, p.issue = 0, nil, "" // nobody uses what isn't allocated
			p.edit = func(text string) string {
				return replace(replace(text, dealloc, ""), "b32 [%sm+8192], 512;\n", "b32 [%sm+8192], %x;\n")
			}
		}, bench.BadDescriptor, "want one number"},
	} {
		c.check(t, tensorSample)
	}
}

// TestTensorAllocation: an allocation waits for another to end, and columns are
// used again.
func TestTensorAllocation(t *testing.T) {
	for _, opt := range timings {
		out, report := small{
			target: "sm_100a", decls: sharedDecl, dynamic: 64, block: 64, opt: opt,
			regs: ".reg .b32 %sm, %w, %a, %v; .reg .pred %p; .reg .b64 %h;",
			body: `mov.u32 %sm, sm; shr.u32 %w, %t, 5; mad.lo.u32 %sm, %w, 4, %sm;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%sm], 512;
ld.shared.u32 %a, [%sm];
shl.b32 %v, %w, 21; add.u32 %v, %v, %a;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%v], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w}, [%v];
tcgen05.wait::ld.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 512;
mad.wide.u32 %h, %t, 4, %in0; st.global.u32 [%h], %w;`,
		}.run(t, make([]byte, 256))
		require.Empty(t, report.Faults, "%+v", opt)
		for i, v := range toWords(out[0]) {
			require.Equal(t, uint32(i), v)
		}
	}
}

// TestTensorCounts: what tcgen05 does is counted by shape and types.
func TestTensorCounts(t *testing.T) {
	p := tensorSample()
	s := small{
		target: "sm_100a", decls: sharedDecl, dynamic: int64(len(p.image)) + 64, block: 128, opt: vm.Options{},
		regs: ".reg .b32 %sm, %i, %v, %x, %rank, %tm, %la, %w<32>; .reg .b64 %g, %h, %k; .reg .b16 %both; .reg .pred %p, %pw, %p0, %pi;" + p.regs, body: p.text(),
	}
	_, report := s.run(t, p.image, words(p.initial...), make([]byte, 4*len(p.initial)))
	require.Empty(t, report.Faults)
	require.Equal(t, []bench.TensorCount{{Kind: "tcgen05", Shape: "m128n32k16", A: "f16", B: "f16", Accumulator: "f32", Count: 1, Operations: 2 * 128 * 32 * 16}}, report.Counters.Tensor)
	require.EqualValues(t, (128+32)*32, report.Counters.Shared.Operands.Bytes)
}
