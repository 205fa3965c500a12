package vm_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kgen-dev/kgen/bench"
)

// onesMatrix is rows of 32 bytes that begin with one of f16.
func onesMatrix(rows int) [][]byte {
	all := make([][]byte, rows)
	for r := range all {
		all[r] = make([]byte, 32)
		all[r][1] = 0x3c
	}
	return all
}

// scaledSample is a right program: scale factors are copied to tensor memory, and
// the product that is issued after them takes them from there.
func scaledSample() tensorProgram {
	image := make([]byte, 8<<10)
	da, end := plainMatrix(image, 0, onesMatrix(128))
	db, end := plainMatrix(image, end, onesMatrix(32))
	factors := make([][]byte, 32)
	for r := range factors {
		factors[r] = bytes.Repeat([]byte{127}, 16)
	}
	df, _ := plainMatrix(image, end, factors)
	return tensorProgram{
		image: image, columns: 64, initial: make([]uint32, 128*64),
		regs: ".reg .b32 %id, %xa, %xb, %z<8>; .reg .b64 %da, %db, %df; .reg .pred %pk, %pz;",
		issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b64 %%df, %d; mov.b32 %%id, %d; mov.pred %%pk, 1; add.u32 %%xa, %%tm, 32; add.u32 %%xb, %%tm, 36; setp.eq.u32 %%pz, %%t, 33;\n",
			int64(da), int64(db), int64(df), 4<<17|1<<23|1<<27) + scaledCopy + scaledProduct,
	}
}

const (
	scaledCopy = `@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%xa], %df;
@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%xb], %df;
`
	scaledProduct = "@%p0 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%tm], %da, %db, %id, [%xa], [%xb], %pk;"

	tensorHeard  = "W: mbarrier.try_wait.parity.shared.b64 %p, [%sm+8200], 0; @!%p bra W;"
	storeFactors = "tcgen05.st.sync.aligned.32x32b.x4.b32 [%la+32], {%t, %t, %t, %t};\n"
	waitStored   = "tcgen05.wait::st.sync.aligned;\n"
	loadSums     = "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%z0, %z1, %z2, %z3, %z4, %z5, %z6, %z7}, [%la];\n"
	waitLoaded   = "tcgen05.wait::ld.sync.aligned;\n"
	heardOther   = `@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%x];
U: mbarrier.try_wait.parity.shared.b64 %p, [%sm+8216], 0; @!%p bra U;
`
	productsAgain = "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n" + scaledProduct + `
@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%x];
V: mbarrier.try_wait.parity.shared.b64 %p, [%sm+8200], 1; @!%p bra V;
tcgen05.fence::after_thread_sync;
`
)

// TestTensorScaledFlights: what is in flight around a product with scale factors.
func TestTensorScaledFlights(t *testing.T) {
	edit := func(from, to string) func(p *tensorProgram) {
		return func(p *tensorProgram) { p.edit = func(text string) string { return replace(text, from, to) } }
	}
	before := func(text string) func(p *tensorProgram) {
		return func(p *tensorProgram) { p.issue = replace(p.issue, scaledCopy, text) }
	}
	other := replace(scaledCopy, "@%p0", "@%pz")
	for _, c := range []tensorDeed{
		{"right", func(*tensorProgram) {}, "", ""},
		{"no wait", edit(tensorHeard, ""), bench.AsyncCopyRace, ""},
		{"factors of ue4m3 for every 32", edit("mov.pred %pk, 1;", "mov.pred %pk, 1; xor.b32 %id, %id, 8388608;"), bench.BadDescriptor, "scale factors of .ue4m3"},
		{"two factors from an odd byte on", func(p *tensorProgram) {
			p.issue = replace(replace(p.issue, "mxf8f6f4", "mxf4"), "mov.pred %pk, 1;", "mov.pred %pk, 1; or.b32 %id, %id, 1168;") // types, and bit 4
		}, bench.BadDescriptor, "scale factors of B from byte 1 on, want a multiple of 2"},
		{"copies by another thread", before(other), bench.AsyncCopyRace, "tcgen05.cp"},
		{"copies by another thread that commits them", before("@%pi mbarrier.init.shared.b64 [%sm+8216], 1; bar.sync 0; add.u32 %x, %sm, 8216;\n" + other +
			replace(heardOther, "@%p0", "@%pz")), "", ""},
		{"factors stored", before(storeFactors + waitStored + "bar.sync 0;\n"), "", ""},
		{"factors stored, not waited for", before(storeFactors + "bar.sync 0;\n"), bench.AsyncCopyRace, "tcgen05.st"},
		{"factors stored, no barrier", before(storeFactors + waitStored), bench.AsyncCopyRace, "nothing orders"},
		{"factors stored over in flight", edit(tensorHeard, storeFactors+waitStored+tensorHeard), bench.AsyncCopyRace, ""},
		{"factors stored over afterwards", func(p *tensorProgram) { p.after = storeFactors + waitStored }, "", ""},
		{"factors' source written in flight", edit(tensorHeard, "@%pi st.shared.u32 [%sm+5200], %t;\n"+tensorHeard), bench.AsyncCopyRace, ""},
		{"factors' source written afterwards", edit(tensorHeard, tensorHeard+"\n@%pi st.shared.u32 [%sm+5200], %t;"), "", ""},
		{"committed before the product", func(p *tensorProgram) {
			p.issue = replace(p.issue, scaledProduct, "")
			p.edit = func(text string) string { return replace(text, tensorHeard, scaledProduct+"\n"+tensorHeard) }
		}, bench.AsyncCopyRace, ""},
		{"committed by another thread", edit("@%p0 tcgen05.commit", "@%pz tcgen05.commit"), bench.AsyncCopyRace, ""},
		{"issued and committed by another thread", edit("setp.eq.u32 %pz, %t, 33;", "setp.eq.u32 %p0, %t, 33;"), "", ""},
		{"one warp waits", edit(tensorHeard, "@!%pw bra PAST;\n"+tensorHeard+"\nPAST:"), bench.AsyncCopyRace, ""},
		{"one warp waits, then a barrier", edit(tensorHeard, "@!%pw bra PAST;\n"+tensorHeard+"\nPAST: tcgen05.fence::before_thread_sync; bar.sync 0;"), "", ""},
		{"sums loaded, then added to", func(p *tensorProgram) { p.after = loadSums + waitLoaded + productsAgain }, "", ""},
		{"sums loaded, not waited for, then added to", func(p *tensorProgram) { p.after = loadSums + productsAgain + waitLoaded }, bench.AsyncCopyRace, "tcgen05.ld"},
		{"sums loaded while they are added to", func(p *tensorProgram) {
			p.after = replace(productsAgain, "bar.sync 0;", "bar.sync 0; "+loadSums+waitLoaded)
		}, bench.AsyncCopyRace, ""},
		{"registers used before they are waited for", func(p *tensorProgram) { p.after = loadSums + "st.global.u32 [%k], %z7;\n" + waitLoaded }, "", ""},
	} {
		c.check(t, scaledSample)
	}
}

// TestTensorOperandFlights: A comes from tensor memory.
func TestTensorOperandFlights(t *testing.T) {
	sample := func() tensorProgram {
		p := tensorSample()
		p.issue = replace(p.issue, "[%tm], %da", "[%tm], [%xa]")
		return p
	}
	const storeA = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%la+39], {%t};\n" + waitStored
	edit := func(from, to string) func(p *tensorProgram) {
		return func(p *tensorProgram) { p.edit = func(text string) string { return replace(text, from, to) } }
	}
	for _, c := range []tensorDeed{
		{"right", func(*tensorProgram) {}, "", ""},
		{"A stored over in flight", edit(tensorHeard, storeA+tensorHeard), bench.AsyncCopyRace, ""},
		{"A stored over afterwards", edit(tensorHeard, tensorHeard+"\n"+storeA), "", ""},
		{"what follows A stored over in flight", edit(tensorHeard, replace(storeA, "+39", "+40")+tensorHeard), "", ""},
		{"A loaded in flight", edit(tensorHeard, replace(loadSums, "[%la]", "[%la+32]")+waitLoaded+tensorHeard), "", ""},
		{"sums loaded in flight", edit(tensorHeard, loadSums+waitLoaded+tensorHeard), bench.AsyncCopyRace, ""},
		{"columns given back in flight", func(p *tensorProgram) {
			const dealloc = "@%pw tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 512;"
			p.columns, p.initial = 0, nil // nobody reads sums, and they aren't added to
			p.all = replace(replace(storeA, ".x1", ".x8"), "[%la+39], {%t}", "[%la+32], {%t, %t, %t, %t, %t, %t, %t, %t}") + "bar.sync 0;"
			p.issue = replace(p.issue, "mov.pred %pk, 1", "mov.pred %pk, 0")
			p.edit = func(text string) string {
				return replace(replace(text, dealloc, ""), tensorHeard, dealloc+"\n"+tensorHeard)
			}
		}, bench.AsyncCopyRace, ""},
	} {
		c.check(t, sample)
	}
}

// TestTensorPairFlights: two blocks' operands make a product.
func TestTensorPairFlights(t *testing.T) {
	sample := func() tensorProgram {
		image := make([]byte, 8<<10)
		da, end := plainMatrix(image, 0, onesMatrix(128))
		db, _ := plainMatrix(image, end, onesMatrix(16))
		return tensorProgram{
			image: bytes.Repeat(image, 2), columns: 32, initial: make([]uint32, 2*128*32), pair: true,
			regs: ".reg .b32 %id, %y; .reg .b64 %da, %db; .reg .pred %pk, %pz;",
			issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 1; setp.ne.u32 %%pz, %%rank, 0;\n", int64(da), int64(db), 1<<4|4<<17|16<<24) +
				"@%p0 tcgen05.mma.cta_group::2.kind::f16 [%tm], %da, %db, %id, %pk;",
		}
	}
	edit := func(from, to string) func(p *tensorProgram) {
		return func(p *tensorProgram) { p.edit = func(text string) string { return replace(text, from, to) } }
	}
	const (
		sync      = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
		peerOnly  = "setp.ne.u32 %pz, %rank, 0; shl.b32 %y, %t, 5; add.u32 %y, %y, %sm;\n"
		peerWrite = peerOnly + "@%pz st.shared.u32 [%y], 15360;\nfence.proxy.async;\n"
		peerStore = peerOnly + "@!%pz bra S; tcgen05.st.sync.aligned.32x32b.x1.b32 [%la+31], {%t};\n" + waitStored + "S: "
		leader    = "@%pz bra PAST;\n" + tensorHeard + "\nPAST: "
		fenceSync = "tcgen05.fence::before_thread_sync; " + sync
		init      = "@%pi mbarrier.init.shared.b64 [%sm+8200], 1;"
		leaderBar = "setp.eq.and.u32 %pz, %rank, 0, %pi; @%pz mbarrier.init.shared.b64 [%sm+8200], 1;"
	)
	toLeader := func(text, heard string) string { // only the leader's mbarrier is told
		return replace(replace(text, "mov.b16 %both, 3;", "mov.b16 %both, 1;"), tensorHeard, heard)
	}
	for _, c := range []tensorDeed{
		{"right", func(*tensorProgram) {}, "", ""},
		{"the peer's operands written, then the cluster's barrier", func(p *tensorProgram) { p.all = peerWrite + sync }, "", ""},
		{"the peer's operands written, then the block's barrier", func(p *tensorProgram) { p.all = peerWrite + "bar.sync 0;" }, bench.AsyncCopyRace, ""},
		{"the peer's operands written with no proxy fence", func(p *tensorProgram) { p.all = replace(peerWrite, "fence.proxy.async;", "") + sync }, bench.MissingProxyFence, ""},
		{"the peer's operands written in flight", edit(tensorHeard, "setp.eq.and.u32 %pz, %rank, 1, %pi; @%pz st.shared.u32 [%sm+64], %t;\n"+tensorHeard), bench.AsyncCopyRace, ""},
		{"the peer's sums stored, then the cluster's barrier", func(p *tensorProgram) { p.all = peerStore + sync }, "", ""},
		{"the peer's sums stored, then the block's barrier", func(p *tensorProgram) { p.all = peerStore + "bar.sync 0;" }, bench.AsyncCopyRace, "nothing orders"},
		{"only the leader is told, and tells the peer", func(p *tensorProgram) {
			p.edit = func(text string) string { return replace(toLeader(text, leader+fenceSync), init, leaderBar) }
		}, "", ""},
		{"only the leader is told", func(p *tensorProgram) {
			p.edit = func(text string) string { return toLeader(text, leader) }
		}, bench.AsyncCopyRace, ""},
		{"only the leader is told, and the peer waits", func(p *tensorProgram) {
			p.edit = func(text string) string { return toLeader(text, tensorHeard) }
		}, bench.Deadlock, ""},
		{"the peer's mbarrier is not initialised", edit(init, leaderBar), bench.MbarrierMisuse, ""},
		{"given back with no barrier", edit(sync+"\n@%pw tcgen05.dealloc", "@%pw tcgen05.dealloc"), bench.AsyncCopyRace, ""},
		{"given back after the block's barrier", edit(sync+"\n@%pw tcgen05.dealloc", "bar.sync 0;\n@%pw tcgen05.dealloc"), "", ""},
		{"told of a third block", edit("mov.b16 %both, 3;", "mov.b16 %both, 7;"), bench.SharedOutOfBounds, ""},
	} {
		c.check(t, sample)
	}
}
